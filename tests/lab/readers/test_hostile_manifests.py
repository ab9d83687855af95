"""Whatever stands in a field, reading ends in objects or in one printable line, and what was read can be sent."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from placewright_lab.bench.madeup import mixed_nodes
from placewright_lab.demo.feed import stand_in_uids
from placewright_lab.readers.manifests import SourceText, read_manifests

_TEMPLATE = {
    "metadata": {"labels": {"app": "a"}, "annotations": {"x": "y"}},
    "spec": {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]}]}}},
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "volumes": [{"name": "v", "emptyDir": {}}],
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}, "ports": [{"hostPort": 80}]}],
    },
}  # fmt: skip


def _workload(kind: str, api_version: str = "apps/v1", **spec: Any) -> dict[str, Any]:
    selector = {"selector": {"matchLabels": {"app": "a"}}} if api_version == "apps/v1" else {}
    owner = {"apiVersion": "v1", "kind": "X", "name": "x", "uid": "1"}
    meta = {"name": kind.lower(), "labels": {"l": "m"}, "ownerReferences": [owner]}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": {**selector, "template": _TEMPLATE, **spec}}


_DOCUMENTS: list[dict[str, Any]] = [
    _workload("Deployment", replicas=2, selector={"matchExpressions": [{"key": "app", "operator": "In", "values": ["a"]}]}),
    _workload("StatefulSet", replicas=2, volumeClaimTemplates=[{"metadata": {"name": "v"}, "spec": {}}]),
    _workload("DaemonSet"),
    _workload("Job", "batch/v1", parallelism=2, completions=3, completionMode="Indexed"),
    _workload("CronJob", "batch/v1", jobTemplate={"metadata": {"labels": {"x": "y"}}, "spec": {"template": _TEMPLATE}}),
    {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "v"},
     "spec": {"schedulerName": "volcano", "tasks": [{"name": "t", "replicas": 2, "template": _TEMPLATE}]}},
    {"apiVersion": "v1", "kind": "Pod", **copy.deepcopy(_TEMPLATE)},
    {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "labels": {"a": "b"}}, "spec": {"ports": [{"port": 1}]}},
    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]},
     "status": {"allocatable": {"cpu": "1"}}},
    {"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}]},
]  # fmt: skip

_JUNK = st.sampled_from(
    [None, True, -1, 0, 3, 1.5, 2**62, "", "x", "\x1b[2J", "a/b", "A" * 300, [], [None], [5], {}, {"a": None}, {"": []}]
)


def _paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path for step, inner in steps for path in ((*at, step), *_paths(inner, (*at, step)))]


@st.composite
def _spoiled(draw: st.DrawFn) -> str:
    document = copy.deepcopy(draw(st.sampled_from(_DOCUMENTS)))
    for _ in range(draw(st.integers(1, 3))):
        *way, last = draw(st.sampled_from(_paths(document)))
        place: Any = document
        for step in way:
            place = place[step]
        place[last] = copy.deepcopy(draw(_JUNK))
        if not _paths(document):
            break
    return yaml.safe_dump(document)


@settings(max_examples=400)
@given(_spoiled())
def test_spoiled_manifests_become_objects_or_one_printable_line(text: str) -> None:
    reading = read_manifests([SourceText("f.yaml", text)], mixed_nodes(2))
    for line in (*reading.problems, *reading.notes):
        assert line.isprintable(), line
        assert len(line) < 1000
    for manifest in (*reading.objects, *reading.pods):
        msgspec.json.encode(stand_in_uids(manifest, {}))
