"""Ports, images, encoded columns, journals and disks, each against a plain dictionary or list that does the same."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.makers import a_pod
from placewright.api.objects import ContainerImage
from placewright.api.pods import HostPort
from placewright.cluster.encoding import EncodedColumn
from placewright.cluster.hostports import HostPorts
from placewright.cluster.images import Images
from placewright.cluster.journal import Journal, Log, distinct
from placewright.cluster.labels import LabelColumns
from placewright.cluster.volumes import Disk, VolumeUse, disks_of
from randomcases import cases

ROWS = 3
ROW = st.integers(0, ROWS - 1)
ALL_ROWS = np.arange(ROWS)

# --- host ports ------------------------------------------------------------------------------------------------------------------

PORTS = st.builds(HostPort, st.sampled_from(["TCP", "UDP"]), st.sampled_from([80, 81]), st.sampled_from(["0.0.0.0", "10.0.0.1", "::1"]))
CLAIMS = st.lists(st.tuples(st.lists(PORTS, max_size=2), ROW), max_size=6)


def clash(one: HostPort, other: HostPort) -> bool:
    """`HostPortInfo.CheckConflict`, written out."""
    same = (one.protocol, one.port) == (other.protocol, other.port)
    return same and (one.address == other.address or "0.0.0.0" in (one.address, other.address))


@given(CLAIMS, st.lists(PORTS, max_size=2), st.lists(st.booleans(), min_size=6, max_size=6))
def test_ports_are_free_where_none_of_them_clashes_with_one_that_is_claimed(claims: Any, wanted: list[HostPort], kept: list[bool]) -> None:
    ports = HostPorts()
    for claimed, row in claims:
        ports.add(claimed, row, 1)
    for (claimed, row), keep in zip(claims, kept, strict=False):
        if not keep:
            ports.add(claimed, row, -1)
    held = [(port, row) for (claimed, row), keep in zip(claims, kept, strict=False) if keep for port in claimed]
    expected = [not any(at == row and clash(port, want) for port, at in held for want in wanted) for row in range(ROWS)]
    assert ports.free(wanted, ALL_ROWS).tolist() == expected
    assert ports.free(wanted, ALL_ROWS[::-1]).tolist() == expected[::-1]
    assert ports.free(wanted, np.array([], np.intp)).tolist() == []
    for (claimed, row), keep in zip(claims, kept, strict=False):
        if keep:
            ports.add(claimed, row, -1)
    assert not ports._claims, "a port that nobody claims keeps no memory"


# --- images ----------------------------------------------------------------------------------------------------------------------

IMAGES = st.dictionaries(st.sampled_from("abc"), st.integers(1, 3), max_size=3)


@given(st.lists(st.tuples(ROW, IMAGES), max_size=8))
def test_an_image_is_on_the_rows_that_say_so_and_as_big_as_the_first_of_them_said(steps: list[tuple[int, dict[str, int]]]) -> None:
    images, on_row, sizes = Images(), dict[int, dict[str, int]](), dict[str, int]()
    for row, present in steps:
        version = images.version
        changed = present.keys() != on_row.get(row, {}).keys()
        images.set_row(row, [ContainerImage(names=(name,), size_bytes=size) for name, size in present.items()])
        assert images.version == version + changed
        if changed:
            on_row[row] = present
        everywhere = {name for names in on_row.values() for name in names}
        sizes = {name: sizes.get(name, present.get(name, 0)) for name in everywhere}
        for name in "abc":
            found = images.get(name)
            rows = {row for row, names in on_row.items() if name in names}
            assert (found and (found.size, set(found.rows))) == ((sizes[name], rows) if rows else None)


def test_an_image_without_a_name_is_none() -> None:
    images = Images()
    images.set_row(0, [ContainerImage(names=None, size_bytes=3), ContainerImage(names=(), size_bytes=3)])
    assert (images.version, images._states) == (0, {})


# --- encoded columns -------------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(ROW, st.integers(0, 40)), max_size=60), st.integers(0, 3))
def test_a_column_has_in_each_row_what_was_set_there_last(steps: list[tuple[int, int]], more: int) -> None:
    column: EncodedColumn[int] = EncodedColumn(ROWS, -1)
    rows = [-1] * ROWS
    for row, value in steps:
        column.set(row, value)
        rows[row] = value
        assert len(column.values) <= 2 * ROWS + 17
        assert column.values[0] == -1
    column.grow(ROWS + more)
    rows += [-1] * more
    everywhere = np.arange(ROWS + more)
    assert [column.get(row) for row in everywhere] == rows
    assert column.where(everywhere, lambda value: value > 5).tolist() == [value > 5 for value in rows]
    assert column.gather(everywhere, lambda value: 2 * value).tolist() == [2 * value for value in rows]
    assert [column.values[code] for code in column.codes(everywhere)] == rows
    assert all(column.code(value) == code for code, value in enumerate(column.values))
    assert len(set(column.values)) == len(column.values)


@pytest.mark.parametrize(("distinct_values", "dropped"), [(19, False), (20, True)])
def test_values_of_no_row_are_dropped_when_they_are_two_a_row_and_sixteen_more(distinct_values: int, *, dropped: bool) -> None:
    """Not before: to drop them costs a look at every row."""
    column: EncodedColumn[int] = EncodedColumn(2, -1)
    for value in range(distinct_values):
        column.set(0, value)
    assert column.code(0) is not None
    column.set(0, 100)
    assert (column.code(0) is None) is dropped
    assert (column.get(0), column.get(1), column._codes.dtype) == (100, -1, np.int32)


@pytest.mark.parametrize(("rows", "asked"), [(1, [7]), (2, [7, 7]), (3, [-1, 7, 8])])
def test_rows_are_asked_when_they_are_fewer_than_the_values(rows: int, asked: list[int]) -> None:
    column: EncodedColumn[int] = EncodedColumn(3, -1)
    for row, value in ((0, 7), (1, 7), (2, 8)):
        column.set(row, value)
    seen: list[int] = []
    assert column.gather(np.arange(rows), lambda value: seen.append(value) or value).tolist() == [7, 7, 8][:rows]  # type: ignore[func-returns-value]
    assert seen == asked


# --- journals --------------------------------------------------------------------------------------------------------------------


@given(st.integers(1, 5), st.lists(st.integers(0, 9), max_size=40), st.integers(0, 40))
def test_a_reader_hears_all_since_its_position_or_that_it_is_too_late(keep: int, entries: list[int], position: int) -> None:
    log: Log[int] = Log(keep)
    for each in entries:
        log.append(each)
    assert log.position == len(entries)
    heard = log.since(min(position, len(entries)))
    missed = len(entries) - min(position, len(entries))
    if heard is None:
        assert missed > keep, "it keeps at least so many"
    else:
        assert list(heard) == entries[len(entries) - missed :]
        assert missed <= 2 * keep, "and no more than twice as many"


@pytest.mark.parametrize(("count", "kept"), [(6, 6), (7, 4), (9, 6), (10, 4)])
def test_entries_are_dropped_by_as_many_as_are_kept_when_there_are_more_than_twice_as_many(count: int, kept: int) -> None:
    journal = Journal(keep=3)
    for entry in range(count):
        journal.append(entry)
    assert journal.since(count - kept) == list(range(count - kept, count))
    assert journal.since(count - kept - 1) is None


@given(st.lists(st.lists(st.integers(0, 9), max_size=5), max_size=3))
def test_distinct_rows_are_a_sorted_index(changes: list[list[int]]) -> None:
    found = distinct(*changes)
    assert found.tolist() == sorted({row for rows in changes for row in rows})
    assert found.dtype == np.intp
    assert len(np.arange(10)[found]) == len(found)


# --- labels ----------------------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(ROW, st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"))), max_size=8))
def test_the_keys_of_labels_are_those_that_some_node_has_now(steps: list[tuple[int, dict[str, str]]]) -> None:
    columns, nodes = LabelColumns(ROWS), dict[int, dict[str, str]]()
    for row, labels in steps:
        columns.column("a")
        columns.set_row(row, labels)
        nodes[row] = labels
        assert columns.keys == {key for each in nodes.values() for key in each}
        assert set(columns._columns) <= columns.keys, "a column for no other key"


# --- disks and claims ------------------------------------------------------------------------------------------------------------

SOURCES: dict[str, dict[str, Any]] = {
    "gce": {"gcePersistentDisk": {"pdName": "d"}},
    "gce read": {"gcePersistentDisk": {"pdName": "d", "readOnly": True}},
    "ebs read": {"awsElasticBlockStore": {"volumeID": "d", "readOnly": True}},
    "iscsi read": {"iscsi": {"iqn": "d", "readOnly": True}},
    "rbd": {"rbd": {"monitors": ["m1", "m2"], "image": "d"}},
    "rbd read": {"rbd": {"monitors": ["m2"], "image": "d", "readOnly": True}},
    "rbd pool": {"rbd": {"monitors": ["m1"], "pool": "other", "image": "d"}},
    "claim": {"persistentVolumeClaim": {"claimName": "c"}},
    "cinder": {"cinder": {"volumeID": "d"}},
}
#: Pairs that may be on one node, of those that name the same disk: `isVolumeConflict`, written out.
PEACEFUL = {frozenset({"gce read"}), frozenset({"iscsi read"}), frozenset({"rbd read"})}
KINDS = ("gce", "ebs", "iscsi", "rbd")


def conflict(one: str, other: str) -> bool:
    same_kind = one.split(maxsplit=1)[0] == other.split(maxsplit=1)[0] and one.split(maxsplit=1)[0] in KINDS
    same_disk = same_kind and (one == "rbd pool") is (other == "rbd pool")
    return same_disk and frozenset({one, other}) not in PEACEFUL


USERS = {name: a_pod(name).volume(**source).build() for name, source in SOURCES.items()}


@pytest.mark.parametrize("there", SOURCES)
@pytest.mark.parametrize("wanted", SOURCES)
def test_a_disk_is_taken_where_somebody_uses_it_in_a_way_that_excludes_another_user(there: str, wanted: str) -> None:
    use = VolumeUse()
    use.add(USERS[there], 1, 1)
    disks = [disk for volume in USERS[wanted].volumes for disk in disks_of(volume)]
    assert use.taken(disks) == ({1} if conflict(there, wanted) else frozenset())


@settings(max_examples=cases(60))
@given(st.lists(st.tuples(st.sampled_from(sorted(SOURCES)), ROW, st.booleans()), max_size=10))
def test_volumes_in_use_are_those_of_the_pods_that_are_there(steps: list[tuple[str, int, bool]]) -> None:
    use, there = VolumeUse(), Counter[tuple[str, int]]()
    for name, row, comes in steps:
        if comes or there[name, row]:
            position = use.journal.position
            use.add(USERS[name], row, 1 if comes else -1)
            there[name, row] += 1 if comes else -1
            assert use.journal.since(position) == [row]
    for row in range(ROWS):
        assert sorted(each.uid for each in use.pods(row)) == sorted(name for (name, at), count in there.items() if at == row and count)
    assert use.claimed("default", "c") == sum(count for (name, _), count in there.items() if name == "claim")
    assert use.claimed("other", "c") == 0
    for wanted, user in USERS.items():
        disks = [disk for volume in user.volumes for disk in disks_of(volume)]
        assert use.taken(disks) == {row for (name, row), count in there.items() if count and conflict(name, wanted)}
    for (name, row), count in there.items():
        for _ in range(count):
            use.add(USERS[name], row, -1)
    assert not any((use._disks, use._claims, use._pods))


@pytest.mark.parametrize(
    ("source", "disks"),
    [
        ("gce read", [Disk(("gce", "d"), read_only=True)]), ("gce", [Disk(("gce", "d"), read_only=False)]),
        ("ebs read", [Disk(("ebs", "d"), read_only=False)]), ("iscsi read", [Disk(("iscsi", "d"), read_only=True)]),
        ("rbd read", [Disk(("rbd", "m2", "rbd", "d"), read_only=True)]), ("rbd pool", [Disk(("rbd", "m1", "other", "d"), read_only=False)]),
        ("claim", []), ("cinder", []),
    ],
)  # fmt: skip
def test_a_disk_is_known_by_its_kind_and_where_it_lies(source: str, disks: list[Disk]) -> None:
    assert [disk for volume in USERS[source].volumes for disk in disks_of(volume)] == disks
    assert list(disks_of(a_pod("p").volume(rbd={"image": "nowhere"}).build().volumes[0])) == []


def test_of_no_disk_no_row_is_taken() -> None:
    use = VolumeUse()
    use.add(USERS["gce"], 0, 1)
    assert (use.taken([]), use.taken(())) == (frozenset(), frozenset())
