"""Groups of pods in a few words: Kubernetes' own PodGroup, and the one of scheduler-plugins."""

from __future__ import annotations

from typing import Any, Self

from placewright.api.podgroups import (
    COSCHEDULING_GROUP,
    KIND,
    NATIVE_GROUP,
    PREFERRED,
    REQUIRED,
    TOPOLOGY_KEY,
    TOPOLOGY_MODE,
    CoschedulingPodGroup,
    NativePodGroup,
)
from placewright.testing.objectmaker import PlainMaker


class PodGroupMaker(PlainMaker[NativePodGroup]):
    """Builds a PodGroup of Kubernetes step by step; see `pod_group`."""

    kind = NativePodGroup
    _kind_name = KIND
    api_version = f"{NATIVE_GROUP}/v1alpha2"

    def members(self, least: int) -> Self:
        """Place so many members together or none (the policy `gang`)."""
        return self.spec(schedulingPolicy={"gang": {"minCount": least}})

    def basic(self) -> Self:
        """Place members one by one; they only belong together (the policy `basic`)."""
        return self.spec(schedulingPolicy={"basic": {}})

    def topology(self, key: str) -> Self:
        """Require one domain of this node label for all members."""
        return self.spec(schedulingConstraints={"topology": [{"key": key}]})

    def disruption(self, mode: str) -> Self:
        """Set what may be evicted at a time: `Pod` or `PodGroup`."""
        return self.spec(disruptionMode=mode)

    def priority(self, priority: int) -> Self:
        """Set the group's own priority, which goes before its members'."""
        return self.spec(priority=priority)


def pod_group(name: str, members: int = 1) -> PodGroupMaker:
    """Begin a PodGroup of Kubernetes' own (scheduling.k8s.io) in the namespace `default`.

    Args:
        name: the name that members use; see `PodMaker.in_group`.
        members: so many are placed together or none.

    Returns:
        The group's maker.

    Example:
        pod_group("train", 8).topology("rack").build()
    """
    return PodGroupMaker(name).members(members)


class CoschedulingGroupMaker(PlainMaker[CoschedulingPodGroup]):
    """Builds a PodGroup of scheduler-plugins step by step; see `coscheduling_group`."""

    kind = CoschedulingPodGroup
    _kind_name = KIND
    api_version = f"{COSCHEDULING_GROUP}/v1alpha1"

    def members(self, least: int) -> Self:
        """Place so many members together or none."""
        return self.spec(minMember=least)

    def timeout(self, seconds: int) -> Self:
        """Let members wait for each other so long."""
        return self.spec(scheduleTimeoutSeconds=seconds)

    def topology(self, key: str, *, required: bool = True) -> Self:
        """Place all members in one domain of a node label.

        Args:
            key: the node label's.
            required: whether members wait for a domain that holds all of them, or only prefer one.

        Returns:
            A new maker; this one stays as it is.
        """
        asked: dict[str, Any] = {TOPOLOGY_KEY: key, TOPOLOGY_MODE: REQUIRED if required else PREFERRED}
        return self.annotations(asked)


def coscheduling_group(name: str, members: int = 1) -> CoschedulingGroupMaker:
    """Begin a PodGroup of scheduler-plugins (scheduling.x-k8s.io) in the namespace `default`.

    Args:
        name: the name that members use; see `PodMaker.in_coscheduling_group`.
        members: so many are placed together or none.

    Returns:
        The group's maker.

    Example:
        coscheduling_group("train", 8).timeout(60).build()
    """
    return CoschedulingGroupMaker(name).members(members)
