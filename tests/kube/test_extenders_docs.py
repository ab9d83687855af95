"""The worked example of docs/extenders.md works."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from kube.fake_api import FakeApi, a_node, answer, listing, stream
from kube.pods import a_pod, pod_json
from placewright.api.extenders import Filtered
from placewright.api.objects import NodeName
from placewright.kube.extenders.httpextender import HttpExtender
from placewright.kube.fullobjects import FullObjects
from placewright.plugins.catalog import in_tree
from placewright.profiles.config import read_profiles
from placewright.profiles.resolve import resolve

TEXT = (Path(__file__).parents[2] / "docs" / "extenders.md").read_text()
NONE, FEW, MANY = (NodeName(name) for name in ("none", "few", "many"))


def block(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)
    return str(found)


class _Quiet(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
        """Nothing on the terminal."""


@pytest.fixture
def server() -> Iterator[str]:
    """The example at work; its address."""
    names: dict[str, Any] = {"__name__": "licences"}
    exec(compile(block("python"), "licences.py", "exec"), names)
    handler = type("Handler", (names["Handler"], _Quiet), {"log_message": _Quiet.log_message})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()


async def test_the_example_filters_and_scores_as_the_page_says(server: str) -> None:
    (profile,) = read_profiles(block("yaml").replace("http://127.0.0.1:8888", server), "extenders.md")
    (settings,) = resolve(profile, in_tree()).extenders
    labels = {NONE: {}, FEW: {"licences": "2"}, MANY: {"licences": "30"}}
    nodes = [a_node(name) | {"metadata": {**a_node(name)["metadata"], "labels": had}} for name, had in labels.items()]
    wants = pod_json("web")
    wants["metadata"]["labels"] = {"licence": "yes"}
    async with FakeApi() as api, api.client() as client:
        api.on("GET /api/v1/nodes", answer(listing(*nodes)))
        api.on("WATCH /api/v1/nodes", stream(api.open))
        api.on("GET /api/v1/namespaces/shop/pods/web", answer(wants))
        api.on("GET /api/v1/namespaces/shop/pods/other", answer(pod_json("other")))
        extender = HttpExtender(settings, FullObjects(client), {})
        extender.open()
        try:
            assert await extender.filter(a_pod("web"), list(labels)) == Filtered((FEW, MANY), {NONE: "node(s) had no licence"})
            assert await extender.filter(a_pod("other"), list(labels)) == Filtered((NONE, FEW, MANY))
            assert await extender.prioritize(a_pod("web"), [FEW, MANY]) == {FEW: 2, MANY: 10}
        finally:
            await extender.close()
