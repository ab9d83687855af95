"""Pod affinity terms, compiled: which pods a term means, and over which label."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from placewright.api.boundedcache import BoundedCache
from placewright.api.bytecount import bytes_of
from placewright.api.objects import Affinity, LabelSelector, PodAffinity, PodAffinityTerm
from placewright.api.pods import NO_LABELS, PodInfo
from placewright.api.selectors import CompiledRequirement, Selector, SelectorError, compile_label_selector
from placewright.api.workloads import Namespace
from placewright.cluster.podselections import PodSelection


class TermsError(ValueError):
    """Terms of a pod that do not parse; the message says which."""


@dataclass(frozen=True, slots=True)
class Term:
    """One term. A selector that is None matches nothing.

    Attributes:
        key: the node label whose values are the domains.
        namespaces: the namespaces named, or the pod's own if the term says nothing about namespaces.
    """

    key: str
    namespaces: frozenset[str]
    namespace_selector: Selector | None
    selector: Selector | None

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]) -> bool:
        """Compare the term with a pod.

        Returns:
            True when the term means the pod.
        """
        if self.selector is None or not self._covers(namespace, namespace_labels):
            return False
        return self.selector.matches(labels)

    def _covers(self, namespace: str, namespace_labels: Mapping[str, str]) -> bool:
        if namespace in self.namespaces:
            return True
        return self.namespace_selector is not None and self.namespace_selector.matches(namespace_labels)

    def may_match(self, pod: PodInfo) -> bool:
        """Return False only if the term certainly does not mean the pod: labels of namespaces are not looked at."""
        if self.selector is None or (self.namespace_selector is None and pod.namespace not in self.namespaces):
            return False
        return self.selector.matches(pod.labels)

    def reach(self, namespaces: Mapping[str, Namespace]) -> frozenset[str] | None:
        """Return the namespaces that an incoming pod's term looks into; None means all.

        kube-scheduler lists the namespaces that the selector matches, and then also asks the selector about empty labels. So a selector
        that matches these (`NotIn`, `DoesNotExist`, an empty one) reaches every namespace.
        """
        selector = self.namespace_selector
        if selector is None:
            return self.namespaces
        if selector.matches(NO_LABELS):
            return None
        return self.namespaces.union(name for name, ns in namespaces.items() if selector.matches(ns.metadata.labels or NO_LABELS))


@dataclass(frozen=True, slots=True)
class PodTerms:
    """All terms of a pod; a preferred term goes with its weight, negative for anti-affinity."""

    affinity: tuple[Term, ...] = ()
    anti_affinity: tuple[Term, ...] = ()
    preferred: tuple[tuple[int, Term], ...] = ()


NO_TERMS: Final = PodTerms()


class CompiledTerms(NamedTuple):
    """A pod's terms after parsing.

    Attributes:
        terms: a kind of terms counts as absent when one of them does not parse: so kube-scheduler reads existing pods.
        problems: the errors of terms that did not parse.
    """

    terms: PodTerms
    problems: tuple[str, ...]

    def strict(self) -> PodTerms:
        """Return the terms of an incoming pod.

        Raises:
            TermsError: a term does not parse.
        """
        problems = self.problems
        if problems:
            raise TermsError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
        return self.terms


_NOTHING: Final = CompiledTerms(NO_TERMS, ())
#: Terms of pods, by namespace and key of the affinity. Pods of a Deployment share one entry.
_KNOWN: Final[BoundedCache[tuple[str, bytes], CompiledTerms]] = BoundedCache(8 * 2**20)


def terms_of(pod: PodInfo) -> CompiledTerms:
    """Compile the terms of a pod, once for pods with equal affinity in one namespace."""
    affinity, key = pod.pod.spec.affinity, (pod.namespace, pod.pairwise_key.affinity)
    if affinity is None or not pod.pairwise_key.affinity:
        return _NOTHING
    known = _KNOWN.get(key)
    if known is None:
        known = compile_terms(affinity, pod.namespace)
        _KNOWN.put(key, known, bytes_of((key, known)))
    return known


def selection(terms: Iterable[Term], namespaces: Mapping[str, Namespace]) -> PodSelection | None:
    """Combine terms of an incoming pod.

    Returns:
        The pods that all of the terms mean; None when they can mean none.
    """
    expressions: list[CompiledRequirement] = []
    reach: frozenset[str] | None = None
    for term in terms:
        if term.selector is None:
            return None
        expressions.extend(term.selector.expressions)
        own = term.reach(namespaces)
        reach = own if reach is None else reach if own is None else reach & own
    return PodSelection(reach, Selector(tuple(expressions)))


def compile_terms(affinity: Affinity, namespace: str) -> CompiledTerms:
    """Compile the terms of an affinity.

    Returns:
        The terms, and the errors of terms that do not parse.
    """
    problems: list[str] = []

    def parse(kind: str, terms: Iterable[tuple[int, PodAffinityTerm]]) -> tuple[tuple[int, Term], ...]:
        try:
            return tuple([(weight, _compile_term(term, namespace)) for weight, term in terms])
        except SelectorError as problem:
            problems.append(f"{kind}: {problem}")
            return ()

    attracted = parse("requiredAffinityTerms", _required(affinity.pod_affinity))
    repelled = parse("requiredAntiAffinityTerms", _required(affinity.pod_anti_affinity))
    liked = parse("preferredAffinityTerms", _preferred(affinity.pod_affinity, 1))
    disliked = parse("preferredAntiAffinityTerms", _preferred(affinity.pod_anti_affinity, -1))
    terms = PodTerms(tuple([t for _, t in attracted]), tuple([t for _, t in repelled]), liked + disliked)
    return CompiledTerms(terms, tuple(problems))


def _required(side: PodAffinity | None) -> Iterator[tuple[int, PodAffinityTerm]]:
    return ((1, term) for term in (side.required_during_scheduling_ignored_during_execution if side else None) or ())


def _preferred(side: PodAffinity | None, sign: int) -> Iterator[tuple[int, PodAffinityTerm]]:
    terms = (side.preferred_during_scheduling_ignored_during_execution if side else None) or ()
    return ((sign * weighted.weight, weighted.pod_affinity_term) for weighted in terms)


def _compile_term(term: PodAffinityTerm, namespace: str) -> Term:
    named = frozenset(term.namespaces or ())
    if not named and term.namespace_selector is None:
        named = frozenset((namespace,))
    return Term(term.topology_key, named, _selector(term.namespace_selector), _selector(term.label_selector))


def _selector(selector: LabelSelector | None) -> Selector | None:
    return None if selector is None else compile_label_selector(selector)
