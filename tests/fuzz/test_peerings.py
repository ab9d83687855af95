"""Peering objects that anybody with the right to write them may fill: a verdict each time, and nobody locked out for good."""

from __future__ import annotations

import math
from typing import Any

import msgspec
from hypothesis import strategies as st

from fuzz.effort import bounded, fuzz, outcome
from fuzz.mutants import ANY_JSON, Document, as_json, mutants, torn
from placewright.api.decode import DecodeError, decode
from placewright.leadership.peering import Peering
from placewright.leadership.peers import Peers, Verdict

PEERINGS: tuple[Document, ...] = (
    {
        "metadata": {"name": "placewright", "resourceVersion": "3"},
        "status": {
            "older@a": {"priority": 900, "lifetime": 15, "lastseen": "2026-01-01T00:00:00Z"},
            "younger@b": {"priority": 100, "lifetime": 15, "lastseen": "2026-01-01T00:00:00Z"},
        },
    },
)
OURS = 500


def verdicts(raw: bytes) -> tuple[Verdict, Verdict]:
    """When it is seen, and when nobody has renewed a record for more than an hour, the longest lifetime that is believed."""
    peers = Peers(OURS)
    with bounded(len(raw)):
        peering = outcome(lambda: decode(raw, Peering), DecodeError)
        if isinstance(peering, Peering):
            peers.observe(peering.status or {}, 1000.0)
    return peers.verdict(1000.0), peers.verdict(1000.0 + 3601)


@fuzz(120, document=mutants(PEERINGS))
def test_a_changed_peering_has_a_verdict(document: Document) -> None:
    first, later = verdicts(as_json(document))
    assert not first.active or first.until is not None
    assert not later.active
    assert "has precedence" not in later.why


@fuzz(100, raw=torn(PEERINGS))
def test_a_torn_peering_has_a_verdict(raw: bytes) -> None:
    first, later = verdicts(raw)
    assert not first.active or first.until is not None
    assert not later.active
    assert "has precedence" not in later.why


@fuzz(100, record=ANY_JSON)
def test_any_record_is_one_or_is_named_as_unreadable(record: Any) -> None:
    peers = Peers(OURS)
    peers.observe({"x": msgspec.Raw(as_json(record))}, 0.0)
    assert peers.unreadable in (frozenset(), frozenset({"x"}))
    assert isinstance(peers.verdict(0.0).why, str)


@fuzz(100, lifetime=st.floats(allow_nan=False) | st.sampled_from([1e308, -1e308, 0.0]), priority=st.integers(-(2**63), 2**63))
def test_our_own_record_counts_for_its_lifetime_and_an_hour_at_most(lifetime: float, priority: int) -> None:
    if math.isinf(lifetime):
        return
    peers = Peers(priority)
    peers.observe({"us": msgspec.Raw(as_json({"priority": priority, "lifetime": lifetime}))}, 0.0)
    verdict = peers.verdict(0.0)
    assert verdict.active == (lifetime > 0)
    assert peers.verdict(min(max(lifetime, 0.0), 3600.0)).active is False
