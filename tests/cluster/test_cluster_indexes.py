"""The parts that the cluster is made of: encoded columns, the journal, host ports, images, and everything that is no node and no pod."""

from __future__ import annotations

import numpy as np
import pytest

from placewright.api.objects import ContainerImage, ObjectMeta
from placewright.api.pods import HostPort
from placewright.api.workloads import Namespace, PodDisruptionBudget, Service
from placewright.cluster.encoding import EncodedColumn
from placewright.cluster.hostports import HostPorts
from placewright.cluster.images import Images
from placewright.cluster.journal import Journal, distinct
from placewright.cluster.objects import ClusterObjects

ROWS = np.arange(4)


# --- encoded columns -----------------------------------------------------------------------------------------------------------


def test_a_value_is_asked_about_once_however_many_rows_have_it() -> None:
    column: EncodedColumn[str] = EncodedColumn(4, "")
    for row, value in enumerate(["x", "y", "x", "x"]):
        column.set(row, value)
    asked: list[str] = []

    def is_x(value: str) -> bool:
        asked.append(value)
        return value == "x"

    assert list(column.where(ROWS, is_x)) == [True, False, True, True]
    assert sorted(asked) == ["", "x", "y"]
    assert list(column.gather(ROWS, len)) == [1, 1, 1, 1]


def test_a_few_rows_of_many_values_are_asked_themselves() -> None:
    column: EncodedColumn[int] = EncodedColumn(50, -1)
    for row in range(50):
        column.set(row, row)
    asked: list[int] = []
    column.gather(np.array([7, 9]), lambda value: asked.append(value) or value)  # type: ignore[func-returns-value]
    assert asked == [7, 9]


def test_values_that_no_row_has_any_more_are_dropped_when_they_outnumber_the_rows() -> None:
    column: EncodedColumn[str] = EncodedColumn(2, "")
    column.set(1, "kept")
    for number in range(500):
        column.set(0, f"v{number}")
    assert len(column.values) < 30
    assert (column.get(0), column.get(1)) == ("v499", "kept")
    assert column.code("kept") == column.codes(np.array([1]))[0]
    assert column.code("v3") is None
    column.set(0, "")
    assert column.get(0) == ""
    assert column.code("") == 0


def test_rows_that_a_column_grows_by_have_the_default() -> None:
    column: EncodedColumn[str] = EncodedColumn(1, "none")
    column.set(0, "x")
    column.grow(3)
    assert [column.get(row) for row in range(3)] == ["x", "none", "none"]


# --- journal -------------------------------------------------------------------------------------------------------------------


def test_a_reader_hears_what_changed_since_it_looked() -> None:
    journal = Journal()
    journal.append(1)
    seen = journal.position
    assert journal.since(seen) == []
    journal.append(5)
    journal.append(5)
    assert journal.since(seen) == [5, 5]
    assert journal.since(0) == [1, 5, 5]


def test_a_reader_too_far_behind_is_told_so_and_one_that_keeps_up_is_not() -> None:
    journal = Journal(keep=3)
    kept_up = journal.position
    for row in range(100):
        journal.append(row)
        assert journal.since(kept_up) == [row]
        kept_up = journal.position
    assert journal.since(0) is None
    assert journal.position == 100
    recent = journal.since(97)
    assert recent == [97, 98, 99]


def test_changed_rows_are_sorted_and_each_is_named_once() -> None:
    assert list(distinct([3, 1], [1, 2, 3])) == [1, 2, 3]
    assert distinct([]).dtype == np.intp


# --- host ports ----------------------------------------------------------------------------------------------------------------

WEB = HostPort("TCP", 80, "0.0.0.0")


@pytest.mark.parametrize(
    ("wanted", "free"),
    [
        (WEB, False),
        (HostPort("TCP", 80, "10.0.0.1"), False),
        (HostPort("UDP", 80, "0.0.0.0"), True),
        (HostPort("TCP", 81, "0.0.0.0"), True),
    ],
)
def test_the_wildcard_address_takes_the_port_everywhere(wanted: HostPort, free: bool) -> None:
    ports = HostPorts()
    ports.add([WEB], 1, 1)
    assert bool(ports.free([wanted], ROWS)[1]) is free
    assert ports.free([wanted], ROWS)[[0, 2, 3]].all()


def test_two_addresses_share_a_port_and_the_wildcard_fits_beside_neither() -> None:
    ports = HostPorts()
    one, two = HostPort("TCP", 80, "10.0.0.1"), HostPort("TCP", 80, "10.0.0.2")
    ports.add([one], 0, 1)
    assert ports.free([two], ROWS)[0]
    assert not ports.free([one], ROWS)[0]
    assert not ports.free([WEB], ROWS)[0]
    assert not ports.free([two, one], ROWS)[0]


def test_a_port_claimed_twice_is_free_after_both_released_it() -> None:
    ports = HostPorts()
    ports.add([WEB, WEB], 2, 1)
    ports.add([WEB], 2, -1)
    assert not ports.free([WEB], ROWS)[2]
    ports.add([WEB], 2, -1)
    assert ports.free([WEB], ROWS).all()


def test_a_claim_may_be_released_before_it_is_made() -> None:
    ports = HostPorts()
    ports.add([WEB], 0, -1)
    ports.add([WEB], 0, 1)
    assert ports.free([WEB], ROWS).all()


# --- images --------------------------------------------------------------------------------------------------------------------


def image(*names: str, size: int = 100) -> ContainerImage:
    return ContainerImage(names=names, size_bytes=size)


def test_an_image_is_known_under_all_its_names_and_by_the_size_first_seen() -> None:
    images = Images()
    images.set_row(0, [image("a:1", "a@sha", size=5)])
    images.set_row(1, [image("a:1", size=9)])
    found = images.get("a:1")
    assert found is not None
    assert (found.size, set(found.rows)) == (5, {0, 1})
    assert images.get("a@sha") is not None
    assert images.get("b") is None


def test_an_image_that_leaves_its_last_row_is_forgotten_with_its_size() -> None:
    images = Images()
    images.set_row(0, [image("a:1", size=5)])
    images.set_row(0, [])
    assert images.get("a:1") is None
    images.set_row(1, [image("a:1", size=7)])
    found = images.get("a:1")
    assert found is not None
    assert found.size == 7


def test_the_version_grows_only_when_an_image_comes_or_goes() -> None:
    images = Images()
    images.set_row(0, [image("a:1"), image("b:1")])
    version = images.version
    images.set_row(0, [image("b:1"), image("a:1")])
    assert images.version == version
    images.set_row(0, [image("a:1")])
    assert images.version > version


# --- the rest ------------------------------------------------------------------------------------------------------------------


def test_objects_are_kept_by_kind_and_key_and_every_change_is_counted() -> None:
    objects = ClusterObjects()
    web = Service(metadata=ObjectMeta(name="web", namespace="shop"))
    objects.put(web)
    objects.put(PodDisruptionBudget(metadata=ObjectMeta(name="web", namespace="shop")))
    assert objects.services == {"shop/web": web}
    assert set(objects.disruption_budgets) == {"shop/web"}
    version = objects.version
    objects.put(web)
    objects.remove(web)
    assert objects.version == version + 2
    objects.remove(web)
    assert objects.version == version + 2
    assert objects.services == {}


def test_labels_of_a_namespace_are_empty_until_it_is_known() -> None:
    objects = ClusterObjects()
    assert objects.namespace_labels("shop") == {}
    objects.put(Namespace(metadata=ObjectMeta(name="shop", labels={"team": "a"})))
    assert objects.namespace_labels("shop") == {"team": "a"}
    objects.put(Namespace(metadata=ObjectMeta(name="shop")))
    assert objects.namespace_labels("shop") == {}
