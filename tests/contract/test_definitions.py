"""Definitions that change: versions, schemas, and fields to select by."""

from __future__ import annotations

import copy
from collections.abc import Callable

from contract.boxes import DEFINITIONS, Boxes, defined
from contract.client import MERGE, Object
from contract.cluster import Cluster

SIZE: Object = {"type": "integer", "minimum": 1, "default": 3}
SPEC: Object = {"type": "object", "default": {}, "properties": {"size": SIZE, "colour": {"type": "string"}}}
SCHEMA: Object = {"type": "object", "properties": {"spec": SPEC}}


async def change(boxes: Boxes, edit: Callable[[list[Object]], None]) -> Object:
    """The definition after an edit of its versions; returns when they are served."""
    client, path = boxes.cluster.client, f"{DEFINITIONS}/boxes.{boxes.group}"
    versions = (await client.get(path)).expect(200)["spec"]["versions"]
    edit(versions)
    (await client.patch(path, {"spec": {"versions": versions}}, MERGE)).expect(200)
    served = {each["name"] for each in versions if each["served"]}
    await boxes.cluster.eventually(lambda found: served == {each["version"] for each in found["versions"]}, f"/apis/{boxes.group}")
    for version in served:
        await boxes.cluster.eventually(lambda found: "items" in found, boxes.path.replace("/v1/", f"/{version}/"))
    return (await client.get(path)).expect(200)


async def test_objects_are_shown_in_every_served_version_and_the_definition_remembers_what_was_stored_in(cluster: Cluster) -> None:
    def second(versions: list[Object]) -> None:
        newer, unserved = copy.deepcopy(versions[0]), copy.deepcopy(versions[0])
        versions[0]["storage"] = False
        versions += [{**newer, "name": "v2"}, {**unserved, "name": "v3", "served": False, "storage": False}]

    async with defined(cluster, SCHEMA) as boxes:
        (await boxes.create()).expect(201)
        assert (await change(boxes, second))["status"]["storedVersions"] == ["v1", "v2"]
        for version in ("v1", "v2"):
            found = (await cluster.client.get(f"{boxes.path.replace('/v1/', f'/{version}/')}/it")).expect(200)
            assert found["apiVersion"] == f"{boxes.group}/{version}"
        assert (await cluster.client.get(boxes.path.replace("/v1/", "/v3/"))).status == 404
        (await cluster.client.patch(f"{boxes.path}/it", {"spec": {"colour": "blue"}}, MERGE)).expect(200)


async def test_a_changed_schema_holds_for_the_next_write(cluster: Cluster) -> None:
    def stricter(versions: list[Object]) -> None:
        versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"].update(minimum=10, default=20)

    async with defined(cluster, SCHEMA) as boxes:
        (await boxes.create(size=5)).expect(201)
        await change(boxes, stricter)
        await cluster.eventually(lambda _: True, f"{boxes.path}/it")
        for _ in range(200):  # a real server takes the new schema a moment later
            answer = await cluster.client.post(boxes.path, boxes.box("other", size=5), dryRun="All")
            if answer.status == 422:
                break
        assert "spec.size" in answer.refused(422, "Invalid")
        assert (await cluster.client.post(boxes.path, boxes.box("other", size=50))).expect(201)["spec"]["size"] == 50


async def test_selectable_fields_can_be_selected_by(cluster: Cluster) -> None:
    cluster.needs(32, "selectable fields of custom resources")

    def selectable(versions: list[Object]) -> None:
        versions[0]["selectableFields"] = [{"jsonPath": ".spec.colour"}]

    async with defined(cluster, SCHEMA) as boxes:
        await change(boxes, selectable)
        for name in ("red", "blue"):
            (await cluster.client.post(boxes.path, boxes.box(name, colour=name))).expect(201)
        for _ in range(200):
            answer = await cluster.client.get(boxes.path, fieldSelector="spec.colour=red")
            if answer.status == 200:
                break
        assert [each["metadata"]["name"] for each in answer.expect(200)["items"]] == ["red"]
        assert (await cluster.client.get(boxes.path, fieldSelector="spec.size=3")).refused(400, "BadRequest")
