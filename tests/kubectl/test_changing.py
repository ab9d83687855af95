"""apply, patch, edit, label, replace: how a user changes things."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from kubectl.manifests import a_pod, config_map, custom, definition, deployment
from kubectl.tool import Kubectl

pytestmark = pytest.mark.asyncio(loop_scope="session")
MAIN = {"name": "main", "image": "app:1"}
SIDE = {"name": "side", "image": "side:1"}


async def containers(kubectl: Kubectl) -> dict[str, str]:
    found = await kubectl.read("deployment", "app")
    return {each["name"]: each["image"] for each in found["spec"]["template"]["spec"]["containers"]}


async def test_apply_creates_configures_and_leaves_alone(kubectl: Kubectl) -> None:
    assert "created" in await kubectl("apply", "-f", "-", given=config_map("it", a="1", b="1"))
    assert "unchanged" in await kubectl("apply", "-f", "-", given=config_map("it", a="1", b="1"))
    assert "configured" in await kubectl("apply", "-f", "-", given=config_map("it", a="2"))
    assert (await kubectl.read("cm", "it"))["data"] == {"a": "2"}


async def test_apply_keeps_what_others_added(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", given=deployment("app", MAIN))
    added = {"spec": {"template": {"spec": {"containers": [SIDE]}}}}
    await kubectl("patch", "deployment", "app", "-p", json.dumps(added))
    await kubectl("apply", "-f", "-", given=deployment("app", {**MAIN, "image": "app:2"}))
    assert await containers(kubectl) == {"main": "app:2", "side": "side:1"}


async def test_apply_takes_away_what_it_once_applied(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", given=deployment("app", MAIN, SIDE))
    await kubectl("apply", "-f", "-", given=deployment("app", MAIN))
    assert await containers(kubectl) == {"main": "app:1"}


async def test_apply_on_the_server_meets_conflicts_and_forces(kubectl: Kubectl) -> None:
    first = ("apply", "--server-side", "-f", "-")
    assert "serverside-applied" in await kubectl(*first, given=config_map("it", a="1", b="1"))
    other = (*first, "--field-manager=other")
    refused = await kubectl.fails(*other, given=config_map("it", a="2"))
    assert 'conflict with "kubectl": .data.a' in refused
    await kubectl(*other, "--force-conflicts", given=config_map("it", a="2"))
    assert (await kubectl.read("cm", "it"))["data"] == {"a": "2", "b": "1"}


async def test_apply_on_the_server_merges_containers(kubectl: Kubectl) -> None:
    await kubectl("apply", "--server-side", "-f", "-", given=deployment("app", MAIN))
    other = ("apply", "--server-side", "--field-manager=other", "-f", "-")
    await kubectl(*other, given=deployment("app", SIDE))
    assert await containers(kubectl) == {"main": "app:1", "side": "side:1"}


async def test_create_makes_the_kinds_that_it_knows(kubectl: Kubectl) -> None:
    await kubectl("create", "deployment", "web", "--image=app:1")
    await kubectl("create", "job", "once", "--image=app:1", "--", "true")
    await kubectl("create", "configmap", "settings", "--from-literal=a=1")
    await kubectl("create", "secret", "generic", "hidden", "--from-literal=a=1")
    await kubectl("create", "serviceaccount", "robot")
    await kubectl("run", "single", "--image=app:1")
    assert (await kubectl.read("deployment", "web"))["spec"]["template"]["spec"]["containers"][0]["image"] == "app:1"
    assert (await kubectl.read("job", "once"))["spec"]["template"]["spec"]["containers"][0]["command"] == ["true"]
    assert (await kubectl.read("secret", "hidden"))["data"] == {"a": "MQ=="}


async def test_a_dry_run_on_the_server_stores_nothing(kubectl: Kubectl) -> None:
    shown = await kubectl("apply", "--dry-run=server", "-f", "-", given=config_map("it"))
    assert "created (server dry run)" in shown
    assert "not found" in await kubectl.fails("get", "cm", "it")


async def test_diff_shows_what_would_change(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", given=config_map("it", a="1"))
    ran = await kubectl.run("diff", "-f", "-", given=config_map("it", a="2"))
    assert ran.code == 1, ran.err
    assert '+  a: "2"' in ran.out


async def test_patches_of_each_type(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", given=deployment("app", MAIN))
    template = {"spec": {"template": {"spec": {"containers": [SIDE]}}}}
    await kubectl("patch", "deployment", "app", "--type=strategic", "-p", json.dumps(template))
    assert (await containers(kubectl)).keys() == {"main", "side"}
    await kubectl("patch", "deployment", "app", "--type=merge", "-p", json.dumps(template))
    assert (await containers(kubectl)).keys() == {"side"}
    operations = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "side:2"}]
    await kubectl("patch", "deployment", "app", "--type=json", "-p", json.dumps(operations))
    assert await containers(kubectl) == {"side": "side:2"}


async def test_edit_saves_what_the_editor_wrote(kubectl: Kubectl, tmp_path: Path) -> None:
    await kubectl("create", "-f", "-", given=config_map("it", color="blue"))
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/color: blue/color: red/" "$1"\n')
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    assert "edited" in await kubectl("edit", "configmap", "it", EDITOR=str(editor), KUBE_EDITOR=str(editor))
    assert (await kubectl.read("cm", "it"))["data"] == {"color": "red"}


async def test_edit_of_a_custom_resource(kubectl: Kubectl, tmp_path: Path) -> None:
    await kubectl("apply", "-f", "-", given=definition("Flux"))
    await kubectl("wait", "--for=condition=Established", "crd/fluxes.example.com", "--timeout=20s")
    await kubectl("apply", "-f", "-", given=custom("Flux", "it", size=3))
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/size: 3/size: 4/" "$1"\n')
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    await kubectl("edit", "flux", "it", EDITOR=str(editor), KUBE_EDITOR=str(editor))
    assert (await kubectl.read("flux", "it"))["spec"]["size"] == 4


async def test_a_wrong_custom_resource_is_refused_in_kubectls_words(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", given=definition("Hex"))
    await kubectl("wait", "--for=condition=Established", "crd/hexes.example.com", "--timeout=20s")
    await kubectl("apply", "-f", "-", given=custom("Hex", "it", size=3))
    refused = await kubectl.fails("patch", "hex", "it", "--type=merge", "-p", '{"spec": {"size": 0}}')
    assert 'The Hex "it" is invalid: spec.size: Invalid value: 0' in refused
    refused = await kubectl.fails("apply", "-f", "-", given=custom("Hex", "it", size=3, colour="red"))
    assert "unknown field" in refused
    await kubectl("apply", "--validate=false", "-f", "-", given=custom("Hex", "it", size=3, colour="red"))
    assert "colour" not in (await kubectl.read("hex", "it"))["spec"]


async def test_labels_and_annotations(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", given=a_pod("web", tier="front"))
    await kubectl("label", "pod", "web", "app=web")
    assert "already has a value" in await kubectl.fails("label", "pod", "web", "tier=back")
    await kubectl("label", "pod", "web", "tier=back", "--overwrite")
    await kubectl("label", "pod", "web", "app-")
    await kubectl("annotate", "pod", "web", "note=hello")
    found = (await kubectl.read("pod", "web"))["metadata"]
    assert found["labels"] == {"tier": "back"}
    assert found["annotations"] == {"note": "hello"}


async def test_replace_puts_another_in_place(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", given=config_map("it", a="1"))
    await kubectl("replace", "-f", "-", given=config_map("it", b="1"))
    assert (await kubectl.read("cm", "it"))["data"] == {"b": "1"}


async def test_delete_waits_until_it_is_gone(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", given=[a_pod("web", "node-0000"), a_pod("free"), config_map("it")])
    await kubectl("delete", "pod", "web", "free")
    await kubectl("delete", "cm", "it")
    assert "not found" in await kubectl.fails("get", "pod", "web")
    await kubectl("create", "-f", "-", given=[a_pod("a", app="x"), a_pod("b", app="x")])
    await kubectl("delete", "pods", "-l", "app=x", "--wait=true")
    assert (await kubectl.read("pods"))["items"] == []


async def test_wait_for_a_deletion(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", given=a_pod("web", "node-0000"))
    await kubectl("delete", "pod", "web", "--wait=false")
    ran = await kubectl.run("wait", "--for=delete", "pod/web", "--timeout=20s")
    # Old ones call it an error when there is nothing left to wait for.
    assert ran.code == 0 or "no matching resources found" in ran.err
    assert "not found" in await kubectl.fails("get", "pod", "web")


async def test_a_namespace_goes_with_all_that_is_in_it(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", given=[a_pod("web", "node-0000"), config_map("it")])
    await kubectl("delete", "namespace", kubectl.namespace)
    assert "not found" in await kubectl.fails("get", "namespace", kubectl.namespace)
    assert (await kubectl.read("pods"))["items"] == []
