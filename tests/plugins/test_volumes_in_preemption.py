"""Volumes in preemption's trials: who must leave so that a claim, a disk or room for one more volume is free."""

from __future__ import annotations

import msgspec
import pytest
from pairwise_worlds import Body
from preempting import Scene, a_pod
from test_node_volume_limits import drivers

from placewright.api.pods import PodInfo
from placewright.api.storage import VolumeAttachment
from placewright.testing import persistent_volume, persistent_volume_claim

DISK = {"gcePersistentDisk": {"pdName": "d"}}


def uses(claim: str) -> Body:
    return {"persistentVolumeClaim": {"claimName": claim}}


def with_volumes(name: str, *volumes: Body, priority: int = 0, cpu: str = "1") -> PodInfo:
    return a_pod(name, priority, cpu, spec={"volumes": [volume | {"name": f"v{i}"} for i, volume in enumerate(volumes)]})


def bind(scene: Scene, claim: str, mode: str = "ReadWriteOnce", driver: str = "a") -> None:
    """A claim that has a volume of this driver."""
    scene.cluster.objects.put(persistent_volume_claim(claim).access_modes(mode).bound_to(f"of-{claim}").build())
    scene.cluster.objects.put(persistent_volume(f"of-{claim}").csi(driver, claim).build())


@pytest.fixture
def scene() -> Scene:
    """Claims, and "mine", which is for one pod only."""
    scene = Scene()
    for claim in ("c0", "c1", "c2", "c3"):
        bind(scene, claim)
    bind(scene, "mine", "ReadWriteOncePod")
    return scene


def test_only_the_node_of_the_pod_that_has_the_claim_is_worth_emptying(scene: Scene) -> None:
    scene.node("a", a_pod("bystander"), cpu="8").node("b", a_pod("other"), with_volumes("holder", uses("mine"), priority=1), cpu="8")
    result = scene.attempt(with_volumes("me", uses("mine"), priority=5))
    assert result.nominated_node == "b"
    assert [victim.name for victim in result.victims] == ["holder"]


def test_a_claim_of_a_pod_that_may_stay_bars_every_node(scene: Scene) -> None:
    scene.node("a", a_pod("bystander"), cpu="8").node("b", with_volumes("holder", uses("mine"), priority=9), cpu="8")
    assert not scene.victims(with_volumes("me", uses("mine"), priority=5))


def test_a_claim_of_the_same_name_in_another_namespace_is_another_claim(scene: Scene) -> None:
    away = a_pod("away", namespace="team", spec={"volumes": [uses("mine") | {"name": "v"}]})
    scene.node("a", away, cpu="8").node("b", with_volumes("holder", uses("mine")), cpu="8")
    assert scene.victims(with_volumes("me", uses("mine"), priority=5)) == ["holder"]


def test_only_users_of_the_disk_leave(scene: Scene) -> None:
    scene.node("a", a_pod("bystander"), with_volumes("user", DISK, priority=1), cpu="8")
    assert scene.victims(with_volumes("me", DISK, priority=5)) == ["user"]


def test_as_few_leave_as_hold_volumes_too_many_and_the_least_important_of_them(scene: Scene) -> None:
    scene.cluster.objects.put(drivers("a", a=2).build())
    low, high = with_volumes("low", uses("c0"), priority=1), with_volumes("high", uses("c1"), priority=2)
    scene.node("a", a_pod("bystander"), low, high, cpu="8")
    assert scene.victims(with_volumes("me", uses("c2"), priority=5)) == ["low"]
    assert scene.victims(with_volumes("greedy", uses("c2"), uses("c3"), priority=5)) == ["high", "low"]


def test_what_a_claim_stands_for_is_looked_up_anew_when_it_changed(scene: Scene) -> None:
    scene.cluster.objects.put(drivers("a", a=1).build())
    bind(scene, "c1", driver="b")
    scene.node("a", with_volumes("one", uses("c0")), with_volumes("other", uses("c1")), cpu="8")
    evaluator, me = scene.evaluator(), with_volumes("me", uses("c2"), priority=5)

    def victims() -> list[str]:
        evaluation = evaluator.evaluate(me)
        result = evaluator.runtime.run_post_filter(evaluation.state, me, evaluator.diagnose(evaluation))
        return [victim.name for victim in result.victims]

    assert victims() == ["one"]
    bind(scene, "c0", driver="b")
    bind(scene, "c1", driver="a")
    assert victims() == ["other"]


def test_a_volume_that_is_still_attached_keeps_its_place_when_its_pod_leaves(scene: Scene) -> None:
    scene.cluster.objects.put(drivers("a", a=1).build())
    attachment = {"metadata": {"name": "x"}, "spec": {"attacher": "a", "nodeName": "a", "source": {"persistentVolumeName": "of-c0"}}}
    scene.node("a", with_volumes("user", uses("c0")), cpu="8")
    assert scene.victims(with_volumes("me", uses("c2"), priority=5)) == ["user"]
    scene.cluster.objects.put(msgspec.convert(attachment, VolumeAttachment))
    assert not scene.victims(with_volumes("me", uses("c2"), priority=5))


def test_the_columns_are_as_before_once_the_trials_are_over(scene: Scene) -> None:
    scene.cluster.objects.put(drivers("a", a=1).build())
    scene.node("a", with_volumes("user", uses("c0"), DISK, uses("mine")), cpu="8")
    scene.victims(with_volumes("me", uses("c2"), DISK, uses("mine"), priority=5))
    volumes = scene.cluster.volumes
    assert volumes.claimed("default", "mine") == 1
    assert [each.name for each in volumes.pods(0)] == ["user"]
    scene.cluster.remove_pod("user")
    assert volumes.claimed("default", "mine") == 0
    assert not list(volumes.pods(0))
    assert not volumes._disks
