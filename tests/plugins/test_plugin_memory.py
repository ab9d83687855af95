"""What plugins keep of pods is bounded in bytes, for all plugins together, whatever keys and values look like."""

from __future__ import annotations

import gc
from random import Random

import pytest

from placewright.api.bytecount import bytes_of
from placewright.api.decode import convert
from placewright.api.objects import Pod
from placewright.api.pods import PodInfo
from placewright.api.selectors import CompiledRequirement, Selector
from placewright.cluster.cluster import Cluster
from placewright.cluster.podselections import PodSelection
from placewright.framework import topology
from placewright.framework.memory import PLUGIN_BYTES, Memory, NodeMemory
from placewright.plugins.podtopologyspread.constraints import compile_own
from placewright.plugins.podtopologyspread.defaultselectors import DefaultSelectors
from placewright.plugins.podtopologyspread.layout import Layouts
from placewright.testing import node

LIMIT = 200_000


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little may be kept, beside what other tests left."""
    gc.collect()
    monkeypatch.setattr(PLUGIN_BYTES, "limit", PLUGIN_BYTES.held + LIMIT)


#: Bytes to letters: few letters, so that short texts come again.
LETTERS = bytes(b"abcdef"[byte % 6] for byte in range(256))


def text(dice: Random, length: int) -> str:
    return dice.randbytes(length).translate(LETTERS).decode()


@pytest.mark.usefixtures("limited")
@pytest.mark.parametrize("seed", range(3))
def test_memories_of_all_plugins_stay_within_their_bytes_and_answer_as_if_they_kept_nothing(seed: int) -> None:
    dice, before = Random(seed), PLUGIN_BYTES.held
    memories = [Memory(1000) for _ in range(4)]
    asked: dict[tuple[int, str], list[str]] = {}
    for _ in range(400):
        which, key = dice.randrange(4), text(dice, dice.choice((1, 2, 10, 3000)))
        answer = memories[which].recall(key, lambda key=key: [key] * dice.choice((1, 100)))  # type: ignore[misc]
        assert set(answer) == {key}
        asked.setdefault((which, key), answer)
        assert PLUGIN_BYTES.held <= PLUGIN_BYTES.limit * (1 + 1 / 256)
    assert sum(memory.nbytes for memory in memories) > LIMIT / 3
    del memories
    gc.collect()
    assert PLUGIN_BYTES.held <= before


def test_what_is_too_large_is_worked_out_each_time() -> None:
    memory, calls = Memory(10), 0

    def work_out() -> str:
        nonlocal calls
        calls += 1
        return "x" * 1_000_000

    assert memory.recall("key", work_out) == memory.recall("key", work_out)
    assert (calls, memory.nbytes) == (2, 0)


def test_a_node_memory_counts_the_columns_of_domains() -> None:
    cluster, memory = Cluster(), NodeMemory()
    for number in range(200):
        cluster.set_node(node(f"n{number}", labels={"zone": f"z{number % 3}"}).build())
    topology.domains(memory, cluster, "zone")
    assert memory._memory.nbytes > 200 * 8


def test_columns_of_large_clusters_are_worked_out_once() -> None:
    """A layout of two constraints takes more than the 256 KiB that suffice for what is said in a pod."""
    cluster, layouts = Cluster(), Layouts()
    for number in range(9000):
        cluster.set_node(node(f"n{number}", labels={"zone": f"z{number % 3}", "host": f"n{number}"}).build())
    spread = [{"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}} for key in ("zone", "host")]
    pod = PodInfo(convert({"metadata": {"name": "p"}, "spec": {"topologySpreadConstraints": spread}}, Pod))
    constraints = compile_own(pod.pod.spec.topology_spread_constraints or [], "DoNotSchedule", pod)
    first = layouts.of(constraints, True, pod, b"", cluster)
    assert bytes_of(first) > 256 * 1024
    assert layouts.of(constraints, True, pod, b"", cluster) is first


def test_sums_of_tallies_that_the_cluster_dropped_hold_no_tally(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, memory = Cluster(), NodeMemory()
    for number in range(6):
        cluster.set_node(node(f"n{number}", labels={"zone": f"z{number % 3}"}).build())
    place = topology.domains(memory, cluster, "zone")
    monkeypatch.setattr("placewright.cluster.tallies._MAX_TALLY_BYTES", 0)
    first = cluster.pairwise_counts.tally(PodSelection(frozenset({"a"})), cluster.size)
    assert place.pods(first).tolist() == [0, 0, 0, 0]
    gone = topology.ref(first)
    cluster.pairwise_counts.tally(PodSelection(frozenset({"b"})), cluster.size)
    del first
    gc.collect()
    assert gone() is None


def test_a_selection_counts_with_its_values_and_a_carrier_only_with_its_place() -> None:
    values = frozenset(f"value-{number}" for number in range(1000))
    selection = PodSelection(None, Selector((CompiledRequirement("app", "In", values),)))
    assert bytes_of(selection) > 1000 * 50


def test_of_namespaces_without_services_nothing_is_kept() -> None:
    cluster, selectors = Cluster(), DefaultSelectors()
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
    for number in range(1000):
        meta = {"name": "p", "namespace": f"team-{number}", "ownerReferences": [owner]}
        assert selectors.of(PodInfo(convert({"metadata": meta}, Pod)), cluster.objects).empty
    assert selectors._namespaces == {}
