"""Cheap tests that a plugin gives with an event (`ClusterEventWithHint.narrow`): can this pod on a node help that rejected pod at all?

Every successful binding is an event, so with thousands of waiting pods their hints cannot all be asked each time. A pod that appears or
changes on a node frees nothing. So the plugins in the tree ask only for some waiting pods: pods that count others in their namespace, or
whose required affinity selects the pod. That is kube-scheduler's rule (`getUnschedulablePodsWithCrossTopologyTerm`). It holds for
extenders, too, and for plugins that the profile runs no longer. Deletions and scale-downs free resources and are not narrowed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from placewright.api.boundedcache import BoundedCache
from placewright.api.bytecount import bytes_of
from placewright.api.objects import PodAffinityTerm
from placewright.api.pods import PodInfo
from placewright.api.selectors import Selector, SelectorError, compile_label_selector


def is_itself(rejected: PodInfo, _old: PodInfo | None, new: PodInfo) -> bool:
    """Pass changes of the rejected pod itself, for hints that look at nothing else."""
    return isinstance(new, PodInfo) and new.uid == rejected.uid


def in_its_namespace(rejected: PodInfo, _old: PodInfo | None, new: PodInfo) -> bool:
    """Pass pods of the rejected pod's namespace, for plugins that count pods there."""
    return isinstance(new, PodInfo) and new.namespace == rejected.namespace


def wanted_nearby(rejected: PodInfo, _old: PodInfo | None, new: PodInfo) -> bool:
    """Pass pods that the rejected pod's required affinity may mean, for plugins that look at affinity.

    Returns:
        False only if none of the rejected pod's terms can mean the other pod. Labels of namespaces are not looked at, so a term with a
        namespace selector may mean any.
    """
    return bool(rejected.pairwise_key.affinity) and any(term.may_match(new) for term in _required_terms(rejected))


@dataclass(frozen=True, slots=True)
class _AffinityTerm:
    """One required pod-affinity term, compiled. `namespaces` None stands for any: labels of namespaces are not looked at."""

    namespaces: frozenset[str] | None
    selector: Selector

    def may_match(self, pod: PodInfo) -> bool:
        """Return False only if this term certainly does not select the pod."""
        return (self.namespaces is None or pod.namespace in self.namespaces) and self.selector.matches(pod.labels)


#: Required affinities of waiting pods, compiled, by namespace and key of the affinity.
_KNOWN_TERMS: Final[BoundedCache[tuple[str, bytes], tuple[_AffinityTerm, ...]]] = BoundedCache(8 * 2**20)


def _required_terms(pod: PodInfo) -> tuple[_AffinityTerm, ...]:
    """Return the terms of a pod's required affinity, without terms that do not parse and so select nothing."""
    key = (pod.namespace, pod.pairwise_key.affinity)
    known = _KNOWN_TERMS.get(key)
    if known is None:
        affinity = pod.pod.spec.affinity.pod_affinity if pod.pod.spec.affinity else None
        terms = affinity.required_during_scheduling_ignored_during_execution if affinity else None
        known = tuple([compiled for term in terms or () if (compiled := _compile(term, pod.namespace)) is not None])
        _KNOWN_TERMS.put(key, known, bytes_of((key, known)))
    return known


def _compile(term: PodAffinityTerm, own_namespace: str) -> _AffinityTerm | None:
    if term.label_selector is None:
        return None
    try:
        selector = compile_label_selector(term.label_selector)
    except SelectorError:
        return None
    if term.namespace_selector is not None:  # labels of namespaces are not at hand here, so the term may mean any
        return _AffinityTerm(None, selector)
    return _AffinityTerm(frozenset(term.namespaces or (own_namespace,)), selector)
