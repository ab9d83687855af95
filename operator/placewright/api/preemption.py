"""`spec.preemption` of a SchedulingProfile: whether its pods may displace others, which ones, when, and how many, as people write it.

`framework/preemption/rules.py` applies it. The default of every field is kube-scheduler's behaviour.
"""

from __future__ import annotations

from typing import Annotated, Final

from placewright.api.fieldmeanings import between, means
from placewright.api.objects import KubeObject
from placewright.api.profilepods import ProfileLabelSelector

#: Values of `spec.preemption.policy`.
LOWER_PRIORITY: Final = "LowerPriority"
NEVER: Final = "Never"
#: Values of `spec.preemption.deferredResizes`.
WAIT: Final = "Wait"
PREEMPT: Final = "Preempt"
#: Values of `spec.preemption.disruptionBudgets`.
BEST_EFFORT: Final = "BestEffort"
STRICT: Final = "Strict"
#: A day: a pod that waits longer before it may preempt looks lost to its owner.
_MAX_WAIT_SECONDS: Final = 86_400
#: A month: batch jobs that must not be displaced at all have `protect`.
_MAX_RUN_SECONDS: Final = 2_678_400
#: More pods than this do not stand on a node, and a group's victims are a few nodes' pods.
_MAX_VICTIMS: Final = 10_000
_MAX_EVICTIONS: Final = 10_000


class PreemptionSpec(KubeObject, frozen=True):
    """Rules for the preemptions of a profile's pods, by single pods and by groups."""

    policy: Annotated[
        str,
        means(
            "LowerPriority: a pod that fits nowhere may displace pods of lower priority. Never: no pod of the profile displaces another.",
            enum=[LOWER_PRIORITY, NEVER],
        ),
    ] = LOWER_PRIORITY
    deferred_resizes: Annotated[
        str,
        means(
            "Wait: as kube-scheduler, a resize in place waits until its node has room. Preempt: it displaces pods of lower priority there.",
            enum=[WAIT, PREEMPT],
        ),
    ] = WAIT
    disruption_budgets: Annotated[
        str,
        means(
            "BestEffort: as kube-scheduler, a PodDisruptionBudget is violated where nothing else makes room. Strict: never.",
            enum=[BEST_EFFORT, STRICT],
        ),
    ] = BEST_EFFORT
    wait_seconds: Annotated[
        float,
        between(0, _MAX_WAIT_SECONDS),
        means("Seconds that a pod waits, from when it could first be tried, before it may displace others."),
    ] = 0.0
    min_run_seconds: Annotated[
        float,
        between(0, _MAX_RUN_SECONDS),
        means("Seconds that a pod has run, by its status.startTime, before it may be displaced."),
    ] = 0.0
    max_victims: Annotated[
        int | None,
        between(1, _MAX_VICTIMS),
        means("The number of pods that one preemption may displace, of one pod or of a whole group. Absent: any.", format="int32"),
    ] = None
    max_evictions_per_minute: Annotated[
        int | None,
        between(1, _MAX_EVICTIONS),
        means("The number of pods that the profile's pods may displace together in any minute. Absent: any.", format="int32"),
    ] = None
    protect: Annotated[
        ProfileLabelSelector | None,
        means("Labels of pods that are never displaced by pods of this profile. Absent: none; an empty selector protects every pod."),
    ] = None

    @property
    def rules(self) -> bool:
        """Whether it says anything that kube-scheduler does not do."""
        return self != PreemptionSpec()
