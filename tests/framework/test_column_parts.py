"""Parts of columns that shapes of pods share: who is asked about which rows, how wide what is kept is, and when it goes."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.scripts import Script, bare
from placewright.api.bytecount import bytes_of
from placewright.framework.errors import CycleError
from placewright.framework.interface import Reads
from placewright.framework.runtime.columnbudget import ColumnBudget
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.keptcolumn import KeptColumn, narrowest
from placewright.framework.runtime.keptshapes import SHAPE_BYTES
from placewright.framework.status import SUCCESS, unschedulable
from placewright.testing import pod

NO = unschedulable("no")


def reading(name: str, label: str, **told: Any) -> Script:
    """A plugin that filters and scores, and reads one label of a pod and the pods on a node."""
    script = Script(name, reads=Reads.NODE_AND_ITS_PODS).filters(told.get("verdict")).scores(told.get("rating"))
    return script.signs(lambda pod: pod.labels.get(label, ""))


def ask(evaluator: Evaluator, name: str = "p", **labels: str) -> list[int]:
    """Evaluate and score a pod with these labels; its totals by row."""
    return evaluator.score(evaluator.evaluate(pod(name, labels=labels).build())).tolist()


def recounted(evaluator: Evaluator) -> int:
    """Bytes of all arrays that are kept, each once, of signatures, of what plugins said, and what a shape takes besides."""
    shapes, parts = evaluator.kept._shapes.values(), evaluator.kept._parts._parts.values()
    said = [(each.data, each.pre_filter_results, each.pre_score_results, each._fingerprints) for each in shapes]
    beside = sum(bytes_of(each) for each in said if any(each)) + sum(map(bytes_of, evaluator.kept._shapes))
    columns = [column for shape in shapes for kept in (shape._cluster_filters, shape._cluster_scores) for column in kept.values()]
    own = sum(SHAPE_BYTES + shape.fits.nbytes + shape.totals.nbytes for shape in shapes)
    return own + beside + sum(part.nbytes for part in parts) + sum(column.nbytes for column in columns)


# --- sharing --------------------------------------------------------------------------------------------------------------------------


def test_shapes_that_differ_for_one_plugin_share_what_the_others_say() -> None:
    room, taint = reading("Room", "size"), reading("Taint", "team")
    scene = bare(room, taint, nodes="a b c")
    evaluator = scene.evaluator()
    for size in "123":
        ask(evaluator, size=size, team="x")
    assert (len(room.asked("filter")), len(taint.asked("filter"))) == (3, 1)
    ask(evaluator, size="1", team="y")
    assert (len(room.asked("filter")), len(taint.asked("filter"))) == (3, 2)


def test_a_row_that_changed_is_asked_about_once_for_all_shapes_that_share_a_part() -> None:
    room, taint = reading("Room", "size"), reading("Taint", "team", rating=lambda _name, pods: len(pods))
    scene = bare(room, taint, nodes="a b c")
    evaluator = scene.evaluator()
    for size in "123":
        ask(evaluator, size=size)
    scene.place(pod("x"), "b")
    found = [ask(evaluator, size=size) for size in "123"]
    assert found == [[0, 1, 0]] * 3, "each shape reads the shared row once more"
    assert (taint.asked("filter")[1:], taint.asked("score")[1:]) == ([("b",)], [("b",)])


def test_with_two_thousand_shapes_kept_a_decision_asks_about_the_rows_that_changed() -> None:
    room = reading("Room", "size")
    scene = bare(room, nodes="a b c d e")
    evaluator = scene.evaluator()
    for size in range(2000):
        ask(evaluator, size=str(size))
    room.calls.clear()
    for turn, name in enumerate("abc"):
        scene.place(pod(name), name)
        ask(evaluator, size=str(turn))
    assert room.asked("filter") == [("a",), ("a", "b"), ("a", "b", "c")]
    assert len(evaluator.kept) == 2000


def test_where_another_plugin_breaks_in_between_what_was_mended_is_right_for_all_shapes() -> None:
    first = reading("First", "", rating=lambda _name, pods: len(pods), verdict=lambda _name, pods: NO if len(pods) > 1 else SUCCESS)
    second = reading("Second", "size", verdict=lambda _name, pods: NO if len(pods) > 1 else SUCCESS)
    scene = bare(first, second, nodes="a b")
    evaluator = scene.evaluator()
    assert [ask(evaluator, size=size) for size in "12"] == [[0, 0]] * 2
    scene.place(pod("x"), "a").place(pod("y"), "b")
    right, second.told["filter"] = second.told["filter"], ValueError("eh")
    for size in "12":
        with pytest.raises(CycleError, match="eh"):
            ask(evaluator, size=size)
    second.told["filter"] = right
    scene.place(pod("z"), "b")
    assert [ask(evaluator, size=size) for size in "12"] == [[1, -1]] * 2


def test_pods_without_a_signature_leave_nothing_behind() -> None:
    script = Script("A", reads=Reads.NODE_AND_ITS_PODS).filters().scores({"a": 1}).signs(None)
    evaluator = bare(script).evaluator()
    ask(evaluator)
    assert (len(evaluator.kept), evaluator.kept.nbytes) == (0, 0)


def test_profiles_share_the_memory_evenly_and_one_that_is_gone_leaves_its_share() -> None:
    budget = ColumnBudget(100_000)
    world = bare(reading("A", "size"))
    one = world.evaluator(budget)
    assert budget.share == 100_000
    other = world.evaluator(budget)
    for size in range(30):
        ask(one, size=str(size))
        ask(other, size=str(size))
    assert budget.share == 50_000
    assert budget.held == one.kept.nbytes + other.kept.nbytes
    assert 2 * SHAPE_BYTES < one.kept.nbytes <= 50_000 + one.kept.nbytes / len(one.kept)
    del other
    gc.collect()
    assert (budget.share, budget.held) == (100_000, one.kept.nbytes)


# --- bytes ----------------------------------------------------------------------------------------------------------------------------


def test_a_part_goes_with_the_last_shape_that_uses_it() -> None:
    room = reading("Room", "size", rating=lambda name, _: ord(name) - ord("a"))
    team = reading("Team", "team", rating=lambda name, _: ord(name) - ord("a"))
    evaluator = bare(room, team, nodes="a b c").evaluator()
    for size, team_of in (("1", "x"), ("2", "x"), ("3", "y")):
        ask(evaluator, size=size, team=team_of)
    parts = evaluator.kept._parts
    assert len(parts) == 2 * (3 + 2), "a filter and a score: three sizes, two teams"
    evaluator.kept.budget.limit = 1
    ask(evaluator, size="2", team="x")
    assert len(parts) == 2 * 2
    assert evaluator.kept.nbytes == recounted(evaluator) > 0
    room.calls.clear()
    ask(evaluator, size="2", team="x")
    assert room.calls == []


def test_columns_whose_rows_are_all_alike_take_no_memory_and_narrow_ones_a_byte_a_row() -> None:
    alike, apart = Script("Alike").filters().scores(lambda *_: 7), Script("Apart").scores(lambda name, _: ord(name) - ord("a"))
    evaluator = bare(alike, apart, nodes="a b c d", weights={"Alike": 1, "Apart": 1}).evaluator()
    assert ask(evaluator) == [7, 8, 9, 10]
    fits, totals, scores = 4 * 1, 4 * 2, 4 * 1
    assert evaluator.kept.nbytes == recounted(evaluator)
    (shape,) = evaluator.kept._shapes.values()
    (signature,) = evaluator.kept._shapes
    assert evaluator.kept.nbytes == SHAPE_BYTES + bytes_of(signature) + shape._bytes_said() + fits + totals + scores


@pytest.mark.parametrize(("weight", "width"), [(1, 1), (2, 2), (327, 2), (328, 4), (100_000, 4)])
def test_totals_are_as_wide_as_the_weights_need(weight: int, width: int) -> None:
    evaluator = bare(Script("A").scores({"a": 100, "b": 3}), weights={"A": weight}).evaluator()
    evaluation = evaluator.evaluate(pod("p").build())
    totals = evaluator.score(evaluation)
    assert (totals.tolist(), totals.dtype.itemsize) == ([100 * weight, 3 * weight], width)


@pytest.mark.parametrize(
    ("low", "high", "width"),
    [(0, 0, 1), (-128, 127, 1), (-129, 0, 2), (0, 128, 2), (-1, 32_768, 4), (-(2**31) - 1, 0, 8), (0, 2**31, 8)],
)  # fmt: skip
def test_integers_are_as_narrow_as_their_bounds_allow(low: int, high: int, width: int) -> None:
    assert narrowest(low, high).itemsize == width


@given(
    st.lists(st.sampled_from([0, 1, 127, -128, 128, 40_000, -(2**40)]), min_size=1, max_size=5),
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from([0, 1, 127, -129, 32_768, 2**40])), max_size=8),
)
def test_a_kept_column_says_what_an_array_would(values: list[int], written: list[tuple[int, int]]) -> None:
    plain = np.array(values, np.int64)
    kept = KeptColumn(plain.copy())
    for at, value in written:
        rows = np.array([at % len(plain)])
        plain[rows] = value
        kept.put(rows, plain[rows])
        assert kept.column().tolist() == plain.tolist()
        assert kept.column(rows).dtype == np.int64
        assert kept.low <= plain.min() <= plain.max() <= kept.high
        assert (kept.values is None) == (kept.only is not None)


def test_nothing_is_counted_or_kept_of_a_shape_that_is_used_after_it_was_dropped() -> None:
    scene = bare(reading("Room", "size", rating=lambda _name, pods: len(pods)), nodes="a b c")
    evaluator = scene.evaluator()
    evaluation = evaluator.evaluate(pod("p").build())
    for _ in range(2):
        evaluator.kept.forget_unasked()
    scene.place(pod("x"), "b")
    assert evaluator.score(evaluation).tolist() == [0, 1, 0]
    evaluation.columns.refresh_filters(evaluation.state, evaluation.pod, scene.cluster)
    assert (evaluator.kept.nbytes, len(evaluator.kept._parts)) == (0, 0)
