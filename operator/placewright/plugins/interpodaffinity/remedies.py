"""Remedies of InterPodAffinity: which pods must come to a node's domain, or leave it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from placewright.api.pods import NO_LABELS, PodInfo
from placewright.cluster.cluster import Cluster
from placewright.cluster.podselections import PodSelection
from placewright.framework.remedies import MOST_PODS, Remedy, RemedyKind, keys, pods_in_words, standing_pods
from placewright.framework.topology import counts_by_row
from placewright.plugins.interpodaffinity.matchers import Ban, FacingTerms, OwnTerms

_OWN: Final = "its anti-affinity excludes"
_FACING: Final = "whose anti-affinity excludes it"


class DomainRemedies:
    """Remedies for one pod in the domains of one node."""

    def __init__(self, plugin: str, pod: PodInfo, cluster: Cluster, row: int) -> None:
        self._plugin = plugin
        self._pod = pod
        self._cluster = cluster
        self._labels = cluster.node(row).metadata.labels or NO_LABELS

    def all(self, own: OwnTerms, facing: FacingTerms) -> list[Remedy]:
        """Return remedies for the pod's required affinity, then for its anti-affinity, then for other pods' anti-affinity."""
        found = [remedy for key in own.keys for remedy in self._wanted(key, own.wanted, first=own.wants_itself)]
        found += [remedy for ban in own.bans for remedy in self._banned(ban, _OWN)]
        return found + [remedy for ban in facing.bans for remedy in self._banned(ban, _FACING)]

    def _wanted(self, key: str, wanted: PodSelection | None, *, first: bool) -> Iterator[Remedy]:
        """Propose a pod to be near. `first` says that the pod selects itself, so that it may be the first one anywhere."""
        if key not in self._labels:
            yield Remedy(self._plugin, RemedyKind.TOLD, f"label {key}, over which the pod wants to be near others")
        elif wanted is None:
            yield Remedy(self._plugin, RemedyKind.TOLD, f"a pod that no selector of its affinity over {key} can mean")
        elif not next(self._standing(wanted, key), None) and not (first and not counts_by_row(self._cluster, wanted).any()):
            example = {e.key: min(e.values, default="") for e in wanted.selector.expressions if e.operator in ("In", "Exists")}
            named = ", ".join(f"{name}={value}" for name, value in example.items()) or "anything"
            namespaces = wanted.namespaces if wanted.namespaces is not None else frozenset((self._pod.namespace,))
            namespace = self._pod.namespace if self._pod.namespace in namespaces else min(namespaces, default="")
            text = f"a pod with {named} of namespace {namespace} in {key}={self._labels[key]}, where its affinity finds none"
            kind = RemedyKind.ADD_POD if namespace else RemedyKind.TOLD
            yield Remedy(self._plugin, kind, text, labels=dict(example), namespace=namespace)

    def _banned(self, ban: Ban, why: str) -> Iterator[Remedy]:
        if ban.key not in self._labels:
            return
        where = f"{ban.key}={self._labels[ban.key]}"
        found: list[PodInfo] = []
        for pod in self._standing(ban.pods, ban.key):
            found.append(pod)
            if len(found) > MOST_PODS:
                yield Remedy(self._plugin, RemedyKind.TOLD, f"{where} free of {pods_in_words(found)} and more, {why}")
                return
        if found:
            text = f"{where} free of {pods_in_words(found)}, {why}"
            yield Remedy(self._plugin, RemedyKind.REMOVE_PODS, text, pods=keys(found))

    def _standing(self, selection: PodSelection, key: str) -> Iterator[PodInfo]:
        """Iterate over the selection's pods in the node's domain of this label."""
        return standing_pods(self._cluster, selection, key, self._labels[key])
