"""LoadAware, a plugin of another package, at work in an operator: it reads metrics.k8s.io through the scheduler."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubesandbox.faults import Rule
from outsiders import EXAMPLES, installed
from placewright.cli.doctor import rights
from placewright.cli.livecluster import readable
from placewright.cli.main import main
from placewright.framework.sources import ObjectSource
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright.kube.listonce import list_once
from placewright_load_aware import LoadAware, NodeMetrics
from placewright_load_aware.nodemetrics import NODE_METRICS

from .stage import FAST, Object, Running, Stage, new_stage, operator

PROFILE = yaml.safe_load((EXAMPLES / "load-aware" / "manifests" / "profile.yaml").read_text())["spec"]
#: A sandbox serves metrics.k8s.io once it is defined.
DEFINITION: Object = {
    "metadata": {"name": "nodes.metrics.k8s.io"},
    "spec": {
        "group": "metrics.k8s.io",
        "scope": "Cluster",
        "names": {"kind": "NodeMetrics", "plural": "nodes", "singular": "nodemetrics", "listKind": "NodeMetricsList"},
        "versions": [
            {
                "name": "v1beta1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
LIST = "/apis/metrics.k8s.io/v1beta1/nodes"
#: Samples are read each second; or watched, as a custom resource would be, which they are on a sandbox.
POLLED = replace(NODE_METRICS, poll_seconds=1.0, stale_after_seconds=2.0)
WATCHED = replace(NODE_METRICS, poll_seconds=None, stale_after_seconds=None)
BUSY = "2 node(s) had too much CPU in use"


class Metrics:
    """Stands for metrics-server."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def serve(self) -> None:
        self._stage._create(self._stage.sandbox.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions"), deepcopy(DEFINITION))

    def show(self, **cpu: str) -> None:
        """New samples of these nodes."""
        kind = self._stage.sandbox.resource("metrics.k8s.io", "v1beta1", "nodes")
        for name, used in cpu.items():
            usage = {"cpu": used}
            if self._stage.sandbox.store.get(kind.key, "", name) is None:
                self._stage._create(kind, {"metadata": {"name": name}, "timestamp": "2026-01-01T00:00:00Z", "usage": usage})
            else:
                self._stage._modify(kind, name, lambda sample, usage=usage: sample.update(usage=usage))


def in_use(running: Running, node: str) -> str:
    """What the operator knows of a node."""
    sample = running.engine.deciding.cluster.objects.of(NodeMetrics).get(node)
    return "" if sample is None else (sample.usage or {})["cpu"]


@pytest.fixture
async def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    """Two nodes with 4 CPUs each, and a profile with LoadAware."""
    monkeypatch.setattr(LoadAware, "sources", (POLLED,))
    with installed(tmp_path / "site", "load-aware"):
        async with new_stage() as made:
            yield made.node("a").node("b").profile(**{**PROFILE, "schedulerName": "placewright"})


@pytest.mark.parametrize("source", [POLLED, WATCHED], ids=["polled", "watched"])
async def test_a_pod_goes_where_cpu_is_idle_and_waits_while_all_nodes_are_busy_until_a_sample_says_otherwise(
    at: Stage, source: ObjectSource[NodeMetrics], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LoadAware, "sources", (source,))
    metrics = Metrics(at)
    metrics.serve()
    metrics.show(a="3900m", b="400m")
    async with operator(at) as running:
        at.pod("first")
        await at.until(lambda: at.placed("first"))
        assert at.node_of("first") == "b"
        metrics.show(a="3900m", b="3900m")
        await at.until(lambda: in_use(running, "b") == "3900m")
        at.pod("second")
        await at.until(lambda: BUSY in at.condition("second").get("message", ""))
        metrics.show(a="100m", b="3900m")
        await at.until(lambda: at.placed("second"))
        assert at.node_of("second") == "a"


async def test_without_the_api_the_plugin_does_without_and_the_line_about_the_server_says_so(
    at: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with operator(at):
        at.pod("web")
        await at.until(lambda: at.placed("web"))
    (line,) = (each for each in caplog.messages if each.startswith("API server: Kubernetes"))
    assert "no nodes.metrics.k8s.io in v1beta1: LoadAware sees none" in line


async def test_without_the_right_to_list_it_the_plugin_does_without_and_one_line_says_so(
    at: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    Metrics(at).serve()
    refused = at.sandbox.faults.add(Rule(method="GET", path=LIST, code=403))
    async with operator(at):
        at.pod("web")
        await at.until(lambda: at.placed("web"))
        await at.until(lambda: refused.met >= 2)
    lines = [each for each in caplog.messages if LIST in each]
    assert len(lines) == 1
    assert lines[0].endswith("it is read again, and LoadAware does without")


async def test_samples_that_are_not_served_any_more_are_let_go_of(at: Stage, caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics(at)
    metrics.serve()
    metrics.show(a="3900m", b="3900m")
    async with operator(at):
        at.pod("web")
        await at.until(lambda: BUSY in at.condition("web").get("message", ""))
        at.sandbox.faults.add(Rule(method="GET", path=LIST, code=503))
        await at.until(lambda: at.placed("web"))
    assert sum("its objects are too old, so LoadAware does without" in each for each in caplog.messages) == 1


async def test_an_api_that_comes_later_is_read_from_then_on(at: Stage) -> None:
    async with operator(at, replace(FAST, reconcile_seconds=0.2)) as running:
        at.pod("first")
        await at.until(lambda: at.placed("first"))
        metrics = Metrics(at)
        metrics.serve()
        metrics.show(a="3900m", b="3900m")
        await at.until(lambda: in_use(running, "a") == in_use(running, "b") == "3900m")
        at.pod("second")
        await at.until(lambda: BUSY in at.condition("second").get("message", ""))


# --- beside the operator ----------------------------------------------------------------------------------------------------------


async def test_what_explain_and_snapshot_read_of_a_cluster_has_its_objects_or_says_that_they_lack(at: Stage) -> None:
    async with ApiClient(load_config(str(at.sandbox.kubeconfig))) as client:
        without = await readable(client)
        assert "nodes.metrics.k8s.io is not served in v1beta1: left out, LoadAware will see none" in without.notes
        metrics = Metrics(at)
        metrics.serve()
        metrics.show(a="1", b="2")
        (source,) = (each for each in (await readable(client)).sources if each.kind is NodeMetrics)
        listed = await list_once(client, source, "")
        assert {sample.metadata.name: sample.usage for sample in listed.items} == {"a": {"cpu": "1"}, "b": {"cpu": "2"}}


async def test_the_doctor_asks_for_the_right_to_read_its_objects(at: Stage) -> None:
    asked = [need for need in rights.declared() if need.plugin == "LoadAware"]
    assert [rule.manifest() for need in asked for rule in need.rules] == [
        {"apiGroups": ["metrics.k8s.io"], "resources": ["nodes"], "verbs": ["list"]}
    ]


# --- from files --------------------------------------------------------------------------------------------------------------------


def manifest(kind: str, name: str, api_version: str = "v1", **fields: Any) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


def objects(**cpu: str) -> list[Object]:
    amounts = {"allocatable": {"cpu": "4", "pods": "10"}}
    samples = [
        manifest("NodeMetrics", name, "metrics.k8s.io/v1beta1", timestamp="2026-01-01T00:00:00Z", usage={"cpu": used})
        for name, used in cpu.items()
    ]
    nodes = [manifest("Node", name, status=amounts) for name in cpu]
    return [*nodes, *samples, manifest("Pod", "web", spec={"containers": [{"name": "c"}]})]


def test_commands_that_read_files_see_its_objects_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = tmp_path / "cluster.yaml", tmp_path / "profile.yaml"
    files[0].write_text(yaml.safe_dump_all(objects(a="3900m", b="400m")))
    spec = {**PROFILE, "schedulerName": "default-scheduler"}
    files[1].write_text(yaml.safe_dump(manifest("SchedulingProfile", "by-load", "placewright.dev/v1alpha1", spec=spec)))
    with installed(tmp_path / "site", "load-aware"):
        assert main(["evaluate", "-f", str(files[0]), "--pod", "default/web", "--profile", str(files[1]), "-o", "json"]) == 0
        told = capsys.readouterr()
        assert "node(s) had too much CPU in use" in told.out
        assert main(["simulate", "-f", str(files[0]), "--profile", str(files[1]), "-o", "json"]) == 0
        assert '"node": "b"' in capsys.readouterr().out
