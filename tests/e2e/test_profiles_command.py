"""`placewright profiles` on a real API server: its managedFields, its conflicts, its dry runs; and the history that the operator keeps."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from placewright.cli.main import main

from .installation import NAMESPACE, PROFILES
from .stage import Stage

Command = Callable[..., Awaitable[tuple[int, str, str]]]
REVISIONS = f"/apis/apps/v1/namespaces/{NAMESPACE}/controllerrevisions"


@pytest.fixture
def command(stage: Stage, capsys: pytest.CaptureFixture[str]) -> Command:
    """In a thread: the command has an event loop of its own."""

    async def run(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        kubeconfig = ["--kubeconfig", str(stage.installation.kubeconfig)]
        code = await asyncio.to_thread(main, ["profiles", words[0], *kubeconfig, *words[1:]])
        return code, *capsys.readouterr()

    return run


async def weights(stage: Stage) -> dict[str, int]:
    spec = json.loads(await stage.client.get(f"{PROFILES}/default"))["spec"]
    return dict(spec.get("weights") or {})


async def entries(command: Command, count: int) -> list[dict[str, Any]]:
    """The history of the profile that is there now, when so many generations of it are recorded."""
    async with asyncio.timeout(20):
        while True:
            found = json.loads((await command("history", "default", "-o", "json"))[1])
            newest = found[-1]["generation"] if found else 0
            if newest >= count and found[-1]["inEffect"]:
                return list(found[-newest:])
            await asyncio.sleep(0.1)


async def test_weights_are_set_added_to_and_taken_back(stage: Stage, command: Command) -> None:
    async with stage.active_operator():
        code, out, err = await command("set", "default", "NodeAffinity=5")
        assert (code, err) == (0, "")
        assert "generation 2 is judged: Active" in out
        await command("set", "default", "ImageLocality=3")
        assert await weights(stage) == {"NodeAffinity": 5, "ImageLocality": 3}
        await command("set", "default", "NodeAffinity-")
        assert await weights(stage) == {"ImageLocality": 3}
        code, out, _ = await command("set", "default", "ImageLocality=9", "--dry-run", "server")
        assert (code, await weights(stage)) == (0, {"ImageLocality": 3})
        told = await entries(command, 4)
    assert [each["changedBy"] for each in told[1:]] == ["placewright-cli"] * 3
    assert told[2]["changes"] == [{"what": "weights.ImageLocality", "before": 1, "after": 3}]


async def test_what_another_manager_holds_is_taken_only_by_force_and_rolled_back(stage: Stage, command: Command) -> None:
    async with stage.active_operator():
        await entries(command, 1)
        theirs = {"spec": {"weights": {"NodeAffinity": 4, "ImageLocality": 2}}}
        await stage.client.patch(f"{PROFILES}/default", theirs, {"fieldManager": "argocd-controller"})
        await stage.until_active(2)
        told = await entries(command, 2)
        assert told[1]["changedBy"] == "argocd-controller"
        code, _, err = await command("set", "default", "NodeAffinity=5")
        assert code == 2
        assert "argocd-controller" in err
        assert "--force-conflicts" in err
        code, _, err = await command("rollback", "default")
        assert code == 2
        assert "spec.weights: held by other managers" in err or "spec.weights.NodeAffinity" in err
        assert await weights(stage) == {"NodeAffinity": 4, "ImageLocality": 2}
        code, out, _ = await command("rollback", "default", "--force-conflicts")
        assert (code, await weights(stage)) == (0, {})
        assert "kubectl" in out
        assert "generation 3 is judged: Active" in out
