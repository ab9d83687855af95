"""The console's state: deltas lead to the new state, rows say what the objects say, and no reader sees more than its rights."""

from __future__ import annotations

import asyncio
import copy
import json
import random
from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from placewright.api.objects import NodeName
from placewright.cluster.cluster import Cluster
from placewright.http.routes import RequestRefused
from placewright.serving.rights import ALL_NAMESPACES, Rights
from placewright_console.pages import feed as feeds
from placewright_console.pages import publisher
from placewright_console.pages.decisionrows import HIDDEN, MOST_SHOWN, PREEMPTING, LastDecisions, SeenDecision
from placewright_console.pages.feed import Feed
from placewright_console.pages.grouplabels import MOST_LABELS
from placewright_console.pages.nodepage import node_page
from placewright_console.pages.noderows import NO_PROFILE, ConsoleNodes
from placewright_console.pages.statedelta import changed_rows
from placewright_console.pages.waitingrows import MOST_GROUPS, OTHERS, PendingPod, WaitReason, waiting_rows

from .makers import ZONE, a_node, a_pod, applied, put

KEYS = st.sampled_from(["a", "b", "c", "__proto__", "<b>"])
ROWS = st.one_of(st.integers(0, 3), st.lists(st.integers(0, 2), max_size=2))
SECTIONS = st.dictionaries(KEYS, ROWS)
STATES = st.fixed_dictionaries({"nodes": SECTIONS, "queue": SECTIONS})


@given(SECTIONS, SECTIONS)
def test_rows_and_their_changes_give_the_new_rows(before: Any, after: Any) -> None:
    kept = copy.deepcopy(before)
    new, gone = changed_rows(before, after)
    assert applied({"nodes": before}, {"put": {"nodes": new}, "gone": {"nodes": gone}}) == {"nodes": after}
    assert before == kept


@given(SECTIONS)
def test_equal_rows_have_no_changes(rows: Any) -> None:
    assert changed_rows(rows, copy.deepcopy(rows)) == ({}, [])


@given(SECTIONS, SECTIONS)
def test_changes_have_no_row_that_is_as_it_was(before: Any, after: Any) -> None:
    new, gone = changed_rows(before, after)
    assert not [key for key, row in new.items() if before.get(key, ...) == row]
    assert not [key for key in gone if key in after]


# --- nodes --------------------------------------------------------------------------------------------------------------------------


def expected(nodes: dict[str, Any], pods: dict[str, Any], resources: list[str], labels: list[str]) -> tuple[Any, Any]:
    """The rows from the manifests alone."""
    rows, loads = {}, {}
    for name, manifest in nodes.items():
        amounts, keys = manifest["status"]["allocatable"], manifest["metadata"]["labels"]
        gpus = int(amounts.get("example.com/gpu", 0))
        offers = {"cpu": int(amounts["cpu"]) * 1000, "memory": 16 * 2**30, "pods": 10, "example.com/gpu": gpus}
        rows[name] = [[keys.get(key) for key in labels], [offers[each] for each in resources], bool(manifest["spec"].get("unschedulable"))]
        there = [each for each in pods.values() if each["spec"]["nodeName"] == name]
        asks: Counter[str] = Counter(pods=len(there))
        for each in there:
            requests = each["spec"]["containers"][0]["resources"]["requests"]
            asks["cpu"] += int(requests["cpu"].removesuffix("m"))
            asks["memory"] += 2**30
            asks["example.com/gpu"] += int(requests.get("example.com/gpu", 0))
        profiles = Counter(0 if each["spec"]["schedulerName"] == "default-scheduler" else NO_PROFILE for each in there)
        loads[name] = [[asks[each] for each in resources], sorted(profiles.items())]
    return rows, loads


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32))
def test_rows_of_nodes_follow_random_changes(seed: int) -> None:
    draw, cluster = random.Random(seed), Cluster()
    shown = ConsoleNodes(cluster, ["default-scheduler"])
    nodes: dict[str, Any] = {}
    pods: dict[str, Any] = {}
    for step in range(60):
        name = f"n{draw.randrange(8)}"
        match draw.choice(["node", "node", "pod", "pod", "pod", "no node", "no pod"]):
            case "node":
                made = a_node(
                    name, cpu=draw.randint(1, 9), gpu=draw.choice([0, 0, 2]), cordoned=draw.random() < 0.3, zone=draw.choice("abc")
                )
                nodes[name] = made
                put(cluster, made)
            case "pod":
                scheduler = draw.choice(["default-scheduler", "text of a tenant"])
                made = a_pod(f"p{step}", name, cpu=draw.randint(0, 900), gpu=draw.choice([0, 1]), schedulerName=scheduler)
                pods[made["metadata"]["uid"]] = made
                put(cluster, made)
            case "no node" if name in nodes:
                del nodes[name]
                cluster.remove_node(NodeName(name))
            case "no pod" if pods:
                uid = draw.choice(sorted(pods))
                del pods[uid]
                cluster.remove_pod(uid)
        if draw.random() < 0.4 or step == 59:
            shown.refresh()
            about = shown.about()
            assert (shown.nodes, shown.loads) == expected(nodes, pods, list(about["resources"]), list(about["labels"])), step


def test_nodes_can_be_grouped_by_labels_that_divide_them_and_by_no_others() -> None:
    cluster = Cluster()
    put(cluster, a_node("n0", zone="a", hostname="n0"))
    for i in range(1, 6):
        put(cluster, a_node(f"n{i}", zone="ab"[i % 2], arch="amd64", hostname=f"n{i}", disk="fast"))
    shown = ConsoleNodes(cluster, [])
    shown.refresh()
    assert shown.about()["labels"] == (ZONE, "arch", "disk")


def test_the_number_of_labels_in_a_row_has_a_bound() -> None:
    cluster = Cluster()
    for i in range(4):
        put(cluster, a_node(f"n{i}", **{f"label-{j}": str(i % 2) for j in range(50)}))
    shown = ConsoleNodes(cluster, [])
    shown.refresh()
    assert len(shown.about()["labels"]) == MOST_LABELS


def test_a_change_of_one_node_makes_one_row_anew() -> None:
    cluster = Cluster()
    for i in range(20):
        put(cluster, a_node(f"n{i}", zone="ab"[i % 2]))
    shown = ConsoleNodes(cluster, [])
    shown.refresh()
    before = dict(shown.loads)
    put(cluster, a_pod("web", "n3"))
    shown.refresh()
    assert [name for name, row in shown.loads.items() if row is not before[name]] == ["n3"]


# --- waiting pods -------------------------------------------------------------------------------------------------------------------

NO_GPU = WaitReason("NodeResourcesFit", "Insufficient example.com/gpu", 40)
TAINT = WaitReason("TaintToleration", "node(s) had untolerated taint(s)", 5)


def waits(name: str, namespace: str = "ml", since: float = 0.0, *rejections: WaitReason, profile: str = "default") -> PendingPod:
    return PendingPod(namespace, name, profile, "unschedulable", rejections or (NO_GPU, TAINT), since)


def test_pods_that_wait_for_the_same_reasons_share_a_row_with_the_oldest_of_them() -> None:
    pods = [waits(f"train-{i}", since=100.0 - i) for i in range(312)]
    pods.append(waits("other", "ml", 500.0, replace(NO_GPU, nodes=38), TAINT))
    (row,) = waiting_rows(pods, ALL_NAMESPACES).values()
    assert (row["count"], row["oldest"], row["pods"][0]) == (313, -211.0, ["train-311", -211.0])
    assert row["reasons"] == [["NodeResourcesFit", NO_GPU.reason, 38, 40], ["TaintToleration", TAINT.reason, 5, 5]]


@given(st.permutations([waits("a"), waits("b"), waits("c", "shop"), waits("d", "ml", 1.0, TAINT), waits("e", profile="batch")]))
def test_rows_keep_their_keys_in_any_order_of_pods(pods: list[PendingPod]) -> None:
    rows = waiting_rows(pods, ALL_NAMESPACES)
    assert rows.keys() == waiting_rows(sorted(pods), ALL_NAMESPACES).keys()
    assert sum(row["count"] for row in rows.values()) == 5


def test_the_rows_beyond_the_bound_are_summed_up() -> None:
    pods = [waits(f"p{i}", f"ns-{i}", float(i)) for i in range(MOST_GROUPS + 30)]
    rows = waiting_rows(pods, ALL_NAMESPACES)
    assert len(rows) == MOST_GROUPS + 1
    assert rows[OTHERS]["count"] == 30
    assert rows[OTHERS]["oldest"] == MOST_GROUPS


# --- rights -------------------------------------------------------------------------------------------------------------------------


class Releasable:
    """Counts how often the last reader has left."""

    released = 0

    def release(self) -> None:
        self.released += 1


class Shown(Releasable):
    """A state with pods of two namespaces everywhere where pods are."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        put(self.cluster, a_node("n1"))
        for namespace, name in (("bank", "secret-ledger"), ("shop", "web")):
            put(self.cluster, a_pod(name, "n1", namespace=namespace, schedulerName=f"{name}-scheduler"))
        self.nodes = ConsoleNodes(self.cluster, ["default-scheduler"])
        self.placements = LastDecisions()
        for namespace, name in (("bank", "secret-ledger"), ("shop", "web")):
            self.placements.add(SeenDecision(f"{name}-uid", namespace, name, "n1", "default", 5.0))
        claim = WaitReason("VolumeBinding", 'persistentvolumeclaim "secret-claim" not found', 1)
        self.waiting = [waits("secret-job", "bank", 3.0, claim), waits("open-job", "shop", 4.0)]

    def sections(self, rights: Rights) -> Any:
        self.nodes.refresh()
        return {
            "about": self.nodes.about(),
            "nodes": self.nodes.nodes,
            "loads": self.nodes.loads,
            "queue": waiting_rows(self.waiting, rights),
            "decisions": self.placements.rows(rights),
        }


async def first_line(feed: Feed, rights: Rights) -> bytes:
    reader = feed.join(rights)
    line = await anext(reader.lines(1.0))
    feed.leave(reader)
    return line


async def test_a_pod_of_a_namespace_that_may_not_be_seen_is_nowhere_in_the_bytes() -> None:
    shown = Shown()
    feed = Feed(shown)
    line = await first_line(feed, Rights.of(["shop"]))
    assert b"secret" not in line
    assert b"bank" not in line
    assert b"open-job" in line
    assert b"secret-ledger" in await first_line(feed, ALL_NAMESPACES), "the test's own search works"


async def test_pods_that_may_not_be_seen_are_in_the_sums() -> None:
    state = json.loads(await first_line(Feed(Shown()), Rights.of(["shop"])))["state"]
    assert state["loads"]["n1"][0][state["about"]["resources"].index("pods")] == 2
    assert sum(row["count"] for row in state["queue"].values()) == 2
    assert state["decisions"][HIDDEN] == 1


async def test_a_change_of_hidden_pods_alone_brings_their_sums_and_no_name() -> None:
    shown = Shown()
    feed = Feed(shown)
    reader = feed.join(Rights.of(["shop"]))
    lines = reader.lines(1.0)
    await anext(lines)
    shown.waiting.append(waits("secret-two", "bank", 6.0, WaitReason("VolumeBinding", "secret-reason", 1)))
    feed.publish()
    assert b"secret" not in await anext(lines)


def test_the_page_of_a_node_names_no_pod_that_may_not_be_seen() -> None:
    shown = Shown()
    page = node_page(shown.cluster, NodeName("n1"), [], Rights.of(["shop"]))
    assert page is not None
    assert b"secret" not in msgspec.json.encode(page)
    assert (page["hidden"], [each["name"] for each in page["pods"]]) == (1, ["web"])
    assert node_page(shown.cluster, NodeName("gone"), [], ALL_NAMESPACES) is None


def test_decisions_have_a_bound_and_the_latest_are_shown() -> None:
    kept = LastDecisions()
    for i in range(5000):
        kept.add(SeenDecision(f"u{i}", "shop", f"web-{i}", "n1", "default", float(i)))
    rows = kept.rows(ALL_NAMESPACES)
    assert len(rows) == MOST_SHOWN
    assert {row[1] for row in rows.values()} == {f"web-{i}" for i in range(4900, 5000)}
    assert kept.rows(Rights.of([]))[HIDDEN] == 1000


def test_victims_that_may_not_be_seen_are_counted() -> None:
    kept = LastDecisions()
    victims = (("shop", "old"), ("bank", "secret-ledger"))
    kept.add(SeenDecision("u", "shop", "new", "n1", "default", 1.0, PREEMPTING, 3, victims))
    assert kept.rows(Rights.of(["shop"])) == {"1": ["shop", "new", "n1", "default", 1.0, "preempting", 3, ["shop/old"], 1]}
    assert kept.rows(Rights.of(["bank"])) == {HIDDEN: 1}


# --- the feed -----------------------------------------------------------------------------------------------------------------------


class Counting(Releasable):
    """A state of one row, which counts how often it is made."""

    def __init__(self, **rows: Any) -> None:
        self.rows: dict[str, Any] = rows
        self.made = 0

    def sections(self, rights: Rights) -> Any:
        self.made += 1
        return {"about": self.rows}


@settings(max_examples=50, deadline=None)
@given(st.lists(STATES, min_size=1, max_size=6))
def test_a_reader_that_applies_every_line_has_the_publisher_s_state(states: list[Any]) -> None:
    class Source(Releasable):
        state: Any = states[0]

        def sections(self, rights: Rights) -> Any:
            return self.state

    async def follow() -> None:
        source = Source()
        feed = Feed(source)
        reader = feed.join(ALL_NAMESPACES)
        lines = reader.lines(1.0)
        first = json.loads(await anext(lines))
        have, version = first["state"], first["version"]
        for state in states[1:]:
            changed = state != source.state
            source.state = state
            feed.publish()
            if changed:
                message = json.loads(await anext(lines))
                assert message["from"] == version
                have, version = applied(have, message["delta"]), message["version"]
            assert have == state

    asyncio.run(follow())


async def test_a_line_is_encoded_once_for_all_readers_of_a_class() -> None:
    source = Counting(x=1)
    feed = Feed(source)
    readers = [feed.join(ALL_NAMESPACES) for _ in range(10)]
    lines = [each.lines(1.0) for each in readers]
    first = [await anext(each) for each in lines]
    assert len({id(line) for line in first}) == 1
    source.rows = {"x": 2}
    feed.publish()
    assert len({id(await anext(each)) for each in lines}) == 1
    assert source.made == 2


async def test_a_reader_that_does_not_keep_up_is_dropped_and_the_others_are_not() -> None:
    source = Counting(x="")
    feed = Feed(source)
    slow, quick = feed.join(ALL_NAMESPACES), feed.join(ALL_NAMESPACES)
    lines = quick.lines(1.0)
    await anext(lines)
    for i in range(10):
        source.rows = {"x": str(i) * 2**20}
        feed.publish()
        await anext(lines)
    assert (slow.dropped, quick.dropped) == (True, False)
    assert [line async for line in slow.lines(1.0)] == []


async def test_a_silent_feed_sends_empty_lines() -> None:
    reader = Feed(Counting(x=1)).join(ALL_NAMESPACES)
    lines = reader.lines(0.001)
    await anext(lines)
    assert await anext(lines) == b"\n"


def test_readers_and_classes_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "MOST_READERS", 3)
    monkeypatch.setattr(feeds, "MOST_CLASSES", 1)
    feed = Feed(Counting(x=1))
    first = feed.join(ALL_NAMESPACES)
    feed.join(Rights.of(["a"]), "ann")
    with pytest.raises(RequestRefused):
        feed.join(Rights.of(["b"]), "bob")
    feed.join(ALL_NAMESPACES)
    with pytest.raises(RequestRefused):
        feed.join(ALL_NAMESPACES)
    feed.leave(first)
    feed.join(ALL_NAMESPACES)


def test_a_place_is_kept_for_readers_who_may_see_all_namespaces() -> None:
    feed = Feed(Counting(x=1))
    for number in range(feeds.MOST_CLASSES):
        feed.join(Rights.of([f"ns-{number}"]), f"user-{number}")
    with pytest.raises(RequestRefused):
        feed.join(Rights.of(["other"]), "newcomer")
    feed.join(ALL_NAMESPACES, "administrator")


def test_a_party_with_many_classes_of_rights_makes_room_for_others_and_not_for_itself() -> None:
    feed = Feed(Counting(x=1))
    crowd = [feed.join(Rights.of([f"ns-{number}"]), "crowd") for number in range(feeds.MOST_CLASSES)]
    with pytest.raises(RequestRefused):
        feed.join(Rights.of(["one-more"]), "crowd")
    others = [feed.join(Rights.of([f"other-{number}"]), f"user-{number}") for number in range(feeds.MOST_CLASSES - 1)]
    assert [each.dropped for each in crowd] == [True] * len(others) + [False], "the oldest first, and one is left"
    assert not any(each.dropped for each in others)
    for reader in crowd:
        feed.leave(reader)  # of classes that are gone, too
    feed.join(Rights.of(["last"]), "last")
    assert not any(each.dropped for each in others)


def test_a_source_is_released_when_the_last_reader_of_all_classes_has_left() -> None:
    source = Counting(x=1)
    feed = Feed(source)
    readers = [feed.join(rights) for rights in (ALL_NAMESPACES, ALL_NAMESPACES, Rights.of(["a"]))]
    for reader in readers[:2]:
        feed.leave(reader)
    assert source.released == 0
    feed.leave(readers[2])
    feed.leave(readers[2])
    assert source.released == 1


class Sliced(Counting):
    """A source that has work for a number of slices."""

    def __init__(self, slices: int) -> None:
        super().__init__(left=slices)
        self.slices = slices

    def advance(self) -> bool:
        self.slices -= 1
        self.rows = {"left": self.slices}
        return self.slices > 0

    def node(self, name: str, rights: Rights) -> None:
        """No node is known."""

    def pod(self, namespace: str, name: str, rights: Rights) -> None:
        """No pod is known."""


async def test_a_source_is_brought_forward_while_there_are_readers_and_not_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher, "REST", 0.0)
    source = Sliced(3)
    feed = Feed(source)
    running = asyncio.create_task(publisher.keep_publishing(feed, source, 0.0))
    for _ in range(20):
        await asyncio.sleep(0)
    assert (source.slices, source.made) == (3, 0)
    reader = feed.join(ALL_NAMESPACES)
    lines = reader.lines(1.0)
    async for line in lines:
        if b'"left":0' in line:
            break
    feed.leave(reader)
    slices = source.slices
    for _ in range(20):
        await asyncio.sleep(0)
    assert source.slices == slices
    running.cancel()


async def test_a_state_of_5000_nodes_and_a_delta_of_one_are_small() -> None:
    cluster = Cluster()
    for i in range(5000):
        put(cluster, a_node(f"ip-10-0-{i // 256}-{i % 256}.eu-west-1.compute.internal", gpu=i % 2, zone="abc"[i % 3], pool=f"pool-{i % 5}"))
    nodes = ConsoleNodes(cluster, ["default-scheduler"])

    class Source(Releasable):
        def sections(self, rights: Rights) -> Any:
            nodes.refresh()
            return {"about": nodes.about(), "nodes": nodes.nodes, "loads": nodes.loads}

    feed = Feed(Source())
    lines = feed.join(ALL_NAMESPACES).lines(1.0)
    assert len(await anext(lines)) < 1_200_000
    put(cluster, a_pod("web", "ip-10-0-0-1.eu-west-1.compute.internal"))
    feed.publish()
    assert len(await anext(lines)) < 200


class ByRights(Releasable):
    """One section that all readers share, and one of their own."""

    def __init__(self) -> None:
        self.shared: dict[str, Any] = {}
        self.own: dict[str, dict[str, Any]] = {}

    def sections(self, rights: Rights) -> Any:
        return {"nodes": self.shared, "queue": dict(self.own.get(str(rights), {}))}


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32))
def test_readers_of_all_classes_have_their_state_however_sections_are_shared(seed: int) -> None:
    draw, source = random.Random(seed), ByRights()
    feed = Feed(source)
    have: dict[Any, Any] = {}

    async def follow() -> None:
        for _ in range(20):
            rights = Rights.of([f"ns-{draw.randrange(4)}"])
            if draw.random() < 0.3:
                reader = feed.join(rights)
                have[reader] = None
            if have and draw.random() < 0.1:
                gone = draw.choice(list(have))
                feed.leave(gone)
                del have[gone]
            for rows in (source.shared, source.own.setdefault(str(rights), {})):
                rows.pop(draw.choice("abc"), None)
                rows[draw.choice("abc")] = [draw.randrange(3)]
            feed.publish()
            for reader, before in have.items():
                state = before
                for line in list(reader._lines):
                    message = json.loads(line)
                    state = message["state"] if "state" in message else applied(state, message["delta"])
                reader._lines.clear()
                have[reader] = state
                assert state == source.sections(reader.rights)

    asyncio.run(follow())


def test_a_section_that_classes_share_is_compared_once_for_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    source, compared = ByRights(), list[Any]()
    feed = Feed(source)
    for i in range(5):
        feed.join(Rights.of([f"ns-{i}"]))
    feed.publish()
    plain = feeds.changed_rows
    monkeypatch.setattr(feeds, "changed_rows", lambda before, after: compared.append(after) or plain(before, after))
    for value in range(2):
        compared.clear()
        source.shared["a"] = [value]
        feed.publish()
    assert sum(rows is source.shared for rows in compared) == 1


def test_others_have_their_turn_after_each_few_readers() -> None:
    source = Counting(x=1)
    feed = Feed(source)
    for _ in range(20):
        feed.join(ALL_NAMESPACES)
    source.rows = {"x": 2}
    assert sum(1 for _ in feed.publishing()) == 20 // feeds.READERS_A_STEP + 1
