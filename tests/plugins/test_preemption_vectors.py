"""What kube-scheduler itself preempted, nominated and said, case by case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from placewright.api.profile import SchedulingProfile
from placewright.plugins.catalog import in_tree
from placewright.profiles.config import read_profiles
from placewright.profiles.defaults import DEFAULT_PLUGINS
from placewright.profiles.resolve import resolve
from placewright.simulate.cases import read_cases
from placewright.simulate.world import offline_evaluator, world_from
from plugins.preemption_ties import cheapest

VECTORS: Final = Path(__file__).parents[3] / "shared" / "vectors" / "kube-scheduler-1.36.2.jsonl.gz"
REGISTRY: Final = in_tree()
VOLUME_PLUGINS: Final = frozenset({"VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone"})


def cases() -> Iterator[Any]:
    """Cases in which nothing fits: only then is there something to preempt or to say."""
    if not VECTORS.exists():
        yield pytest.param({}, id="none", marks=pytest.mark.skip(reason="the golden vectors are not beside this checkout"))
        return
    for case in read_cases(VECTORS):
        if "message" in case["expect"]:
            lacking = sorted(plugins_needed(case) & set(DEFAULT_PLUGINS) - set(REGISTRY))
            marks = [pytest.mark.skip(reason=f"needs {', '.join(lacking)}, which this version lacks")] if lacking else []
            yield pytest.param(case, id=case["id"], marks=marks)


def plugins_needed(case: Mapping[str, Any]) -> set[str]:
    """Plugins that could decide in this case."""
    pods = [item for item in case["objects"] if item["kind"] == "Pod"]
    target = next(item["spec"] for item in pods if item["metadata"]["name"] == case["pod"])
    needed = {node.get("plugin", "") for node in case["expect"]["nodes"].values()} | set(configured(case.get("config") or {}))
    if target.get("topologySpreadConstraints"):
        needed.add("PodTopologySpread")
    repelling = [item["spec"].get("affinity", {}).get("podAntiAffinity", {}) for item in pods]
    attracting = target.get("affinity", {}).get("podAffinity", {})
    if any(term.get("requiredDuringSchedulingIgnoredDuringExecution") for term in (*repelling, attracting)):
        needed.add("InterPodAffinity")
    if target.get("volumes"):
        needed |= VOLUME_PLUGINS
    return needed


def configured(config: Mapping[str, Any]) -> Iterator[str]:
    for profile in config.get("profiles") or ():
        yield from (entry["name"] for entry in profile.get("pluginConfig") or ())
        for point in (profile.get("plugins") or {}).values():
            yield from (entry["name"] for entry in point.get("enabled") or ())


@pytest.mark.parametrize("case", list(cases()))
def test_preemption_agrees_with_kube_scheduler(case: Mapping[str, Any]) -> None:
    expected = case["expect"]
    world = world_from(case["objects"], case["id"])
    pod = world.pending[f"{case['namespace']}/{case['pod']}"]
    profile = read_profiles(case["config"], case["id"])[0] if case.get("config") else SchedulingProfile()
    evaluator = offline_evaluator(resolve(profile, REGISTRY), REGISTRY, world.cluster)
    evaluation = evaluator.evaluate(pod)
    diagnosis = evaluator.diagnose(evaluation)
    result = evaluator.runtime.run_post_filter(evaluation.state, pod, diagnosis)
    assert expected["message"].partition(". ")[2] == result.status.message
    if "nominatedNode" not in expected:
        assert not result.nominated_node
        return
    best = cheapest(evaluator, world.cluster, pod, diagnosis)
    assert result.nominated_node in best
    assert best[expected["nominatedNode"]] == expected["victims"]
    assert sorted(victim.key for victim in result.victims) == best[result.nominated_node]
