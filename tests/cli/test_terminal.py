"""Whoever may name a pod, a node or a profile, or answers in the API server's place, cannot reach through to a person's terminal."""

from __future__ import annotations

import asyncio
import io
import json
import unicodedata
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from placewright.api.objects import Pod
from placewright.api.pods import PodInfo
from placewright.api.profile import SchedulingProfile
from placewright.cli.main import main
from placewright.cli.terminal import lines, plain, print_table, printable_json, table
from placewright.framework.runtime.evaluation import PluginScore
from placewright.framework.status import Code
from placewright.profiles.kubescheduler.documents import yaml_text
from placewright_lab.commands.evaluate import show_verdict
from placewright_lab.simulation.evaluation import NodeVerdict, Verdict

#: Markup, a cleared screen, a window's title, an override of direction, line ends of all sorts, an 8-bit CSI, half a surrogate.
HOSTILE = "[bold red]x[/] :smile:\x1b[2J\x1b]0;t\x07\u202e\u2028\x85\x9b31m\x7f\r\nplacewright: all is well\ud800"
SHOWN = r"[bold red]x[/] :smile:\x1b[2J\x1b]0;t\x07\u202e\u2028\x85\x9b31m\x7f\r\nplacewright: all is well\ud800"
#: No program is ever given such a surrogate.
ARGUMENT = HOSTILE.replace("\ud800", "")
PLAIN_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def obeyed(text: str) -> set[str]:
    """Characters that a terminal might do something with, but for ends of lines."""
    return {char for char in text if char != "\n" and unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")}


def flat(text: str) -> str:
    """What was folded, in one line."""
    return "".join(line.strip() for line in text.splitlines())


def test_plain_text_is_one_line_without_markup() -> None:
    assert plain(HOSTILE).plain == SHOWN
    assert plain("[bold]x[/bold]").spans == []
    assert lines([HOSTILE, "b"]).plain == f"{SHOWN}\nb"


@given(PLAIN_VALUES)
def test_json_on_a_terminal_is_the_same_json(value: Any) -> None:
    text = printable_json(json.dumps(value, ensure_ascii=False, indent=1))
    assert json.loads(text) == value
    assert obeyed(text) == set()


@given(PLAIN_VALUES)
def test_yaml_on_a_terminal_is_the_same_yaml(value: Any) -> None:
    text = yaml_text(value)
    assert yaml.safe_load(text) == value
    assert obeyed(text) == set()


def test_half_a_surrogate_is_written_as_the_escape_that_it_came_as() -> None:
    assert printable_json('"\ud800\U000e0001"') == r'"\ud800\udb40\udc01"'


def test_names_and_reasons_in_a_verdict_are_plain() -> None:
    pod = PodInfo(Pod())
    pod.key = HOSTILE  # type: ignore[assignment]
    score = PluginScore(1, 2, 3)
    nodes = (
        NodeVerdict(HOSTILE, Code.SUCCESS, scores={HOSTILE: score}),
        NodeVerdict("b", Code.UNSCHEDULABLE, plugin=HOSTILE, reasons=(HOSTILE,)),
    )
    console = Console(file=io.StringIO(), width=10_000, color_system=None, highlight=False)
    for verdict in (
        Verdict(nodes=nodes),
        Verdict(nodes=nodes[1:], message=HOSTILE, nominated_node=HOSTILE, victims=(HOSTILE,), gated=HOSTILE, error=HOSTILE),
    ):
        show_verdict(console, pod, SchedulingProfile(), verdict)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert obeyed(text) == set()
    assert text.count(SHOWN) == 14
    assert "\nplacewright: all is well" not in text


def test_headings_and_cells_of_tables_are_plain(capsys: pytest.CaptureFixture[str]) -> None:
    made = table(HOSTILE, "b")
    made.add_row(plain(HOSTILE), plain("[bold]c[/bold]"))
    print_table(Console(width=10_000, color_system=None), made)
    out = capsys.readouterr().out
    assert out.count(SHOWN) == 2
    assert "[bold]c[/bold]" in out
    assert obeyed(out) == set()


# --- commands that read a file --------------------------------------------------------------------------------------------------

KEY = json.dumps(ARGUMENT)
PROFILE = f"""apiVersion: placewright.dev/v1alpha1
kind: SchedulingProfile
metadata: {{name: a, labels: {{x: {KEY}}}}}
spec: {{schedulerName: {KEY}, weights: {{{KEY}: 3}}, {KEY}: 4}}
"""
#: Refused by the API server alone; here it is shown.
STRANGE = f"""apiVersion: placewright.dev/v1alpha1
kind: SchedulingProfile
metadata: {{name: a, labels: {{x: {KEY}}}}}
spec: {{schedulerName: default-scheduler, extenders: [{{urlPrefix: "http://x", filterVerb: f, managedResources: [{{name: {KEY}}}]}}]}}
"""
MANIFESTS = f"""
kind: Node
apiVersion: v1
metadata: {{name: {KEY}}}
spec: {{taints: [{{key: {KEY}, value: {KEY}, effect: NoSchedule}}]}}
status: {{allocatable: {{cpu: "4", memory: 8Gi, pods: "10"}}}}
---
kind: Pod
apiVersion: v1
metadata: {{name: {KEY}, namespace: {KEY}}}
spec: {{containers: [{{name: c}}]}}
"""


@pytest.mark.parametrize(
    "words",
    [
        ["validate", "FILE"],
        ["validate", "-o", "json", "FILE"],
        ["validate", "-o", "github", "FILE"],
        ["validate", "-o", "sarif", "FILE"],
        ["convert", "FILE"],
        ["convert", "--to", "kubeschedulerconfiguration", "FILE"],
        ["run", "--config", "FILE", "--write-config-to", "/dev/stdout"],
        ["evaluate", "-f", "FILE"],
        ["evaluate", "-f", "FILE", "-o", "json"],
        ["evaluate", "-f", "FILE", "--profile", "FILE"],
        ["evaluate", "--cases", "FILE"],
        ["profiles", "show", "./FILE"],
        ["profiles", "diff", "./FILE", "./FILE"],
        ["profiles", "list", "--kubeconfig", "FILE"],
        [ARGUMENT],
        ["validate", ARGUMENT],
    ],
    ids=lambda words: " ".join(words).encode("unicode_escape").decode()[:60],
)
@pytest.mark.parametrize("content", [PROFILE, STRANGE, MANIFESTS, ARGUMENT, f"{KEY}: {KEY}"])
def test_no_file_reaches_through_to_the_terminal(
    words: list[str], content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = "[bold]x\x1b[2J\u202e\n.yaml"
    Path(name).write_text(content, encoding="utf-8")
    assert main([word.replace("FILE", name) for word in words]) in (0, 1, 2)
    out, err = capsys.readouterr()
    assert obeyed(out + err) == set()
    assert out + err != "" or "github" in words  # which has nothing to say where nothing is wrong
    assert all(line.startswith("placewright: ") for line in err.splitlines())


# --- commands that ask an API server ----------------------------------------------------------------------------------------------

Answer = Callable[[web.Request], web.Response]
OBJECT = {
    "apiVersion": "placewright.dev/v1alpha1",
    "kind": "SchedulingProfile",
    "metadata": {
        "name": ARGUMENT,
        "uid": ARGUMENT,
        "generation": 2,
        "resourceVersion": ARGUMENT,
        "creationTimestamp": ARGUMENT,
        "labels": {ARGUMENT: ARGUMENT},
        "managedFields": [{"manager": f"argocd{ARGUMENT}", "operation": "Apply", "time": ARGUMENT, "fieldsV1": {"f:spec": {}}}],
    },
    "spec": {"schedulerName": ARGUMENT, "weights": {ARGUMENT: 3}, "preset": ARGUMENT},
    "status": {
        "observedGeneration": 2,
        "activeGeneration": 1,
        "conditions": [{"type": "Ready", "status": ARGUMENT, "reason": ARGUMENT, "message": ARGUMENT}],
    },
}
FINE = {**OBJECT, "spec": {"schedulerName": "fine"}}
REVISION = {
    "metadata": {"name": ARGUMENT, "labels": {"placewright.dev/profile": "p"}, "annotations": {"placewright.dev/result": ARGUMENT}},
    "revision": 1,
    "data": {"profile": "p", "uid": ARGUMENT, "generation": 1, "changedBy": ARGUMENT, "changedAt": ARGUMENT, "spec": OBJECT["spec"]},
}


def answering(body: object, status: int = 200) -> Answer:
    return lambda _: web.Response(body=json.dumps(body).encode(), status=status, content_type="application/json")


def by_path(profile: object) -> Answer:
    """A list where one is asked for; history where that is."""

    def answer(request: web.Request) -> web.Response:
        if "controllerrevisions" in request.path:
            return answering({"metadata": {}, "items": [REVISION]})(request)
        listed = request.path.endswith("/schedulingprofiles")
        return answering({"metadata": {}, "items": [profile]} if listed else profile)(request)

    return answer


ANSWERS = {
    "half a surrogate": by_path({**OBJECT, "metadata": {"name": HOSTILE}}),
    "no profile": by_path([{"metadata": 3}]),
    "a hostile profile": by_path(OBJECT),
    "a profile with hostile names": by_path(FINE),
    "a refusal": answering({"kind": "Status", "reason": HOSTILE, "message": HOSTILE, "code": 403}, 403),
    "a conflict": answering({"kind": "Status", "reason": "Conflict", "message": f"conflict {HOSTILE}", "code": 409}, 409),
    "no JSON": lambda _: web.Response(body=HOSTILE.encode("utf-8", "replace"), status=502),
}


@pytest.fixture
async def serve(tmp_path: Path) -> AsyncIterator[Callable[[Answer], Awaitable[Path]]]:
    servers: list[TestServer] = []

    async def start(answer: Answer) -> Path:
        async def handle(request: web.Request) -> web.Response:
            return answer(request)

        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handle)
        server = TestServer(app)
        servers.append(server)
        await server.start_server()
        path = tmp_path / "config"
        content = {
            "clusters": [{"name": "c", "cluster": {"server": str(server.make_url("/")).rstrip("/")}}],
            "contexts": [{"name": "c", "context": {"cluster": "c"}}],
            "current-context": "c",
        }
        path.write_text(json.dumps(content))
        return path

    yield start
    for server in servers:
        await server.close()


@pytest.mark.parametrize("case", ANSWERS)
@pytest.mark.parametrize(
    "words",
    [
        ["list"],
        ["list", "-o", "wide"],
        ["list", "-o", "yaml"],
        ["list", "-o", "json"],
        ["show", "p"],
        ["show", "p", "-o", "yaml"],
        ["show", "p", "-o", "json"],
        ["history", "p"],
        ["history", "p", "-o", "yaml"],
        ["history", "p", "-o", "json"],
        ["diff", "p@1", "p"],
        ["set", "p", "NodeResourcesFit=7", "--wait", "0", "--dry-run", "server"],
        ["rollback", "p", "--wait", "0", "--dry-run", "client"],
    ],
    ids=" ".join,
)
async def test_no_api_server_reaches_through_to_the_terminal(
    words: list[str], case: str, serve: Callable[[Answer], Awaitable[Path]], capsys: pytest.CaptureFixture[str]
) -> None:
    kubeconfig = await serve(ANSWERS[case])
    code = await asyncio.to_thread(main, ["profiles", *words, "--kubeconfig", str(kubeconfig)])
    out, err = capsys.readouterr()
    assert code in (0, 1, 2)
    assert obeyed(out + err) == set()
    assert out + err != ""
    assert all(line.startswith("placewright: ") for line in err.splitlines())
    assert "\nplacewright: all is well" not in out
