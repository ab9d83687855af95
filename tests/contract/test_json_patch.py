"""JSON Patch as RFC 6902 has it, and where API servers take more: on a document that may have any shape."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from contract.boxes import ANYTHING, Boxes, defined
from contract.client import JSON_PATCH, Answer, Object
from contract.cluster import Server, within_namespace


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def documents(server: Server) -> AsyncIterator[Boxes]:
    async with within_namespace(server) as cluster, defined(cluster, {"type": "object", "properties": {"spec": ANYTHING}}) as found:
        yield found


def op(name: str, path: str, **more: Any) -> Object:
    """An operation on `spec`; `start` is where it takes its value from."""
    start = {"from": f"/spec{more.pop('start')}"} if "start" in more else {}
    return {"op": name, "path": f"/spec{path}", **start, **more}


async def patched(boxes: Boxes, name: str, document: Object, operations: object) -> tuple[Object, Answer]:
    """The box as it was made, and the answer to the patch."""
    body = {"apiVersion": f"{boxes.group}/v1", "kind": "Box", "metadata": {"name": name}, "spec": document}
    made = (await boxes.cluster.client.post(boxes.path, body)).expect(201)
    assert made["spec"] == document
    return made, await boxes.cluster.client.patch(f"{boxes.path}/{name}", operations, JSON_PATCH)


TAKEN: list[tuple[Object, Object, Object]] = [
    ({"a": 1}, op("add", "/b", value=2), {"a": 1, "b": 2}),
    ({"a": 1}, op("add", "/a", value=2), {"a": 2}),
    ({"a": [1, 3]}, op("add", "/a/1", value=2), {"a": [1, 2, 3]}),
    ({"a": [1]}, op("add", "/a/-", value=2), {"a": [1, 2]}),
    ({"a": [1]}, op("add", "/a/1", value=2), {"a": [1, 2]}),
    ({"a": 1}, op("add", "", value={"b": 2}), {"b": 2}),
    ({"a": 1, "b": 2}, op("remove", "/b"), {"a": 1}),
    ({"a": [1, 2, 3]}, op("remove", "/a/1"), {"a": [1, 3]}),
    ({"a": [1, 2]}, op("replace", "/a/0", value=9), {"a": [9, 2]}),
    ({"a": None}, op("replace", "/a", value=1), {"a": 1}),
    ({"a": {"x": 1}, "b": {}}, op("move", "/b/y", start="/a/x"), {"a": {}, "b": {"y": 1}}),
    ({"a": [1, 2, 3]}, op("move", "/a/2", start="/a/0"), {"a": [2, 3, 1]}),
    ({"a": {"x": 1}}, op("copy", "/b", start="/a"), {"a": {"x": 1}, "b": {"x": 1}}),
    ({"a/b": 1, "m~n": 2}, op("remove", "/a~1b"), {"m~n": 2}),
    ({"a/b": 1, "m~n": 2}, op("remove", "/m~0n"), {"a/b": 1}),
    ({"": 1}, op("replace", "/", value=2), {"": 2}),
    ({"a": {"b": [1]}}, op("test", "/a", value={"b": [1]}), {"a": {"b": [1]}}),
    ({}, op("test", "/a", value=None), {}),
    # Beyond the standard, and on every version.
    ({}, op("replace", "/a", value=1), {"a": 1}),
    ({"a": 1}, op("replace", "", value={"b": 2}), {"b": 2}),
    ({"a": 1}, op("add", "/b"), {"a": 1, "b": None}),
    ({"a": 1}, op("replace", "/a"), {"a": None}),
    ({"a": 1}, op("copy", "/b", start="/x"), {"a": 1, "b": None}),
    ({"a": 1}, op("test", "/x"), {"a": 1}),
    ({"a": [1, 2]}, op("replace", "/a/-1", value=9), {"a": [1, 9]}),
    ({"a": [1, 2]}, op("remove", "/a/-2"), {"a": [2]}),
    ({"a": [1, 2]}, op("add", "/a/-1", value=9), {"a": [1, 2, 9]}),
    ({"a": [1, 2]}, op("add", "/a/-3", value=9), {"a": [9, 1, 2]}),
]
REFUSED: list[tuple[Object, Object]] = [
    ({}, op("remove", "/a")),
    ({}, op("replace", "/a/b", value=1)),
    ({}, op("test", "/a/b", value=None)),
    ({"a": [1]}, op("test", "/a/1", value=None)),
    ({"a": [1]}, op("replace", "/a/1", value=2)),
    ({"a": [1]}, op("replace", "/a/-", value=2)),
    ({}, op("move", "/b", start="/a")),
    ({}, op("copy", "/b", start="/a/b")),
    ({}, op("add", "/a/b", value=1)),
    ({"a": 1}, op("add", "/a/b", value=1)),
    ({"a": []}, op("add", "/a/1", value=1)),
    ({"a": [1]}, op("remove", "/a/-")),
    ({"a": [1]}, op("remove", "/a/-2")),
    ({"a": [1]}, op("add", "/a/-3", value=1)),
    ({"a": [1]}, op("remove", "/a/" + "1" * 5000)),
    ({"a": [1]}, op("remove", "/a/x")),
    ({"a": {"b": 1}}, op("move", "/a/b/c", start="/a")),
    ({"a": 1}, op("test", "/a", value=True)),
    ({"a": [1]}, op("test", "/a", value=[1.5])),
    ({"a": 1}, op("test", "/b", value=1)),
    ({"a": 1}, op("increment", "/a")),
    ({"a": 1}, {"path": "/spec/a"}),
    ({"a": 1}, {"op": "remove"}),
    ({"a": 1}, {"op": "remove", "path": "spec/a"}),
    ({"a": 1}, {"op": "replace", "path": "", "value": 1}),
]


@pytest.mark.parametrize("number", range(len(TAKEN)))
async def test_an_operation_does_what_the_standard_says_or_what_servers_make_of_it(documents: Boxes, number: int) -> None:
    document, operation, after = TAKEN[number]
    if documents.cluster.minor == 20 and (operation["op"], operation["path"]) in {("replace", "/spec/a/-1"), ("test", "/spec/x")}:
        with pytest.raises(aiohttp.ClientError):  # it breaks on that, and drops the connection
            await patched(documents, f"taken-{number}", document, [operation])
        return
    _, answer = await patched(documents, f"taken-{number}", document, [operation])
    assert answer.expect(200)["spec"] == after


@pytest.mark.parametrize("number", range(len(REFUSED)))
async def test_an_operation_that_does_not_fit_is_refused_and_those_before_it_are_not_done(documents: Boxes, number: int) -> None:
    document, operation = REFUSED[number]
    made, answer = await patched(documents, f"refused-{number}", document, [op("add", "/before", value=1), operation])
    assert answer.refused(422, "Invalid")
    assert (await documents.cluster.client.get(f"{documents.path}/refused-{number}")).expect(200) == made


@pytest.mark.parametrize("operations", ["{}", '"x"', "[1]", '{"op": "add"}', "{half"])
async def test_what_is_no_list_of_operations_is_a_bad_request(documents: Boxes, operations: str) -> None:
    _, answer = await patched(documents, f"malformed-{operations.encode().hex()}", {"a": 1}, operations)
    assert answer.refused(400, "BadRequest")


async def test_null_is_a_list_of_no_operations(documents: Boxes) -> None:
    made, answer = await patched(documents, "nothing", {"a": 1}, "null")
    assert answer.expect(200) == made


async def test_a_copied_value_is_no_longer_tied_to_its_origin(documents: Boxes) -> None:
    _, answer = await patched(documents, "copied", {"a": {}}, [op("copy", "/b", start="/a"), op("add", "/b/x", value=1)])
    assert answer.expect(200)["spec"] == {"a": {}, "b": {"x": 1}}


async def test_a_flood_of_operations_is_refused(documents: Boxes) -> None:
    _, answer = await patched(documents, "flood", {}, [op("add", "/a", value=1)] * 10_001)
    assert "maximum operations" in answer.refused(413, "RequestEntityTooLarge")
