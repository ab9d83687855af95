"""Which collections are reflected on which API server, and what is said about those that are not."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from placewright.api.decode import convert
from placewright.api.workloads import PodDisruptionBudget
from placewright.engine.discovery import Discovery, Shortfall, reflected_core
from placewright.kube.discovery import REFLECTED, ServedResources, upgraded_budget
from placewright.kube.reflector import Source
from placewright.kube.serverversion import ServerVersion

EVERYTHING = {(row.wanted.group, row.wanted.resource): [row.wanted.versions[0]] for row in REFLECTED}
OLD = EVERYTHING | {("policy", "poddisruptionbudgets"): ["v1beta1"]}
NONE = {key: versions for key, versions in EVERYTHING.items() if key[0] != "policy"}


def sources(served: dict[tuple[str, str], list[str]]) -> list[Source[Any]]:
    """What is reflected on a server that serves this; nothing is asked."""
    nobody: Any = Mock()
    reflectors = reflected_core(nobody, nobody, lambda: None)
    Discovery(nobody, nobody, reflectors, 3600.0).adopt(Shortfall(None, ServedResources(served)))
    return [each.source for each in reflectors.members]


def paths(served: dict[tuple[str, str], list[str]]) -> list[str]:
    return [each.path for each in sources(served)]


def budget(spec: dict[str, Any]) -> PodDisruptionBudget:
    return convert({"metadata": {"name": "b", "uid": "1"}, "spec": spec, "status": {"disruptionsAllowed": 1}}, PodDisruptionBudget)


@pytest.mark.parametrize(
    ("served", "path"),
    [(EVERYTHING, "/apis/policy/v1/poddisruptionbudgets"), (OLD, "/apis/policy/v1beta1/poddisruptionbudgets"), (NONE, None)],
)
def test_budgets_are_read_where_they_are_served(served: dict[tuple[str, str], list[str]], path: str | None) -> None:
    assert [each for each in paths(served) if "policy" in each] == ([path] if path else [])


def test_a_server_that_serves_nothing_we_know_still_has_nodes_and_pods() -> None:
    assert paths({}) == ["/api/v1/nodes", "/api/v1/pods"]


def test_nothing_lacks_on_a_new_server() -> None:
    assert str(Shortfall(ServerVersion(36), ServedResources(EVERYTHING))) == "API server: Kubernetes 1.36; lacks nothing"


def test_what_an_old_server_lacks_is_one_line() -> None:
    line = str(Shortfall(ServerVersion(20), ServedResources(OLD)))
    assert line.startswith("API server: Kubernetes 1.20; poddisruptionbudgets.policy in v1beta1; drops from pods namespaceSelector")
    assert "schedulingGates (1.26), resourceClaims (1.26)" in line
    assert "created anew" in line
    assert "\n" not in line


def test_the_plugin_that_sees_nothing_is_named() -> None:
    shortfall = Shortfall(ServerVersion(36), ServedResources(NONE))
    assert shortfall.lacking
    line = "API server: Kubernetes 1.36; no poddisruptionbudgets.policy in v1 or v1beta1: DefaultPreemption sees none"
    assert str(shortfall) == line


GROUPS = {key: versions for key, versions in EVERYTHING.items() if key[1] in ("podgroups", "compositepodgroups", "workloads")}
UNGROUPED = {key: versions for key, versions in EVERYTHING.items() if key not in GROUPS}


def test_a_server_with_no_way_to_declare_groups_says_so_in_one_calm_line() -> None:
    shortfall = Shortfall(ServerVersion(34), ServedResources(UNGROUPED))
    assert not shortfall.lacking, "nothing to warn of"
    assert str(shortfall) == (
        "API server: Kubernetes 1.34; none of podgroups.scheduling.x-k8s.io, podgroups.scheduling.k8s.io, "
        "compositepodgroups.scheduling.k8s.io, workloads.scheduling.k8s.io, podgroups.scheduling.volcano.sh: GangScheduling sees none"
    )


@pytest.mark.parametrize("group", list(GROUPS))
def test_one_way_to_declare_groups_is_enough(group: tuple[str, str]) -> None:
    line = str(Shortfall(ServerVersion(36), ServedResources({**UNGROUPED, group: GROUPS[group]})))
    assert line == "API server: Kubernetes 1.36; lacks nothing"


@pytest.mark.parametrize("version", ["v1alpha2", "v1alpha3", "v1beta1"])
def test_native_groups_are_read_in_whatever_version_is_served(version: str) -> None:
    served = {("scheduling.k8s.io", "podgroups"): [version], ("scheduling.k8s.io", "workloads"): [version]}
    assert [path for path in paths(served) if "scheduling" in path] == [f"/apis/scheduling.k8s.io/{version}/podgroups"]


def test_a_workload_is_read_only_where_its_groups_stand_in_it() -> None:
    assert "/apis/scheduling.k8s.io/v1alpha1/workloads" in paths({("scheduling.k8s.io", "workloads"): ["v1alpha1"]})


def test_a_group_without_an_answer_is_named() -> None:
    line = str(Shortfall(None, ServedResources(NONE, ("policy/v1",))))
    assert line.startswith("API server: of unknown version; no poddisruptionbudgets.policy")
    assert "no answer about policy/v1" in line


def test_an_empty_selector_means_no_pod_in_v1beta1_and_every_pod_in_v1() -> None:
    new, old = ([each for each in sources(served) if "policy" in each.path] for served in (EVERYTHING, OLD))
    assert new[0].upgrade is None
    assert old[0].upgrade is not None
    for empty in ({}, {"matchLabels": {}}, {"matchLabels": {}, "matchExpressions": []}):
        upgraded = old[0].upgrade(budget({"selector": empty}))
        assert upgraded.spec.selector is None
        assert (upgraded.metadata.uid, upgraded.status.disruptions_allowed) == ("1", 1)


@pytest.mark.parametrize("spec", [{}, {"selector": {"matchLabels": {"app": "web"}}}, {"selector": {"matchExpressions": [{"key": "a"}]}}])
def test_any_other_selector_means_the_same_in_both_versions(spec: dict[str, Any]) -> None:
    assert upgraded_budget(budget(spec)) == budget(spec)
