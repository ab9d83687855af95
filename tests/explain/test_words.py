"""The sentences of an explanation: each fact is said once, in the right number, and nothing is said of what is not there."""

from __future__ import annotations

import re
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placewright.explain.explanation import AttemptSummary, ClaimFact, CurrentVerdict, DeviceFact, Explanation, Queued, TurnFacts
from placewright.explain.groupfacts import GroupFacts, Holder, Shortage
from placewright.explain.nearestmiss import Miss
from placewright.explain.words import (
    beyond_line,
    claim_line,
    group_lines,
    headline,
    miss_line,
    queue_line,
    standing,
    time_span,
    verdict,
)
from placewright.framework.remedies import Remedy, RemedyKind
from placewright.scheduler.messages import NO_NODES

DEVICE: Final = DeviceFact("r", "d", "p", "0")
UNITS: Final = {"µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}


def about(**facts: Any) -> Explanation:
    return Explanation("shop", "web", **facts)


def lines(found: Explanation) -> list[str]:
    return list(standing(found))


def ended(**facts: Any) -> AttemptSummary:
    return AttemptSummary("shop", "web", "u", "default", 1, 1, 0.0, "scheduled", 0.1, steps={}, **facts)


# --- durations -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.0, "0 µs"), (42e-6, "42 µs"), (1e-3, "1 ms"), (0.0125, "12.5 ms"), (0.9994, "999 ms"), (0.9996, "1 s"), (1.0, "1 s"),
        (61.25, "61.2 s"), (119.4, "119 s"), (120.0, "2 min"), (7199.0, "120 min"), (7200.0, "2 h"), (90 * 3600.0, "90 h"),
    ],
)  # fmt: skip
def test_a_duration_has_two_or_three_digits_and_one_unit(seconds: float, said: str) -> None:
    assert time_span(seconds) == said


@given(st.floats(0, 1e7))
def test_a_duration_can_be_read_back_and_is_no_further_off_than_its_last_digit(seconds: float) -> None:
    number, unit = time_span(seconds).split()
    assert re.fullmatch(r"\d+(\.\d+)?", number), "no exponent"
    off = abs(float(number) * UNITS[unit] - seconds)
    assert off <= max(0.0051 * seconds, 0.51 * UNITS[unit] if unit in {"µs", "min", "h"} else 0.0)


# --- where the pod is -------------------------------------------------------------------------------------------------------------


def test_the_headline_names_the_profile_only_where_one_is_known() -> None:
    assert headline(about()) == "pod shop/web"
    assert headline(about(profile="batch", generation=7)) == "pod shop/web, profile batch generation 7"


def test_a_pod_on_a_node_is_told_to_be_there_or_to_be_on_its_way() -> None:
    assert lines(about(node="a")) == ["on node a"]
    assert lines(about(node="a", assumed=True)) == ["on node a, as far as the scheduler goes: it is being bound"]


def test_a_pod_that_nobody_knows_is_told_to_be_gone_only_where_attempts_are_known() -> None:
    assert lines(about()) == ["on no node"]
    assert lines(about(tried=(ended(),))) == ["on no node that is known here, nor in the queue: deleted, finished, or of no profile"]


@pytest.mark.parametrize(
    ("facts", "leader", "advised"),
    [
        ({"profile": "default"}, "", True),
        ({"profile": "default", "leader": "replica-1"}, "replica-1", False),
        ({"profile": "default", "paused": True}, "", False),
        ({}, "", False),
    ],
)
def test_a_pending_pod_is_told_to_start_an_operator_only_where_that_would_help(facts: dict[str, Any], leader: str, advised: bool) -> None:
    first, *rest = lines(about(pending=True, **facts))
    assert first.startswith("pending: it is there, on no node, and ")
    assert (f"{leader}, which leads, could not be asked" in first) is bool(leader)
    assert any("placewright run" in line for line in rest) is advised


@pytest.mark.parametrize("facts", [{"paused": True, "node": "a"}, {"queue": Queued("active", 1.0, profile="paused")}])
def test_of_a_paused_profile_it_is_told_how_to_go_on(facts: dict[str, Any]) -> None:
    found = lines(about(profile="batch", **facts))
    assert "  profile batch is paused: its pods wait until spec.paused is false" in found
    assert any("kubectl patch schedprof batch" in line for line in found)
    assert not any("paused" in line for line in lines(about(profile="batch", node="a")))


# --- the queue --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({}, ""),
        ({"attempts": 1}, "; 1 attempt"),
        ({"attempts": 1200}, "; 1,200 attempts"),
        ({"backoff_seconds": 4.0}, "; backs off for another 4 s"),
        ({"retry_seconds": 300.0}, "; tried again in 5 min at the latest"),
        ({"given_up_seconds": 0.0}, "; given up 0 µs ago, tried again only after an event that may help"),
        ({"rejected_by": ("NodeAffinity", "NodeResourcesFit")}, "; waits for an event that may help with NodeAffinity, NodeResourcesFit"),
        ({"gated_by": "SchedulingGates"}, "; gated by SchedulingGates"),
        ({"nominated_node": "a"}, "; nominated to a, which is tried first"),
        ({"suspect": "last of all"}, "; last of all"),
        ({"profile": "missing"}, "; no profile takes pods of schedulerName 'mine'"),
        ({"profile": "missing", "meant": "mines"}, "; no profile takes pods of schedulerName 'mine' (did you mean 'mines'?)"),
        ({"profile": "missing", "meant": "mines", "held": "it hangs"}, "; no profile takes pods of schedulerName 'mine': it hangs"),
    ],
)
def test_each_fact_of_the_queue_is_one_clause(facts: dict[str, Any], said: str) -> None:
    assert queue_line(Queued("unschedulable", 90.0, **facts), "mine") == f"in the queue: unschedulable for 90 s{said}"


def test_the_name_of_a_scheduler_that_a_tenant_chose_cannot_begin_a_line_of_its_own() -> None:
    said = queue_line(Queued("gated", 1.0, profile="missing", meant="a\nb"), "x\n\x1b[2Jin the queue: active")
    assert said.splitlines() == [said]
    assert "\x1b" not in said


@pytest.mark.parametrize(
    ("turn", "said"),
    [
        (TurnFacts("shop", 1, 3, 2, 1500), "pod 2 of 1,500 of tenant 'shop', whose turn is 1 of 3"),
        (TurnFacts("", 1, 1, 1, 1), "pod 1 of 1 of the pods without a tenant, whose turn is 1 of 1"),
        (TurnFacts("a", 2, 2, 1, 1, ahead=4000), "pod 1 of 1 of tenant 'a', whose turn is 2 of 2, behind 4,000 pods of higher priority"),
        (TurnFacts("a", 1, 1, 1, 1, no_room=True), "and waits for a place: as many of its pods as may be are on their way"),
    ],
)
def test_a_turn_names_the_tenant_and_what_goes_before(turn: TurnFacts, said: str) -> None:
    assert queue_line(Queued("active", 1.0, turn=turn), "").endswith(said)


# --- verdicts and misses ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (CurrentVerdict(feasible=3, nodes=12_000), "now: 3 of 12,000 nodes can hold it"),
        (CurrentVerdict(message=NO_NODES), f"now: 0 of 0 nodes can hold it; {NO_NODES}"),
        (CurrentVerdict(nodes=4, message="0/4 nodes are available"), "now: 0 of 4 nodes can hold it"),
        (CurrentVerdict(nodes=4, gated="a quota"), "now: it would not be tried: a quota"),
        (CurrentVerdict(nodes=4, error="no such field"), "now: something breaks: no such field"),
    ],
)
def test_the_verdict_is_the_number_of_nodes_or_the_reason_why_there_is_none(now: CurrentVerdict, said: str) -> None:
    assert verdict(about(), now) == said


@pytest.mark.parametrize(
    ("group", "facts", "told"),
    [
        ({"needed": 3, "lacks": "2 members too few"}, {}, True),
        ({"needed": 3}, {}, False),
        ({"lacks": "x", "singly": True}, {}, False),
        ({"lacks": "x"}, {"node": "a"}, False),
    ],
)
def test_a_member_that_fits_alone_is_told_that_its_group_does_not(group: dict[str, Any], facts: dict[str, Any], told: bool) -> None:
    found = about(group=GroupFacts("podgroup shop/train", **group), **facts)
    assert ("by itself; its group does not fit" in verdict(found, CurrentVerdict(feasible=1, nodes=1))) is told
    assert "its group" not in verdict(found, CurrentVerdict(nodes=1))


def remedy(text: str, kind: RemedyKind = RemedyKind.MORE_RESOURCES, **more: Any) -> Remedy:
    return Remedy("NodeResourcesFit", kind, text, **more)


@pytest.mark.parametrize(
    ("nodes", "at_least", "node", "pod", "words"),
    [
        (1, False, "a needs R and R", "R and R: opens 1 node, such as a", "a: P: W"),
        (2, False, "a needs R and R, or on any of 1 other", "R and R: opens 2 nodes, such as a", "a: P: W (2 such nodes)"),
        (3, False, "a needs R and R, or on any of 2 others", "R and R: opens 3 nodes, such as a", "a: P: W (3 such nodes)"),
        (
            5001, True, "a needs R and R, or on any of at least 5,000 others", "R and R: opens 5,001 nodes, such as a",
            "a: P: W (at least 5,001 such nodes)",
        ),
    ],
)  # fmt: skip
def test_a_miss_says_what_is_needed_and_of_how_many_nodes(nodes: int, at_least: bool, node: str, pod: str, words: str) -> None:
    """The change of a node is one for each node; the change of the pod is one for all; a filter's own words are no change at all."""
    of_the_pod = remedy("R", RemedyKind.TOLERATION)
    assert miss_line(Miss("a", nodes, (remedy("R"), of_the_pod), at_least=at_least)) == node
    assert miss_line(Miss("a", nodes, (of_the_pod, of_the_pod), at_least=at_least)) == pod
    assert miss_line(Miss("a", nodes, (Remedy("P", RemedyKind.TOLD, "W"),), at_least=at_least)) == words


def test_what_no_node_is_large_enough_for_is_said_once() -> None:
    cpu, gpu = remedy("1 more cpu", beyond="more cpu than any node has"), remedy("1 more gpu", beyond="gpu, which no node has")
    misses = [Miss("a", 1, (cpu, gpu)), Miss("b", 1, (cpu,)), Miss("c", 1, (remedy("1 more memory"),))]
    assert beyond_line(misses) == "it asks for more cpu than any node has; and for gpu, which no node has"
    assert beyond_line(misses[2:]) == beyond_line([]) == ""


# --- groups and claims --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({}, "not declared; 0 placed; 0 wait"),
        ({"needed": 1000, "placed": 2, "waiting": 1}, "needs 1,000 at once; 2 placed; 1 waits"),
        ({"needed": 2, "singly": True, "waiting": 2}, "its members are placed one by one; 0 placed; 2 wait"),
        ({"needed": 4, "waiting": 3, "missing": 1}, "needs 4 at once; 0 placed; 3 wait; 1 is not there yet"),
        ({"needed": 4, "missing": 4, "waiting_seconds": 9.0}, "needs 4 at once; 0 placed; 0 wait; 4 are not there yet"),
        ({"needed": 1, "waiting": 1, "waiting_seconds": 9.0}, "needs 1 at once; 0 placed; 1 waits; since 9 s"),
        ({"needed": 1, "failures": 1}, "needs 1 at once; 0 placed; 0 wait; tried in vain 1 time"),
        ({"needed": 1, "failures": 2}, "needs 1 at once; 0 placed; 0 wait; tried in vain 2 times"),
    ],
)
def test_a_group_is_told_in_numbers(facts: dict[str, Any], said: str) -> None:
    assert list(group_lines(GroupFacts("podgroup shop/train", **facts))) == [f"group podgroup shop/train: {said}"]


def test_what_keeps_a_group_follows_in_lines_of_their_own() -> None:
    holders = (Holder("shop/web", "2000m", 5), Holder("podgroup shop/old", "4000m", 0, pods=1), Holder("podgroup x/y", "1m", -1, pods=3))
    scarce = Shortage("cpu", "8000m", "1000m", "9000m", 1, 2, short="7000m", holders=holders, others=1)
    pieces = Shortage("memory", "8Mi", "9Mi", "9Mi", 1, 1)
    facts = GroupFacts("g", needed=2, topology="rack", lacks="it lacks room", shortages=(scarce, pieces), kept={"a": 2, "b": 1})
    assert list(group_lines(facts))[1:] == [
        "  all in one domain of rack",
        "  it lacks room",
        "  2 members want 8000m of cpu: 1000m of 9000m are free, 7000m too few",
        "    held by pod shop/web: 2000m (priority 5), podgroup shop/old: 4000m (1 pod, priority 0), "
        "podgroup x/y: 1m (3 pods, priority -1), 1 other",
        "  1 member want 8Mi of memory: 9Mi of 9Mi are free, in pieces that hold 1 of the 1",
        "  nodes are kept for it: a (2), b (1)",
    ]
    wrong = GroupFacts("g", topology="rack", preferred=True, lacks="it lacks room", complaint="minMember is -1")
    assert list(group_lines(wrong))[1:] == ["  all in one domain of rack, if possible", "  minMember is -1"]


@pytest.mark.parametrize(("together", "said"), [(2, "with 1 other of it"), (5, "with 4 others of it")])
def test_members_that_were_decided_together_are_counted_once_the_pod_has_a_node(together: int, said: str) -> None:
    facts: dict[str, Any] = {"group": GroupFacts("g", needed=2), "tried": (ended(), ended(node="a", together=together))}
    assert lines(about(node="a", **facts))[-1] == f"  decided in one go {said}"
    assert not any("in one go" in line for line in lines(about(**facts)))


@pytest.mark.parametrize(
    ("fact", "said"),
    [
        (ClaimFact("gpu", problem="resourceclaim default/c not found"), "(gpu): resourceclaim default/c not found"),
        (ClaimFact("gpu", "shop/c"), "shop/c (gpu): asks for nothing; has no devices yet"),
        (ClaimFact("", "shop/c", ("r: 1 of class a", "s: all of class b")), "asks for r: 1 of class a, s: all of class b; has no devices"),
        (ClaimFact("", "shop/c"), "claim shop/c (for its extended resources): "),
        (ClaimFact("g", "c", devices=(DEVICE, DEVICE), users=2), "has d/p/0, d/p/0; pods that use it: 2"),
        (ClaimFact("g", "c", devices=(DEVICE,), writing=True, users=2), "has d/p/0; this is being written"),
    ],
)  # fmt: skip
def test_a_claim_is_told_with_what_it_asks_for_and_has(fact: ClaimFact, said: str) -> None:
    line = claim_line(fact)
    assert said in line
    assert line.startswith("claim ")
    assert lines(about(node="a", claims=(fact,))) == ["on node a", line]
