from __future__ import annotations

import logging

import msgspec
import pytest
from aiohttp import web
from fake_api import FakeApi, answer, hang_up, refuse, stream

from placewright.kube.auth.login import ClusterAccess
from placewright.kube.client import STRATEGIC_MERGE_PATCH, ApiClient
from placewright.kube.errors import ApiError, Unreachable


async def test_bodies_are_json_and_patches_say_their_kind() -> None:
    async with FakeApi() as api, api.client() as client:
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            api.on(f"{method} /x", answer({"ok": True}))
        await client.post("/x", {"a": 1})
        await client.put("/x", b'{"a": 2}', {"fieldManager": "me"})
        await client.patch("/x", {"a": 3})
        await client.patch("/x", {"a": 4}, content_type=STRATEGIC_MERGE_PATCH)
        await client.delete("/x")
    kinds = [one.headers.get("Content-Type") for one in api.requests]
    assert kinds[:4] == ["application/json", "application/json", "application/merge-patch+json", STRATEGIC_MERGE_PATCH]
    assert [one.body for one in api.requests] == [{"a": 1}, {"a": 2}, {"a": 3}, {"a": 4}, None]
    assert api.requests[1].query["fieldManager"] == "me"


async def test_an_answer_is_decoded_into_a_struct() -> None:
    class Version(msgspec.Struct, rename="camel"):
        git_version: str

    async with FakeApi() as api, api.client() as client:
        api.on("GET /version", answer({"gitVersion": "v1.30.1"}))
        assert await client.get_as("/version", Version) == Version("v1.30.1")


async def test_a_refusal_carries_status_reason_and_message() -> None:
    async with FakeApi() as api, api.client() as client:
        api.on("GET /x", refuse(403, "Forbidden"))
        with pytest.raises(ApiError) as caught:
            await client.get("/x")
    assert (caught.value.status, caught.value.reason, caught.value.message) == (403, "Forbidden", "scripted 403")


async def test_selectors_survive_the_way_into_the_url() -> None:
    async with FakeApi() as api, api.client() as client:
        api.on("GET /x", answer({}))
        await client.get("/x", {"fieldSelector": "spec.nodeName=,status.phase!=Failed", "labelSelector": "a in (b,c)"})
    assert api.requests[0].query["fieldSelector"] == "spec.nodeName=,status.phase!=Failed"
    assert api.requests[0].query["labelSelector"] == "a in (b,c)"


async def test_a_path_in_the_servers_address_goes_before_ours() -> None:
    async with FakeApi() as api, ApiClient(ClusterAccess(f"{api.url}/k8s/clusters/c-1/")) as client:
        api.on("GET /k8s/clusters/c-1/version", answer({}))
        await client.get("/version")
    assert [request.path for request in api.requests] == ["/k8s/clusters/c-1/version"]


async def test_a_body_that_breaks_off_is_unreachable_but_the_server_is_not_called_away() -> None:
    async with FakeApi() as api, api.client() as client:
        api.on("GET /x", stream(b"half", broken=True))
        with pytest.raises(Unreachable):
            await client.get("/x")
        assert client.away.away_since is None


async def test_nothing_is_repeated_by_the_client() -> None:
    async with FakeApi() as api, api.client() as client:
        api.on("POST /x", hang_up())
        with pytest.raises(Unreachable, match="POST /x"):
            await client.post("/x", {})
        assert len(api.requests) == 1


async def test_a_server_that_goes_away_and_comes_back_is_said_once_each(caplog: pytest.LogCaptureFixture) -> None:
    async with FakeApi() as api, api.client() as client:
        api.on("POST /x", hang_up(), hang_up(), answer({}))
        with caplog.at_level(logging.INFO, "placewright"):
            for _ in range(2):
                with pytest.raises(Unreachable):
                    await client.post("/x", {})
            await client.post("/x", {})
            await client.post("/x", {})
    assert ["away" in line or "back" in line for line in caplog.messages] == [True, True]


async def test_a_refused_connection_is_unreachable() -> None:
    async with FakeApi() as api:
        url = api.url
    async with ApiClient(ClusterAccess(url)) as client:
        with pytest.raises(Unreachable):
            await client.get("/version")


async def test_redirects_are_not_followed_with_our_credentials() -> None:
    async with FakeApi() as api, api.client() as client:

        async def elsewhere(_: web.Request) -> web.StreamResponse:
            return web.Response(status=302, headers={"Location": "/elsewhere"})

        api.on("GET /x", elsewhere)
        with pytest.raises(ApiError, match="302"):
            await client.get("/x")
        assert [one.path for one in api.requests] == ["/x"]


async def test_a_401_waits_for_fresh_credentials_before_the_next_request() -> None:
    async with FakeApi() as api:
        access = ClusterAccess(api.url, authorization="Bearer old")
        access.reload = lambda forced: ClusterAccess(api.url, authorization="Bearer fresh" if forced else "Bearer other")
        api.on("GET /x", refuse(401, "Unauthorized"), answer({}))
        async with ApiClient(access) as client:
            with pytest.raises(ApiError):
                await client.get("/x")
            await client.get("/x")
    assert [one.headers["Authorization"] for one in api.requests] == ["Bearer old", "Bearer fresh"]


@pytest.mark.parametrize("name", ["a\r\nX-Injected: b", "a\x1b[2J", "caf\u00e9", "\u202e", "\ud800"])
async def test_a_name_that_no_request_line_can_hold_is_refused_here(name: str) -> None:
    async with FakeApi() as api, api.client() as client:
        with pytest.raises(ApiError, match=r"not asked: '.*' is no path") as caught:
            await client.get(f"/api/v1/nodes/{name}")
    assert (caught.value.status, caught.value.temporary, api.requests) == (400, False, [])
    assert "\n" not in str(caught.value)


async def test_an_error_of_the_one_who_reads_the_answer_is_passed_on() -> None:
    async with FakeApi() as api, api.client() as client:
        api.on("GET /x", answer({}))
        with pytest.raises(RuntimeError, match="the reader"):
            async with client._send("GET", "/x", None, None, "", client._timeout):
                raise RuntimeError("the reader's own")
