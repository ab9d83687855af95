"""Whatever happens, nobody is forgotten: pods that wait when nothing is left to decide would fit nowhere, decided afresh."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from placewright import testing as kit
from placewright.framework.events import QueueingHint
from placewright_lab.simulation.scenario import Act, Happening, Scenario

from .histories import REGISTRY, SECONDS_A_STEP, GroupHistory, History, watched

STEPS = 40
#: By plugin, a history in which pods are woken by its hint alone.
FOUND = {
    "NodeResourcesFit": 2, "NodeAffinity": 0, "DynamicResources": 3, "NodePorts": 142, "PodTopologySpread": 83, "InterPodAffinity": 12,
    "VolumeBinding": 89,
}  # fmt: skip
KINDS = (
    "Pod", "Node", "Namespace", "Service", "PersistentVolume", "PersistentVolumeClaim", "CSINode", "ResourceSlice", "ResourceClaim"
)  # fmt: skip
NOT_SMALLER = (Phase.explicit, Phase.reuse, Phase.generate)  # a smaller seed makes no simpler history


@settings(max_examples=40, phases=NOT_SMALLER)
@given(seed=st.integers(0, 2**32), in_slices=st.booleans())
@example(seed=12, in_slices=False)  # a node goes with a pod that kept others out of its zone
@example(seed=32, in_slices=False)  # a namespace gets a label by which an affinity selects it
@example(seed=83, in_slices=True)  # a Service selects other pods, and default constraints count these
@example(seed=94, in_slices=False)  # a pod that counts in a constraint begins to leave
@example(seed=331339, in_slices=False)  # a pod's own label changes which pods count in its constraints
@example(seed=123, in_slices=False)  # a CSINode goes that said how many volumes the node takes
def test_whatever_happens_nobody_is_forgotten(seed: int, in_slices: bool) -> None:
    found = watched(History(seed).scenario(STEPS), in_slices=in_slices).found
    assert [(at, each.key, str(each)) for at, each in found] == []


@settings(max_examples=20, phases=NOT_SMALLER)
@given(seed=st.integers(0, 2**32), in_slices=st.booleans())
def test_whatever_happens_no_group_is_forgotten(seed: int, in_slices: bool) -> None:
    found = watched(GroupHistory(seed).scenario(STEPS), in_slices=in_slices).found
    assert [(at, each.key, str(each)) for at, each in found] == []


def test_the_histories_are_worth_watching() -> None:
    """Everything that placement reads comes, changes and goes, and many pods wait for all kinds of reasons."""
    seen: Counter[str] = Counter()
    looked: Counter[str] = Counter()
    for seed in range(20):
        history = History(seed)
        looked.update(watched(history.scenario(STEPS)).looked)
        seen += history.seen
    assert looked.keys() >= FOUND.keys()
    assert looked.total() > 500
    assert {f"{kind} {act}" for kind in KINDS for act in ("MODIFIED", "DELETED")} <= seen.keys()


def put_to_sleep(plugin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind: Any = REGISTRY[plugin]
    events = kind.events
    monkeypatch.setattr(kind, "events", lambda self: tuple(replace(each, hint=lambda *_: QueueingHint.SKIP) for each in events(self)))


@pytest.mark.parametrize(("plugin", "seed"), [*FOUND.items()])
def test_with_one_hint_asleep_its_pods_are_found_and_nobody_elses(plugin: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    put_to_sleep(plugin, monkeypatch)
    assert {found.plugin for _, found in watched(History(seed).scenario(STEPS)).found} == {plugin}


def test_with_the_hint_of_taints_asleep_its_pod_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Written out: in histories that are drawn, another plugin's hint nearly always wakes such a pod, too."""
    tainted, clean = (kit.node("n").offers(cpu="4", memory="8Gi", pods="10").version(version) for version in ("1", "2"))
    tainted = tainted.taint("busy", effect="NoSchedule")
    pod = kit.pod("web").scheduler("default-scheduler").requests(cpu="1")
    scenario = Scenario("taints", [tainted.manifest, pod.manifest], [Happening(SECONDS_A_STEP, Act.MODIFIED, clean.manifest)])
    assert watched(scenario).found == []
    put_to_sleep("TaintToleration", monkeypatch)
    assert [(found.key, found.plugin) for _, found in watched(scenario).found] == [("default/web", "TaintToleration")]
