"""The note of a pod's devices is believed once, whatever tenants write under its name."""

from __future__ import annotations

import gc

from hypothesis import given
from hypothesis import strategies as st

from placewright.api.annotations import DEVICES, write_devices
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.plugins.devicefragmentation.noteddevices import noted_devices
from placewright.shadow.chooser import ShadowCluster
from placewright.testing import node, pod

NODE = NodeName("n0")
CHOSEN, CLAIMED = write_devices("example.com/gpu", (1,)), write_devices("example.com/gpu", (0,))
#: What a tenant may write under the name, at any time.
WORDS = st.sampled_from([None, CLAIMED, CHOSEN, "{}", "[]", "x" * 10_000])


def followed() -> Cluster:
    cluster = Cluster()
    cluster.set_node(node("n0").build())
    noted_devices(cluster)
    return cluster


def cluster_with(one: PodInfo) -> Cluster:
    cluster = followed()
    cluster.assume(one, NODE)
    return cluster


def noted(cluster: Cluster) -> str | None:
    (one,) = cluster.pods_on(NODE)
    return noted_devices(cluster).of(one)


def claiming(word: str | None, **where: str) -> PodInfo:
    return pod("a", **where).build().annotated({DEVICES: word})


def test_a_confirmation_with_the_same_devices_changes_no_row_and_one_with_others_does() -> None:
    for shown, moved in ((CHOSEN, 0), (None, 1)):
        cluster = cluster_with(pod("a").build())
        noted_devices(cluster).choose(pod("a").build(), CHOSEN)
        before = cluster.pod_journal.position
        cluster.set_pod(claiming(shown, on="n0"))
        assert (noted(cluster), cluster.pod_journal.position - before) == (shown, moved)


@given(brought=WORDS, said=st.lists(WORDS, max_size=4))
def test_an_assumed_pod_has_the_devices_that_were_chosen_whatever_it_brought_or_says_later(
    brought: str | None, said: list[str | None]
) -> None:
    cluster = cluster_with(claiming(brought))
    assert noted(cluster) is None
    noted_devices(cluster).choose(pod("a").build(), CHOSEN)
    cluster.set_pod(claiming(CHOSEN, on="n0"))
    for word in said:
        cluster.set_pod(claiming(word, on="n0"))
        assert noted(cluster) == CHOSEN


@given(brought=WORDS, said=st.lists(WORDS.filter(bool), min_size=1, max_size=4))
def test_a_pod_for_which_no_devices_were_chosen_has_none_whatever_it_says(brought: str | None, said: list[str | None]) -> None:
    cluster = cluster_with(claiming(brought))
    for word in said:
        cluster.set_pod(claiming(word, on="n0"))
        assert noted(cluster) is None


@given(first=WORDS, said=st.lists(WORDS, max_size=4))
def test_a_pod_on_its_node_keeps_the_devices_that_it_came_there_with(first: str | None, said: list[str | None]) -> None:
    cluster = followed()
    cluster.set_pod(claiming(first, on="n0"))
    before = cluster.pod_journal.position
    for word in said:
        cluster.set_pod(claiming(word, on="n0"))
        assert noted(cluster) == first
    assert cluster.pod_journal.position == before


def test_notes_end_with_their_pod_and_those_of_a_shadow_with_its_cluster() -> None:
    cluster = cluster_with(pod("a").build())
    noted_devices(cluster).choose(pod("a").build(), CHOSEN)
    shadow = ShadowCluster(cluster)
    shadow.node_set(node("n0").build())
    assert noted_devices(shadow.cluster) is not noted_devices(cluster)
    shadow.pod_stands(claiming(CLAIMED), NODE)  # a pod that the live cluster assumes, with the note that it brought
    assert (noted(cluster), noted(shadow.cluster)) == (CHOSEN, None)
    del shadow
    gc.collect()
    cluster.remove_pod("uid-a")
    cluster.set_pod(claiming(None, on="n0"))
    assert noted(cluster) is None
    assert len(next(iter(cluster.extensions.values()))) == 1
