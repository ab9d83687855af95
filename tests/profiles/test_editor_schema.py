"""The JSON Schema for editors and the reference page: up to date, right, and in step with what the checks say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from placewright.framework.runtime.resolvedprofile import ExtensionPoint
from placewright.plugins.catalog import in_tree
from placewright.profiles.editorschema import editor_schema
from placewright.profiles.presets import PRESETS
from placewright.profiles.rules import RULES
from placewright.profiles.schema import openapi_schema
from tools.generated.reference import reference

ROOT = Path(__file__).parents[2]
SCHEMA = editor_schema(in_tree())
HEADER = "# yaml-language-server: $schema="


def manifest(**spec: Any) -> dict[str, Any]:
    spec = {"schedulerName": "p", **spec}
    return {"apiVersion": "placewright.dev/v1alpha1", "kind": "SchedulingProfile", "metadata": {"name": "p"}, "spec": spec}


def config(name: str, **args: Any) -> dict[str, Any]:
    return manifest(pluginConfig=[{"name": name, "args": args}])


def complaints(document: dict[str, Any]) -> list[str]:
    return [error.json_path for error in Draft202012Validator(SCHEMA).iter_errors(document)]


def test_the_files_are_those_that_the_code_generates() -> None:
    assert json.loads((ROOT / "crds/schedulingprofile.schema.json").read_text()) == SCHEMA, "run `make generate`"
    assert (ROOT / "docs/reference.md").read_text() == reference(in_tree()), "run `make generate`"


def test_it_is_a_schema() -> None:
    about_schemas = Draft202012Validator(Draft202012Validator.META_SCHEMA)
    assert [error.json_path for error in about_schemas.iter_errors(SCHEMA)] == []


@pytest.mark.parametrize(
    "document",
    [
        manifest(),
        manifest(weights={"NodeResourcesFit": 3, "SomebodyElses": 4}),
        manifest(plugins={"score": {"enabled": [{"name": "SomebodyElses"}], "disabled": [{"name": "*"}]}}),
        config("SomebodyElses", anything=[1]),
        config("NodeResourcesFit", scoringStrategy={"type": "MostAllocated"}),
        config("NodeResourcesFit", apiVersion="kubescheduler.config.k8s.io/v1", kind="NodeResourcesFitArgs"),
    ],
)
def test_what_may_be_is_accepted(document: dict[str, Any]) -> None:
    assert complaints(document) == []


@pytest.mark.parametrize(
    ("document", "where"),
    [
        (config("NodeResourcesFit", scoringStrategy={"type": "MostAlocated"}), "$.spec.pluginConfig[0].args.scoringStrategy.type"),
        (config("NodeResourcesFit", nonsense=1), "$.spec.pluginConfig[0].args"),
        (config("NodePorts", ports=[1]), "$.spec.pluginConfig[0].args"),
        (manifest(weights={"NodeResourcesFit": 100_001}), "$.spec.weights.NodeResourcesFit"),
        (manifest(weights={"SomebodyElses": -1}), "$.spec.weights.SomebodyElses"),
        (manifest(weigths={}), "$.spec"),
    ],
)
def test_what_may_not_be_is_marked_at_its_place(document: dict[str, Any], where: str) -> None:
    assert complaints(document) == [where]


def test_each_extension_point_offers_the_plugins_that_have_it() -> None:
    for point in ExtensionPoint:
        offered = SCHEMA["$defs"][f"{point}Plugins"]["enum"]
        assert offered == [name for name, plugin in in_tree().items() if point.implemented_by(plugin)] + ["*"]


def samples() -> Iterator[Path]:
    for path in (ROOT / "manifests").rglob("*.yaml"):
        if HEADER in path.read_text():
            yield path


def test_samples_name_their_schema_and_keep_to_it() -> None:
    found = list(samples())
    assert len(found) >= 2
    for path in found:
        (line,) = [line for line in path.read_text().splitlines() if line.startswith(HEADER)]
        schema = json.loads((path.parent / line.removeprefix(HEADER)).read_text())
        for document in yaml.safe_load_all(path.read_text()):
            Draft202012Validator(schema).validate(document)


# --- the reference page --------------------------------------------------------------------------------------------------------


PAGE = reference(in_tree())


def test_the_page_has_every_plugin_preset_and_rule() -> None:
    for name in in_tree():
        assert f"| {name} |" in PAGE
    for name in PRESETS:
        assert f"| `{name}` |" in PAGE
    for rules in RULES.values():
        for rule in rules:
            assert rule.message in PAGE


def test_the_page_has_every_field_of_spec_and_status() -> None:
    properties = openapi_schema()["properties"]
    for part in ("spec", "status"):
        for name in properties[part]["properties"]:
            assert f"| `{part}.{name}` |" in PAGE


def test_no_cell_of_a_table_breaks_its_row() -> None:
    for table in PAGE.split("\n\n"):
        rows = [line for line in table.splitlines() if line.startswith("|")]
        assert len({row.replace("\\|", "").count("|") for row in rows}) <= 1, table
