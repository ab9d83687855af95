from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

from framework.scripts import Script
from placewright.api.extenders import ExtenderError, ManagedResource, NodeVictims
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.framework.events import Action, ClusterEvent, EventResource
from placewright.queue.queued import SubQueue
from placewright.testing import FakeExtender

from .makers import World, node, pod
from .test_cycle import NO_SCORES as NO_WEIGHTS

NO_SCORES: dict[str, Any] = {**NO_WEIGHTS}


def asking(*extenders: FakeExtender, names: str = "abc") -> World:
    """A world of a few nodes whose profile has these extenders and scores by nothing else."""
    world = World(**NO_SCORES).nodes(*map(node, names))
    world.use_profile(asking=extenders, **NO_SCORES)
    return world


async def placed(world: World, name: str = "web") -> str | None:
    world.pods(pod(name).requests(cpu="1"))
    await world.attempt()
    return world.node_of(name)


def told(world: World, name: str = "web") -> tuple[str, str]:
    """Reason and message of the pod's last condition."""
    return next((reason, message) for who, reason, message, _ in reversed(world.status.written) if who == name)


# --- filter ------------------------------------------------------------------------------------------------------------------------


async def test_only_nodes_that_the_extender_keeps_are_used() -> None:
    picky = FakeExtender()
    picky.failed, picky.unresolvable = {"a": "no licence"}, {"b": "no such device"}
    assert await placed(asking(picky)) == "c"
    assert picky.asked == [("filter", "web", ("a", "b", "c"))], "a single node left is not scored"


async def test_each_extender_sees_what_those_before_it_left() -> None:
    first, second = FakeExtender("http://one"), FakeExtender("http://two")
    first.failed = {"b": "no"}
    assert await placed(asking(first, second)) in {"a", "c"}
    assert second.asked[0] == ("filter", "web", ("a", "c"))


async def test_it_is_asked_only_about_nodes_that_the_plugins_left() -> None:
    asked = FakeExtender()
    world = asking(asked, names="ab").nodes(node("c").cordoned())
    await placed(world)
    assert asked.asked[0] == ("filter", "web", ("a", "b"))


async def test_when_the_extender_refuses_every_node_its_reasons_are_told_and_any_event_brings_the_pod_back() -> None:
    picky = FakeExtender()
    picky.failed, picky.unresolvable = {"a": "no licence", "b": "no licence"}, {"c": "no such device"}
    world = asking(picky)
    assert await placed(world) is None
    assert told(world)[0] == "Unschedulable"
    assert told(world)[1].startswith("0/3 nodes are available: 1 no such device, 2 no licence. no new claims")
    assert world.queue.rejections("default-scheduler") == {"Extender": 1}
    assert world.place("web") is SubQueue.UNSCHEDULABLE
    assert world.queue.move(ClusterEvent(EventResource.SERVICE, Action.ADD)) == 1, "nobody knows what an extender looks at"


async def test_a_node_dropped_without_a_word_has_no_reason() -> None:
    silent = FakeExtender()
    silent.dropped = {"a", "b", "c"}
    world = asking(silent)
    assert await placed(world) is None
    assert told(world)[1].startswith("0/3 nodes are available: no new claims")
    assert world.queue.rejections("default-scheduler") == {"Extender": 1}


async def test_where_the_plugins_leave_nothing_no_extender_is_asked() -> None:
    asked = FakeExtender()
    world = asking(asked, names="").nodes(node("a").cordoned())
    assert await placed(world) is None
    assert asked.asked == []
    assert world.queue.rejections("default-scheduler") == {"NodeUnschedulable": 1}


async def test_an_extender_that_fails_is_an_error_of_the_scheduler_and_the_pod_backs_off() -> None:
    dead = FakeExtender()
    dead.fail(ExtenderError("connection refused"), "filter", always=True)
    world = asking(dead)
    assert await placed(world) is None
    assert told(world) == ("SchedulerError", "connection refused")
    assert world.place("web") is SubQueue.BACKOFF


async def test_one_that_is_ignorable_is_passed_over_when_it_fails() -> None:
    dead, second = FakeExtender("http://one", ignorable=True), FakeExtender("http://two")
    dead.fail(ExtenderError("connection refused"), "filter", "prioritize", always=True)
    second.failed = {"a": "no"}
    assert await placed(asking(dead, second)) in {"b", "c"}
    assert second.asked[0] == ("filter", "web", ("a", "b", "c"))


async def test_an_extender_without_a_filter_verb_is_not_asked_to_filter() -> None:
    scores = FakeExtender(filter_verb="")
    scores.scores = {"b": 1}
    assert await placed(asking(scores)) == "b"
    assert scores.verbs == ["prioritize"]


async def test_it_is_not_asked_about_pods_that_want_nothing_it_manages() -> None:
    gpus = FakeExtender(managed_resources=(ManagedResource("example.com/gpu"),))
    world = asking(gpus, names="").nodes(node("a").offers(**{"example.com/gpu": "1"}))
    assert await placed(world) == "a"
    assert gpus.asked == []
    world.pods(pod("wants").requests(**{"example.com/gpu": "1"}))
    await world.attempt()
    assert gpus.asked == [("filter", "wants", ("a",))]


# --- prioritize ----------------------------------------------------------------------------------------------------------------------


async def test_its_scores_count_ten_times_its_weight_and_add_to_the_plugins() -> None:
    world = World(Script("Taste").scores({"a": 70, "b": 40}).kind, **NO_SCORES).nodes(*map(node, "ab"))
    likes_b = FakeExtender(weight=2)
    likes_b.scores = {"a": 3, "b": 5}
    world.use_profile(asking=[likes_b], **NO_SCORES)
    assert await placed(world) == "b"
    decision = world.binder.bound[0][3]
    assert decision is not None
    assert (decision.score, decision.runner_up) == (40 + 5 * 2 * 10, 70 + 3 * 2 * 10)
    assert decision.plugins == {"Taste": 40, "http://extender": 100}


async def test_extenders_are_asked_for_scores_together() -> None:
    one, two = FakeExtender("http://one"), FakeExtender("http://two")
    one.scores, two.scores = {"a": 3, "b": 1}, {"b": 3, "c": 3}
    one.meanwhile = lambda verb: two.resume() if verb == "prioritize" else None
    two.meanwhile = lambda verb: two.pause() if verb == "filter" else None
    assert await placed(asking(one, two)) == "b", "the second answered only after the first was asked, and 1 + 3 is most"


async def test_who_fails_to_score_adds_nothing() -> None:
    dead, alive = FakeExtender("http://one"), FakeExtender("http://two")
    dead.scores, alive.scores = {"a": 10}, {"c": 1}
    dead.fail(ExtenderError("no"), "prioritize", always=True)
    assert await placed(asking(dead, alive)) == "c"


async def test_scores_below_zero_put_a_node_last_and_no_unfit_one_first() -> None:
    gloomy = FakeExtender()
    gloomy.scores = {"a": -3, "b": -1, "c": -2}
    world = asking(gloomy).nodes(node("d").cordoned())
    assert await placed(world) == "b"
    decision = world.binder.bound[0][3]
    assert decision is not None
    assert (decision.score, decision.runner_up) == (-10, -20)


# --- what happens meanwhile ----------------------------------------------------------------------------------------------------------


async def test_a_node_that_filled_up_while_the_extender_thought_is_not_used() -> None:
    slow = FakeExtender()
    world = asking(slow, names="ab")
    slow.scores = {"a": 10}
    slow.meanwhile = lambda _verb: world.pods(pod("big").requests(cpu="4").on("a")) and None
    assert await placed(world) == "b"


async def test_a_node_that_filled_up_while_it_was_scored_is_not_used() -> None:
    slow = FakeExtender(filter_verb="")
    world = asking(slow, names="ab")
    slow.scores = {"a": 10}
    slow.meanwhile = lambda _verb: world.pods(pod("big").requests(cpu="4").on("a")) and None
    assert await placed(world) == "b"
    assert slow.asked == [("prioritize", "web", ("a", "b"))]


async def test_a_node_that_came_meanwhile_is_asked_about_when_nothing_else_is_left() -> None:
    slow = FakeExtender()
    world = asking(slow, names="a")

    def trade(_verb: str) -> None:
        if len(slow.asked) == 1:
            world.nodes(node("a").cordoned(), node("z"))

    slow.meanwhile = trade
    assert await placed(world) == "z"
    assert [nodes for _, _, nodes in slow.asked] == [("a",), ("z",)]


async def test_it_is_not_asked_for_ever_where_nodes_keep_coming() -> None:
    never = FakeExtender()
    world = asking(never, names="a")

    def grow(_verb: str) -> None:
        name = f"n{len(never.asked)}"
        never.failed[name] = "no"
        world.nodes(node(name))

    never.failed = {"a": "no"}
    never.meanwhile = grow
    assert await placed(world) is None
    assert len(never.asked) == 3


async def test_a_pod_deleted_while_the_extender_thinks_is_forgotten() -> None:
    slow = FakeExtender()
    world = asking(slow, names="a")
    web = pod("web").requests(cpu="1")
    slow.meanwhile = lambda _verb: world.event_handlers.unscheduled_pod_gone(web.build())
    world.pods(web)
    await world.attempt()
    assert world.binder.bound == []
    assert world.place("web") is None
    assert world.requested("a") == 0


async def test_a_pod_bound_by_somebody_else_meanwhile_is_left_there() -> None:
    slow = FakeExtender()
    world = asking(slow, names="ab")
    slow.meanwhile = lambda _verb: world.pods(pod("web").requests(cpu="1").on("b")) and None
    assert await placed(world) == "b"
    assert world.binder.bound == []
    assert not len(world.queue.in_flight)


# --- one profile's affair --------------------------------------------------------------------------------------------------------------


async def test_while_an_extender_thinks_other_profiles_go_on_and_its_own_profile_waits() -> None:
    slow = FakeExtender()
    slow.pause()
    world = asking(slow)
    world.use_profile(name="other", schedulerName="other", **NO_SCORES)
    world.pods(pod("one"), pod("two"), pod("three").scheduler("other"))
    first = world.decide()
    assert first is not None
    deciding = asyncio.create_task(first)
    await asyncio.sleep(0)
    assert await world.attempt() is True
    assert world.node_of("three") is not None, "the other profile's pod was next, though it came last"
    assert world.queue.pop() is None, "the second pod waits for the first to be decided"
    slow.resume()
    assert await deciding is True
    assert world.pop().pod.name == "two"


async def test_the_profile_goes_on_after_an_extender_failed() -> None:
    dead = FakeExtender()
    dead.fail(ExtenderError("no"), "filter", always=True)
    world = asking(dead)
    world.pods(pod("one"), pod("two"))
    await world.attempt()
    assert world.pop().pod.name == "two"


# --- preempt --------------------------------------------------------------------------------------------------------------------------


def crowded(*extenders: FakeExtender) -> World:
    """Two full nodes; the pod on `a` is the one that preemption would choose by itself."""
    world = asking(*extenders, names="ab")
    return world.pods(pod("low").requests(cpu="4").on("a").priority(1), pod("high").requests(cpu="4").on("b").priority(5))


async def preempting(world: World) -> tuple[str, str] | None:
    """(victim, node) of the eviction, or None."""
    world.pods(pod("vip").requests(cpu="4").priority(10))
    await world.attempt()
    for _ in range(10):
        await asyncio.sleep(0)
    return next(((victim, where) for victim, _, where in world.evictor.evicted), None)


async def test_preemption_goes_where_the_extenders_agree() -> None:
    protective = FakeExtender()
    protective.spares = {"low"}
    assert await preempting(crowded(protective)) == ("high", "b")
    assert ("preempt", "vip", ["a", "b"]) in [(verb, who, sorted(nodes)) for verb, who, nodes in protective.asked]


async def test_without_objection_it_goes_where_it_costs_least() -> None:
    assert await preempting(crowded(FakeExtender())) == ("low", "a")


async def test_where_the_extenders_agree_to_nothing_nobody_is_evicted() -> None:
    protective = FakeExtender()
    protective.spares = {"low", "high"}
    world = crowded(protective)
    assert await preempting(world) is None
    assert told(world, "vip")[1].endswith(". no new claims to deallocate, preemption: no candidate node for preemption")


async def test_victims_that_extenders_choose_are_held_to_the_rules_of_the_profile() -> None:
    class Chooses(FakeExtender):
        async def preempt(
            self,
            pod: PodInfo,
            victims: Mapping[NodeName, NodeVictims],
            pods_on: Callable[[NodeName], Iterable[PodInfo]] | None = None,
        ) -> dict[NodeName, NodeVictims]:
            assert pods_on is not None
            assert list(victims) == ["a"], "the profile protects the pod on b"
            return {NodeName("b"): NodeVictims(tuple(pods_on(NodeName("b"))), 0)}

    protect = {"protect": {"matchLabels": {"tier": "high"}}}
    world = crowded(Chooses())
    world.pods(pod("high").requests(cpu="4").on("b").priority(5).labels(tier="high"))
    world.use_profile(generation=2, asking=[Chooses()], preemption=protect)
    assert await preempting(world) is None
    assert told(world, "vip")[1].endswith("preemption: Victims are protected by spec.preemption.protect")


async def test_an_extender_that_fails_ends_the_preemption() -> None:
    dead = FakeExtender()
    dead.fail(ExtenderError("connection refused"), "preempt", always=True)
    world = crowded(dead)
    assert await preempting(world) is None
    assert told(world, "vip")[1].endswith("preemption: connection refused")


async def test_an_ignorable_one_that_fails_has_no_say() -> None:
    dead = FakeExtender(ignorable=True)
    dead.fail(ExtenderError("connection refused"), "preempt", always=True)
    assert await preempting(crowded(dead)) == ("low", "a")


async def test_an_extender_may_look_for_victims_on_any_node_that_is_there_and_on_no_other() -> None:
    seen: dict[str, list[str] | None] = {}

    class Wayward(FakeExtender):
        async def preempt(
            self,
            pod: PodInfo,
            victims: Mapping[NodeName, NodeVictims],
            pods_on: Callable[[NodeName], Iterable[PodInfo]] | None = None,
        ) -> dict[NodeName, NodeVictims]:
            assert pods_on is not None
            for name in ("a", "gone"):
                try:
                    seen[name] = [there.name for there in pods_on(NodeName(name))]
                except KeyError:
                    seen[name] = None
            return dict(victims)

    world = crowded(Wayward()).pods(pod("orphan").on("gone"))
    await preempting(world)
    assert seen == {"a": ["low"], "gone": None}


def refusing(version: str, *extenders: FakeExtender, **spec: Any) -> World:
    """Three nodes with room, which the first extender rejects. Pods of lower priority are on `a` and `b`."""
    extenders[0].failed = dict.fromkeys("abc", "no licence")
    world = World(**NO_SCORES).nodes(*map(node, "abc"))
    world.use_profile(asking=extenders, compatibility=version, **NO_SCORES, **spec)
    return world.pods(pod("low").on("a").priority(1), pod("high").on("b").priority(5))


class Licences(FakeExtender):
    """Says which pod holds the licence on each node; records the names of the victims that it was sent, by node."""

    def __init__(self, holders: Mapping[str, str | None], url: str = "http://licences", **settings: Any) -> None:
        super().__init__(url, **settings)
        self.holders = holders
        self.sent: list[dict[str, list[str]]] = []

    async def preempt(
        self,
        pod: PodInfo,
        victims: Mapping[NodeName, NodeVictims],
        pods_on: Callable[[NodeName], Iterable[PodInfo]] | None = None,
    ) -> dict[NodeName, NodeVictims]:
        assert pods_on is not None
        self.sent.append({node: [victim.name for victim in who.pods] for node, who in sorted(victims.items())})
        agreed = await super().preempt(pod, victims, pods_on)
        chosen = {node: tuple(one for one in pods_on(node) if one.name == self.holders[node]) for node in agreed if node in self.holders}
        return {node: NodeVictims(pods or agreed[node].pods) for node, pods in chosen.items()}


async def test_extenders_choose_victims_where_only_they_reject_the_pod_from_1_38_on() -> None:
    licences = Licences({"a": "low", "b": "high"})
    assert await preempting(refusing("1.38", licences)) == ("low", "a")
    assert licences.sent == [{"a": [], "b": []}], "no pod on c has a lower priority"


async def test_until_1_37_a_node_without_victims_is_an_error() -> None:
    licences = Licences({"a": "low", "b": "high"})
    world = refusing("1.37", licences)
    assert await preempting(world) is None
    assert licences.sent == []
    assert 'preemption: expected at least one victim pod on node "a"' in told(world, "vip")[1]


async def test_an_extender_may_leave_nodes_without_victims_to_the_next_one() -> None:
    passes, chooses = Licences({"a": None, "b": None}), Licences({"b": "high"}, "http://next")
    assert await preempting(refusing("1.38", passes, chooses)) == ("high", "b")
    assert chooses.sent == [{"a": [], "b": []}]


@pytest.mark.parametrize("holders", [{}, {"a": None, "b": None}])
async def test_nodes_that_are_left_without_victims_are_dropped_in_the_end(holders: dict[str, str | None]) -> None:
    world = refusing("1.38", Licences(holders))
    assert await preempting(world) is None
    assert told(world, "vip")[1].endswith(". no new claims to deallocate, preemption: no candidate node for preemption")


async def test_where_no_extender_answers_nodes_without_victims_are_dropped() -> None:
    dead = Licences({"a": "low"}, ignorable=True)
    dead.fail(ExtenderError("connection refused"), "preempt", always=True)
    world = refusing("1.38", dead)
    assert await preempting(world) is None
    assert told(world, "vip")[1].endswith(". no new claims to deallocate, preemption: no candidate node for preemption")


async def test_nodes_with_victims_are_sent_beside_those_without() -> None:
    licences = Licences({"a": None, "b": None})
    world = refusing("1.38", licences).pods(pod("low").requests(cpu="4").on("a").priority(1))
    assert await preempting(world) == ("low", "a")
    assert licences.sent == [{"a": ["low"], "b": []}]


async def test_without_an_extender_that_preempts_there_are_no_victims_to_find() -> None:
    world = refusing("1.38", FakeExtender(preempt_verb=""))
    assert await preempting(world) is None
    assert told(world, "vip")[1].endswith("preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod.")


async def test_victims_where_only_an_extender_rejects_the_pod_are_held_to_the_rules_of_the_profile() -> None:
    licences = Licences({"a": "low", "b": "high"})
    world = refusing("1.38", licences, preemption={"protect": {"matchLabels": {"tier": "high"}}})
    world.pods(pod("low").on("a").priority(1).labels(tier="high"), pod("beside").on("a").priority(1))
    assert await preempting(world) == ("high", "b")
    assert licences.sent == [{"a": [], "b": []}]


# --- bind ------------------------------------------------------------------------------------------------------------------------------


async def test_an_extender_that_binds_does_so_in_our_stead() -> None:
    binder = FakeExtender(bind_verb="bind")
    world = asking(binder, names="a")
    assert await placed(world) == "a"
    assert binder.asked[-1] == ("bind", "web", ("a",))
    assert world.binder.bound == []
    assert world.events.reasons("web") == ["Scheduled"]


async def test_where_it_fails_to_bind_everything_is_taken_back() -> None:
    binder = FakeExtender(bind_verb="bind")
    binder.fail(ExtenderError("no"), "bind", always=True)
    world = asking(binder, names="a")
    assert await placed(world) is None
    assert world.binder.bound == []
    assert told(world) == ("SchedulerError", "no")


async def test_where_an_ignorable_one_fails_to_bind_we_do() -> None:
    binder = FakeExtender(bind_verb="bind", ignorable=True)
    binder.fail(ExtenderError("no"), "bind", always=True)
    world = asking(binder, names="a")
    assert await placed(world) == "a"
    assert [(name, where) for name, _, where, _ in world.binder.bound] == [("web", "a")]


async def test_the_node_that_preemption_made_room_on_is_asked_about_first_and_alone() -> None:
    agreeable = FakeExtender()
    world = asking(agreeable)
    world.pods(pod("web").requests(cpu="1").nominated("b"))
    await world.attempt()
    assert agreeable.asked == [("filter", "web", ("b",))]
    assert world.node_of("web") == "b"


@pytest.mark.parametrize("fails", [True, False])
async def test_where_the_extender_does_not_want_that_node_or_fails_all_are_asked_about(fails: bool) -> None:
    picky = FakeExtender()
    if fails:
        picky.fail(ExtenderError("no"), "filter")  # the first time only
    else:
        picky.failed = {"b": "no"}
    world = asking(picky)
    world.pods(pod("web").requests(cpu="1").nominated("b"))
    await world.attempt()
    assert [nodes for verb, _, nodes in picky.asked if verb == "filter"] == [("b",), ("a", "b", "c")]
    assert world.node_of("web") is not None
