"""What an assumed pod will carry once it is bound, and where that is seen."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from framework.makers import node, pod
from placewright.api.annotations import DEVICES, read_devices, write_devices
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster

NODE = NodeName("n0")


def cluster_with(one: PodInfo) -> Cluster:
    cluster = Cluster()
    cluster.set_node(node("n0"))
    cluster.assume(one, NODE)
    return cluster


def seen(cluster: Cluster) -> list[dict[str, str]]:
    return [dict(one.pod.metadata.annotations or {}) for one in cluster.pods_on(NODE)]


def test_an_assumed_pod_has_them_at_once_and_its_row_has_changed() -> None:
    cluster = cluster_with(pod("a").annotated({"mine": "1", "other": "2"}))
    before = cluster.pod_journal.position
    cluster.annotate("a", {"example.com/x": "3", "other": None})
    assert seen(cluster) == [{"mine": "1", "example.com/x": "3"}]
    assert cluster.pod_journal.since(before) == [cluster.row(NODE)]
    placement = cluster.placement("a")
    assert placement is not None
    assert placement.assumed


def test_a_pod_that_is_confirmed_or_unknown_stays_as_the_api_server_shows_it() -> None:
    cluster = cluster_with(pod("a"))
    cluster.set_pod(pod("a", node="n0"))
    before = cluster.pod_journal.position
    cluster.annotate("a", {"example.com/x": "3"})
    cluster.annotate("nobody", {"example.com/x": "3"})
    assert seen(cluster) == [{}]
    assert cluster.pod_journal.position == before


def test_a_confirmation_with_the_same_devices_changes_no_row_and_one_with_others_does() -> None:
    cluster = cluster_with(pod("a"))
    cluster.annotate("a", {DEVICES: write_devices("example.com/gpu", (1,))})
    before = cluster.pod_journal.position
    cluster.set_pod(pod("a", node="n0").annotated({DEVICES: write_devices("example.com/gpu", (1,))}))
    assert cluster.pod_journal.position == before
    bound_by_another = cluster_with(pod("a"))
    bound_by_another.annotate("a", {DEVICES: write_devices("example.com/gpu", (1,))})
    before = bound_by_another.pod_journal.position
    bound_by_another.set_pod(pod("a", node="n0"))
    assert bound_by_another.pod_journal.position > before
    assert seen(bound_by_another) == [{}]


CHOSEN, CLAIMED = write_devices("example.com/gpu", (1,)), write_devices("example.com/gpu", (0,))
#: What a tenant may write under the name, at any time.
WORDS = st.sampled_from([None, CLAIMED, CHOSEN, "{}", "[]", "x" * 10_000])


def noted(cluster: Cluster) -> str | None:
    (one,) = cluster.pods_on(NODE)
    return (one.pod.metadata.annotations or {}).get(DEVICES)


def claiming(word: str | None, **where: str) -> PodInfo:
    return pod("a", **where).annotated({DEVICES: word})


@given(brought=WORDS, said=st.lists(WORDS, max_size=4))
def test_an_assumed_pod_has_the_devices_that_were_chosen_whatever_it_brought_or_says_later(
    brought: str | None, said: list[str | None]
) -> None:
    cluster = cluster_with(claiming(brought))
    assert noted(cluster) is None
    cluster.annotate("a", {DEVICES: CHOSEN})
    cluster.set_pod(claiming(CHOSEN, node="n0"))
    for word in said:
        cluster.set_pod(claiming(word, node="n0"))
        assert noted(cluster) == CHOSEN


@given(brought=WORDS, said=st.lists(WORDS.filter(bool), min_size=1, max_size=4))
def test_a_pod_for_which_no_devices_were_chosen_has_none_whatever_it_says(brought: str | None, said: list[str | None]) -> None:
    cluster = cluster_with(claiming(brought))
    for word in said:
        cluster.set_pod(claiming(word, node="n0"))
        assert noted(cluster) is None


@given(first=WORDS, said=st.lists(WORDS, max_size=4))
def test_a_pod_on_its_node_keeps_the_devices_that_it_came_there_with(first: str | None, said: list[str | None]) -> None:
    cluster = Cluster()
    cluster.set_node(node("n0"))
    cluster.set_pod(claiming(first, node="n0"))
    before = cluster.pod_journal.position
    for word in said:
        cluster.set_pod(claiming(word, node="n0"))
        assert noted(cluster) == first
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
