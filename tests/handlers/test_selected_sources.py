"""A plugin's source in the core group, with selectors: live in an operator, in explain's reading of a cluster, and from files."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Hashable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from placewright.api.objects import KubeObject, LabelSelector, ObjectMeta
from placewright.api.pods import PodInfo
from placewright.cli.livecluster import readable
from placewright.cli.main import main
from placewright.cluster.cluster import Cluster
from placewright.engine import permissions
from placewright.framework import registry
from placewright.framework.events import Action, ClusterEventWithHint, event_with_hint
from placewright.framework.filters import ConstantReasonFilter
from placewright.framework.interface import BoolColumn, CycleState, Reads, Rows
from placewright.framework.sources import ObjectSource
from placewright.framework.status import unresolvable
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright.kube.listonce import list_once
from placewright_lab.snapshots.anonymiser import anonymised

from .stage import Object, Stage, new_stage, operator


class ConfigMap(KubeObject, frozen=True):
    """A ConfigMap; `open` names the nodes that take pods."""

    metadata: ObjectMeta = ObjectMeta()
    data: dict[str, str] | None = None


class OpenNodes(ConstantReasonFilter):
    """Takes nodes that a ConfigMap names."""

    name = "OpenNodes"
    sources = (ObjectSource(ConfigMap, "", "configmaps", ("v1",), True, label_selector=LabelSelector(match_labels={"role": "open-nodes"})),)
    reads = Reads.CLUSTER
    rejection = unresolvable("node(s) were not open")

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        """Take the rows of open nodes."""
        named = {name for each in cluster.objects.of(ConfigMap).values() for name in (each.data or {}).get("open", "").split()}
        return np.array([str(cluster.names[row]) in named for row in rows], np.bool_)

    def fingerprint(self, state: CycleState, cluster: Cluster) -> Hashable:
        """The ConfigMaps and the nodes."""
        return (cluster.objects.of(ConfigMap).version, cluster.node_journal.position)

    def events(self) -> Sequence[ClusterEventWithHint]:
        """Any change of a ConfigMap that the source selects."""
        return (event_with_hint("ConfigMap", Action.ALL),)


class Offered:
    """The plugin's entry point."""

    name, attr, value = "OpenNodes", "OpenNodes", "tests:OpenNodes"

    @staticmethod
    def load() -> type[OpenNodes]:
        """As an entry point does."""
        return OpenNodes


PROFILE = {"schedulerName": "placewright", "plugins": {"filter": {"enabled": [{"name": "OpenNodes"}]}}}
SHUT = "1 node(s) were not open"


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "entry_points", lambda group: [Offered] if group == registry.ENTRY_POINT_GROUP else [])
    registry.installed_sources.cache_clear()


@pytest.fixture
async def at(offered: None) -> AsyncIterator[Stage]:
    async with new_stage() as made:
        yield made.node("a").profile(**PROFILE)
    registry.installed_sources.cache_clear()


def shown(stage: Stage, name: str, labels: dict[str, str], nodes: str) -> None:
    stage._create(stage.sandbox.resource("", "v1", "configmaps"), config_map(name, labels, nodes))


def config_map(name: str, labels: dict[str, str], nodes: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}, "data": {"open": nodes}}


def reading(monkeypatch: pytest.MonkeyPatch, fields: str) -> None:
    monkeypatch.setattr(OpenNodes, "sources", (replace(OpenNodes.sources[0], label_selector=None, field_selector=fields),))


async def test_a_selected_config_map_wakes_the_pods_that_the_plugin_rejected_and_another_one_is_not_read(at: Stage) -> None:
    shown(at, "others", {"role": "other"}, "a")
    shown(at, "ours", {"role": "open-nodes"}, "")
    async with operator(at) as running:
        at.pod("web")
        await at.until(lambda: SHUT in at.condition("web").get("message", ""))
        assert [each.metadata.name for each in running.engine.deciding.cluster.objects.of(ConfigMap).values()] == ["ours"]
        maps, change = at.sandbox.resource("", "v1", "configmaps"), config_map("ours", {"role": "open-nodes"}, "a")
        at.sandbox.writes.replace(maps, "default", "ours", change)
        await at.until(lambda: at.placed("web"))


async def test_a_field_selector_reads_one_object(at: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    reading(monkeypatch, "metadata.name=ours")
    shown(at, "others", {}, "")
    shown(at, "ours", {}, "a")
    async with operator(at) as running:
        at.pod("web")
        await at.until(lambda: at.placed("web"))
        assert [each.metadata.name for each in running.engine.deciding.cluster.objects.of(ConfigMap).values()] == ["ours"]
    async with ApiClient(load_config(str(at.sandbox.kubeconfig))) as client:
        (source,) = (each for each in (await readable(client)).sources if each.kind is ConfigMap)
        assert [each.metadata.name for each in (await list_once(client, source, "")).items] == ["ours"]


async def test_a_field_that_the_server_does_not_select_by_is_one_line(
    at: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    reading(monkeypatch, "data.open=a")
    async with operator(at):
        at.pod("web")
        await at.until(lambda: SHUT in at.condition("web").get("message", ""))
    (line,) = (each for each in caplog.messages if "configmaps" in each)
    assert "data.open" in line
    assert line.endswith("and OpenNodes does without")
    async with ApiClient(load_config(str(at.sandbox.kubeconfig))) as client:
        (note,) = (each for each in (await readable(client)).notes if "data.open" in each)
    assert note.endswith("left out, OpenNodes will see none")


def test_the_role_has_the_right_to_read_it(offered: None) -> None:
    (need,) = permissions.declared_needs([(OpenNodes.sources[0], "OpenNodes")])
    assert [rule.manifest() for rule in need.rules] == [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"]}]


@pytest.mark.parametrize("hidden", [False, True], ids=["plain", "anonymised"])
def test_evaluate_and_simulate_read_the_selected_objects_of_files(
    offered: None, tmp_path: Path, capsys: pytest.CaptureFixture[str], hidden: bool
) -> None:
    ours = config_map("ours", {"role": "open-nodes", "team": "secret"}, "a")
    if hidden:
        (line,) = anonymised([json.dumps(ours).encode()], b"key")
        assert b"secret" not in line
        ours = {**json.loads(line), "data": ours["data"]}
    for objects, outcome in (([ours], "a"), ([config_map("others", {"role": "other"}, "a")], None)):
        cluster, profile = tmp_path / "cluster.yaml", tmp_path / "profile.yaml"
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "status": {"allocatable": {"cpu": "4", "pods": "9"}}}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": [{"name": "c"}]}}
        cluster.write_text(yaml.safe_dump_all([node, pod, *objects]))
        head = {"apiVersion": "placewright.dev/v1alpha1", "kind": "SchedulingProfile", "metadata": {"name": "p"}}
        profile.write_text(yaml.safe_dump({**head, "spec": {**PROFILE, "schedulerName": "default-scheduler"}}))
        main(["evaluate", "-f", str(cluster), "--pod", "default/web", "--profile", str(profile), "-o", "json"])
        assert ("were not open" in capsys.readouterr().out) == (outcome is None)
        main(["simulate", "-f", str(cluster), "--profile", str(profile), "-o", "json"])
        assert (f'"node": "{outcome}"' in capsys.readouterr().out) == (outcome is not None)
