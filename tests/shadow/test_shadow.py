"""One shadow: where it would have put pods, what it makes of the live profile's choices, and what it never does."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pytest

from placewright.api.annotations import DEVICES, write_devices
from placewright.api.objects import NodeName
from placewright.api.podgroups import GROUP_LABEL
from placewright.api.pods import PodInfo
from placewright.api.profile import Allocation, EmptyNodes
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import (
    BoolColumn,
    CycleState,
    Diagnosis,
    FilterPlugin,
    Handle,
    IntColumn,
    PermitPlugin,
    PermitResult,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    Reads,
    Rejection,
    ReservePlugin,
    Rows,
    ScorePlugin,
)
from placewright.framework.status import SUCCESS, Status
from placewright.shadow import tape as tape_module
from placewright.shadow.pace import COST_OF_NOTES
from placewright.shadow.shadow import REPORT_SECONDS, Shadow
from placewright.shadow.shadows import TIMED
from randomcases import cases
from scheduler.makers import CONFLICT, PodMaker, node, pod
from scheduler.podgroups.makers import group, members, tried
from shadow.shadowing import Beside, Ticking

#: Packs by CPU: the node with the most of it requested, of those that fit.
PACK = {
    "weights": {"NodeResourcesBalancedAllocation": 0, "NodeResourcesFit": 10},
    "pluginConfig": [
        {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}}}
    ],
}


async def place(world: Beside, *names: str, cpu: str = "1") -> None:
    """Create, decide and bind pods, one after the other, and have the watch confirm them."""
    for name in names:
        maker = pod(name).requests(cpu=cpu)
        world.pods(maker)
        await world.attempt()
        where = world.node_of(name)
        if where is not None:
            world.pods(maker.on(where))


def shares(cluster: Cluster) -> list[float]:
    """Requested CPU of 4, node by node, counted pod by pod."""
    names = [name for name in cluster.names if name is not None]
    return [sum(info.requests.get("cpu", 0) for info in cluster.pods_on(name)) / 4000 for name in names]


def stands(shadow: Shadow, name: str) -> str | None:
    """Where a pod is in the shadow's world."""
    placement = shadow._world.cluster.placement(f"uid-{name}")
    return None if placement is None else placement.node


# --- its own columns ------------------------------------------------------------------------------------------------------------------


async def test_pods_stand_where_the_shadow_put_them_and_the_next_decision_sees_that() -> None:
    world = Beside().nodes(*(node(name) for name in "abc"))
    shadow = world.shadow(**PACK)
    await place(world, "p1", "p2", "p3")
    world.rest(shadow)
    assert {world.node_of(name) for name in ("p1", "p2", "p3")} == {"a", "b", "c"}
    assert len({stands(shadow, name) for name in ("p1", "p2", "p3")}) == 1


async def test_pods_on_which_the_two_differ_are_kept_as_examples_with_the_regret() -> None:
    world = Beside().nodes(*(node(name) for name in "abc"))
    shadow = world.shadow(**PACK)
    await place(world, "p1", "p2", "p3")
    world.rest(shadow)
    packed = stands(shadow, "p1")
    differences = shadow.figures.differences
    others = {name: world.node_of(name) for name in ("p1", "p2", "p3") if world.node_of(name) != packed}
    assert {each.name: each.live for each in differences} == others
    assert {each.shadow for each in differences} == {packed}
    assert all(each.points is not None and each.points > 0 for each in differences)
    await place(world, "large", cpu="4")
    world.rest(shadow)
    assert (differences[-1].name, differences[-1].live) == ("large", None)
    assert differences[-1].shadow not in (None, packed)
    assert shadow.report.shadow_only == 1


async def test_a_decision_that_ends_after_a_report_is_in_the_next_report() -> None:
    world = Beside().nodes(node("a"), node("b"))
    shadow = world.shadow(**PACK)
    world.clock.tick = REPORT_SECONDS  # each step is a piece of work, and each piece ends with a report
    await place(world, "p1")
    world.rest(shadow)
    assert (shadow.figures.decided, shadow.report.decided) == (1, 1)


async def test_what_was_there_before_is_in_the_shadows_world_too() -> None:
    world = Beside().nodes(node("a"), node("b")).pods(pod("old").requests(cpu="3").on("a"))
    shadow = world.shadow(**PACK)
    await place(world, "p1")
    world.rest(shadow)
    assert (stands(shadow, "old"), stands(shadow, "p1"), world.node_of("p1")) == ("a", "a", "b")


async def test_pods_that_others_placed_and_pods_that_left_are_where_they_really_are() -> None:
    world = Beside().nodes(node("a"), node("b"))
    shadow = world.shadow(**PACK)
    await place(world, "p1", "p2")
    world.pods(pod("foreign").requests(cpu="1").on("b"))
    world.rest(shadow)
    assert stands(shadow, "foreign") == "b"
    world.event_handlers.assigned_pod_gone("uid-p1")
    world.event_handlers.assigned_pod_gone("uid-foreign")
    world.rest(shadow)
    assert [stands(shadow, name) for name in ("p1", "p2", "foreign")] == [None, stands(shadow, "p2"), None]
    assert sum(shares(shadow._world.cluster)) == 0.25


async def test_a_pod_whose_binding_failed_is_decided_again() -> None:
    world = Beside().nodes(node("a"))
    shadow = world.shadow()
    world.binder.answers["uid-p"] = CONFLICT
    world.pods(pod("p").requests(cpu="1"))
    await world.attempt()
    world.rest(shadow)
    assert stands(shadow, "p") is None, "the live profile took it back"
    world.now += 100
    world.queue.flush_backoff()
    await world.attempt()
    world.rest(shadow)
    assert (stands(shadow, "p"), shadow.report.decided) == ("a", 2)


def relabelled(maker: PodMaker) -> PodMaker:
    return maker.labels(**{"topology.kubernetes.io/zone": "z1"})


def deleted_with_grace(maker: PodMaker) -> PodMaker:
    return maker.deleting()


def resized(maker: PodMaker) -> PodMaker:
    return maker.requests(cpu="500m")


def given_a_device(maker: PodMaker) -> PodMaker:
    return maker.annotations(**{DEVICES: write_devices("example.com/gpu", (1,))})


def in_a_group(maker: PodMaker) -> PodMaker:
    return maker.labels(**{GROUP_LABEL: "train"})


CHANGES = [relabelled, deleted_with_grace, resized, given_a_device, in_a_group]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("with_the_binding", [True, False])
async def test_a_pod_that_changes_on_its_node_stays_where_the_shadow_put_it(
    change: Callable[[PodMaker], PodMaker], with_the_binding: bool
) -> None:
    """Kubernetes 1.35 adds the zone of the node to the labels of a pod as it binds the pod; people and tools relabel at any time."""
    world = Beside().nodes(node("a"), node("b"))
    shadow = world.shadow(**PACK)
    await place(world, "p1")
    maker = pod("p2").requests(cpu="1")
    world.pods(maker)
    await world.attempt()
    where = world.node_of("p2")
    assert where is not None
    if not with_the_binding:
        world.pods(maker.on(where))
        world.rest(shadow)
    changed = change(maker.on(where))
    world.pods(changed)
    world.rest(shadow)
    first = stands(shadow, "p1")
    assert (stands(shadow, "p2"), where == first) == (first, False)
    there = {info.uid: info for info in shadow._world.cluster.pods_on(NodeName(first or ""))}
    assert there["uid-p2"].labels == changed.build().labels
    assert sum(shares(shadow._world.cluster)) == (0.375 if change is resized else 0.5), "as it counts now"


@pytest.mark.parametrize("seed", range(cases(8)))
async def test_through_any_history_of_changes_pods_stay_where_the_shadow_put_them(seed: int) -> None:
    rng = random.Random(seed)
    world = Beside().nodes(*(node(f"n{number}").offers(cpu="9") for number in range(4)))
    shadow = world.shadow(**PACK)
    makers: dict[str, PodMaker] = {}
    first: dict[str, str | None] = {}
    for number in range(60):
        act = rng.choice(["come", "change", "change", "go"])
        if act == "come" or not makers:
            name = f"p{number}"
            makers[name] = maker = pod(name).requests(cpu="500m")
            world.pods(maker)
            await world.attempt()
            maker = maker.on(world.node_of(name) or "")
            if rng.random() < 0.5:
                maker = rng.choice(CHANGES)(maker)
            makers[name] = maker
            world.pods(maker)
            world.rest(shadow)
            first[name] = stands(shadow, name)
        elif act == "change":
            name = rng.choice(list(makers))
            makers[name] = rng.choice(CHANGES)(makers[name])
            world.pods(makers[name])
        else:
            name = rng.choice(list(makers))
            world.event_handlers.assigned_pod_gone(makers.pop(name).build().uid)
        world.rest(shadow)
        assert {name: stands(shadow, name) for name in makers} == {name: first[name] for name in makers}
    assert shadow.report.other > 0, "or the two worlds were one all the time"


async def test_a_pod_that_only_the_shadow_places_leaves_its_world_when_it_is_deleted() -> None:
    """The live profile keeps off the node that the shadow does not mind."""
    world = Beside().nodes(node("a").taint("special"))
    shadow = world.shadow(plugins={"multiPoint": {"disabled": [{"name": "TaintToleration"}]}})
    waiting = pod("p").requests(cpu="1")
    world.pods(waiting)
    await world.attempt()
    world.rest(shadow)
    assert (shadow.report.shadow_only, stands(shadow, "p")) == (1, "a")
    world.event_handlers.unscheduled_pod_gone(waiting.build())
    world.rest(shadow)
    assert stands(shadow, "p") is None


async def test_a_pod_that_only_the_live_profile_has_room_for_waits_until_something_leaves() -> None:
    """The live profile packs and keeps a node free; the shadow spreads and has none for the big one."""
    world = Beside(**PACK).nodes(node("a"), node("b"))
    shadow = world.shadow()
    await place(world, "p1", "p2")
    await place(world, "big", cpu="4")
    world.rest(shadow)
    assert world.node_of("big") is not None
    assert stands(shadow, "big") is None
    assert (shadow.report.live_only, shadow.report.pending) == (1, 1)
    leaving = stands(shadow, "p1")
    world.event_handlers.assigned_pod_gone("uid-p1")
    world.rest(shadow)
    assert stands(shadow, "big") == leaving
    assert (shadow.report.decided, shadow.report.pending) == (3, 0), "to be placed late is no decision beside a live one"


async def test_a_pod_that_only_the_shadow_has_room_for_stands_in_its_world_alone_and_is_decided_once() -> None:
    world = Beside().nodes(node("a"), node("b"))
    shadow = world.shadow(**PACK)
    await place(world, "p1", "p2")
    await place(world, "big", cpu="4")
    world.rest(shadow)
    kept = stands(shadow, "big")
    assert (world.node_of("big"), shadow.report.shadow_only) == (None, 1)
    assert kept is not None
    world.event_handlers.assigned_pod_gone("uid-p1")
    world.now += 100
    world.queue.flush_backoff()
    await world.attempt()
    world.rest(shadow)
    assert world.node_of("big") is not None
    assert (stands(shadow, "big"), shadow.report.decided) == (kept, 3)


# --- what it makes of the live profile ------------------------------------------------------------------------------------------------

#: Nothing but MostAllocated of CPU scores, ten points for one.
CPU_ALONE = {
    **PACK,
    "plugins": {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeResourcesFit"}]}},
    "weights": {"NodeResourcesFit": 10},
}


class Plain:
    """A shadow in a few plain lines: CPU alone, node by node, with what each node has and what stands there."""

    def __init__(self, capacity: dict[str, int]) -> None:
        self.capacity = capacity
        self.used = dict.fromkeys(capacity, 0)
        self.regrets: list[int] = []
        self.not_feasible = 0

    def totals(self, asked: int) -> dict[str, int]:
        """The score of each node that has room."""
        room = {name: self.used[name] + asked for name, most in self.capacity.items() if self.used[name] + asked <= most}
        return {name: 10 * (used * 100 // self.capacity[name]) for name, used in room.items()}

    def decide(self, asked: int, live: str | None, chosen: str | None) -> bool:
        """Whether the choice is one that this shadow could have made; it is then taken to be made."""
        totals = self.totals(asked)
        if chosen is None:
            return not totals
        if live is not None and live not in totals:
            self.not_feasible += 1
        elif live is not None and len(totals) > 1:
            self.regrets.append(max(totals.values()) - totals[live])
        self.used[chosen] += asked
        best = [name for name, total in totals.items() if total == max(totals.values())]
        return chosen == live if live in best else chosen in best


@pytest.mark.parametrize("seed", range(cases(6)))
async def test_choices_regret_and_use_are_those_of_a_plain_shadow(seed: int) -> None:
    rng = random.Random(seed)
    capacity = {f"n{number}": 1000 * rng.randint(3, 9) for number in range(6)}
    world = Beside().nodes(*(node(name).offers(cpu=f"{cpu}m") for name, cpu in capacity.items()))
    shadow = world.shadow(**CPU_ALONE)
    plain, same = Plain(capacity), 0
    for number in range(80):
        asked = 50 * rng.randint(1, 20)
        name = f"p{number}"
        await place(world, name, cpu=f"{asked}m")
        world.rest(shadow)
        live, chosen = world.node_of(name), stands(shadow, name)
        assert plain.decide(asked, live, chosen), name
        same += live == chosen is not None
    report = shadow.report
    assert plain.regrets
    assert report.same == same
    assert report.not_feasible == plain.not_feasible
    assert report.regret.decisions == len(plain.regrets)
    assert report.regret.mean_points == round(sum(plain.regrets) / len(plain.regrets), 2)
    assert report.regret.max_points == max(plain.regrets)
    used = [100 * plain.used[name] / most for name, most in capacity.items()]
    mean = sum(used) / len(used)
    deviation = (sum((each - mean) ** 2 for each in used) / len(used)) ** 0.5
    assert report.resources is not None
    cpu = next(use for use in report.resources if use.name == "cpu")
    assert cpu.shadow == Allocation(mean_percent=round(mean, 2), deviation_percent=round(deviation, 2))
    assert report.empty_nodes.shadow == sum(each == 0 for each in plain.used.values())


async def test_where_the_live_totals_are_told_the_shadows_nodes_are_judged_by_them_too() -> None:
    world = Beside(weights={"NodeResourcesBalancedAllocation": 0}).nodes(node("a"), node("b"))
    world.cycle.detail.on = True
    shadow = world.shadow(**PACK)
    await place(world, "p1", "p2")
    world.rest(shadow)
    # p1 takes either node of two alike, and the shadow the same; p2 goes to the empty one in truth. For the live profile, NodeResourcesFit
    # (least allocated of CPU and memory) is the one difference: a pod of one CPU and no memory request counts 1000m and 200 MB there.
    assert (shadow.report.same, shadow.report.other) == (1, 1)
    assert shadow.report.live_regret.decisions == 2
    assert 10 <= shadow.report.live_regret.max_points <= 14, "25 points of CPU and 1 of memory, halved"


async def test_figures_begin_anew_with_another_generation_of_the_live_profile_and_the_world_goes_on() -> None:
    world = Beside().nodes(node("a"), node("b"))
    shadow = world.shadow(**PACK)
    await place(world, "p1", "p2")
    world.rest(shadow)
    world.use_profile(generation=2)
    await place(world, "p3")
    world.rest(shadow)
    assert (shadow.report.live_generation, shadow.report.decided) == (2, 1)
    assert stands(shadow, "p3") == stands(shadow, "p1")


def test_empty_nodes_are_those_with_nothing_but_daemons() -> None:
    world = Beside().nodes(*(node(name) for name in "abc"))
    daemon = pod("d").on("a").owned_by("DaemonSet", "d")
    world.pods(daemon, pod("p").on("b"))
    shadow = world.shadow()
    assert shadow.report.empty_nodes == EmptyNodes(shadow=2, live=2)


# --- what it never does -----------------------------------------------------------------------------------------------------------------


def plugins_of(said: list[str]) -> tuple[type[Loud], ...]:
    """A plugin that says whenever it is asked for more than an opinion."""

    class Told(Loud):
        name = "Told"
        calls = said

    return (Told,)


class Loud(FilterPlugin, PostFilterPlugin, ReservePlugin, PermitPlugin, PreBindPlugin):
    """Accepts everything."""

    calls: list[str]

    def sign(self, pod: PodInfo) -> tuple[()]:
        return ()

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        self.calls.append("filter")
        return np.ones(len(rows), np.bool_)

    def explain(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> list[Rejection]:
        return []

    def post_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, diagnosis: Diagnosis) -> PostFilterResult:
        self.calls.append("postFilter")
        return PostFilterResult(SUCCESS, NodeName("a"))

    def reserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status:
        self.calls.append("reserve")
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> None:
        self.calls.append("unreserve")

    def permit(self, state: CycleState, pod: PodInfo, node: NodeName) -> PermitResult:
        self.calls.append("permit")
        return PermitResult(SUCCESS)

    async def pre_bind(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status:
        self.calls.append("preBind")
        return SUCCESS


async def test_a_shadow_filters_and_scores_and_does_nothing_else() -> None:
    said: list[str] = []
    world = Beside(*plugins_of(said)).nodes(node("a"))
    extender = {"urlPrefix": "http://127.0.0.1:1", "filterVerb": "filter", "prioritizeVerb": "score", "bindVerb": "bind", "weight": 1}
    shadow = world.shadow(plugins={"multiPoint": {"enabled": [{"name": "Told"}]}}, extenders=[extender])
    await place(world, "p1")
    await place(world, "big", cpu="100")
    world.rest(shadow)
    assert set(said) == {"filter"}
    assert (shadow.report.same, shadow.report.neither, shadow.report.errors) == (1, 1, 0)
    assert [name for name, *_ in world.binder.bound] == ["p1"]
    assert world.evictor.evicted == []


@pytest.mark.parametrize("when", ["filter", "build"])
async def test_what_breaks_in_a_shadow_is_counted_and_nothing_else_comes_of_it(when: str) -> None:
    class Broken(Loud):
        name = "Broken"
        calls: ClassVar[list[str]] = []

        def __init__(self, args: Any, handle: Handle) -> None:
            super().__init__(args, handle)
            if when == "build":
                raise RuntimeError("no way")

        def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
            raise RuntimeError("no way")

    world = Beside(Broken).nodes(node("a"), node("b"))
    shadow = world.shadow(plugins={"multiPoint": {"enabled": [{"name": "Broken"}]}})
    await place(world, "p1", "p2", "p3")
    world.rest(shadow)
    assert [world.node_of(name) is not None for name in ("p1", "p2", "p3")] == [True, True, True]
    assert [stands(shadow, name) for name in ("p1", "p2", "p3")] == [world.node_of(name) for name in ("p1", "p2", "p3")]
    assert (shadow.report.errors, shadow.report.decided) == (3 if when == "filter" else 4, 0)
    assert shadow.report.last_error


# --- what it may cost -------------------------------------------------------------------------------------------------------------------


class Slow(ScorePlugin):
    """Takes milliseconds for a decision; the clock stands still but for it."""

    name = "Slow"
    clock: ClassVar[Ticking]
    reads = Reads.CLUSTER

    def sign(self, pod: PodInfo) -> tuple[()]:
        return ()

    def score(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> IntColumn:
        self.clock.now += 0.004
        return np.zeros(len(rows), np.int64)


@pytest.mark.parametrize("budget", [1, 5, 20, 50])
async def test_between_any_two_of_its_turns_a_shadow_took_no_more_than_its_share(budget: float) -> None:
    """However much there is to do: a decision takes 4 ms, and a pod comes every 2 ms."""
    world = Beside(Slow).nodes(node("a").offers(cpu="1000", pods="10000"), node("b").offers(cpu="1000", pods="10000"))
    Slow.clock = world.clock
    shadow = world.shadow(budget=budget, plugins={"multiPoint": {"enabled": [{"name": "Slow"}]}})
    shadow.tape = tape_module.Tape(most_decisions=20)
    turns: list[tuple[float, float]] = []
    for number in range(5000):
        world.clock.now += 0.002
        if number < 600:
            await place(world, f"p{number}")
        began, spent = world.clock.now, shadow.pace.spent
        world.shadows.work()
        if shadow.pace.spent > spent:
            turns.append((began, shadow.pace.spent - spent))
    assert len(turns) > 10
    for first, (began, _) in enumerate(turns):
        used = 0.0
        for (_, took), (later, _) in pairwise(turns[first:]):
            used += took
            assert used <= budget / 100 * (later - began) + 1e-9
    world.rest(shadow)
    report = shadow.report
    assert report.pods == 600
    assert 0 < report.decided < 600
    assert report.sampled_percent == round(100 * report.decided / 600, 1)


async def test_what_others_do_for_a_shadow_is_its_time_and_more_than_that() -> None:
    """A clock that ticks at each look: a note that is timed takes a tick, and one in so many is timed."""
    world = Beside().nodes(*(node(f"n{number}") for number in range(2)))
    shadow = world.shadow(budget=10)
    spent, due = shadow.pace.spent, world.clock.now
    shadow.pace.due = due
    world.clock.tick = 1e-6
    for number in range(20 * TIMED):
        world.cluster.set_node(node(f"n{number % 2}").offers(cpu=str(number)).build())
    told = 20 * TIMED * 1e-6
    assert shadow.pace.spent - spent == pytest.approx(COST_OF_NOTES * told)
    assert shadow.pace.due - due >= COST_OF_NOTES * told / 0.10


async def test_a_group_that_is_noted_is_the_shadows_time_too() -> None:
    world = Beside().nodes(node("a"), node("b"))
    shadow = world.shadow()
    world.event_handlers.cluster_object(group("job", 3))
    world.pods(*members("job", 3))
    spent = shadow.pace.spent
    world.clock.tick = 1e-6
    await tried(world)
    assert shadow.pace.spent - spent >= COST_OF_NOTES * 0.99e-6


async def test_a_shadow_that_falls_too_far_behind_begins_anew_with_the_cluster_as_it_is() -> None:
    world = Beside().nodes(node("a"), node("b"))
    shadow = world.shadow(**PACK)
    shadow.tape = tape_module.Tape(most_entries=2)
    await place(world, "p1", "p2", "p3")
    world.rest(shadow)
    assert (shadow.report.restarts, shadow.report.decided, shadow.report.pods) == (1, 0, 3)
    assert [stands(shadow, name) for name in ("p1", "p2", "p3")] == [world.node_of(name) for name in ("p1", "p2", "p3")]


async def test_nobody_notes_anything_where_there_is_no_shadow() -> None:
    world = Beside().nodes(node("a"))
    shadow = world.shadow()
    world.shadows.adopt([])
    await place(world, "p1")
    assert world.cluster._listener is None
    assert len(shadow.tape) == 0
