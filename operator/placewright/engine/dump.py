"""What the scheduler believes, as plain structures: for the log on SIGUSR2, and for whoever serves it over HTTP.

Everything is bounded: of each list at most `most` entries are taken, and how many more there were is said. Texts are as they came from
the API server; whoever shows them to people escapes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.profiles.profilestate import ProfileStanding
from placewright.queue.check import InvariantError, check_invariants
from placewright.queue.nominator import Nominator
from placewright.queue.queue import SchedulingQueue
from placewright.queue.queued import QueuedPod, SubQueue

#: Entries of a list.
MOST: Final = 500
#: Names of pods told of one node.
MOST_NAMES: Final = 20


class Amounts(NamedTuple):
    """What is asked of the node in a row, and what it offers: resource to amount (milli-CPU, bytes, counts), without zeros."""

    row: int
    requested: Mapping[str, int]
    allocatable: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class NodeState:
    """One row of the columns.

    Attributes:
        requested, allocatable: resource to amount (milli-CPU, bytes, counts), without zeros.
        pods: keys of pods that count here, the first few; `assumed` ones are among them.
        pod_count: how many there are.
        nominated: keys of pods for which room is kept here, the first few.
    """

    name: str
    requested: Mapping[str, int]
    allocatable: Mapping[str, int]
    pods: tuple[str, ...]
    pod_count: int
    nominated: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CacheState:
    """The columns.

    Attributes:
        nodes: the first of them, in the order of rows.
        more: how many nodes are left out.
        node_count, pod_count, assumed_count: of the whole cluster.
        contradictions: where a row of `nodes` does not say what its pods add up to.
    """

    nodes: tuple[NodeState, ...]
    more: int
    node_count: int
    pod_count: int
    assumed_count: int
    contradictions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QueuedPodState:
    """One pod of the queue; `nominated_node` is empty for most."""

    namespace: str
    name: str
    uid: str
    scheduler_name: str
    place: str
    attempts: int
    nominated_node: str


@dataclass(frozen=True, slots=True)
class QueueState:
    """The queue.

    Attributes:
        sizes: pods by place, in the places' order.
        pods: the first of them, by place.
        more: how many pods are left out.
        contradictions: what the queue's invariant check found; empty when every pod is in exactly one place.
    """

    sizes: Mapping[str, int]
    pods: tuple[QueuedPodState, ...]
    more: int
    contradictions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProfileState:
    """One profile: what was judged, and what decides; `active_generation` None: nothing does."""

    name: str
    scheduler_name: str
    observed_generation: int
    active_generation: int | None
    reason: str


def cache_state(cluster: Cluster, nominator: Nominator, most: int = MOST) -> CacheState:
    """The columns as they are now. O(pods on the nodes told)."""
    told = tuple(islice(node_amounts(cluster), most))
    return CacheState(
        nodes=tuple(_node(cluster, nominator, amounts) for amounts in told),
        more=cluster.node_count - len(told),
        node_count=cluster.node_count,
        pod_count=cluster.pod_count_total,
        assumed_count=cluster.assumed_count,
        contradictions=tuple(problem for amounts in told for problem in _row_contradictions(cluster, amounts.row)),
    )


def queue_state(queue: SchedulingQueue, most: int = MOST) -> QueueState:
    """The queue as it is now, checked. O(pods)."""
    told = tuple(_waiting(queue, place, queued) for place, queued in islice(queue.pods(), most))
    sizes = queue.sizes()
    by_place = dict(zip((place.value for place in SubQueue), sizes, strict=True))
    return QueueState(by_place, told, sum(sizes) - len(told), _contradictions(queue))


def profile_states(standings: Iterable[ProfileStanding]) -> tuple[ProfileState, ...]:
    """How every profile stands."""
    return tuple(
        ProfileState(one.name, one.scheduler_name, one.observed_generation, one.active_generation, str(one.reason)) for one in standings
    )


def node_amounts(cluster: Cluster) -> Iterator[Amounts]:
    """Of every node, in the order of rows."""
    columns = [(resource, cluster.resources.column(resource)) for resource in cluster.resources.names()]
    for row in cluster.rows().tolist():
        yield Amounts(
            row,
            {resource: int(column.requested[row]) for resource, column in columns if column.requested[row]},
            {resource: int(column.allocatable[row]) for resource, column in columns if column.allocatable[row]},
        )


def _node(cluster: Cluster, nominator: Nominator, amounts: Amounts) -> NodeState:
    name = NodeName(cluster.node(amounts.row).metadata.name)
    return NodeState(
        name=name,
        requested=amounts.requested,
        allocatable=amounts.allocatable,
        pods=_keys(cluster.pods_on(name)),
        pod_count=int(cluster.pod_count[amounts.row]),
        nominated=_keys(nominator.pods_on(name)),
    )


def _keys(pods: Iterable[PodInfo]) -> tuple[str, ...]:
    return tuple(pod.key for pod in islice(pods, MOST_NAMES))


def _row_contradictions(cluster: Cluster, row: int) -> Iterator[str]:
    name = NodeName(cluster.node(row).metadata.name)
    pods = list(cluster.pods_on(name))
    if int(cluster.pod_count[row]) != len(pods):
        yield f"node {name} counts {int(cluster.pod_count[row])} pods and has {len(pods)}"
    for resource in cluster.resources.names():
        counted = int(cluster.resources.column(resource).requested[row])
        asked = sum(pod.requests.get(resource, 0) for pod in pods)
        if counted != asked:
            yield f"node {name} counts {counted} of {resource} as requested, its pods ask for {asked}"


def _waiting(queue: SchedulingQueue, place: SubQueue, queued: QueuedPod) -> QueuedPodState:
    pod = queued.pod
    nominated = queue.nominator.node_of(queued.uid) or ""
    return QueuedPodState(pod.namespace, pod.name, pod.uid, pod.scheduler_name, place.value, queued.attempts, nominated)


def _contradictions(queue: SchedulingQueue) -> tuple[str, ...]:
    try:
        check_invariants(queue)
    except InvariantError as found:
        return (str(found),)
    return ()
