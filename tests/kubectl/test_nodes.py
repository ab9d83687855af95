"""taint, cordon, drain: what an administrator does to nodes."""

from __future__ import annotations

import asyncio

import pytest

from kubectl.manifests import a_node, a_pod, budget
from kubectl.tool import DEADLINE, Kubectl

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def taints(kubectl: Kubectl, name: str) -> dict[str, str]:
    found = (await kubectl.read("node", name))["spec"].get("taints") or []
    return {taint["key"]: taint["effect"] for taint in found}


async def test_taints_come_and_go(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", given=a_node("tainted"))
    await kubectl("taint", "node", "tainted", "dedicated=gpu:NoSchedule", "flaky=true:PreferNoSchedule")
    assert await taints(kubectl, "tainted") == {"dedicated": "NoSchedule", "flaky": "PreferNoSchedule"}
    await kubectl("taint", "node", "tainted", "dedicated-")
    assert await taints(kubectl, "tainted") == {"flaky": "PreferNoSchedule"}


async def test_a_cordoned_node_is_marked_and_tainted_until_it_is_uncordoned(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", given=a_node("cordoned"))
    assert "cordoned" in await kubectl("cordon", "cordoned")
    assert "Ready,SchedulingDisabled" in await kubectl("get", "node", "cordoned")
    assert await taints(kubectl, "cordoned") == {"node.kubernetes.io/unschedulable": "NoSchedule"}
    await kubectl("uncordon", "cordoned")
    assert "SchedulingDisabled" not in await kubectl("get", "node", "cordoned")
    assert await taints(kubectl, "cordoned") == {}


async def test_a_drain_evicts_every_pod(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", given=[a_node("drained"), a_pod("a", "drained"), a_pod("b", "drained")])
    await kubectl("wait", "--for=condition=Ready", "pod/a", "pod/b", "--timeout=20s")
    ran = await kubectl.run("drain", "drained", "--force", "--timeout=20s")
    assert ran.code == 0, ran.err
    assert "evicting pod" in ran.out + ran.err
    assert (await kubectl.read("pods"))["items"] == []
    assert (await kubectl.read("node", "drained"))["spec"]["unschedulable"] is True


async def test_a_drain_waits_for_a_budget(kubectl: Kubectl) -> None:
    pods = [a_pod("a", "guarded", app="web"), a_pod("b", "guarded", app="web")]
    await kubectl("create", "-f", "-", given=[a_node("guarded"), budget("web", 1, app="web"), *pods])
    await kubectl("wait", "--for=condition=Ready", "pod/a", "pod/b", "--timeout=20s")
    async with kubectl.started("drain", "guarded", "--force") as process, asyncio.timeout(DEADLINE):
        assert process.stderr is not None
        while b"violate the pod's disruption budget" not in (line := await process.stderr.readline()):
            assert line, "the drain ended"
        refused = line.decode().partition('pods/"')[2][0]
        assert (await kubectl.read("pod", refused))["metadata"].get("deletionTimestamp") is None
        assert process.returncode is None, "it tries again"
