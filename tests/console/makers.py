"""Objects, snapshots and recordings for the console."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from placewright.api.objects import Node
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.offline.world import read_object
from placewright.testing import pod, profile
from placewright.testing.nodes import NodeMaker

Object = dict[str, Any]
ZONE = "topology.kubernetes.io/zone"
GPU = "example.com/gpu"
TAKEN = "2026-11-23T12:00:00Z"
#: A name that would run a script where names were taken for markup. No API server lets it in, and a file may have it.
HOSTILE = "<img src=x onerror=alert(1)>"


def a_node(name: str, *, cpu: int = 4, gpu: int = 0, cordoned: bool = False, taint: str = "", **labels: str) -> Object:
    """A node with room for 10 pods, in zones by the keyword `zone`."""
    made = NodeMaker(name).uid(name).labels({key.replace("zone", ZONE): value for key, value in labels.items()})
    made = made.offers({"cpu": str(cpu), "memory": "16Gi", "pods": "10"} | ({GPU: str(gpu)} if gpu else {})).spec()
    made = made.taint(taint) if taint else made
    found = (made.cordoned() if cordoned else made).manifest
    found["status"]["capacity"] = found["status"]["allocatable"]
    return found


def a_pod(
    name: str, on: str = "", *, namespace: str = "shop", cpu: int = 1000, gpu: int = 0, created: str = "2026-11-23T11:00:00Z", **spec: Any
) -> Object:
    """A pod of the namespace `shop`, with a time of creation, that asks for this many milli-CPUs and GPUs."""
    made = pod(name, on=on, cpu=f"{cpu}m", memory="1Gi", **spec).namespace(namespace).uid(f"{namespace}-{name}").created(created)
    return (made.requests({GPU: str(gpu)}) if gpu else made).manifest


def claim_profile(name: str = "default", scheduler: str = "default-scheduler") -> Object:
    return profile(name).scheduler(scheduler).generation(0).manifest


def put(cluster: Cluster, manifest: Object) -> None:
    """As a watch would show it."""
    item = read_object(manifest, "test")
    if isinstance(item, Node):
        cluster.set_node(item)
    else:
        assert isinstance(item, PodInfo)
        cluster.set_pod(item)


def file_of(path: Path, objects: Iterable[Object], changes: Iterable[tuple[float, str, Object]] | None = None) -> Path:
    """A snapshot, or with `changes` a recording, written without the code that writes them."""
    objects = list(objects)
    counts = Counter(each["kind"] for each in objects)
    header = {"placewright": "snapshot" if changes is None else "recording", "version": 1, "taken": TAKEN, "counts": counts}
    lines = [header, *objects, *({"at": at, "act": act, "object": item} for at, act, item in changes or ())]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def shop(path: Path) -> Path:
    """Four nodes in two zones, one of them with GPUs, and pods that wait for four reasons."""
    gpus = a_node("gpu-1", cpu=8, gpu=2, taint="example.com/gpu", zone="b")
    nodes = [a_node("a-1", zone="a"), a_node("a-2", zone="a", cordoned=True), a_node("b-1", zone="b"), gpus]
    placed = [a_pod("web-1", "a-1", cpu=2000), a_pod("web-2", "a-1"), a_pod("ledger", "b-1", namespace="bank", cpu=2500)]
    tolerates = [{"key": "example.com/gpu", "operator": "Exists"}]
    waits = [a_pod(f"train-{i}", namespace="ml", gpu=4, tolerations=tolerates, created=f"2026-11-23T10:0{i}:00Z") for i in range(3)]
    others = [
        a_pod("small", cpu=500), a_pod("held", schedulingGates=[{"name": "example.com/quota"}]),
        a_pod("lost", schedulerName="defualt-scheduler"), a_pod(HOSTILE, cpu=64000),
    ]  # fmt: skip
    return file_of(path, [*nodes, *placed, *waits, *others, claim_profile()])


def applied(state: Mapping[str, Mapping[str, Any]], delta: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """A reader's state after a delta of the feed."""
    made = {name: dict(rows) for name, rows in state.items()}
    for name, keys in delta.get("gone", {}).items():
        for key in keys:
            del made[name][key]
    for name, rows in delta.get("put", {}).items():
        made.setdefault(name, {}).update(rows)
    return made
