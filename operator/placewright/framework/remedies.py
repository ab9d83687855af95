"""What would have to change for a node to hold a pod that a filter rejects there: `placewright explain` and the debug endpoint tell it.

Each filter knows its own remedies, so it is the filter that tells them (`RemedyPlugin`). Of a filter that tells none its reasons are shown.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import ClassVar, Final

import msgspec

from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import BoolColumn, CycleState, FilterPlugin, Rows

#: Pods that are named when all of them would have to go; with more, only how many.
MOST_PODS: Final = 5


class RemedyKind(enum.StrEnum):
    """What is changed.

    MORE_RESOURCES: the node has `resources` more to give, or the pods on it take as much less.
    FEWER_PODS: so many `resources` of pods less on the node, which holds as many as it may.
    TOLERATION: the pod tolerates `tolerations`, too.
    UNCORDON: the node takes pods again.
    LABELS: the node has `labels`; None: it has no such label.
    REMOVE_PODS: `pods` are gone.
    MAX_SKEW: the pod's hard constraint for `topology_key` has `max_skew`.
    MORE_DEVICES: the node has `devices` more that are free, by class, each like those of it that there are.
    ADD_POD: a pod of `namespace` with `labels` stands in the node's domain.
    TOLD: what the filter says; nothing that can be tried out.
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
        pods: `namespace/name` of those that would have to go.
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


class RemedyPlugin(FilterPlugin, ABC):
    """A filter that says what would change its mind.

    Asked when people want to know why a pod does not fit, never by a decision. A remedy whose kind is not TOLD is tried out, as far as
    that can be done on the columns, before anybody sees it; one that does not help is left out.
    """

    #: Kinds of its remedies on which other filters rely (see `passes_after`): for these, the row counts as rejected by this filter alone.
    settles: ClassVar[frozenset[RemedyKind]] = frozenset()
    #: True where hundreds of rows can be asked about in a moment.
    remedies_are_cheap: ClassVar[bool] = False

    @abstractmethod
    def remedies(self, state: CycleState, pod: PodInfo, cluster: Cluster, row: int) -> Sequence[Remedy]:
        """What would, all together, make this filter let the pod on the row, which it rejects; none where it has only its reasons."""

    def nearest_first(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> Rows | None:
        """These rejected rows, those first that lack the least; None where one lacks as much as the other."""
        return None

    def passes_after(
        self, state: CycleState, pod: PodInfo, cluster: Cluster, kinds: AbstractSet[RemedyKind], rows: Rows
    ) -> BoolColumn:
        """True for each row that this filter would accept once other filters' remedies of these kinds have changed its node."""
        return self.filter(state, pod, cluster, rows)


def pods_in_words(pods: Sequence[PodInfo]) -> str:
    """`pod a` or `pods a, b`, with namespaces."""
    return f"pod{'s' if len(pods) > 1 else ''} {', '.join(keys(pods))}"


def keys(pods: Iterable[PodInfo]) -> tuple[str, ...]:
    """As `Remedy.pods` has them, each once."""
    return tuple(dict.fromkeys(pod.key for pod in pods))
