"""The CRD and the JSON Schema: generated, in step with the structs, and right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from placewright.api.objects import Condition, KubeObject
from placewright.profiles.profilestate import ProfileStanding, Reason, status_of
from placewright.profiles.schema import json_schema, openapi_schema
from tools.generated.definition import crd_yaml, custom_resource_definition

CRDS = Path(__file__).parents[2] / "crds"


def manifest(spec: dict[str, Any]) -> dict[str, Any]:
    spec = {"schedulerName": "p", **spec}
    return {"apiVersion": "placewright.dev/v1alpha1", "kind": "SchedulingProfile", "metadata": {"name": "p"}, "spec": spec}


def parts(schema: dict[str, Any], path: str = "") -> list[tuple[str, dict[str, Any]]]:
    """A schema and all schemas inside it, with their paths."""
    found = [(path, schema)]
    for name, inner in schema.get("properties", {}).items():
        found += parts(inner, f"{path}.{name}")
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), dict):
            found += parts(schema[keyword], f"{path}[]")
    return found


def test_the_file_in_crds_is_the_one_that_the_code_generates() -> None:
    assert (CRDS / "schedulingprofiles.yaml").read_text() == crd_yaml(), "crds/schedulingprofiles.yaml: run `make generate`"


def test_the_schema_is_structural_and_every_field_is_described() -> None:
    for path, schema in parts(openapi_schema()):
        assert "type" in schema, path
        if path not in ("", ".apiVersion", ".kind", ".metadata") and not path.endswith("[]"):
            assert schema.get("description"), path
        if schema["type"] == "array":
            assert "items" in schema, path
            assert "x-kubernetes-list-type" in schema, f"{path}: add **ATOMIC or **keyed_by(…) to its means(…)"


def test_list_keys_are_required_in_the_items() -> None:
    keyed = [(path, schema) for path, schema in parts(openapi_schema()) if schema.get("x-kubernetes-list-type") == "map"]
    assert len(keyed) == 2 * 13 + 3
    for path, schema in keyed:
        assert set(schema["x-kubernetes-list-map-keys"]) <= set(schema["items"]["required"]), path


def test_defaults_of_spec_hold_to_their_own_schema_and_status_has_none() -> None:
    schemas = parts(openapi_schema())
    defaults = {path: schema["default"] for path, schema in schemas if "default" in schema}
    known = {
        ".spec.backoff": {},
        ".spec.backoff.initialSeconds": 1.0,
        ".spec.backoff.maxSeconds": 10.0,
        ".spec.preemption.policy": "LowerPriority",
        ".spec.preemption.deferredResizes": "Wait",
        ".spec.preemption.disruptionBudgets": "BestEffort",
        ".spec.preemption.waitSeconds": 0.0,
        ".spec.preemption.minRunSeconds": 0.0,
        ".spec.fairness.by": "None",
        ".spec.fairness.share": "Resources",
        ".spec.compatibility": "auto",
        ".spec.paused": False,
        ".spec.mode": "Live",
        ".spec.shadow.budgetPercent": 5.0,
    }
    new = defaults.keys() - known.keys()
    assert not new, f"{', '.join(sorted(new))}: add the default to the list in tests/profiles/test_schema.py"
    assert defaults == known
    for _path, schema in schemas:
        if "default" in schema:
            jsonschema.validate(schema["default"], schema)


def test_a_field_that_nothing_is_said_of_has_no_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    class Spec(KubeObject, frozen=True):
        silent: int = 0

    monkeypatch.setattr("placewright.profiles.schema.ProfileSpec", Spec)
    with pytest.raises(TypeError, match=r"Spec\.silent: no annotation says what it means"):
        openapi_schema()


def test_the_resource_is_named_and_shown_as_the_design_says() -> None:
    spec = custom_resource_definition()["spec"]
    assert (spec["scope"], spec["names"]["shortNames"], spec["names"]["categories"]) == ("Cluster", ["schedprof"], ["placewright"])
    (version,) = spec["versions"]
    assert version["subresources"] == {"status": {}}
    first = [column["name"] for column in version["additionalPrinterColumns"] if "priority" not in column]
    assert first == ["Scheduler", "Ready", "Reason", "Active", "Pending", "Plugins", "Age"], "a paused profile is Ready, and says Paused"


def test_a_status_that_we_write_satisfies_the_schema() -> None:
    standing = ProfileStanding("p", "x", 4, 3, Reason.INVALID_PROFILE, "because")
    previous = [Condition(type="Ready", status="True", last_transition_time="2026-01-01T00:00:00Z")]
    document = manifest({}) | {"status": status_of(standing, previous, "2026-03-01T12:00:00Z")}
    assert complaints(document) == []


def complaints(document: dict[str, Any]) -> list[str]:
    validator = jsonschema.validators.validator_for(json_schema())(json_schema())
    return [error.message for error in validator.iter_errors(document)]


GOOD = {
    "nothing": {},
    "one of everything": {
        "schedulerName": "x",
        "plugins": {"score": {"enabled": [{"name": "A", "weight": 3}], "disabled": [{"name": "*"}]}},
        "pluginConfig": [{"name": "A", "args": {"anything": [1, {"deep": None}]}}],
        "percentageOfNodesToScore": 50,
        "weights": {"A": 0, "B": 100_000},
        "backoff": {"initialSeconds": 0.5, "maxSeconds": 20},
        "extenders": [{"urlPrefix": "https://x"}],
        "preemption": {"policy": "Never", "maxVictims": 3, "protect": {"matchLabels": {"a": "b"}}},
        "fairness": {"by": "Label", "label": "team", "share": "Pods", "weights": {"a": 3}},
        "paused": True,
    },
}
BAD = {
    "an unknown field": {"weigths": {}},
    "an unknown point": {"plugins": {"scoring": {}}},
    "a weight that is text": {"weights": {"A": "1"}},
    "a weight below zero": {"weights": {"A": -1}},
    "a weight above the highest": {"weights": {"A": 100_001}},
    "a percentage above a hundred": {"percentageOfNodesToScore": 101},
    "no backoff at all": {"backoff": {"initialSeconds": 0}},
    "a plugin without a name": {"plugins": {"filter": {"enabled": [{"weight": 1}]}}},
    "a policy of preemption that there is not": {"preemption": {"policy": "never"}},
    "a preemption of no victims": {"preemption": {"maxVictims": 0}},
    "tenants by nothing known": {"fairness": {"by": "Pod"}},
    "a tenant without weight": {"fairness": {"by": "Namespace", "weights": {"a": 0}}},
    "an empty scheduler name": {"schedulerName": ""},
}


@pytest.mark.parametrize("case", GOOD)
def test_the_json_schema_accepts(case: str) -> None:
    assert complaints(manifest(GOOD[case])) == []


@pytest.mark.parametrize("case", BAD)
def test_the_json_schema_refuses(case: str) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(manifest(BAD[case]), json_schema())


def test_the_peering_resources_keep_what_kopf_writes_into_their_status() -> None:
    cluster, namespaced = yaml.safe_load_all((CRDS / "kopfpeering.yaml").read_text())
    assert (cluster["spec"]["scope"], cluster["spec"]["names"]["kind"]) == ("Cluster", "ClusterKopfPeering")
    assert (namespaced["spec"]["scope"], namespaced["spec"]["names"]["kind"]) == ("Namespaced", "KopfPeering")
    for definition in (cluster, namespaced):
        (version,) = definition["spec"]["versions"]
        assert definition["metadata"]["name"] == f"{definition['spec']['names']['plural']}.kopf.dev"
        assert "subresources" not in version
        assert version["schema"]["openAPIV3Schema"]["properties"]["status"]["x-kubernetes-preserve-unknown-fields"] is True
