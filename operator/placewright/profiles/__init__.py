"""From a SchedulingProfile to what a runtime is built from: defaults, checks, the live set and its swap.

`resolve` is the way in for one profile, `LiveProfiles` for all of a running scheduler, `read_profiles` for files.
"""
