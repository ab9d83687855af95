"""What an assumed pod will carry once it is bound, and where that is seen."""

from __future__ import annotations

from placewright.api.annotations import DEVICES, read_devices, write_devices
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.testing import node, pod

NODE = NodeName("n0")


def cluster_with(one: PodInfo) -> Cluster:
    cluster = Cluster()
    cluster.set_node(node("n0").build())
    cluster.assume(one, NODE)
    return cluster


def seen(cluster: Cluster) -> list[dict[str, str]]:
    return [dict(one.pod.metadata.annotations or {}) for one in cluster.pods_on(NODE)]


def test_an_assumed_pod_has_them_at_once_and_its_row_has_changed() -> None:
    cluster = cluster_with(pod("a").build().annotated({"mine": "1", "other": "2"}))
    before = cluster.pod_journal.position
    cluster.annotate("uid-a", {"example.com/x": "3", "other": None})
    assert seen(cluster) == [{"mine": "1", "example.com/x": "3"}]
    assert cluster.pod_journal.since(before) == [cluster.row(NODE)]
    placement = cluster.placement("uid-a")
    assert placement is not None
    assert placement.assumed


def test_a_pod_that_is_confirmed_or_unknown_stays_as_the_api_server_shows_it() -> None:
    cluster = cluster_with(pod("a").build())
    cluster.set_pod(pod("a", on="n0").build())
    before = cluster.pod_journal.position
    cluster.annotate("uid-a", {"example.com/x": "3"})
    cluster.annotate("uid-nobody", {"example.com/x": "3"})
    assert seen(cluster) == [{}]
    assert cluster.pod_journal.position == before


def test_a_text_longer_than_any_list_of_devices_is_none() -> None:
    assert read_devices({DEVICES: '{"example.com/gpu":[' + "1," * 5_000 + "1]}"}, "example.com/gpu") is None
    whole = tuple(range(256))
    assert read_devices({DEVICES: write_devices("example.com/gpu-memory-mebibytes", whole)}, "example.com/gpu-memory-mebibytes") == whole


def test_what_is_written_is_read() -> None:
    annotations = {DEVICES: write_devices("example.com/gpu", (3, 0))}
    assert read_devices(annotations, "example.com/gpu") == (3, 0)
    assert read_devices(annotations, "example.com/other") is None
    assert read_devices(None, "example.com/gpu") is None
