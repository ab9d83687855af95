"""Writes profiles, cache and queue as lines for the log on SIGUSR2.

Each list is cut after `most` entries, and a line says how many more there are. Names are as the API server sent them; the debugger
escapes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Final, NamedTuple

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.profiles.profilestate import ProfileStanding
from placewright.queue.check import InvariantError, check_invariants
from placewright.queue.nominator import Nominator
from placewright.queue.queue import SchedulingQueue

#: Entries of a list that are written: as many as a person reads, and a few hundred kilobytes at most.
MOST: Final = 500
#: Names of pods that are written of one node.
MOST_NAMES: Final = 20


class NodeAmounts(NamedTuple):
    """Requests and allocatable amounts of the node in a row: resource to milli-CPU, bytes or count, without zeros."""

    row: int
    requested: Mapping[str, int]
    allocatable: Mapping[str, int]


def node_amounts(cluster: Cluster) -> Iterator[NodeAmounts]:
    """Return the amounts of every node, in the order of rows."""
    columns = [(resource, cluster.resources.column(resource)) for resource in cluster.resources.names()]
    for row in cluster.rows().tolist():
        yield NodeAmounts(
            row,
            {resource: int(column.requested[row]) for resource, column in columns if column.requested[row]},
            {resource: int(column.allocatable[row]) for resource, column in columns if column.allocatable[row]},
        )


def profile_lines(standings: Iterable[ProfileStanding]) -> Iterator[str]:
    """Write a line for each profile: the generation that decides, and the newest one with its standing."""
    for one in standings:
        active = "none" if one.active_generation is None else str(one.active_generation)
        decides = f"generation {active} decides, {one.observed_generation} is {one.reason}"
        yield f"debug: profile {one.name} of {one.scheduler_name or 'a shadow'}: {decides}"


def cache_lines(cluster: Cluster, nominator: Nominator, most: int = MOST) -> Iterator[str]:
    """Write the totals, a line for each node, and a line for each column that contradicts the node's pods.

    O(pods on the written nodes).

    Args:
        cluster: the cache.
        nominator: the pods nominated to each node.
        most: nodes that are written.

    Returns:
        Lines without line ends.
    """
    yield (
        f"debug: cached nodes: {cluster.node_count}; pods on nodes: {cluster.pod_count_total}; of these assumed: {cluster.assumed_count}"
    )
    told = list(islice(node_amounts(cluster), most))
    for amounts in told:
        yield _node_line(cluster, nominator, amounts)
    if cluster.node_count > len(told):
        yield f"debug: and {cluster.node_count - len(told)} more nodes"
    for amounts in told:
        yield from (f"debug: contradiction: {one}" for one in _row_contradictions(cluster, amounts.row))


def queue_lines(queue: SchedulingQueue, most: int = MOST) -> Iterator[str]:
    """Write kube-scheduler's summary, a line for each pod, and whether every pod is in exactly one place of the queue. O(pods).

    Args:
        queue: to be written.
        most: pods that are written.

    Returns:
        Lines without line ends.
    """
    sizes = queue.sizes()
    yield f"debug: queue: activeQ:{sizes.active}; backoffQ:{sizes.backoff}; unschedulablePods:{sizes.unschedulable + sizes.gated}"
    yield f"debug: queue: of these gated: {sizes.gated}; in flight: {sizes.in_flight}"
    told = list(islice(queue.pods(), most))
    for place, queued in told:
        node = queue.nominator.node_of(queued.uid)
        nominated = f"; nominated to {node}" if node else ""
        pod = queued.pod
        yield f"debug: pod {pod.key} uid {pod.uid} of {pod.scheduler_name}: {place.value}; attempts {queued.attempts}{nominated}"
    if sum(sizes) > len(told):
        yield f"debug: and {sum(sizes) - len(told)} more pods"
    try:
        check_invariants(queue)
    except InvariantError as found:
        yield f"debug: contradiction: {found}"
    else:
        yield "debug: queue: every pod is in exactly one place"


def _node_line(cluster: Cluster, nominator: Nominator, amounts: NodeAmounts) -> str:
    name = NodeName(cluster.node(amounts.row).metadata.name)
    pod_count = int(cluster.pod_count[amounts.row])
    pods = _keys(cluster.pods_on(name))
    more = pod_count - len(pods)
    listed = ", ".join(pods) + (f" and {more} more" if more > 0 else "")
    return (
        f"debug: node {name}: requested {_amounts(amounts.requested)}; allocatable {_amounts(amounts.allocatable)}; "
        f"{pod_count} pods: {listed or 'none'}; nominated: {', '.join(_keys(nominator.pods_on(name))) or 'none'}"
    )


def _keys(pods: Iterable[PodInfo]) -> list[str]:
    return [pod.key for pod in islice(pods, MOST_NAMES)]


def _amounts(amounts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in sorted(amounts.items())) or "nothing"


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
