"""Scores of extended resources that devices serve (KEP-5004): rules one by one, and plain counting on random nodes."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from placewright import testing as kit
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import CycleState
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.handle import ProfileHandle
from placewright.plugins.catalog import in_tree
from seeds import seeds

Body = dict[str, Any]
GPU = "example.com/gpu"
IMPLICIT = "deviceclass.resource.kubernetes.io/gpu"
CLASS = kit.device_class("gpu").serves(GPU)
FIT, BALANCED = "NodeResourcesFit", "NodeResourcesBalancedAllocation"


class Scored:
    """A cluster under a profile that scores extended resources."""

    def __init__(
        self, *resources: str, strategy: str = "LeastAllocated", serves: Any = CLASS, runs: bool = True, by: str = f"{FIT} {BALANCED}"
    ) -> None:
        self.cluster = Cluster()
        self.cluster.objects.put(serves.build())
        scored, plain = [{"name": name, "weight": 1} for name in resources or (GPU,)], [{"name": "cpu", "weight": 1}]
        made = kit.profile().args(FIT, scoringStrategy={"type": strategy, "resources": scored if FIT in by else plain})
        made = made.args(BALANCED, resources=scored if BALANCED in by else plain)
        made = made if runs else made.spec(plugins={"multiPoint": {"disabled": [{"name": "DynamicResources"}]}})
        self.evaluator: Evaluator = ProfileHandle(self.cluster).evaluator(made.resolved(), in_tree())

    def node(self, name: str, *devices: Body, offers: int = 0, used: int = 0) -> Scored:
        """A node with these devices. The first `used` devices are in use."""
        self.cluster.set_node(kit.node(name, cpu="8", **({GPU: str(offers)} if offers else {})).build())
        made = kit.resource_slice(name, driver="d")
        for number, device in enumerate(devices):
            made = made.device(f"d{number}", **device)
        self.cluster.objects.put(made.build())
        for number in range(used):
            self.take(name, f"d{number}")
        return self

    def take(self, node: str, device: str, **more: Any) -> None:
        claim = kit.resource_claim(f"{node}-{device}")
        result = {"request": "r", "driver": "d", "pool": node, "device": device, **more}
        self.cluster.objects.put(claim.status(allocation={"devices": {"results": [result]}}).build())

    def scores(self, plugin: str = FIT, resource: str = GPU, asks: str = "1") -> list[int]:
        pod = wants(resource, asks)
        scorer: Any = self.evaluator.runtime.plugin(plugin)
        found = scorer.score(CycleState(), pod, self.cluster, self.cluster.rows()).tolist()
        many = scorer.score(CycleState(), pod, self.cluster, self.cluster.all_rows).tolist()
        assert found == many
        return [int(each) for each in found]


def wants(resource: str, amount: str = "1") -> PodInfo:
    return kit.pod("p").requests({resource: amount}).build()


def gpus(count: int, **more: Any) -> list[Body]:
    return [more] * count


def test_devices_of_the_class_count_as_what_the_node_offers_and_those_in_use_as_taken() -> None:
    at = Scored().node("a", *gpus(4)).node("b", *gpus(4), used=2).node("c", *gpus(2), used=1).node("d")
    assert at.scores() == [75, 25, 0, 0]
    most = Scored(strategy="MostAllocated").node("a", *gpus(4)).node("b", *gpus(4), used=2)
    assert most.scores() == [25, 75]


def test_only_devices_that_the_class_selects_count() -> None:
    large = CLASS.selects('device.attributes["d"].size > 1')
    sizes = [{"attributes": {"size": size}} for size in (1, 2, 3)]
    at = Scored(serves=large).node("a", *sizes, used=1).node("b", *sizes, used=2)
    assert at.scores() == [50, 0]


def test_a_node_that_offers_the_resource_itself_counts_with_its_offer() -> None:
    at = Scored().node("a", *gpus(2), offers=10)
    at.cluster.set_pod(kit.pod("there", on="a").requests({GPU: "4"}).build())
    assert at.scores() == [50]


def test_a_class_serves_the_resource_of_its_own_name_too() -> None:
    assert Scored(IMPLICIT).node("a", *gpus(4), used=1).scores(resource=IMPLICIT) == [50]


def test_a_share_makes_a_device_count_as_taken_and_access_for_administrators_does_not() -> None:
    at = Scored().node("a", *gpus(4, allowMultipleAllocations=True))
    at.take("a", "d0", shareID="s")
    at.take("a", "d1", adminAccess=True)
    assert at.scores() == [50]


@pytest.mark.parametrize("broken", ['device.attributes["d"].size > 1', "device."])
def test_a_class_whose_expression_has_no_answer_counts_no_devices(broken: str) -> None:
    assert Scored(serves=CLASS.selects(broken)).node("a", *gpus(4)).scores() == [0]


def test_a_resource_that_no_class_serves_and_a_profile_without_devices_score_nothing() -> None:
    assert Scored(serves=kit.device_class("gpu")).node("a", *gpus(4)).scores() == [0]
    assert Scored(runs=False).node("a", *gpus(4)).scores() == [0]


@pytest.mark.parametrize("plugin", [FIT, BALANCED])
def test_scores_follow_devices_and_claims_that_change_without_a_change_of_pods(plugin: str) -> None:
    at = Scored(GPU, "cpu", by=plugin).node("a", *gpus(4)).node("b", *gpus(4))
    for device in ("d0", "d1", "d2"):
        for _ in range(3):  # what was asked before may be kept
            assert in_a_decision(at, plugin) == at.scores(plugin)
        at.take("a", device)
    at.cluster.objects.put(kit.resource_slice("a", driver="d").pool("a", generation=2).devices(*"wxyz").build())
    assert in_a_decision(at, plugin) == at.scores(plugin)


def test_devices_that_all_nodes_reach_count_on_all() -> None:
    at = Scored().node("a").node("b")
    for generation, expected in ((1, 50), (2, 75)):
        made = kit.resource_slice("net", driver="d").on_all_nodes().pool("net", generation=generation)
        at.cluster.objects.put(made.devices(*"vw" if generation == 1 else "wxyz").build())
        assert at.scores() == [expected, expected]
    at.take("net", "z")
    assert at.scores() == [50, 50]


def in_a_decision(at: Scored, plugin: str) -> list[int]:
    """Scores by the columns that decisions keep."""
    found = at.evaluator.evaluate(wants(GPU))
    assert found.count == 2
    at.evaluator.score(found)
    return [each.raw for each in at.evaluator.breakdown(found, at.cluster.rows())[plugin]]


@seeds(range(120))
def test_random_nodes_score_as_a_plain_count_says(seed: int) -> None:
    dice = random.Random(seed)
    at = Scored(
        GPU, "cpu", strategy=dice.choice(("LeastAllocated", "MostAllocated")), serves=CLASS.selects('device.attributes["d"].size > 1')
    )
    asks = dice.randrange(1, 3)
    expected = []
    for number in range(dice.choice((3, 40))):
        sizes = [dice.randrange(4) for _ in range(dice.randrange(6))]
        taken = dice.randrange(len(sizes) + 1)
        offers, used_here = dice.choice((0, 0, 0, 5)), dice.randrange(3)
        name = f"n{number}"
        at.node(name, *({"attributes": {"size": size}} for size in sizes), offers=offers, used=taken)
        there = kit.pod(f"on-{name}", on=name).requests({GPU: str(used_here)} if offers else {}, cpu=f"{dice.randrange(8)}")
        at.cluster.set_pod(there.build())
        cpu = at.cluster.resources.column("cpu").requested[number] / 8000
        total, used = (offers, used_here) if offers else (sum(size > 1 for size in sizes), sum(size > 1 for size in sizes[:taken]))
        expected.append((total, used, float(cpu)))
    strategy: Any = at.evaluator.runtime.plugin(FIT)
    least = strategy.args.scoring_strategy.type == "LeastAllocated"
    for found, (total, used, _) in zip(gpu_part(at, asks), expected, strict=True):
        share = min((used + asks) / total, 1.0) if total else None
        assert found == (0 if share is None else math.floor(100 * (1 - share) + 1e-9) if least else math.floor(100 * share + 1e-9))
    for found, (total, used, cpu) in zip(at.scores(BALANCED, asks=str(asks)), expected, strict=True):
        assert found == balance(total, used, asks, cpu)


def gpu_part(at: Scored, asks: int) -> list[int]:
    """Scores of the resource alone, with the same strategy."""
    scorer: Any = at.evaluator.runtime.plugin(FIT)
    alone = {"type": scorer.args.scoring_strategy.type, "resources": [{"name": GPU, "weight": 1}]}
    made: Any = (
        ProfileHandle(at.cluster).evaluator(kit.profile().args(FIT, scoringStrategy=alone).resolved(), in_tree()).runtime.plugin(FIT)
    )
    return [int(each) for each in made.score(CycleState(), wants(GPU, str(asks)), at.cluster, at.cluster.all_rows)]


def balance(total: int, used: int, asks: int, cpu: float) -> int:
    """50 + (50 + evenness with the pod - evenness without)/2, over CPU and the devices, if there are any."""

    def evenness(gpu: float) -> int:
        return int((1 - abs(gpu - cpu) / 2) * 100) if total else 100

    gained = (50 + evenness(min((used + asks) / total, 1.0)) - evenness(min(used / total, 1.0))) // 2 if total else 25
    return 50 + gained
