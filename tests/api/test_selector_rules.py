"""Selectors against apimachinery's rules written out again, at their limits, and in the API server's words."""

from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placewright.api.decode import convert
from placewright.api.objects import LabelSelector, NodeSelector, NodeSelectorTerm, Requirement
from placewright.api.selectors import (
    NODE_NAME_FIELD,
    CompiledRequirement,
    SelectorError,
    compile_label_selector,
    compile_node_selector,
    compile_node_term,
    node_selector_problems,
    parse_int64,
    selector_from_pairs,
)

VALUE_RULE = "a label's value must be empty, or letters, digits, '-', '_' and '.', at most 63, with a letter or digit at both ends"
KEY_RULE = (
    "a label's name must be letters, digits, '-', '_' and '.', at most 63, with a letter or digit at both ends, "
    "after a DNS subdomain and '/' where it has a prefix"
)


def asks(operator: str, *values: str, key: str = "k") -> Requirement:
    return Requirement(key=key, operator=operator, values=values)


def selector(*requirements: Requirement) -> LabelSelector:
    return LabelSelector(match_expressions=requirements)


def term(*requirements: Requirement, fields: tuple[Requirement, ...] = ()) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=requirements, match_fields=fields)


def refusal(*requirements: Requirement, node: bool = False, path: str = "") -> str:
    with pytest.raises(SelectorError) as refused:
        compile_node_term(term(*requirements), path) if node else compile_label_selector(selector(*requirements))
    return str(refused.value)


# --- what matches ------------------------------------------------------------------------------------------------------------------

LABELS = st.dictionaries(st.sampled_from("ab"), st.sampled_from(["", "x", "y", "3", "07"]))
KEYS = st.sampled_from("ab")
SETS = st.builds(asks, st.sampled_from(["In", "NotIn"]), st.sampled_from(["", "x", "3"]), st.sampled_from(["x", "y"]), key=KEYS)
PRESENCE = st.builds(asks, st.sampled_from(["Exists", "DoesNotExist"]), key=KEYS)
ORDER = st.builds(asks, st.sampled_from(["Gt", "Lt"]), st.sampled_from(["0", "3", "7", "10"]), key=KEYS)


def holds(requirement: Requirement, labels: dict[str, str]) -> bool:
    """`Requirement.Matches` of apimachinery, case by case."""
    values, there = requirement.values or (), requirement.key in labels
    value = labels.get(requirement.key, "")
    rules = {
        "In": lambda: there and value in values,
        "NotIn": lambda: not there or value not in values,
        "Exists": lambda: there,
        "DoesNotExist": lambda: not there,
        "Gt": lambda: value.isdigit() and int(value) > int(values[0]),
        "Lt": lambda: value.isdigit() and int(value) < int(values[0]),
    }
    return rules[requirement.operator]()


@given(LABELS, LABELS, st.lists(SETS | PRESENCE, max_size=3))
def test_a_label_selector_matches_where_all_that_it_says_holds(
    labels: dict[str, str], pairs: dict[str, str], rest: list[Requirement]
) -> None:
    compiled = compile_label_selector(LabelSelector(match_labels=pairs, match_expressions=tuple(rest)))
    expected = all(labels.get(key) == value for key, value in pairs.items()) and all(holds(each, labels) for each in rest)
    assert compiled.matches(labels) is expected
    assert selector_from_pairs(pairs).matches(labels) is (pairs.items() <= labels.items())
    assert compiled.empty is (not pairs and not rest)


NAMED = st.sampled_from([None, ("In", "n1"), ("NotIn", "n1")])
TERMS = st.lists(st.tuples(st.lists(SETS | PRESENCE | ORDER, max_size=2), NAMED), max_size=3)


@given(LABELS, st.sampled_from(["n1", "n2"]), TERMS)
def test_a_node_is_selected_where_one_term_holds_whole(
    labels: dict[str, str], name: str, said: list[tuple[list[Requirement], tuple[str, str] | None]]
) -> None:
    terms, expected = [], False
    for requirements, named in said:
        fields = (asks(*named, key="metadata.name"),) if named else ()
        terms.append(term(*requirements, fields=fields))
        by_name = named is None or (name == named[1]) is (named[0] == "In")
        expected |= bool(requirements or fields) and by_name and all(holds(each, labels) for each in requirements)
    compiled = compile_node_selector(NodeSelector(node_selector_terms=tuple(terms)))
    assert any(each.matches(labels, name) for each in compiled) is expected


@given(st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy")))
def test_pairs_and_requirements_that_say_the_same_are_one_key_of_a_cache(pairs: dict[str, str]) -> None:
    by_pairs = compile_label_selector(LabelSelector(match_labels=dict(reversed(pairs.items()))))
    by_requirements = compile_label_selector(selector(*(asks("In", value, key=key) for key, value in sorted(pairs.items()))))
    assert by_pairs == by_requirements == selector_from_pairs(pairs)
    assert len({by_pairs, by_requirements, selector_from_pairs(pairs)}) == 1


def test_the_order_of_values_is_no_difference_and_that_of_requirements_is_kept() -> None:
    one, other = compile_label_selector(selector(asks("In", "x", "y"))), compile_label_selector(selector(asks("In", "y", "x", "x")))
    assert one == other
    assert one.expressions == (CompiledRequirement("k", "In", frozenset({"x", "y"})),)
    both = compile_label_selector(LabelSelector(match_labels={"b": "1", "a": "2"}, match_expressions=(asks("Exists", key="0"),)))
    assert [each.key for each in both.expressions] == ["a", "b", "0"]


def test_the_bound_of_gt_is_part_of_what_it_says() -> None:
    compiled = compile_node_term(term(asks("Gt", "007"), asks("Lt", "9")))
    assert compiled is not None
    assert [(each.operator, each.bound) for each in compiled.labels] == [("Gt", 7), ("Lt", 9)]
    assert compiled.names == ()
    assert compile_node_term(term(asks("Gt", "7"))) != compile_node_term(term(asks("Gt", "8")))


# --- integers ----------------------------------------------------------------------------------------------------------------------


@given(st.integers(-(2**65), 2**65), st.sampled_from(["", "+", "0", "000"]))
def test_every_integer_of_64_bits_is_read_with_its_sign_and_its_zeros(number: int, front: str) -> None:
    text = f"{'-' if number < 0 else front if front == '+' else ''}{'' if front == '+' else front}{abs(number)}"
    assert parse_int64(text) == (number if -(2**63) <= number < 2**63 else None)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (str(2**63 - 1), 2**63 - 1), (str(2**63), None), (str(-(2**63)), -(2**63)), (str(-(2**63) - 1), None),
        ("0" * 62 + "7", 7), ("0" * 63 + "7", None), ("-" + "0" * 62 + "7", -7), ("-0", 0), ("+0", 0),
        ("--1", None), ("+-1", None), ("1 ", None), ("1\n", None), ("1_0", None), ("\u00b9", None), ("\uff11", None), ("a", None),
        (None, None),
    ],
)  # fmt: skip
def test_the_ends_of_64_bits_and_what_only_looks_like_a_number(text: str | None, number: int | None) -> None:
    assert parse_int64(text) == number


# --- what a label can be -------------------------------------------------------------------------------------------------------------

EDGE = string.ascii_letters + string.digits
INSIDE = EDGE + "-_."
NAMES = st.text(st.sampled_from("aZ9-_./ é\n"), max_size=4)


def is_name(text: str) -> bool:
    """`IsQualifiedName`'s rule for the part after the slash."""
    return 0 < len(text) <= 63 and text[0] in EDGE and text[-1] in EDGE and all(each in INSIDE for each in text)


def is_subdomain(text: str) -> bool:
    parts = text.split(".")
    return len(text) <= 253 and all(
        part and "-" not in (part[0], part[-1]) and set(part) <= set(string.ascii_lowercase + string.digits + "-") for part in parts
    )


def accepted(requirement: Requirement) -> bool:
    try:
        compile_label_selector(selector(requirement))
    except SelectorError:
        return False
    return True


@given(NAMES)
def test_a_value_is_what_a_label_can_have(text: str) -> None:
    assert accepted(asks("In", text)) is (not text or is_name(text))


@given(NAMES, st.none() | st.text(st.sampled_from("a9-.Z_"), max_size=5))
def test_a_key_is_what_a_label_can_be_called(name: str, prefix: str | None) -> None:
    key = name if prefix is None else f"{prefix}/{name}"
    front, slash, back = key.rpartition("/")
    assert accepted(asks("Exists", key=key)) is (is_name(back) and (not slash or is_subdomain(front)))


@pytest.mark.parametrize(
    ("key", "good"),
    [
        ("k" * 63, True), ("k" * 64, False), ("p" * 253 + "/k", True), ("p" * 254 + "/k", False), ("p" * 253 + "/" + "k" * 63, True),
        ("p" * 253 + "/" + "k" * 64, False), ("/k", False), ("p/", False), ("p.-q/k", False), ("p..q/k", False), ("k\n", False),
        ("p\n/k", False),
    ],
)  # fmt: skip
def test_keys_at_their_longest_and_at_their_seams(key: str, *, good: bool) -> None:
    assert accepted(asks("Exists", key=key)) is good
    assert accepted(asks("In", "", key=key)) is good


@pytest.mark.parametrize(
    ("value", "good"), [("v" * 63, True), ("v" * 64, False), ("v\n", False), ("a.b", True), (".b", False), ("a-", False)]
)
def test_values_at_their_longest_and_at_their_ends(value: str, *, good: bool) -> None:
    assert accepted(asks("NotIn", value)) is good


def test_what_is_far_too_long_never_reaches_a_cache() -> None:
    """API servers let long values pass in node affinity, and a cache keeps what it has seen."""
    from placewright.api import selectors  # noqa: PLC0415 - its caches, which nobody else has business with

    before = selectors._is_label_key.cache_info().currsize, selectors._is_label_value.cache_info().currsize
    for length in (318, 10**6):
        assert not accepted(asks("Exists", key="k" * length))
    for length in (64, 10**6):
        assert not accepted(asks("In", "v" * length))
    assert (selectors._is_label_key.cache_info().currsize, selectors._is_label_value.cache_info().currsize) == before


# --- the words ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (asks("In"), "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"),
        (asks("DoesNotExist", "v", "w"), 'values: Invalid value: ["v", "w"]: values set must be empty for exists and does not exist'),
        (asks("NotIn", "ok", " "), f'values[1]: Invalid value: " ": {VALUE_RULE}'),
        (asks("Exists", key="a b"), f'key: Invalid value: "a b": {KEY_RULE}'),
        (asks("In", "-", key="-"), f'key: Invalid value: "-": {KEY_RULE}'),
        (asks("in", "v"), '"in" is not a valid label selector operator'),
        (asks("Lt", "3"), '"Lt" is not a valid label selector operator'),
    ],
)
def test_a_label_selector_is_refused_in_these_words(wrong: Requirement, said: str) -> None:
    assert refusal(wrong) == said


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (asks("Gt"), "values: Invalid value: []: for 'Gt', 'Lt' operators, exactly one value is required"),
        (asks("Lt", "1", "2"), "values: Invalid value: [\"1\", \"2\"]: for 'Gt', 'Lt' operators, exactly one value is required"),
        (asks("Gt", "1.5"), "values[0]: Invalid value: \"1.5\": for 'Gt', 'Lt' operators, the value must be an integer"),
        (asks("Gt", "+1"), f'values[0]: Invalid value: "+1": {VALUE_RULE}'),
        (asks("NotIn"), "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"),
        (asks("Exists", key="/"), f'key: Invalid value: "/": {KEY_RULE}'),
        (asks("gt", "1"), 'operator: Unsupported value: "gt": supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'),
    ],
)
def test_a_requirement_of_a_node_is_refused_by_its_path(wrong: Requirement, said: str) -> None:
    assert refusal(asks("Exists"), wrong, node=True, path="at.") == f"at.matchExpressions[1].{said}"


@pytest.mark.parametrize(
    ("field", "said"),
    [
        (asks("In", "a", key="metadata.uid"), 'key: Unsupported value: "metadata.uid": supported values: "metadata.name"'),
        (asks("Gt", "1", key=NODE_NAME_FIELD), 'operator: Unsupported value: "Gt": supported values: "In", "NotIn"'),
        (asks("In", key=NODE_NAME_FIELD), "values: Invalid value: []: must have one element"),
        (asks("NotIn", "a", "b", key=NODE_NAME_FIELD), 'values: Invalid value: ["a", "b"]: must have one element'),
    ],
)
def test_a_field_of_a_node_is_refused_by_its_path(field: Requirement, said: str) -> None:
    good = asks("In", "n", key="metadata.name")
    with pytest.raises(SelectorError) as refused:
        compile_node_term(term(fields=(good, field)), "p.")
    assert str(refused.value) == f"p.matchFields[1].{said}"
    alone = NodeSelector(node_selector_terms=(term(fields=(field,)),))
    assert node_selector_problems(alone) == [f"nodeSelectorTerms[0].matchFields[0].{said}"]


def test_the_name_of_a_node_need_not_be_what_a_label_can_have() -> None:
    compiled = compile_node_term(term(fields=(asks("In", "n" * 253, key=NODE_NAME_FIELD),)))
    assert compiled is not None
    assert compiled.labels == ()
    assert compiled.matches({}, "n" * 253)
    assert not compiled.matches({}, "n")


@pytest.mark.parametrize(("length", "whole"), [(78, True), (79, False)])
def test_a_value_is_quoted_whole_up_to_eighty_characters_and_cut_beyond(length: int, *, whole: bool) -> None:
    said = refusal(asks("v" * length))
    assert said == (f'"{"v" * length}"' if whole else '"' + "v" * 79 + "...") + " is not a valid label selector operator"


def test_what_is_quoted_cannot_move_a_terminals_cursor() -> None:
    for wrong in (asks("\x1b[2J"), asks("In", "\x1b[2J\n"), asks("Exists", key="\u202e\n")):
        assert refusal(wrong).isprintable()
        assert refusal(wrong).isascii()


def test_of_several_terms_each_that_does_not_parse_is_told_and_no_other() -> None:
    document: dict[str, Any] = {
        "nodeSelectorTerms": [
            {},
            {"matchExpressions": [{"key": "k", "operator": "Exists"}]},
            {"matchExpressions": [{"key": "", "operator": "Exists"}, {"key": "k", "operator": "Near"}]},
            {"matchFields": []},
            {"matchExpressions": None, "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]},
            {"matchFields": [{"key": "x", "operator": "In", "values": ["n"]}]},
        ]
    }
    found = convert(document, NodeSelector)
    assert [problem.split(":", 1)[0] for problem in node_selector_problems(found)] == [
        "nodeSelectorTerms[2].matchExpressions[0].key", "nodeSelectorTerms[5].matchFields[0].key",
    ]  # fmt: skip
    assert len(compile_node_selector(found)) == 2
    assert (node_selector_problems(NodeSelector()), compile_node_selector(NodeSelector())) == ([], ())
