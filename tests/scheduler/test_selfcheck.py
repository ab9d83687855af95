"""A waiting pod that would fit is found, whichever plugin's hint slept; looking changes nothing, and pods that wait rightly are left."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from placewright.api.objects import NodeName
from placewright.framework.events import WILDCARD, Action, ClusterEvent, EventResource, QueueingHint
from placewright.framework.runtime.evaluation import Evaluator
from placewright.plugins.catalog import in_tree
from placewright.queue.check import check_invariants
from placewright.queue.events import RecentEvents
from placewright.queue.queued import SubQueue
from placewright.queue.suspects import SuspectPods
from placewright.scheduler.selfcheck import Forgotten, SelfCheck, SkipReason
from placewright.testing import (
    FakeExtender,
    device_class,
    persistent_volume,
    persistent_volume_claim,
    resource_claim,
    resource_slice,
    storage_class,
)

from .makers import NodeMaker, PodMaker, World, node, pod

STRICT = "requiredDuringSchedulingIgnoredDuringExecution"
APPS = {"labelSelector": {"matchLabels": {"app": "web"}}}


def look(world: World, name: str = "me") -> Forgotten | SkipReason | None:
    queued = world.queue.get(f"uid-{name}")
    assert queued is not None
    [lane] = [each for each in world.queue.profile_queues() if each.name == queued.pod.scheduler_name]
    return SelfCheck(world.cluster, world.queue, world.profiles.get, world.time).look(lane, queued)


def rejected(world: World, *makers: PodMaker) -> World:
    """These pods were tried, and wait."""
    for maker in makers:
        world.pods(maker)
        assert world.decide() is None
    return world


def full() -> World:
    """One node, with a pod that takes it all, and one that waits for room."""
    world = World().nodes(node("a").offers(cpu="2")).pods(pod("big").requests(cpu="2").on("a"))
    return rejected(world, pod("me").requests(cpu="2"))


# --- what is found -----------------------------------------------------------------------------------------------------------------


def test_a_pod_that_fits_nowhere_is_not_forgotten() -> None:
    assert look(full()) is None


def test_a_pod_that_a_change_without_an_event_helps_is_found_and_its_plugin_is_named() -> None:
    world = full()
    world.cluster.remove_pod("uid-big")
    found = look(world)
    assert isinstance(found, Forgotten)
    assert (found.key, found.plugin, found.event, found.node) == ("default/me", "NodeResourcesFit", None, "a")
    assert str(found) == "it would fit on a, and nothing had brought it back: no event told NodeResourcesFit of it; since then: none"


def test_columns_that_decisions_keep_and_that_are_wrong_are_seen_through() -> None:
    """The pod is decided afresh: what let it wait once must not let it wait again."""
    world = full()
    world.cluster.remove_pod("uid-big")
    world.evaluator.kept.columns(world.evaluator.runtime.sign(pod("me").requests(cpu="2").build())).fits[:] = False
    assert isinstance(look(world), Forgotten)


def test_a_pod_that_would_fit_only_by_preemption_is_not_forgotten() -> None:
    world = World().nodes(node("a").offers(cpu="2")).pods(pod("big").requests(cpu="2").on("a"))
    world.pods(pod("me").priority(9).requests(cpu="2").labels(a="b"))
    queued = world.pop()
    world.queue.return_unschedulable(queued, {"NodeResourcesFit"}, filtered=True)
    assert look(world) is None


def test_of_two_plugins_the_one_that_asked_for_the_event_is_named() -> None:
    world = World().nodes(node("a").taint("gpu"), node("b").offers(cpu="1"))
    rejected(world, pod("me").requests(cpu="2"))
    world.cluster.set_node(node("a").build())
    recent = world.queue.sweeps.recent
    recent.note(retainted(), node("a").build(), node("a").build())
    found = look(world)
    assert isinstance(found, Forgotten)
    assert found.plugin == "TaintToleration"  # NodeResourcesFit asks to hear of taints, too, and filters later
    assert found.event is not None
    assert (found.event.event.label, found.node) == ("NodeUpdateTaint", "a")


def retainted(label: str = "NodeUpdateTaint") -> ClusterEvent:
    return ClusterEvent(EventResource.NODE, Action.UPDATE_NODE_TAINT, label)


# --- a hint that sleeps ------------------------------------------------------------------------------------------------------------


def asleep(monkeypatch: pytest.MonkeyPatch, plugin: str) -> None:
    """The plugin registers what it does, and its hints say no to everything."""
    kind: Any = in_tree()[plugin]
    events = kind.events

    def sleeping(self: Any) -> Iterable[Any]:
        return tuple(replace(each, hint=lambda *_: QueueingHint.SKIP) for each in events(self))

    monkeypatch.setattr(kind, "events", sleeping)


def spread(maker: PodMaker) -> PodMaker:
    return maker.labels(app="web").spread("zone", **APPS)


def apart(maker: PodMaker) -> PodMaker:
    return maker.spec(affinity={"podAntiAffinity": {STRICT: [{"topologyKey": "zone", **APPS}]}})


def ports(maker: PodMaker) -> PodMaker:
    return maker.host_port(80)


def selecting(maker: PodMaker) -> PodMaker:
    return maker.node_selector(disk="ssd")


def mounting(maker: PodMaker) -> PodMaker:
    return maker.volume_claims("data")


def claiming(maker: PodMaker) -> PodMaker:
    return maker.resource_claims("gpu")


def zoned(name: str, zone: str) -> NodeMaker:
    return node(name).labels(zone=zone)


def storage(world: World) -> World:
    return world.show(storage_class("slow"), persistent_volume_claim("data").storage_class("slow"))


def a_volume(world: World) -> None:
    world.show(persistent_volume("pv", "2Gi").storage_class("slow"))


def devices(world: World) -> World:
    return world.show(device_class("gpu"), resource_claim("gpu").request("gpu"))


def a_device(world: World) -> None:
    world.show(resource_slice("a").devices("card"))


@dataclass(frozen=True)
class Story:
    """A world in which a pod is rejected by one plugin, and what then helps it."""

    plugin: str
    before: Callable[[], World]
    me: PodMaker
    then: Callable[[World], object]
    event: str


STORIES = (
    Story(
        "NodeResourcesFit", lambda: World().nodes(node("a").offers(cpu="2")).pods(pod("big").requests(cpu="2").on("a")),
        pod("me").requests(cpu="2"), lambda world: world.event_handlers.assigned_pod_gone("uid-big"), "AssignedPodDelete",
    ),
    Story(
        "TaintToleration", lambda: World().nodes(node("a").taint("gpu")),
        pod("me"), lambda world: world.nodes(node("a")), "NodeUpdateTaint",
    ),
    Story(
        "NodeUnschedulable", lambda: World().nodes(node("a").cordoned()),
        pod("me"), lambda world: world.nodes(node("a")), "NodeUpdateTaint",
    ),
    Story(
        "NodeAffinity", lambda: World().nodes(node("a")),
        selecting(pod("me")), lambda world: world.nodes(node("a").labels(disk="ssd")), "NodeUpdateLabel",
    ),
    Story(
        "NodePorts", lambda: World().nodes(node("a")).pods(ports(pod("other")).on("a")),
        ports(pod("me")), lambda world: world.event_handlers.assigned_pod_gone("uid-other"), "AssignedPodDelete",
    ),
    Story(
        "PodTopologySpread", lambda: World().nodes(zoned("a", "1"), zoned("b", "2").cordoned()).pods(pod("web").labels(app="web").on("a")),
        spread(pod("me")), lambda world: world.event_handlers.assigned_pod_gone("uid-web"), "AssignedPodDelete",
    ),
    Story(
        "InterPodAffinity", lambda: World().nodes(zoned("a", "1")).pods(pod("web").labels(app="web").on("a")),
        apart(pod("me")), lambda world: world.event_handlers.assigned_pod_gone("uid-web"), "AssignedPodDelete",
    ),
    Story("VolumeBinding", lambda: storage(World().nodes(node("a"))), mounting(pod("me")), a_volume, "PersistentVolumeAdd"),
    Story("DynamicResources", lambda: devices(World().nodes(node("a"))), claiming(pod("me")), a_device, "ResourceSliceAdd"),
)  # fmt: skip


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.plugin)
def test_the_hint_that_is_awake_brings_the_pod_back(story: Story) -> None:
    world = rejected(story.before(), story.me)
    assert look(world) is None
    story.then(world)
    assert world.place("me") in (SubQueue.ACTIVE, SubQueue.BACKOFF)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.plugin)
def test_a_pod_whose_hint_slept_is_found_with_the_plugin_and_the_event(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    asleep(monkeypatch, story.plugin)
    world = rejected(story.before(), story.me)
    story.then(world)
    assert world.place("me") is SubQueue.UNSCHEDULABLE
    found = look(world)
    assert isinstance(found, Forgotten)
    assert found.event is not None
    assert (found.plugin, found.event.event.label, found.node) == (story.plugin, story.event, "a")
    assert f"{story.plugin} did not ask for another try after {story.event} (" in str(found)


# --- who is left out ---------------------------------------------------------------------------------------------------------------


def freed(world: World) -> World:
    """Room that nobody tells of: but for what leaves it out, the pod would be found."""
    world.cluster.remove_pod("uid-big")
    assert isinstance(look(world), Forgotten)
    return world


def test_a_pod_that_something_after_the_filters_rejected_is_left_out() -> None:
    world = World().nodes(node("a")).pods(pod("me"))
    world.queue.return_unschedulable(world.pop(), {"VolumeBinding"})
    assert look(world) is SkipReason.NOT_FILTERED


def test_a_pod_that_extenders_are_asked_about_is_left_out() -> None:
    world = freed(full())
    world.use_profile(asking=[FakeExtender()])
    queued = world.pop()
    world.queue.return_unschedulable(queued, {"NodeResourcesFit"}, filtered=True)
    assert look(world) is SkipReason.EXTENDERS


def test_a_pod_of_a_paused_profile_is_left_out() -> None:
    world = freed(full())
    world.queue.hold("default-scheduler")
    assert look(world) is SkipReason.CLOSED


def test_a_pod_that_is_being_deleted_is_left_out() -> None:
    world = full()
    world.pods(pod("me").requests(cpu="2").deleting())
    assert look(world) is SkipReason.GONE


def test_a_nominated_pod_is_left_out_as_long_as_its_victims_leave_and_no_longer() -> None:
    world = full()
    me = world.queue.latest("uid-me")
    assert me is not None
    world.nodes(node("b"))
    world.queue.return_unschedulable(world.pop(), {"NodeResourcesFit"}, filtered=True)
    world.queue.nominate(me, NodeName("a"))
    world.cluster.told_to_leave("uid-big")
    assert look(world) is SkipReason.VICTIMS
    world.cluster.remove_pod("uid-big")
    assert isinstance(look(world), Forgotten)


def test_all_pods_are_left_out_while_events_are_yet_to_be_told() -> None:
    world = freed(full())
    world.queue.sweeps.a_slice = 0
    world.queue.move(WILDCARD)
    assert look(world) is SkipReason.BEHIND


def test_pods_that_are_active_or_back_off_are_left_out() -> None:
    world = freed(full())
    world.queue.retry("uid-me")
    assert look(world) is SkipReason.NOT_WAITING


def test_a_pod_in_whose_decision_a_process_ended_is_not_decided_beside_others(monkeypatch: pytest.MonkeyPatch) -> None:
    world = freed(full())
    monkeypatch.setattr(SuspectPods, "__bool__", lambda _: True)
    monkeypatch.setattr(SuspectPods, "accuses", lambda _self, queued: queued.key == "default/me")
    assert look(world) is SkipReason.SUSPECT


def test_a_pod_whose_decision_is_prepared_is_left_to_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    world = freed(full())
    monkeypatch.setattr(Evaluator, "prepares", lambda _self, pod: pod.name == "me")
    assert look(world) is SkipReason.LARGE


# --- nothing is changed ------------------------------------------------------------------------------------------------------------


def test_looking_changes_nothing() -> None:
    world = freed(full())
    before = (
        world.queue.sizes(), list(world.log.entered), list(world.events.recorded), list(world.status.written), world.requested("a"),
        len(world.evaluator.kept), world.evaluator.kept.nbytes, world.cycle.draw(1 << 30),
    )  # fmt: skip
    world.cycle._rng.seed(7)
    drawn = world.cycle.draw(1 << 30)
    world.cycle._rng.seed(7)
    assert isinstance(look(world), Forgotten)
    assert world.cycle.draw(1 << 30) == drawn
    after = (
        world.queue.sizes(), list(world.log.entered), list(world.events.recorded), list(world.status.written), world.requested("a"),
        len(world.evaluator.kept), world.evaluator.kept.nbytes, before[-1],
    )  # fmt: skip
    assert after == before
    check_invariants(world.queue)


# --- what happened lately ----------------------------------------------------------------------------------------------------------


def test_events_are_noted_only_while_pods_wait() -> None:
    world = World().nodes(node("a"))
    world.nodes(node("b"))
    assert world.queue.sweeps.recent.noted == 0
    rejected(world, pod("me").requests(cpu="9"))
    world.nodes(node("c"))
    assert world.queue.sweeps.recent.noted == 1


def test_of_what_is_too_long_ago_the_kinds_are_known() -> None:
    recent = RecentEvents(keep=2)
    for name in "abc":
        recent.note(retainted(f"label-{name}"), None, node(name).build())
    assert [(each.event.label, each.about) for each in recent.since(0)] == [("label-c", "c"), ("label-b", "b"), ("label-a", "")]
    assert [each.event.label for each in recent.since(2)] == ["label-c"]
    assert recent.since(3) == []
