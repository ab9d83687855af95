"""A generation that is held: one of its plugins did not return until the process that ran it was ended.

The mark is the condition `PluginHanging` in the profile's status, so it outlives the process, and all replicas read it before they take a
pod of that generation. The next generation does not have it.
"""

from __future__ import annotations

from placewright.api.profile import SchedulingProfile
from placewright.profiles.profilestate import PLUGIN_HANGING


def said_of(plugin: str, point: str, seconds: float) -> str:
    """What the mark says."""
    return (
        f'{point} plugin "{plugin}" did not return for {seconds:.0f} s, and the process was ended; '
        "no pods of this profile are taken until its spec changes"
    )


def held_because(profile: SchedulingProfile) -> str:
    """What the mark on this generation of a profile says; empty where there is none."""
    for condition in profile.status.conditions or ():
        if (condition.type, condition.status) == (PLUGIN_HANGING, "True"):
            return condition.message if condition.observed_generation == profile.metadata.generation else ""
    return ""
