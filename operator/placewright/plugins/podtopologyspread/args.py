"""Arguments of PodTopologySpread, as in KubeSchedulerConfiguration v1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final, Literal

import msgspec

from placewright.api.bad_input import in_json
from placewright.api.objects import LabelSelector, TopologySpreadConstraint
from placewright.framework.constraints import Problem, not_empty, nothing, one_of, within

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
HARD: Final = "DoNotSchedule"
SOFT: Final = "ScheduleAnyway"

#: The constraints of `defaultingType: System`.
SYSTEM_DEFAULTS: Final = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable=SOFT),
    TopologySpreadConstraint(max_skew=5, topology_key=ZONE, when_unsatisfiable=SOFT),
)


class DefaultConstraint(TopologySpreadConstraint, frozen=True):
    """A constraint for pods without constraints; which pods it counts follows from the pod."""

    max_skew: Annotated[int, within(1)] = 1
    topology_key: Annotated[str, not_empty("the key of a node label")] = ""
    when_unsatisfiable: Annotated[str, one_of(HARD, SOFT)] = HARD
    label_selector: Annotated[LabelSelector | None, nothing("none: it follows from the pod's Services and owner")] = None
    min_domains: Annotated[int, within(1)] | None = None


class PodTopologySpreadArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Constraints for pods without constraints: the system's, or a list."""

    default_constraints: tuple[DefaultConstraint, ...] = ()
    defaulting_type: Literal["System", "List"] = "System"

    @property
    def system(self) -> bool:
        """Whether the system's own defaults apply."""
        return self.defaulting_type == "System"

    @property
    def defaults(self) -> tuple[TopologySpreadConstraint, ...]:
        """The constraints of pods without constraints."""
        return SYSTEM_DEFAULTS if self.system else self.default_constraints

    def validate(self) -> list[Problem]:
        """Check that a list has the type List, repeats no constraint, and sets minDomains only on hard constraints."""
        if self.system and self.default_constraints:
            found = f"{len(self.default_constraints)} constraints"
            return [("defaultConstraints", found, "none, unless defaultingType is List")]
        problems: list[Problem] = []
        seen: set[tuple[str, str]] = set()
        for i, constraint in enumerate(self.default_constraints):
            problems.extend(_problems(f"defaultConstraints[{i}]", constraint))
            pair = (constraint.topology_key, constraint.when_unsatisfiable)
            if pair in seen:
                found = f"{in_json(pair[0])} with {pair[1]} again"
                problems.append((f"defaultConstraints[{i}]", found, "each topologyKey once per whenUnsatisfiable"))
            seen.add(pair)
        return problems


def _problems(path: str, constraint: DefaultConstraint) -> Iterator[Problem]:
    if constraint.min_domains is not None and constraint.when_unsatisfiable != HARD:
        yield f"{path}.minDomains", str(constraint.min_domains), f"nothing, unless whenUnsatisfiable is {HARD}"
