"""Nodes scored by how full the pod's claims would make their storage."""

from __future__ import annotations

from typing import Any

import pytest

from placewright.framework.interface import CycleState
from placewright.framework.status import Code
from placewright.plugins.volumebinding.plugin import VolumeBinding
from placewright.testing import (
    PluginCase,
    csi_driver,
    node,
    persistent_volume,
    persistent_volume_claim,
    pod,
    storage_capacity,
    storage_class,
)
from placewright.testing.objectmaker import HOSTNAME, PlainMaker
from placewright.testing.pods import PodMaker
from placewright.testing.volumes import StorageCapacityMaker, VolumeClaimMaker, VolumeMaker

Maker = PlainMaker[Any]
EMPTIER = [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]
FULLER = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
COUNTER = csi_driver("counter").tells_capacity()


def pvc(name: str, size: str, of: str) -> VolumeClaimMaker:
    return persistent_volume_claim(name, size).storage_class(of)


def volume(name: str, size: str, of: str, host: str) -> VolumeMaker:
    return persistent_volume(name, size).storage_class(of).on(host)


def room(host: str, size: str) -> StorageCapacityMaker:
    return storage_capacity(host, "made", size).nodes({HOSTNAME: host})


def asked(
    shape: list[dict[str, int]] | None, *objects: Maker, hosts: str = "ab", compatibility: str = "1.36"
) -> tuple[PluginCase, PodMaker]:
    """The plugin, and a pod with all of these claims."""
    args = None if shape is None else {"shape": shape}
    claims = [each.name for each in objects if isinstance(each, VolumeClaimMaker)]
    case = PluginCase(VolumeBinding, args=args, nodes=[node(host) for host in hosts], objects=objects, compatibility=compatibility)
    return case, pod("web").volume_claims(*claims)


def scored(shape: list[dict[str, int]] | None, *objects: Maker, hosts: str = "ab") -> dict[str, int]:
    case, web = asked(shape, *objects, hosts=hosts)
    return case.scores(web)


STATIC = (storage_class("disks"), pvc("data", "2Gi", "disks"), volume("x", "4Gi", "disks", "a"), volume("y", "8Gi", "disks", "b"))


@pytest.mark.parametrize(("shape", "a", "b"), [(EMPTIER, 50, 75), (FULLER, 50, 25)])
def test_a_volume_is_scored_by_the_part_of_it_that_the_claim_asks_for(shape: list[dict[str, int]], a: int, b: int) -> None:
    assert scored(shape, *STATIC) == {"a": a, "b": b}


def test_nothing_is_scored_without_a_shape_or_without_claims_to_bind() -> None:
    for case, web in (asked(None, *STATIC), asked(EMPTIER)):
        state, built, rows = CycleState(), web.build(), case.cluster.rows()
        case.plugin.pre_filter(state, built, case.cluster)
        assert case.plugin.pre_score(state, built, case.cluster, rows).code is Code.SKIP


def test_claims_of_one_class_are_added_and_classes_count_alike() -> None:
    objects: list[Maker] = [storage_class("disks"), pvc("one", "1Gi", "disks"), pvc("two", "2Gi", "disks")]
    objects += [volume("x", "2Gi", "disks", "a"), volume("y", "4Gi", "disks", "a")]
    assert scored(FULLER, *objects, hosts="a") == {"a": 50}  # 3 of 6
    objects += [storage_class("fast"), pvc("three", "1Gi", "fast"), volume("z", "8Gi", "fast", "a")]
    assert scored(FULLER, *objects, hosts="a") == {"a": 31}  # (50 + 12) / 2


def test_room_for_volumes_to_be_made_is_shared_by_the_claims_of_a_class() -> None:
    objects: list[Maker] = [COUNTER, storage_class("made").provisioner("counter"), pvc("one", "2Gi", "made"), pvc("two", "3Gi", "made")]
    assert scored(FULLER, *objects, room("a", "10Gi"), room("b", "4Gi")) == {"a": 50, "b": 100}


def test_where_a_volume_exists_room_for_others_does_not_count() -> None:
    objects: list[Maker] = [COUNTER, storage_class("made").provisioner("counter"), pvc("one", "2Gi", "made")]
    objects += [room("a", "10Gi"), room("b", "10Gi")]
    assert scored(FULLER, *objects, volume("x", "4Gi", "made", "a")) == {"a": 50, "b": 20}


def test_beside_a_volume_that_exists_claims_to_be_provisioned_do_not_count() -> None:
    objects: list[Maker] = [COUNTER, storage_class("made").provisioner("counter"), pvc("one", "2Gi", "made"), pvc("two", "3Gi", "made")]
    objects += [room("a", "20Gi"), room("b", "20Gi"), volume("x", "4Gi", "made", "a")]
    assert scored(FULLER, *objects) == {"a": 50, "b": 25}


def test_drivers_that_do_not_count_say_nothing() -> None:
    assert scored(EMPTIER, storage_class("made").provisioner("maker"), pvc("one", "2Gi", "made"), room("a", "10Gi")) == {"a": 0, "b": 0}


@pytest.mark.parametrize(("shape", "a", "b"), [(None, 50, 75), (FULLER, 50, 25)])
def test_from_1_37_on_the_emptiest_storage_is_the_best_unless_a_shape_says_otherwise(
    shape: list[dict[str, int]] | None, a: int, b: int
) -> None:
    case, web = asked(shape, *STATIC, compatibility="1.37")
    assert case.scores(web) == {"a": a, "b": b}
