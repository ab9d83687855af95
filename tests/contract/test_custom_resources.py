"""Custom resources: the schema of their definition prunes, fills in, and refuses."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from contract.boxes import ANYTHING, DEFINITIONS, Boxes, causes, defined
from contract.client import APPLY, JSON_PATCH, MERGE, STRATEGIC, Object
from contract.cluster import Cluster, Server, within_namespace

SCHEMA: Object = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1, "maximum": 10},
                "mode": {"type": "string", "enum": ["Fast", "Slow"], "default": "Fast"},
                "label": {"type": "string", "pattern": "^[a-z]+$", "minLength": 2},
                "port": {"x-kubernetes-int-or-string": True},
                "note": {"type": "string", "nullable": True},
                "weights": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}},
                "free": ANYTHING,
                "rules": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {
                            "name": {"type": "string"},
                            "value": {"type": "integer"},
                            "on": {"type": "boolean", "default": True},
                        },
                    },
                },
                "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            },
        },
        "status": {"type": "object", "properties": {"ready": {"type": "boolean"}, "count": {"type": "integer"}}},
    },
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def of_all_tests(server: Server) -> AsyncIterator[Boxes]:
    async with within_namespace(server) as cluster, defined(cluster, SCHEMA) as found:
        yield found


@pytest.fixture
def boxes(of_all_tests: Boxes, cluster: Cluster) -> Boxes:
    """Of a definition that all tests share, in the test's own namespace."""
    return replace(of_all_tests, cluster=cluster)


async def test_a_definition_is_established_with_its_accepted_names(boxes: Boxes) -> None:
    status = boxes.definition["status"]
    assert status["acceptedNames"]["plural"] == "boxes"
    assert status["acceptedNames"]["listKind"] == "BoxList"
    assert status["storedVersions"] == ["v1"]


async def test_a_definition_that_is_not_sound_is_refused(cluster: Cluster) -> None:
    body = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "wrong.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "rights", "singular": "right", "kind": "Right", "listKind": "RightList"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {}}}],
        },
    }
    answer = await cluster.client.post(DEFINITIONS, body)
    found = causes(answer)
    assert "metadata.name" in found
    assert any("openAPIV3Schema" in field for field in found)


async def test_unknown_fields_are_pruned(boxes: Boxes) -> None:
    found = (await boxes.create(unknown=1, free={"any": {"thing": 1}}, weights={"Foo": 1})).expect(201)
    assert "unknown" not in found["spec"]
    assert found["spec"]["free"] == {"any": {"thing": 1}}
    assert found["spec"]["weights"] == {"Foo": 1}


async def test_unknown_fields_are_refused_where_strictness_is_asked_for(boxes: Boxes) -> None:
    boxes.cluster.needs(27, "field validation")
    body = boxes.box(unknown=1)
    message = (await boxes.cluster.client.post(boxes.path, body, fieldValidation="Strict")).refused(400, "BadRequest")
    assert 'unknown field "spec.unknown"' in message


async def test_defaults_are_filled_in_at_every_depth(boxes: Boxes) -> None:
    found = (await boxes.create(rules=[{"name": "a"}, {"name": "b", "on": False}])).expect(201)
    assert found["spec"]["mode"] == "Fast"
    assert found["spec"]["rules"] == [{"name": "a", "on": True}, {"name": "b", "on": False}]


async def test_a_null_is_kept_only_where_it_is_allowed(boxes: Boxes) -> None:
    found = (await boxes.create(note=None, mode=None)).expect(201)
    assert found["spec"]["note"] is None
    assert found["spec"]["mode"] == "Fast"
    found = (await boxes.cluster.client.post(boxes.path, boxes.box("other", label=None, weights={"a": None, "b": 1}))).expect(201)
    assert ("label" in found["spec"], found["spec"]["weights"]) == (False, {"b": 1})


async def test_a_value_out_of_bounds_is_refused_with_its_path(boxes: Boxes) -> None:
    answer = await boxes.create(size=11)
    assert causes(answer) == {"spec.size": "Invalid value: 11: spec.size in body should be less than or equal to 10"}
    assert answer.body["message"].startswith(f'Box.{boxes.group} "it" is invalid: spec.size: Invalid value: 11')


TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
NUMBERS = {"type": "array", "items": NUMBER}
COUNTS = {"type": "object", "additionalProperties": NUMBER}
FAULTS: list[tuple[Object, object, str]] = [
    (TEXT, 1, 'Invalid value: "integer": {} in body must be of type string: "integer"'),
    (NUMBER, True, 'Invalid value: "boolean": {} in body must be of type integer: "boolean"'),
    (TEXT | {"enum": ["a", "b"]}, "c", 'Unsupported value: "c": supported values: "a", "b"'),
    (TEXT | {"minLength": 2}, "a", 'Invalid value: "a": {} in body should be at least 2 chars long'),
    (TEXT | {"maxLength": 2}, "abc", "Too long: may not be more than 2 bytes"),
    (TEXT | {"pattern": "^[a-z]$"}, "A", "Invalid value: \"A\": {} in body should match '^[a-z]$'"),
    (NUMBER | {"minimum": 1}, 0, "Invalid value: 0: {} in body should be greater than or equal to 1"),
    (NUMBER | {"minimum": 1, "exclusiveMinimum": True}, 1, "Invalid value: 1: {} in body should be greater than 1"),
    (NUMBER | {"maximum": 8}, 9, "Invalid value: 9: {} in body should be less than or equal to 8"),
    (NUMBER | {"multipleOf": 2}, 3, "Invalid value: 3: {} in body should be a multiple of 2"),
    (NUMBERS | {"maxItems": 1}, [1, 2], "Too many: 2: must have at most 1 item"),
    (NUMBERS | {"minItems": 1}, [], "Invalid value: 0: {} in body should have at least 1 items"),
    (TEXT | {"format": "date-time"}, "later", 'Invalid value: "later": {} in body must be of type date-time: "later"'),
    (COUNTS | {"minProperties": 1}, {}, "Invalid value: 0: {} in body should have at least 1 properties"),
    (COUNTS | {"maxProperties": 1}, {"a": 1, "b": 1}, "Too many: 2: must have at most 1 item"),
]
FITS: list[tuple[Object, object]] = [
    (TEXT | {"nullable": True}, None),
    (TEXT, None),
    (NUMBER, 2.0),
    ({"type": "number"}, 2),
    (TEXT | {"format": "date-time"}, "2026-01-02T03:04:05Z"),
    (ANYTHING, {"any": {"thing": [1]}}),
    (COUNTS, {"a": 1, "b": None}),
]


async def test_faults_have_the_words_of_the_server(cluster: Cluster) -> None:
    cluster.needs(36, "the value in refusals, and one item")
    faulty = {f"f{at}": (schema, value) for at, (schema, value, _) in enumerate(FAULTS)}
    fitting = {f"g{at}": each for at, each in enumerate(FITS)}
    faulty["large"] = (NUMBER | {"format": "int32"}, 2**31)
    spec = {"type": "object", "properties": {name: schema for name, (schema, _) in (faulty | fitting).items()}}
    async with defined(cluster, {"type": "object", "properties": {"spec": spec}}) as boxes:
        said = causes(await boxes.create(**{name: value for name, (_, value) in (faulty | fitting).items()}))
    wanted = {f"spec.f{at}": why for at, (_, _, why) in enumerate(FAULTS)}
    large = {"<nil>": 'Invalid value: "": Checked value must be of type integer with format int32 in spec.large'}
    assert said == {field: why.format(field) for field, why in wanted.items()} | large


async def test_every_fault_is_named(boxes: Boxes) -> None:
    found = causes(await boxes.create(size="big", mode="Medium", label="X", weights={"Foo": -1}))
    assert found["spec.size"] == 'Invalid value: "string": spec.size in body must be of type integer: "string"'
    assert found["spec.mode"] == 'Unsupported value: "Medium": supported values: "Fast", "Slow"'
    assert found["spec.weights.Foo"].endswith("should be greater than or equal to 0")
    assert "spec.label" in found


RULED: Object = {
    "type": "object",
    "x-kubernetes-validations": [{"rule": "self.size != 5 || has(self.mode)", "message": "five wants a mode"}],
    "properties": {
        "size": {"type": "integer", "x-kubernetes-validations": [{"rule": "self < 9", "message": "too big"}]},
        "mode": {
            "type": "string",
            "x-kubernetes-validations": [
                {"rule": "self == oldSelf", "message": "may not change"},
                {"rule": "self != 'Odd'", "reason": "FieldValueDuplicate"},
                {"rule": "self != 'Even'", "message": "not even", "reason": "FieldValueForbidden"},
            ],
        },
        "list": {"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": [{"rule": "self[1] > 1"}]},
    },
}


async def test_rules_of_a_definition_show_what_broke_them_unless_it_is_large(cluster: Cluster) -> None:
    cluster.needs(36, "the value in refusals by rules")
    async with defined(cluster, {"type": "object", "properties": {"spec": RULED}}) as boxes:
        assert causes(await boxes.create(size=5)) == {"spec": "Invalid value: five wants a mode"}
        assert causes(await boxes.create(size=9)) == {"spec.size": "Invalid value: 9: too big"}
        assert causes(await boxes.create(mode="Odd")) == {"spec.mode": 'Duplicate value: "Odd"'}
        assert causes(await boxes.create(mode="Even")) == {"spec.mode": "Forbidden: not even"}
        assert causes(await boxes.create(list=[1, 1])) == {"spec.list": "Invalid value: failed rule: self[1] > 1"}
        said = causes(await boxes.create(list=[1]))["spec.list"]
        assert said == 'Invalid value: "array": index out of bounds: 1 evaluating rule: self[1] > 1'
        found = causes(await boxes.create(size="big"))
        assert found["<nil>"].startswith("Invalid value: null: some validation rules were not checked because the object was invalid; ")
        (await boxes.create(mode="Fast")).expect(201)
        changed = await cluster.client.patch(f"{boxes.path}/it", {"spec": {"mode": "Slow"}}, MERGE)
        assert causes(changed) == {"spec.mode": 'Invalid value: "Slow": may not change'}


async def test_a_missing_field_is_named(boxes: Boxes) -> None:
    body = boxes.box()
    del body["spec"]["size"]
    answer = await boxes.cluster.client.post(boxes.path, body)
    assert causes(answer) == {"spec.size": "Required value"}


async def test_numbers_and_strings_fit_an_int_or_string(boxes: Boxes) -> None:
    assert (await boxes.create(port=80)).expect(201)["spec"]["port"] == 80
    body = boxes.box("other", port="http")
    assert (await boxes.cluster.client.post(boxes.path, body)).expect(201)["spec"]["port"] == "http"
    assert "spec.port" in causes(await boxes.cluster.client.post(boxes.path, boxes.box("third", port=True)))


async def test_lists_with_keys_and_sets_have_no_duplicates(boxes: Boxes) -> None:
    found = causes(await boxes.create(rules=[{"name": "a"}, {"name": "a"}], tags=["x", "x"]))
    assert found["spec.rules[1]"].startswith("Duplicate value")
    assert found["spec.tags[1]"].startswith("Duplicate value")


async def test_a_patch_is_validated_as_a_whole(boxes: Boxes) -> None:
    (await boxes.create()).expect(201)
    path = f"{boxes.path}/it"
    assert "spec.size" in causes(await boxes.cluster.client.patch(path, {"spec": {"size": 0}}, MERGE))
    operations = [{"op": "replace", "path": "/spec/size", "value": 4}]
    assert (await boxes.cluster.client.patch(path, operations, JSON_PATCH)).expect(200)["spec"]["size"] == 4


async def test_a_strategic_patch_is_not_for_custom_resources(boxes: Boxes) -> None:
    (await boxes.create()).expect(201)
    answer = await boxes.cluster.client.patch(f"{boxes.path}/it", {"spec": {"size": 4}}, STRATEGIC)
    assert answer.refused(415, "UnsupportedMediaType")


async def test_an_update_without_a_version_is_refused(boxes: Boxes) -> None:
    (await boxes.create()).expect(201)
    answer = await boxes.cluster.client.put(f"{boxes.path}/it", boxes.box(mode="Slow"))
    assert "metadata.resourceVersion" in causes(answer)


async def test_the_generation_counts_changes_of_the_spec_only(boxes: Boxes) -> None:
    first = (await boxes.create()).expect(201)
    path = f"{boxes.path}/it"
    labelled = (await boxes.cluster.client.patch(path, {"metadata": {"labels": {"a": "b"}}}, MERGE)).expect(200)
    status = (await boxes.cluster.client.patch(f"{path}/status", {"status": {"count": 1}}, MERGE)).expect(200)
    changed = (await boxes.cluster.client.patch(path, {"spec": {"size": 4}}, MERGE)).expect(200)
    assert [each["metadata"]["generation"] for each in (first, labelled, status, changed)] == [1, 1, 1, 2]


async def test_status_and_the_rest_are_written_apart(boxes: Boxes) -> None:
    body = {**boxes.box(), "status": {"ready": True}}
    made = (await boxes.cluster.client.post(boxes.path, body)).expect(201)
    assert "status" not in made
    path, both = f"{boxes.path}/it", {"spec": {"size": 7}, "status": {"ready": True, "unknown": 1}}
    status = (await boxes.cluster.client.patch(f"{path}/status", both, MERGE)).expect(200)
    assert (status["spec"]["size"], status["status"]) == (3, {"ready": True})
    spec = (await boxes.cluster.client.patch(path, {"spec": {"size": 7}, "status": {"ready": False}}, MERGE)).expect(200)
    assert (spec["spec"]["size"], spec["status"]) == (7, {"ready": True})
    bad = await boxes.cluster.client.patch(f"{path}/status", {"status": {"count": "many"}}, MERGE)
    assert "status.count" in causes(bad)


async def test_applying_merges_keyed_lists_of_the_schema(cluster: Cluster) -> None:
    schema = copy.deepcopy(SCHEMA)
    del schema["properties"]["spec"]["properties"]["port"]  # a field of two types, with which 1.20 does not know the keys of lists
    async with defined(cluster, schema) as boxes:
        path = f"{boxes.path}/it"
        for manager, name in (("one", "a"), ("two", "b")):
            body = boxes.box(rules=[{"name": name, "value": 1}], tags=[name])
            (await cluster.client.apply(path, body, manager)).expect(200, 201)
        found = (await cluster.client.get(path)).expect(200)
        assert [each["name"] for each in found["spec"]["rules"]] == ["a", "b"]
        assert sorted(found["spec"]["tags"]) == ["a", "b"]
        other = boxes.box(rules=[{"name": "b", "value": 2}])
        answer = await cluster.client.request("PATCH", path, other, APPLY, fieldManager="one")
        assert [cause["field"] for cause in answer.expect(409)["details"]["causes"]] == ['.spec.rules[name="b"].value']


async def test_a_field_of_two_types_does_not_hide_the_keys_of_lists_when_applying(boxes: Boxes) -> None:
    path = f"{boxes.path}/it"
    (await boxes.cluster.client.apply(path, boxes.box(rules=[{"name": "a"}]), "one")).expect(201)
    second = await boxes.cluster.client.apply(path, boxes.box(rules=[{"name": "b"}]), "two")
    if boxes.cluster.minor == 20:  # takes the whole list for one value
        assert [cause["field"] for cause in second.expect(409)["details"]["causes"]] == [".spec.rules"]
    else:
        assert [each["name"] for each in second.expect(200)["spec"]["rules"]] == ["a", "b"]


async def test_deletion_counts_as_a_change_of_what_is_desired(boxes: Boxes) -> None:
    body = boxes.box()
    body["metadata"]["finalizers"] = ["example.com/hold"]
    (await boxes.cluster.client.post(boxes.path, body)).expect(201)
    marked = (await boxes.cluster.client.delete(f"{boxes.path}/it")).expect(200)
    assert (marked["metadata"]["generation"], marked["metadata"]["deletionGracePeriodSeconds"]) == (2, 0)
    (await boxes.cluster.client.patch(f"{boxes.path}/it", {"metadata": {"finalizers": None}}, MERGE)).expect(200)
    assert (await boxes.cluster.client.get(f"{boxes.path}/it")).refused(404, "NotFound")


async def test_labels_are_not_written_through_the_status_of_a_custom_resource(boxes: Boxes) -> None:
    (await boxes.create()).expect(201)
    both = {"metadata": {"labels": {"a": "b"}}, "status": {"count": 1}}
    found = (await boxes.cluster.client.patch(f"{boxes.path}/it/status", both, MERGE)).expect(200)
    assert found["status"] == {"count": 1}
    assert "labels" not in found["metadata"]


async def test_peers_keep_records_in_a_status_that_is_no_subresource(cluster: Cluster) -> None:
    """As Kopf's peerings do: each replica merges its record in, and null takes it out."""
    async with defined(cluster, {"type": "object", "properties": {"status": ANYTHING}}, has_status=False) as boxes:
        body = {"apiVersion": f"{boxes.group}/v1", "kind": "Box", "metadata": {"name": "it"}}
        (await cluster.client.post(boxes.path, body)).expect(201)
        path = f"{boxes.path}/it"
        for replica in ("one", "two"):
            record = {"priority": 1, "lifetime": 60, "lastseen": "2026-01-01T00:00:00.000000"}
            found = (await cluster.client.patch(path, {"status": {replica: record}}, MERGE)).expect(200)
        assert found["status"].keys() == {"one", "two"}
        left = (await cluster.client.patch(path, {"status": {"one": None}}, MERGE)).expect(200)
        assert left["status"].keys() == {"two"}
        assert left["metadata"]["generation"] == 4
        assert (await cluster.client.patch(f"{path}/status", {"status": {}}, MERGE)).refused(404)


async def test_a_table_has_the_columns_of_the_definition(boxes: Boxes) -> None:
    (await boxes.create()).expect(201)
    status = {"status": {"ready": True}}
    await boxes.cluster.client.patch(f"{boxes.path}/it/status", status, MERGE)
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
    found = (await boxes.cluster.client.get(boxes.path, accept=accept)).expect(200)
    assert [column["name"] for column in found["columnDefinitions"]] == ["Name", "Size", "Ready", "Mode"]
    assert [column["priority"] for column in found["columnDefinitions"]] == [0, 0, 0, 1]
    assert found["rows"][0]["cells"] == ["it", 3, True, "Fast"]


async def test_a_watch_shows_custom_resources(boxes: Boxes) -> None:
    version = (await boxes.cluster.client.get(boxes.path)).expect(200)["metadata"]["resourceVersion"]
    async with boxes.cluster.client.watch(boxes.path, resourceVersion=version) as watch:
        (await boxes.create()).expect(201)
        event = await watch.next()
    assert (event["type"], event["object"]["kind"], event["object"]["spec"]["size"]) == ("ADDED", "Box", 3)


async def test_the_type_goes_with_its_definition(cluster: Cluster) -> None:
    async with defined(cluster, SCHEMA) as boxes:
        (await boxes.create()).expect(201)
        definition = f"{DEFINITIONS}/boxes.{boxes.group}"
        (await cluster.client.delete(definition)).expect(200)
        await cluster.eventually(lambda body: True, definition, accept=(404,))
        await cluster.eventually(lambda body: True, boxes.path, accept=(404,))
        assert (await boxes.create()).status == 404
