"""Every field of `spec` is shown, compared, described, listed by `convert`, and taken over by `promote` or stated as not.

A field is drawn from its schema, so that a new one is held without a line here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from placewright.api.profile import DECIDING, ProfileSpec
from placewright.cli.profiles.promote import STAYS, not_taken_over
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.plugins.catalog import in_tree
from placewright.profiles.config import ConfigProfile, read_profiles
from placewright.profiles.effective import as_document, differences
from placewright.profiles.kubescheduler.writer import to_configuration
from placewright.profiles.resolve import resolve
from placewright.profiles.schema import openapi_schema
from tools.generated.reference import reference

_MERGED: Final = "if it is merged with defaults, resolve in operator/placewright/profiles/resolve.py and an attribute of ResolvedProfile"
#: By check, the file and the constant or function where a new field of `spec` is added; docs/contributing.md has a row for each file.
PLACES: Final[Mapping[str, str]] = {
    "shown": f"SETTINGS in operator/placewright/api/profile.py; {_MERGED}, and as_document in operator/placewright/profiles/effective.py",
    "differs": f"SETTINGS in operator/placewright/api/profile.py; {_MERGED}, and _settings in operator/placewright/profiles/effective.py",
    "listed": (
        "HELD in tests/profiles/test_all_fields.py, or take it out of _HELD_FIELDS in operator/placewright/profiles/kubescheduler/writer.py"
    ),
    "written": "_profile in operator/placewright/profiles/kubescheduler/writer.py",
    "taken over": "DECIDING in operator/placewright/api/profile.py, or STAYS in operator/placewright/cli/profiles/promote.py",
}
#: By type in the schema: a field of `spec` of this type must have one of these facets.
BOUNDS: Final[Mapping[str, tuple[str, ...]]] = {"string": ("maxLength", "enum"), "array": ("maxItems",), "object": ("maxProperties",)}
DECLARED: Final = "operator/placewright/api/profile.py"
FIELDS: Final = ProfileSpec.__struct_encode_fields__
SPEC: Final = openapi_schema()["properties"]["spec"]["properties"]
PAGE: Final = reference(in_tree())
CATALOGUE: Final = in_tree()
#: Values of fields that name plugins or other profiles, and so cannot be drawn; `mode` makes the profile a shadow.
STATED: Final[Mapping[str, Mapping[str, Any]]] = {
    "schedulerName": {"schedulerName": "other"},
    "preset": {"preset": "bin-packing"},
    "plugins": {"plugins": {"multiPoint": {"disabled": [{"name": "ImageLocality"}]}}},
    "pluginConfig": {"pluginConfig": [{"name": "NodeResourcesFit", "args": {"ignoredResources": ["example.com/a"]}}]},
    "weights": {"weights": {"ImageLocality": 7}},
    "backoff": {"backoff": {"initialSeconds": 2, "maxSeconds": 30}},
    "extenders": {"extenders": [{"urlPrefix": "http://extender.example", "filterVerb": "filter"}]},
    "mode": {"mode": "Shadow", "shadows": "default", "schedulerName": ""},
    "shadows": {"mode": "Shadow", "shadows": "default", "schedulerName": ""},
    "shadow": {"mode": "Shadow", "shadows": "default", "schedulerName": "", "shadow": {"budgetPercent": 7}},
}
#: A key of each map with a closed set of keys.
KEYS: Final[Mapping[str, str]] = {"featureGates": "VolumeLimitScaling"}
#: Fields that a KubeSchedulerConfiguration holds or that are folded into it; of a paused profile the conversion says more.
HELD: Final = frozenset(STATED) | {"percentageOfNodesToScore", "paused"}


def drawn(schema: Mapping[str, Any], name: str = "") -> Any:
    """A value that the schema allows and that is not its default."""
    if name == "operator":
        return "In"  # the one that values go with
    if "enum" in schema:
        return next(each for each in reversed(schema["enum"]) if each not in (None, schema.get("default")))
    kind = schema.get("type")
    if kind == "object":
        if "properties" in schema:
            return {each: drawn(part, each) for each, part in schema["properties"].items()}
        return {KEYS.get(name, "example"): drawn(schema["additionalProperties"], name)}
    if kind == "array":
        return [drawn(schema["items"], name)]
    least = schema.get("minimum", 0)
    number = min(least + 7, schema.get("maximum", least + 7))
    return {"boolean": not schema.get("default", False), "integer": number, "number": number}.get(str(kind), "example")


def stated(field: str) -> dict[str, Any]:
    return {"schedulerName": "batch", **STATED.get(field, {field: drawn(SPEC[field], field)} if field not in STATED else {})}


def resolved(spec: Mapping[str, Any]) -> ResolvedProfile:
    return resolve(read(spec), CATALOGUE)


def read(spec: Mapping[str, Any]) -> Any:
    document = {"apiVersion": "placewright.dev/v1alpha1", "kind": "SchedulingProfile", "metadata": {"name": "p"}, "spec": dict(spec)}
    (profile,) = read_profiles(document, "a field")
    return profile


def asks(field: str, check: str) -> str:
    """Tell the author of a new field where it is added."""
    return f"spec.{field}: add it to {PLACES[check]}"


@pytest.mark.parametrize("field", FIELDS)
def test_the_effective_profile_shows_it(field: str) -> None:
    assert as_document(resolved(stated(field))) != as_document(resolved({"schedulerName": "batch"})), asks(field, "shown")
    if field not in STATED:
        assert field in as_document(resolved(stated(field))), asks(field, "shown")


@pytest.mark.parametrize("field", FIELDS)
def test_two_profiles_that_differ_in_it_differ(field: str) -> None:
    found = differences(resolved({"schedulerName": "batch"}), resolved(stated(field)))
    assert found, asks(field, "differs")
    if field not in STATED:
        assert {each.what.partition(".")[0] for each in found} == {field}, asks(field, "differs")


@pytest.mark.parametrize("field", FIELDS)
def test_the_reference_describes_it_and_all_inside_it(field: str) -> None:
    def described(path: str, schema: Mapping[str, Any]) -> None:
        assert f"| `{path}` |" in PAGE or path.startswith("spec.plugins."), path
        assert schema.get("description"), path
        inner = schema.get("properties", {})
        inside = "*" if set(inner) == {"matchLabels", "matchExpressions"} else path  # fields of label selectors stand there once
        for name, part in inner.items():
            described(f"{inside}.{name}", part)

    described(f"spec.{field}", SPEC[field])


@pytest.mark.parametrize("field", sorted(set(FIELDS) - HELD))
def test_the_conversion_to_kube_scheduler_lists_it(field: str) -> None:
    _, findings = to_configuration([read(stated(field))], CATALOGUE)
    about = [finding.text for finding in findings if finding.text.partition(" ")[0].partition(".")[0] == field]
    assert about, asks(field, "listed")
    assert all("\n" not in text and text.endswith("kube-scheduler has no such setting") for text in about)


@pytest.mark.parametrize("field", ConfigProfile.__struct_encode_fields__)
def test_the_conversion_to_kube_scheduler_writes_it_if_kube_scheduler_has_it(field: str) -> None:
    document, _ = to_configuration([read(stated(field))], CATALOGUE)
    assert field in document["profiles"][0], asks(field, "written")


@pytest.mark.parametrize("field", FIELDS)
def test_promote_takes_it_over_or_says_why_not(field: str) -> None:
    assert (field in DECIDING) != (field in STAYS), asks(field, "taken over")


@pytest.mark.parametrize("field", FIELDS)
def test_the_schema_bounds_its_texts_lists_and_maps(field: str) -> None:
    def bounded(path: str, schema: Mapping[str, Any]) -> None:
        for name, part in schema.get("properties", {}).items():
            bounded(f"{path}.{name}", part)
        inner = schema.get("items", schema.get("additionalProperties"))
        if inner is not None:
            bounded(f"{path}[]", inner)
        if "properties" not in schema and "x-kubernetes-preserve-unknown-fields" not in schema:
            facets = BOUNDS.get(schema["type"], ())
            assert not facets or not schema.keys().isdisjoint(facets), f"{path}: add {facets[0]} to its means(…) in {DECLARED}"

    bounded(f"spec.{field}", SPEC[field])


@pytest.mark.parametrize("field", sorted(set(FIELDS) - set(DECIDING) - {"schedulerName", "paused", "mode", "shadows", "shadow"}))
def test_a_field_of_the_shadow_that_promote_leaves_is_named(field: str) -> None:
    shadow, live = {"spec": stated(field)}, {"spec": {"schedulerName": "batch"}}
    assert list(not_taken_over(live, shadow)) == [f"spec.{field} of the shadow is not taken over: {STAYS.get(field)}"], asks(
        field, "taken over"
    )
    assert not list(not_taken_over(shadow, shadow))


@pytest.mark.parametrize(
    ("check", "function", "patched"),
    [
        ("shown", test_the_effective_profile_shows_it, {"as_document": lambda profile: {}}),
        ("differs", test_two_profiles_that_differ_in_it_differ, {"differences": lambda one, other: []}),
        ("listed", test_the_conversion_to_kube_scheduler_lists_it, {"to_configuration": lambda profiles, catalogue: ("", [])}),
        ("taken over", test_promote_takes_it_over_or_says_why_not, {"STAYS": {}}),
    ],
)
def test_a_field_that_a_place_lacks_is_red_with_the_name_of_the_place(
    check: str, function: Any, patched: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, without in patched.items():
        monkeypatch.setitem(globals(), name, without)
    with pytest.raises(AssertionError) as failure:
        function("fairness")
    assert PLACES[check] in str(failure.value)


def test_the_table_for_contributors_names_each_place() -> None:
    page = (Path(__file__).parents[2] / "docs" / "contributing.md").read_text()
    table = page.partition("A field of another sort needs more:")[2].partition("## ")[0]
    for place in PLACES.values():
        for file in re.findall(r"operator/\S+\.py", place):
            assert f"`{file}`" in table, file
    for constant in (
        "STAYS",
        "DECIDING",
        "SETTINGS",
        "_profile",
        "_HELD_FIELDS",
        "_DETAIL_COLUMNS",
        "BREAKS",
        "maxLength",
        "maxItems",
        "maxProperties",
    ):
        assert constant in table, constant
