"""Golden cases: a cluster, a pod and a configuration in each line of JSON, to compare answers with kube-scheduler's."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from placewright.api.bad_input import InputError, bad_field
from placewright.api.profile import default_profile
from placewright.framework.registry import Registry
from placewright.framework.status import Code
from placewright.offline.world import offline_evaluator, world_from
from placewright.profiles.config import read_profiles
from placewright.profiles.resolve import resolve
from placewright_lab.simulation.evaluation import NodeVerdict, Verdict, evaluate_pod


def read_cases(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the cases of a `.jsonl` or `.jsonl.gz` file, in order. Raises `InputError` with the line of a fault."""
    opener = gzip.open if path.suffix == ".gz" else open
    number = 0
    try:
        with opener(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield _case(line, f"{path}:{number}")
    except UnicodeDecodeError as problem:
        raise bad_field(f"{path}:{number + 1}", f"the byte 0x{problem.object[problem.start]:02x}", "text in UTF-8") from None
    except (EOFError, zlib.error) as problem:
        raise InputError(f"{path}: cannot be unpacked: {problem}") from None
    except OSError as problem:
        raise InputError(f"{path}: cannot be read: {problem.strerror or problem}") from None


def _case(line: str, where: str) -> dict[str, Any]:
    try:
        case: dict[str, Any] = msgspec.json.decode(line)  # refuses half surrogates, which no terminal could show
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError) as problem:
        raise bad_field(where, str(problem), "one JSON object a line") from None
    for key, kind in (("id", str), ("objects", list), ("namespace", str), ("pod", str)):
        if not isinstance(case, dict) or not isinstance(case.get(key), kind):
            raise bad_field(f"{where}: {key}", case.get(key) if isinstance(case, dict) else case, f"a {kind.__name__}")
    return case


def answer(case: Mapping[str, Any], registry: Registry) -> dict[str, Any]:
    """Evaluate a case. The result has `id` and the keys of a golden case's `expect`."""
    where = case["id"]
    world = world_from(case["objects"], where)
    pod = world.pending.get(f"{case['namespace']}/{case['pod']}")
    if pod is None:
        raise bad_field(f"{where}: pod", f"{case['namespace']}/{case['pod']}", "a pod among the objects that is on no node")
    config = case.get("config")
    profile = read_profiles(config, where)[0] if config else default_profile()
    evaluator = offline_evaluator(resolve(profile, registry), registry, world.cluster)
    return {"id": case["id"], **as_expectation(evaluate_pod(evaluator, world.cluster, pod))}


def as_expectation(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict under the key names of the golden cases, without empty keys."""
    if verdict.gated:
        return {"nodes": {}, "error": f"gated: {verdict.gated}", "preFilterMessage": verdict.gated}
    values: dict[str, Any] = {
        "best": list(verdict.best),
        "message": verdict.message,
        "preFilterMessage": verdict.prefilter_message,
        "nominatedNode": verdict.nominated_node,
        "victims": list(verdict.victims),
        "unschedulablePlugins": list(verdict.unschedulable_plugins),
        "error": verdict.error,
    }
    return {"nodes": {node.node: _node(node) for node in verdict.nodes}, **{key: value for key, value in values.items() if value}}


def _node(verdict: NodeVerdict) -> dict[str, Any]:
    if verdict.code is not Code.SUCCESS:
        blamed = {"plugin": verdict.plugin} if verdict.plugin else {}
        return {"code": verdict.code.value, **blamed, "reasons": list(verdict.reasons)}
    scores = {plugin: score.product for plugin, score in verdict.scores.items()}
    return {"code": verdict.code.value, "scores": scores, "total": verdict.total}
