"""`placewright schema`: what it lists, what it prints, and what it says of names that it does not know."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator

from placewright.cli.main import main


def printed(capsys: pytest.CaptureFixture[str], *names: str) -> str:
    assert main(["schema", *names]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def test_without_a_name_it_lists_what_has_a_schema(capsys: pytest.CaptureFixture[str]) -> None:
    listed = printed(capsys).splitlines()
    assert listed[0] == "SchedulingProfile"
    assert {"NodeResourcesFit", "PodTopologySpread", "InterPodAffinity", "NodeAffinity", "DefaultPreemption"} <= set(listed)
    assert "NodePorts" not in listed


def test_everything_listed_is_a_schema(capsys: pytest.CaptureFixture[str]) -> None:
    for name in printed(capsys).splitlines():
        schema = json.loads(printed(capsys, name))
        Draft202012Validator.check_schema(schema)
        assert schema["title"] in (name, f"{name}Args")


def test_a_plugin_without_arguments_takes_none(capsys: pytest.CaptureFixture[str]) -> None:
    schema = json.loads(printed(capsys, "NodePorts"))
    assert Draft202012Validator(schema).is_valid({})
    assert not Draft202012Validator(schema).is_valid({"ports": []})


def test_the_schema_of_a_profile_takes_a_profile(capsys: pytest.CaptureFixture[str]) -> None:
    validator = Draft202012Validator(json.loads(printed(capsys, "SchedulingProfile")))
    spec = {"schedulerName": "a"}
    manifest = {"apiVersion": "placewright.dev/v1alpha1", "kind": "SchedulingProfile", "metadata": {"name": "a"}, "spec": spec}
    assert validator.is_valid(manifest)
    assert not validator.is_valid(manifest | {"specs": {}})
    assert not validator.is_valid(manifest | {"spec": {}}), "a profile says whose pods it places"
    assert validator.is_valid(manifest | {"spec": {"mode": "Shadow", "shadows": "b"}}), "but for a shadow"


def test_a_name_that_nobody_has_is_one_line_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "PodTopologySpred"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    said = "schema: found 'PodTopologySpred'; allowed SchedulingProfile or a known plugin (did you mean 'PodTopologySpread'?)"
    assert err.splitlines() == [f"placewright: error: {said}"]
