"""Lists read once: in pages, at the version of another list where the server can, and as it can where not."""

from __future__ import annotations

import pytest
from fake_api import FakeApi, a_node, answer, hang_up, listing, refuse

from placewright.api.objects import Node
from placewright.kube.errors import ApiError
from placewright.kube.listonce import Listed, list_once
from placewright.kube.listwatch import Malformed
from placewright.kube.reflector import Source

PATH = "/api/v1/nodes"
GET = f"GET {PATH}"


async def at_once(_: float) -> None:
    """No test waits."""


async def read(api: FakeApi, at: str = "", selector: str = "") -> Listed[Node]:
    async with api.client() as client:
        return await list_once(client, Source(PATH, Node, field_selector=selector), at, at_once)


def names(listed: Listed[Node]) -> list[str]:
    return [each.metadata.name for each in listed.items]


async def test_pages_follow_each_other_and_only_the_first_names_a_version() -> None:
    async with FakeApi() as api:
        first, second = listing(a_node("a"), version="7", following="on"), listing(a_node("b"), version="7")
        api.on(GET, answer(first), answer(second))
        found = await read(api, at="7", selector="x=y")
        assert names(found) == ["a", "b"]
        assert (found.version, found.as_wanted) == ("7", True)
        assert [dict(one.query) for one in api.asked("GET")] == [
            {"fieldSelector": "x=y", "limit": "500", "resourceVersion": "7", "resourceVersionMatch": "Exact"},
            {"fieldSelector": "x=y", "limit": "500", "continue": "on"},
        ]


@pytest.mark.parametrize("status", [400, 410, 422, 504])
async def test_where_that_version_cannot_be_had_it_is_the_newest_and_says_so(status: int) -> None:
    async with FakeApi() as api:
        steps = [refuse(status)] * (4 if status == 504 else 1)
        api.on(GET, *steps, answer(listing(a_node("a"), version="9")))
        found = await read(api, at="7")
        assert names(found) == ["a"]
        assert (found.version, found.as_wanted) == ("9", False)


async def test_pages_that_expired_are_followed_by_the_whole_at_once() -> None:
    async with FakeApi() as api:
        api.on(GET, answer(listing(a_node("a"), following="on")), refuse(410), answer(listing(a_node("a"), a_node("b"))))
        assert names(await read(api)) == ["a", "b"]
        assert dict(api.asked("GET")[-1].query) == {}


async def test_what_is_temporary_is_tried_again_a_few_times() -> None:
    async with FakeApi() as api:
        api.on(GET, hang_up(), refuse(503), answer(listing(a_node("a"))))
        assert names(await read(api)) == ["a"]
    async with FakeApi() as api:
        api.on(GET, refuse(503))
        with pytest.raises(ApiError, match="503"):
            await read(api)
        assert len(api.asked("GET")) == 4


async def test_a_refusal_and_what_is_no_list_are_raised() -> None:
    async with FakeApi() as api:
        api.on(GET, refuse(403))
        with pytest.raises(ApiError, match="403"):
            await read(api, at="7")
        assert len(api.asked("GET")) == 1
    async with FakeApi() as api:
        api.on(GET, answer([1, 2]))
        with pytest.raises(Malformed):
            await read(api)


async def test_an_object_of_a_wrong_shape_is_told_and_costs_no_other() -> None:
    async with FakeApi() as api:
        api.on(GET, answer(listing(a_node("a"), a_node("b", spec={"taints": 3}))))
        found = await read(api)
        assert names(found) == ["a"]
        assert found.bad[0].startswith("Node /b: Expected")
