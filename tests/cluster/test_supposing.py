"""What is only supposed: who stands where then, trials within trials, many pods at once, and who hears of it."""

from __future__ import annotations

import pytest

from cluster.makers import NODES, a_node, a_pod, cluster
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.cluster.dryrun import DryRunCluster, Moves, net_of

A, B, C = NODES


def on(found: Cluster, name: NodeName) -> list[str]:
    return sorted(each.uid for each in found.pods_on(name))


def two_on_a() -> Cluster:
    found = cluster()
    for uid in ("p", "q"):
        found.set_pod(a_pod(uid).requests(cpu="1").on("a").build())
    return found


# --- who stands where ------------------------------------------------------------------------------------------------------------------


def test_a_pod_stands_as_far_as_nobody_supposes_it_away() -> None:
    found = two_on_a()
    truth = found.placement("p")
    assert (found.stands("p"), found.stands("nobody")) == (truth, None)
    with found.dry_run() as dry_run:
        assert found.stands("p") == truth
        dry_run.remove([(0, a_pod("p").on("a").build())])
        assert (found.stands("p"), found.placement("p"), found.stands("nobody")) == (None, truth, None)
        assert found.stands("q") is not None
        with found.dry_run() as inner:
            inner.add([(0, a_pod("p").on("a").build())])
            assert found.stands("p") == truth
        assert found.stands("p") is None
    assert found.stands("p") == truth


def test_a_pod_that_is_supposed_where_it_stands_stands_there_and_is_listed_again() -> None:
    """The caller asks whether a second one like it would fit."""
    found = two_on_a()
    with found.dry_run() as dry_run:
        dry_run.add([(0, a_pod("p").on("a").build())])
        assert found.stands("p") is not None
        assert on(found, A) == ["p", "q"]
        assert int(found.pod_count[0]) == 3


def test_only_the_pods_of_the_row_are_supposed_away() -> None:
    found = two_on_a()
    found.set_pod(a_pod("r").on("b").build())
    found.set_pod(a_pod("lost").on("c").build())
    with found.dry_run_on_row(add=[a_pod("new").build()], remove=[a_pod("p").requests(cpu="1").on("a").build()], row=0):
        assert (on(found, A), on(found, B), on(found, C)) == (["new", "q"], ["r"], ["lost"])
        assert found.stands("r") is not None
        assert found.stands("lost") is not None
        assert found.stands("new") is None, "it stands nowhere in truth"
        assert found.dry_run_rows() == {0}
    assert (on(found, A), found.dry_run_rows()) == (["p", "q"], frozenset())


def test_pods_are_listed_in_the_order_in_which_they_came_and_supposed_ones_after_them() -> None:
    found = two_on_a()
    found.set_pod(a_pod("aaa").on("a").build())
    assert [each.uid for each in found.pods_on(A)] == ["p", "q", "aaa"]
    with found.dry_run_on_row(add=[a_pod("b").build(), a_pod("a").build()], remove=[a_pod("q").requests(cpu="1").build()], row=0):
        assert [each.uid for each in found.pods_on(A)] == ["p", "aaa", "b", "a"]


def test_what_is_taken_away_and_put_back_in_one_trial_is_as_if_nothing_had_been_supposed() -> None:
    found = two_on_a()
    with found.dry_run() as dry_run:
        dry_run.remove([(0, a_pod("p").requests(cpu="1").build())])
        dry_run.add([(0, a_pod("p").requests(cpu="1").build())])
        assert (on(found, A), int(found.pod_count[0])) == (["p", "q"], 2)
        assert dry_run.net(0) == {}
        assert found.dry_run_rows() == {0}, "a column that was kept meanwhile must look again"
    assert int(found.pod_count[0]) == 2


def test_an_outer_trial_may_go_on_while_an_inner_one_is_over() -> None:
    found = two_on_a()
    with found.dry_run() as outer:
        outer.remove([(0, a_pod("p").requests(cpu="1").build())])
        with found.dry_run() as inner:
            inner.add([(1, a_pod("p").requests(cpu="1").build())])
            assert found.dry_run_rows() == {0, 1}
        assert found.dry_run_rows() == {0}
        outer.add([(1, a_pod("new").build())])
        assert (on(found, A), on(found, B)) == (["q"], ["new"])
    assert (on(found, A), on(found, B), list(found.pod_count)) == (["p", "q"], [], [2, 0])


@pytest.mark.parametrize("broken", ["before", "after"])
def test_a_trial_that_ends_in_an_error_is_undone_and_so_are_those_around_it(broken: str) -> None:
    found = two_on_a()

    def try_and_fail() -> None:
        with found.dry_run() as outer, found.dry_run() as inner:
            outer.remove([(0, a_pod("p").requests(cpu="1").build())])
            if broken == "before":
                raise ZeroDivisionError
            inner.add([(1, a_pod("new").requests(cpu="2").build())])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        try_and_fail()
    assert (list(found.pod_count), list(found.scoring_cpu), on(found, A)) == ([2, 0], [2000, 0], ["p", "q"])
    assert (found.dry_run_rows(), found._dry_runs) == (frozenset(), [])


# --- journals --------------------------------------------------------------------------------------------------------------------------


def test_a_trial_is_in_the_journal_only_where_it_is_asked_for_there_and_back() -> None:
    found = two_on_a()
    position = found.pod_journal.position
    with found.dry_run() as quiet:
        quiet.remove([(0, a_pod("p").requests(cpu="1").build())])
    assert found.pod_journal.since(position) == []
    with found.dry_run(journalled=True) as told:
        told.remove([(0, a_pod("p").requests(cpu="1").build())])
        told.add([(1, a_pod("new").build())])
        assert found.pod_journal.since(position) == [0, 1]
        assert list(found.pod_count) == [1, 1]
    assert sorted(found.pod_journal.since(position) or ()) == [0, 0, 1, 1]
    assert list(found.pod_count) == [2, 0]


# --- many at once ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 15, 16, 17, 40])
def test_as_many_pods_as_you_like_count_as_one_by_one(count: int) -> None:
    found, alone = cluster(), cluster()
    for each in (found, alone):
        each.set_node(a_node("a", **{"example.com/gpu": "8"}))
    makers = [
        a_pod(f"p{i}").requests({"example.com/gpu": str(i % 3)}, cpu=f"{i + 1}m", memory=str(i)).labels(app=str(i % 2)).host_port(8000 + i)
        for i in range(count)
    ]
    moves = [(i % 2, maker.build()) for i, maker in enumerate(makers)]
    with found.dry_run() as together, alone.dry_run() as one_by_one:
        together.add(moves)
        for move in moves:
            one_by_one.add([move])
        for one, other in ((found, alone), (alone, found)):
            for name in ("cpu", "memory", "example.com/gpu"):
                assert list(one.resources.column(name).requested) == list(other.resources.column(name).requested)
            assert list(one.scoring_cpu) == list(other.scoring_cpu)
            assert list(one.scoring_memory) == list(other.scoring_memory)
        expected = [sum(mine.requests["cpu"] for row, mine in moves if row == wanted) for wanted in (0, 1)]
        assert list(found.resources.column("cpu").requested[:2]) == list(found.scoring_cpu) == expected
        assert list(found.pod_count) == [(count + 1) // 2, count // 2]
        together.remove(moves)
        assert not found.pod_count.any()
        assert list(found.pods_on(A)) == []
    assert not found.resources.column("cpu").requested.any()
    assert list(found.pairwise_counts) == []


def test_no_pods_are_no_change() -> None:
    found = two_on_a()
    with found.dry_run() as dry_run:
        dry_run.add([])
        dry_run.remove([])
        assert (list(found.pod_count), dry_run.rows, found.dry_run_rows()) == ([2, 0], {}.keys(), frozenset())


# --- a supposition alone ---------------------------------------------------------------------------------------------------------------


class Counted:
    """What a supposition has counted: pods by row."""

    def __init__(self) -> None:
        self.by_row: dict[tuple[int, str], int] = {}

    def __call__(self, moves: Moves, sign: int) -> None:
        for row, each in moves:
            self.by_row[row, each.uid] = self.by_row.get((row, each.uid), 0) + sign


def in_dry_runs(info: PodInfo, *signs: int, row: int = 0) -> tuple[DryRunCluster, Counted]:
    counted = Counted()
    dry_run = DryRunCluster(counted)
    for sign in signs:
        (dry_run.add if sign > 0 else dry_run.remove)([(row, info)])
    return dry_run, counted


@pytest.mark.parametrize(("signs", "net"), [((1,), 1), ((-1,), -1), ((1, 1), 2), ((-1, -1), -2), ((1, -1), 0), ((-1, 1, 1), 1), ((), 0)])
def test_a_supposition_knows_how_much_more_there_is_of_each_pod_and_undoes_just_that(signs: tuple[int, ...], net: int) -> None:
    info = a_pod("p").build()
    dry_run, counted = in_dry_runs(info, *signs, row=3)
    assert dry_run.net(3) == ({"p": (info, net)} if net else {})
    assert counted.by_row.get((3, "p"), 0) == net
    dry_run.undo()
    assert counted.by_row.get((3, "p"), 0) == 0
    assert (dry_run.net(3), list(dry_run.rows)) == ({}, [])
    dry_run.undo()
    assert counted.by_row.get((3, "p"), 0) == 0, "undone twice is undone once"


def test_of_no_row_nothing_is_supposed() -> None:
    dry_run, _ = in_dry_runs(a_pod("p").build(), 1)
    assert (dry_run.net(None), dry_run.net(7), net_of([dry_run], None)) == ({}, {}, {})


def test_suppositions_within_each_other_add_up() -> None:
    info, newer = a_pod("p").build(), a_pod("p").requests(cpu="1").build()
    first, _ = in_dry_runs(info, -1)
    second, _ = in_dry_runs(newer, 1)
    third, _ = in_dry_runs(a_pod("q").build(), 1, 1)
    elsewhere, _ = in_dry_runs(info, 1, row=1)
    assert net_of([first, third, elsewhere], 0) == {"p": (info, -1), "q": (third.net(0)["q"][0], 2)}
    assert net_of([first, second], 0) == {"p": (newer, 0)}
    assert (net_of([], 0), net_of([second, second], 0)) == ({}, {"p": (newer, 2)})
