"""How much work one pod may cause: it grows with what the pod says, added up, never with one part of it times another."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from placewright.api import selectors
from placewright.api import tolerations as module
from placewright.api.objects import Taint, Toleration
from placewright.api.pods import HostPort
from placewright.api.requests import pod_requests
from placewright.api.tolerations import TolerationSet
from placewright.cluster.cluster import Cluster
from placewright.cluster.labels import LabelColumn
from placewright.cluster.pairwisecounts import PairwiseCounts
from placewright.plugins.nodeaffinity import NodeAffinity
from placewright.plugins.nodeports import ClaimedPorts
from placewright.queue.queued import SubQueue

from .makers import PodMaker, World, node, pod

ACTIONS = ["DoNotSchedule", "ScheduleAnyway"]
POLICIES: list[dict[str, str]] = [{}, {"nodeTaintsPolicy": "Honor"}, {"nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor"}]


def demanding(constraints: int, terms: int, action: str, policies: list[dict[str, str]], operator: str = "DoesNotExist") -> PodMaker:
    """A pod with so many spread constraints, each over a label of its own, and so many terms of required node affinity."""
    spread = [
        {"maxSkew": 1, "topologyKey": f"k{i}", "whenUnsatisfiable": action, **policies[i % len(policies)]} for i in range(constraints)
    ]
    selector = [{"matchExpressions": [{"key": f"l{i}", "operator": operator}]} for i in range(terms)]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": selector}}}
    tolerations = [{"key": f"t{i}", "operator": "Exists"} for i in range(terms)]
    return pod("p").spec(topologySpreadConstraints=spread, affinity=affinity, tolerations=tolerations)


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


# --- each with each ----------------------------------------------------------------------------------------------------------------


def counted(monkeypatch: pytest.MonkeyPatch, owner: object, name: str, act: Callable[[], object]) -> int:
    """How often a function is called while something is done."""
    calls, original = [0], getattr(owner, name)

    def counting(*args: Any, **more: Any) -> Any:
        calls[0] += 1
        return original(*args, **more)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, counting)
        act()
    return calls[0]


def test_a_taint_costs_the_same_however_many_tolerations_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    taints = [Taint(key=f"t{i}", value="x", effect="NoSchedule") for i in range(50)]

    def compared(tolerations: int) -> int:
        said = [Toleration(key=f"u{i}", value="x", operator="Equal") for i in range(tolerations)]
        return counted(monkeypatch, module, "tolerates", lambda: [TolerationSet(said).covers(taint) for taint in taints])

    assert compared(1000) <= compared(8)


def test_two_pods_host_ports_are_not_compared_each_with_each() -> None:
    mine = [HostPort("TCP", i, "0.0.0.0") for i in range(1, 2000)]
    held = ClaimedPorts(mine)
    assert not held.conflict_with([HostPort("TCP", 2000 + i, "1.2.3.4") for i in range(2000)])
    assert held.conflict_with([HostPort("UDP", 1999, "1.2.3.4"), HostPort("TCP", 1999, "1.2.3.4")])
    assert len(held._addresses) == len(mine)


def test_a_sidecar_costs_the_same_however_many_there_were_before_it() -> None:
    def reads(sidecars: int) -> int:
        maker = pod("p")
        for i in range(sidecars):
            maker = maker.sidecar(f"s{i}", **{f"example.com/r{i}": "1"})
        spec = maker.build().pod.spec
        steps = [0]

        def counting(frame: Any, event: str, _arg: object) -> Any:
            steps[0] += event == "line"
            return counting

        sys.settrace(counting)
        try:
            pod_requests(spec)
        finally:
            sys.settrace(None)
        return steps[0]

    assert reads(200) <= 2.2 * reads(100)


def test_a_change_of_a_node_compiles_no_term_of_a_waiting_pod_that_does_not_match(monkeypatch: pytest.MonkeyPatch) -> None:
    maker = demanding(0, 300, "DoNotSchedule", [{}], "Exists")
    world = World().nodes(node("n0")).pods(maker)
    assert world.decide() is None
    compiled = counted(monkeypatch, selectors, "compile_node_term", lambda: world.nodes(node("n1"), node("n0").labels(other="x")))
    assert compiled == 0
    world.nodes(node("n0").labels(l299="x"))
    assert world.place("p") is SubQueue.BACKOFF


async def test_preemption_asks_about_a_nodes_labels_once_however_many_pods_are_let_back(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = [0]
    original = NodeAffinity.filter

    def counting(plugin: NodeAffinity, state: Any, pod: Any, cluster: Cluster, rows: Any) -> Any:
        asked[0] += len(rows)
        return original(plugin, state, pod, cluster, rows)

    def rows_asked(pods_a_node: int) -> int:
        asked[0] = 0
        world = World().nodes(*(node(f"n{i}").offers(cpu="10", pods="110") for i in range(6)))
        for index in range(6 * pods_a_node):
            world.pods(pod(f"low-{index}").requests(cpu=f"{10_000 // pods_a_node}m").on(f"n{index % 6}"))
        maker = demanding(0, 5, "DoNotSchedule", [{}]).requests(cpu="1")
        assert world.pods(maker.priority(100)).decide() is None
        assert world.queue.nominator.node_of("uid-p") is not None
        return asked[0]

    monkeypatch.setattr(NodeAffinity, "filter", counting)
    assert 0 < rows_asked(50) <= rows_asked(5)


def test_what_pods_on_nodes_want_costs_a_newcomer_a_column_for_each_label_however_many_weights_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def tallies_read(weights: int) -> int:
        world = World().nodes(*(node(f"n{i}") for i in range(3)))
        for index in range(weights):
            term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}, "namespaceSelector": {}}
            nowhere = {**term, "topologyKey": f"nowhere-{index}"}
            preferred = [{"weight": 1 + index, "podAffinityTerm": each} for each in (term, nowhere)]
            affinity = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
            world.pods(pod(f"standing-{index}").on(f"n{index % 3}").spec(affinity=affinity))
        world.pods(pod("newcomer"))
        found = counted(monkeypatch, PairwiseCounts, "tally", lambda: close(world.decide()))
        assert world.cluster.placement("uid-newcomer") is not None
        return found

    assert 0 < tallies_read(90) <= tallies_read(10)


def close(binding: Any) -> None:
    if binding is not None:
        binding.close()
