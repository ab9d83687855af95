"""Configurations as kube-scheduler 1.36 writes them itself (`--write-config-to`): every field of its own is there, empty or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.plugins.catalog import in_tree
from placewright.profiles.config import read_profiles
from placewright.profiles.kubescheduler.findings import ConversionFinding, Loss
from placewright.profiles.kubescheduler.reader import convert
from placewright.profiles.problem import ProfileError
from placewright.profiles.resolve import resolve
from placewright.profiles.validation import check_file

PLUGINS = in_tree()
#: Every extension point of kube-scheduler 1.36.
POINTS = (
    "bind", "filter", "multiPoint", "permit", "placementGenerate", "placementScore", "postBind", "postFilter", "preBind", "preEnqueue",
    "preFilter", "preScore", "queueSort", "reserve", "score",
)  # fmt: skip
GENERATOR, PODS_COUNT = "TopologyPlacementGenerator", "PodGroupPodsCount"


def written(**plugins: Any) -> str:
    """A file with every field that kube-scheduler writes, and these plugin sets."""
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"acceptContentTypes": "", "burst": 100, "contentType": "application/json", "kubeconfig": "", "qps": 50},
        "enableContentionProfiling": True,
        "enableProfiling": True,
        "leaderElection": {
            "leaderElect": True, "leaseDuration": "15s", "renewDeadline": "10s", "resourceLock": "leases", "resourceName": "kube-scheduler",
            "resourceNamespace": "kube-system", "retryPeriod": "2s",
        },
        "parallelism": 16,
        "percentageOfNodesToScore": 0,
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 10,
        "profiles": [{"schedulerName": "default-scheduler", "plugins": {point: {} for point in POINTS} | plugins}],
    }  # fmt: skip
    return yaml.safe_dump(document)


def on(*refs: str | tuple[str, int]) -> dict[str, Any]:
    return {"enabled": [{"name": ref, "weight": 0} if isinstance(ref, str) else {"name": ref[0], "weight": ref[1]} for ref in refs]}


def off(*names: str) -> dict[str, Any]:
    return {"disabled": [{"name": name} for name in names]}


def effect(text: str) -> ResolvedProfile:
    (profile,) = convert(text, "", PLUGINS).profiles
    return resolve(profile, PLUGINS)


def said(text: str) -> Mapping[str, ConversionFinding]:
    return {finding.text.partition(":")[0]: finding for finding in convert(text, "", PLUGINS).findings}


def test_every_field_that_kube_scheduler_writes_is_taken_and_places_as_the_default_profile() -> None:
    plain = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    assert effect(written()) == effect(plain)
    assert check_file(written(), "scheduler.yaml", PLUGINS).findings == ()


def test_what_is_empty_is_not_spoken_of() -> None:
    assert not [path for path in (str(each) for each in said(written()).values()) if "placement" in path or "acceptContentTypes" in path]


def test_what_has_no_counterpart_is_named_and_changes_no_placement() -> None:
    findings = convert(written(), "", PLUGINS).findings
    assert {finding.path for finding in findings} >= {"parallelism", "leaderElection.leaseDuration", "clientConnection.contentType"}
    assert Loss.PLACEMENT not in [finding.loss for finding in findings]


@pytest.mark.parametrize(
    "plugins",
    [
        {"multiPoint": on("GangScheduling", GENERATOR, (PODS_COUNT, 1))},
        {"placementGenerate": on(GENERATOR), "placementScore": on((PODS_COUNT, 1), ("NodeResourcesFit", 1))},
        {"placementGenerate": on(GENERATOR) | off("*"), "placementScore": on(PODS_COUNT)},
    ],
)
def test_plugins_that_place_groups_are_left_out_and_said(plugins: dict[str, Any]) -> None:
    text = written(**plugins)
    assert effect(text) == effect(written())
    assert {name: said(text)[name].loss for name in (GENERATOR, PODS_COUNT)} == {GENERATOR: Loss.SETTING, PODS_COUNT: Loss.SETTING}
    (profile,) = read_profiles(text, "")
    assert resolve(profile, PLUGINS) == effect(written())


def test_a_score_of_groups_that_is_off_is_off_here() -> None:
    for plugins in ({"multiPoint": off(PODS_COUNT)}, {"placementScore": off(PODS_COUNT)}, {"placementScore": off("*")}):
        assert effect(written(**plugins)) == effect(written())


@pytest.mark.parametrize(
    ("plugins", "path", "what_to_do"),
    [
        ({"placementGenerate": on("Racks")}, "placementGenerate.enabled[0].name", GENERATOR),
        ({"placementGenerate": off(GENERATOR)}, "placementGenerate.disabled[0].name", "leave it out of the PodGroups"),
        ({"placementGenerate": off("*")}, "placementGenerate.disabled[0].name", "leave it out of the PodGroups"),
        ({"multiPoint": off("ImageLocality", GENERATOR)}, "multiPoint.disabled[1].name", "leave it out of the PodGroups"),
        ({"placementScore": on((PODS_COUNT, 5))}, "placementScore.enabled[0].weight", "leave the weight out"),
        ({"placementScore": on(PODS_COUNT, ("NodeResourcesFit", 2))}, "placementScore.enabled[1].weight", "leave the weight out"),
        ({"placementScore": on("Racks")}, "placementScore.enabled[0].name", "leave the plugin out"),
        ({"multiPoint": on((PODS_COUNT, 3))}, "multiPoint.enabled[0].weight", "leave the weight out"),
    ],
)
def test_what_would_place_groups_differently_is_refused_with_what_to_do(plugins: dict[str, Any], path: str, what_to_do: str) -> None:
    for read in (lambda text: convert(text, "", PLUGINS), lambda text: read_profiles(text, "")):
        with pytest.raises(ProfileError) as refused:
            read(written(**plugins))
        (problem,) = refused.value.problems
        assert problem.path == f"profiles[0].plugins.{path}"
        assert what_to_do in problem.allowed
    (finding,) = check_file(written(**plugins), "scheduler.yaml", PLUGINS).findings
    assert finding.problem.path == f"profiles[0].plugins.{path}"


def test_a_profile_that_names_them_itself_is_told_what_does_their_work() -> None:
    manifest = {
        "apiVersion": "placewright.dev/v1alpha1", "kind": "SchedulingProfile", "metadata": {"name": "batch"},
        "spec": {"schedulerName": "batch", "plugins": {"multiPoint": on(GENERATOR, PODS_COUNT)}},
    }  # fmt: skip
    (profile,) = read_profiles(manifest, "")
    with pytest.raises(ProfileError) as refused:
        resolve(profile, PLUGINS)
    assert ["GangScheduling" in problem.allowed for problem in refused.value.problems] == [True, True]
