"""Conversion between SchedulingProfiles and the files that kube-scheduler has had: its configuration, and the Policy before that.

`reading.convert` is the way in, `configuration.to_configuration` the way out. Both say what has no counterpart on the other side.
"""
