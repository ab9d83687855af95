"""Runs one plugin on a cluster, as the framework would: for the tests of the two plugins that look at other pods.

Also reads the golden vectors: kube-scheduler's own verdicts, node by node.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from placewright.api.objects import Node, Pod
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.cluster.objects import KINDS
from placewright.framework.interface import CycleState
from placewright.framework.status import Code, Status
from placewright.plugins.interpodaffinity import InterPodAffinity
from placewright.plugins.podtopologyspread import PodTopologySpread

Pairwise = PodTopologySpread | InterPodAffinity
VECTORS = Path(os.environ.get("PLACEWRIGHT_VECTORS", Path(__file__).parents[3] / "shared" / "vectors"))
#: The default profile's filters that are asked before the two; where one of these rejects, nobody asks them.
EARLIER = {
    "NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit",
    "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone",
}  # fmt: skip


@dataclass
class FakeHandle:
    """The part of the scheduler that these plugins ask for."""

    cluster: Cluster


def build(kind: type[Any], cluster: Cluster, args: Mapping[str, Any] | None = None) -> Any:
    """The plugin, with arguments as a profile would write them."""
    return kind(msgspec.convert(dict(args or {}), kind.Args), FakeHandle(cluster))


def load(objects: list[dict[str, Any]]) -> Cluster:
    """A cluster of these objects."""
    kinds = {kind.__name__: kind for kind in KINDS}
    cluster = Cluster()
    for body in objects:
        kind = body["kind"]
        if kind == "Node":
            cluster.set_node(msgspec.convert(body, Node))
        elif kind == "Pod":
            pod = PodInfo(msgspec.convert(body, Pod))
            if pod.node_name and not pod.finished:
                cluster.set_pod(pod)
        elif kind in kinds:
            cluster.objects.put(msgspec.convert(body, kinds[kind]))
    return cluster


def pod_in(objects: list[dict[str, Any]], namespace: str, name: str) -> PodInfo:
    """A pod among these objects."""
    for body in objects:
        meta = body.get("metadata", {})
        if body["kind"] == "Pod" and meta.get("namespace") == namespace and meta["name"] == name:
            return PodInfo(msgspec.convert(body, Pod))
    raise KeyError(f"{namespace}/{name}")


def verdicts(plugin: Pairwise, cluster: Cluster, pod: PodInfo) -> dict[str, Status]:
    """Why the plugin rejects a node, by name; nodes that it allows are absent. Holds Filter and explain together."""
    state, rows = CycleState(), cluster.rows()
    status = plugin.pre_filter(state, pod, cluster).status
    if status.code is Code.SKIP:
        return {}
    if not status.ok:
        return {str(cluster.names[row]): status for row in rows}
    rejected = rows[~plugin.filter(state, pod, cluster, rows)]
    said = {
        str(cluster.names[row]): verdict
        for verdict, group in plugin.explain(state, pod, cluster, rejected)
        for row in group
    }
    assert set(said) == {cluster.names[row] for row in rejected}
    return said


def scores(plugin: Pairwise, cluster: Cluster, pod: PodInfo, feasible: list[str]) -> dict[str, int]:
    """Normalised scores of the feasible nodes by name; empty when the plugin skips."""
    state = CycleState()
    rows = np.array([row for row in cluster.rows() if cluster.names[row] in set(feasible)], np.intp)
    status = plugin.pre_score(state, pod, cluster, rows)
    if status.code is Code.SKIP:
        return {}
    assert status.ok, status
    raw = plugin.score(state, pod, cluster, rows)
    normal = plugin.normalise(state, raw, plugin.summarise(state, raw))
    return {str(cluster.names[row]): int(score) for row, score in zip(rows, normal, strict=True)}


def cases() -> Iterator[dict[str, Any]]:
    """The golden cases; skips the test where they are absent."""
    files = sorted(VECTORS.glob("*.jsonl.gz"))
    if not files:
        pytest.skip(f"no golden vectors in {VECTORS} (set PLACEWRIGHT_VECTORS)")
    for file in files:
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)


@dataclass
class Setting:
    """What a case's profile says of one plugin."""

    args: dict[str, Any]
    filters: bool
    weight: int


def setting(case: Mapping[str, Any], name: str) -> Setting:
    """Arguments, whether it filters, and what its score weighs (0: it does not score)."""
    profile = (case.get("config") or {"profiles": [{}]})["profiles"][0]
    args = next((dict(c["args"]) for c in profile.get("pluginConfig", []) if c["name"] == name), {})
    for key in ("apiVersion", "kind"):
        args.pop(key, None)
    plugins = profile.get("plugins", {})

    def weight_at(point: str, default: int) -> int:
        said = plugins.get(point, {})
        for entry in said.get("enabled") or []:
            if entry["name"] == name:
                return int(entry.get("weight") or 1)
        off = any(entry["name"] in (name, "*") for entry in said.get("disabled") or [])
        return 0 if off else default

    everywhere = weight_at("multiPoint", 2)
    return Setting(args, weight_at("filter", everywhere) > 0, weight_at("score", everywhere))


def disagreements(kind: type[Pairwise]) -> Iterator[str]:
    """Where the plugin and kube-scheduler differ, over all golden cases."""
    for case in cases():
        if case["expect"].get("error") or case["expect"].get("preFilterMessage"):
            continue
        said = setting(case, kind.name)
        cluster = load(case["objects"])
        pod = pod_in(case["objects"], case["namespace"], case["pod"])
        plugin = build(kind, cluster, said.args)
        yield from _filter_disagreements(case, plugin, verdicts(plugin, cluster, pod) if said.filters else {})
        if said.weight:
            yield from _score_disagreements(case, plugin, cluster, pod, said.weight)


def _filter_disagreements(case: Mapping[str, Any], plugin: Pairwise, mine: Mapping[str, Status]) -> Iterator[str]:
    earlier = EARLIER if plugin.name == "PodTopologySpread" else EARLIER | {"PodTopologySpread"}
    for node, wanted in case["expect"]["nodes"].items():
        asked = wanted["code"] == "Success" or wanted.get("plugin", "") not in {*earlier, ""}
        if not asked:
            continue
        expected = (wanted["code"], wanted["reasons"]) if wanted.get("plugin") == plugin.name else None
        found = (mine[node].code.value, list(mine[node].reasons)) if node in mine else None
        if found != expected:
            yield f"{case['id']} {node}: found {found}, expected {expected}"


def _score_disagreements(
    case: Mapping[str, Any], plugin: Pairwise, cluster: Cluster, pod: PodInfo, weight: int
) -> Iterator[str]:
    nodes = {name: wanted for name, wanted in case["expect"]["nodes"].items() if wanted["code"] == "Success"}
    mine = scores(plugin, cluster, pod, list(nodes))
    for node, wanted in nodes.items():
        expected = wanted.get("scores", {}).get(plugin.name, 0)
        found = mine.get(node, 0) * weight
        if found != expected:
            yield f"{case['id']} {node}: score {found}, expected {expected}"
