"""Objects that a plugin declares: a change wakes the pods that the plugin rejected, and kept columns follow."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from placewright.api.objects import KubeObject, ObjectMeta
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.engine.discovery import PolledObjectSink
from placewright.framework.events import Action, ClusterEventWithHint, event_with_hint
from placewright.framework.filters import ConstantReasonFilter
from placewright.framework.interface import BoolColumn, CycleState, Reads, Rows
from placewright.framework.sources import ObjectSource
from placewright.framework.status import unresolvable
from placewright.queue.queued import SubQueue
from scheduler.makers import World, node, pod


class Permission(KubeObject, frozen=True):
    """Lets pods on the node of its name."""

    metadata: ObjectMeta = ObjectMeta()


class Permitted(ConstantReasonFilter):
    """Takes nodes that have a Permission; counts how often it is asked for a column."""

    name = "Permitted"
    sources = (ObjectSource(Permission, "example.com", "permissions", ("v1",)),)
    reads = Reads.CLUSTER
    rejection = unresolvable("node(s) had no permission")
    asked = 0

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        type(self).asked += 1
        known = cluster.objects.of(Permission)
        return np.array([known.get(str(cluster.names[row])) is not None for row in rows], np.bool_)

    def fingerprint(self, state: CycleState, cluster: Cluster) -> Hashable:
        return (cluster.objects.of(Permission).version, cluster.node_journal.position)

    def events(self) -> Sequence[ClusterEventWithHint]:
        return (event_with_hint("Permission", Action.ALL),)


def permission(name: str) -> Permission:
    return Permission(metadata=ObjectMeta(name=name))


def a_rejected_pod() -> World:
    world = World(Permitted).nodes(node("a"), node("b")).pods(pod("web"))
    assert world.decide() is None
    assert world.place("web") is SubQueue.UNSCHEDULABLE
    return world


async def test_an_object_of_its_own_wakes_the_pod_that_the_plugin_rejected_and_lets_it_pass() -> None:
    world = a_rejected_pod()
    world.event_handlers.cluster_object(permission("b"))
    assert world.place("web") is not SubQueue.UNSCHEDULABLE
    world.now += 60.0
    world.queue.flush_backoff()
    assert await world.attempt()
    assert world.node_of("web") == "b"


def test_an_object_that_goes_wakes_it_too() -> None:
    world = a_rejected_pod()
    world.event_handlers.cluster_object_gone(permission("a"))
    assert world.place("web") is SubQueue.UNSCHEDULABLE  # nobody knew it
    world.cluster.objects.put(permission("a"))
    world.event_handlers.cluster_object_gone(permission("a"))
    assert world.place("web") is not SubQueue.UNSCHEDULABLE


def test_a_poll_is_one_event_however_many_objects_it_changes_and_none_when_it_changes_nothing() -> None:
    world = a_rejected_pod()
    sink = PolledObjectSink(world.event_handlers, Permission)
    for number in range(10):
        sink.changed(None, permission(f"n{number}"))
    assert world.place("web") is SubQueue.UNSCHEDULABLE
    sink.synced()
    assert world.place("web") is not SubQueue.UNSCHEDULABLE
    quiet = a_rejected_pod()
    PolledObjectSink(quiet.event_handlers, Permission).synced()
    assert quiet.place("web") is SubQueue.UNSCHEDULABLE


def test_a_column_is_kept_until_an_object_of_its_own_changes() -> None:
    world = World(Permitted).nodes(node("a"), node("b"))
    world.cluster.objects.put(permission("a"))
    evaluator, like = world.evaluator, pod("web").build()
    assert list(evaluator.evaluate(like).feasible) == [True, False]
    Permitted.asked = 0
    assert list(evaluator.evaluate(like).feasible) == [True, False]
    assert Permitted.asked == 0
    world.cluster.objects.put(permission("b"))
    assert list(evaluator.evaluate(like).feasible) == [True, True]
    assert Permitted.asked == 1
