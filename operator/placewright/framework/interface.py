"""The plugin contract: the same for our plugins and for anyone else's.

A plugin is a class with a `name`, a typed dataclass of arguments (`Args`), and one or more of the extension points below, each a base class
with one method to write. A pod passes them in this order:

    PreEnqueue · QueueSort · [PreFilter · Filter · PostFilter (nothing fits) · PreScore · Score · normalise · Reserve · Permit]
    · [wait on Permit · PreBind · Bind · PostBind]

The first bracket is the scheduling cycle, one pod at a time and never awaiting; the second is the binding cycle, many at once.

Filter and Score see **all nodes at once**: they get an array of node rows and answer with an array of the same length. What a
column depends on (`reads`) decides how it is kept: a column that reads only a node and its pods is computed once for pods that look
alike (`sign`), and then only in the rows that changed.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from placewright.api.errors import BindError, ClaimError, VolumeError
from placewright.api.extenders import NodeVictims
from placewright.api.objects import NodeName
from placewright.api.podgroups import GroupRef
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.events import ClusterEventWithHint
from placewright.framework.ports import Binder, ClaimWriter, Extender, Seconds, VolumeWriter, WaitingForPermit
from placewright.framework.status import SKIP, SUCCESS, Code, Status
from placewright.framework.steps import Steps

#: Node rows, shape (k,), intp.
Rows = NDArray[np.intp]
#: One answer a row, shape (k,).
BoolColumn = NDArray[np.bool_]
IntColumn = NDArray[np.int64]

MAX_NODE_SCORE: Final = 100

T = TypeVar("T")


class Reads(enum.Enum):
    """What a filter's or score's column depends on, besides the pod.

    NODE: the node object alone. A row is recomputed when the node changes.
    NODE_AND_ITS_PODS: also the pods on that node. A row is recomputed when either changes.
    CLUSTER: anything. The whole column is recomputed unless `fingerprint` says that nothing relevant changed.
    """

    NODE = "node"
    NODE_AND_ITS_PODS = "node and its pods"
    CLUSTER = "cluster"


@dataclass(slots=True)
class CycleState:
    """What plugins remember between the extension points of one cycle; each under its own name."""

    data: dict[str, Any] = field(default_factory=dict)
    #: Plugins that said SKIP in PreFilter or PreScore: not asked again in this cycle.
    skip_filter: set[str] = field(default_factory=set)
    skip_score: set[str] = field(default_factory=set)
    #: What is written on the pod in the same request as its Binding, beside the decision: for plugins that must find a choice of theirs
    #: again after a restart. Filled in Reserve or PreBind, taken back in Unreserve; names begin with the plugin's own domain.
    annotations: dict[str, str] = field(default_factory=dict)
    #: Pods to be moved to the active queue once this pod has been placed.
    activate: dict[str, PodInfo] = field(default_factory=dict)
    #: True once the pod is gone while it is being bound: a PreBind plugin that waits for something may stop.
    abandoned: bool = False
    #: How long each part of the attempt took; nothing is noted where nobody wants to know.
    steps: Steps = field(default_factory=Steps)

    def read(self, key: str, kind: type[T]) -> T:
        """The value that was written under this key; `KeyError` when the plugin's earlier step did not run."""
        value = self.data[key]
        if not isinstance(value, kind):
            raise TypeError(f"cycle state {key!r} holds {type(value).__name__}, not {kind.__name__}")
        return value

    def write(self, key: str, value: object) -> None:
        """Remember a value for a later step of this cycle."""
        self.data[key] = value


class Rejection(NamedTuple):
    """Rows that a filter rejected for one and the same reason."""

    status: Status
    rows: Rows


class RowChecks(NamedTuple):
    """What `RowTrials.check` found; rows that are in neither can hold the pod.

    Attributes:
        rejections: rows that cannot hold the pod, grouped by status; every row at most once.
        unsettled: rows of which it cannot be told while others are changed hypothetically, too: each must be checked alone.
    """

    rejections: list[Rejection]
    unsettled: Rows


class RowTrials(Protocol):
    """Checks for one pod of many rows that are changed hypothetically at the same time, each as if it alone were."""

    @property
    def rows_are_apart(self) -> bool:
        """Whether no filter that has a say about the pod looks at other rows than the one it judges."""

    def check(self, rows: Rows) -> RowChecks:
        """What `Handle.check_row` says of each row if the others stand as they did when the trials were asked for."""


@dataclass(frozen=True, slots=True)
class PreFilterResult:
    """What PreFilter found: a status, and the nodes to look at (None: all)."""

    status: Status = SUCCESS
    nodes: frozenset[NodeName] | None = None


@dataclass(slots=True)
class Diagnosis:
    """Why no node fits: by row, the plugin that said no first, and its reasons.

    Attributes:
        node_count: how many nodes there were.
        rejections: rows grouped by status; every row at most once.
        absent: the status of all nodes that no rejection names (a PreFilter rejected the pod as a whole), else None.
        prefilter_message: set when PreFilter rejected the pod on every node.
        postfilter_message: what PostFilter had to say.
    """

    node_count: int
    rejections: list[Rejection] = field(default_factory=list)
    absent: Status | None = None
    prefilter_message: str = ""
    postfilter_message: str = ""
    unschedulable_plugins: set[str] = field(default_factory=set)
    pending_plugins: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """What PostFilter achieved.

    Attributes:
        nominated_node: "" clears an earlier nomination, None leaves it.
        victims: pods to evict from the nominated node.
        alternatives: what the node was chosen among, if extenders may still have a say.
    """

    status: Status
    nominated_node: NodeName | None = None
    victims: tuple[PodInfo, ...] = ()
    alternatives: Alternatives | None = None


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Nodes where evicting would make room.

    Attributes:
        victims: by node, who would have to leave.
        choose: the result if only these nodes and victims are left; none of them is a rejection.
    """

    victims: Mapping[NodeName, NodeVictims]
    choose: Callable[[Mapping[NodeName, NodeVictims]], PostFilterResult]


@dataclass(frozen=True, slots=True)
class NoArgs:
    """Arguments of a plugin that takes none."""


class Handle(Protocol):
    """What a plugin may ask of the scheduler around it."""

    @property
    def cluster(self) -> Cluster:
        """The cluster as columns."""

    @property
    def binder(self) -> Binder:
        """Where bindings go."""

    @property
    def volumes(self) -> VolumeWriter:
        """Where it is written which claim gets which volume."""

    @property
    def claims(self) -> ClaimWriter:
        """Where it is written which claim gets which devices."""

    def announce(self, pod: PodInfo, reason: str, action: str, message: str) -> None:
        """A Normal event about the pod."""

    def runs(self, plugin: str) -> bool:
        """Whether the profile runs this plugin at any point."""

    def waiting_pods(self) -> Iterable[WaitingForPermit]:
        """Placed pods that Permit plugins keep waiting, of all profiles; to be allowed or rejected by those plugins."""

    def waiting_members(self, ref: GroupRef) -> Collection[PodInfo]:
        """The pods of a group that have no node yet, of all profiles, those that are being tried included."""

    def kept_of_rows(self, purpose: Hashable, state: CycleState, pod: PodInfo) -> MutableMapping[int, Any] | None:
        """By row, what was noted here for pods that look the same to the profile and have the same priority; to be added to.

        An answer is forgotten when the node, a pod on it or a pod nominated to it changes: it may depend on these and `purpose` alone.
        None where that is not enough, because a filter looks at other nodes, too: then nothing can be kept.
        """

    def ready_members(self, ref: GroupRef, beside: PodInfo) -> Mapping[str, int]:
        """How many of them may be tried, by scheduler name, `beside` counted as it is here: not leaving, and without a scheduling gate."""

    def making_room_for(self, pod: PodInfo) -> bool:
        """Whether victims of this pod are being evicted right now."""

    def check_row(self, pod: PodInfo, row: int) -> Status:
        """Run the profile's PreFilter and Filter on one row as the columns stand now (see `Cluster.dry_run_on_row`).

        Where pods of at least the same priority are nominated to that node, the pod must fit with and without them.
        Returns SUCCESS, or the first rejection, with the plugin's name.
        """

    def trials(self, pod: PodInfo, rows: Iterable[int] | None = None) -> RowTrials:
        """`check_row` for many rows at once, these or all; to be asked for before anything is changed hypothetically."""


class Plugin:
    """Base of all plugins.

    `sign` returns what of a pod this plugin's columns depend on. Pods for which it is equal share this plugin's columns, whatever other
    plugins' signatures say of them. Return None when no two pods may share (nothing is then cached for such pods).
    """

    name: ClassVar[str]
    Args: ClassVar[type[Any]] = NoArgs
    #: The weight used when a profile does not say; upstream's default profile for our plugins.
    default_weight: ClassVar[int] = 1

    def __init__(self, args: Any, handle: Handle) -> None:
        self.args = args
        self.handle = handle

    def sign(self, pod: PodInfo) -> Hashable | None:
        """What this plugin reads of the pod; () when it reads nothing."""
        return ()

    def events(self) -> Sequence[ClusterEventWithHint] | None:
        """Events that could turn this plugin's rejection around; None for "any event"."""
        return None


class PreEnqueuePlugin(Plugin, ABC):
    """Keeps a pod out of the active queue until it may be tried."""

    @abstractmethod
    def pre_enqueue(self, pod: PodInfo) -> Status:
        """SUCCESS, or a rejection that gates the pod."""


class PodGroupSettings(Protocol):
    """How PodGroups are decided, and what they may keep others from."""

    @property
    def reservation_after_seconds(self) -> int:
        """A group that has been tried in vain for so long may have nodes kept for it; 0: at once."""

    @property
    def reservations(self) -> int:
        """So many groups may have nodes kept for them at a time; 0: none ever."""

    @property
    def schedule_timeout_seconds(self) -> int:
        """How long members wait for each other between decision and first Binding, where the group does not say; 0: without end."""

    @property
    def domains_to_compare(self) -> int:
        """Of the topology domains that hold the whole group, so many are compared."""


class PodGroupPlugin(PreEnqueuePlugin, ABC):
    """Has the scheduler decide PodGroups as a whole: the members that a group needs get nodes together, or none does.

    A profile without such a plugin schedules each member by itself. A profile with one gates members with it (PreEnqueue) until their
    group can be decided, and members whose group did not fit wait for its events. Of several in one profile the first one counts.
    """

    @property
    @abstractmethod
    def settings(self) -> PodGroupSettings:
        """How groups of this profile are decided; read whenever one is."""


class QueueSortPlugin(Plugin, ABC):
    """Orders the active queue. All profiles must agree on one."""

    @abstractmethod
    def sort_key(self, pod: PodInfo, timestamp: Seconds) -> tuple[Any, ...]:
        """Pods are tried in ascending order of this key; `timestamp` is when the pod entered the queue."""


class PreFilterPlugin(Plugin, ABC):
    """Looks at the pod once, before any node."""

    @abstractmethod
    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> PreFilterResult:
        """SKIP when Filter has nothing to check; a rejection rejects the pod on every node. Either way `nodes` is not read.

        A plugin whose columns read no more than a node and its pods is asked once for all pods that look alike; an error is not kept.
        """


class FilterPlugin(Plugin, ABC):
    """Says which nodes can hold the pod."""

    reads: ClassVar[Reads] = Reads.NODE

    @abstractmethod
    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        """True for each row that can hold the pod; shape (len(rows),)."""

    @abstractmethod
    def explain(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> list[Rejection]:
        """Why these rows, all of them rejected by `filter`, were rejected: grouped, every row in exactly one group."""

    def fingerprint(self, state: CycleState, cluster: Cluster) -> Hashable | None:
        """For `Reads.CLUSTER`: equal fingerprints promise equal columns; None promises nothing."""
        return None

    def failure(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> Status:
        """For `Reads.CLUSTER`: an error where one of these rows, which this plugin alone rejects, ends the whole attempt."""
        return SUCCESS


class PostFilterPlugin(Plugin, ABC):
    """Tries to make room when no node fits."""

    @abstractmethod
    def post_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, diagnosis: Diagnosis) -> PostFilterResult:
        """SUCCESS with a nominated node, or UNSCHEDULABLE with what was tried."""


class PreScorePlugin(Plugin, ABC):
    """Looks at the feasible nodes once, before scoring."""

    @abstractmethod
    def pre_score(self, state: CycleState, pod: PodInfo, cluster: Cluster, feasible: Rows) -> Status:
        """SKIP when this plugin's Score contributes nothing for this pod; any other failure ends the cycle.

        Only plugins with `Reads.CLUSTER` may look at `feasible`: the others' answer is kept for all pods that look alike.
        """


class ScorePlugin(Plugin, ABC):
    """Ranks the feasible nodes."""

    reads: ClassVar[Reads] = Reads.NODE
    #: Whether `summarise` was written; set by Python, not by authors.
    normalised: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.normalised = cls.summarise is not ScorePlugin.summarise

    @abstractmethod
    def score(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> IntColumn:
        """Raw scores, shape (len(rows),), int64. Without normalisation they must lie in 0..100.

        Rows that Filter rejected may be among them; their scores are not used.
        """

    def summarise(self, state: CycleState, raw: IntColumn) -> Hashable | None:
        """What normalisation needs to know of all feasible raw scores (their maximum, say); None: no normalisation."""
        return None

    def normalise(self, state: CycleState, raw: IntColumn, summary: Any) -> IntColumn:
        """Raw scores to 0..100, given the summary; row by row, so that one changed row can be done alone."""
        return raw

    def fingerprint(self, state: CycleState, cluster: Cluster) -> Hashable | None:
        """For `Reads.CLUSTER`: equal fingerprints promise equal raw columns; None promises nothing."""
        return None


class PreparingPlugin(Plugin, ABC):
    """Makes ready, before a long decision, what that will ask for and what is kept: see `scheduler.preparations`."""

    @abstractmethod
    def prepare(self, pod: PodInfo, cluster: Cluster) -> Iterator[None]:
        """Work out one thing at a time and yield; the cluster may be another one after each. It changes no answer."""


class ReservePlugin(Plugin, ABC):
    """Keeps what the pod will need while it is being bound, and gives it back."""

    @abstractmethod
    def reserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status:
        """Take; a failure unreserves all Reserve plugins in reverse order."""

    @abstractmethod
    def unreserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> None:
        """Give back; must tolerate never having reserved."""


@dataclass(frozen=True, slots=True)
class PermitResult:
    """A verdict; with WAIT, for how long at most (seconds)."""

    status: Status
    timeout: Seconds = 0.0


class PermitPlugin(Plugin, ABC):
    """Allows, refuses or delays the binding of a placed pod."""

    @abstractmethod
    def permit(self, state: CycleState, pod: PodInfo, node: NodeName) -> PermitResult:
        """SUCCESS, a rejection, or WAIT with a timeout."""


class PreBindPlugin(Plugin, ABC):
    """Does what must be done before the Binding is written, such as volumes."""

    @abstractmethod
    async def pre_bind(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status:
        """Anything but SUCCESS rolls the pod back."""


class BindPlugin(Plugin, ABC):
    """Writes the Binding."""

    @abstractmethod
    async def bind(self, state: CycleState, pod: PodInfo, node: NodeName, annotations: dict[str, str]) -> Status:
        """SUCCESS, SKIP to leave it to the next Bind plugin, or an error."""


class PostBindPlugin(Plugin, ABC):
    """Hears that a pod was bound."""

    @abstractmethod
    def post_bind(self, state: CycleState, pod: PodInfo, node: NodeName) -> None:
        """Informational; cannot fail the pod."""


class MaxNormalised(ScorePlugin, ABC):
    """Scores normalised by their maximum, kube-scheduler's `DefaultNormalizeScore`: 100·s/max, integer division."""

    #: True where less is better: 100 − that.
    reverse: ClassVar[bool] = False

    def summarise(self, state: CycleState, raw: IntColumn) -> Hashable | None:
        """The highest raw score, at least 0."""
        return max(int(raw.max(initial=0)), 0)

    def normalise(self, state: CycleState, raw: IntColumn, summary: int) -> IntColumn:
        """100·raw/summary, or its complement; all nodes alike when nobody scored."""
        if summary == 0:
            return np.full_like(raw, MAX_NODE_SCORE) if self.reverse else raw
        scaled = MAX_NODE_SCORE * raw // summary
        return MAX_NODE_SCORE - scaled if self.reverse else scaled


__all__ = [
    "MAX_NODE_SCORE", "SKIP", "SUCCESS", "Alternatives", "BindError", "BindPlugin", "Binder", "BoolColumn",
    "ClaimError", "ClaimWriter", "Code", "CycleState", "Diagnosis", "Extender", "FilterPlugin", "Handle", "IntColumn",
    "MaxNormalised", "NoArgs", "PermitPlugin", "PermitResult", "Plugin", "PodGroupPlugin", "PodGroupSettings",
    "PostBindPlugin", "PostFilterPlugin", "PostFilterResult", "PreBindPlugin", "PreEnqueuePlugin", "PreFilterPlugin",
    "PreFilterResult", "PreScorePlugin", "PreparingPlugin", "QueueSortPlugin", "Reads", "Rejection", "ReservePlugin", "RowChecks",
    "RowTrials", "Rows", "ScorePlugin", "Seconds", "Status", "VolumeError", "VolumeWriter", "WaitingForPermit",
]  # fmt: skip
