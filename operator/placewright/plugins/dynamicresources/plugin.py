"""DynamicResources, as far as pods without resource claims go. Implements PreFilter, PostFilter.

Allocating devices is not supported by this version: a pod with claims is refused with a reason that says so. For all other pods the
plugin does what kube-scheduler's does, which shows in messages: its PostFilter speaks before preemption does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.events import EventInterest
from placewright.framework.interface import (
    CycleState,
    Diagnosis,
    PostFilterPlugin,
    PostFilterResult,
    PreFilterPlugin,
    PreFilterResult,
)
from placewright.framework.status import SKIP, error, unresolvable, unschedulable

NAME: Final = "DynamicResources"
NOTHING_TO_DEALLOCATE: Final = "no new claims to deallocate"
NOT_SUPPORTED: Final = "pod has resource claims, which this version of placewright does not support"
NOT_FOUND: Final = "not found"


@dataclass(frozen=True, slots=True)
class ClaimsOfThePod:
    """What PreFilter saw; its absence tells PostFilter that PreFilter never ran."""

    count: int


class DynamicResources(PreFilterPlugin, PostFilterPlugin):
    """Refuses pods with resource claims; has nothing to say about the others."""

    name = NAME
    default_weight = 2

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> PreFilterResult:
        """SKIP without claims; with claims the pod is refused on every node."""
        claims = pod.pod.spec.resource_claims or ()
        state.write(NAME, ClaimsOfThePod(len(claims)))
        return PreFilterResult(unresolvable(NOT_SUPPORTED) if claims else SKIP)

    def post_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, diagnosis: Diagnosis) -> PostFilterResult:
        """UNSCHEDULABLE: there is no claim whose de-allocation would help.

        An error when another plugin had refused the pod before this one's PreFilter could look at it: kube-scheduler then attempts no
        preemption, so neither do we.
        """
        try:
            state.read(NAME, ClaimsOfThePod)
        except KeyError:
            return PostFilterResult(error(NOT_FOUND))
        return PostFilterResult(unschedulable(NOTHING_TO_DEALLOCATE))

    def events(self) -> Sequence[EventInterest]:
        """Nothing that happens in the cluster gives a pod's claims what this version lacks."""
        return ()
