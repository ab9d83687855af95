"""Rules in CEL: when they are asked, what they see, in which words they refuse, and which are no rules."""

from __future__ import annotations

from typing import Any

import pytest

from kubesandbox.definitions.customresources import CustomResource, establish
from kubesandbox.definitions.validationrules import escaped
from kubesandbox.status import ApiError

Object = dict[str, Any]
NUMBER = {"type": "integer"}


def ruled(schema: Object, *rules: str | Object) -> Object:
    """A schema with rules."""
    return schema | {"x-kubernetes-validations": [{"rule": rule} if isinstance(rule, str) else rule for rule in rules]}


def fields(**properties: Object) -> Object:
    return {"type": "object", "properties": properties}


def definition(spec: Object, **root: Any) -> Object:
    schema = fields(spec=spec) | root
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "boxes", "kind": "Box"}
    body = {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]}
    return {"metadata": {"name": "boxes.example.com"}, "spec": body}


def box(spec: Object) -> Object:
    return {"apiVersion": "example.com/v1", "kind": "Box", "metadata": {"name": "b", "labels": {}}, "spec": spec}


def refusal(schema: Object, new: Object, old: Object | None = None, **root: Any) -> list[str]:
    """Return the message about a change, empty if it is accepted."""
    crd = definition(schema, **root)
    establish(crd)
    try:
        CustomResource(crd).admit(box(new), None if old is None else box(old))
    except ApiError as refused:
        return [f"{cause['field']}: {cause['message']}" for cause in refused.details["causes"]]
    return []


ORDERED = ruled(fields(low=NUMBER, high=NUMBER), {"rule": "self.low <= self.high", "message": "low is not above high"})


def test_a_rule_is_not_asked_about_what_is_not_there() -> None:
    assert refusal(fields(a=ruled(NUMBER, "self > 1")), {}) == []
    assert refusal(fields(a=ruled(NUMBER | {"nullable": True}, "self > 1")), {"a": None}) == []


def test_rules_inside_lists_and_maps_name_the_item() -> None:
    schema = fields(
        a={"type": "array", "items": ruled(NUMBER, "self > 1")}, b={"type": "object", "additionalProperties": ruled(NUMBER, "self > 1")}
    )
    said = refusal(schema, {"a": [2, 1], "b": {"x": 0}})
    assert [line.partition(":")[0] for line in said] == ["spec.a[1]", "spec.b[x]"]


def test_a_missing_field_is_an_error_of_the_rule_that_did_not_ask() -> None:
    (said,) = refusal(ORDERED, {"low": 1})
    assert said == 'spec: Invalid value: "object": no such key: high evaluating rule: low is not above high'


def test_the_message_may_be_an_expression_and_falls_back_to_the_plain_one() -> None:
    rule = {"rule": "self.a < 3", "message": "plain", "messageExpression": "'a is ' + string(self.a)"}
    assert refusal(ruled(fields(a=NUMBER), rule), {"a": 5}) == ["spec: Invalid value: a is 5"]
    failing = rule | {"messageExpression": "string(self.b)"}
    assert refusal(ruled(fields(a=NUMBER, b=NUMBER), failing), {"a": 5}) == ["spec: Invalid value: plain"]


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("FieldValueRequired", "spec.a: Required value: say it"),
        ("FieldValueForbidden", "spec.a: Forbidden: say it"),
        ("FieldValueDuplicate", "spec.a: Duplicate value"),
    ],
)
def test_reason_and_field_path_are_the_rules_own(reason: str, said: str) -> None:
    rule = {"rule": "has(self.a)", "message": "say it", "reason": reason, "fieldPath": ".a"}
    assert refusal(ruled(fields(a=NUMBER), rule), {}) == [said]


def test_a_value_out_of_bounds_does_not_keep_rules_from_being_asked() -> None:
    bounded = ORDERED | {"properties": {"low": NUMBER | {"maximum": 1}, "high": NUMBER}}
    assert len(refusal(bounded, {"low": 2, "high": 1})) == 2


# --- changes -----------------------------------------------------------------------------------------------------------------

FIXED = fields(name=ruled({"type": "string"}, {"rule": "self == oldSelf", "message": "immutable"}), other=NUMBER)


def test_a_rule_about_a_change_is_asked_only_about_a_change() -> None:
    assert refusal(FIXED, {"name": "a"}) == []
    assert refusal(FIXED, {"name": "a"}, {"other": 1}) == []
    assert refusal(FIXED, {"other": 2}, {"name": "a", "other": 1}) == []
    assert refusal(FIXED, {"name": "b"}, {"name": "a"}) == ['spec.name: Invalid value: "b": immutable']


def test_items_of_a_list_by_keys_are_compared_with_their_former_selves_wherever_they_stand() -> None:
    item = fields(key={"type": "string"}, value=ruled(NUMBER, {"rule": "self >= oldSelf", "message": "never less"}))
    items = {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["key"]}
    old = {"items": [{"key": "a", "value": 1}, {"key": "b", "value": 5}]}
    new = {"items": [{"key": "new", "value": 0}, {"key": "b", "value": 4}, {"key": "a", "value": 1}]}
    assert refusal(fields(items=items), new, old) == ["spec.items[1].value: Invalid value: 4: never less"]


def test_what_has_not_changed_is_not_held_against_a_later_rule() -> None:
    assert refusal(ORDERED, {"low": 2, "high": 1}, {"low": 2, "high": 1}) == []
    assert refusal(ORDERED, {"low": 3, "high": 1}, {"low": 2, "high": 1}) != []


# --- what rules see ----------------------------------------------------------------------------------------------------------


def test_a_number_is_a_double_however_it_is_written() -> None:
    assert refusal(fields(a=ruled({"type": "number"}, "self / 2.0 == 0.5")), {"a": 1}) == []
    assert refusal(fields(a=ruled(NUMBER, "self / 2 == 0")), {"a": 1.0}) == []


def test_of_metadata_only_the_name_is_seen() -> None:
    seen = [{"rule": "self.metadata.name == 'b' && !has(self.metadata.labels)"}]
    assert refusal(fields(), {}, **{"x-kubernetes-validations": seen}) == []


def test_defaults_are_there_when_rules_are_asked() -> None:
    assert refusal(ruled(fields(a=NUMBER | {"default": 7}), "self.a == 7"), {}) == []


def test_functions_that_kubernetes_adds_are_there() -> None:
    assert refusal(fields(a=ruled({"type": "string"}, "self.trim().lowerAscii() == 'x' && self.indexOf('X') == 1")), {"a": " X "}) == []


@pytest.mark.parametrize(("name", "rule"), [("if", "self.__if__"), ("a-b", "self.a__dash__b"), ("a.b", "self.a__dot__b")])
def test_names_that_the_language_cannot_say_are_escaped(name: str, rule: str) -> None:
    assert refusal(ruled(fields(**{name: NUMBER}), f"{rule} == 1"), {name: 1}) == []


def test_an_escaped_name_cannot_be_taken_for_another() -> None:
    assert escaped("a__dash__b") != escaped("a-b")


# --- definitions -------------------------------------------------------------------------------------------------------------

LIST = {"type": "array", "items": ruled(NUMBER, "self >= oldSelf")}


@pytest.mark.parametrize(
    ("schema", "field", "words"),
    [
        (ruled(fields(), "self.a >"), "[0].rule", "compilation failed"),
        (ruled(fields(), "slef.a > 1"), "[0].rule", "undeclared reference to 'slef'"),
        (ruled(fields(), "nonsense(self)"), "[0].rule", "does not have the function 'nonsense'"),
        (ruled(fields(), {"message": "x"}), "[0].rule", "Required value"),
        (ruled(fields(), {"rule": "true", "messageExpression": "1 +"}), "[0].messageExpression", "compilation failed"),
        (ruled(fields(), {"rule": "true", "reason": "Because"}), "[0].reason", "Unsupported value"),
        (fields(a=LIST), "properties[a].items.x-kubernetes-validations[0].rule", "uncorrelatable"),
    ],
)
def test_a_definition_whose_rules_are_no_rules_is_refused_with_the_place(schema: Object, field: str, words: str) -> None:
    with pytest.raises(ApiError) as refused:
        establish(definition(schema))
    (cause,) = refused.value.details["causes"]
    assert cause["field"].endswith(field)
    assert words in cause["message"]


def test_names_that_a_rule_itself_introduces_are_declared() -> None:
    schema = fields(a={"type": "array", "items": NUMBER})
    rule = "self.a.all(x, x > 0) && self.a.exists(y, y > 1) && self.a.filter(z, z > 1).map(w, w * 2) == [4]"
    assert refusal(ruled(schema, rule), {"a": [1, 2]}) == []
