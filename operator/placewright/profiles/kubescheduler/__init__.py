"""Conversion between SchedulingProfiles and kube-scheduler's files: its configuration, and before that the Policy.

`reader.convert` reads these files, `writer.to_configuration` writes one. Both list the settings without a counterpart.
"""
