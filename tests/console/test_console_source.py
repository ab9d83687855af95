"""The operator's state for the console: what is kept from changes is what the queue and the columns say, and nothing is kept unread."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placewright.api.annotations import DECISION
from placewright.api.objects import PodKey
from placewright.engine.engine import Engine
from placewright.explain.records import Records
from placewright.profiles.live import Active
from placewright.queue.hints import Requeue
from placewright.queue.queued import Suspicion
from placewright.serving.rights import ALL_NAMESPACES, Rights
from placewright.serving.schedulerview import SchedulerView
from placewright.testing import World, node, pod, profile
from placewright_console.live import livesource
from placewright_console.live.livesource import LiveSource, _Kept
from placewright_console.pages.decisionrows import HIDDEN
from placewright_console.pages.feed import Feed
from placewright_console.pages.noderows import ConsoleNodes
from placewright_console.pages.waitingrows import waiting_rows
from randomcases import cases

READERS = (ALL_NAMESPACES, Rights.of(["shop"]), Rights.of([]))
EPOCH = 1_700_000_000.0


class Console:
    """A scheduler in virtual time with its records, and the source beside it."""

    def __init__(self, **world: Any) -> None:
        self.world = World(profile=profile().backoff(initial=1, longest=4), **world)
        self.records = Records(self.wall)
        self.world.listening.append(self.records)
        live = SimpleNamespace(active={}, by_scheduler_name=self._profile_of)
        self.deciding = SimpleNamespace(
            cluster=self.world.cluster, queue=self.world.queue, live=live, replica="replica-0", scheduler=self.world.scheduler
        )
        self.access = SimpleNamespace(server="https://api", context="")
        client = SimpleNamespace(away=SimpleNamespace(away_since=None))
        engine = SimpleNamespace(
            deciding=self.deciding, access=self.access, writing=SimpleNamespace(client=client), leading=SimpleNamespace(leadership=None)
        )
        self.adopt()
        self.view = SchedulerView(cast("Engine", engine), self.records)
        self.source = LiveSource(self.view, clock=self.world.time, wall=self.wall)

    def _profile_of(self, name: str) -> Active[Any] | None:
        return self.active.get(name)

    def wall(self) -> float:
        return EPOCH + self.world.time()

    def adopt(self) -> None:
        """As the live set does: a new mapping of the profiles in effect."""
        self.active = self.deciding.live.active = {name: Active(each.runtime.profile, each) for name, each in self.world.profiles.items()}

    def settled(self, rights: Rights = ALL_NAMESPACES) -> Any:
        self.source.sections(rights)
        while self.source.advance():
            pass
        return self.source.sections(rights)

    def anew(self, rights: Rights) -> Any:
        """The same sections from all pods and all nodes, without what was kept."""
        kept = _Kept(self.view, EPOCH)
        pods = [self.source._pending(kept, queued) for _, queued in self.world.queue.pods()]
        nodes = ConsoleNodes(self.world.cluster, sorted(self.deciding.live.active))
        nodes.refresh()
        return {"nodes": nodes.nodes, "loads": nodes.loads, "queue": waiting_rows(pods, rights)}


def change(console: Console, draw: random.Random) -> None:
    """Something that happens in a cluster."""
    world = console.world
    match draw.choice(["pod"] * 4 + ["gone", "node", "node gone", "time", "time", "profile"]):
        case "pod":
            made = pod(f"p{draw.randrange(12)}").namespace(draw.choice(["shop", "bank"])).requests(cpu=draw.choice(["1", "3", "9"]))
            made = made.gates("quota") if draw.random() < 0.1 else made
            made = made.scheduler(draw.choice(["default-scheduler"] * 5 + ["another"])).priority(draw.choice([0, 0, 5]))
            world.show(made) if draw.random() < 0.5 else world.add(made)
        case "gone":
            waiting = [queued.pod for _, queued in world.queue.pods()] + [each.pod for each in world.cluster.placements()]
            if waiting:
                world.remove(draw.choice(sorted(waiting, key=lambda each: each.key)))
        case "node":
            world.add(node(f"n{draw.randrange(4)}").labels(zone=draw.choice("ab")).offers(cpu=draw.choice(["2", "4"])))
        case "node gone":
            names = sorted(name for name in world.cluster.names if name)
            if names:
                world.remove(node(draw.choice(names)))
        case "time":
            world.advance(draw.choice([0.5, 2.0, 30.0]))
        case _:
            world.use(profile().backoff(initial=1, longest=draw.randint(2, 9)))
            console.adopt()


@settings(max_examples=cases(25), deadline=None)
@given(st.integers(0, 2**32))
def test_rows_that_follow_random_changes_are_those_made_anew(seed: int) -> None:
    draw, console = random.Random(seed), Console()
    for _ in range(40):
        change(console, draw)
        if draw.random() < 0.3:
            console.source.sections(ALL_NAMESPACES)
            console.source.advance()
        if draw.random() < 0.2:
            for rights in READERS:
                state = console.settled(rights)
                assert {name: state[name] for name in ("nodes", "loads", "queue")} == console.anew(rights)


def test_a_waiting_pod_is_told_with_the_reasons_of_its_last_attempt_and_their_numbers() -> None:
    console = Console(nodes=[node("a").offers(cpu="2"), node("b").offers(cpu="2").taint("kept")])
    console.world.add(pod("large").namespace("shop").requests(cpu="9").priority(7))
    (row,) = console.settled()["queue"].values()
    assert (row["place"], row["profile"], row["count"]) == ("unschedulable", "default-scheduler", 1)
    assert sorted(each[:1] + each[2:] for each in row["reasons"]) == [["NodeResourcesFit", 1, 1], ["TaintToleration", 1, 1]]
    assert row["pods"][0][0] == "large"
    assert row["pods"][0][2:] == [7, 1, 0.0]


def test_a_pod_that_backs_off_is_told_with_the_end_of_its_backoff() -> None:
    console = Console(nodes=[node("a").offers(cpu="2")])
    console.world.add(pod("large").namespace("shop").requests(cpu="9"))
    console.settled()
    console.world.show(node("b").offers(cpu="16").taint("kept"))
    uid = console.world.queue.uid_of(PodKey("shop/large"))
    assert uid is not None
    console.world.queue.retry(uid, full_backoff=True)
    (row,) = console.settled()["queue"].values()
    assert row["place"] == "backoff"
    assert row["pods"][0][4] - console.wall() == pytest.approx(1.5, abs=0.6)


def test_the_source_is_named_by_its_cluster_and_not_by_the_host() -> None:
    console = Console()
    about = console.settled()["about"]
    assert (about["source"], about["replica"]) == ("https://api", "replica-0")
    console.access.context = "prod-eu"
    assert console.settled()["about"]["source"] == "prod-eu"


def test_gated_suspect_and_untaken_pods_are_told_apart() -> None:
    console = Console(nodes=[node("a").offers(cpu="2")])
    lost = pod("lost").namespace("shop").scheduler("defualt-scheduler")
    console.world.show(pod("gated").namespace("shop").gates("quota"), lost, pod("poison").namespace("shop"))
    queue = console.world.queue
    poison = queue.get(queue.uid_of(PodKey("shop/poison")) or "")
    assert poison is not None
    poison.suspicion = Suspicion(1, 1e9)
    next(queue.profile_queues()).enter(poison, Requeue.IMMEDIATELY, console.world.now)
    rows = {row["pods"][0][0]: row for row in console.settled()["queue"].values()}
    assert (rows["gated"]["place"], rows["gated"]["reasons"]) == (
        "gated",
        [["SchedulingGates", "waiting for scheduling gates: [quota]", 0, 0]],
    )
    assert rows["poison"]["place"] == "suspect"
    assert rows["lost"]["profile"] == ""
    assert "defualt-scheduler" in rows["lost"]["reasons"][0][1]


async def test_the_last_decisions_are_told_with_their_generation_and_their_victims() -> None:
    console = Console(nodes=[node("a").offers(cpu="2")])
    console.source.sections(ALL_NAMESPACES)
    console.world.show(pod("old").namespace("bank").requests(cpu="2"))
    await console.world.attempt()
    console.world.show(pod("new").namespace("shop").requests(cpu="2").priority(9))
    await console.world.attempt()
    rows = {row[1]: row for row in console.settled()["decisions"].values()}
    assert rows["old"][:4] == ["bank", "old", "a", "default-scheduler"]
    assert (rows["old"][5], rows["new"][5]) == ("placed", "preempting")
    assert rows["new"][2:3] + rows["new"][7:] == ["a", ["bank/old"], 0, "Insufficient cpu"]
    (row, hidden) = console.settled(Rights.of(["shop"]))["decisions"].values()
    assert (row[7:9], hidden) == ([[], 1], 1)
    assert console.settled(Rights.of([]))["decisions"] == {HIDDEN: 2}


def test_tenants_are_told_in_the_order_of_their_turns_and_by_name_to_those_who_may_see_them() -> None:
    console = Console(nodes=[node("a").offers(cpu="2")])
    console.world.use(profile().spec(fairness={"by": "Namespace"}))
    console.adopt()
    for number, namespace in enumerate(("shop", "bank", "shop")):
        console.world.show(pod(f"p{number}").namespace(namespace))
    turns = console.settled()["turns"]
    assert turns == {"default-scheduler/0": ["default-scheduler", 0, [["shop", 2, 1, False], ["bank", 1, 1, False]], 2]}
    (hidden,) = console.settled(Rights.of(["shop"]))["turns"].values()
    assert hidden[2] == [["shop", 2, 1, False], [None, 1, 1, False]]
    console.world.use(profile())
    console.adopt()
    assert console.settled()["turns"] == {}


def test_no_name_of_a_hidden_namespace_is_in_the_bytes() -> None:
    console = Console(nodes=[node("a").offers(cpu="2")])
    console.source.sections(ALL_NAMESPACES)
    for name in ("secret-small", "secret-large"):
        made = pod(name).namespace("secret-bank").labels(of="secret-owner")
        console.world.add(made.requests(cpu="1" if name == "secret-small" else "9"))
    console.world.add(pod("secret-lost").namespace("secret-bank").scheduler("secret-scheduler"))
    console.world.add(pod("open").namespace("shop").requests(cpu="9"))
    for rights in (Rights.of(["shop"]), Rights.of([])):
        assert b"secret" not in msgspec.json.encode(console.settled(rights))
        assert b"secret" not in msgspec.json.encode(console.source.node("a", rights))
        assert console.source.pod("secret-bank", "secret-large", rights) is None
    assert b"secret" in msgspec.json.encode(console.settled(ALL_NAMESPACES)), "the test's own search works"


def test_the_page_of_a_pod_has_its_attempts_the_latest_first_and_its_place_in_the_queue() -> None:
    console = Console(nodes=[node("a").offers(cpu="2")])
    console.world.add(pod("large").namespace("shop").requests(cpu="9"))
    console.world.add(node("b").offers(cpu="16").taint("kept"))
    console.world.advance(30.0)
    page = console.source.pod("shop", "large", ALL_NAMESPACES)
    assert page is not None
    assert [each["number"] for each in page["attempts"]] == [2, 1]
    assert [sorted(each["refusals"]) for each in page["attempts"]] == [
        [["NodeResourcesFit", "Insufficient cpu", 1], ["TaintToleration", "node(s) had untolerated taint(s)", 1]],
        [["NodeResourcesFit", "Insufficient cpu", 1]],
    ]
    assert (page["queue"]["place"], page["queue"]["attempts"]) == ("unschedulable", 2)
    assert page["changes"]
    restricted = console.source.pod("shop", "large", Rights.of(["shop"]))
    assert restricted is not None
    assert (restricted["changes"], restricted["attempts"]) == ([], page["attempts"])


def test_a_placed_pod_without_a_record_has_its_node_and_says_why_there_is_none() -> None:
    console = Console(nodes=[node("a").offers(cpu="2")])
    decided = '{"profile": "default", "generation": 3, "score": 457, "runnerUp": 450}'
    console.world.add(pod("before").namespace("shop").on("a").annotations({DECISION: decided}))
    console.world.add(pod("theirs").namespace("shop").on("a").scheduler("another"))
    page = console.source.pod("shop", "before", ALL_NAMESPACES)
    assert page is not None
    assert page["lines"] == ["on node a"]
    assert page["notes"] == [
        "No attempt is recorded: this replica did not lead yet, newer records took the place of its own, or something else placed it."
    ]
    assert page["decision"]["score"] == 457
    assert page["asks"] is not None
    other = console.source.pod("shop", "theirs", ALL_NAMESPACES)
    assert other is not None
    assert (other["node"], other["decision"]) == ("a", None)
    assert other["notes"] == ["No attempt is recorded: no profile takes its schedulerName, so something else placed it."]
    assert console.source.pod("shop", "before", Rights.of(["bank"])) is None
    assert console.source.pod("shop", "nobody", ALL_NAMESPACES) is None


def test_a_record_of_an_earlier_pod_of_the_name_does_not_hide_the_one_that_has_a_node() -> None:
    console = Console(nodes=[node("a").offers(cpu="2")])
    console.world.add(pod("db-0").namespace("shop").uid("first").requests(cpu="1"))
    console.world.advance(1.0)
    console.world.remove("shop/db-0")
    gone = console.source.pod("shop", "db-0", ALL_NAMESPACES)
    assert gone is not None
    assert (gone["node"], len(gone["attempts"])) == ("", 1), "what is known of it is told"
    console.world.add(pod("db-0").namespace("shop").uid("second").on("a"))
    page = console.source.pod("shop", "db-0", ALL_NAMESPACES)
    assert page is not None
    assert (page["node"], page["attempts"]) == ("a", [])


def test_nothing_is_kept_or_noted_before_the_first_reader_and_after_the_last() -> None:
    console = Console(nodes=[node("a").offers(cpu="2")])
    changed = console.world.queue.changed
    feed = Feed(console.source)
    console.world.add(pod("early").namespace("shop").requests(cpu="9"))
    assert (console.source.advance(), console.source.behind, changed.uids) == (False, 0, None)
    readers = [feed.join(rights) for rights in READERS]
    console.world.add(pod("web").namespace("shop").requests(cpu="9"))
    assert len(console.settled()["queue"]) == 1
    assert changed.uids == {}
    for reader in readers:
        feed.leave(reader)
    console.world.add(pod("late").namespace("shop").requests(cpu="9"))
    assert (console.source.advance(), console.source.behind, changed.uids) == (False, 0, None)
    feed.join(ALL_NAMESPACES)
    assert next(iter(console.settled()["queue"].values()))["count"] == 3


def test_a_slice_does_a_bounded_number_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(nodes=[node(f"n{i}").offers(cpu="2") for i in range(9)])
    console.world.show(*(pod(f"p{i}").namespace(f"ns-{i}").requests(cpu="9") for i in range(9)))
    for name in ("NODES_A_SLICE", "PODS_A_SLICE", "GROUPS_A_SLICE"):
        monkeypatch.setattr(livesource, name, 2)
    console.source.sections(ALL_NAMESPACES)
    seen = []
    while console.source.advance():
        state = console.source.sections(ALL_NAMESPACES)
        assert len(state["about"]["opening"]) == 2
        seen.append(sum(row["count"] for row in state["queue"].values()))
    assert [after - before for before, after in zip([0, *seen], seen, strict=False) if after - before > 2] == []
    assert len(seen) > 5
    assert "opening" not in console.settled()["about"]
    assert len(console.settled()["nodes"]) == 9
