"""A real operator's log: every line of it is one object, and the decision in it is the one that the pod carries."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from handlers.stage import Stage
from placewright_lab.demo.operatorprocess import OperatorProcess, operator_command


@asynccontextmanager
async def running(stage: Stage, folder: Path, *words: str) -> AsyncIterator[OperatorProcess]:
    """An operator in a process of its own."""
    async with OperatorProcess([*operator_command(stage.sandbox.kubeconfig), *words], folder / "operator.log") as process:
        yield process


def entries(process: OperatorProcess) -> list[dict[str, Any]]:
    return [json.loads(line) for line in process.log.read_bytes().splitlines()]


async def test_every_line_is_an_object_and_decisions_are_those_that_pods_carry(stage: Stage, tmp_path: Path) -> None:
    async with running(stage, tmp_path, "--logging-format", "json") as process:
        stage.pod("web").pod("huge", cpu="900")
        await stage.until(lambda: stage.placed("web") and stage.condition("huge"))
    said = entries(process)
    assert process.exit_code == 0
    placed, refused = (next(entry for entry in said if entry["msg"] == message) for message in ("pod placed", "pod not placed"))
    decision = stage.decision("web")
    assert decision is not None
    assert (placed["pod"], placed["node"], placed["uid"]) == ("default/web", stage.node_of("web"), stage.show("web")["metadata"]["uid"])
    assert (placed["profile"], placed["generation"], placed["score"], placed["runner_up"]) == (
        decision.profile, decision.generation, decision.score, decision.runner_up,
    )  # fmt: skip
    assert (refused["pod"], refused["message"]) == ("default/huge", stage.condition("huge")["message"])
    assert {entry["level"] for entry in said} <= {"info", "warning"}
    assert {"placewright.engine.decidingpart", "kopf._core.reactor.running"} <= {entry["logger"] for entry in said}


async def test_without_a_flag_lines_are_text(stage: Stage, tmp_path: Path) -> None:
    async with running(stage, tmp_path) as process:
        stage.pod("web")
        await stage.until(lambda: stage.placed("web"))
    [line] = [line for line in process.log.read_text().splitlines() if " pod placed " in line]
    assert " INFO placewright.serving.decisionlog: pod placed pod=default/web " in line
    assert f" node={stage.node_of('web')} " in line
