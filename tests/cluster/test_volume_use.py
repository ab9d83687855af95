"""The index of volumes in use: counted by row, and empty again when everybody has left."""

from __future__ import annotations

from typing import Any

import pytest

from placewright import testing as kit
from placewright.api.decode import convert
from placewright.api.objects import Node, NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.cluster.volumes import Disk, disks_of

WRITER, READER = Disk(("gce", "d"), read_only=False), Disk(("gce", "d"), read_only=True)


def a_pod(name: str, *volumes: dict[str, Any], node: str = "n0") -> PodInfo:
    return kit.pod(name, on=node).uid(name).namespace("home").volumes(*volumes).build()


def disk(*, read_only: bool) -> dict[str, Any]:
    return {"gcePersistentDisk": {"pdName": "d", "readOnly": read_only}}


def uses(claim: str) -> dict[str, Any]:
    return {"persistentVolumeClaim": {"claimName": claim}}


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    for name in ("n0", "n1"):
        cluster.set_node(convert({"metadata": {"name": name}}, Node))
    return cluster


def test_a_writer_takes_a_disk_from_all_and_a_reader_only_from_writers(cluster: Cluster) -> None:
    cluster.set_pod(a_pod("w", disk(read_only=False)))
    cluster.set_pod(a_pod("r", disk(read_only=True), node="n1"))
    assert cluster.volumes.taken([WRITER]) == {0, 1}
    assert cluster.volumes.taken([READER]) == {0}


def test_volumes_that_do_not_come_from_storage_are_not_kept(cluster: Cluster) -> None:
    plain = a_pod("p", {"configMap": {}}, {"emptyDir": {}}, {"image": {"reference": "i"}}, {"csi": {"driver": "d"}})
    cluster.set_pod(plain)
    assert plain.volumes == ()
    assert not list(cluster.volumes.pods(0))
    assert cluster.volumes.journal.position == 0


def test_a_pod_counts_where_its_node_is_and_no_longer_once_that_is_gone(cluster: Cluster) -> None:
    cluster.set_pod(a_pod("p", uses("c"), node="later"))
    assert cluster.volumes.claimed("home", "c") == 0
    cluster.set_node(convert({"metadata": {"name": "later"}}, Node))
    assert cluster.volumes.claimed("home", "c") == 1
    cluster.remove_node(NodeName("later"))
    assert cluster.volumes.claimed("home", "c") == 0


def test_a_pod_that_is_tried_where_it_stands_is_still_there_afterwards(cluster: Cluster) -> None:
    one = a_pod("p", uses("c"), disk(read_only=False))
    cluster.set_pod(one)
    with cluster.dry_run_on_row(add=[one], row=0):
        assert cluster.volumes.claimed("home", "c") == 2
        assert [each.name for each in cluster.volumes.pods(0)] == ["p"]
    with cluster.dry_run_on_row(remove=[one], row=0):
        assert not list(cluster.volumes.pods(0))
        assert not cluster.volumes.taken([WRITER])
    assert [each.name for each in cluster.volumes.pods(0)] == ["p"]
    assert cluster.volumes.taken([WRITER]) == {0}


def test_every_change_is_in_the_journal_the_hypothetical_ones_too(cluster: Cluster) -> None:
    cluster.set_pod(a_pod("p", uses("c"), node="n1"))
    start = cluster.volumes.journal.position
    with cluster.dry_run_on_row(add=[a_pod("q", uses("d"))], row=0):
        assert cluster.volumes.journal.since(start) == [0]
    cluster.remove_pod("p")
    assert cluster.volumes.journal.since(start) == [0, 0, 1]


def test_a_pod_whose_volumes_are_others_now_is_counted_anew(cluster: Cluster) -> None:
    cluster.set_pod(a_pod("p", uses("c")))
    cluster.set_pod(a_pod("p", uses("d")))
    assert (cluster.volumes.claimed("home", "c"), cluster.volumes.claimed("home", "d")) == (0, 1)


def test_a_ceph_image_is_a_disk_at_each_of_its_monitors() -> None:
    image = a_pod("p", {"rbd": {"monitors": ["m", "n"], "pool": "s", "image": "i", "readOnly": True}})
    assert list(disks_of(image.volumes[0])) == [
        Disk(("rbd", "m", "s", "i"), read_only=True),
        Disk(("rbd", "n", "s", "i"), read_only=True),
    ]


def test_an_ebs_volume_is_never_shared_even_for_reading() -> None:
    ebs = a_pod("p", {"awsElasticBlockStore": {"volumeID": "v", "readOnly": True}})
    assert list(disks_of(ebs.volumes[0])) == [Disk(("ebs", "v"), read_only=False)]
