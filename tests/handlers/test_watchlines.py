"""Lines of a watch: msgspec and the standard library decode each alike."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from placewright.handlers.kopfparts import JSON, KopfPart
from placewright.handlers.watchlines import KopfResponse, MsgspecJson, loads, quick_decoding

TEXTS = st.text() | st.sampled_from(["\ud800", "\udfff\ud800", "\x00", "\u2028", "\U0001f600"])
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=8)


@given(value=VALUES, ascii_only=st.booleans())
def test_lines_are_decoded_as_the_standard_library_decodes_them(value: Any, ascii_only: bool) -> None:
    line = json.dumps(value, ensure_ascii=ascii_only)
    assert repr(loads(line)) == repr(json.loads(line))


@pytest.mark.parametrize("line", ["", "{", '{"a": }', "[" * 100_000, "{} {}", '{"a":' * 5000])
def test_a_line_that_is_no_json_fails_as_kopf_knows_it(line: str) -> None:
    with pytest.raises((json.JSONDecodeError, RecursionError)):
        loads(line)


@pytest.mark.parametrize("levels", [50, 500, 1500, 9000])
@pytest.mark.parametrize("name", ["f:a", "\\ud800", '\\"}{'])
def test_a_pod_that_nests_deeply_is_decoded_with_all_that_is_read_of_it(levels: int, name: str) -> None:
    deep = f'{{"{name}":' * levels + "{}" + "}" * levels
    line = f'{{"type":"ADDED","object":{{"metadata":{{"managedFields":[{{"fieldsV1":{deep}}}],"name":"web"}},"spec":{{"nodeName":"a"}}}}}}'
    found = loads(line)["object"]
    assert (found["metadata"]["name"], found["spec"]) == ("web", {"nodeName": "a"})


async def test_an_answer_to_kopf_that_nests_deeply_is_decoded() -> None:
    async def answer(_request: web.BaseRequest) -> web.Response:
        return web.json_response(text='{"items":[' + "[" * 5000 + "]" * 5000 + ',{"metadata":{"name":"web"}}]}')

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with aiohttp.ClientSession(response_class=KopfResponse) as http, http.get(f"http://127.0.0.1:{runner.addresses[0][1]}/") as got:
        assert (await got.json())["items"][1] == {"metadata": {"name": "web"}}
    await runner.cleanup()


def module_with(**values: Any) -> ModuleType:
    module = ModuleType("kopf_inside")
    vars(module).update(values)
    return module


def test_a_kopf_that_decodes_by_json_decodes_by_msgspec_meanwhile() -> None:
    module = module_with(json=json)
    with quick_decoding(KopfPart(module, "json", JSON._is_known)):
        assert module.json is MsgspecJson
    assert module.json is json


@pytest.mark.parametrize("values", [{}, {"json": "another"}], ids=["without", "another"])
def test_a_kopf_that_decodes_in_another_way_is_left_alone(values: dict[str, Any]) -> None:
    module = module_with(**values)
    before = dict(vars(module))
    with quick_decoding(KopfPart(module, "json", JSON._is_known)):
        assert vars(module) == before
