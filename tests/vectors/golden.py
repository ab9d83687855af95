"""The golden cases: where they are, what a case needs that this build may lack, and how an answer differs from what was recorded."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from placewright.plugins.catalog import in_tree
from placewright.profiles.defaults import DEFAULT_PLUGINS
from placewright.simulate.cases import read_cases

FOLDER: Final = Path(os.environ.get("PLACEWRIGHT_VECTORS", Path(__file__).parents[3] / "shared" / "vectors"))
REGISTRY: Final = in_tree()
#: Every case of these must agree, whatever else is missing.
REQUIRED: Final = ("resources", "taints", "nodeaffinity", "ports", "images")
_LACKING: Final = frozenset(DEFAULT_PLUGINS) - set(REGISTRY)
_VOLUME_PLUGINS: Final = frozenset({"VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone"})

Case = Mapping[str, Any]


@cache
def golden_cases() -> tuple[dict[str, Any], ...]:
    """All cases; empty where the vectors are not beside this checkout."""
    return tuple(case for file in sorted(FOLDER.glob("*.jsonl*")) for case in read_cases(file))


def family(case: Case) -> str:
    """`resources` of `resources-1042`."""
    return str(case["id"]).rpartition("-")[0]


def lacking(case: Case) -> list[str]:
    """Plugins that decided in this case, or could have in preemption's trials, and that this build does not have."""
    expected = case["expect"]
    named = {node.get("plugin", "") for node in expected["nodes"].values()} | set(expected.get("unschedulablePlugins") or ())
    for node in expected["nodes"].values():
        named.update(plugin for plugin, score in (node.get("scores") or {}).items() if score)
    if "message" in expected and _has_volumes(case):
        named |= _VOLUME_PLUGINS  # preemption asks the filters again, on nodes where they were not reached before
    return sorted(named & _LACKING)


def _has_volumes(case: Case) -> bool:
    pods = (item for item in case["objects"] if item["kind"] == "Pod" and item["metadata"]["name"] == case["pod"])
    return any(pod["spec"].get("volumes") for pod in pods)


def differences(expected: Case, found: Case) -> Iterator[str]:
    """A line for everything in which an answer differs from the recorded one; the choice of preemption is compared elsewhere."""
    for name in sorted(expected["nodes"].keys() | found["nodes"].keys()):
        wanted, got = _comparable(expected["nodes"].get(name)), _comparable(found["nodes"].get(name))
        for key in sorted(wanted.keys() | got.keys()):
            if wanted.get(key) != got.get(key):
                yield f"node {name}: {key}: expected {wanted.get(key)}, found {got.get(key)}"
    for key in ("best", "message", "preFilterMessage", "error", "unschedulablePlugins"):
        if expected.get(key) != found.get(key):
            yield f"{key}: expected {expected.get(key)!r}, found {found.get(key)!r}"


def _comparable(node: Mapping[str, Any] | None) -> dict[str, Any]:
    """Reasons as a set: scalar resources come in the order of a Go map. A score of zero is as good as none."""
    if node is None:
        return {"code": "not evaluated"}
    values = dict(node)
    if "reasons" in values:
        values["reasons"] = sorted(values["reasons"])
    if "scores" in values:
        values["scores"] = {plugin: score for plugin, score in sorted(values["scores"].items()) if score}
    return values
