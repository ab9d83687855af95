"""Remedies: changes after which a node would hold a pod that a filter rejects there.

`placewright explain` and the debug endpoint show them. Each filter knows its own remedies, so it is the filter that tells them
(`RemedyPlugin`). Of a filter that tells none its reasons are shown.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import ClassVar, Final

import msgspec
import numpy as np

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.cluster.podselections import PodSelection
from placewright.framework.interface import ArgsT, BoolColumn, CycleState, FilterPlugin, Rows
from placewright.framework.topology import counts_by_row

#: Pods that are named when all of them would have to go; with more, only how many.
MOST_PODS: Final = 5


class RemedyKind(enum.StrEnum):
    """The kind of change.

    MORE_RESOURCES: the node has `resources` more to give, or the pods on it take as much less.
    FEWER_PODS: the node holds as many pods as it may; `resources` of them fewer are on it.
    TOLERATION: the pod tolerates `tolerations`, too.
    UNCORDON: the node takes pods again.
    LABELS: the node has `labels`; a value of None: it has no such label.
    REMOVE_PODS: `pods` are gone.
    MAX_SKEW: the pod's hard constraint for `topology_key` has `max_skew`.
    MORE_DEVICES: the node has `devices` more that are free, by class, each like those of the class that there are.
    ADD_POD: a pod of `namespace` with `labels` stands in the node's domain.
    TOLD: the filter's words; nothing that can be tried out.
    """

    MORE_RESOURCES = "more-resources"
    FEWER_PODS = "fewer-pods"
    TOLERATION = "toleration"
    UNCORDON = "uncordon"
    LABELS = "labels"
    REMOVE_PODS = "remove-pods"
    MAX_SKEW = "max-skew"
    MORE_DEVICES = "more-devices"
    ADD_POD = "add-pod"
    TOLD = "told"


#: Changes of one node, which no column shows before they are made.
OF_THE_NODE: Final = frozenset(
    {RemedyKind.MORE_RESOURCES, RemedyKind.FEWER_PODS, RemedyKind.UNCORDON, RemedyKind.LABELS, RemedyKind.MORE_DEVICES}
)
#: Changes of the pod itself, which may open many nodes at once.
OF_THE_POD: Final = frozenset({RemedyKind.TOLERATION, RemedyKind.MAX_SKEW})


class NeededToleration(msgspec.Struct, frozen=True):
    """A toleration with operator Equal."""

    key: str
    value: str
    effect: str


class Remedy(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One thing that would have to be otherwise; `RemedyKind` says what belongs to which. Resources are in milli-CPU, bytes and counts.

    Attributes:
        plugin: the filter that would accept the pod then.
        text: the same for people, as what is needed: "2000m more cpu".
        beyond: the request that is larger than every node: "more cpu than any node has"; empty for nearly all remedies.
        pods: `namespace/name` of the pods that would have to go.
    """

    plugin: str
    kind: RemedyKind
    text: str
    resources: dict[str, int] = {}
    tolerations: tuple[NeededToleration, ...] = ()
    labels: dict[str, str | None] = {}
    pods: tuple[str, ...] = ()
    namespace: str = ""
    topology_key: str = ""
    max_skew: int = 0
    devices: dict[str, int] = {}
    beyond: str = ""


class RemedyPlugin(FilterPlugin[ArgsT], ABC):
    """A filter that says what would change its mind.

    Called by `placewright explain` and the debug endpoint, never by a decision. As far as possible, a remedy whose kind is not TOLD is
    tried out on the columns first. A remedy that does not help is left out.

    Attributes:
        settles: kinds of its remedies on which other filters rely (see `passes_after`): for these, the row counts as rejected by this
            filter alone.
        remedies_are_cheap: True if hundreds of rows can be asked about within a millisecond.
    """

    settles: ClassVar[frozenset[RemedyKind]] = frozenset()
    remedies_are_cheap: ClassVar[bool] = False

    @abstractmethod
    def remedies(self, state: CycleState, pod: PodInfo, cluster: Cluster, row: int) -> Sequence[Remedy]:
        """Say what would have to change for this filter to let the pod on a row.

        Args:
            state: the state that PreFilter left.
            pod: the pod that fits nowhere.
            cluster: the cluster as it stands.
            row: a row that this filter rejects.

        Returns:
            Changes that help all together; none if the filter has only its reasons.

        Example:
            return [Remedy(self.name, RemedyKind.LABELS, "needs the label disk=ssd", labels={"disk": "ssd"})]
        """

    def nearest_first(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> Rows | None:
        """Order rejected rows by how little they lack.

        Args:
            state: the state that PreFilter left.
            pod: the pod that fits nowhere.
            cluster: the cluster as it stands.
            rows: shape (k,); this filter rejects each of them.

        Returns:
            The same rows, those first that lack the least; None if one lacks as much as the other.
        """
        return None

    def passes_after(self, state: CycleState, pod: PodInfo, cluster: Cluster, kinds: AbstractSet[RemedyKind], rows: Rows) -> BoolColumn:
        """Judge rows as they would be once other filters' remedies have changed their nodes.

        Args:
            state: the state that PreFilter left.
            pod: the pod that fits nowhere.
            cluster: the cluster as it stands, without these changes.
            kinds: the kinds of the remedies that are taken to be carried out.
            rows: shape (k,).

        Returns:
            True for each row that this filter would accept then; shape (len(rows),).
        """
        return self.filter(state, pod, cluster, rows)


def pods_in_words(pods: Sequence[PodInfo]) -> str:
    """Name pods in a sentence.

    Args:
        pods: one or more pods.

    Returns:
        `pod default/a` or `pods default/a, default/b`.
    """
    return f"pod{'s' if len(pods) > 1 else ''} {', '.join(keys(pods))}"


def keys(pods: Iterable[PodInfo]) -> tuple[str, ...]:
    """Name pods as `Remedy.pods` does.

    Args:
        pods: any number; a pod may come twice.

    Returns:
        `namespace/name` of each, once.
    """
    return tuple(dict.fromkeys(pod.key for pod in pods))


def standing_pods(cluster: Cluster, selection: PodSelection, key: str, value: str) -> Iterator[PodInfo]:
    """Find the pods that a selection picks in one domain. Nodes that hold none of them are not looked into.

    Args:
        cluster: the cluster as it stands.
        selection: a selection of pods.
        key: key of the node label whose values are the domains.
        value: the domain's.

    Yields:
        The pods, node by node.
    """
    counts = counts_by_row(cluster, selection)
    rows = np.flatnonzero((counts > 0) & cluster.present)
    column = cluster.label(key)
    for row in rows[column.codes(rows) == column.code(value)].tolist():
        pods = cluster.pods_on(NodeName(str(cluster.names[row])))
        yield from (pod for pod in pods if selection.selects(pod.pairwise_key, pod.labels))
