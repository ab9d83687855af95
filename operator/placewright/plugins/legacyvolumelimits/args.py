"""Arguments of the four legacy limits."""

from __future__ import annotations

from typing import Annotated

import msgspec

from placewright.framework.constraints import within


class LegacyVolumeLimitsArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """How many disks every node takes that does not state it itself; without, what the cloud's machines take.

    kube-scheduler read this from its environment, KUBE_MAX_PD_VOLS. Here it stands in the profile, where those who wonder why a pod waits
    can see it, and it may differ by profile and by kind of disk.
    """

    max_volumes: Annotated[int, within(1)] | None = None
