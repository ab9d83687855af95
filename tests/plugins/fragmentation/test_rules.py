"""DeviceFragmentation's rules: where a pod may go, which devices it gets, how that is remembered, and what the mix is made of."""

from __future__ import annotations

import asyncio
import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from framework.makers import Scene
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import CycleState
from placewright.framework.status import Code
from placewright.plugins.devicefragmentation.args import DeviceFragmentationArgs, TypicalPod
from placewright.plugins.devicefragmentation.mix import Mix
from placewright.plugins.devicefragmentation.plugin import DeviceFragmentation, Devices
from placewright.profiles.arguments import read_args
from placewright.profiles.problem import ProfileError
from placewright.queue.queued import SubQueue
from plugins.fragmentation.history import ANNOTATION, RESOURCE, TYPICAL, UNITS, gpu_node, gpu_pod
from plugins.fragmentation.scalar import Machine, Task, least_growth
from plugins.pairwise import rejections
from scheduler.makers import REFUSED, PodMaker, World

ENABLED = {"multiPoint": {"enabled": [{"name": "DeviceFragmentation"}]}}


def scene(*gpus: int) -> Scene:
    return Scene(spec={"plugins": ENABLED}).with_nodes(*(gpu_node(f"n{index}", count) for index, count in enumerate(gpus)))


def noted(maker: PodMaker, *devices: int) -> PodInfo:
    """The pod with the annotation that says which devices it has."""
    return maker.build().annotated({ANNOTATION: json.dumps({RESOURCE: devices})})


def free(cluster: Cluster) -> list[list[int]]:
    return Devices(RESOURCE, UNITS).at(cluster, np.arange(cluster.size)).tolist()


def verdicts(stage: Scene, units: int) -> dict[str, str]:
    """By node, why a pod that asks for so much is rejected; its profile's other plugins have no say."""
    plugin = DeviceFragmentation(DeviceFragmentationArgs(), stage.handle())
    found = rejections(plugin, CycleState(), stage.cluster, gpu_pod("asked", units).build())
    return {name: f"{status.code.name}: {status.message}" for name, status in found.items()}


# --- where a pod may go ---------------------------------------------------------------------------------------------------------------


def test_two_pods_of_600_on_two_gpus_leave_no_room_for_800_although_800_are_free_in_all() -> None:
    stage = scene(2).place(noted(gpu_pod("a", 600), 0), "n0").place(noted(gpu_pod("b", 600), 1), "n0")
    assert verdicts(stage, 800) == {"n0": f"UNSCHEDULABLE: Insufficient {RESOURCE} on one device"}
    assert verdicts(stage, 400) == {}


def test_whole_devices_must_be_whole() -> None:
    stage = scene(3, 3, 1).place(noted(gpu_pod("a", 1), 1), "n0")
    stage.place(noted(gpu_pod("b", 1), 0), "n1").place(noted(gpu_pod("c", 1), 2), "n1")
    reason = f"Insufficient {RESOURCE} in whole devices"
    assert verdicts(stage, 2000) == {"n1": f"UNSCHEDULABLE: {reason}", "n2": f"UNSCHEDULABLE_AND_UNRESOLVABLE: {reason}"}


@pytest.mark.parametrize("units", [1001, 1500, 2500])
def test_a_pod_that_asks_for_a_device_and_a_half_is_refused_with_what_is_allowed(units: int) -> None:
    stage = scene(8)
    plugin = DeviceFragmentation(DeviceFragmentationArgs(), stage.handle())
    status = plugin.pre_filter(CycleState(), gpu_pod("odd", units).build(), stage.cluster).status
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    allowed = "1 to 1000 on one device, or a multiple of 1000 for whole devices"
    assert status.message == f"asks for {units} {RESOURCE}, allowed are {allowed}"


def test_a_pod_without_devices_goes_anywhere() -> None:
    stage = scene(0, 1)
    plugin = DeviceFragmentation(DeviceFragmentationArgs(), stage.handle())
    assert plugin.pre_filter(CycleState(), gpu_pod("cpu", 0).build(), stage.cluster).status.code is Code.SKIP


def test_what_is_supposed_of_a_row_is_seen_and_forgotten_again() -> None:
    victim = noted(gpu_pod("victim", 900), 0)
    stage = scene(1, 1).place(victim, "n0")
    devices = Devices(RESOURCE, UNITS)
    rows = np.arange(2)
    with stage.cluster.dry_run_on_row(remove=[victim], row=0):
        assert devices.at(stage.cluster, rows).tolist() == [[1000], [1000]]
        with stage.cluster.dry_run_on_row(add=[gpu_pod("x", 300).build()], row=1):
            assert devices.at(stage.cluster, rows).tolist() == [[1000], [700]]
    assert devices.at(stage.cluster, rows).tolist() == [[100], [1000]]


def test_preemption_knows_that_evicting_half_of_the_gpu_makes_no_whole_one() -> None:
    world = World(preset="gpu-fragmentation").nodes(gpu_node("n0", 2))
    for name, units, device, priority in (("a", 500, 0, 0), ("b", 500, 1, 0), ("vip", 500, 1, 1000)):
        maker = gpu_pod(name, units).priority(priority).on("n0")
        world.event_handlers.assigned_pod(noted(maker, device))
    world.pods(gpu_pod("whole", 1000).priority(500))

    async def attempt() -> None:
        await world.attempt()
        await world.scheduler.settled()

    asyncio.run(attempt())
    assert [victim for victim, _, _ in world.evictor.evicted] == ["a"]


# --- which devices it gets ------------------------------------------------------------------------------------------------------------


def test_pods_that_say_nothing_are_packed_in_the_order_of_their_creation() -> None:
    stage = scene(3)
    for name, units, when in (("late", 400, 3), ("first", 600, 1), ("second", 500, 2), ("whole", 1000, 4)):
        stage.place(gpu_pod(name, units).created(f"2026-01-01T00:00:0{when}Z"), "n0")
    assert free(stage.cluster) == [[0, 500, 0]]


@pytest.mark.parametrize(
    "text", ["", "[]", "nonsense", '{"openb/gpu-milli": [7]}', '{"openb/gpu-milli": [0, 0]}', '{"other": [1]}', "\ud800"]
)
def test_an_annotation_that_cannot_be_is_as_good_as_none(text: str) -> None:
    stage = scene(2).place(gpu_pod("a", 300).build().annotated({ANNOTATION: text}), "n0")
    assert free(stage.cluster) == [[700, 1000]]


def test_annotations_that_promise_more_than_there_is_leave_nothing_free() -> None:
    stage = scene(1).place(noted(gpu_pod("a", 700), 0), "n0").place(noted(gpu_pod("b", 700), 0), "n0")
    assert free(stage.cluster) == [[0]]


def test_the_choice_rides_on_the_binding_and_is_seen_from_the_moment_it_is_made() -> None:
    world = World(preset="gpu-fragmentation").nodes(gpu_node("n0", 2))
    sent: list[dict[str, str]] = []

    async def bind(pod: PodInfo, node: NodeName, annotations: dict[str, str]) -> None:
        sent.append(annotations)

    world.binder.bind = bind  # type: ignore[method-assign]
    world.pods(gpu_pod("a", 600), gpu_pod("b", 600), gpu_pod("c", 600))
    bindings = [world.decide() for _ in range(2)]
    assert free(world.cluster) == [[400, 400]]
    assert world.decide() is None
    for binding in bindings:
        assert binding is not None
        asyncio.run(_run(binding))
    assert sorted(json.loads(each[ANNOTATION])[RESOURCE] for each in sent) == [[0], [1]]
    assert all("placewright.dev/decision" in each for each in sent)


async def _run(binding: Any) -> bool:
    result: bool = await binding
    return result


def test_what_was_reserved_for_a_binding_that_is_refused_is_free_again() -> None:
    world = World(preset="gpu-fragmentation").nodes(gpu_node("n0", 1))
    world.binder.answers["uid-a"] = REFUSED
    world.pods(gpu_pod("a", 600))
    assert asyncio.run(world.attempt()) is False
    assert free(world.cluster) == [[1000]]


def test_unreserve_takes_back_the_choice_and_tolerates_never_having_made_one() -> None:
    stage = scene(2)
    plugin = DeviceFragmentation(DeviceFragmentationArgs(), stage.handle())
    asked, state = gpu_pod("a", 2000).build(), CycleState()
    plugin.unreserve(state, asked, NodeName("n0"))
    stage.place(asked, "n0")
    assert plugin.reserve(state, asked, NodeName("n0")).ok
    assert json.loads(state.annotations[ANNOTATION]) == {RESOURCE: [0, 1]}
    plugin.unreserve(state, asked, NodeName("n0"))
    placement = stage.cluster.placement(asked.uid)
    assert state.annotations == {}
    assert placement is not None
    assert ANNOTATION not in (placement.pod.pod.metadata.annotations or {})


def test_reserve_refuses_what_has_no_room_any_more() -> None:
    stage = scene(1).place(noted(gpu_pod("a", 600), 0), "n0")
    plugin = DeviceFragmentation(DeviceFragmentationArgs(), stage.handle())
    late = gpu_pod("late", 600).build()
    stage.place(late, "n0")
    assert plugin.reserve(CycleState(), late, NodeName("n0")).code is Code.UNSCHEDULABLE


def test_a_share_goes_beside_another_share_and_leaves_the_whole_gpu_for_those_that_want_one() -> None:
    world = World(preset="gpu-fragmentation").nodes(gpu_node("n0", 2), gpu_node("n1", 1))
    world.event_handlers.assigned_pod(noted(gpu_pod("there", 500).on("n0"), 0))
    world.pods(*(gpu_pod(f"one-{index}", 1000) for index in range(8)))
    world.pods(gpu_pod("half", 500).priority(1))
    binding = world.decide()
    assert binding is not None
    binding.close()
    assert free(world.cluster) == [[0, 1000], [1000, 0]]


@pytest.mark.parametrize("units", [0, 330, 1000, 2000])
def test_the_score_falls_with_what_the_formula_says_a_pod_strands(units: int) -> None:
    config = [{"name": "DeviceFragmentation", "args": {"typicalPods": TYPICAL}}]
    stage = Scene(spec={"preset": "gpu-fragmentation", "pluginConfig": config})
    machines = {}
    for index, left in enumerate([(1000, 1000), (500, 500), (1000, 330), (760, 1000, 1000, 1000, 1000), (1000,)]):
        name = f"n{index}"
        stage.with_nodes(gpu_node(name, len(left), cpu=8))
        for device, milli in enumerate(left):
            if milli < UNITS:
                stage.place(noted(gpu_pod(f"{name}-{device}", UNITS - milli, 1), device), name)
        used = sum(milli < UNITS for milli in left)
        machines[name] = Machine(8000 - 1000 * used, 2**60, tuple(Fraction(milli, UNITS) for milli in left))
    mix = [(scalar_task(each["requests"]), each["popularity"]) for each in TYPICAL]
    evaluator = stage.evaluator()
    evaluation = evaluator.evaluate(gpu_pod("asked", units, 2).build())
    evaluator.score(evaluation)
    found = {name: parts["DeviceFragmentation"].raw for name, parts in stage.parts(evaluator, evaluation).items()}
    total = sum(count for _, count in mix)
    growth = {name: least_growth(mix, Task(2000, 0, Fraction(units, UNITS)), machine) for name, machine in machines.items()}
    expected = {name: int(100 / (1 + math.exp(each / total))) for name, each in growth.items() if each is not None}
    assert found == expected
    assert len(found) > 1


def scalar_task(requests: dict[str, str]) -> Task:
    return Task(1000 * int(requests["cpu"]), 0, Fraction(int(requests[RESOURCE]), UNITS))


# --- the mix --------------------------------------------------------------------------------------------------------------------------


def mix(**args: Any) -> Mix:
    return Mix(DeviceFragmentationArgs(**args))


def sizes(of: Mix, cluster: Cluster | None = None) -> dict[int, int]:
    return {shape.units: count for shape, count in of.typical(cluster or Cluster())}


def test_a_pod_counts_once_however_often_it_is_tried() -> None:
    seen = mix()
    for _ in range(3):
        seen.see(gpu_pod("a", 500).build())
    seen.see(gpu_pod("b", 0).build())
    seen.see(gpu_pod("c", 1500).build())
    assert sizes(seen) == {500: 1}


def test_old_pods_are_forgotten_as_new_ones_come() -> None:
    seen = mix(window=4)
    for index, units in enumerate([500, 500, 500, 250, 250, 250]):
        seen.see(gpu_pod(f"p{index}", units).build())
    assert sizes(seen) == {250: 3, 500: 1}


def test_only_the_most_frequent_shapes_count() -> None:
    seen = mix(shapes=2)
    for index, units in enumerate([100, 250, 250, 330, 330, 330]):
        seen.see(gpu_pod(f"p{index}", units).build())
    assert sizes(seen) == {330: 3, 250: 2}


def test_after_a_restart_the_mix_is_that_of_the_pods_that_are_there() -> None:
    cluster = scene(8).cluster
    for index in range(3):
        cluster.set_pod(gpu_pod(f"p{index}", 330).on("n0").build())
    seen = mix()
    seen.see(gpu_pod("waiting", 500).build())
    seen.see(gpu_pod("p0", 330).build())
    assert sizes(seen, cluster) == {330: 3, 500: 1}


def test_the_mix_changes_with_every_quarter_that_comes_and_not_with_each_pod() -> None:
    seen = mix()
    for index in range(100):
        seen.see(gpu_pod(f"p{index}", 500).build())
    before = (seen.typical(Cluster()), seen.version)
    for index in range(20):
        seen.see(gpu_pod(f"more-{index}", 250).build())
    assert (seen.typical(Cluster()), seen.version) == before
    for index in range(20):
        seen.see(gpu_pod(f"and-more-{index}", 250).build())
    assert sizes(seen) == {500: 100, 250: 40}
    assert seen.version == before[1] + 1


def test_typical_pods_are_the_mix_whoever_comes() -> None:
    fixed = mix(typical_pods=(TypicalPod({RESOURCE: "500"}, popularity=3), TypicalPod({RESOURCE: "2k"}, {"model": "A"})))
    fixed.see(gpu_pod("a", 250).build())
    assert sizes(fixed) == {500: 3, 2000: 1}
    assert [shape.selection != b"" for shape, _ in fixed.typical(Cluster())] == [False, True]


# --- arguments ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "path"),
    [
        ({"resource": "cpu"}, "resource"),
        ({"unitsPerDevice": 0}, "unitsPerDevice"),
        ({"window": 0}, "window"),
        ({"shapes": 5000}, "shapes"),
        ({"typicalPods": [{"requests": {"cpu": "1"}}]}, "typicalPods[0].requests.openb/gpu-milli"),
        ({"typicalPods": [{"requests": {RESOURCE: "500"}}, {"requests": {RESOURCE: "much"}}]}, "typicalPods[1].requests"),
        ({"typicalPods": [{"requests": {RESOURCE: "1500"}}]}, "typicalPods[0].requests.openb/gpu-milli"),
    ],
)
def test_arguments_that_cannot_be_are_refused_where_they_stand(args: dict[str, Any], path: str) -> None:
    with pytest.raises(ProfileError) as caught:
        read_args(DeviceFragmentation, args)
    assert [problem.path for problem in caught.value.problems] == [path]


# --- what brings a rejected pod back ----------------------------------------------------------------------------------------------------


def test_a_rejected_pod_comes_back_for_devices_that_are_freed_and_for_nodes_and_for_nothing_else() -> None:
    world = World(preset="gpu-fragmentation").nodes(gpu_node("n0", 2))
    for name, units, device in (("a", 600, 0), ("b", 600, 1)):
        world.event_handlers.assigned_pod(noted(gpu_pod(name, units).on("n0"), device))
    world.pods(gpu_pod("cpu", 0).on("n0"), gpu_pod("big", 800))
    assert world.decide() is None
    world.now += 60
    world.event_handlers.pod_gone("uid-cpu")
    assert world.place("big") is SubQueue.UNSCHEDULABLE
    world.event_handlers.pod_gone("uid-a")
    assert world.place("big") is SubQueue.ACTIVE


def test_nothing_is_better_or_worse_before_any_pod_was_seen() -> None:
    stage = scene(1, 4)
    plugin = DeviceFragmentation(DeviceFragmentationArgs(), stage.handle())
    asked, state, rows = gpu_pod("a", 500).build(), CycleState(), np.arange(2)
    assert plugin.pre_score(state, asked, stage.cluster, rows).code is Code.SKIP
    assert plugin.score(state, asked, stage.cluster, rows).tolist() == [50, 50]
