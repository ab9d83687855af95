"""What is said of a profile that is wrong is written as documents are: JSON, and no Python."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from placewright.api.bad_input import in_json
from placewright.api.preemption import PreemptionSpec
from placewright.api.profile import Backoff, ProfileSpec
from placewright.plugins.catalog import in_tree
from placewright.profiles.validation import check_file, check_object
from profiles.makers import yaml_of
from randomcases import cases

PLUGINS = in_tree()
HEAD = "apiVersion: placewright.dev/v1alpha1\nkind: SchedulingProfile\nmetadata: {name: a}\n"
NAMED = yaml.safe_load(HEAD)
#: What only Python writes: its constants, text in single quotes, whole numbers with a fraction.
PYTHON = re.compile(r"\b(?:True|False|None)\b|'[^']*'|\b\d+\.0\b|<class|\bint\b|\bstr\b|\bdict\b|\bfloat\b|\bbool\b|\bnan\b|\binf\b")

words = st.sampled_from(["NodeResourcesFit", "ImageLocality", "yes", "", "5", "a b", "Live", "1s", "*"])
scalars = st.none() | st.booleans() | st.integers(-3, 200_000) | st.floats(-2, 100).map(lambda x: round(x, 1)) | st.just(10.0) | words
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3), max_leaves=6)
fields = st.sampled_from(ProfileSpec.__struct_encode_fields__)
extender_fields = st.sampled_from(["urlPrefix", "weight", "filterVerb", "httpTimeout"])
nearly = st.one_of(
    st.fixed_dictionaries({"weights": st.dictionaries(st.sampled_from(["NodeResourcesFit", "NodeName", "Nobody"]), scalars, max_size=3)}),
    st.fixed_dictionaries({"preemption": st.dictionaries(st.sampled_from(PreemptionSpec.__struct_encode_fields__), values)}),
    st.fixed_dictionaries({"backoff": st.dictionaries(st.sampled_from(Backoff.__struct_encode_fields__), scalars)}),
    st.fixed_dictionaries({"shadow": st.fixed_dictionaries({"budgetPercent": scalars}), "mode": st.just("Shadow"), "shadows": words}),
    st.fixed_dictionaries({"plugins": st.fixed_dictionaries({"score": st.fixed_dictionaries({"enabled": values})})}),
    st.fixed_dictionaries({"plugins": st.fixed_dictionaries({"filter": st.just({"enabled": [{"name": "NodeName"}] * 2})})}),
    st.fixed_dictionaries({"extenders": st.lists(st.dictionaries(extender_fields, values))}),
)


def problems(spec: dict[str, Any]) -> list[tuple[str, str]]:
    """What is found where something is wrong, and what is allowed there."""
    document = {**NAMED, "spec": spec}
    found = [finding.problem for finding in check_file(yaml_of(document), "a.yaml", PLUGINS).findings]
    return [(problem.found, problem.allowed) for problem in [*found, *check_object(document, None, PLUGINS)]]


def is_notation(found: str) -> bool:
    """JSON, cut where it is long, or words of ours."""
    if found.endswith(" characters)"):
        return True
    try:
        json.loads(found)
    except ValueError:
        return not PYTHON.search(found)
    return True


@settings(max_examples=cases(300))
@given(spec=st.dictionaries(fields, values, max_size=3).map(lambda spec: {"schedulerName": "a", **spec}) | nearly)
def test_no_message_about_any_wrong_value_is_written_as_python_does(spec: dict[str, Any]) -> None:
    for found, allowed in problems(spec):
        assert is_notation(found), found
        assert not re.search(r"\b(?:True|False|None|int|str|dict|null)\b", re.sub(r"\(did you mean .*\)", "", allowed)), allowed


@settings(max_examples=cases(300))
@given(name=st.sampled_from(sorted(PLUGINS)), data=st.data())
def test_nor_about_arguments_of_any_plugin(name: str, data: st.DataObject) -> None:
    struct = PLUGINS[name].Args
    names = [*getattr(struct, "__struct_encode_fields__", ()), "nonsense"]
    args = data.draw(st.dictionaries(st.sampled_from(names), values, max_size=2))
    for found, _ in problems({"schedulerName": "a", "pluginConfig": [{"name": name, "args": args}]}):
        assert is_notation(found), found


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, "nothing"), (True, "true"), ("5", '"5"'), ("it's", '"it\'s"'), (10.0, "10"), (0.5, "0.5"),
        ([1.0, None, "a"], '[1, null, "a"]'),
        ({"a": {"b": False}}, '{"a": {"b": false}}'), ("\x1b[31m", '"\\u001b[31m"'), ("ü", '"ü"'), ("\u202e", '"\\u202e"'),
    ],
)  # fmt: skip
def test_values_are_written_as_in_documents(value: Any, written: str) -> None:
    assert in_json(value) == written


def test_a_long_value_is_cut() -> None:
    assert in_json("x" * 500) == f'"{"x" * 79}... (500 characters)'


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        (
            'weights: {NodeResourcesFit: "5"}',
            '6:31: spec.weights.NodeResourcesFit: found "5"; allowed a whole number, such as 5, without quotes and unit',
        ),
        ("weights: {NodeResourcesFit: true}", "6:31: spec.weights.NodeResourcesFit: found true; allowed a whole number"),
        ("weights: {NodeResourcesFit: 1.5}", "6:31: spec.weights.NodeResourcesFit: found 1.5; allowed a whole number"),
        ("weights: [5]", "6:3: spec.weights: found [5]; allowed an object"),
        ("paused: x", '6:11: spec.paused: found "x"; allowed true or false'),
        ("backoff: {initialSeconds: 20, maxSeconds: 10}",
         "6:45: spec.backoff.maxSeconds: found 10; allowed 0 (no backoff), or initialSeconds (20) to 86400"),
    ],
)  # fmt: skip
def test_field_value_and_place_are_named(spec: str, line: str) -> None:
    (finding,) = check_file(f"{HEAD}spec:\n  schedulerName: a\n  {spec}\n", "a.yaml", PLUGINS).findings
    assert str(finding) == f"a.yaml:{line}"


def test_every_wrong_weight_is_told_and_null_says_nothing() -> None:
    spec = "{schedulerName: a, weights: {NodeResourcesFit: '5', ImageLocality: null, NodeAffinity: true}}"
    found = check_file(f"{HEAD}spec: {spec}\n", "a.yaml", PLUGINS).findings
    assert [finding.problem.path for finding in found] == ["spec.weights.NodeResourcesFit", "spec.weights.NodeAffinity"]
    assert check_file(f"{HEAD}spec: {{schedulerName: a, weights: {{ImageLocality: null}}}}\n", "a.yaml", PLUGINS).findings == ()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: [\n", "2:1: found the end of the text; allowed a value"),
        ("a:\n  b: 1\n c: 2\n", "3:2: found a field that is indented otherwise than those beside it; allowed 'name: value'"),
        ("a:\n\tb: 1\n", "2:1: found a tab; allowed spaces to indent with"),
        ("a: b: c\n", "1:5: found a ':' too many, or a field that is indented wrongly; allowed 'name: value'"),
        ("a: {b: c\nd: e\n", "2:2: found ':'; allowed ',' or '}'"),
        ("a: 'x\n", "2:1: found text in quotes that does not end; allowed a closing quote"),
        ("a: *x\n", "1:4: found the alias *x; allowed an alias of an anchor (&x)"),
        ("- a\nb: c\n", "2:1: found a key; allowed"),
        ("a: 1\na: 2\n", '2:1: found the key "a" a second time; allowed each key once'),
        ("a: @x\n", "1:4: found text that begins with '@'; allowed quotes around it"),
    ],
)
def test_text_that_is_no_yaml_is_told_in_plain_words_with_its_place(text: str, line: str) -> None:
    whole = f"{text}# kind: SchedulingProfile\n"
    (finding,) = check_file(whole, "a.yaml", PLUGINS).findings
    said = str(finding).removeprefix("a.yaml:")
    assert said.partition(" ")[2].startswith(line.partition(" ")[2])
    assert "<" not in said and "expected" not in said
