"""`placewright snapshot` against a sandbox: what is in the file, what is not, and what a person is told."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from handlers.stage import Stage, new_stage
from lab.snapshots.anyworld import REGISTRY, SECRET, World, verdicts
from placewright.cli.livecluster import UNFINISHED
from placewright.cli.main import main
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright.kube.discovery import REFLECTED
from placewright_lab.snapshots.snapshot import open_snapshot, profiles_in, read_snapshot

Body = dict[str, Any]
GROUPS = ["", "apps", "policy", "storage.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "placewright.dev"]
RIGHTS: Body = {"apiGroups": GROUPS, "resources": ["*"], "verbs": ["list"]}


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with new_stage() as made:
        yield made.profile().nodes(3)


async def take(stage: Stage, *options: str, kubeconfig: Path | None = None) -> int:
    return await asyncio.to_thread(main, ["snapshot", "--kubeconfig", str(kubeconfig or stage.sandbox.kubeconfig), *options])


def put(stage: Stage, manifest: Body) -> None:
    group, _, version = manifest["apiVersion"].rpartition("/")
    plural = {"StorageClass": "storageclasses"}.get(manifest["kind"], manifest["kind"].lower() + "s")
    resource = stage.sandbox.resource(group, version, plural)
    space = "home" if resource.namespaced else ""
    content = {key: value for key, value in manifest.items() if key not in ("apiVersion", "kind")}
    priority = content.get("spec", {}).pop("priority", None)
    stage.sandbox.writes.create(resource, space, content)
    if priority:  # by admission it comes from a class
        stage.sandbox.writes.modify(resource, space, manifest["metadata"]["name"], lambda pod: pod["spec"].update(priority=priority))


async def shown(stage: Stage) -> list[Body]:
    """Return the API server's own whole lists."""
    rows = [row for row in REFLECTED if not row.one_of_several]
    paths = {row.kind.__name__: f"/apis/{row.wanted.group}/v1/{row.wanted.resource}" for row in rows if row.wanted.group}
    paths |= {row.kind.__name__: f"/api/v1/{row.wanted.resource}" for row in rows if not row.wanted.group}
    objects: list[Body] = []
    async with ApiClient(load_config(str(stage.sandbox.kubeconfig))) as client:
        for kind, path in ({"Pod": "/api/v1/pods", "Node": "/api/v1/nodes"} | paths).items():
            objects += [{**each, "kind": kind} for each in json.loads(await client.get(path))["items"]]
    return objects


@pytest.mark.parametrize("seed", range(12))
async def test_a_cluster_and_its_snapshot_give_the_same_verdicts_and_the_file_holds_no_secret(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "s.gz"
    async with new_stage() as stage:
        for manifest in World(seed).objects():
            put(stage, manifest)
        assert await take(stage, "-o", str(path)) == 0
        objects = await shown(stage)
    expected = verdicts(objects, REGISTRY)
    assert any(one["nodes"] for one in expected.values())
    assert verdicts(list(read_snapshot(path).objects), REGISTRY) == expected
    assert SECRET in str(objects)
    assert SECRET not in gzip.decompress(path.read_bytes()).decode()


async def test_the_file_says_what_is_in_it_and_belongs_to_its_owner(stage: Stage, tmp_path: Path, capsys: Any) -> None:
    stage.pod("web")
    path = tmp_path / "s.gz"
    assert await take(stage, "-o", str(path)) == 0
    assert capsys.readouterr().out.startswith(f"{path}: 3 Nodes, 1 Pod, 4 Namespaces, 1 SchedulingProfile; ")
    header = open_snapshot(path).header
    assert (header.placewright, header.version, header.anonymised) == ("snapshot", 1, False)
    assert header.counts == {"Pod": 1, "Node": 3, "Namespace": 4, "SchedulingProfile": 1}
    assert [one.metadata.name for one in profiles_in(path)] == ["default"]
    assert path.stat().st_mode & 0o777 == 0o600
    assert main(["snapshot", "--show", str(path)]) == 0
    said = capsys.readouterr().out
    assert "3 Nodes, 1 Pod, 4 Namespaces, 1 SchedulingProfile; 1 of the pods wait for a node" in said
    assert "profile default for placewright" in said


async def test_pods_that_have_ended_are_left_out(stage: Stage, tmp_path: Path) -> None:
    stage.pod("done").pod("failed").pod("there")
    pods = stage.sandbox.resource("", "v1", "pods")
    for name, phase in (("done", "Succeeded"), ("failed", "Failed")):
        stage.sandbox.writes.modify(pods, "default", name, lambda pod, phase=phase: pod.update(status={"phase": phase}))
    path = tmp_path / "s.gz"
    assert await take(stage, "-o", str(path)) == 0
    assert [each["metadata"]["name"] for each in read_snapshot(path).objects if each["kind"] == "Pod"] == ["there"]
    assert "Succeeded" in UNFINISHED


async def test_an_anonymised_snapshot_holds_no_names_and_says_so(stage: Stage, tmp_path: Path, capsys: Any) -> None:
    stage.pod("billing-7")
    path = tmp_path / "s.gz"
    assert await take(stage, "-o", str(path), "--anonymise") == 0
    text = gzip.decompress(path.read_bytes()).decode()
    assert "billing-7" not in text and "node-1" not in text and "example.test" not in text
    assert main(["snapshot", "--show", str(path)]) == 0
    assert "made-up names" in capsys.readouterr().out


async def test_a_file_that_is_there_is_refused_before_anybody_is_asked(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "s.gz"
    path.write_text("precious")
    assert main(["snapshot", "--write", str(path), "--kubeconfig", "/nowhere"]) == 2
    assert capsys.readouterr().err.startswith(f"placewright: error: {path}: found 'a file of that name'; allowed a new name, or --force")
    assert path.read_text() == "precious"


async def test_by_force_a_file_is_replaced(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "s.gz"
    path.write_text("old")
    assert await take(stage, "-o", str(path), "--force") == 0
    assert open_snapshot(path).header.counts["Node"] == 3


def account(stage: Stage, folder: Path, *rules: Body) -> Path:
    """Return the kubeconfig of an account with these rights."""
    create = stage.sandbox.writes.create
    group, version = "rbac.authorization.k8s.io", "v1"
    create(stage.sandbox.resource("", "v1", "serviceaccounts"), "default", {"metadata": {"name": "guest"}})
    create(stage.sandbox.resource(group, version, "clusterroles"), "", {"metadata": {"name": "guest"}, "rules": list(rules)})
    binding: Body = {"metadata": {"name": "guest"}, "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "guest"}}
    binding["subjects"] = [{"kind": "ServiceAccount", "name": "guest", "namespace": "default"}]
    create(stage.sandbox.resource(group, version, "clusterrolebindings"), "", binding)
    path = folder / "guest.config"
    path.write_bytes(stage.account_kubeconfig("default", "guest"))
    return path


async def test_what_may_not_be_read_is_named_once_with_what_that_means(stage: Stage, tmp_path: Path, capsys: Any) -> None:
    mine = RIGHTS | {"apiGroups": ["", "apps", "storage.k8s.io", "resource.k8s.io"]}
    kubeconfig, path = account(stage, tmp_path, mine), tmp_path / "s.gz"
    assert await take(stage, "-o", str(path), kubeconfig=kubeconfig) == 0
    assert capsys.readouterr().err.splitlines() == [
        "placewright: poddisruptionbudgets.policy may not be listed (403): left out, DefaultPreemption will see none",
        "placewright: podgroups.scheduling.k8s.io may not be listed (403): left out, GangScheduling will see none",
        "placewright: compositepodgroups.scheduling.k8s.io may not be listed (403): left out, GangScheduling will see none",
        "placewright: schedulingprofiles.placewright.dev may not be listed (403): left out, no profile comes with the file",
    ]
    left_out = open_snapshot(path).header.left_out
    groups = ("podgroups.scheduling.k8s.io", "compositepodgroups.scheduling.k8s.io")
    assert left_out == ("poddisruptionbudgets.policy", *groups, "schedulingprofiles.placewright.dev")


async def test_without_the_right_to_list_nodes_there_is_no_snapshot(stage: Stage, tmp_path: Path, capsys: Any) -> None:
    kubeconfig, path = account(stage, tmp_path, RIGHTS | {"resources": ["pods"]}), tmp_path / "s.gz"
    assert await take(stage, "-o", str(path), kubeconfig=kubeconfig) == 2
    assert "nodes may not be listed (403); without them there is nothing to keep" in capsys.readouterr().err
    assert not path.exists()


async def test_the_rights_to_list_what_placement_reads_are_enough(stage: Stage, tmp_path: Path, capsys: Any) -> None:
    resources = ["pods", "nodes", "schedulingprofiles", *(row.wanted.resource for row in REFLECTED)]
    kubeconfig, path = account(stage, tmp_path, RIGHTS | {"resources": resources}), tmp_path / "s.gz"
    assert await take(stage, "-o", str(path), kubeconfig=kubeconfig) == 0
    assert capsys.readouterr().err == ""


async def test_an_api_server_that_is_away_is_one_line_and_no_file(stage: Stage, tmp_path: Path, capsys: Any) -> None:
    config = yaml.safe_load(stage.sandbox.kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:9"
    kubeconfig, path = tmp_path / "config", tmp_path / "s.gz"
    kubeconfig.write_text(yaml.safe_dump(config))
    assert await take(stage, "-o", str(path), kubeconfig=kubeconfig) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith("placewright: error: https://127.0.0.1:9: GET /version: ")
    assert not path.exists()


async def test_a_list_of_many_pages_is_read_whole(stage: Stage, tmp_path: Path) -> None:
    for number in range(1203):
        stage.pod(f"p{number:04}")
    path = tmp_path / "s.gz"
    assert await take(stage, "-o", str(path)) == 0
    names = [each["metadata"]["name"] for each in read_snapshot(path).objects if each["kind"] == "Pod"]
    assert names == [f"p{number:04}" for number in range(1203)]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", gzip.compress(b'{"placewright":"snapshot","version":9}', mtime=0)[:30]])
def test_a_file_that_is_no_snapshot_is_one_line_and_exit_code_2(content: bytes, tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "s.gz"
    path.write_bytes(content)
    assert main(["snapshot", "--show", str(path)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"placewright: error: {path}: line 1: ") and said.count("\n") == 1


def test_the_limit_of_what_a_file_may_unpack_to_is_an_option(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "s.gz"
    header = msgspec.json.encode({"placewright": "snapshot", "version": 1, "taken": ""})
    path.write_bytes(gzip.compress(header + b"\n" * 2**21))
    assert main(["snapshot", "--show", str(path), "--largest", "1"]) == 2
    assert "found 'more text in it'; allowed at most 1 MiB" in capsys.readouterr().err
    assert main(["snapshot", "--show", str(path), "--largest", "3"]) == 0
