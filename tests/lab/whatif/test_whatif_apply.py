"""What the what-if page writes: the profile that was evaluated, by the person's own rights, and no other version than the one seen."""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cli.profile_desk import Desk
from handlers.stage import Stage, new_stage
from kubectl.tool import Kubectl
from placewright.cli.profiles.namedprofiles import profile_of
from placewright.framework.registry import installed_plugins
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright.kube.profileapi import Object, read_profile
from placewright.plugins.catalog import in_tree
from placewright.profiles.resolve import resolve
from placewright_lab.whatif.whatifapply import Seen, apply_change, apply_shadow
from placewright_lab.whatif.whatifpatch import changed, taken_along
from programs import program

REGISTRY = in_tree().with_installed(installed_plugins())
BASE: Object = {
    "weights": {"NodeResourcesFit": 3, "ImageLocality": 2},
    "plugins": {"multiPoint": {"disabled": [{"name": "NodePorts"}]}},
    "pluginConfig": [{"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 7}}],
    "backoff": {"initialSeconds": 2, "maxSeconds": 20},
}
CHANGES: list[Object] = [
    {"weights": {"NodeResourcesFit": 9}},
    {"weights": {"ImageLocality": None}, "preset": "bin-packing", "backoff": None},
    {"plugins": None, "percentageOfNodesToScore": 40, "pluginConfig": [{"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 1}}]},
    {"plugins": {"multiPoint": {"enabled": [{"name": "DeviceFragmentation", "weight": 4}], "disabled": None}}, "paused": True},
    {"preemption": {"policy": "Never", "protect": {}}, "fairness": {"by": "Namespace", "weights": {"it's $(x)": 2}}},
]


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with new_stage() as made:
        yield made


@pytest.fixture
async def client(stage: Stage) -> AsyncIterator[ApiClient]:
    async with ApiClient(load_config(str(stage.sandbox.kubeconfig))) as made:
        yield made


def seen(stage: Stage, name: str = "default") -> Seen:
    metadata = stage.show_profile(name)["metadata"]
    return Seen(name, metadata["uid"], metadata["generation"])


def effect(profile: Any) -> ResolvedProfile:
    """Return the deciding part of a profile, without its object and generation."""
    return dataclasses.replace(resolve(profile, REGISTRY), uid="", generation=0)


async def test_the_profile_that_is_stored_is_the_one_that_was_evaluated(stage: Stage, client: ApiClient) -> None:
    for number, changes in enumerate(CHANGES):
        name = f"p{number}"
        stage.profile(name, schedulerName=name, **BASE)
        evaluated = changed(profile_of(await read_profile(client, name)), changes, REGISTRY)
        assert evaluated.profile is not None, evaluated.problems
        applied = await apply_change(client, REGISTRY, seen(stage, name), changes)
        assert applied.status == 200, applied.said
        assert "as generation 2" in applied.said
        assert effect(profile_of(await read_profile(client, name))) == effect(evaluated.profile)


async def test_the_line_for_kubectl_does_the_same(stage: Stage, client: ApiClient, tmp_path: Path) -> None:
    kubectl = Kubectl(program("kubectl"), stage.sandbox.kubeconfig, tmp_path)
    stage.profile(**BASE)
    base = profile_of(await read_profile(client, "default"))
    changes = {**CHANGES[1], **CHANGES[4]}
    made = changed(base, changes, REGISTRY)
    assert made.profile is not None, made.problems
    tool, *arguments = shlex.split(taken_along(base, made, REGISTRY)["kubectl"])
    assert tool == "kubectl"
    assert "patched" in await kubectl(*arguments)
    assert effect(profile_of(await read_profile(client, "default"))) == effect(made.profile)


async def test_a_profile_that_changed_meanwhile_is_a_conflict_in_one_sentence(stage: Stage, client: ApiClient) -> None:
    stage.profile(**BASE)
    mine = seen(stage)
    stage.edit_profile(weights={"NodeAffinity": 4})
    for write in (apply_change, apply_shadow):
        applied = await write(client, REGISTRY, mine, {"preset": "spread"})
        told = "profile default has changed meanwhile (generation 2 now, 1 on this page): open the page again"
        assert (applied.status, applied.said) == (409, told)
    assert stage.show_profile()["spec"].get("preset") is None
    stage.delete_profile()
    assert (await apply_change(client, REGISTRY, mine, {"preset": "spread"})).status == 404
    stage.profile(**BASE)
    applied = await apply_change(client, REGISTRY, mine, {"preset": "spread"})
    assert (applied.status, "deleted and created anew" in applied.said) == (409, True)


async def test_a_status_that_the_operator_wrote_meanwhile_is_no_conflict(
    stage: Stage, client: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.profile(**BASE)
    mine, patch = seen(stage), client.patch
    writes = 0

    async def patched(*args: Any, **more: Any) -> bytes:
        nonlocal writes
        writes += 1
        if writes == 1:
            stage.edit_status(lambda status: status.update(activeGeneration=7))
        return await patch(*args, **more)

    monkeypatch.setattr(client, "patch", patched)
    assert (await apply_change(client, REGISTRY, mine, {"preset": "spread"})).status == 200
    assert writes == 2


async def test_a_spec_that_changed_while_it_was_written_is_a_conflict(
    stage: Stage, client: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.profile(**BASE)
    mine, patch = seen(stage), client.patch

    async def patched(*args: Any, **more: Any) -> bytes:
        stage.edit_profile(weights={"NodeAffinity": 4})
        return await patch(*args, **more)

    monkeypatch.setattr(client, "patch", patched)
    applied = await apply_change(client, REGISTRY, mine, {"preset": "spread"})
    assert (applied.status, applied.said) == (409, "profile default has changed meanwhile: open the page again")
    assert stage.show_profile()["spec"]["weights"] == {"NodeAffinity": 4}


async def test_a_person_without_the_right_is_told_what_the_api_server_said(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    stage.profile(**BASE)
    guest = Desk(stage, capsys).somebody("guest", [("placewright.dev", "schedulingprofiles", ["get", "list"])])
    async with ApiClient(load_config(str(guest.kubeconfig))) as client:
        for write in (apply_change, apply_shadow):
            applied = await write(client, REGISTRY, seen(stage), {"preset": "spread"})
            assert applied.status == 403
            assert "forbidden" in applied.said
    assert json.dumps(stage.show_profile()["spec"]).count("spread") == 0


async def test_a_shadow_is_created_beside_the_live_profile_once(stage: Stage, client: ApiClient) -> None:
    stage.profile(**BASE)
    changes = {"preset": "bin-packing", "paused": True}
    applied = await apply_shadow(client, REGISTRY, seen(stage), changes)
    assert applied.status == 200, applied.said
    shadow = stage.show_profile("default-what-if")["spec"]
    assert (shadow["mode"], shadow["shadows"], shadow["preset"]) == ("Shadow", "default", "bin-packing")
    assert shadow["weights"] == BASE["weights"]
    assert "schedulerName" not in shadow and shadow["paused"] is False
    assert stage.show_profile()["metadata"]["generation"] == 1
    again = await apply_shadow(client, REGISTRY, seen(stage), changes)
    assert (again.status, again.said) == (409, "there is a profile default-what-if already: delete it first, or change it with kubectl")


async def test_a_shadow_has_no_shadow(stage: Stage, client: ApiClient) -> None:
    stage.profile(**BASE).profile("packed", mode="Shadow", shadows="default", schedulerName="none")
    for name in ("packed", "default"):
        applied = await apply_shadow(client, REGISTRY, seen(stage, name), {"preset": "bin-packing"})
        assert (applied.status, applied.object is None) == ((422, True) if name == "packed" else (200, False)), applied.said


async def test_problems_and_empty_changes_are_not_sent(stage: Stage, client: ApiClient) -> None:
    stage.profile(**BASE)
    applied = await apply_change(client, REGISTRY, seen(stage), {"weights": {"Nobody": 3}})
    assert (applied.status, applied.said.startswith("spec.weights.Nobody: found")) == (422, True)
    assert (await apply_change(client, REGISTRY, seen(stage), {"weights": {"NodeResourcesFit": 3}})).said.endswith("nothing would change")
    assert stage.show_profile()["metadata"]["generation"] == 1


async def test_an_api_server_that_does_not_answer_is_told(stage: Stage) -> None:
    stage.profile(**BASE)
    mine, access = seen(stage), load_config(str(stage.sandbox.kubeconfig))
    async with ApiClient(dataclasses.replace(access, server="https://127.0.0.1:1")) as client:
        applied = await apply_change(client, REGISTRY, mine, {"preset": "spread"})
    assert (applied.status, "did not answer" in applied.said) == (502, True)
