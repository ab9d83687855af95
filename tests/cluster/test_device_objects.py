"""Devices, and which class serves what a pod asks for by name."""

from __future__ import annotations

import random

import pytest

from cluster.makers import a_pod, device_class
from placewright.api.decode import convert
from placewright.api.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from placewright.cluster.devices import DEVICE_KINDS, DeviceObjects
from placewright.cluster.objects import ClusterObjects

GPU = "example.com/gpu"
IMPLICIT = "deviceclass.resource.kubernetes.io/"


def objects(*classes: DeviceClass) -> DeviceObjects:
    found = DeviceObjects()
    for each in classes:
        found.classes.put(each)
    return found


def slice_of(name: str, driver: str = "d", pool: str = "p") -> ResourceSlice:
    return convert({"metadata": {"name": name}, "spec": {"driver": driver, "pool": {"name": pool}}}, ResourceSlice)


def test_slices_are_found_by_the_pool_of_their_driver() -> None:
    slices = DeviceObjects().slices
    for each in (slice_of("a"), slice_of("b"), slice_of("c", pool="q"), slice_of("d", driver="e")):
        slices.put(each)
    assert {each.metadata.name for each in slices.where("d/p")} == {"a", "b"}
    slices.put(slice_of("a", pool="q"))
    assert {each.metadata.name for each in slices.where("d/q")} == {"a", "c"}
    assert [each.metadata.name for each in slices.where("e/p")] == ["d"]


def test_every_kind_has_a_table_of_its_own() -> None:
    found = DeviceObjects()
    assert DEVICE_KINDS == (ResourceClaim, ResourceSlice, DeviceClass, DeviceTaintRule) == tuple(found.tables)
    assert list(found.tables.values()) == [found.claims, found.slices, found.classes, found.taint_rules]
    all_objects = ClusterObjects()
    for kind in DEVICE_KINDS:
        all_objects.put(convert({"metadata": {"name": "x"}}, kind))
        assert len(all_objects.devices.tables[kind]) == 1
    assert all_objects.version == 0, "they have versions of their own"


# --- extended resources --------------------------------------------------------------------------------------------------------------


def test_a_class_serves_the_resource_that_it_names_and_one_of_its_own_name() -> None:
    found = objects(device_class("gpus", serves=GPU), device_class("plain"))
    asked = (GPU, f"{IMPLICIT}gpus", f"{IMPLICIT}plain", f"{IMPLICIT}other", "example.com/other", "gpus")
    assert [found.class_of(resource) for resource in asked] == ["gpus", "gpus", "plain", None, None, None]


def test_of_several_classes_the_newest_serves_and_of_equally_old_ones_the_first_by_name() -> None:
    old, new = (device_class(name, serves=GPU, created=f"20{year}-01-01T00:00:00Z") for name, year in (("old", 25), ("new", 26)))
    undated, twin = device_class("a", serves=GPU), device_class("another-new", serves=GPU, created="2026-01-01T00:00:00Z")
    for classes in ([old, new, undated], [undated, new, old], [new, old, undated]):
        assert objects(*classes).class_of(GPU) == "new"
    assert objects(old, new, twin).class_of(GPU) == "another-new"
    assert objects(undated, old).class_of(GPU) == "old"
    assert objects(device_class("b", serves=GPU), undated).class_of(GPU) == "a"


@pytest.mark.parametrize("seed", range(3))
def test_the_order_in_which_classes_are_shown_decides_nothing(seed: int) -> None:
    classes = [device_class(f"c{n}", serves=f"example.com/{n % 3}", created=f"2026-01-0{1 + n % 4}T00:00:00Z") for n in range(9)]
    shuffled = random.Random(seed).sample(classes, len(classes))
    assert [objects(*shuffled).class_of(f"example.com/{n}") for n in range(3)] == ["c3", "c7", "c2"]


def test_a_class_that_takes_anothers_own_name_does_not_take_its_resource() -> None:
    thief = device_class("thief", serves=f"{IMPLICIT}gpus", created="2026-01-01T00:00:00Z")
    assert objects(device_class("gpus"), thief).class_of(f"{IMPLICIT}gpus") == "gpus"


def test_classes_that_come_change_and_go_are_noticed() -> None:
    found = objects()
    assert found.class_of(GPU) is None
    found.classes.put(device_class("gpus", serves=GPU))
    assert found.class_of(GPU) == "gpus"
    found.classes.put(device_class("gpus", serves="example.com/other"))
    assert (found.class_of(GPU), found.class_of("example.com/other")) == (None, "gpus")
    found.classes.remove(device_class("gpus"))
    assert (found.class_of("example.com/other"), found.class_of(f"{IMPLICIT}gpus")) == (None, None)


def test_a_pod_is_served_for_what_it_asks_of_classes_and_for_nothing_else() -> None:
    found = objects(device_class("gpus", serves=GPU))
    asking = a_pod("p").requests(cpu="1", **{GPU: "2", f"{IMPLICIT}gpus": "1", "example.com/other": "1"}).build()
    assert found.served(asking) == {GPU: "gpus", f"{IMPLICIT}gpus": "gpus"}
    assert found.served(a_pod("p").requests(cpu="1").build()) == {}
    assert found.served(a_pod("p").requests({"example.com/gpu": "0"}).build()) == {}, "nothing of it is asked for"
    assert objects().served(asking) == {}


def test_a_name_without_a_domain_is_no_extended_resource_whatever_a_class_says() -> None:
    assert objects(device_class("c", serves="cpu")).served(a_pod("p").requests(cpu="1").build()) == {}
