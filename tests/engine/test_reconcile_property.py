"""The comparison against an API server in miniature: watches that lag, lists that are a picture of a moment, changes at every turn.

What the server has, what was listed and what the watches have told so far are kept apart here; the scheduler sees only the last two.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from placewright.api.decode import convert
from placewright.api.objects import Node, NodeName, Pod
from placewright.api.pods import PodInfo
from placewright.engine.reconcile.comparison import Comparison
from placewright.queue.check import check_invariants
from placewright.scheduler.repairs import Repairs
from scheduler.makers import World
from seeds import seeds

#: Ticks that a watch may be behind; a second look comes later than that.
LAG = 5
PATIENCE = LAG + 1
WATCHES = ("nodes", "assigned", "waiting")
Body = dict[str, Any]


@dataclass
class Server:
    """Objects by key, and for each watch what it has yet to tell, with the tick at which it will."""

    random: Random
    nodes: dict[str, Node] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    version: int = 0
    now: int = 0
    untold: dict[str, deque[tuple[int, Callable[[], None]]]] = field(default_factory=lambda: {watch: deque() for watch in WATCHES})
    #: Keys of objects that no watch tells of any more.
    hushed: set[str] = field(default_factory=set)

    def put_node(self, world: World, name: str) -> None:
        self.version += 1
        body = {"metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": str(self.version), "labels": {"v": str(self.version)}}}
        node = self.nodes[name] = convert(body | {"status": {"allocatable": {"cpu": "4"}}}, Node)
        self._tell("nodes", name, lambda: world.event_handlers.node(node))

    def drop_node(self, world: World, name: str) -> None:
        del self.nodes[name]
        self._tell("nodes", name, lambda: world.event_handlers.node_gone(NodeName(name)))

    def put_pod(self, world: World, uid: str, node: str = "") -> None:
        """Create a pod, change it, or bind it."""
        self.version += 1
        known = self.pods.get(uid)
        node = known.spec.node_name or node if known is not None else node
        meta = {"name": uid, "namespace": "default", "uid": uid, "resourceVersion": str(self.version), "labels": {"v": str(self.version)}}
        pod = self.pods[uid] = convert({"metadata": meta, "spec": {"nodeName": node}, "status": {}}, Pod)
        info = PodInfo(pod)
        if node:
            self._tell("assigned", uid, lambda: world.event_handlers.assigned_pod(info))
            if known is not None and not known.spec.node_name:
                self._tell("waiting", uid, lambda: world.event_handlers.unscheduled_pod_gone(info))
        else:
            self._tell("waiting", uid, lambda: world.event_handlers.unscheduled_pod(info))

    def drop_pod(self, world: World, uid: str) -> None:
        info = PodInfo(self.pods.pop(uid))
        if info.node_name:
            self._tell("assigned", uid, lambda: world.event_handlers.assigned_pod_gone(uid))
        else:
            self._tell("waiting", uid, lambda: world.event_handlers.unscheduled_pod_gone(info))

    def _tell(self, watch: str, key: str, news: Callable[[], None]) -> None:
        if key not in self.hushed:
            queue = self.untold[watch]
            due = max(self.now + self.random.randrange(LAG), queue[-1][0] if queue else 0)
            queue.append((due, news))

    def tick(self) -> None:
        """The watches tell what is due."""
        self.now += 1
        for queue in self.untold.values():
            while queue and queue[0][0] <= self.now:
                queue.popleft()[1]()


class History:
    """A server, a scheduler that watches it, and things that happen."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.world = World()
        self.server = Server(self.random)
        self.names = iter(range(1_000_000))
        for _ in range(40):
            self.happen()
        self.quiet()

    def happen(self) -> None:
        server, world, random = self.server, self.world, self.random
        nodes, pods = list(server.nodes), list(server.pods)
        kind = random.randrange(8)
        if kind == 0 or not nodes:
            server.put_node(world, f"node-{next(self.names)}")
        elif kind == 1:
            server.put_node(world, random.choice(nodes))
        elif kind == 2 and len(nodes) > 2:
            server.drop_node(world, random.choice(nodes))
        elif kind in (3, 4) or not pods:
            server.put_pod(world, f"pod-{next(self.names)}", random.choice(["", random.choice(nodes)]))
        elif kind == 5:
            server.put_pod(world, random.choice(pods))
        elif kind == 6:
            server.put_pod(world, random.choice(pods), random.choice(nodes))
        else:
            server.drop_pod(world, random.choice(pods))

    def pass_time(self, ticks: int, *, busy: bool) -> None:
        for _ in range(ticks):
            if busy and self.random.random() < 0.7:
                self.happen()
            self.server.tick()

    def quiet(self) -> None:
        self.pass_time(LAG + 1, busy=False)

    # --- the comparison -----------------------------------------------------------------------------------------------------------

    def compare(self, *, busy: bool) -> Repairs:
        before = Repairs(*(count for _, count in self.world.reconciler.repairs.counts()))
        reconciler = self.world.reconciler
        with reconciler.watching():
            nodes, assigned, waiting = reconciler.nodes(), reconciler.assigned(), reconciler.unscheduled()
            self._list(nodes, list(self.server.nodes.values()), busy)
            self._list(assigned, [pod for pod in self.server.pods.values() if pod.spec.node_name], busy)
            self._list(waiting, [pod for pod in self.server.pods.values() if not pod.spec.node_name], busy)
            for _ in range(3):
                self.pass_time(PATIENCE, busy=busy)
                self._look(nodes, self.server.nodes, busy)
                self._look(assigned, self.server.pods, busy)
                self._look(waiting, self.server.pods, busy)
        check_invariants(self.world.queue)
        return reconciler.repairs.since(before)

    def _list(self, comparison: Comparison[Any], picture: list[Any], busy: bool) -> None:
        for item in picture:
            self.pass_time(self.random.randrange(2), busy=busy)
            comparison.shown(item)
        comparison.listed()

    def _look(self, comparison: Comparison[Any], objects: dict[str, Any], busy: bool) -> None:
        for key in list(comparison.suspects):
            found = objects.get(key)
            # The answer is on its way while other things happen.
            self.pass_time(self.random.randrange(2), busy=busy)
            comparison.looked(key, found)

    def differences(self) -> Iterator[str]:
        """Where the scheduler's belief is not what the server has."""
        cluster, queue = self.world.cluster, self.world.queue
        believed: dict[str, object] = {node.metadata.name: node for node in cluster.nodes()}
        yield from _differing("node", believed, dict(self.server.nodes))
        known = {one.pod.uid: one.pod.pod for one in cluster.placements()}
        yield from _differing("pod on a node", known, {uid: pod for uid, pod in self.server.pods.items() if pod.spec.node_name})
        waiting = {uid: info.pod for uid in queue.uids() if (info := queue.latest(uid))}
        yield from _differing("waiting pod", waiting, {uid: pod for uid, pod in self.server.pods.items() if not pod.spec.node_name})


def _differing(what: str, believed: dict[str, Any], true: dict[str, Any]) -> Iterator[str]:
    for key in sorted(believed.keys() | true.keys()):
        if believed.get(key) != true.get(key):
            yield f"{what} {key}"


@seeds(range(60))
def test_watches_that_tell_everything_late_leave_nothing_to_repair(seed: int) -> None:
    history = History(seed)
    for _ in range(3):
        repairs = history.compare(busy=True)
        assert repairs.total == 0, dict(repairs.counts())
    history.quiet()
    assert list(history.differences()) == []


@seeds(range(60))
def test_what_the_watches_hush_up_is_found_exactly(seed: int) -> None:
    history = History(seed)
    server = history.server
    server.hushed = {key for key in (*server.nodes, *server.pods) if history.random.random() < 0.3}
    for _ in range(40):
        history.happen()
    history.quiet()
    wrong = list(history.differences())
    repairs = history.compare(busy=False)
    # A pod that was bound behind our back is wrong in two places, and one repair of its place on a node mends both.
    both = sum(1 for one in wrong if one.startswith("waiting") and f"pod on a node {one.split()[-1]}" in wrong)
    assert repairs.total == len(wrong) - both
    assert list(history.differences()) == []


@seeds(range(30))
def test_what_is_hushed_up_for_good_is_mended_in_the_midst_of_changes(seed: int) -> None:
    history = History(seed)
    history.server.put_node(history.world, "deaf")
    history.quiet()
    history.server.hushed = {"deaf"}
    history.server.drop_node(history.world, "deaf")
    repairs = history.compare(busy=True)
    assert repairs.nodes_vanished == 1
    assert repairs.total == 1, dict(repairs.counts())
