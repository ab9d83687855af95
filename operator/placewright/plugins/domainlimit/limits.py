"""Limits of a pod, compiled: the limits of the profile that pick it, and its own.

They are compiled once for all pods with equal values of the labels that limits read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from placewright.api.annotations import DOMAIN_LIMITS
from placewright.api.pods import PairwiseKey, PodInfo
from placewright.cluster.podselections import PodSelection
from placewright.framework.memory import Memory
from placewright.framework.status import Status, unresolvable, unschedulable
from placewright.plugins.domainlimit.annotation import LONGEST_TEXT, DomainLimitError, read_limits
from placewright.plugins.domainlimit.args import PREFERRED, ProfileLimit, StatedLimit
from placewright.plugins.shared.labelkeys import completed, keys_read

#: Most annotations, and most compiled limits, that are kept. Each takes about 1.5 KB, and the pods of a Deployment share one.
_MAX_KEPT: Final = 16_384


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit, for one pod.

    Attributes:
        key: the node label whose values are the domains.
        most: most pods in a domain, the pod itself included.
        pods: the pods that count. Pods that are being deleted count until they are gone.
        denied, missing: verdicts on nodes of full domains, and on nodes without the label.
    """

    key: str
    most: int
    pods: PodSelection
    denied: Status
    missing: Status

    def counts(self, pod: PodInfo | None) -> bool:
        """Return whether the limit counts a pod; False for None."""
        return pod is not None and self.pods.selects(pod.pairwise_key, pod.labels)


@dataclass(frozen=True, slots=True)
class PodLimits:
    """All limits of one pod.

    Attributes:
        problem: one line about an invalid annotation; then there are no limits, and the pod cannot be placed.
    """

    required: tuple[Limit, ...] = ()
    preferred: tuple[Limit, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class _Stated:
    """The limits of one annotation.

    Attributes:
        keys: pod labels that these limits and the profile's read, each once.
    """

    limits: tuple[StatedLimit, ...]
    keys: tuple[str, ...]
    problem: str = ""


NO_LIMITS: Final = PodLimits()


class LimitsOfPods:
    """Compiles the limits of pods, and keeps them."""

    def __init__(self, limits: Sequence[ProfileLimit]) -> None:
        """Start with the limits of the profile."""
        self._profile = tuple(limits)
        self._none_stated = _Stated((), _keys(limits))
        self._stated = Memory(_MAX_KEPT)
        self._known = Memory(_MAX_KEPT)
        #: Limits of the last pod, because each step of a decision asks for them.
        self._asked: tuple[PairwiseKey | None, str | None, PodLimits] = (None, None, NO_LIMITS)

    def of(self, pod: PodInfo) -> PodLimits:
        """Return the pod's limits; most pods have none."""
        annotations = pod.pod.metadata.annotations
        text = annotations.get(DOMAIN_LIMITS) if annotations else None
        if text is None and not self._profile:
            return NO_LIMITS
        key, known, limits = self._asked
        if key is not pod.pairwise_key or known != text:
            limits = self._work_out(text, pod)
            self._asked = (pod.pairwise_key, text, limits)
        return limits

    def _work_out(self, text: str | None, pod: PodInfo) -> PodLimits:
        if text is None:
            stated = self._none_stated
        elif len(text) > LONGEST_TEXT:  # not kept: a tenant decides how long it is
            return PodLimits(problem=self._read(text).problem)
        else:
            stated = self._stated.recall(text, lambda: self._read(text))
        key = (text, pod.namespace, *map(pod.labels.get, stated.keys))
        known: PodLimits | None = self._known.get(key)
        if known is None:
            known = self._compile(stated, pod)
            self._known.remember(key, known)
        return known

    def _read(self, text: str) -> _Stated:
        try:
            limits = read_limits(text)
        except DomainLimitError as problem:
            return _Stated((), self._none_stated.keys, str(problem))
        return _Stated(limits, _keys((*self._profile, *limits)))

    def _compile(self, stated: _Stated, pod: PodInfo) -> PodLimits:
        if stated.problem:
            return PodLimits(problem=stated.problem)
        own = frozenset((pod.namespace,))
        required: list[Limit] = []
        preferred: list[Limit] = []
        for limit in self._profile:
            compiled = _compile(limit, frozenset(limit.namespaces) or own, pod)
            if compiled.counts(pod):
                (preferred if limit.mode == PREFERRED else required).append(compiled)
        for i, each in enumerate(stated.limits):
            compiled = _compile(each, own, pod)
            if not compiled.counts(pod):
                return PodLimits(problem=str(DomainLimitError(f"[{i}]: the selector does not pick the pod itself")))
            (preferred if each.mode == PREFERRED else required).append(compiled)
        return PodLimits(tuple(required), tuple(preferred))


def _keys(limits: Iterable[StatedLimit]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(key for limit in limits for key in keys_read(limit.selector, limit.match_label_keys)))


def _compile(limit: StatedLimit, namespaces: frozenset[str], pod: PodInfo) -> Limit:
    selector = completed(limit.selector, limit.match_label_keys, pod.labels)
    assert selector is not None  # the field is required
    pods = "pod" if limit.max == 1 else "pods"
    return Limit(
        key=limit.topology_key,
        most=limit.max,
        pods=PodSelection(namespaces, selector),
        denied=unschedulable(f"node(s) would exceed the limit of {limit.max} {pods} per {limit.topology_key}"),
        missing=unresolvable(f"node(s) didn't have the label {limit.topology_key}, by which pods are limited"),
    )
