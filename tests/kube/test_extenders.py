"""The client of an extender against a real HTTP server: what is sent, what is understood, and what everything that goes wrong is called."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from yarl import URL

from kube.extender_server import ExtenderServer
from kube.fake_api import FakeApi, a_node, answer, hang_up, listing, silent, stream
from kube.pods import a_pod, pod_json
from placewright.api.extenders import ExtenderError, ExtenderSettings, Filtered, NodeVictims
from placewright.api.objects import NodeName
from placewright.framework.ports import Extender
from placewright.kube.auth.proxies import proxy_for
from placewright.kube.extenders.httpextender import HttpExtender
from placewright.kube.extenders.messages import AnswerRoom, read_scores
from placewright.kube.fullobjects import FullObjects

A, B, C = NodeName("a"), NodeName("b"), NodeName("c")
WEB = a_pod("web")
#: How the API server shows `WEB`: with fields that the scheduler does not know.
SPEC = {"schedulerName": "placewright", "hostname": "exactly<&>this", "containers": [{"name": "c", "stdin": True}]}
WEB_JSON = pod_json("web") | {"spec": SPEC}
NODES = [a_node(name, spec={"podCIDR": f"10.0.{name}.0/24"}, status={"nodeInfo": {"kernelVersion": name}}) for name in "abc"]


@asynccontextmanager
async def world(**settings: Any) -> AsyncIterator[tuple[HttpExtender, ExtenderServer, FakeApi]]:
    """An extender that filters, scores, agrees to preemption and binds, and the API server's pods and nodes."""
    verbs: dict[str, Any] = {f"{verb}_verb": verb for verb in ("filter", "prioritize", "preempt", "bind")} | {"weight": 1}
    async with FakeApi() as api, ExtenderServer() as server, api.client() as client:
        api.on("GET /api/v1/namespaces/shop/pods/web", answer(WEB_JSON | {"kind": "Pod", "apiVersion": "v1"}))
        api.on("GET /api/v1/nodes", answer(listing(*NODES)))
        api.on("WATCH /api/v1/nodes", stream(api.open))
        objects = FullObjects(client, patience=0.2)
        prefix = settings.pop("url_prefix", f"{server.url}/v1/")
        extender = HttpExtender(ExtenderSettings(url_prefix=prefix, **verbs | settings), objects, {})
        extender.open()
        try:
            yield extender, server, api
        finally:
            await extender.close()
            await objects.close()


async def complaint(call: Any) -> str:
    with pytest.raises(ExtenderError) as caught:
        await call
    return str(caught.value)


# --- what is sent ------------------------------------------------------------------------------------------------------------


async def test_filter_sends_the_whole_pod_and_whole_nodes() -> None:
    async with world() as (extender, server, _):
        server.on("filter", {})
        await extender.filter(WEB, [B, A])
        (asked,) = server.requests
        assert asked.path == "/v1/filter"
        assert asked.headers["Content-Type"] == "application/json"
        assert asked.body == {"Pod": WEB_JSON, "Nodes": {"metadata": {}, "items": [NODES[1], NODES[0]]}, "NodeNames": None}


async def test_an_extender_that_knows_the_nodes_is_sent_names_and_costs_no_copy_of_them() -> None:
    async with world(node_cache_capable=True) as (extender, server, api):
        server.on("filter", {})
        server.on("prioritize", [])
        await extender.filter(WEB, [B, A])
        await extender.prioritize(WEB, [A])
        assert server.requests[0].body == {"Pod": WEB_JSON, "Nodes": None, "NodeNames": ["b", "a"]}
        assert server.requests[1].body == {"Pod": WEB_JSON, "Nodes": None, "NodeNames": ["a"]}
        assert api.asked("GET", "/nodes") == []


async def test_a_pod_is_sent_without_the_names_of_its_kind_and_without_managed_fields() -> None:
    async with world(node_cache_capable=True) as (extender, server, api):
        meta = {**WEB_JSON["metadata"], "managedFields": [{"manager": "kubectl"}], "generateName": "web-"}
        api.on("GET /api/v1/namespaces/shop/pods/other", answer({**WEB_JSON, "kind": "Pod", "apiVersion": "v1", "metadata": meta}))
        server.on("filter", {})
        await extender.filter(a_pod("other", uid="uid-web"), [A])
        sent = server.requests[0].body["Pod"]
        assert sent == {**WEB_JSON, "metadata": {**WEB_JSON["metadata"], "generateName": "web-"}}


async def test_a_pod_is_read_once_for_all_that_is_asked_about_it_and_again_when_it_has_changed() -> None:
    async with world(node_cache_capable=True) as (extender, server, api):
        server.on("filter", {})
        server.on("prioritize", [])
        await extender.filter(WEB, [A])
        await extender.prioritize(WEB, [A])
        assert len(api.asked("GET", "/pods/web")) == 1
        await extender.filter(a_pod("web", version="2"), [A])
        assert len(api.asked("GET", "/pods/web")) == 2


async def test_bind_names_the_pod_and_the_node() -> None:
    async with world() as (extender, server, api):
        server.on("bind", {"Error": ""})
        await extender.bind(WEB, A)
        assert server.requests[0].body == {"PodName": "web", "PodNamespace": "shop", "PodUID": "uid-web", "Node": "a"}
        assert api.asked("GET", "/pods/web") == []


VICTIMS = {A: NodeVictims((a_pod("v1", node="a"), a_pod("v2", node="a")), 1), B: NodeVictims((a_pod("v3", node="b"),))}


async def test_preempt_sends_whole_victims() -> None:
    async with world() as (extender, server, api):
        for name, on in (("v1", "a"), ("v2", "a"), ("v3", "b")):
            api.on(f"GET /api/v1/namespaces/shop/pods/{name}", answer(pod_json(name, node=on)))
        server.on("preempt", {})
        assert await extender.preempt(WEB, VICTIMS) == {}
        assert server.requests[0].body == {
            "Pod": WEB_JSON,
            "NodeNameToVictims": {
                "a": {"Pods": [pod_json("v1", node="a"), pod_json("v2", node="a")], "NumPDBViolations": 1},
                "b": {"Pods": [pod_json("v3", node="b")], "NumPDBViolations": 0},
            },
            "NodeNameToMetaVictims": None,
        }


async def test_preempt_sends_uids_to_an_extender_that_knows_the_nodes() -> None:
    async with world(node_cache_capable=True) as (extender, server, _):
        server.on("preempt", {})
        await extender.preempt(WEB, VICTIMS)
        assert server.requests[0].body == {
            "Pod": WEB_JSON,
            "NodeNameToVictims": None,
            "NodeNameToMetaVictims": {
                "a": {"Pods": [{"UID": "uid-v1"}, {"UID": "uid-v2"}], "NumPDBViolations": 1},
                "b": {"Pods": [{"UID": "uid-v3"}], "NumPDBViolations": 0},
            },
        }


@pytest.mark.parametrize("suffix", ["", "/", "//", "/a/b", "/a/b/"])
async def test_the_verb_follows_the_prefix_after_one_slash(suffix: str) -> None:
    async with ExtenderServer() as other, world(url_prefix=f"{other.url}{suffix}") as (extender, _, _):
        other.on("bind", {})
        await extender.bind(WEB, A)
        assert other.requests[0].path == f"{suffix.rstrip('/')}/bind"


# --- what is understood ------------------------------------------------------------------------------------------------------

NAMES = [A, B, C]
UNDERSTOOD: list[tuple[str, bool, Any, Filtered]] = [
    ("names", True, {"NodeNames": ["a", "c"]}, Filtered((A, C))),
    ("whole nodes", False, {"Nodes": {"items": [NODES[0], NODES[2]]}}, Filtered((A, C))),
    ("whole nodes from one that was sent names", True, {"Nodes": {"items": [NODES[1]]}, "NodeNames": None}, Filtered((B,))),
    ("names from one that was sent whole nodes are not looked at", False, {"NodeNames": ["a"]}, Filtered(())),
    ("names go before nodes", True, {"NodeNames": ["a"], "Nodes": {"items": [NODES[1]]}}, Filtered((A,))),
    ("nothing at all", True, {}, Filtered(())),
    ("null", True, None, Filtered(())),
    ("no node", True, {"NodeNames": []}, Filtered(())),
    ("no items", False, {"Nodes": {"items": None}}, Filtered(())),
    ("a node twice", True, {"NodeNames": ["a", "a"]}, Filtered((A,))),
    ("reasons", True, {"NodeNames": ["a"], "FailedNodes": {"b": "full"}, "Error": ""}, Filtered((A,), {B: "full"})),
    (
        "reasons that are final",
        True,
        {"NodeNames": [], "FailedNodes": {"a": "x"}, "FailedAndUnresolvableNodes": {"b": "never"}},
        Filtered((), {A: "x"}, {B: "never"}),
    ),
    ("names of fields in another case", True, {"nodenames": ["a"], "failedNODES": {"b": "full"}}, Filtered((A,), {B: "full"})),
    ("fields of nodes in another case", False, {"nodes": {"Items": [{"Metadata": {"NAME": "a"}}]}}, Filtered((A,))),
    ("fields that do not exist", True, {"NodeNames": ["a"], "Comment": {"deep": [1]}}, Filtered((A,))),
    ("null for everything", True, {"NodeNames": ["a"], "FailedNodes": None, "Nodes": None, "Error": None}, Filtered((A,))),
    ("a null reason", True, {"NodeNames": [], "FailedNodes": {"a": None}}, Filtered((), {A: ""})),
]


@pytest.mark.parametrize(("knows", "said", "expected"), [case[1:] for case in UNDERSTOOD], ids=[case[0] for case in UNDERSTOOD])
async def test_an_answer_of_filter_is_understood(knows: bool, said: Any, expected: Filtered) -> None:
    async with world(node_cache_capable=knows) as (extender, server, _):
        server.on("filter", said)
        assert await extender.filter(WEB, NAMES) == expected


def raw(text: bytes, **options: Any) -> web.Response:
    return web.Response(body=text, **options)


@pytest.mark.parametrize(
    "text",
    [
        b'{"NodeNames": ["a"]} and more',
        b' \n{"NodeNames": ["a"]}{"NodeNames": ["b"]}',
        b'{"NodeNames": ["b"], "nodeNames": ["a"]}',
        b'{"NodeNames": ["a"], "Comment": "\xff"}',
        b'{"NodeNames": ["\\u0061"]}',
    ],
)
async def test_answers_are_read_as_go_reads_them(text: bytes) -> None:
    async with world(node_cache_capable=True) as (extender, server, _):
        server.on("filter", raw(text, content_type="text/plain"))
        assert (await extender.filter(WEB, NAMES)).kept == (A,)


async def test_an_answer_may_come_compressed() -> None:
    async with world(node_cache_capable=True) as (extender, server, _):
        server.on("filter", raw(gzip.compress(b'{"NodeNames": ["a"]}'), headers={"Content-Encoding": "gzip"}))
        assert (await extender.filter(WEB, NAMES)).kept == (A,)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ([{"Host": "a", "Score": 10}, {"Host": "b", "Score": 0}], {A: 10, B: 0}),
        ([{"host": "a", "score": 3}], {A: 3}),
        ([{"Host": "a"}, {"Score": 4}, None], {A: 0}),
        ([{"Host": "a", "Score": 3}, {"Host": "a", "Score": 4}], {A: 7}),
        ([{"Host": "elsewhere", "Score": 3}], {}),
        ([{"Host": "a", "Score": -5}, {"Host": "b", "Score": 100}], {A: -5, B: 100}),
        ([], {}),
        (None, {}),
    ],
)
async def test_scores_arrive_as_they_were_given(said: Any, expected: dict[NodeName, int]) -> None:
    async with world() as (extender, server, _):
        server.on("prioritize", said)
        assert await extender.prioritize(WEB, NAMES) == expected


def agreeing(*uids: str, violations: int = 0) -> dict[str, Any]:
    return {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": violations}


async def test_victims_come_back_as_the_pods_that_were_meant() -> None:
    async with world(node_cache_capable=True) as (extender, server, _):
        server.on("preempt", {"NodeNameToMetaVictims": {"a": agreeing("uid-v2", violations=3)}})
        assert await extender.preempt(WEB, VICTIMS) == {A: NodeVictims((VICTIMS[A].pods[1],), 3)}


async def test_an_extender_may_choose_other_nodes_and_victims_where_the_scheduler_says_who_is_there() -> None:
    there = {C: [a_pod("v9", node="c")]}
    async with world(node_cache_capable=True) as (extender, server, _):
        server.on("preempt", {"NodeNameToMetaVictims": {"c": agreeing("uid-v9")}})
        assert await extender.preempt(WEB, VICTIMS, lambda name: there[name]) == {C: NodeVictims((there[C][0],))}
        assert await complaint(extender.preempt(WEB, VICTIMS)) == 'nodeinfo not found for node name "c"'
        server.on("preempt", {"NodeNameToMetaVictims": {"z": agreeing("uid-v9")}})
        assert await complaint(extender.preempt(WEB, VICTIMS, lambda name: there[name])) == 'nodeinfo not found for node name "z"'


async def test_a_victim_that_nobody_knows_is_an_error() -> None:
    async with world(node_cache_capable=True) as (extender, server, _):
        server.on("preempt", {"NodeNameToMetaVictims": {"b": agreeing("uid-v1")}})
        said = await complaint(extender.preempt(WEB, VICTIMS))
        assert said == (
            f"extender: {extender.settings.name} claims to preempt pod (UID: uid-v1) on node: b, but the pod is not found on that node"
        )


async def test_a_node_without_victims_is_an_error_and_dropped_from_what_an_ignorable_extender_says() -> None:
    said = {"NodeNameToMetaVictims": {"a": agreeing(), "b": agreeing("uid-v3")}}
    async with world(node_cache_capable=True) as (extender, server, _):
        server.on("preempt", said)
        assert await complaint(extender.preempt(WEB, VICTIMS)) == 'expected at least one victim pod on node "a"'
    async with world(node_cache_capable=True, ignorable=True) as (extender, server, _):
        server.on("preempt", said)
        assert await extender.preempt(WEB, VICTIMS) == {B: NodeVictims(VICTIMS[B].pods)}


async def test_a_node_that_was_sent_without_victims_may_stay_without_and_may_get_some() -> None:
    there = {A: [a_pod("v9", node="a")], B: [], C: []}
    sent = dict.fromkeys((A, B), NodeVictims(()))
    async with world(node_cache_capable=True) as (extender, server, _):
        server.on("preempt", {"NodeNameToMetaVictims": {"a": agreeing("uid-v9"), "b": agreeing()}})
        assert await extender.preempt(WEB, sent, lambda name: there[name]) == {A: NodeVictims((there[A][0],)), B: NodeVictims(())}
        assert server.requests[-1].body["NodeNameToMetaVictims"] == {"a": agreeing(), "b": agreeing()}
        server.on("preempt", {"NodeNameToMetaVictims": {"c": agreeing()}})
        said = await complaint(extender.preempt(WEB, sent, lambda name: there[name]))
        assert said == 'expected at least one victim pod on node "c"'


# --- what goes wrong ---------------------------------------------------------------------------------------------------------


async def test_an_error_in_an_answer_is_the_message() -> None:
    async with world() as (extender, server, _):
        server.on("filter", {"NodeNames": ["a"], "Error": "no licence left"})
        server.on("bind", {"Error": "taken"})
        assert await complaint(extender.filter(WEB, [A])) == "no licence left"
        assert await complaint(extender.bind(WEB, A)) == "taken"


async def test_a_node_that_was_not_asked_about_is_an_error() -> None:
    for knows, said in ((True, {"NodeNames": ["a", "b"]}), (False, {"Nodes": {"items": [NODES[0], NODES[1]]}})):
        async with world(node_cache_capable=knows) as (extender, server, _):
            server.on("filter", said)
            assert await complaint(extender.filter(WEB, [A])) == (
                f'extender "{extender.settings.name}" claims a filtered node "b" which is not found in the input node list'
            )


CALLS: dict[str, Callable[[HttpExtender], Any]] = {
    "filter": lambda extender: extender.filter(WEB, [A]),
    "prioritize": lambda extender: extender.prioritize(WEB, [A]),
    "preempt": lambda extender: extender.preempt(WEB, VICTIMS),
    "bind": lambda extender: extender.bind(WEB, A),
}
every_call = pytest.mark.parametrize("verb", CALLS)


@every_call
@pytest.mark.parametrize("status", [201, 204, 302, 400, 404, 500, 503])
async def test_any_status_but_200_is_an_error(verb: str, status: int) -> None:
    async with world(node_cache_capable=True) as (extender, server, _):
        server.on(verb, web.Response(status=status, body=b"" if status == 204 else b'{"NodeNames": ["a"]}'))
        said = await complaint(CALLS[verb](extender))
        assert said == f"failed {verb} with extender at URL {server.url}/v1/{verb}, code {status}"


@every_call
@pytest.mark.parametrize(
    "text",
    [b"", b"  ", b"<html>", b"{", b'{"Error": ', b"[1,", b'"text"', b"7", b'{"a": NaN}', b"[" * 100_000],
    ids=lambda text: repr(text[:12]),
)
async def test_garbage_is_an_error(verb: str, text: bytes) -> None:
    async with world(node_cache_capable=True) as (extender, server, _):
        server.on(verb, raw(text))
        said = await complaint(CALLS[verb](extender))
        assert said.startswith(f"failed {verb} with extender at URL {server.url}/v1/{verb}: ")
        assert len(said) < 400


WRONG_TYPES = [
    ("filter", {"NodeNames": "a"}, "NodeNames: found '\"a\"'; allowed a list"),
    ("filter", {"NodeNames": [1]}, "NodeNames[0]: found '1'; allowed text"),
    ("filter", {"Nodes": []}, "Nodes: found '[]'; allowed an object"),
    ("filter", {"Nodes": {"items": [{"metadata": {"name": 5}}]}}, "Nodes.items[0].metadata.name: found '5'; allowed text"),
    ("filter", {"FailedNodes": {"a": 1}}, "FailedNodes['a']: found '1'; allowed text"),
    ("filter", {"Error": False}, "Error: found 'false'; allowed text"),
    ("filter", [], "the answer: found '[]'; allowed an object"),
    ("prioritize", {}, "the answer: found '{}'; allowed a list"),
    ("prioritize", [{"Host": "a", "Score": "5"}], "the answer[0].Score: found '\"5\"'; allowed a whole number"),
    ("prioritize", [{"Host": "a", "Score": 5.0}], "the answer[0].Score: found '5.0'; allowed a whole number"),
    ("prioritize", [{"Host": "a", "Score": 2**63}], "the answer[0].Score: found '9223372036854775808'; allowed a whole number"),
    ("preempt", {"NodeNameToMetaVictims": {"a": None}}, "NodeNameToMetaVictims['a']: found nothing; allowed an object"),
    ("preempt", {"NodeNameToMetaVictims": {"a": {"Pods": {}}}}, "NodeNameToMetaVictims['a'].Pods: found '{}'; allowed a list"),
    ("bind", {"Error": {}}, "Error: found '{}'; allowed text"),
]


@pytest.mark.parametrize(("verb", "said", "problem"), WRONG_TYPES, ids=[case[2].split(";")[0] for case in WRONG_TYPES])
async def test_a_value_of_another_type_is_an_error_that_names_the_field(verb: str, said: Any, problem: str) -> None:
    async with world(node_cache_capable=True) as (extender, server, _):
        server.on(verb, said)
        assert await complaint(CALLS[verb](extender)) == f"failed {verb} with extender at URL {server.url}/v1/{verb}: {problem}"


async def test_a_score_that_could_overflow_the_total_is_an_error() -> None:
    async with world() as (extender, server, _):
        server.on("prioritize", [{"Host": "a", "Score": 2**62}])
        assert f'score of node "a": found {2**62}; allowed 0 to 10' in await complaint(extender.prioritize(WEB, [A]))


@every_call
async def test_an_extender_that_does_not_answer_is_given_up_in_time(verb: str) -> None:
    async with world(node_cache_capable=True, http_timeout=0.2) as (extender, server, _):
        for behaviour in (silent(server.open), stream(b'{"NodeNames": [', server.open)):
            server.on(verb, behaviour)
            assert await complaint(CALLS[verb](extender)) == f'Post "{server.url}/v1/{verb}": no answer within 0.2s'


@every_call
async def test_an_extender_that_is_not_there_is_an_error(verb: str) -> None:
    async with world(node_cache_capable=True) as (extender, server, _):
        await server.die()
        said = await complaint(CALLS[verb](extender))
        assert said.startswith(f'Post "{server.url}/v1/{verb}": ')
        assert "127.0.0.1" in said


async def test_an_answer_without_end_is_cut_off() -> None:
    async with world(node_cache_capable=True) as (extender, server, _):
        server.on("filter", stream(b'{"Error": "', *[b"x" * 2**20] * 64))
        assert "an answer of more than 1" in await complaint(extender.filter(WEB, [A]))
        server.on("filter", {"NodeNames": ["a"]})
        assert (await extender.filter(WEB, [A])).kept == (A,)


@pytest.mark.parametrize(("verb", "said"), [("filter", b'{"NodeNames":[%s]}'), ("prioritize", b"[%s]"), ("preempt", b'{"x":[%s]}'),
                                            ("bind", b'{"x":[%s]}')])  # fmt: skip
async def test_an_answer_of_more_elements_than_the_nodes_account_for_is_an_error(verb: str, said: bytes) -> None:
    async with world(node_cache_capable=True) as (extender, server, _):
        server.on(verb, web.Response(body=said % b",".join([b"{}"] * 1_000_000)))
        assert "an answer of up to 999999 elements" in await complaint(CALLS[verb](extender))
        assert "for as many nodes as there are" in await complaint(CALLS[verb](extender))


async def test_an_extender_may_answer_for_all_nodes_of_a_large_cluster_though_it_was_asked_about_one() -> None:
    async with world(node_cache_capable=True) as (extender, server, _):
        server.on("prioritize", [{"Host": f"n{i}", "Score": 1} for i in range(20_000)] + [{"Host": "a", "Score": 7}])
        assert "allowed" in await complaint(extender.prioritize(WEB, [A]))
        large = HttpExtender(extender.settings, extender.objects, {}, nodes=lambda: 20_000)
        large.open()
        try:
            assert await large.prioritize(WEB, [A]) == {A: 7}
        finally:
            await large.close()


async def test_the_loop_goes_on_while_a_large_answer_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, came = asyncio.get_running_loop(), threading.Event()

    def slow(body: bytes, room: AnswerRoom) -> list[tuple[str, int]]:
        loop.call_soon_threadsafe(came.set)
        assert came.wait(10), "the loop stood still meanwhile"
        return read_scores(body, room)

    monkeypatch.setattr("placewright.kube.extenders.httpextender.read_scores", slow)
    async with world(node_cache_capable=True) as (extender, server, _):
        server.on("prioritize", [{"Host": "a", "Score": 1, "Why": "x" * 100_000}])
        assert await extender.prioritize(WEB, [A]) == {A: 1}


async def test_a_connection_that_broke_is_tried_once_more_but_never_for_a_binding() -> None:
    async with world(node_cache_capable=True) as (extender, server, _):
        server.on("filter", hang_up(), {"NodeNames": ["a"]})
        assert (await extender.filter(WEB, [A])).kept == (A,)
        server.on("filter", hang_up(), hang_up(), {"NodeNames": ["a"]})
        assert "Server disconnected" in await complaint(extender.filter(WEB, [A]))
        server.on("bind", hang_up(), {})
        assert "Server disconnected" in await complaint(extender.bind(WEB, A))
        assert len(server.asked("POST", "/bind")) == 1


async def test_a_redirect_that_keeps_the_method_is_followed_and_a_circle_ends() -> None:
    async with world(node_cache_capable=True) as (extender, server, _):
        server.on("filter", web.Response(status=307, headers={"Location": "/moved/there"}))
        server.on("there", {"NodeNames": ["a"]})
        assert (await extender.filter(WEB, [A])).kept == (A,)
        assert server.asked("POST", "/there")[0].raw == server.asked("POST", "/filter")[0].raw
        server.on("there", web.Response(status=308, headers={"Location": "/v1/filter"}))
        assert "stopped after 10 redirects" in await complaint(extender.filter(WEB, [A]))
        server.on("there", web.Response(status=307, headers={"Location": "file:///etc/passwd"}))
        assert "Post" in await complaint(extender.filter(WEB, [A]))


async def test_one_slow_call_does_not_hold_up_another() -> None:
    async with world(node_cache_capable=True) as (extender, server, _):
        server.on("filter", silent(server.open))
        server.on("prioritize", [{"Host": "a", "Score": 1}])
        slow = asyncio.create_task(extender.filter(WEB, [A]))
        await server.until_asked("POST", "/filter")
        assert await extender.prioritize(WEB, [A]) == {A: 1}
        assert not slow.done()
        server.open.set()
        await slow


async def test_closing_ends_calls_under_way_and_refuses_later_ones() -> None:
    async with world(node_cache_capable=True) as (extender, server, _):
        server.on("filter", silent(server.open))
        under_way = asyncio.create_task(extender.filter(WEB, [A]))
        await server.until_asked("POST", "/filter")
        await extender.close()
        assert "Post" in await complaint(under_way)
        assert "its profile is not in effect any more" in await complaint(extender.bind(WEB, A))
        assert server.asked("POST", "/bind") == []
        await extender.close()


async def test_an_extender_can_be_opened_again() -> None:
    async with world(node_cache_capable=True) as (extender, server, _):
        server.on("bind", {})
        await extender.close()
        extender.open()
        await extender.bind(WEB, A)
        assert len(server.asked("POST", "/bind")) == 1


async def test_the_client_is_the_schedulers_port() -> None:
    async with world() as (extender, _, _):
        port: Extender = extender
        assert port.settings.filter_verb == "filter"


# --- whole objects -----------------------------------------------------------------------------------------------------------


async def test_a_pod_that_is_gone_or_replaced_is_not_sent() -> None:
    async with world(node_cache_capable=True) as (extender, server, _):
        server.on("filter", {})
        assert await complaint(extender.filter(a_pod("gone"), [A])) == "pod shop/gone cannot be sent: it is gone"
        said = await complaint(extender.filter(a_pod("web", uid="older"), [A]))
        assert said == "pod shop/web cannot be sent: it has been replaced by another of its name"
        assert server.requests == []


async def test_a_victim_that_is_gone_ends_the_attempt() -> None:
    async with world() as (extender, server, api):
        api.on("GET /api/v1/namespaces/shop/pods/v1", answer(pod_json("v1", node="a")))
        assert await complaint(extender.preempt(WEB, VICTIMS)) == "pod shop/v2 cannot be sent: it is gone"
        assert server.requests == []


async def test_an_api_server_that_does_not_answer_is_not_blamed_on_the_extender() -> None:
    async with world(node_cache_capable=True, http_timeout=0.2) as (extender, server, api):

        async def never(_: web.Request) -> web.StreamResponse:
            await api.open.wait()
            return web.Response()

        api.on("GET /api/v1/namespaces/shop/pods/slow", never)
        said = await complaint(extender.filter(a_pod("slow"), [A]))
        assert said == f'Post "{server.url}/v1/filter": the objects to send could not be read within 0.2s'


async def test_nodes_are_sent_as_they_are_now_and_a_new_one_is_waited_for() -> None:
    async with FakeApi() as api, ExtenderServer() as server, api.client() as client:
        later = asyncio.Event()
        changed = {**NODES[0], "metadata": {**NODES[0]["metadata"], "resourceVersion": "11"}, "spec": {"unschedulable": True}}
        new = a_node("new", version="12")
        events = [json.dumps({"type": kind, "object": one}).encode() + b"\n" for kind, one in (("MODIFIED", changed), ("ADDED", new))]
        api.on("GET /api/v1/namespaces/shop/pods/web", answer(WEB_JSON))
        api.on("GET /api/v1/nodes", answer(listing(*NODES)))
        api.on("WATCH /api/v1/nodes", stream(later, *events, api.open))
        objects = FullObjects(client, patience=5)
        extender = HttpExtender(ExtenderSettings(url_prefix=server.url, filter_verb="filter"), objects, {})
        extender.open()
        server.on("filter", {})
        await extender.filter(WEB, [A])
        asking = asyncio.create_task(extender.filter(WEB, [A, NodeName("new")]))
        await api.until_asked("WATCH")
        later.set()
        await asking
        items = [asked.body["Nodes"]["items"] for asked in server.requests]
        assert items == [[NODES[0]], [changed, {**new, "spec": {}, "status": {}}]]
        await extender.close()
        assert not objects._nodes


async def test_a_node_that_does_not_show_up_is_an_error_that_names_it() -> None:
    async with world() as (extender, server, _):
        said = await complaint(extender.filter(WEB, [A, NodeName("ghost")]))
        assert said == "node 'ghost' cannot be sent: it is gone, or not known in full yet"
        assert server.requests == []


async def test_the_copy_of_the_nodes_lives_as_long_as_somebody_needs_it() -> None:
    async with FakeApi() as api, api.client() as client:
        api.on("GET /api/v1/nodes", answer(listing(*NODES)))
        api.on("WATCH /api/v1/nodes", stream(api.open))
        objects = FullObjects(client)
        needs = ExtenderSettings(url_prefix="http://127.0.0.1:1", filter_verb="filter")
        first, second = HttpExtender(needs, objects, {}), HttpExtender(needs, objects, {})
        only_binds = HttpExtender(ExtenderSettings(url_prefix="http://127.0.0.1:1", bind_verb="bind"), objects, {})
        assert not objects._nodes
        for one in (first, first, second, only_binds):
            one.open()
        await first.close()
        await first.close()
        assert objects._nodes
        await only_binds.close()
        assert objects._nodes
        await second.close()
        assert not objects._nodes
        second.open()
        assert objects._nodes
        await second.close()


# --- proxies -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "environ", "proxy"),
    [
        ("http://x.example/", {}, None),
        ("http://x.example/", {"HTTP_PROXY": "http://p:1"}, "http://p:1"),
        ("http://x.example/", {"http_proxy": "p:1"}, "http://p:1"),
        ("https://x.example/", {"HTTP_PROXY": "http://p:1"}, None),
        ("https://x.example/", {"HTTPS_PROXY": "http://p:2"}, "http://p:2"),
        ("http://localhost:1/", {"HTTP_PROXY": "http://p:1"}, None),
        ("http://127.0.0.9:1/", {"HTTP_PROXY": "http://p:1"}, None),
        ("http://x.example/", {"HTTP_PROXY": "http://p:1", "NO_PROXY": "example"}, None),
        ("http://x.example/", {"HTTP_PROXY": "http://p:1", "NO_PROXY": "a.b, .example"}, None),
        ("http://x.example/", {"HTTP_PROXY": "http://p:1", "NO_PROXY": "y.example,ample"}, "http://p:1"),
        ("http://10.1.2.3/", {"HTTP_PROXY": "http://p:1", "no_proxy": "10.0.0.0/8"}, None),
        ("http://11.1.2.3/", {"HTTP_PROXY": "http://p:1", "no_proxy": "10.0.0.0/8"}, "http://p:1"),
        ("http://11.1.2.3/", {"HTTP_PROXY": "http://p:1", "no_proxy": "*"}, None),
    ],
)
def test_proxies_are_those_of_the_environment_but_not_for_this_machine(url: str, environ: dict[str, str], proxy: str | None) -> None:
    assert proxy_for(URL(url), environ) == proxy
