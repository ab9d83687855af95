"""How much work one pod may cause: it grows with what the pod says, added up, never with one part of it times another."""

from __future__ import annotations

from typing import Any

import pytest

from placewright.cluster.cluster import Cluster
from placewright.cluster.labels import LabelColumn

from .makers import PodMaker, World, node, pod

ACTIONS = ["DoNotSchedule", "ScheduleAnyway"]
POLICIES: list[dict[str, str]] = [{}, {"nodeTaintsPolicy": "Honor"}, {"nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor"}]


def demanding(constraints: int, terms: int, action: str, policies: list[dict[str, str]], operator: str = "DoesNotExist") -> PodMaker:
    """A pod with so many spread constraints, each over a label of its own, and so many terms of required node affinity."""
    maker = pod("p")
    maker._spec["topologySpreadConstraints"] = [
        {"maxSkew": 1, "topologyKey": f"k{i}", "whenUnsatisfiable": action, **policies[i % len(policies)]} for i in range(constraints)
    ]
    selector = [{"matchExpressions": [{"key": f"l{i}", "operator": operator}]} for i in range(terms)]
    maker._spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": selector}}}
    maker._spec["tolerations"] = [{"key": f"t{i}", "operator": "Exists"} for i in range(terms)]
    return maker


def label_reads(monkeypatch: pytest.MonkeyPatch, maker: PodMaker, *, labelled: bool = True) -> int:
    """How often label columns are read until the pod is decided, whatever comes of it."""
    labels: dict[str, Any] = {f"k{i}": "v" for i in range(60)} if labelled else {}
    world = World().nodes(*(node(f"n{i}").labels(**labels) for i in range(3))).pods(maker)
    reads, original = [0], Cluster.label

    def counted(cluster: Cluster, key: str) -> LabelColumn:
        reads[0] += 1
        return original(cluster, key)

    with monkeypatch.context() as patch:
        patch.setattr(Cluster, "label", counted)
        binding = world.decide()
    if binding is not None:
        binding.close()
    return reads[0]


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("policies", [[each] for each in POLICIES] + [POLICIES])
@pytest.mark.parametrize("fits", [True, False])
@pytest.mark.parametrize("labelled", [True, False])
def test_a_pods_node_affinity_is_not_evaluated_once_for_each_of_its_spread_constraints(
    monkeypatch: pytest.MonkeyPatch, action: str, policies: list[dict[str, str]], fits: bool, labelled: bool
) -> None:
    def reads(constraints: int, terms: int) -> int:
        maker = demanding(constraints, terms, action, policies, "DoesNotExist" if fits else "Exists")
        return label_reads(monkeypatch, maker, labelled=labelled)

    few, more_constraints, more_terms, both = reads(3, 5), reads(60, 5), reads(3, 200), reads(60, 200)
    assert more_terms >= few + 195, "or this counts nothing"
    assert both <= more_constraints + more_terms
