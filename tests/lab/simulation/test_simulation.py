"""What a simulation makes of arrivals, departures, preemption, gates, waiting pods and broken plugins, each in virtual time."""

from __future__ import annotations

import random
import time
from collections.abc import Collection

import pytest

from placewright.api.bad_input import InputError
from placewright.api.objects import Node, NodeName
from placewright.api.pods import PodInfo
from placewright.framework.interface import CycleState, PermitPlugin, PermitResult
from placewright.framework.scalar import ScalarFilter
from placewright.framework.status import SUCCESS, Code, Status, unschedulable
from placewright.plugins.catalog import in_tree
from placewright_lab.simulation.outcome import Outcome
from placewright_lab.simulation.scenario import Scenario
from placewright_lab.simulation.simulation import Which, simulate

from .scenarios import a_node, a_pod, a_profile, changes, comes, goes, nodes_of, random_nodes, random_pod, run


def told(outcome: Outcome) -> list[object]:
    """Return everything in an outcome except its duration."""
    fates = [
        (uid, f.created, f.node, f.bound, f.left, f.attempts, f.message, sorted(f.plugins), f.score, sorted(f.parts.items()), f.preempted,
         f.preempted_others)
        for uid, f in outcome.fates.items()
    ]  # fmt: skip
    placements = sorted((p.pod.uid, p.node, p.assumed) for p in outcome.cluster.placements())
    return [outcome.profile, outcome.seed, fates, placements, outcome.ended, outcome.evicted, outcome.passed_over]


def busy(seed: int) -> Scenario:
    """Make a random cluster in which pods come, leave and preempt."""
    rng = random.Random(seed)
    nodes = random_nodes(rng, 8)
    old = [random_pod(rng, f"old-{i}", rng.randrange(3), on=f"node-{rng.randrange(8):02d}") for i in range(6)]
    new = [random_pod(rng, f"new-{i}", rng.randrange(6)) for i in range(60)]
    happenings = [comes(round(rng.uniform(0, 900), 1), each) for each in new[20:]]
    happenings += [goes(round(rng.uniform(300, 2000), 1), each) for each in rng.sample([*old, *new], 12)]
    happenings += [goes(500, nodes[3]), comes(700, nodes[3])]
    durations = {each["metadata"]["uid"]: rng.uniform(10, 600) for each in rng.sample(new, 30)}
    return Scenario("random", [*nodes, *old, *new[:20]], sorted(happenings, key=lambda h: h.at), durations)


@pytest.mark.parametrize("seed", range(4))
def test_the_same_scenario_profile_and_seed_give_the_same_outcome(seed: int) -> None:
    first, second = (simulate(busy(seed), a_profile(), in_tree(), seed=seed) for _ in range(2))
    assert told(first) == told(second)


def test_another_seed_chooses_otherwise_among_equals() -> None:
    objects = [*(a_node(f"n{i}") for i in range(6)), a_pod("web")]
    assert len({nodes_of(run(objects, seed=seed))["web"] for seed in range(20)}) > 1


def test_a_pod_is_placed_when_it_comes_and_gives_its_room_back_when_its_time_is_over() -> None:
    first, second = a_pod("first", "3"), a_pod("second", "3")
    outcome = run([a_node("n")], [comes(10, first), comes(20, second)], durations={"uid-first": 100.0})
    fates = outcome.fates
    assert (fates["uid-first"].created, fates["uid-first"].bound, fates["uid-first"].left) == (10, 10, 110)
    assert (fates["uid-second"].created, fates["uid-second"].bound, fates["uid-second"].left) == (20, 110, None)
    assert (fates["uid-second"].attempts, fates["uid-second"].message) == (2, "")


def test_tenants_take_turns_as_they_do_in_the_operator() -> None:
    crowd = [a_pod(f"a{number}", meta={"labels": {"team": "a"}}) for number in range(4)]
    objects = [a_node("n", cpu="4"), *crowd, *(a_pod(f"b{number}", meta={"labels": {"team": "b"}}) for number in range(2))]
    placed = {name for name, found in nodes_of(run(objects)).items() if found}
    assert placed == {"a0", "a1", "a2", "a3"}
    fair = run(objects, fairness={"by": "Label", "label": "team"})
    assert {name for name, found in nodes_of(fair).items() if found} == {"a0", "a1", "b0", "b1"}


def test_a_pod_that_goes_while_it_waits_is_neither_placed_nor_pending() -> None:
    outcome = run([a_node("n", cpu="1")], [comes(5, a_pod("big", "3")), goes(7, a_pod("big", "3"))])
    fate = outcome.fates["uid-big"]
    assert (fate.node, fate.left, fate.pending) == (None, 7, False)
    assert fate.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_a_node_that_comes_brings_waiting_pods_back() -> None:
    outcome = run([a_node("small", cpu="1"), a_pod("big", "3")], [comes(30, a_node("large", cpu="8"))])
    assert (outcome.fates["uid-big"].node, outcome.fates["uid-big"].bound) == ("large", 30)


def test_a_more_important_pod_takes_the_place_of_another() -> None:
    outcome = run([a_node("n", cpu="2"), a_pod("old", "2", on="n"), a_pod("urgent", "2", priority=10)])
    assert outcome.fates["uid-urgent"].node == "n"
    assert outcome.fates["uid-urgent"].preempted_others == ["default/old"]
    assert outcome.evicted == ["uid-old"]
    assert [p.pod.name for p in outcome.cluster.placements()] == ["urgent"]


def test_a_pod_that_was_placed_here_can_be_preempted_here() -> None:
    outcome = run([a_node("n", cpu="2"), a_pod("first", "2")], [comes(60, a_pod("urgent", "2", priority=10))])
    first = outcome.fates["uid-first"]
    assert (first.node, first.bound, first.left, first.preempted) == ("n", 0, 60, True)
    assert outcome.evicted == []


def test_of_equal_victims_the_one_that_started_last_leaves() -> None:
    early, late = comes(10, a_pod("early", "2")), comes(20, a_pod("late", "2"))
    outcome = run([a_node("a", cpu="2"), a_node("b", cpu="2")], [early, late, comes(30, a_pod("urgent", "2", priority=10))])
    assert outcome.fates["uid-urgent"].preempted_others == ["default/late"]


def test_pods_come_in_the_order_of_their_creation() -> None:
    young = a_pod("a-young", "3", meta={"creationTimestamp": "2026-01-02T00:00:00Z"})
    old = a_pod("z-old", "3", meta={"creationTimestamp": "2026-01-01T00:00:00Z"})
    assert nodes_of(run([a_node("n"), young, old])) == {"z-old": "n", "a-young": None}


def test_a_gated_pod_says_so_and_is_placed_once_its_gate_is_gone() -> None:
    gated = a_pod("gated", schedulingGates=[{"name": "example.test/quota"}])
    waits = run([a_node("n"), gated])
    assert waits.fates["uid-gated"].pending
    assert waits.fates["uid-gated"].plugins == {"SchedulingGates"}
    assert "example.test/quota" in waits.fates["uid-gated"].message
    freed = run([a_node("n"), gated], [changes(40, a_pod("gated"))])
    assert (freed.fates["uid-gated"].node, freed.fates["uid-gated"].bound) == ("n", 40)


def test_pods_of_other_schedulers_are_passed_over_and_their_running_pods_count() -> None:
    theirs = a_pod("theirs", schedulerName="another")
    running = a_pod("running", "3", on="n", schedulerName="another")
    outcome = run([a_node("n"), theirs, running, a_pod("ours", "2")], schedulerName="default-scheduler")
    assert nodes_of(outcome) == {"ours": None}
    assert outcome.passed_over == ["default/theirs"]


def test_a_single_profile_that_no_pod_names_is_meant_for_all() -> None:
    outcome = run([a_node("n"), a_pod("a"), a_pod("b", schedulerName="another")], schedulerName="new")
    assert nodes_of(outcome) == {"a": "n", "b": "n"}


def test_profiles_serve_each_its_scheduler_name() -> None:
    pack = a_profile(name="pack", schedulerName="pack", preset="bin-packing")
    paused = a_profile(name="off", schedulerName="off", paused=True)
    objects = [a_node("n"), a_pod("a", schedulerName="pack"), a_pod("b", schedulerName="off")]
    outcome = simulate(Scenario("test", objects), [pack, paused], in_tree())
    assert nodes_of(outcome) == {"a": "n", "b": None}
    assert outcome.fates["uid-b"].message == "its profile is paused"


def test_all_pods_are_placed_anew_but_for_those_that_a_kubelet_runs_by_itself() -> None:
    mirror = {"annotations": {"kubernetes.io/config.mirror": "hash"}}
    objects = [a_node("a", cpu="4"), a_node("b", cpu="4"), a_pod("web", "3", on="a"), a_pod("proxy", "3", on="a", meta=mirror)]
    outcome = run(objects, which=Which.ALL)
    assert nodes_of(outcome) == {"web": "b"}
    assert {p.pod.name: p.node for p in outcome.cluster.placements()} == {"web": "b", "proxy": "a"}


def test_where_others_put_a_pod_does_not_count_for_one_that_is_placed_here() -> None:
    small, large = a_node("small", cpu="1"), a_node("large", cpu="4")
    elsewhere = changes(5, a_pod("web", "2", on="small", meta={"labels": {"app": "web"}}))
    outcome = run([small, large, a_pod("web", "2")], [elsewhere])
    assert nodes_of(outcome) == {"web": "large"}
    (placement,) = outcome.cluster.placements()
    assert (placement.node, placement.pod.labels) == ("large", {"app": "web"})


def test_a_pod_that_others_finish_gives_its_room_back() -> None:
    done = a_pod("done", "3", on="n")
    done["status"] = {"phase": "Succeeded"}
    outcome = run([a_node("n"), a_pod("done", "3")], [comes(1, a_pod("next", "3")), changes(50, done)])
    assert (outcome.fates["uid-done"].left, outcome.fates["uid-next"].bound) == (50, 50)


class Waits(PermitPlugin):
    """Keeps every pod for a minute, then refuses it."""

    name = "Waits"

    def permit(self, state: CycleState, pod: PodInfo, node: NodeName) -> PermitResult:
        return PermitResult(Status(Code.WAIT), 60.0)


def test_a_permit_plugin_that_never_allows_anything_keeps_pods_for_a_virtual_time_and_ends() -> None:
    began = time.monotonic()
    outcome = run([a_node("n"), a_pod("a"), a_pod("b")], (), Waits)
    assert {fate.node for fate in outcome.fates.values()} == {None}
    assert "rejected due to timeout after waiting 1m0s at plugin Waits" in outcome.fates["uid-a"].message
    assert 60 <= outcome.ended < 600
    assert time.monotonic() - began < 60  # a hang guard: virtual minutes are not waited for


class Breaks(ScalarFilter):
    name = "Breaks"

    def filter_node(self, pod: PodInfo, node: Node, pods: Collection[PodInfo]) -> Status:
        raise ValueError("a bug")


def test_a_plugin_that_breaks_for_every_pod_leaves_them_pending_and_the_simulation_ends() -> None:
    outcome = run([a_node("n"), a_pod("a")], (), Breaks)
    fate = outcome.fates["uid-a"]
    assert fate.pending
    assert "a bug" in fate.message
    assert fate.attempts > 1


class Silent(ScalarFilter):
    """Rejects all nodes but one, and does not say that nodes help."""

    name = "Silent"

    def filter_node(self, pod: PodInfo, node: Node, pods: Collection[PodInfo]) -> Status:
        return SUCCESS if node.metadata.name == "m" else unschedulable("not m")

    def events(self) -> tuple[()]:
        return ()


def test_what_no_event_brings_back_is_tried_again_after_five_minutes_as_the_operator_does() -> None:
    outcome = run([a_node("n"), a_pod("a")], [comes(10, a_node("m"))], Silent)
    assert (outcome.fates["uid-a"].attempts, outcome.fates["uid-a"].bound) == (2, 330)


def test_a_pod_that_is_given_up_is_told_apart_and_tried_by_events_alone() -> None:
    patient, gives_up = a_profile(), a_profile(giveUpAfterSeconds=100)
    scenario = Scenario("waits", [a_node("a", cpu="1"), a_pod("big", cpu="8"), a_pod("later", cpu="4")], [comes(200, a_node("b", cpu="4"))])
    without, given_up = (simulate(scenario, each, in_tree()) for each in (patient, gives_up))
    fates = {fate.pod.name: fate for fate in given_up.fates.values()}
    assert (fates["big"].given_up, fates["big"].node) == (True, None)
    assert (fates["later"].given_up, fates["later"].node) == (True, "b")
    assert not any(fate.given_up for fate in without.fates.values())
    assert fates["big"].attempts < next(fate.attempts for fate in without.fates.values() if fate.pod.name == "big")


def test_a_claim_gets_its_volume_where_its_pod_goes_and_the_next_pod_follows_it() -> None:
    zones = [a_node("a", cpu="1", **{"topology.kubernetes.io/zone": "x"}), a_node("b", cpu="4", **{"topology.kubernetes.io/zone": "y"})]
    meta = {"name": "data", "namespace": "default"}
    claim = {"kind": "PersistentVolumeClaim", "metadata": meta, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "late"}}
    late = {"metadata": {"name": "late"}, "provisioner": "example.test/disks", "volumeBindingMode": "WaitForFirstConsumer"}
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    first, second = a_pod("first", "3", volumes=volumes), a_pod("second", "1", volumes=volumes)
    outcome = run([*zones, {"kind": "StorageClass", **late}, claim, first, second], durations={"uid-first": 5.0})
    assert nodes_of(outcome) == {"first": "b", "second": "b"}
    (volume,) = outcome.cluster.objects.storage.volumes.values()
    assert volume.spec.claim_ref is not None
    assert volume.spec.claim_ref.name == "data"


def test_an_object_that_cannot_be_read_is_named() -> None:
    with pytest.raises(InputError, match="test: Node n"):
        run([a_node("n", cpu="many"), a_pod("a")])


async def test_it_says_so_when_it_is_called_from_a_coroutine() -> None:
    with pytest.raises(RuntimeError, match="in a thread"):
        run([a_node("n"), a_pod("a")])
