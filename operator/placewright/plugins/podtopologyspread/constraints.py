"""Spread constraints, compiled: the pods to count, the domains, and the allowed skew."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from placewright.api.objects import TopologySpreadConstraint
from placewright.api.pods import PodInfo
from placewright.api.selectors import Selector
from placewright.cluster.podselections import PodSelection
from placewright.plugins.shared.labelkeys import completed, keys_read

_HONOR: Final = "Honor"


@dataclass(frozen=True, slots=True)
class Constraint:
    """One constraint, for one pod.

    Attributes:
        key: node label whose values are the domains.
        counted: pods to count; None if the selector selects none.
        counts_itself: 1 if the pod would count in its own domain, else 0.
        honor_affinity, honor_taints: whether nodes that the pod's affinity excludes, or whose taints it does not tolerate, are not counted.
    """

    key: str
    max_skew: int
    min_domains: int
    counted: PodSelection | None
    counts_itself: int
    selector: Selector | None
    honor_affinity: bool
    honor_taints: bool

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether the constraint's selector matches these labels; None matches none."""
        return self.selector is not None and self.selector.matches(labels)


def labels_looked_at(constraints: Iterable[TopologySpreadConstraint]) -> frozenset[str]:
    """Return the keys of pod labels that these constraints read. Pods with equal values share compiled constraints."""
    return frozenset(key for each in constraints for key in keys_read(each.label_selector, each.match_label_keys))


def compile_own(
    constraints: Iterable[TopologySpreadConstraint], action: str, pod: PodInfo, *, empty_counts_all: bool = False
) -> tuple[Constraint, ...]:
    """Compile the pod's own constraints with `whenUnsatisfiable` of `action`, in the pod's order. Raise `SelectorError`.

    `empty_counts_all` is `Rule.EMPTY_SPREAD_SELECTOR`.
    """
    mine = (c for c in constraints if c.when_unsatisfiable == action)
    return tuple(
        _compile(c, completed(c.label_selector, c.match_label_keys, pod.labels), pod, empty_counts_all=empty_counts_all) for c in mine
    )


def compile_default(
    constraints: Iterable[TopologySpreadConstraint], action: str, pod: PodInfo, selector: Selector
) -> tuple[Constraint, ...]:
    """Compile the default constraints with `whenUnsatisfiable` of `action`; all use the same selector.

    An empty selector selects no peers, so there are none.
    """
    if selector.empty:
        return ()
    return tuple(_compile(c, selector, pod, empty_counts_all=False) for c in constraints if c.when_unsatisfiable == action)


def _compile(constraint: TopologySpreadConstraint, selector: Selector | None, pod: PodInfo, *, empty_counts_all: bool) -> Constraint:
    # Until 1.37 kube-scheduler counts no pods for an empty selector, although it lets it match the pod itself.
    counts = selector is not None and (empty_counts_all or not selector.empty)
    return Constraint(
        key=constraint.topology_key,
        max_skew=constraint.max_skew,
        min_domains=1 if constraint.min_domains is None else constraint.min_domains,
        counted=PodSelection(frozenset((pod.namespace,)), selector, terminating=False) if counts and selector else None,
        counts_itself=int(selector is not None and selector.matches(pod.labels)),
        selector=selector,
        honor_affinity=constraint.node_affinity_policy in (None, _HONOR),
        honor_taints=constraint.node_taints_policy == _HONOR,
    )
