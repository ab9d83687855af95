"""Selectors match what kube-scheduler's match: every operator, absent labels, numbers, and what does not parse."""

from __future__ import annotations

import re
from typing import Any

import pytest

from placewright.api.decode import convert
from placewright.api.objects import LabelSelector, NodeSelector, NodeSelectorTerm
from placewright.api.selectors import (
    EVERYTHING,
    SelectorError,
    compile_label_selector,
    compile_node_selector,
    compile_node_term,
    node_selector_problems,
    parse_int64,
    selector_from_pairs,
)


def requirement(operator: str, *values: str, key: str = "k") -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def labels_match(labels: dict[str, str], *requirements: dict[str, Any], **match: str) -> bool:
    body = {"matchLabels": match, "matchExpressions": list(requirements)}
    return compile_label_selector(convert(body, LabelSelector)).matches(labels)


def node_term(*requirements: dict[str, Any], fields: tuple[dict[str, Any], ...] = ()) -> NodeSelectorTerm:
    return convert({"matchExpressions": list(requirements), "matchFields": list(fields)}, NodeSelectorTerm)


@pytest.mark.parametrize(
    ("expression", "there", "other", "absent"),
    [
        (requirement("In", "v", "w"), True, False, False),
        (requirement("NotIn", "v", "w"), False, True, True),
        (requirement("Exists"), True, True, False),
        (requirement("DoesNotExist"), False, False, True),
    ],
)
def test_operators_of_label_selectors(expression: dict[str, Any], there: bool, other: bool, absent: bool) -> None:
    assert labels_match({"k": "v"}, expression) is there
    assert labels_match({"k": "x"}, expression) is other
    assert labels_match({"other": "v"}, expression) is absent


def test_an_empty_selector_matches_everything() -> None:
    assert labels_match({})
    assert labels_match({"a": "b"})
    assert compile_label_selector(LabelSelector()).empty
    assert EVERYTHING.empty


def test_all_of_a_selector_must_hold() -> None:
    assert labels_match({"k": "v", "app": "web"}, requirement("Exists"), app="web")
    assert not labels_match({"k": "v", "app": "db"}, requirement("Exists"), app="web")
    assert not labels_match({"app": "web"}, requirement("Exists"), app="web")
    assert selector_from_pairs({"a": "1", "b": "2"}).matches({"a": "1", "b": "2", "c": "3"})
    assert not selector_from_pairs({"a": "1", "b": "2"}).matches({"a": "1"})


def test_an_empty_value_is_a_value() -> None:
    assert labels_match({"k": ""}, requirement("In", ""))
    assert labels_match({"k": ""}, requirement("Exists"))
    assert not labels_match({}, requirement("In", ""))


def test_equal_selectors_are_one_key() -> None:
    one = compile_label_selector(convert({"matchLabels": {"a": "1", "b": "2"}}, LabelSelector))
    other = compile_label_selector(convert({"matchLabels": {"b": "2", "a": "1"}}, LabelSelector))
    assert one == other
    assert hash(one) == hash(other)


@pytest.mark.parametrize(
    ("operator", "bound", "label", "expected"),
    [
        ("Gt", "3", "4", True), ("Gt", "3", "3", False), ("Gt", "3", "+4", True),
        ("Lt", "3", "2", True), ("Lt", "3", "3", False), ("Lt", "0", "-1", True),
        ("Gt", "3", None, False), ("Lt", "3", None, False), ("Gt", "3", "many", False), ("Lt", "3", "", False),
        ("Gt", "3", "4.5", False), ("Gt", "3", " 4", False), ("Gt", "3", "4_0", False), ("Gt", "3", "\u0664", False),
        ("Gt", "3", str(2**63 - 1), True), ("Gt", "3", str(2**63), False), ("Lt", "3", str(-(2**63)), True),
    ],
)  # fmt: skip
def test_numbers_are_compared_as_int64(operator: str, bound: str, label: str | None, expected: bool) -> None:
    compiled = compile_node_term(node_term(requirement(operator, bound)))
    assert compiled is not None
    assert compiled.matches({} if label is None else {"k": label}, "n") is expected


@pytest.mark.parametrize("text", ["", "+", "-", "1.0", "0x1", "1e3", "9" * 5000, "\u00b2"])
def test_what_go_does_not_read_as_an_integer_is_none(text: str) -> None:
    assert parse_int64(text) is None


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (requirement("In"), "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"),
        (requirement("NotIn"), "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"),
        (requirement("Exists", "v"), 'values: Invalid value: ["v"]: values set must be empty for exists and does not exist'),
        (requirement("Near", "v"), '"Near" is not a valid label selector operator'),
        (requirement(""), '"" is not a valid label selector operator'),
        (requirement("Gt", "3"), '"Gt" is not a valid label selector operator'),
        (requirement("Exists", key="a b"), 'key: Invalid value: "a b": '),
        (requirement("Exists", key=""), 'key: Invalid value: "": '),
        (requirement("Exists", key="Example.test/k"), 'key: Invalid value: "Example.test/k": '),
        (requirement("Exists", key="a/b/c"), 'key: Invalid value: "a/b/c": '),
        (requirement("Exists", key="k" * 64), "key: Invalid value: "),
        (requirement("In", "good", "-bad"), 'values[1]: Invalid value: "-bad": '),
        (requirement("In", "v" * 64), "values[0]: Invalid value: "),
    ],
)
def test_a_label_selector_that_the_api_server_would_refuse_is_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(SelectorError, match=re.escape(said)):
        labels_match({}, wrong)


@pytest.mark.parametrize("key", ["k", "k.8-s_io", "example.test/k", "a-b.c/K", "k" * 63, f"{'d' * 253}/k"])
def test_what_can_be_the_name_of_a_label_can_be_asked_for(key: str) -> None:
    assert labels_match({key: ""}, requirement("In", "", key=key))


def test_pairs_of_a_label_selector_are_checked_as_well() -> None:
    for pairs in ({"a b": "v"}, {"k": "a b"}):
        with pytest.raises(SelectorError, match="Invalid value"):
            compile_label_selector(LabelSelector(match_labels=pairs))


@pytest.mark.parametrize("values", [(), ("1", "2"), ("x",), ("1.5",), (str(2**63),)])
def test_gt_needs_exactly_one_integer(values: tuple[str, ...]) -> None:
    said = r"for 'Gt', 'Lt' operators, (exactly one value is required|the value must be an integer)"
    with pytest.raises(SelectorError, match=said):
        compile_node_term(node_term(requirement("Gt", *values)))


@pytest.mark.parametrize("value", ["-3", "+3"])
def test_gt_takes_no_sign_because_no_label_begins_with_one(value: str) -> None:
    """So it is upstream: the values of any requirement must be such as labels can have."""
    with pytest.raises(SelectorError, match="a label's value must be"):
        compile_node_term(node_term(requirement("Gt", value)))


def test_terms_that_do_not_parse_are_named_by_their_field() -> None:
    good, named = requirement("Exists"), requirement("Exists", key="metadata.name")
    terms = (node_term(good), node_term(good, requirement("Near")), node_term(fields=(named,)), node_term())
    assert node_selector_problems(NodeSelector(node_selector_terms=terms)) == [
        'nodeSelectorTerms[1].matchExpressions[1].operator: Unsupported value: "Near": '
        'supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"',
        'nodeSelectorTerms[2].matchFields[0].operator: Unsupported value: "Exists": supported values: "In", "NotIn"',
    ]


def test_terms_are_alternatives_and_an_empty_one_matches_nothing() -> None:
    selector = NodeSelector(node_selector_terms=(node_term(), node_term(requirement("In", "v"))))
    terms = compile_node_selector(selector)
    assert len(terms) == 1
    assert terms[0].matches({"k": "v"}, "n")
    assert compile_node_selector(NodeSelector()) == ()


def test_a_term_that_does_not_parse_matches_nothing_and_spoils_no_other() -> None:
    selector = NodeSelector(node_selector_terms=(node_term(requirement("Gt", "x")), node_term(requirement("Exists"))))
    assert len(compile_node_selector(selector)) == 1


def test_fields_and_expressions_of_a_term_must_both_hold() -> None:
    named = requirement("In", "n1", key="metadata.name")
    compiled = compile_node_term(node_term(requirement("Exists"), fields=(named,)))
    assert compiled is not None
    assert compiled.matches({"k": "v"}, "n1")
    assert not compiled.matches({"k": "v"}, "n2")
    assert not compiled.matches({}, "n1")
    other = compile_node_term(node_term(fields=(requirement("NotIn", "n1", key="metadata.name"),)))
    assert other is not None
    assert other.matches({}, "n2")
    assert not other.matches({}, "n1")


@pytest.mark.parametrize(
    "field",
    [
        requirement("In", "a", "b", key="metadata.name"),
        requirement("In", key="metadata.name"),
        requirement("Exists", key="metadata.name"),
        requirement("In", "a", key="metadata.namespace"),
    ],
)
def test_fields_are_only_the_name_and_one_value(field: dict[str, Any]) -> None:
    with pytest.raises(SelectorError, match="matchFields"):
        compile_node_term(node_term(fields=(field,)))
