"""What each extension point allows a plugin to answer, and in which words anything else is refused."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from placewright.api.objects import NodeName
from placewright.framework.events import Action, EventResource, QueueingHint, event_with_hint
from placewright.framework.interface import Alternatives, PermitResult, PostFilterResult, PreFilterResult, Rejection
from placewright.framework.rowwise import PlainRowVerdict
from placewright.framework.runtime import answers
from placewright.framework.runtime.answers import WrongAnswer, described
from placewright.framework.status import SKIP, SUCCESS, Code, Status, error, unresolvable, unschedulable
from placewright.testing import pod

ROWS = np.array([4, 7, 9])
PENDING, WAIT = Status(Code.PENDING), Status(Code.WAIT)
VICTIM = pod("victim").build()
Check = Callable[..., Any]


def refused(check: Check, answer: Any, asked: Any = (None, ROWS)) -> str:
    with pytest.raises(WrongAnswer) as wrong:
        check(answer, asked)
    return str(wrong.value)


# --- in words -------------------------------------------------------------------------------------------------------------------------


class Shy:
    """Cannot be shown."""

    def __repr__(self) -> str:
        raise ValueError


async def _later() -> None:
    pass


def _one_by_one() -> Any:
    yield


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "None"),
        ("a\n  b", r"'a\n b'"),
        (np.zeros((2, 3), np.int32), "an array of int32, shape (2, 3)"),
        (unschedulable("x"), "the status Unschedulable"),
        ([1, 2], "a list of 2"),
        ((), "a tuple of 0"),
        ({"a": 1}, "a dict of 1"),
        ({1, 2, 3}, "a set of 3"),
        (frozenset("ab"), "a frozenset of 2"),
        (_one_by_one(), "a generator (does the method yield?)"),
        (Shy(), "a Shy"),
        ("x" * 78, repr("x" * 78)),
        ("x" * 79, "'" + "x" * 78 + "…"),
    ],
)
def test_a_value_is_told_in_a_few_words(value: Any, words: str) -> None:
    assert described(value) == words
    assert len(words) <= 80


def test_a_coroutine_is_told_and_put_away() -> None:
    """Python complains of one that nobody awaited, in whatever test runs next."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        coroutine = _later()
        assert refused(answers.admitted, coroutine).startswith("found a coroutine (is the method async?); allowed")
        assert coroutine.cr_frame is None, "it is closed"


def test_a_refusal_may_say_where() -> None:
    assert str(WrongAnswer(3, "less", " for node a")) == "found 3 for node a; allowed less"


# --- statuses -------------------------------------------------------------------------------------------------------------------------

EVERY = [SUCCESS, SKIP, WAIT, PENDING, unschedulable("x"), unresolvable("x"), error("x")]
REJECTIONS = {Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING}
STATUSES: list[tuple[Check, Callable[[Status], Any], set[Code]]] = [
    (answers.admitted, lambda status: status, {Code.SUCCESS, Code.ERROR, *REJECTIONS}),
    (answers.prepared, lambda status: status, {Code.SUCCESS, Code.SKIP, Code.ERROR, *REJECTIONS}),
    (answers.pre_filter_result, PreFilterResult, {Code.SUCCESS, Code.SKIP, Code.ERROR, *REJECTIONS}),
    (answers.permit_result, PermitResult, {Code.SUCCESS, Code.WAIT, Code.ERROR, *REJECTIONS}),
    (answers.post_filter_result, PostFilterResult, {Code.SUCCESS, Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.ERROR}),
    (answers.failed, lambda status: status, {Code.SUCCESS, Code.ERROR}),
]


@pytest.mark.parametrize(("check", "around", "allowed"), STATUSES)
@pytest.mark.parametrize("status", EVERY, ids=lambda status: status.code.value)
def test_each_point_allows_its_own_codes(check: Check, around: Callable[[Status], Any], allowed: set[Code], status: Status) -> None:
    answer = around(status)
    if status.code in allowed:
        assert check(answer, ()) == answer
        return
    message = refused(check, answer)
    assert message.startswith(f"found the status {status.code.value}; allowed a Status: Success, ")
    assert {word.strip() for word in message.partition("a Status:")[2].split(",")} == {code.value for code in allowed}


@pytest.mark.parametrize(("check", "around", "allowed"), STATUSES)
@pytest.mark.parametrize("reasons", ["why", ["why"], None, (1,), ("why", None)])
def test_reasons_are_a_tuple_of_texts(check: Check, around: Callable[[Status], Any], allowed: set[Code], reasons: Any) -> None:
    message = refused(check, around(Status(Code.ERROR, reasons)))
    assert message == f"found {described(reasons)}; allowed a tuple of texts as the status' reasons"


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (answers.admitted, "a Status: Success, Unschedulable, UnschedulableAndUnresolvable, Pending, Error"),
        (answers.pre_filter_result, "a PreFilterResult"),
        (answers.permit_result, "a PermitResult"),
        (answers.post_filter_result, "a PostFilterResult"),
        (answers.hint, "QueueingHint.QUEUE or QueueingHint.SKIP"),
        (answers.judge, "a RowVerdict, or None"),
        (answers.rejections, "a list of Rejection from explain"),
        (answers.sort_key(), "a tuple"),
        (lambda answer, _asked: answers.interests(answer), "a list of event_with_hint(…), or None, from events"),
        (lambda answer, _asked: answers.awaitable(answer), "a coroutine: the method has to be async"),
    ],
)
def test_what_is_something_else_is_told_with_what_would_be_right(check: Check, words: str) -> None:
    assert refused(check, 17) == f"found 17; allowed {words}"


# --- results --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nodes", [None, frozenset(), frozenset({"a"}), {"a", "b"}, {"a": 1}.keys()])
def test_the_nodes_of_prefilter_are_any_set_of_names_and_kept_as_one_that_cannot_change(nodes: Any) -> None:
    found = answers.pre_filter_result(PreFilterResult(SUCCESS, nodes), ())
    assert found.nodes == (None if nodes is None else frozenset(nodes))
    assert found.nodes is None or type(found.nodes) is frozenset


@pytest.mark.parametrize("nodes", [["a"], "a", ("a",), {1}, {"a", None}, 3])
def test_anything_else_is_no_set_of_names(nodes: Any) -> None:
    message = refused(answers.pre_filter_result, PreFilterResult(SUCCESS, nodes))
    assert message == f"found {described(nodes)}; allowed a frozenset of node names, or None, as the result's nodes"


@pytest.mark.parametrize("timeout", [0, 0.0, 1, 2.5, math.inf, np.float64(3)])
def test_a_pod_may_be_made_to_wait_for_any_time(timeout: float) -> None:
    result = PermitResult(WAIT, timeout)
    assert answers.permit_result(result, ()) is result


@pytest.mark.parametrize("timeout", [-0.5, -1, math.nan, None, "5s", True])
def test_what_is_no_time_is_refused_where_the_pod_is_to_wait_and_not_read_elsewhere(timeout: Any) -> None:
    message = refused(answers.permit_result, PermitResult(WAIT, timeout))
    assert message == f"found {described(timeout)}; allowed a number of seconds as the result's timeout"
    assert answers.permit_result(PermitResult(SUCCESS, timeout), ()).status is SUCCESS


@pytest.mark.parametrize(
    "result",
    [
        PostFilterResult(SUCCESS, NodeName("a")),
        PostFilterResult(SUCCESS, NodeName("a"), (VICTIM,)),
        PostFilterResult(unschedulable("x"), NodeName("")),
        PostFilterResult(unresolvable("x")),
        PostFilterResult(unschedulable("x"), None, (), Alternatives({}, lambda _victims: PostFilterResult(SUCCESS))),
    ],
)
def test_room_may_be_made_in_several_ways(result: PostFilterResult) -> None:
    assert answers.post_filter_result(result, ()) is result


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"nominated_node": 3}, "found 3; allowed a node's name, an empty text or None as the result's nominated_node"),
        ({"victims": [VICTIM]}, "found a list of 1; allowed a tuple of PodInfo as the result's victims"),
        ({"victims": (VICTIM, "b")}, "found a tuple of 2; allowed a tuple of PodInfo as the result's victims"),
        ({"victims": VICTIM}, f"found {VICTIM!r}; allowed a tuple of PodInfo as the result's victims"),
        ({"alternatives": {}}, "found a dict of 0; allowed Alternatives, or None, as the result's alternatives"),
    ],
)
def test_what_cannot_be_done_is_no_way_to_make_room(wrong: dict[str, Any], words: str) -> None:
    assert refused(answers.post_filter_result, PostFilterResult(SUCCESS, **wrong)) == words


# --- columns --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("check", "asked", "answer"),
    [
        (answers.passes, (None, ROWS), np.array([True, False, True])),
        (answers.scores, (None, ROWS), np.array([1, 2, 3])),
        (answers.scores, (None, ROWS), np.array([1, 2, 3], np.int8)),
        (answers.scores, (None, ROWS), np.array([1, 2, 3], np.uint32)),
        (answers.normalised, (None, ROWS, 7), np.array([1, 2, 3])),
    ],
)
def test_a_column_is_kept_in_an_array_of_our_own_whatever_the_plugin_does_with_its(check: Check, asked: Any, answer: Any) -> None:
    found = check(answer, asked)
    assert found.tolist() == answer.tolist()
    assert found.dtype == (np.bool_ if answer.dtype == np.bool_ else np.int64)
    assert not np.shares_memory(found, answer)
    assert found.flags.writeable


def test_an_array_of_a_class_of_its_own_becomes_a_plain_one() -> None:
    answer = np.ma.array([1, 2, 3])
    found = answers.scores(answer, (None, ROWS))
    assert np.asarray(found).tolist() == [1, 2, 3]
    assert not np.shares_memory(found, answer)


@pytest.mark.parametrize(
    ("check", "asked", "kind"),
    [(answers.passes, (0, ROWS), "bool"), (answers.scores, (0, ROWS), "int64"), (answers.normalised, (0, ROWS, ROWS[:1]), "int64")],
)
@pytest.mark.parametrize(
    "answer",
    [
        None,
        [True, True, True],
        [1, 2, 3],
        np.zeros(3),
        np.array([1, 2, np.nan]),
        np.zeros(3, np.uint64),
        np.zeros(3, object),
        np.array(["a", "b", "c"]),
        np.zeros((3, 1), np.int64),
        np.zeros(2, np.int64),
        np.zeros(4, np.bool_),
        np.int64(3),
    ],
)
def test_a_column_of_another_kind_or_length_is_refused(check: Check, asked: Any, kind: str, answer: Any) -> None:
    message = refused(check, answer, asked)
    assert message == f"found {described(answer)}; allowed an array of {kind} with one answer for each row, shape (3,)"


def test_numbers_are_no_verdicts_and_verdicts_no_numbers() -> None:
    assert "an array of int64" in refused(answers.passes, np.ones(3, np.int64))
    assert "an array of bool, shape (3,); allowed an array of int64" in refused(answers.scores, np.ones(3, np.bool_))


@pytest.mark.parametrize(
    "groups",
    [
        [Rejection(unschedulable("x"), ROWS)],
        [Rejection(unschedulable("x"), ROWS[:1]), Rejection(PENDING, ROWS[1:])],
        [(unresolvable("x"), [9, 4]), (unschedulable("y"), (7,))],
        (Rejection(unschedulable("x"), np.array([9, 7, 4], np.int32)),),
    ],
)
def test_an_explanation_has_each_row_once_in_any_order(groups: Any) -> None:
    found = answers.rejections(groups, (None, ROWS))
    assert [(status, [*rows]) for status, rows in found] == [(status, [*rows]) for status, rows in groups]
    assert {rows.dtype for _, rows in found} == {np.dtype(np.intp)}


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([], "found an array of int64, shape (0,); allowed each of the 3 rows in exactly one Rejection from explain"),
        ([(unschedulable("x"), ROWS[:2])], "shape (2,); allowed each of the 3 rows"),
        ([(unschedulable("x"), ROWS), (unschedulable("y"), ROWS[:1])], "shape (4,); allowed each of the 3 rows"),
        ([(unschedulable("x"), [4, 7, 8])], "shape (3,); allowed each of the 3 rows"),
        ([(SUCCESS, ROWS)], "found the status Success; allowed a Status: Unschedulable"),
        ([(SKIP, ROWS)], "found the status Skip; allowed a Status: Unschedulable"),
        ([(error("x"), ROWS)], "found the status Error; allowed rejections from explain"),
        ([("no", ROWS)], "found 'no'; allowed a Status: Unschedulable"),
        ([ROWS], "found a list of 1; allowed a list of Rejection from explain"),
        ([(unschedulable("x"),)], "found a list of 1; allowed a list of Rejection from explain"),
        ({unschedulable("x"): ROWS}, "found a dict of 1; allowed a list of Rejection from explain"),
    ],
)
def test_an_explanation_that_does_not_add_up_is_refused(groups: Any, words: str) -> None:
    assert words in refused(answers.rejections, groups)


def test_without_rows_there_is_nothing_to_explain() -> None:
    assert answers.rejections([], (None, np.zeros(0, np.intp))) == []


# --- the rest -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [None, (), "a", frozenset({1}), (1, ("b", None)), b"x"])
def test_what_can_be_compared_and_kept_is_a_signature(answer: Any) -> None:
    assert answers.hashable(answer, ()) is answer


@pytest.mark.parametrize("answer", [[], {}, {1}, ([],), np.zeros(1)])
def test_what_can_change_is_none(answer: Any) -> None:
    assert refused(answers.hashable, answer) == f"found {described(answer)}; allowed a hashable value, or None"


def test_nothing_is_wanted_of_who_only_hears() -> None:
    for said in (None, 3, SUCCESS, "thanks"):
        answers.nothing(said, ())
    assert refused(answers.nothing, _one_by_one()).endswith("; allowed None")
    assert refused(answers.nothing, _later()).endswith("; allowed None")


def test_a_judge_is_one_or_nobody() -> None:
    judge = PlainRowVerdict(None, None, None, None)  # type: ignore[arg-type]
    assert answers.judge(judge, ()) is judge
    assert answers.judge(None, ()) is None


@pytest.mark.parametrize("events", [None, [], (), [event_with_hint(EventResource.NODE, Action.ADD)]])
def test_events_are_a_list_or_nothing(events: Any) -> None:
    assert answers.interests(events) is events


@pytest.mark.parametrize("answer", [*QueueingHint])
def test_a_hint_is_one_of_two(answer: QueueingHint) -> None:
    assert answers.hint(answer, ()) is answer


def test_keys_of_one_queue_compare_with_the_first_of_them() -> None:
    check = answers.sort_key()
    assert [check(key, ()) for key in [(1, "a"), (0, "b"), (2,), (1, "c")]] == [(1, "a"), (0, "b"), (2,), (1, "c")]
    assert refused(check, ("b", 1)) == "found \"('b', 1)\"; allowed a tuple that compares with those of other pods, such as [(1, 'a')]"
    assert check((7, "z"), ()) == (7, "z"), "one that was refused is not what others are held against"
    assert answers.sort_key()(("b", 1), ()) == ("b", 1), "each queue has its own"


@pytest.mark.parametrize("key", [(object(),), (1, {}), (None,)])
def test_a_key_that_does_not_compare_even_with_itself_is_refused_though_it_is_the_first(key: Any) -> None:
    assert "a tuple that compares with those of other pods, such as numbers" in refused(answers.sort_key(), key)


@pytest.mark.parametrize("key", [(math.nan,), (1, math.nan)])
def test_a_key_without_a_place_in_any_order_is_refused(key: Any) -> None:
    assert refused(answers.sort_key(), key) == "found nan; allowed a tuple of values that can be compared"
