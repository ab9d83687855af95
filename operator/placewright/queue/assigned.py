"""Which waiting pods a pod on a node could help at all.

Every successful binding is an event, so with thousands of waiting pods their hints cannot all be asked each time. A pod that appears
or changes on a node frees nothing; it can only help pods that count other pods: those rejected by PodTopologySpread or ServiceAffinity in
its namespace, those that want to be near a pod like it and, when its labels changed, those that keep away from others (which kube-scheduler
lets wait for its timeout). Deletions and scale-downs free resources and are not narrowed.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from placewright.api.objects import PodAffinityTerm
from placewright.api.pods import PodInfo
from placewright.api.selectors import Selector, SelectorError, compile_label_selector
from placewright.framework.events import Action, ClusterEvent, EventResource

INTER_POD_AFFINITY: Final = "InterPodAffinity"
#: Plugins that may reject a pod because of other pods in its namespace.
COUNTING_PLUGINS: Final = frozenset({"PodTopologySpread", "ServiceAffinity"})


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """One required pod-affinity term, compiled. `namespaces` None stands for any: the queue does not know namespaces' labels."""

    namespaces: frozenset[str] | None
    selector: Selector

    def may_match(self, pod: PodInfo) -> bool:
        """False only when this term certainly does not select the pod."""
        return (self.namespaces is None or pod.namespace in self.namespaces) and self.selector.matches(pod.labels)


def narrows(event: ClusterEvent) -> bool:
    """True for an assigned pod's addition or update, other than a scale-down."""
    if event.resource is not EventResource.ASSIGNED_POD or event.action & Action.DELETE:
        return False
    return not event.action & Action.UPDATE_POD_SCALE_DOWN


def may_help(
    rejected: PodInfo,
    rejected_by: AbstractSet[str],
    terms: tuple[AffinityTerm, ...],
    assigned: PodInfo,
    *,
    relabelled: bool = False,
) -> bool:
    """True when a pod that appeared or changed (`relabelled`: its labels) on a node is worth asking the rejected pod's hints about."""
    if relabelled and INTER_POD_AFFINITY in rejected_by and _keeps_away(rejected):
        return True
    if not COUNTING_PLUGINS.isdisjoint(rejected_by) and rejected.namespace == assigned.namespace:
        return True
    return any(term.may_match(assigned) for term in terms)


def _keeps_away(pod: PodInfo) -> bool:
    """True for a pod with required anti-affinity: one that it kept away from may have lost the label that it was known by."""
    affinity = pod.pod.spec.affinity
    aversion = affinity.pod_anti_affinity if affinity else None
    return aversion is not None and bool(aversion.required_during_scheduling_ignored_during_execution)


def required_affinity_terms(pod: PodInfo) -> tuple[AffinityTerm, ...]:
    """The required pod-affinity terms of a pod; terms that do not parse select nothing and are left out."""
    affinity = pod.pod.spec.affinity
    attraction = affinity.pod_affinity if affinity else None
    terms = attraction.required_during_scheduling_ignored_during_execution if attraction else None
    compiled = (_compile(term, pod.namespace) for term in terms or ())
    return tuple(term for term in compiled if term is not None)


def _compile(term: PodAffinityTerm, own_namespace: str) -> AffinityTerm | None:
    if term.label_selector is None:
        return None
    try:
        selector = compile_label_selector(term.label_selector)
    except SelectorError:
        return None
    if term.namespace_selector is not None:
        return AffinityTerm(None, selector)
    return AffinityTerm(frozenset(term.namespaces or (own_namespace,)), selector)
