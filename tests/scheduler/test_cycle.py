from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from framework.scripts import Script
from placewright.framework.events import ASSIGNED_POD_DELETE
from placewright.framework.runtime.nodesample import Sampler, nodes_to_find
from placewright.framework.status import unschedulable
from placewright.queue.queued import SubQueue
from placewright.scheduler.cycle import FitError, ScheduleResult, choose

from .makers import World, node, pod

#: Of the default plugins, none that scores.
NO_SCORES = {"weights": {"NodeResourcesFit": 0, "NodeResourcesBalancedAllocation": 0, "ImageLocality": 0, "TaintToleration": 0,
                         "NodeAffinity": 0, "PodTopologySpread": 0, "InterPodAffinity": 0}}  # fmt: skip


def tasting(scores: dict[str, int], **spec: object) -> World:
    """A world whose profile scores by taste alone."""
    return World(Script("Taste").scores(scores).kind, **NO_SCORES, **spec)


def place(world: World, name: str = "web") -> ScheduleResult:
    return world.cycle.place(world.evaluator, pod(name).requests(cpu="1").build())


def test_the_node_with_the_highest_total_is_chosen_and_compared_with_the_next_best() -> None:
    world = tasting({"a": 10, "b": 70, "c": 40}).nodes(node("a"), node("b"), node("c"))
    result = place(world)
    assert (result.node, result.score, result.runner_up, result.ties) == ("b", 70, 40, 1)
    assert result.plugins == {"Taste": 70}
    assert result.feasible == 3


def test_each_plugins_weighted_part_adds_up_to_the_score() -> None:
    world = World(Script("Taste").scores({"a": 10, "b": 70}).kind, weights={"Taste": 3}).nodes(node("a"), node("b").offers(cpu="8"))
    result = place(world)
    assert result.plugins["Taste"] == 210
    assert {"NodeResourcesFit", "NodeResourcesBalancedAllocation"} <= result.plugins.keys()
    assert sum(result.plugins.values()) == result.score


def test_a_tied_node_is_the_runner_up() -> None:
    world = tasting({}).nodes(node("a"), node("b"))
    result = place(world)
    assert (result.score, result.runner_up, result.ties) == (0, 0, 2)


def test_ties_are_broken_evenly() -> None:
    world = tasting({"a": 5, "b": 5, "c": 5, "d": 4}).nodes(*map(node, "abcd"))
    chosen = Counter(place(world, f"web-{number}").node for number in range(600))
    assert set(chosen) == {"a", "b", "c"}
    assert min(chosen.values()) > 150, "an even choice gives 200 each; the seed is fixed"


def test_the_same_seed_breaks_ties_the_same_way() -> None:
    def run() -> list[str]:
        world = tasting({}).nodes(*map(node, "abcd"))
        return [place(world, f"web-{number}").node for number in range(20)]

    assert run() == run()


def test_a_single_feasible_node_is_taken_without_scoring() -> None:
    taste = Script("Taste").pre_scores(RuntimeError("must not be asked")).scores()
    world = World(taste.kind).nodes(node("a"), node("b").offers(cpu="500m"))
    result = place(world)
    assert (result.node, result.feasible, result.score, result.runner_up) == ("a", 1, 0, None)
    assert result.plugins == {}


def test_without_nodes_nobody_is_blamed() -> None:
    with pytest.raises(FitError) as failure:
        place(World())
    assert failure.value.message == "no nodes available to schedule pods"
    assert not failure.value.internal
    assert not failure.value.unschedulable_plugins


async def test_a_pod_that_met_no_nodes_backs_off_as_after_an_error() -> None:
    world = World().pods(pod("web"))
    await world.attempt()
    assert world.place("web") is SubQueue.BACKOFF
    world.queue.move(ASSIGNED_POD_DELETE, None, None)
    assert world.place("web") is SubQueue.BACKOFF
    assert world.status.written == [("web", "Unschedulable", "no nodes available to schedule pods", "")]


def test_the_nominated_node_is_used_first_although_others_score_higher() -> None:
    world = tasting({"a": 1, "b": 99}).nodes(node("a"), node("b"))
    web = pod("web").nominated("a").build()
    world.queue.add(web)
    assert world.cycle.place(world.evaluator, web).node == "a"


def test_a_nominated_node_that_does_not_fit_any_more_is_passed_over() -> None:
    world = tasting({"a": 1, "b": 99}).nodes(node("a").cordoned(), node("b"))
    web = pod("web").nominated("a").build()
    world.queue.add(web)
    assert world.cycle.place(world.evaluator, web).node == "b"


def test_a_nominated_node_that_is_gone_is_passed_over() -> None:
    world = tasting({}).nodes(node("b"))
    web = pod("web").nominated("gone").build()
    world.queue.add(web)
    assert world.cycle.place(world.evaluator, web).node == "b"


def test_a_nomination_ends_with_the_decision() -> None:
    """The assumed pod holds the room itself; counted twice it would keep others away."""
    world = World().nodes(node("a").offers(cpu="2")).pods(pod("vip").priority(5).requests(cpu="1").nominated("a"))
    binding = world.decide()
    assert binding is not None
    binding.close()
    assert place(world).node == "a"


def test_room_kept_for_a_nominated_pod_is_not_given_to_a_lesser_one() -> None:
    world = World().nodes(node("a").offers(cpu="1"))
    world.queue.add(pod("vip").priority(5).requests(cpu="1").nominated("a").build())
    with pytest.raises(FitError, match="0/1 nodes are available: 1 Insufficient cpu"):
        place(world)


def test_a_plugin_that_raises_is_an_internal_failure_and_the_pod_backs_off() -> None:
    world = World(Script("Taste").pre_scores(RuntimeError("out of cheese")).scores().kind).nodes(node("a"), node("b")).pods(pod("web"))
    assert world.decide() is None
    assert world.place("web") is SubQueue.BACKOFF
    assert world.status.written == [("web", "SchedulerError", 'running PreScore plugin "Taste": RuntimeError: out of cheese', "")]
    assert world.scheduler.counts.errors == 1


def test_a_score_out_of_range_is_an_internal_failure() -> None:
    with pytest.raises(FitError, match='plugin "Taste" returns an invalid score') as failure:
        place(tasting({"a": 101}).nodes(node("a"), node("b")))
    assert failure.value.internal


def test_a_pod_that_fits_nowhere_blames_the_plugins_that_said_no() -> None:
    world = World().nodes(node("a").offers(cpu="500m"), node("b").cordoned())
    with pytest.raises(FitError) as failure:
        place(world)
    assert failure.value.message.startswith("0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable. ")
    assert failure.value.unschedulable_plugins == {"NodeResourcesFit", "NodeUnschedulable"}


def test_a_refusal_before_any_node_is_the_whole_message() -> None:
    with pytest.raises(FitError, match=r"^0/1 nodes are available: not today\. ") as failure:
        place(World(Script("Refusing").pre_filters(unschedulable("not today")).kind).nodes(node("a")))
    assert failure.value.unschedulable_plugins >= {"Refusing"}


# --- percentageOfNodesToScore ----------------------------------------------------------------------------------------------------


def test_all_nodes_are_scored_unless_the_profile_says_otherwise() -> None:
    world = tasting({"n150": 100}).nodes(*(node(f"n{number}") for number in range(151)))
    assert {place(world, f"web-{number}").node for number in range(3)} == {"n150"}


@pytest.mark.parametrize(
    ("nodes", "percentage", "found"),
    [(99, 10, 99), (100, 10, 100), (500, 10, 100), (5000, 10, 500), (5000, 100, 5000), (1001, 33, 330)],
)
def test_as_many_nodes_are_looked_for_as_kube_scheduler_does(nodes: int, percentage: int, found: int) -> None:
    assert nodes_to_find(nodes, percentage) == found


def test_successive_pods_look_at_successive_nodes() -> None:
    sampler = Sampler()
    feasible = np.ones(250, np.bool_)
    looked_at = [np.flatnonzero(sampler.narrow(feasible, 250, 10)) for _ in range(3)]
    assert [list(rows) for rows in looked_at] == [
        list(range(100)),
        list(range(100, 200)),
        [*range(50), *range(200, 250)],
    ]


def test_infeasible_nodes_on_the_way_count_as_looked_at() -> None:
    sampler = Sampler()
    feasible = np.ones(300, np.bool_)
    feasible[:50] = False
    assert list(np.flatnonzero(sampler.narrow(feasible, 300, 10))) == list(range(50, 150))
    assert list(np.flatnonzero(sampler.narrow(feasible, 300, 10))) == list(range(150, 250))


def test_the_best_of_the_sample_is_chosen_and_the_sample_is_what_counts_as_feasible() -> None:
    world = tasting({"n110": 100, "n5": 50}, percentageOfNodesToScore=10).nodes(*(node(f"n{number}") for number in range(200)))
    result = place(world)
    assert (result.node, result.feasible) == ("n5", 100)


def test_the_sample_is_of_the_nodes_that_a_prefilter_left() -> None:
    """Of 150 candidates all are found; 20 % of all 1000 nodes would be more than there are, 100 of the candidates are enough."""
    left = " ".join(f"n{number}" for number in range(150))
    narrowing = Script("Narrowing").pre_filters(nodes=left)
    world = World(narrowing.kind, percentageOfNodesToScore=20).nodes(*(node(f"n{number}") for number in range(1000)))
    assert place(world).feasible == 100


# --- choosing --------------------------------------------------------------------------------------------------------------------


def test_rows_below_zero_take_no_part() -> None:
    totals = np.array([-1, 3, -1, 2], np.int64)
    assert choose(totals, random.Random(1)) == (1, 3, 1, 3)
    assert list(totals) == [-1, 3, -1, 2], "the totals are given back as they were"


def test_a_node_without_a_rival_has_no_runner_up() -> None:
    assert choose(np.array([-1, 0], np.int64), random.Random(1)).runner_up is None
