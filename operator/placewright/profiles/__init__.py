"""From a SchedulingProfile to the settings of a runtime: defaults, checks, the live set and its swap.

`resolve` is the entry for one profile, `LiveProfiles` for all profiles of a running scheduler, `read_profiles` for files.
"""
