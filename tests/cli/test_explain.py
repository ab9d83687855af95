"""`placewright explain`: who is asked, what is shown, and that nothing of it obeys what a pod's author wrote."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import shlex
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from handlers.stage import Stage, new_stage
from placewright.api.objects import PodKey
from placewright.cli.explain import command
from placewright.cli.explain.fromoperator import Subject, current_namespace
from placewright.cli.explain.tables import show_explanation
from placewright.cli.main import main
from placewright.explain.explanation import AttemptSummary, CurrentVerdict, Explanation, Queued
from placewright.explain.nearestmiss import Miss
from placewright.framework.remedies import Remedy, RemedyKind
from placewright.scheduler.cycle import NodeRefusal
from serving.desk import Desk, desk


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


async def explain(stage: Stage, capsys: pytest.CaptureFixture[str], *words: str) -> Ran:
    """In a thread: the command has an event loop of its own, and sandbox and operator answer in ours."""
    capsys.readouterr()
    code = await asyncio.to_thread(main, ["explain", "--kubeconfig", str(stage.sandbox.kubeconfig), *words])
    return Ran(code, *capsys.readouterr())


@asynccontextmanager
async def operating() -> AsyncIterator[tuple[Stage, Desk]]:
    async with new_stage() as stage, desk(stage.profile().nodes(2)) as asked:
        await asked.until_ready()
        yield stage, asked


def at(asked: Desk) -> tuple[str, ...]:
    token = asked.engine.access.authorization.removeprefix("Bearer ")
    return ("--server", f"https://127.0.0.1:{asked.served.port}", f"--token={token}")  # it may begin with a dash


async def test_attempts_that_the_operator_remembers_stand_beside_what_the_api_server_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    async def shown(*_: object) -> Explanation:
        return Explanation("shop", "web", pending=True)

    monkeypatch.setattr(command, "explained_here", shown)
    attempt = AttemptSummary("shop", "web", "uid", "default", 1, 1, at=0.0, result="error", seconds=0.1, steps={})
    client: Any = None
    found = await command._looked_up(client, Subject("shop", "web"), Explanation("shop", "web", tried=(attempt,)))
    assert found == Explanation("shop", "web", pending=True, tried=(attempt,))


async def test_a_pending_pod_is_explained_by_the_operator(capsys: pytest.CaptureFixture[str]) -> None:
    async with operating() as (stage, asked):
        stage.pod("large", cpu="4300m")
        await stage.until(lambda: stage.condition("large"))
        ran = await explain(stage, capsys, "large", *at(asked))
        assert (ran.code, ran.err) == (0, "")
        assert "in the queue: unschedulable for" in ran.out
        assert "now: 0 of 2 nodes can hold it" in ran.out
        assert "it asks for more cpu than any node has (the largest has 4000m)\n" in ran.out
        assert "node-0 needs 300m more cpu, or on any of 1 other" in ran.out
        assert "attempt 1 said: 0/2 nodes are available: 2 Insufficient cpu." in ran.out
        found = json.loads((await explain(stage, capsys, "default/large", "-o", "json", *at(asked))).out)
        assert (found["name"], found["now"]["refusals"][0]["nodes"]) == ("large", 2)


async def test_a_placed_pod_is_explained_by_its_scores(capsys: pytest.CaptureFixture[str]) -> None:
    async with operating() as (stage, asked):
        stage.pod("web")
        await stage.until(lambda: asked.engine.deciding.scheduler.counts.bound)
        ran = await explain(stage, capsys, "web", *at(asked))
        assert ran.code == 0
        assert f"on node {stage.bindings[0][1]}" in ran.out
        words = [line.split() for line in ran.out.splitlines()]
        assert [stage.bindings[0][1], "TaintToleration", "0", "100", "3", "300"] in words
        assert sum(row[:1] == ["total"] for row in words) == 2


async def test_without_an_operator_the_pod_is_evaluated_here(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    async with new_stage() as stage:
        stage.profile().node("node-0").node("node-1", cpu="8", taint="kept")
        stage.pod("large", cpu="4300m")
        ran = await explain(stage, capsys, "large")
        assert ran.code == 0
        assert ran.err.startswith("placewright: no operator was asked: there is no kubectl to forward its port")
        assert "node-0 needs 300m more cpu" in ran.out
        assert "a toleration for taint kept=:NoSchedule: opens 1 node, such as node-1" in ran.out
        fits = await explain(stage.pod("small"), capsys, "small", "--here")
        assert "now: 1 of 2 nodes can hold it" in fits.out


async def test_a_placed_pod_without_records_shows_its_annotation(capsys: pytest.CaptureFixture[str]) -> None:
    async with operating() as (stage, asked):
        stage.pod("web")
        await stage.until(lambda: asked.engine.deciding.scheduler.counts.bound)
        ran = await explain(stage, capsys, "web", "--here")
        assert "its annotation has the decision: " in ran.out
        assert "TaintToleration" in ran.out


async def test_a_pod_of_nobody_s_schedulername_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    async with new_stage() as stage:
        ran = await explain(stage.profile().nodes(1).pod("other", scheduler="somebody"), capsys, "other", "--here")
        assert ran.code == 0
        assert "no SchedulingProfile has schedulerName 'somebody': Placewright does not place the pod" in ran.err
        assert ran.out.splitlines()[1:] == ["pending: it is there, on no node, and in the queue of no operator that was asked"]


async def test_a_misspelt_schedulername_is_told_with_the_one_that_was_meant(capsys: pytest.CaptureFixture[str]) -> None:
    async with operating() as (stage, asked):
        stage.pod("lost", scheduler="placewrigth")
        await stage.until(lambda: asked.engine.deciding.queue.uid_of(PodKey("default/lost")))
        ran = await explain(stage, capsys, "lost", *at(asked))
        assert "no profile takes pods of schedulerName 'placewrigth' (did you mean 'placewright'?)" in ran.out
        ran = await explain(stage, capsys, "lost", "--here")
        assert "no SchedulingProfile has schedulerName 'placewrigth' (did you mean 'placewright'?)" in ran.err


async def test_an_operator_on_this_machine_is_shown_the_kubeconfigs_token_and_one_elsewhere_is_not(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    async with operating() as (stage, asked):
        stage.pod("large", cpu="64")
        await stage.until(lambda: stage.condition("large"))
        for host in ("127.0.0.1", "localhost"):
            ran = await explain(stage, capsys, "large", "--server", f"https://{host}:{asked.served.port}")
            assert (ran.code, ran.err) == (0, "")
            assert "now: 0 of 2 nodes can hold it" in ran.out
        ran = await explain(stage, capsys, "large", "--server", "https://placewright.example.com")
        assert (ran.code, ran.out) == (2, "")
        assert "is not on this machine, so the kubeconfig's token is not sent there; give --token" in ran.err


def test_a_kubeconfig_without_a_token_is_said_before_the_operator_is_asked(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    besides = {"clusters": [{"name": "c", "cluster": {"server": "https://c"}}], "users": [{"name": "u", "user": {}}]}
    path = tmp_path / "config"
    contexts = [{"name": "a", "context": {"cluster": "c", "user": "u"}}]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "a", "contexts": contexts, **besides}))
    code = main(["explain", "web", "-n", "default", "--kubeconfig", str(path), "--server", "https://127.0.0.1:1"])
    printed = capsys.readouterr()
    assert (code, printed.out, printed.err.count("\n")) == (2, "", 1)
    assert "the kubeconfig has no token" in printed.err


async def test_a_pod_that_does_not_exist_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    async with operating() as (stage, asked):
        for words in (("none", "--here"), ("none", *at(asked))):
            ran = await explain(stage, capsys, *words)
            assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
            assert "pod default/none" in ran.err
        stage.pod("web")
        ran = await explain(stage, capsys, "web", "--here", "--uid", "another")
        assert (ran.code, "with uid another" in ran.err) == (2, True)


async def test_kubectl_forwards_a_port_to_the_pod_that_holds_the_lease(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A stand-in for kubectl: the sandbox has no kubelet to forward a port."""
    async with operating() as (stage, asked):
        stage.pod("large", cpu="64")
        await stage.until(lambda: stage.condition("large"))
        said, ended = tmp_path / "said", tmp_path / "ended"
        script = (
            f"#!{sys.executable}\nimport signal, sys\n"
            f"open({str(said)!r}, 'w').write(' '.join(sys.argv[1:]))\n"
            f"def end(*_): open({str(ended)!r}, 'w').close(); sys.exit(0)\n"
            "signal.signal(signal.SIGTERM, end)\n"
            f"print('Forwarding from 127.0.0.1:{asked.served.port} -> 10259', flush=True)\n"
            "signal.pause()\n"
        )
        kubectl = tmp_path / "kubectl"
        kubectl.write_text(script)
        kubectl.chmod(kubectl.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        namespace = asked.engine.leading.info.namespace
        ran = await explain(stage, capsys, "large", "--operator-namespace", namespace)
        assert (ran.code, ran.err) == (0, "")
        assert "in the queue: unschedulable" in ran.out
        holder = asked.engine.leading.replica.identity.partition("/")[0]
        assert said.read_text().endswith(f"-n {namespace} port-forward --address 127.0.0.1 pod/{holder} :10259")
        assert ended.exists()


async def test_a_leader_that_is_no_pod_is_named_with_the_option_that_asks_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The sandbox answers port-forward as a cluster does in which the operator runs as a process beside it: there is no such pod."""
    kubectl = tmp_path / "kubectl"
    kubectl.write_text('#!/bin/sh\necho "Error from server (NotFound): pods \\"laptop-a\\" not found" >&2; exit 1\n')
    kubectl.chmod(kubectl.stat().st_mode | stat.S_IXUSR)
    async with operating() as (stage, asked):
        stage.pod("large", cpu="64")
        await stage.until(lambda: stage.condition("large"))
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        ran = await explain(stage, capsys, "large", "--operator-namespace", asked.engine.leading.info.namespace)
        holder = asked.engine.leading.replica.identity.partition("/")[0]
        assert ran.err == (
            f"placewright: no operator was asked: {holder} leads, and is no pod there; --server names its HTTPS port, such as "
            "https://127.0.0.1:10259 if it runs on this machine\n"
        )
        assert f"pending: it is there, on no node, and {holder}, which leads, could not be asked" in ran.out
        assert "as soon as one runs" not in ran.out
        there = await explain(stage, capsys, "large", *at(asked))
        assert "in the queue: unschedulable" in there.out


async def test_a_pod_of_a_paused_profile_is_told_who_paused_it_and_how_it_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    async with operating() as (stage, asked):
        stage.edit_profile(paused=True)
        await stage.until(lambda: asked.engine.deciding.profiles.standings()["default"].active_generation == 2)
        stage.pod("waits")
        await stage.until(lambda: len(asked.engine.deciding.queue))
        for words in (("--here",), at(asked)):
            ran = await explain(stage, capsys, "waits", *words)
            assert "profile default is paused: its pods wait until spec.paused is false\n" in ran.out
            assert "who paused it: placewright profiles history default\n" in ran.out
            assert "manifests/base" not in ran.out
            (line,) = (line for line in ran.out.splitlines() if "kubectl patch" in line)
        kubectl, patch, kind, name, *_, patched = shlex.split(line.partition(": ")[2])
        assert (kubectl, patch, kind, name, json.loads(patched)) == (
            "kubectl",
            "patch",
            "schedprof",
            "default",
            {"spec": {"paused": False}},
        )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("a/b/c",), "POD: found"),
        (("",), "POD: found"),
        (("a/b", "-n", "c"), "--namespace: found"),
        (("web", "--server", "http://127.0.0.1:1"), "allowed an https URL"),
        (("web", "--server", "https://127.0.0.1:1", "--token", "t"), "does not answer"),
        (("web", "-o", "yaml"), "invalid choice"),
    ],
)
def test_bad_input_is_one_line(words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["explain", *words])
    printed = capsys.readouterr()
    assert (code, printed.out, printed.err.count("\n")) == (2, "", 1)
    assert said in printed.err


def test_the_namespace_is_the_context_s(tmp_path: Path) -> None:
    known = {"cluster": "c", "user": "u"}
    contexts = [{"name": "a", "context": {**known, "namespace": "team"}}, {"name": "b", "context": known}]
    besides = {"clusters": [{"name": "c", "cluster": {"server": "https://c"}}], "users": [{"name": "u", "user": {}}]}
    path = tmp_path / "config"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "a", "contexts": contexts, **besides}))
    assert current_namespace(str(path), None) == "team"
    assert current_namespace(str(path), "b") == "default"
    assert current_namespace(str(tmp_path / "none"), None) == "default"


def test_what_others_wrote_moves_no_cursor() -> None:
    evil = "\x1b[2J[red]\u202e\n"
    miss = Miss(evil, 1, (Remedy(evil, RemedyKind.TOLD, evil),))
    refusals = (NodeRefusal(evil, evil, 1, (evil,)),)  # type: ignore[arg-type]
    now = CurrentVerdict(0, 1, refusals=refusals, misses=(miss,), message=evil, unasked=(evil,))
    tried = AttemptSummary(
        evil, evil, evil, evil, 1, 1, 0.0, evil, 1.0, steps={evil: 1.0}, node=evil, message=evil, refusals=refusals, plugins={evil: 1}
    )
    queue = Queued(evil, 1.0, gated_by=evil, nominated_node=evil, rejected_by=(evil,))
    written = io.StringIO()
    found = Explanation(evil, evil, evil, evil, evil, 1, evil, queue=queue, now=now, tried=(tried,))
    with contextlib.redirect_stdout(written):
        show_explanation(Console(file=written, width=200, force_terminal=False), found, now=10.0)
    text = written.getvalue()
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[red]" in text
