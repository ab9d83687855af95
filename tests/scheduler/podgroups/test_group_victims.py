"""Victims of a group: it leaves as a whole, or as many of it as it can spare, whoever makes them leave."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from placewright.api.decode import convert
from placewright.api.podgroups import VOLCANO_GROUP_ANNOTATION, VolcanoPodGroup, Workload
from placewright.api.pods import PodInfo
from placewright.queue.queued import SubQueue
from plugins.preempting import budget as disruption_budget
from scheduler.makers import PodMaker, World, node, pod

from .makers import bound, group, member, members, native, native_member, tried
from .test_making_room import gone


def low(of: str, count: int, cpu: str = "1", priority: int = 10) -> list[PodMaker]:
    """Members that run, one on each node `n0` and so on."""
    return [member(of, index, cpu).priority(priority).on(f"n{index}") for index in range(count)]


def with_nodes(count: int, cpu: str = "8") -> World:
    return World().nodes(*(node(f"n{n}").offers(cpu=cpu) for n in range(count)))


def left(world: World) -> list[str]:
    return sorted(victim for victim, _, _ in world.evictor.evicted)


async def after(world: World) -> list[str]:
    """Who was made to leave, once everybody who waits was tried."""
    await tried(world)
    await world.scheduler.drain()
    return left(world)


# --- who leaves with whom ------------------------------------------------------------------------------------------------------


async def test_a_group_makes_all_of_another_group_leave_when_it_would_be_broken() -> None:
    world = with_nodes(4)
    world.event_handlers.cluster_object(group("la", 4))
    world.pods(*low("la", 4, "6"))
    world.event_handlers.cluster_object(group("hb", 2))
    world.pods(*(maker.priority(100) for maker in members("hb", 2, "8")))
    assert await after(world) == [f"la-{n}" for n in range(4)]
    await gone(world)
    assert sorted(bound(world)) == ["hb-0", "hb-1"]


async def test_a_single_pod_makes_all_of_a_group_leave_when_it_would_be_broken() -> None:
    world = with_nodes(3)
    world.event_handlers.cluster_object(group("la", 3))
    world.pods(*low("la", 3, "6"), pod("vip").requests(cpu="8").priority(100))
    assert await after(world) == ["la-0", "la-1", "la-2"]
    world.evictor.evicted.sort()
    await gone(world)
    assert bound(world) == ["vip"]


async def test_a_single_pod_rather_makes_a_pod_leave_that_is_in_no_group() -> None:
    world = with_nodes(3)
    world.event_handlers.cluster_object(group("la", 2))
    world.pods(*low("la", 2, "6"), pod("alone").requests(cpu="6").priority(10).on("n2"), pod("vip").requests(cpu="8").priority(100))
    assert await after(world) == ["alone"]


async def test_members_that_a_group_can_spare_leave_by_themselves() -> None:
    world = with_nodes(4)
    world.event_handlers.cluster_object(group("la", 3))
    world.pods(*low("la", 4, "6"), pod("vip").requests(cpu="8").priority(100))
    assert len(await after(world)) == 1


async def test_two_preemptors_one_after_the_other_do_not_take_what_a_group_can_spare_twice() -> None:
    world = with_nodes(4)
    world.event_handlers.cluster_object(group("la", 3))
    world.pods(*low("la", 4, "6"))
    world.pods(*(pod(f"vip-{n}").requests(cpu="8").priority(100) for n in range(2)))
    await tried(world)
    await world.scheduler.drain()
    assert left(world) == [f"la-{n}" for n in range(4)]


async def test_the_preempting_group_takes_of_another_what_it_can_spare_and_no_more() -> None:
    world = with_nodes(4)
    world.event_handlers.cluster_object(group("la", 2))
    world.pods(*low("la", 4, "6"))
    world.event_handlers.cluster_object(group("hb", 2))
    world.pods(*(maker.priority(100) for maker in members("hb", 2, "8")))
    assert len(await after(world)) == 2


async def test_a_group_on_one_node_loses_the_least_important_that_it_can_spare() -> None:
    world = World().nodes(node("a").offers(cpu="4"))
    world.event_handlers.cluster_object(group("la", 2))
    world.pods(*(member("la", n).priority(n).on("a") for n in range(4)), pod("vip").requests(cpu="2").priority(100))
    assert await after(world) == ["la-0", "la-1"]


async def test_a_group_on_one_node_goes_as_a_whole_when_more_is_needed_than_it_can_spare() -> None:
    world = World().nodes(node("a").offers(cpu="4"))
    world.event_handlers.cluster_object(group("la", 2))
    world.pods(*(member("la", n).priority(n).on("a") for n in range(4)), pod("vip").requests(cpu="3").priority(100))
    assert await after(world) == [f"la-{n}" for n in range(4)]


async def test_when_a_group_goes_as_a_whole_those_who_left_for_its_sake_stay() -> None:
    """Two CPUs are wanted: `x` (5) would go first, then members (6); three of the group have to, so all do, and `x` need not."""
    world = World().nodes(node("a").offers(cpu="4"))
    world.event_handlers.cluster_object(group("la", 2))
    world.pods(*(member("la", n).priority(6).on("a") for n in range(3)), pod("x").requests(cpu="1").priority(5).on("a"))
    world.pods(pod("vip").requests(cpu="3").priority(100))
    assert await after(world) == ["la-0", "la-1", "la-2"]


async def test_a_group_of_which_one_member_is_as_important_as_the_preemptor_stays() -> None:
    world = with_nodes(2)
    world.event_handlers.cluster_object(group("la", 2))
    world.pods(member("la", 0, "6").priority(10).on("n0"), member("la", 1, "6").priority(100).on("n1"))
    world.pods(pod("vip").requests(cpu="8").priority(100))
    assert await after(world) == []
    assert world.place("vip") is SubQueue.UNSCHEDULABLE


@pytest.mark.parametrize("preemptors", [1, 2], ids=["pod", "group"])
@pytest.mark.parametrize("form", ["volcano", "workload"])
async def test_groups_that_are_declared_otherwise_leave_as_a_whole_too(form: str, preemptors: int) -> None:
    world = with_nodes(3)
    running = [pod(f"la-{n}").requests(cpu="6").priority(10).on(f"n{n}") for n in range(3)]
    meta = {"name": "la", "namespace": "default", "uid": "uid-la", "resourceVersion": "1"}
    if form == "volcano":
        world.event_handlers.cluster_object(convert({"metadata": meta, "spec": {"minMember": 3}}, VolcanoPodGroup))
        running = [maker.annotations(**{VOLCANO_GROUP_ANNOTATION: "la"}) for maker in running]
    else:
        policies = [{"name": "workers", "policy": {"gang": {"minCount": 3}}}]
        world.event_handlers.cluster_object(convert({"metadata": meta, "spec": {"podGroups": policies}}, Workload))
        running = [maker.spec(workloadRef={"name": "la", "podGroup": "workers"}) for maker in running]
    world.pods(*running)
    if preemptors == 1:
        world.pods(pod("vip").requests(cpu="8").priority(100))
    else:
        world.event_handlers.cluster_object(group("hb", 2))
        world.pods(*(maker.priority(100) for maker in members("hb", 2, "8")))
    assert await after(world) == ["la-0", "la-1", "la-2"]


async def test_a_budget_of_one_member_on_another_node_protects_its_group() -> None:
    """Two groups of two would do. One member of `la` is under a budget that allows nobody to go: then `lb` goes, though more important."""
    world = with_nodes(4)
    for name, level in (("la", 10), ("lb", 20)):
        world.event_handlers.cluster_object(group(name, 2))
        for n in range(2):
            maker = member(name, n, "6").priority(level).on(f"n{n + (2 if name == 'lb' else 0)}")
            if (name, n) == ("la", 1):
                maker = maker.labels(guarded="yes")
            world.pods(maker)
    world.event_handlers.cluster_object(disruption_budget({"matchLabels": {"guarded": "yes"}}))
    world.pods(pod("vip").requests(cpu="8").priority(100))
    assert await after(world) == ["lb-0", "lb-1"]


async def test_members_that_nobody_declares_leave_one_by_one() -> None:
    world = with_nodes(2)
    world.pods(*low("la", 2, "6"), pod("vip").requests(cpu="8").priority(100))
    assert len(await after(world)) == 1


async def test_whoever_an_extender_would_leave_behind_of_a_group_leaves_with_it() -> None:
    """The extender strikes a victim off the list; without the others it would be left alone, and one that can be spared would not."""
    world = with_nodes(2)
    world.event_handlers.cluster_object(group("la", 2))
    world.pods(*low("la", 2, "6"), pod("x").requests(cpu="2").priority(10).on("n0"))
    evaluator = next(iter(world.profiles.values()))
    vip = pod("vip").requests(cpu="8").priority(100).build()
    evaluation = evaluator.evaluate(vip)
    found = evaluator.runtime.run_post_filter(evaluation.state, vip, evaluator.diagnose(evaluation))
    assert found.alternatives is not None
    chosen = found.alternatives.choose({node: replace(who, pods=who.pods[:1]) for node, who in found.alternatives.victims.items()})
    assert sorted(victim.name for victim in chosen.victims) == ["la-0", "la-1"]


async def test_a_group_is_let_back_whose_members_turn_out_not_to_be_needed() -> None:
    """Both members look for themselves: the first may take the small group, the second needs the large one, which is enough for both."""
    world = with_nodes(2, "8")
    world.pods(pod("small").requests(cpu="2").priority(5).on("n0"), pod("large").requests(cpu="8").priority(10).on("n1"))
    world.event_handlers.cluster_object(group("hb", 2))
    world.pods(member("hb", 0, "4").priority(100), member("hb", 1, "4").priority(100), member("hb", 2, "1").priority(100))
    world.pods(pod("filler").requests(cpu="3").priority(500).on("n0"))
    assert len(await after(world)) == 1


async def test_a_victims_group_is_not_told_twice_while_it_leaves() -> None:
    """The group is tried again between the eviction and its news; nobody is told again, and nobody else."""
    world = with_nodes(4)
    world.event_handlers.cluster_object(group("la", 4))
    world.pods(*low("la", 4, "6"))
    world.event_handlers.cluster_object(group("hb", 2))
    makers = [maker.priority(100) for maker in members("hb", 2, "8")]
    world.pods(*makers)
    await after(world)
    told = list(world.evictor.evicted)
    for maker in makers:
        world.queue.retry(maker.build().uid)
    world.now += 60
    world.queue.flush_backoff()
    await after(world)
    assert world.evictor.evicted == told
    observed = [len(attempt.failure.victims) for attempt in world.log.attempts if attempt.failure is not None]
    assert sum(observed) == 4, "metrics observe this: each victim once"


# --- evictions that fail -------------------------------------------------------------------------------------------------------


class Failing:
    """Evictions of some pods fail so often; time passes at once while the scheduler waits."""

    def __init__(self, world: World, **failures: int) -> None:
        self.world = world
        self.failures = {name.replace("_", "-"): times for name, times in failures.items()}
        self.waited: list[float] = []
        self.evicted: list[str] = []
        preemption: Any = world.scheduler.attempts.preemption
        object.__setattr__(preemption, "sleep", self.sleep)
        world.evictor.evict = self.evict  # type: ignore[method-assign]

    async def evict(self, victim: PodInfo, preemptor: PodInfo, on: str) -> None:
        if self.failures.get(victim.name, 0):
            self.failures[victim.name] -= 1
            raise RuntimeError("429")
        self.evicted.append(victim.name)
        self.world.event_handlers.assigned_pod_gone(victim.uid)

    async def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)


@pytest.mark.parametrize("stuck", ["la_0", "la_3"])
async def test_the_rest_of_a_group_is_told_again_until_it_leaves(stuck: str) -> None:
    world = with_nodes(4)
    failing = Failing(world, **{stuck: 3})
    world.event_handlers.cluster_object(group("la", 4))
    world.pods(*low("la", 4, "6"), pod("vip").requests(cpu="8").priority(100))
    await tried(world)
    await world.scheduler.drain()
    assert sorted(failing.evicted) == [f"la-{n}" for n in range(4)]
    assert failing.waited == sorted(failing.waited)
    assert len(failing.waited) == 3
    assert world.place("vip") in (SubQueue.BACKOFF, SubQueue.ACTIVE), "nothing is lost"


async def test_a_group_of_which_nobody_could_be_evicted_is_left_alone() -> None:
    world = with_nodes(2)
    failing = Failing(world, la_0=99, la_1=99)
    world.event_handlers.cluster_object(group("la", 2))
    world.pods(*low("la", 2, "6"), pod("vip").requests(cpu="8").priority(100))
    await tried(world)
    await world.scheduler.drain()
    assert failing.waited == []
    assert world.place("vip") is SubQueue.BACKOFF


async def test_a_member_that_ended_meanwhile_is_not_told_again() -> None:
    world = with_nodes(2)
    failing = Failing(world, la_0=99)
    world.event_handlers.cluster_object(group("la", 2))
    world.pods(*low("la", 2, "6"), pod("vip").requests(cpu="8").priority(100))

    async def ended(seconds: float) -> None:
        failing.waited.append(seconds)
        world.event_handlers.assigned_pod_gone("uid-la-0")

    object.__setattr__(world.scheduler.attempts.preemption, "sleep", ended)
    await tried(world)
    await world.scheduler.drain()
    assert failing.waited == [1]


# --- Kubernetes' own groups ----------------------------------------------------------------------------------------------------

#: name: (CPUs of nodes, groups, who runs: (name, node, CPUs, priority, group), who comes: (name, CPUs, priority, group), who leaves, who is
#: placed, whether it is a group that preempts).
SITUATIONS: dict[str, Any] = {
    "all of a node is cleared for a gang": (
        [3], [native("big", 3, priority=100)], [(f"l{n}", 0, "1", 10, "") for n in range(3)],
        [(f"h{n}", "1", 100, "big") for n in range(3)], ["l0", "l1", "l2"], ["h0", "h1", "h2"],
    ),
    "all of a node is cleared for a basic group": (
        [3], [native("big", None, priority=100)], [(f"l{n}", 0, "1", 10, "") for n in range(3)],
        [(f"h{n}", "1", 100, "big") for n in range(3)], ["l0", "l1", "l2"], ["h0", "h1", "h2"],
    ),
    "a gang takes what is free and makes the others leave that it needs": (
        [2, 2], [native("big", 3, priority=100)], [("l0", 0, "2", 10, ""), ("l1", 1, "1", 10, "")],
        [(f"h{n}", "1", 100, "big") for n in range(3)], ["l0"], ["h0", "h1", "h2"],
    ),
    "a basic group makes the least important leave": (
        [2, 2], [native("big", None, priority=100)], [("l0", 0, "1", 10, ""), ("l1", 1, "2", 5, "")],
        [(f"h{n}", "1", 100, "big") for n in range(3)], ["l1"], ["h0", "h1", "h2"],
    ),
    "four of four leave on two nodes": (
        [2, 2], [native("big", 4, priority=100)], [(f"l{n}", n // 2, "1", 10, "") for n in range(4)],
        [(f"h{n}", "1", 100, "big") for n in range(4)], ["l0", "l1", "l2", "l3"], ["h0", "h1", "h2", "h3"],
    ),
    "nobody leaves where a more important pod keeps the gang from fitting": (
        [3], [native("big", 3, priority=100)], [("m", 0, "1", 500, ""), ("l0", 0, "1", 10, ""), ("l1", 0, "1", 10, "")],
        [(f"h{n}", "1", 100, "big") for n in range(3)], [], [],
    ),
    "the less important leave": (
        [3], [native("big", 2, priority=100)], [("m", 0, "1", 50, ""), ("l0", 0, "1", 10, ""), ("l1", 0, "1", 10, "")],
        [(f"h{n}", "1", 100, "big") for n in range(2)], ["l0", "l1"], ["h0", "h1"],
    ),
    "a gang of mode PodGroup leaves as a whole for one pod of another": (
        [3], [native("big", 1, priority=100), native("small", 3, priority=10, disruptionMode="PodGroup")],
        [(f"l{n}", 0, "1", 10, "small") for n in range(3)], [("h0", "1", 100, "big")], ["l0", "l1", "l2"], ["h0"],
    ),
    "a basic group of mode PodGroup leaves as a whole, too": (
        [3], [native("big", 1, priority=100), native("small", None, priority=10, disruptionMode="PodGroup")],
        [(f"l{n}", 0, "1", 10, "small") for n in range(3)], [("h0", "1", 100, "big")], ["l0", "l1", "l2"], ["h0"],
    ),
    "the groups' priorities go before those of their pods": (
        [3], [native("big", 1, priority=100), native("small", 3, priority=10, disruptionMode="PodGroup")],
        [(f"l{n}", 0, "1", 100, "small") for n in range(3)], [("h0", "1", 10, "big")], ["l0", "l1", "l2"], ["h0"],
    ),
    "a group of low priority makes nobody leave, whatever its pods' priority": (
        [3], [native("big", 1, priority=10), native("small", 3, priority=100, disruptionMode="PodGroup")],
        [(f"l{n}", 0, "1", 10, "small") for n in range(3)], [("h0", "1", 100, "big")], [], [],
    ),
    "of a gang of one, a pod makes one leave": (
        [3], [native("small", 1, priority=10)],
        [("l0", 0, "1", 30, "small"), ("l1", 0, "1", 20, "small"), ("l2", 0, "1", 10, "small")], [("h0", "1", 100, "")], ["l2"], ["h0"],
    ),
    "mode Pod lets a gang fall below its minimum": (
        [3], [native("small", 3, priority=10, disruptionMode="Pod")],
        [(f"l{n}", 0, "1", 10 + n, "small") for n in range(3)], [("h0", "1", 100, "")], ["l0"], ["h0"],
    ),
    "mode single is how later versions say Pod": (
        [3], [native("small", 3, priority=10, disruptionMode={"single": {}})],
        [(f"l{n}", 0, "1", 10 + n, "small") for n in range(3)], [("h0", "1", 100, "")], ["l0"], ["h0"],
    ),
    "mode all is how later versions say PodGroup": (
        [3], [native("small", 1, priority=10, disruptionMode={"all": {}})],
        [(f"l{n}", 0, "1", 10 + n, "small") for n in range(3)], [("h0", "1", 100, "")], ["l0", "l1", "l2"], ["h0"],
    ),
    "a gang without a mode leaves as a whole for a pod": (
        [3], [native("small", 3)],
        [(f"l{n}", 0, "1", 10, "small") for n in range(3)], [("h0", "1", 100, "")], ["l0", "l1", "l2"], ["h0"],
    ),
}  # fmt: skip


def native_world(nodes: list[int], groups: list[Any], running: list[Any], coming: list[Any]) -> World:
    world = World().nodes(*(node(f"n{n}").offers(cpu=str(cpu)) for n, cpu in enumerate(nodes)))
    for declared in groups:
        world.event_handlers.cluster_object(declared)
    for name, at, cpu, priority, of in running:
        maker = native_member(of, name, cpu) if of else pod(name).requests(cpu=cpu)
        world.pods(maker.priority(priority).on(f"n{at}"))
    for name, cpu, priority, of in coming:
        world.pods((native_member(of, name, cpu) if of else pod(name).requests(cpu=cpu)).priority(priority))
    return world


@pytest.mark.parametrize("name", SITUATIONS)
async def test_kubernetes_own_groups(name: str) -> None:
    *situation, leave, placed = SITUATIONS[name]
    world = native_world(*situation)
    for _ in range(len(situation[3]) + 1):  # members of a basic group are placed one by one
        await after(world)
        await gone(world)
    assert left(world) == leave
    assert sorted(bound(world)) == placed
    by = {note.split()[2] for _, _, reason, _, note in world.events.recorded if reason == "Preempted"}
    assert by == ({"podgroup" if situation[3][0][3] else "pod"} if leave else set())


async def test_a_budget_is_respected_where_another_pod_can_leave() -> None:
    world = World().nodes(node("a").offers(cpu="3"))
    world.event_handlers.cluster_object(disruption_budget({"matchLabels": {"app": "foo"}}))
    world.event_handlers.cluster_object(native("big", 2, priority=100))
    world.pods(*(pod(f"l{n}").labels(app="foo").requests(cpu="1").priority(10).on("a") for n in range(2)))
    world.pods(pod("l2").requests(cpu="1").priority(10).on("a"))
    world.pods(*(native_member("big", f"h{n}", "500m").priority(100) for n in range(2)))
    assert await after(world) == ["l2"]


async def test_a_victim_is_told_which_group_made_it_leave() -> None:
    world = native_world(*SITUATIONS["the less important leave"][:4])
    await after(world)
    notes = {note for _, _, reason, _, note in world.events.recorded if reason == "Preempted"}
    assert {note.partition(" (")[0] for note in notes} == {"Preempted by podgroup uid-big on node cluster"}
    assert all(" of group big gets node " in note for note in notes)
