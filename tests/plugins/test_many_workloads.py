"""What a decision of the pairwise plugins touches does not grow with the workloads that do not concern the pod."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import numpy as np
import pytest
from pairwise import build
from pairwise_worlds import Body, info

from placewright.api.objects import Node
from placewright.api.pods import PodInfo
from placewright.api.selectors import CompiledRequirement
from placewright.cluster.cluster import Cluster
from placewright.cluster.selectorindex import SelectorIndex
from placewright.cluster.tally import Tally
from placewright.framework.interface import CycleState
from placewright.framework.status import Code
from placewright.plugins.domainlimit.plugin import DomainLimit
from placewright.plugins.interpodaffinity.plugin import InterPodAffinity
from placewright.plugins.podtopologyspread.plugin import PodTopologySpread

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
NODES = 60
FEW, MANY = 20, 2000
NAMESPACES = 5


def term(key: str, labels: Body) -> Body:
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}}


def limit(key: str, mode: str) -> Body:
    selector = {"matchExpressions": [{"key": "instance", "operator": "Exists"}]}
    return {"selector": selector, "matchLabelKeys": ["instance"], "topologyKey": key, "max": 2, "mode": mode}


def spread(key: str, action: str, labels: Body) -> Body:
    return {"maxSkew": 5, "topologyKey": key, "whenUnsatisfiable": action, "labelSelector": {"matchLabels": labels}}


def soft(labels: Body) -> Body:
    """What charts ship."""
    preferred = [{"weight": 1, "podAffinityTerm": term(HOST, labels)}]
    return {
        "topologySpreadConstraints": [spread(ZONE, "ScheduleAnyway", labels)],
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}},
    }


def hard(labels: Body) -> Body:
    return {"topologySpreadConstraints": [spread(key, "DoNotSchedule", labels) for key in (ZONE, HOST)]}


def required(labels: Body) -> Body:
    apart = {"requiredDuringSchedulingIgnoredDuringExecution": [term(HOST, labels)]}
    together = {"requiredDuringSchedulingIgnoredDuringExecution": [term(ZONE, labels)]}
    return {"affinity": {"podAntiAffinity": apart, "podAffinity": together}}


SPECS: tuple[Callable[[Body], Body], ...] = (soft, hard, required)


def member(which: int, number: int, spec: Callable[[Body], Body], **more: str) -> Body:
    """A pod of one of many workloads. What all of them have in common comes first, as in charts that sort their labels."""
    own = {"component": "server", "instance": f"i{which}"}
    meta = {"name": f"{which}-{number}", "uid": f"{which}-{number}", "namespace": f"ns{which % NAMESPACES}", "labels": own | more}
    return {"metadata": meta, "spec": spec(own)}


class Place:
    """A cluster and the plugins. DomainLimit counts each workload by itself, on a node and in a zone."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.plugins = [build(kind, self.cluster) for kind in (InterPodAffinity, PodTopologySpread)]
        self.plugins.append(build(DomainLimit, self.cluster, {"limits": [limit(HOST, "Required"), limit(ZONE, "Preferred")]}))
        for number in range(NODES):
            labels = {ZONE: f"z{number % 3}", HOST: f"n{number}"}
            self.cluster.set_node(msgspec.convert({"metadata": {"name": f"n{number}", "labels": labels}}, Node))

    def run(self, pod: Body, on: int) -> None:
        """A pod runs on a node."""
        self.cluster.set_pod(info(pod | {"spec": pod["spec"] | {"nodeName": f"n{on % NODES}"}}))

    def decide(self, pod: PodInfo) -> None:
        """As the framework asks the plugins about a pod."""
        rows = self.cluster.rows()
        for plugin in self.plugins:
            state = CycleState()
            if plugin.pre_filter(state, pod, self.cluster).status.code is not Code.SKIP:
                plugin.fingerprint(state, self.cluster)
                plugin.filter(state, pod, self.cluster, rows)
            if plugin.pre_score(state, pod, self.cluster, rows).code is not Code.SKIP:
                plugin.score(state, pod, self.cluster, rows)


@contextmanager
def counted(patch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """How many requirements are compared, selectors met and rows read meanwhile."""
    touched: Counter[str] = Counter()
    matches, met, taken = CompiledRequirement.matches, SelectorIndex._met, Tally.taken

    def count_matches(self: CompiledRequirement, value: str | None) -> bool:
        touched["requirements"] += 1
        return matches(self, value)

    def count_met(self: SelectorIndex[Any], namespace: str, labels: Any) -> Any:
        buckets = met(self, namespace, labels)
        touched["selectors"] += sum(len(bucket.items) for bucket in buckets)
        return buckets

    def count_rows(self: Tally) -> Any:
        found = taken(self)
        touched["rows"] += len(found.rows)
        return found

    with patch.context() as inside:
        inside.setattr(CompiledRequirement, "matches", count_matches)
        inside.setattr(SelectorIndex, "_met", count_met)
        inside.setattr(Tally, "taken", count_rows)
        yield touched


def touched_with(workloads: int, spec: Callable[[Body], Body], patch: pytest.MonkeyPatch) -> list[Counter[str]]:
    """In decisions about a pod whose like was not seen yet, about the next one, and about one of a workload that is new."""
    place = Place()
    for which in range(workloads):
        for number in range(3):
            place.run(member(which, number, spec), 7 * which + number)
    found = []
    for which, number in ((7, 3), (7, 4), (workloads, 0), (workloads, 1)):
        with counted(patch) as touched:
            pod = member(which, number, spec)
            place.decide(info(pod))
            place.run(pod, 11 * which + number)
        found.append(touched)
    return found


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.__name__)
def test_a_decision_touches_as_much_with_many_workloads_as_with_few(spec: Callable[[Body], Body], monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = (touched_with(workloads, spec, monkeypatch) for workloads in (FEW, MANY))
    assert few == many
    assert all(sum(each.values()) for each in few), "something was counted"


def touched_by_arrivals(workloads: int, spec: Callable[[Body], Body], patch: pytest.MonkeyPatch) -> list[Counter[str]]:
    place, found = Place(), []
    for which in range(workloads):
        place.run(member(which, 0, spec), which)
    for which in range(workloads, workloads + 6 * NAMESPACES, NAMESPACES):  # all in the same one
        with counted(patch) as touched:
            pod = member(which, 0, spec)
            place.decide(info(pod))
            place.run(pod, which)
        found.append(touched)
    return found


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.__name__)
def test_while_workloads_keep_arriving_each_costs_the_same(spec: Callable[[Body], Body], monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = (touched_by_arrivals(workloads, spec, monkeypatch) for workloads in (FEW, MANY))
    assert few == many
    assert len({tuple(sorted(each.items())) for each in few[2:]}) == 1, "the sixth costs what the third did"


def touched_by_members(members: int, spec: Callable[[Body], Body], patch: pytest.MonkeyPatch) -> list[Counter[str]]:
    """In decisions about members of a StatefulSet, each with labels that no other pod has, after the first."""
    place, found = Place(), []
    for number in range(members):
        place.run(member(0, number, spec, **{"apps.kubernetes.io/pod-index": str(number)}), 7)
    for number in range(members, members + 4):
        pod = member(0, number, spec, **{"apps.kubernetes.io/pod-index": str(number)})
        with counted(patch) as touched:
            place.decide(info(pod))
            place.run(pod, 11)
        found.append(touched)
    return found[1:]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.__name__)
def test_a_member_of_a_stateful_set_costs_the_same_however_many(spec: Callable[[Body], Body], monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = (touched_by_members(members, spec, monkeypatch) for members in (FEW, MANY))
    assert few == many
    assert np.all([sum(each.values()) for each in few])
