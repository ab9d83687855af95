"""The examples of groups, and the definition that comes for clusters without one: valid, and what they say they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kubesandbox.definitions.definitions import read_definitions
from placewright.api.decode import convert
from placewright.api.podgroups import GROUP_LABEL, CoschedulingPodGroup

from .schemas import ROOT, defined, problems

Manifest = dict[str, Any]
EXAMPLES = ROOT / "manifests" / "examples" / "gangs"
FILES = sorted(EXAMPLES.glob("*.yaml"))
PLURAL = "podgroups"


def documents(file: Path) -> list[Manifest]:
    return list(yaml.safe_load_all(file.read_text()))


def known(manifest: Manifest) -> bool:
    """The schemas at hand are of Kubernetes without its own PodGroup."""
    return not manifest["apiVersion"].startswith("scheduling.k8s.io/") and "schedulingGroup" not in manifest["spec"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.stem))
def test_the_examples_are_valid(file: Path) -> None:
    found = [each for each in documents(file) if known(each)]
    assert [list(problems(each)) for each in found] == [[]] * len(found)


@pytest.mark.parametrize("file", [file for file in FILES if file.stem not in ("native", "tree")], ids=lambda file: str(file.stem))
def test_a_workload_of_an_example_names_the_group_beside_it_and_has_as_many_pods(file: Path) -> None:
    group, workload = documents(file)
    labels = workload["spec"]["template"]["metadata"]["labels"]
    assert labels[GROUP_LABEL] == group["metadata"]["name"]
    assert workload["spec"].get("parallelism", workload["spec"].get("replicas")) >= group["spec"]["minMember"]
    assert group["metadata"]["namespace"] == workload["metadata"]["namespace"]


def test_the_definition_takes_what_is_read_and_nothing_below_one() -> None:
    good = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": {"minMember": 2, "scheduleTimeoutSeconds": 5, "minResources": {"cpu": 1, "memory": "1Gi"}},
        "status": {"phase": "Running", "running": 2, "occupiedBy": "a/b", "scheduleStartTime": "2030-01-01T00:00:00Z"},
    }
    assert list(problems(good)) == []
    assert convert(good, CoschedulingPodGroup).status.running == 2
    assert [line for line in problems({**good, "spec": {"minMember": 0}}) if "minimum" in line]
    assert list(problems({**good, "spec": {"minMembers": 2}}))


def test_the_definition_is_not_applied_with_the_others() -> None:
    """It would replace that of scheduler-plugins on a cluster that has it."""
    (definition,) = read_definitions(ROOT / "crds" / "groups")
    assert definition["metadata"]["name"] == f"{PLURAL}.scheduling.x-k8s.io"
    assert not [each for each in read_definitions(ROOT / "crds") if PLURAL in each["metadata"]["name"]]
    resources = yaml.safe_load((ROOT / "crds" / "kustomization.yaml").read_text())["resources"]
    assert not [each for each in resources if "groups" in each]
    assert ("scheduling.x-k8s.io/v1alpha1", "PodGroup") in defined()
