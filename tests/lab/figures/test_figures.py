"""What outcomes come to in numbers, and side by side; the measure of fragmentation against one written node by node."""

from __future__ import annotations

import random
import statistics

import pytest

from lab.figures.outcomes import NO_CPU, a_node, a_pod, outcome
from placewright_lab.figures.comparison import compare
from placewright_lab.figures.figures import NOT_TRIED, classes_of, figures_of, fragmentation, fullest_moment, without_counts
from placewright_lab.simulation.outcome import Outcome

GPU = "nvidia.com/gpu"


def small() -> Outcome:
    """Place four pods of one profile on three nodes in two zones, beside one pod that was there before."""
    with_gpus = a_node("n1", zone="a", cpu=4, memory="8Gi", gpu=2)
    without = (a_node("n2", zone="b", cpu=4, memory="8Gi"), a_node("n3", zone="b", cpu=2, memory="8Gi"))
    made = outcome("default", with_gpus, *without).stood(a_pod("old", on="n1", cpu=1))
    made.placed(a_pod("w1", cpu=1, gpu=1), "n1", created=0, bound=2, parts={"Fit": 30, "Taint": 70})
    made.placed(a_pod("w2", cpu=1), "n2", created=1, bound=4, parts={"Fit": 50, "Taint": 50})
    made.placed(a_pod("w3", cpu=1), "n2", created=1, bound=2, left=9)
    return made.waits(a_pod("w4", cpu=9), NO_CPU, created=3).waits(a_pod("w5"), left=5).made


def test_every_pod_is_placed_pending_or_gone() -> None:
    figures = figures_of(small())
    assert (figures.pods, figures.placed, figures.pending, figures.gone) == (5, 3, 1, 1)


def test_use_is_counted_over_the_nodes_that_offer_the_resource_with_pods_that_were_there_before() -> None:
    cpu, memory, gpu = figures_of(small()).uses
    shares = [2 / 4, 1 / 4, 0.0]
    assert (cpu.resource, cpu.min, cpu.max) == ("cpu", 0.0, 0.5)
    assert cpu.mean == pytest.approx(statistics.mean(shares))
    assert cpu.deviation == pytest.approx(statistics.pstdev(shares))
    assert memory.requested == 0
    assert (gpu.resource, gpu.mean, gpu.allocatable, gpu.requested) == (GPU, 0.5, 2, 1)


def test_pods_that_wait_for_the_same_are_one_reason_whatever_the_numbers_of_nodes() -> None:
    made = outcome("p", a_node("n", cpu=1))
    made.waits(a_pod("x"), "0/9 nodes are available: 4 Insufficient cpu, 5 node(s) had untolerated taint {k8s.io/a. b: c}.")
    made.waits(a_pod("y"), "0/9 nodes are available: 6 Insufficient cpu, 3 node(s) had untolerated taint {k8s.io/a. b: c}. preemption: no.")
    made.waits(a_pod("z"), "")
    reasons = figures_of(made.made).reasons
    assert sum(reason.pods for reason in reasons) == 3
    assert NOT_TRIED in {reason.what for reason in reasons}
    assert without_counts(NO_CPU) == "Insufficient cpu, node(s) were unschedulable"


def test_preemptions_count_pods_of_the_beginning_too() -> None:
    made = small()
    made.evicted.append("uid-old")
    made.fates["uid-w3"].preempted = True
    assert figures_of(made).preempted == 2


def test_a_node_with_nothing_but_daemons_is_empty() -> None:
    made = outcome("p", a_node("n1", cpu=1), a_node("n2", cpu=1), a_node("n3", cpu=1))
    made.stood(a_pod("d1", on="n1", owner="DaemonSet"), a_pod("d2", on="n2", owner="DaemonSet"), a_pod("r", on="n2", owner="ReplicaSet"))
    figures = figures_of(made.made)
    assert (figures.nodes, figures.empty_nodes) == (3, 2)


def test_zones_count_the_pods_of_the_workload_that_stand_there_and_empty_zones_count() -> None:
    figures = figures_of(small())
    assert dict(figures.zones) == {"a": 1, "b": 1}
    lonely = (
        outcome("p", a_node("n1", zone="a", cpu=4), a_node("n2", zone="b", cpu=4)).placed(a_pod("x"), "n1").placed(a_pod("y"), "n1").made
    )
    assert figures_of(lonely).zone_skew == 2
    assert figures_of(outcome("p", a_node("n", cpu=1)).made).zone_skew is None


def test_score_shares_are_of_all_that_was_scored() -> None:
    assert figures_of(small()).score_shares == {"Taint": 0.6, "Fit": 0.4}


def test_times_are_from_creation_to_binding_and_none_without_a_placement() -> None:
    times = figures_of(small()).times
    assert times is not None
    assert (times.mean, times.p50, times.max) == (2.0, 2.0, 3.0)
    assert figures_of(outcome("p", a_node("n", cpu=1)).made).times is None


def test_the_timeline_says_who_waits_after_each_step_and_ends_with_those_who_still_do() -> None:
    timeline = figures_of(small()).timeline
    assert timeline.at.tolist() == [0, 1, 2, 3, 4, 5]
    assert timeline.waiting.tolist() == [2, 4, 2, 3, 2, 1]
    assert timeline.placed.tolist() == [0, 0, 2, 2, 3, 3]


def test_nothing_at_all_has_figures() -> None:
    figures = figures_of(Outcome("p", 0, {}, outcome("p").made.cluster))
    assert (figures.pods, figures.nodes, figures.uses, figures.fragmentations, figures.score_shares) == (0, 0, (), (), {})


def busy() -> Outcome:
    """Make an outcome with most pods from 2 to 5 seconds. In the end one is left, and one from before. One leaves when the others come."""
    made = outcome("p", a_node("n1", zone="a", cpu=4), a_node("n2", zone="b", cpu=4)).stood(a_pod("old", on="n1", cpu=1))
    made.placed(a_pod("x", cpu=2), "n1", created=0, bound=1, left=5).placed(a_pod("goes", cpu=1), "n1", bound=0, left=2)
    made.placed(a_pod("stays", cpu=1), "n2", bound=2)
    return made.placed(a_pod("y", cpu=1), "n2", created=2, bound=2, left=7).made


def test_where_pods_leave_again_nodes_are_looked_at_when_most_pods_stood() -> None:
    at = fullest_moment(busy())
    assert at == 2
    figures = figures_of(busy(), at=at)
    assert figures.uses[0].shares.tolist() == [3 / 4, 2 / 4]
    assert (figures.empty_nodes, dict(figures.zones)) == (0, {"a": 1, "b": 2})
    ended = figures_of(busy())
    assert ended.uses[0].shares.tolist() == [1 / 4, 1 / 4]
    assert (ended.empty_nodes, dict(ended.zones)) == (0, {"a": 0, "b": 1})


def test_where_nobody_leaves_the_end_is_the_fullest_moment() -> None:
    made = outcome("p", a_node("n", cpu=4)).placed(a_pod("x"), "n", bound=1).placed(a_pod("y"), "n", bound=2).made
    assert fullest_moment(made) is None
    assert fullest_moment(outcome("p", a_node("n", cpu=4)).made) is None


def test_all_profiles_are_looked_at_in_the_same_moment() -> None:
    later = outcome("q", a_node("n1", cpu=4), a_node("n2", cpu=4))
    later.placed(a_pod("x"), "n1", bound=3, left=9).placed(a_pod("y"), "n1", bound=4, left=9)
    assert [figures.at for figures in compare("hand", [busy(), later.made]).figures] == [2, 2]


# --- fragmentation -----------------------------------------------------------------------------------------------------------


def test_free_devices_are_stranded_where_no_pod_that_asks_for_one_fits() -> None:
    made = outcome("p", a_node("n1", cpu=4, gpu=4), a_node("n2", cpu=4, gpu=4)).stood(a_pod("hog", on="n1", cpu=4, gpu=1)).made
    (found,) = fragmentation(made.cluster, classes_of([a_pod("x", cpu=1, gpu=1), a_pod("y", cpu=1)]))
    assert (found.resource, found.free, found.stranded) == (GPU, 7, 3)
    assert found.expected == 3 + 0.5 * 4  # on n2 only the pods without a GPU find its four useless
    assert found.rate == 5 / 7


@pytest.mark.parametrize(
    ("what", "blocked"),
    [
        ("cordoned", a_node("n", cpu=4, gpu=2, cordoned=True, labels={"model": "A10"})),
        ("full of pods", a_node("n", cpu=4, gpu=2, pods=0, labels={"model": "A10"})),
        ("of another model", a_node("n", cpu=4, gpu=2, labels={"model": "T4"})),
    ],
)
def test_devices_of_a_node_that_takes_no_pod_are_stranded(what: str, blocked: object) -> None:
    made = outcome("p", blocked).made  # type: ignore[arg-type]
    (found,) = fragmentation(made.cluster, classes_of([a_pod("x", gpu=1, selector={"model": "A10"})]))
    assert found.stranded == 2, what


def test_the_measure_equals_one_that_goes_node_by_node_and_pod_by_pod() -> None:
    draw = random.Random(3)
    made = outcome("p", *(a_node(f"n{i}", cpu=draw.randint(2, 16), gpu=draw.choice([0, 2, 4, 8])) for i in range(30)))
    for i in range(60):
        made.stood(a_pod(f"s{i}", on=f"n{draw.randrange(30)}", cpu=draw.randint(0, 3), gpu=draw.choice([0, 0, 1, 2])))
    wanted = [(draw.randint(3, 6), draw.choice([0, 1, 2, 4])) for _ in range(40)]
    (found,) = fragmentation(made.made.cluster, classes_of(a_pod(f"w{i}", cpu=c, gpu=g) for i, (c, g) in enumerate(wanted)))

    expected, stranded, free = 0.0, 0, 0
    cluster = made.made.cluster
    for each in cluster.nodes():
        on = list(cluster.pods_on(each.metadata.name))  # type: ignore[arg-type]
        cpus = int(each.status.allocatable["cpu"]) * 1000 - sum(p.requests.get("cpu", 0) for p in on)  # type: ignore[index, arg-type]
        gpus = max(int(each.status.allocatable[GPU]) - sum(p.requests.get(GPU, 0) for p in on), 0)  # type: ignore[index, arg-type]
        serves = [g > 0 and g <= gpus and c * 1000 <= max(cpus, 0) for c, g in wanted]
        expected += sum(gpus / len(wanted) for served in serves if not served)
        stranded += 0 if any(serves) else gpus
        free += gpus
    assert free > stranded > 0
    assert (found.free, found.stranded) == (free, stranded)
    assert found.expected == pytest.approx(expected)


# --- side by side ------------------------------------------------------------------------------------------------------------


def test_pods_move_or_begin_or_cease_to_wait_against_the_first_profile() -> None:
    nodes = (a_node("n1", cpu=4), a_node("n2", cpu=4))
    one = outcome("a", *nodes).placed(a_pod("same"), "n1").placed(a_pod("moves"), "n1")
    two = outcome("b", *nodes).placed(a_pod("same"), "n1").placed(a_pod("moves"), "n2")
    one.placed(a_pod("loses"), "n1").waits(a_pod("wins"), NO_CPU)
    two.placed(a_pod("wins"), "n2").waits(a_pod("loses"), NO_CPU)
    (change,) = compare("hand", [one.made, two.made]).changes
    assert [tuple(move) for move in change.moves] == [("a/moves", "n1", "n2")]
    assert [(each.pod, each.node) for each in change.appear] == [("a/loses", "n1")]
    assert [(each.pod, each.node, each.why) for each in change.disappear] == [("a/wins", "n2", without_counts(NO_CPU))]


def test_every_profile_is_judged_by_the_same_mix_of_pods() -> None:
    """A pod that one profile evicted is still of the workload."""
    asks = a_pod("asks", on="n", cpu=1, gpu=1)
    kept = outcome("a", a_node("n", cpu=1, gpu=2)).stood(asks).made
    evicting = outcome("b", a_node("n", cpu=1, gpu=2)).made
    first, second = compare("hand", [kept, evicting]).figures
    assert (first.fragmentations[0].stranded, second.fragmentations[0].stranded) == (1, 0)


def test_profiles_of_one_name_are_told_apart() -> None:
    made = [outcome(name, a_node("n", cpu=1)).made for name in ("web", "web", "web (2)")]
    assert [figures.profile for figures in compare("hand", made).figures] == ["web", "web (2)", "web (2) (2)"]
