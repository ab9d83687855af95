"""Checks the answers of plugins that are not ours: each extension point allows some and refuses the others.

A check takes the answer and the arguments of the call, and returns the answer as the framework keeps it. It raises `WrongAnswer` with the
found and the allowed answer.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

import numpy as np

from placewright.api.pods import PodInfo
from placewright.framework.events import ClusterEventWithHint, QueueingHint
from placewright.framework.interface import (
    Alternatives,
    PermitResult,
    PluginMetric,
    PostFilterResult,
    PreFilterResult,
    Rejection,
    Rows,
)
from placewright.framework.remedies import Remedy
from placewright.framework.rowwise import RowVerdict
from placewright.framework.status import Code, Status

#: The arguments of a call, by position.
Asked = Sequence[Any]
Check = Callable[[Any, Asked], Any]

_LONGEST: Final = 80
_LISTS: Final = (list, tuple)
_HASHABLE: Final = "a hashable value, or None"
#: Values of one metric of a plugin: a scrape holds up decisions while it reads them.
_MOST_SERIES: Final = 1000
_METRIC_NAME: Final = re.compile("[a-z][a-z0-9_]*")
_DTYPES: Final[dict[type[Any], np.dtype[Any]]] = {kind: np.dtype(kind) for kind in (np.bool_, np.int64)}
_REJECTIONS: Final = (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING)


class WrongAnswer(Exception):
    """A plugin answered what its extension point does not allow."""

    def __init__(self, found: object, allowed: str, where: str = "") -> None:
        super().__init__(f"found {described(found)}{where}; allowed {allowed}")
        if inspect.iscoroutine(found):
            found.close()  # else Python warns that it was never awaited


def _require(right: object, found: object, allowed: str, where: str = "") -> None:
    if not right:
        raise WrongAnswer(found, allowed, where)


def described(value: object) -> str:
    """Describe what a plugin answered, for messages.

    Args:
        value: anything; its `repr` may raise.

    Returns:
        A few words, at most 80 characters.
    """
    if inspect.isawaitable(value):
        return "a coroutine (is the method async?)"
    if inspect.isgenerator(value) or inspect.isasyncgen(value):
        return "a generator (does the method yield?)"
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}, shape {value.shape}"
    if isinstance(value, Status):
        return f"the status {value.code.value}"
    if isinstance(value, (list, tuple, dict, set, frozenset)):
        return f"a {type(value).__name__} of {len(value)}"
    try:
        text = " ".join(repr(value).split())
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - the class of a plugin's author
        text = f"a {type(value).__name__}"
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


# --- statuses -----------------------------------------------------------------------------------------------------------------------


def status_of(*codes: Code) -> Check:
    """Make a check for statuses.

    Returns:
        A check that passes a `Status` with one of these codes and a tuple of texts as its reasons.
    """
    allowed = (*codes, Code.ERROR)
    words = "a Status: " + ", ".join(code.value for code in allowed)

    def check(answer: Status, _asked: Asked) -> Status:
        _require(isinstance(answer, Status) and answer.code in allowed, answer, words)
        _require(_is_all(answer.reasons, tuple, str), answer.reasons, "a tuple of texts as the status' reasons")
        return answer

    return check


admitted: Final = status_of(Code.SUCCESS, *_REJECTIONS)
prepared: Final = status_of(Code.SUCCESS, Code.SKIP, *_REJECTIONS)
to_be_called: Final = status_of(Code.SUCCESS, Code.SKIP)
failed: Final = status_of(Code.SUCCESS)
_permitted: Final = status_of(Code.SUCCESS, Code.WAIT, *_REJECTIONS)
_made_room: Final = status_of(Code.SUCCESS, Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
_rejecting: Final = status_of(*_REJECTIONS)


def pre_filter_result(answer: PreFilterResult, asked: Asked) -> PreFilterResult:
    """Check the answer of PreFilter.

    Raises:
        WrongAnswer: it is no `PreFilterResult`, or holds a value that does not belong there.
    """
    _require(isinstance(answer, PreFilterResult), answer, "a PreFilterResult")
    prepared(answer.status, asked)
    if answer.nodes is None:
        return answer
    right = isinstance(answer.nodes, AbstractSet) and all(isinstance(name, str) for name in answer.nodes)
    _require(right, answer.nodes, "a frozenset of node names, or None, as the result's nodes")
    return PreFilterResult(answer.status, frozenset(answer.nodes))


def permit_result(answer: PermitResult, asked: Asked) -> PermitResult:
    """Check the answer of Permit.

    Raises:
        WrongAnswer: it is no `PermitResult`, or says WAIT without a number of seconds.
    """
    _require(isinstance(answer, PermitResult), answer, "a PermitResult")
    _permitted(answer.status, asked)
    timed = answer.status.code is not Code.WAIT or _is_seconds(answer.timeout)
    _require(timed, answer.timeout, "a number of seconds as the result's timeout")
    return answer


def post_filter_result(answer: PostFilterResult, asked: Asked) -> PostFilterResult:
    """Check the answer of PostFilter.

    Raises:
        WrongAnswer: it is no `PostFilterResult`, or holds a value that does not belong there.
    """
    _require(isinstance(answer, PostFilterResult), answer, "a PostFilterResult")
    _made_room(answer.status, asked)
    named = answer.nominated_node is None or isinstance(answer.nominated_node, str)
    _require(named, answer.nominated_node, "a node's name, an empty text or None as the result's nominated_node")
    _require(_is_all(answer.victims, tuple, PodInfo), answer.victims, "a tuple of PodInfo as the result's victims")
    chosen = answer.alternatives is None or isinstance(answer.alternatives, Alternatives)
    _require(chosen, answer.alternatives, "Alternatives, or None, as the result's alternatives")
    timed = answer.retry_after is None or _is_seconds(answer.retry_after)
    _require(timed, answer.retry_after, "a number of seconds, or None, as the result's retry_after")
    return answer


# --- columns ------------------------------------------------------------------------------------------------------------------------


def _columns(kind: type[np.bool_ | np.int64], at: int) -> Check:
    """Make a check for columns of one type, with one answer for each entry of the argument number `at`.

    It returns an array of the framework's own, because kept columns are mended in place.
    """
    return lambda answer, asked: _column(answer, len(asked[at]), kind)


def _column(answer: Any, size: int, kind: type[np.bool_ | np.int64]) -> Any:
    # The right answer, tested at the cost of three comparisons; everything else is looked at in detail.
    if type(answer) is np.ndarray and answer.dtype is _DTYPES[kind] and answer.shape == (size,):
        return answer.copy()  # what is kept here is mended row by row
    right = isinstance(answer, np.ndarray) and answer.shape == (size,)
    right = right and (answer.dtype == np.bool_) == (kind is np.bool_) and np.can_cast(answer.dtype, kind)
    _require(right, answer, f"an array of {kind.__name__.rstrip('_')} with one answer for each row, shape ({size},)")
    return answer.astype(kind)


passes: Final = _columns(np.bool_, -1)
scores: Final = _columns(np.int64, -1)
#: The raw scores are the second argument, before the summary.
normalised: Final = _columns(np.int64, 1)


def rejections(answer: Any, asked: Asked) -> list[Rejection]:
    """Check the answer of `explain`.

    Raises:
        WrongAnswer: a row is in no group or in two, or a status is no rejection.
    """
    rows = asked[-1]
    _require(_is_all(answer, _LISTS, tuple) and all(len(group) == 2 for group in answer), answer, "a list of Rejection from explain")
    groups = []
    for status, rejected in answer:
        _rejecting(status, asked)
        _require(status.code is not Code.ERROR, status, "rejections from explain")
        groups.append(Rejection(status, np.asarray(rejected, np.intp)))
    told = np.sort(np.concatenate([group.rows for group in groups])) if groups else np.zeros(0, np.intp)
    _require(np.array_equal(told, np.sort(rows)), told, f"each of the {len(rows)} rows in exactly one Rejection from explain")
    return groups


def judge(answer: RowVerdict | None, _asked: Asked) -> RowVerdict | None:
    """Check the answer of `RowwiseFilter.judge`.

    Raises:
        WrongAnswer: it is neither.
    """
    _require(answer is None or isinstance(answer, RowVerdict), answer, "a RowVerdict, or None")
    return answer


def remedies(answer: Sequence[Remedy], _asked: Asked) -> Sequence[Remedy]:
    """Check the answer of `RemedyPlugin.remedies`.

    Raises:
        WrongAnswer: it is no list of them.
    """
    _require(_is_all(answer, _LISTS, Remedy), answer, "a list of Remedy from remedies")
    return answer


def reordered(answer: Any, asked: Asked) -> Rows | None:
    """Check the answer of `RemedyPlugin.nearest_first`.

    Returns:
        The rows in another order, or None.

    Raises:
        WrongAnswer: a row is missing, or is there twice.
    """
    if answer is None:
        return None
    rows: Rows = np.asarray(answer, np.intp)
    right = np.array_equal(np.sort(rows), np.sort(asked[-1]))
    _require(right, answer, f"each of the {len(asked[-1])} rows once, or None, from nearest_first")
    return rows


# --- the rest -----------------------------------------------------------------------------------------------------------------------


def hashable(answer: Any, _asked: Asked) -> Any:
    """Check a signature, a fingerprint or a summary.

    Raises:
        WrongAnswer: it cannot be hashed, and so neither compared nor kept.
    """
    try:
        hash(answer)
    except TypeError:
        raise WrongAnswer(answer, _HASHABLE) from None
    _require(not inspect.isawaitable(answer), answer, _HASHABLE)
    return answer


def awaitable(answer: Awaitable[Any]) -> Awaitable[Any]:
    """Check that an async method was written as one.

    Raises:
        WrongAnswer: it cannot be awaited.
    """
    _require(inspect.isawaitable(answer), answer, "a coroutine: the method has to be async")
    return answer


def nothing(answer: Any, _asked: Asked) -> None:
    """Check a method without an answer. One that would have to be awaited says that nothing was done.

    Raises:
        WrongAnswer: it is a coroutine or a generator.
    """
    _require(not (inspect.isawaitable(answer) or inspect.isgenerator(answer)), answer, "None")


def metrics(answer: Any, _asked: Asked) -> tuple[PluginMetric, ...]:
    """Check the answer of `Plugin.metrics`.

    Raises:
        WrongAnswer: one is no `PluginMetric` with a name, labels and numbers that Prometheus takes.
    """
    found = tuple(answer) if isinstance(answer, Iterable) else (answer,)
    for each in found:
        _require(isinstance(each, PluginMetric), each, "PluginMetric")
        names = (each.name, *each.labels)
        right = "profile" not in each.labels and all(map(_METRIC_NAME.fullmatch, names))
        _require(right, " ".join(names), "a name and labels of lower case letters, digits and underscores, without profile")
        right = len(each.values) <= _MOST_SERIES and all(len(key) == len(each.labels) for key in each.values)
        right = right and all(isinstance(value, (int, float)) for value in each.values.values())
        _require(right, each.values, f"up to {_MOST_SERIES} numbers by {len(each.labels)} values of labels", f" for {each.name}")
    return found


def sort_key() -> Check:
    """Make a check of one queue's keys. It remembers the first key, with which all others have to compare."""
    first: list[tuple[Any, ...]] = []

    def check(answer: tuple[Any, ...], _asked: Asked) -> tuple[Any, ...]:
        _require(isinstance(answer, tuple), answer, "a tuple")
        # NaN has no place in any order.
        _require(all(part == part for part in answer), math.nan, "a tuple of values that can be compared")  # noqa: PLR0124
        try:
            _ = [part < part for part in answer]  # noqa: PLR0124 - a tuple and itself compare without a look at its parts
            _ = bool(first) and (answer < first[0], first[0] < answer)
        except TypeError:
            raise WrongAnswer(repr(answer), f"a tuple that compares with those of other pods, such as {first[:1] or 'numbers'}") from None
        first[:] = first or [answer]
        return answer

    return check


def hint(answer: QueueingHint, _asked: Asked) -> QueueingHint:
    """Check the answer of a queueing hint.

    Raises:
        WrongAnswer: it is no `QueueingHint`.
    """
    _require(isinstance(answer, QueueingHint), answer, "QueueingHint.QUEUE or QueueingHint.SKIP")
    return answer


def interests(answer: Sequence[ClusterEventWithHint] | None) -> Sequence[ClusterEventWithHint] | None:
    """Check the answer of `Plugin.events`.

    Raises:
        WrongAnswer: it is neither a table nor None.
    """
    _require(answer is None or _is_all(answer, _LISTS, ClusterEventWithHint), answer, "a list of event_with_hint(…), or None, from events")
    return answer


def _is_seconds(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0  # NaN is not


def _is_all(value: object, of: type | tuple[type, ...], kind: type) -> bool:
    return isinstance(value, of) and isinstance(value, Iterable) and all(isinstance(each, kind) for each in value)
