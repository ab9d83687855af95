"""The rules by which versions of kube-scheduler differ, and the rules that are in force for a profile.

A profile follows one version (`spec.compatibility`), and may switch each rule by itself (`spec.featureGates`). A plugin asks
`Handle.in_force(rule)`, and never reads a version. All other rules are those of 1.36, at every level. docs/reference.md has the table.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Final, Self

#: Value of `spec.compatibility` that follows the API server.
AUTO: Final = "auto"
#: Minor versions of Kubernetes 1 that a profile may follow, oldest first.
LEVELS: Final = tuple(range(20, 39))
#: The minor version that is followed where no API server tells one.
BASELINE: Final = 36
#: Values of `spec.compatibility`.
CHOICES: Final = (AUTO, *(f"1.{minor}" for minor in LEVELS))


class Rule(enum.StrEnum):
    """A rule that versions of kube-scheduler differ in.

    A value is the name of kube-scheduler's feature gate. A mended fault has no gate, and gets a name of ours.

    Attributes:
        since: the minor version of Kubernetes 1 from which on the rule is in force by default.
        says: the rule, as one sentence.
        source: enhancement proposal or pull request of Kubernetes that has the rule.
    """

    NOMINATION_BEFORE_BINDING = (
        "NominatedNodeNameForExpectation", 35,
        "A pod that waits for Permit or PreBind before its Binding has its node in status.nominatedNodeName meanwhile.",
        "KEP-5278",
    )  # fmt: skip
    STORAGE_CAPACITY_SCORING = (
        "StorageCapacityScoring", 37,
        "A node scores by the free capacity of the storage that a new volume of the pod would take.",
        "KEP-4049",
    )  # fmt: skip
    VOLUME_LIMIT_SCALING = (
        "VolumeLimitScaling", 37,
        "A node without the CSI driver of a volume is rejected if the CSIDriver says preventPodSchedulingIfMissing.",
        "KEP-5030",
    )  # fmt: skip
    FRACTIONAL_CAPACITY = (
        "DRAFractionalCapacityRange", 37,
        "Requests of a shared device's capacity are rounded up in thousandths if the validRange has such; before, in whole units.",
        "KEP-5075",
    )  # fmt: skip
    QUALIFIED_CAPACITY = (
        "QualifiedCapacityNames", 38,
        "A request may name a device's capacity with the driver's domain or without, however the driver publishes it; before, the names "
        "must be equal.",
        "kubernetes#142202",
    )  # fmt: skip
    EMPTY_SPREAD_SELECTOR = (
        "EmptySpreadSelectorCountsAll", 38,
        "A spread constraint with an empty labelSelector counts all pods of the namespace; before, it counts none.",
        "kubernetes#141340",
    )  # fmt: skip
    EMPTY_VICTIMS = (
        "ExtendersSeeEmptyVictims", 38,
        "In preemption, extenders may choose victims on nodes that only they reject; before, such a node is an error.",
        "kubernetes#135486",
    )  # fmt: skip
    EMPTY_BUDGET_SELECTOR = (
        "EmptyBudgetSelectorCoversAll", 38,
        "In preemption, an empty selector of a PodDisruptionBudget covers all pods, and other selectors also pods without labels; before, "
        "an empty one covers none, and none covers pods without labels.",
        "kubernetes#141785",
    )  # fmt: skip

    since: int
    says: str
    source: str

    def __new__(cls, value: str, since: int, says: str, source: str) -> Self:
        """Make the member from its name and the facts about it."""
        rule = str.__new__(cls, value)
        rule._value_, rule.since, rule.says, rule.source = value, since, says, source
        return rule


def rules_in_force(compatibility: str, gates: Mapping[str, bool] | None = None, server: int = BASELINE) -> AbstractSet[Rule]:
    """List the rules in force for a profile.

    Args:
        compatibility: value of `spec.compatibility`, one of `CHOICES`.
        gates: value of `spec.featureGates`; it goes before the version.
        server: minor version of the API server, for `AUTO`.

    Returns:
        The rules.
    """
    level = server if compatibility == AUTO else int(compatibility.partition(".")[2])
    switched = gates or {}
    return frozenset(rule for rule in Rule if switched.get(rule, rule.since <= level))
