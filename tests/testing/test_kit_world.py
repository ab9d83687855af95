"""`World`: the whole scheduler in virtual time, from a pod that is shown to a pod that is bound."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Collection
from dataclasses import dataclass

import pytest

from placewright.api.objects import Node, NodeName
from placewright.api.pods import PodInfo
from placewright.framework.interface import CycleState, PermitPlugin, PermitResult, PreBindPlugin
from placewright.framework.scalar import ScalarFilter, ScalarScore
from placewright.framework.status import SUCCESS, Code, Status, unschedulable
from placewright.profiles.problem import ProfileError
from placewright.queue.queued import SubQueue
from placewright.scheduler.attempts import Attempt
from placewright.testing import (
    FakeExtender,
    World,
    assert_bound,
    assert_event,
    assert_evicted,
    assert_gated,
    assert_placed,
    assert_waiting,
    coscheduling_group,
    device_class,
    node,
    persistent_volume,
    persistent_volume_claim,
    pod,
    pod_group,
    profile,
    resource_claim,
    resource_slice,
    service,
    storage_class,
)
from placewright.testing.virtualtime import RestlessError


def test_a_pod_is_placed_in_three_lines() -> None:
    world = World(nodes=[node("a")])
    world.add(pod("web"))
    assert_placed(world, "web", on="a")


def test_a_bound_pod_is_shown_on_its_node_as_a_watch_would() -> None:
    world = World(nodes=[node("a")]).add(pod("web").requests(cpu="1"))
    assert_bound(world, "web", on="a")
    assert [bound[:3] for bound in world.binder.bound] == [("web", "uid-web", "a")]
    placement = world.cluster.placement("uid-web")
    assert placement is not None
    assert not placement.assumed
    assert world.requested("a") == 1000
    assert len(world.queue) == 0


def test_without_watches_a_bound_pod_stays_assumed() -> None:
    world = World(nodes=[node("a")], watches=False).add(pod("web"))
    placement = world.cluster.placement("uid-web")
    assert placement is not None
    assert placement.assumed


def test_a_pod_waits_for_room_and_is_tried_when_it_comes() -> None:
    world = World(nodes=[node("a", cpu="1")], pods=[pod("old").requests(cpu="1").on("a")])
    world.add(pod("web").requests(cpu="1"))
    assert_waiting(world, "web", because="Insufficient cpu", plugin="NodeResourcesFit")
    assert world.place("web") is SubQueue.UNSCHEDULABLE
    world.remove("old")
    assert_bound(world, "web", on="a")


@pytest.mark.parametrize("failures", [1, 2, 3, 4, 5, 6])
def test_backoff_is_kube_schedulers_and_passes_in_virtual_time(failures: int) -> None:
    """1, 2, 4, 8, 10, 10 seconds; the queue lets pods go that ended their backoff in a second when that second is over."""
    world = World(nodes=[node("a")])
    world.binder.fail(RuntimeError("away"))
    world.add(pod("web"))
    waits = [seconds + 1 for seconds in (1, 2, 4, 8, 10, 10)]
    for seconds in waits[: failures - 1]:
        world.advance(seconds)
    assert len(world.binder.bound) == failures
    world.advance(waits[failures - 1] - 0.5)
    assert len(world.binder.bound) == failures
    world.binder.recover()
    world.advance(0.5)
    assert_bound(world, "web")
    assert world.now == 100 + sum(waits[:failures])


def test_a_pod_that_no_event_helps_is_tried_again_after_five_minutes() -> None:
    world = World(nodes=[node("a", cpu="1")]).add(pod("web").requests(cpu="2"))
    world.advance(299)
    assert len(world.log.attempts) == 1
    world.advance(31)  # one looks every half minute
    assert len(world.log.attempts) == 2
    assert world.log.attempts[-1].flushed


def test_preemption_goes_from_the_victim_to_the_node() -> None:
    world = World(nodes=[node("a", cpu="1")], pods=[pod("low").requests(cpu="1").on("a")])
    world.add(pod("high").requests(cpu="1").priority(10))
    assert_evicted(world, "low")
    assert_event(world, "low", "Preempted", "Preempted by pod uid-high on node a")
    assert_bound(world, "high", on="a")


def test_a_claim_gets_the_volume_that_its_pod_can_reach() -> None:
    storage = [storage_class("local"), persistent_volume("disk").storage_class("local").on("b")]
    world = World(nodes=[node("a"), node("b")], objects=[*storage, persistent_volume_claim("data").storage_class("local")])
    world.add(pod("web").volume_claims("data"))
    assert_bound(world, "web", on="b")
    assert world.volumes.writes == [("bind", "disk", "data")]


def test_a_volume_is_made_where_the_pod_goes_and_the_next_pod_follows_it() -> None:
    world = World(nodes=[node("a"), node("b")], objects=[storage_class().provisioner("csi.example.com"), persistent_volume_claim("data")])
    world.add(pod("web").volume_claims("data"))
    chosen = world.node_of("web")
    assert world.volumes.writes == [("select", "data", chosen)]
    world.add(pod("next").volume_claims("data"))
    assert_bound(world, "next", on=chosen)


def test_devices_are_reserved_for_a_pod_and_free_for_the_next_one_when_it_is_gone() -> None:
    claims = [resource_claim(name).request("gpu") for name in ("one", "two")]
    world = World(nodes=[node("a"), node("b")], objects=[device_class("gpu"), resource_slice("b").devices("gpu-0"), *claims])
    world.add(pod("web").resource_claims("one"))
    assert_bound(world, "web", on="b")
    assert world.claims.writes == [("reserve", "one")]
    world.add(pod("next").resource_claims("two"))
    assert_waiting(world, "next", plugin="DynamicResources")
    freed = resource_claim("one").request("gpu")
    world.remove("web").add(freed)
    assert_bound(world, "next", on="b")


@pytest.mark.parametrize("native", [True, False])
def test_members_of_a_group_are_placed_together_or_not_at_all(native: bool) -> None:
    declared = pod_group("train", 2) if native else coscheduling_group("train", 2)
    world = World(nodes=[node("a")], objects=[declared])

    def member(name: str) -> None:
        world.add(pod(name).in_group("train") if native else pod(name).in_coscheduling_group("train"))

    member("train-0")
    assert world.node_of("train-0") is None
    member("train-1")
    assert_bound(world, "train-0")
    assert_bound(world, "train-1")
    assert world.groups.placed[-1] == ("train", 2)


def test_a_gated_pod_is_not_tried_until_its_gates_are_gone() -> None:
    world = World(nodes=[node("a")]).add(pod("web").gates("quota"))
    assert_gated(world, "web")
    assert not world.log.attempts
    world.add(pod("web"))
    assert_bound(world, "web")


def test_an_extender_is_asked_and_heeded() -> None:
    quota = FakeExtender("http://quota")
    quota.failed["a"] = "over quota"
    world = World(nodes=[node("a"), node("b")], extenders=[quota])
    world.add(pod("web"))
    assert_bound(world, "web", on="b")
    assert quota.asked == [("filter", "web", ("a", "b"))]


def test_a_profile_that_changes_takes_effect_for_pods_that_wait() -> None:
    world = World(nodes=[node("a").taint("gpu")]).add(pod("web"))
    assert_waiting(world, "web", plugin="TaintToleration")
    world.use(profile().disable("TaintToleration").generation(2))
    world.settle()
    assert_bound(world, "web")


def test_two_profiles_serve_each_its_own_pods() -> None:
    world = World(nodes=[node("a").taint("gpu")])
    world.use(profile("lenient").scheduler("lenient").disable("TaintToleration"))
    world.add(pod("web"), pod("other").scheduler("lenient"), pod("nobodys").scheduler("who"))
    assert_waiting(world, "web")
    assert_bound(world, "other")
    assert world.node_of("nobodys") is None
    with pytest.raises(ProfileError):
        world.use(profile().enable("NoSuchPlugin"))


@pytest.mark.parametrize(("replicas", "spread"), [(4, [2, 2]), (3, [1, 2])])
def test_objects_of_any_kind_can_be_shown_and_removed(replicas: int, spread: list[int]) -> None:
    """By default PodTopologySpread spreads the pods of a Service; here over nodes."""
    world = World(nodes=[node("a"), node("b")], objects=[service("web").selects(app="web")])
    for number in range(replicas):
        world.add(pod(f"web-{number}").labels(app="web"))
    assert sorted(len(world.cluster.pods_on(NodeName(name))) for name in "ab") == spread
    world.remove(service("web").selects(app="web"), node("b"))
    world.add(pod("more").labels(app="web"))
    assert_bound(world, "more", on="a")


class FewPods(ScalarFilter, ScalarScore):
    """Takes nodes with fewer than `most` pods, and prefers those with few."""

    name = "FewPods"

    @dataclass(frozen=True)
    class Args:
        most: int = 2

    def filter_node(self, pod: PodInfo, node: Node, pods: Collection[PodInfo]) -> Status:
        return SUCCESS if len(pods) < self.args.most else unschedulable(f"node(s) had {self.args.most} pods")

    def score_node(self, pod: PodInfo, node: Node, pods: Collection[PodInfo]) -> int:
        return 100 - len(pods)


def test_a_plugin_of_the_test_takes_part() -> None:
    world = World(FewPods, nodes=[node("a"), node("b")], profile=profile().args(FewPods, most=1))
    world.add(pod("one"), pod("two"), pod("three"))
    assert {world.node_of("one"), world.node_of("two")} == {"a", "b"}
    assert_waiting(world, "three", because="2 node(s) had 1 pods", plugin="FewPods")


def test_a_plugin_that_writes_into_objects_fails_the_attempt_by_name() -> None:
    class Scribbler(ScalarScore):
        name = "Scribbler"

        def score_node(self, pod: PodInfo, node: Node, pods: Collection[PodInfo]) -> int:
            node.metadata.labels["seen"] = "yes"  # type: ignore[index]
            return 1

    world = World(Scribbler, nodes=[node("a"), node("b")]).add(pod("web"))
    assert_event(world, "web", "FailedScheduling", 'running Score plugin "Scribbler": it wrote into node a')


class Door(PermitPlugin):
    """Keeps every pod until somebody opens it, a minute at most."""

    name = "Door"

    def permit(self, state: CycleState, pod: PodInfo, node: NodeName) -> PermitResult:
        return PermitResult(Status(Code.WAIT), 60)


def test_a_pod_waits_for_permission_in_virtual_time() -> None:
    world = World(Door, nodes=[node("a")]).add(pod("web"))
    assert world.place("web") is SubQueue.IN_FLIGHT
    assert_placed(world, "web", on="a")
    world.advance(59)
    assert len(world.scheduler.waiting) == 1
    world.advance(1)
    assert_waiting(world, "web", because="rejected due to timeout after waiting 1m0s at plugin Door", plugin="Door")


def test_a_pod_that_is_permitted_is_bound() -> None:
    world = World(Door, nodes=[node("a")]).add(pod("web"))
    for waiting in world.scheduler.waiting:
        waiting.allow("Door")
    world.settle()
    assert_bound(world, "web", on="a")


class SlowPreparation(PreBindPlugin):
    """Takes an hour to prepare a pod for its node."""

    name = "SlowPreparation"

    async def pre_bind(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status:
        await asyncio.sleep(3600)
        return SUCCESS


def test_an_hour_of_preparation_takes_no_time() -> None:
    world = World(SlowPreparation, nodes=[node("a")]).add(pod("web"), pod("other"))
    world.advance(3599)
    assert not world.binder.bound
    world.advance(1)
    assert_bound(world, "web")
    assert_bound(world, "other")


class Standby:
    """A replica that may not decide until it is told."""

    active = False

    async def wait_active(self) -> None:
        raise AssertionError("nobody waits in a world")


def test_nothing_is_decided_without_the_lead() -> None:
    lead = Standby()
    world = World(nodes=[node("a")], lead=lead).add(pod("web"))
    assert world.place("web") is SubQueue.ACTIVE
    lead.active = True
    world.settle()
    assert_bound(world, "web")


class Impatient(PermitPlugin):
    """Refuses every pod, and asks for it to be tried again at once."""

    name = "Impatient"

    def permit(self, state: CycleState, pod: PodInfo, node: NodeName) -> PermitResult:
        state.activate[pod.uid] = pod
        return PermitResult(unschedulable("not now"))


def test_a_world_that_never_comes_to_rest_says_which_pod_is_tried() -> None:
    class Restless:
        def attempt_ended(self, attempt: Attempt) -> None:
            world.time.loop.call_soon(world.event_handlers.node, node("a").labels(try_=str(attempt.number)).build())

        def pod_entered(self, place: str, event: str) -> None:
            """Not of interest."""

    world = World(Impatient, nodes=[node("a")])
    world.listening.append(Restless())
    with pytest.raises(RestlessError, match="default/web"):
        world.add(pod("web"))


async def test_step_by_step_a_coroutine_holds_the_binding_cycle_in_its_hand() -> None:
    world = World(watches=False).show(node("a"), pod("web"), pod("other"))
    binding = world.decide()
    assert binding is not None
    assert not world.binder.bound
    assert_placed(world, "web")
    assert await binding
    assert await world.attempt()
    assert [bound.pod for bound in world.binder.bound] == ["web", "other"]
    with pytest.raises(AssertionError, match="no pod is active"):
        world.pop()


async def test_inside_a_running_event_loop_a_world_says_what_to_do_instead() -> None:
    with pytest.raises(RuntimeError, match="from a plain function"):
        World(nodes=[node("a")]).add(pod("web"))


def test_a_world_that_is_dropped_in_mid_binding_leaves_nothing_behind(recwarn: pytest.WarningsRecorder) -> None:
    gc.collect()
    recwarn.clear()  # garbage of earlier tests is not this world's
    world = World(Door, SlowPreparation, nodes=[node("a")]).add(pod("web"))
    assert len(world.scheduler.waiting) == 1
    del world
    gc.collect()
    assert [str(each.message) for each in recwarn] == []


def test_two_runs_of_one_story_decide_alike() -> None:
    def story() -> list[tuple[str, str]]:
        world = World(nodes=[node(name) for name in "abcde"])
        world.add(*(pod(f"web-{number}").requests(cpu="100m") for number in range(20)))
        return [(bound.pod, bound.node) for bound in world.binder.bound]

    assert story() == story()
