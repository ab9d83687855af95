"""Selectors, node terms and tolerations against the plainest reading of each rule."""

from __future__ import annotations

import re
import tracemalloc
from typing import Any

from hypothesis import strategies as st

from fuzz.effort import bounded, fuzz, outcome
from placewright.api.objects import LabelSelector, NodeSelector, NodeSelectorTerm, Requirement, Taint, Toleration
from placewright.api.selectors import (
    SelectorError,
    compile_label_selector,
    compile_node_selector,
    compile_node_term,
    node_selector_problems,
    parse_int64,
)
from placewright.api.tolerations import TolerationSet, first_untolerated, tolerates

_KEYS = ("app", "example.com/tier", "zone", "-bad", "a/b/c", "", "x" * 64, "\x1b[2J", "caf\u00e9")
_VALUES = ("web", "", "5", "-3", "+7", "007", "99999999999999999999", "bad value", "y" * 64, "-", "\u0665", "1e3")
OPERATORS = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "in", "", "\x1b"])
REQUIREMENTS = st.builds(
    Requirement,
    key=st.sampled_from(_KEYS) | st.text(max_size=5),
    operator=OPERATORS,
    values=st.none() | st.lists(st.sampled_from(_VALUES) | st.text(max_size=4), max_size=3).map(tuple),
)
LABELS = st.dictionaries(st.sampled_from(_KEYS[:3]), st.sampled_from(_VALUES), max_size=3)
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)
_PREFIX = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII | re.DOTALL)


def is_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    return _NAME.fullmatch(name) is not None and (not slash or _PREFIX.fullmatch(prefix) is not None)


def is_value(value: str) -> bool:
    return value == "" or _NAME.fullmatch(value) is not None


def as_int64(text: str | None) -> int | None:
    if text is None or not re.fullmatch(r"[+-]?[0-9]{1,40}", text, re.ASCII):
        return None
    return int(text) if -(2**63) <= int(text) < 2**63 else None


def is_valid(requirement: Requirement, *, of_nodes: bool) -> bool:
    values = requirement.values or ()
    fits = {
        "In": len(values) > 0,
        "NotIn": len(values) > 0,
        "Exists": not values,
        "DoesNotExist": not values,
        "Gt": of_nodes and len(values) == 1 and as_int64(values[0]) is not None,
        "Lt": of_nodes and len(values) == 1 and as_int64(values[0]) is not None,
    }
    return fits.get(requirement.operator, False) and is_key(requirement.key) and all(map(is_value, values))


def holds(requirement: Requirement, labels: dict[str, str]) -> bool:
    """What a valid requirement says, word by word."""
    value, values = labels.get(requirement.key), requirement.values or ()
    if requirement.operator == "In":
        return value in values if value is not None else False
    if requirement.operator == "NotIn":
        return value not in values if value is not None else True
    if requirement.operator in ("Exists", "DoesNotExist"):
        return (requirement.key in labels) == (requirement.operator == "Exists")
    number, bound = as_int64(value), as_int64(values[0])
    if number is None or bound is None:
        return False
    return number > bound if requirement.operator == "Gt" else number < bound


@fuzz(
    400,
    pairs=st.none() | LABELS | st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
    requirements=st.none() | st.lists(REQUIREMENTS, max_size=3).map(tuple),
    labels=LABELS,
)
def test_a_label_selector_matches_what_its_parts_match_or_is_refused(
    pairs: dict[str, str] | None, requirements: tuple[Requirement, ...] | None, labels: dict[str, str]
) -> None:
    found = outcome(lambda: compile_label_selector(LabelSelector(match_labels=pairs, match_expressions=requirements)), SelectorError)
    valid = all(is_key(key) and is_value(value) for key, value in (pairs or {}).items()) and all(
        is_valid(one, of_nodes=False) for one in requirements or ()
    )
    if isinstance(found, Exception):
        assert not valid
        assert str(found).isprintable()
    else:
        assert valid
        expected = all(labels.get(key) == value for key, value in (pairs or {}).items())
        assert found.matches(labels) == (expected and all(holds(one, labels) for one in requirements or ()))


TERMS = st.builds(
    NodeSelectorTerm,
    match_expressions=st.none() | st.lists(REQUIREMENTS, max_size=2).map(tuple),
    match_fields=st.none()
    | st.lists(
        st.builds(
            Requirement,
            key=st.sampled_from(["metadata.name", "metadata.name", "metadata.uid", ""]),
            operator=OPERATORS,
            values=st.none() | st.lists(st.sampled_from(["n", "m", ""]), max_size=2).map(tuple),
        ),
        max_size=2,
    ).map(tuple),
)


def is_valid_field(field: Requirement) -> bool:
    return field.key == "metadata.name" and field.operator in ("In", "NotIn") and len(field.values or ()) == 1


@fuzz(400, terms=st.lists(TERMS, max_size=3).map(tuple), labels=LABELS, name=st.sampled_from(["n", "m"]))
def test_a_node_selector_matches_where_a_valid_term_does(terms: tuple[NodeSelectorTerm, ...], labels: dict[str, str], name: str) -> None:
    expected, problems = False, 0
    for term in terms:
        expressions, fields = term.match_expressions or (), term.match_fields or ()
        if not (all(is_valid(one, of_nodes=True) for one in expressions) and all(map(is_valid_field, fields))):
            problems += 1
            assert isinstance(outcome(lambda term=term: compile_node_term(term), SelectorError), SelectorError)  # type: ignore[misc]
        elif expressions or fields:
            named = all((name in (one.values or ())) == (one.operator == "In") for one in fields)
            expected = expected or (named and all(holds(one, labels) for one in expressions))
    selector = NodeSelector(node_selector_terms=terms)
    assert any(term.matches(labels, name) for term in compile_node_selector(selector)) == expected
    found = node_selector_problems(selector)
    assert len(found) == problems
    assert all(line.isprintable() for line in found)


@fuzz(100, text=st.none() | st.sampled_from(_VALUES) | st.text("0123456789+-_ \u0661\n", max_size=45))
def test_integers_are_read_as_go_reads_them(text: str | None) -> None:
    assert parse_int64(text) == as_int64(text)


def test_a_label_key_without_end_is_refused_at_once() -> None:
    for key in ("a." * 500_000, "a-" * 500_000 + "/x", "-" * 10**6, "a" * 10**6 + "!"):
        requirement = Requirement(key=key, operator="Exists")
        with bounded(len(key)):
            found = outcome(lambda one=requirement: compile_label_selector(LabelSelector(match_expressions=(one,))), SelectorError)  # type: ignore[misc]
        assert isinstance(found, SelectorError)
        assert len(str(found)) < 500


def test_long_keys_and_values_are_not_kept_once_they_were_refused() -> None:
    tracemalloc.start()
    try:
        for number in range(200):
            long = f"{number}" * 50_000
            for one in (Requirement(key=long, operator="Exists"), Requirement(key="a", operator="In", values=(long,))):
                term = NodeSelectorTerm(match_expressions=(one,))
                assert isinstance(outcome(lambda term=term: compile_node_term(term), SelectorError), SelectorError)  # type: ignore[misc]
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert kept < 2**20


# --- tolerations ------------------------------------------------------------------------------------------------------------------

_EFFECTS = st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule", "", "Nonsense"])
_WORDS: Any = st.sampled_from(["", "k", "l", "\x1b"])
TAINTS = st.builds(Taint, key=_WORDS, value=_WORDS, effect=_EFFECTS)
TOLERATIONS = st.builds(
    Toleration, key=_WORDS, operator=st.sampled_from(["", "Equal", "Exists", "equal", "Lt"]), value=_WORDS, effect=_EFFECTS
)


def covers(toleration: Toleration, taint: Taint) -> bool:
    """The API's documentation of Toleration, sentence by sentence."""
    effect = toleration.effect in ("", taint.effect)
    key = toleration.key in ("", taint.key)
    if toleration.operator == "Exists":
        return effect and key
    return effect and key and toleration.operator in ("", "Equal") and toleration.value == taint.value


@fuzz(300, taints=st.lists(TAINTS, max_size=4).map(tuple), tolerations=st.lists(TOLERATIONS, max_size=4).map(tuple))
def test_tolerations_cover_what_their_documentation_says(taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...]) -> None:
    assert [[tolerates(t, taint) for t in tolerations] for taint in taints] == [[covers(t, taint) for t in tolerations] for taint in taints]
    bare = [taint for taint in taints if not any(covers(one, taint) for one in tolerations)]
    hard = [taint for taint in bare if taint.effect in ("NoSchedule", "NoExecute")]
    assert first_untolerated(taints, tolerations) == (hard[0] if hard else None)
    assert TolerationSet(tolerations).intolerable_preferences(taints) == sum(taint.effect == "PreferNoSchedule" for taint in bare)
