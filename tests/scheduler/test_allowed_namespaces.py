"""`spec.pods.allowedNamespaces`: pods of other namespaces are gated and never tried, and a change of the profile takes effect at once."""

from __future__ import annotations

from typing import Any

import pytest

from placewright.api.objects import NodeName, ObjectMeta
from placewright.api.pods import PodInfo
from placewright.api.workloads import Namespace
from placewright.engine.podgroupstatus import BURST, PODS_A_SECOND, KeptOutPods
from placewright.explain.explanation import evaluated
from placewright.queue.queued import SubQueue
from placewright.scheduler.ports import EventType
from placewright.testing import World, assert_bound, assert_gated, node, pod, profile
from placewright.testing.profiles import ProfileMaker

REASON = 'namespace "dev" may not use profile "batch": spec.pods.allowedNamespaces does not name it'


def batch(*allowed: str, **spec: Any) -> ProfileMaker:
    pods = {"pods": {"allowedNamespaces": list(allowed)}} if allowed else {}
    return profile("batch").scheduler("default-scheduler").spec(**pods, **spec)


def world_of(made: ProfileMaker, **more: Any) -> World:
    return World(nodes=[node("a")], profile=made, **more)


def test_a_pod_of_another_namespace_is_gated_and_never_tried() -> None:
    world = world_of(batch("prod"))
    world.add(pod("in").namespace("prod"), pod("out").namespace("dev"))
    assert_bound(world, "prod/in")
    assert_gated(world, "dev/out")
    assert world.gated_by("dev/out") == f"AllowedNamespaces: {REASON}"
    world.add(node("b"))
    world.advance(3600)
    assert world.place("dev/out") is SubQueue.GATED
    assert world.last_attempt("dev/out") is None


def test_explain_says_why() -> None:
    world = world_of(batch("prod"))
    evaluator = world.profiles["default-scheduler"]
    assert evaluated(evaluator, world.cluster, pod("out").namespace("dev").build()).gated == REASON


@pytest.mark.parametrize("after", [batch("prod", "dev"), batch()], ids=["its namespace is named", "all may"])
def test_it_goes_on_when_the_profile_lets_it(after: ProfileMaker) -> None:
    world = world_of(batch("prod"))
    world.add(pod("out").namespace("dev"))
    world.use(after.generation(2))
    world.settle()
    assert_bound(world, "dev/out")


@pytest.mark.parametrize("waits", ["active", "backoff", "unschedulable"])
def test_waiting_pods_are_gated_when_a_profile_begins_to_keep_them_out(waits: str) -> None:
    world = world_of(batch())
    wanted = "100" if waits != "active" else "1"
    world.show(pod("out").namespace("dev").requests(cpu=wanted), pod("in").namespace("prod").requests(cpu="1"))
    if waits != "active":
        world.settle()
    if waits == "backoff":
        world.queue.retry(pod("out").namespace("dev").build().uid)
    assert world.place("dev/out") is SubQueue(waits)
    tried = world.last_attempt("dev/out")
    world.use(batch("prod").generation(2))
    assert_gated(world, "dev/out")
    world.add(node("c", cpu="200"))
    world.advance(600)
    assert_gated(world, "dev/out")
    assert world.last_attempt("dev/out") is tried
    assert_bound(world, "prod/in")


def namespace(name: str, labels: dict[str, str] | None = None, **annotations: str) -> Namespace:
    notes = {f"placewright.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return Namespace(ObjectMeta(name=name, uid=name, labels=labels or {}, annotations=notes))


def test_namespaces_may_be_allowed_by_their_labels() -> None:
    made = (
        profile("batch")
        .scheduler("default-scheduler")
        .spec(pods={"allowedNamespaces": ["prod"], "allowedNamespaceSelector": {"matchLabels": {"tier": "research"}}})
    )
    world = world_of(made)
    world.add(namespace("lab", {"tier": "research"}), namespace("dev", {"tier": "web"}))
    world.add(*(pod(name).namespace(name) for name in ("prod", "lab", "dev")))
    assert_bound(world, "prod/prod")
    assert_bound(world, "lab/lab")
    assert_gated(world, "dev/dev")
    why = "spec.pods.allowedNamespaces does not name it, and spec.pods.allowedNamespaceSelector does not select it"
    assert world.gated_by("dev/dev") == f'AllowedNamespaces: namespace "dev" may not use profile "batch": {why}'
    world.add(namespace("dev", {"tier": "research"}))
    assert_bound(world, "dev/dev")


@pytest.mark.parametrize("value", ["other", "", "other, third", "batches"])
def test_a_namespace_may_be_held_to_some_profiles_until_it_is_let(value: str) -> None:
    world = world_of(batch())
    world.add(namespace("dev", allowed_profiles=value))
    world.add(pod("out").namespace("dev"), pod("in").namespace("prod"))
    assert_bound(world, "prod/in")
    assert_gated(world, "dev/out")
    why = "its annotation placewright.dev/allowed-profiles does not name the profile"
    assert world.gated_by("dev/out") == f'AllowedNamespaces: namespace "dev" may not use profile "batch": {why}'
    world.add(namespace("dev", allowed_profiles=f"{value}, batch"))
    assert_bound(world, "dev/out")


def test_the_default_of_the_cluster_holds_where_a_namespace_says_nothing() -> None:
    world = world_of(batch())
    world.add(namespace("kube-system", default_allowed_profiles="other"), namespace("own", allowed_profiles="*"), namespace("dev"))
    world.add(pod("out").namespace("dev"), pod("in").namespace("own"))
    assert_bound(world, "own/in")
    assert_gated(world, "dev/out")
    assert "placewright.dev/default-allowed-profiles on namespace kube-system" in world.gated_by("dev/out")
    world.add(namespace("kube-system", default_allowed_profiles="other,batch"))
    assert_bound(world, "dev/out")


@pytest.mark.parametrize("waits", ["active", "backoff", "unschedulable"])
@pytest.mark.parametrize(
    "rule", [namespace("dev", allowed_profiles="other"), namespace("kube-system", default_allowed_profiles="other")], ids=["own", "default"]
)
def test_waiting_pods_are_gated_when_a_namespace_begins_to_keep_them_out(waits: str, rule: Namespace) -> None:
    world = world_of(batch())
    world.add(namespace("dev"), namespace("prod", allowed_profiles="batch"))
    wanted = "100" if waits != "active" else "1"
    world.show(pod("out").namespace("dev").requests(cpu=wanted), pod("in").namespace("prod").requests(cpu="1"))
    if waits != "active":
        world.settle()
    if waits == "backoff":
        world.queue.retry(pod("out").namespace("dev").build().uid)
    assert world.place("dev/out") is SubQueue(waits)
    tried = world.last_attempt("dev/out")
    world.show(rule)
    assert world.place("dev/out") is SubQueue.GATED
    world.add(node("c", cpu="200"))
    world.advance(600)
    assert_gated(world, "dev/out")
    assert world.last_attempt("dev/out") is tried
    assert_bound(world, "prod/in")


def test_what_a_tenant_writes_on_a_pod_lets_it_use_no_profile() -> None:
    world = world_of(batch())
    world.add(namespace("dev", allowed_profiles="other"))
    world.add(pod("out").namespace("dev").annotations({"placewright.dev/allowed-profiles": "batch"}))
    assert_gated(world, "dev/out")


# --- what they are told ------------------------------------------------------------------------------------------------------------


class Told:
    """What pods are told, by an event and in their condition. Implements both ports."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str, str]] = []
        self.conditions: list[tuple[str, str, str]] = []

    def record(self, pod: PodInfo, kind: EventType, reason: str, action: str, note: str) -> None:
        self.events.append((pod.key, kind, reason, note))

    def pod_unscheduled(self, pod: PodInfo, reason: str, message: str, nominated_node: NodeName | None) -> None:
        assert nominated_node is None
        self.conditions.append((pod.key, reason, message))

    def pod_nominated(self, pod: PodInfo, node: NodeName) -> None:
        raise AssertionError("no pod is nominated")


class Telling:
    """The keeper on a world's queue, with a clock of its own."""

    def __init__(self, world: World) -> None:
        self.now, self.told = 0.0, Told()
        self.pods = KeptOutPods(world.queue, self.told, self.told, lambda: self.now)

    def look(self, seconds: float = 1.0) -> list[str]:
        """The pods that are told so many seconds later, in order."""
        self.now += seconds
        self.told.conditions.clear()
        self.pods.look()
        return [key for key, *_ in self.told.conditions]


def test_a_kept_out_pod_is_told_once_by_condition_and_event() -> None:
    world = world_of(batch("prod"))
    telling = Telling(world)
    world.add(pod("out").namespace("dev"), pod("in").namespace("prod"))
    assert telling.look() == ["dev/out"]
    assert telling.told.conditions == [("dev/out", "Unschedulable", REASON)]
    assert telling.told.events == [("dev/out", "Warning", "FailedScheduling", REASON)]
    assert telling.look() == []
    world.remove("dev/out")
    assert telling.look() == []


def test_a_pod_that_is_kept_out_again_is_told_again() -> None:
    world = World(profile=batch("prod"))
    telling = Telling(world)
    world.add(pod("out").namespace("dev"))
    assert telling.look() == ["dev/out"]
    world.use(batch().generation(2))
    assert telling.look() == []
    world.use(batch("prod").generation(3))
    assert telling.look() == ["dev/out"]


def test_a_flood_of_one_namespace_delays_the_pods_of_others_by_one_each() -> None:
    world = world_of(batch("prod"))
    telling = Telling(world)
    world.add(*(pod(f"p{i}").namespace("flood") for i in range(3 * BURST)), pod("out").namespace("dev"))
    first = telling.look()
    assert len(first) == BURST
    assert "dev/out" in first[:2]
    second = telling.look()
    assert len(second) == PODS_A_SECOND
    assert not set(first) & set(second)
