from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from placewright.leadership.peers import ENROLLED_SECONDS, Peers

OURS, ABOVE, BELOW = -50, -10, -90


def record(priority: int, beat: int = 0, lifetime: float = 60, **other: Any) -> msgspec.Raw:
    """A peer's record; another `beat` is a renewal. The times inside are long past: nobody may read them."""
    content = {"priority": priority, "lifetime": lifetime, "lastseen": f"1999-01-01T00:00:{beat:02}+00:00"} | other
    return msgspec.Raw(json.dumps(content).encode())


def seen(now: float, **status: msgspec.Raw) -> Peers:
    peers = Peers(OURS)
    peers.observe(status, now)
    return peers


def test_alone_with_a_fresh_record_we_are_active_until_its_lifetime_ends() -> None:
    peers = seen(100, us=record(OURS))
    verdict = peers.verdict(101)
    assert verdict.active and verdict.until == 160
    assert not peers.verdict(160).active


def test_before_our_own_record_was_seen_we_are_not_active() -> None:
    assert not Peers(OURS).verdict(0).active
    assert not seen(100, them=record(BELOW)).verdict(101).active


def test_a_live_peer_above_us_keeps_us_waiting_until_its_lifetime_ends() -> None:
    peers = seen(100, us=record(OURS, lifetime=600), them=record(ABOVE))
    verdict = peers.verdict(101)
    assert not verdict.active and verdict.until == 160 and "them" in verdict.why
    assert peers.verdict(160).active


def test_a_peer_below_us_changes_nothing() -> None:
    assert seen(100, us=record(OURS), them=record(BELOW)).verdict(101).active


def test_a_peer_lives_on_by_changing_its_record_whatever_time_it_writes() -> None:
    peers = seen(100, us=record(OURS), them=record(ABOVE, 1))
    for beat, now in enumerate((150.0, 200.0, 250.0), start=2):
        peers.observe({"us": record(OURS, beat), "them": record(ABOVE, beat)}, now)
        assert not peers.verdict(now + 59).active
    peers.observe({"us": record(OURS, 9), "them": record(ABOVE, 4)}, 300)
    assert peers.verdict(311).active


def test_seeing_an_unchanged_record_again_does_not_renew_it() -> None:
    peers = seen(100, us=record(OURS, 1), them=record(ABOVE, 1))
    peers.observe({"us": record(OURS, 2), "them": record(ABOVE, 1)}, 155)
    assert peers.verdict(161).active


def test_our_own_record_unchanged_for_its_lifetime_ends_our_turn() -> None:
    peers = seen(100, us=record(OURS, 1))
    peers.observe({"us": record(OURS, 1)}, 159)
    assert not peers.verdict(160).active


def test_a_record_that_is_withdrawn_or_has_no_lifetime_left_is_no_peer() -> None:
    peers = seen(100, us=record(OURS), them=record(ABOVE))
    peers.observe({"us": record(OURS)}, 101)
    assert peers.verdict(102).active
    assert seen(100, us=record(OURS), them=record(ABOVE, lifetime=0)).verdict(101).active


def test_our_record_withdrawn_by_somebody_is_lost_and_our_turn_goes_on_for_as_long_as_it_takes_to_put_it_back() -> None:
    peers = Peers(OURS, grace=2)
    peers.observe({"us": record(OURS, lifetime=15)}, 100)
    for now in (101.0, 102.5):  # seen once more without it: the time does not begin anew
        peers.observe({"them": record(BELOW, int(now))}, now)
    assert peers.lost_until == 103
    assert peers.missing and peers.own == "us"
    assert peers.verdict(102.9).active and peers.verdict(102.9).until == 103
    assert not peers.verdict(103).active
    peers.observe({"us": record(OURS, 7, lifetime=15)}, 104)
    assert peers.lost_until is None and not peers.missing
    assert peers.verdict(104).until == 119


def test_a_lost_record_keeps_nobody_active_beyond_its_own_lifetime_or_against_precedence() -> None:
    peers = Peers(OURS, grace=2)
    peers.observe({"us": record(OURS, lifetime=3)}, 100)
    peers.observe({}, 102)
    assert peers.verdict(102).until == 103
    peers.observe({"them": record(ABOVE)}, 102)
    assert not peers.verdict(102.5).active
    run_out = Peers(OURS, grace=2)
    run_out.observe({"us": record(OURS, lifetime=3)}, 100)
    run_out.observe({}, 103)
    assert run_out.lost_until is None and not run_out.verdict(103).active
    assert run_out.missing, "it is put back all the same: Kopf does not"
    gone = Peers(OURS, grace=2)
    gone.observe({"us": record(OURS)}, 100)
    gone.forget()
    gone.observe({}, 101)
    assert gone.lost_until is None and gone.missing, "and so it is when the object was deleted and is there again"


def test_before_kopf_enrolled_us_nothing_of_ours_is_missing() -> None:
    peers = Peers(OURS)
    assert not peers.missing
    peers.observe({"them": record(BELOW)}, 100)
    assert not peers.missing and not peers.own


def test_a_record_that_kopf_just_wrote_for_a_replica_holds_for_our_own_lifetime() -> None:
    peers = Peers(OURS, lifetime=15)
    peers.observe({"us": record(OURS, lifetime=ENROLLED_SECONDS), "them": record(ABOVE, lifetime=ENROLLED_SECONDS)}, 100)
    assert peers.enrolled_only
    assert not peers.verdict(114.9).active and peers.expired(114.9) == [] and peers.expired(115) == ["them"]
    peers.observe({"us": record(OURS, lifetime=15)}, 110)
    assert not peers.enrolled_only and peers.verdict(124.9).active and not peers.verdict(125).active


def test_of_others_it_is_known_when_the_first_expires_and_which_have_never_of_ourselves() -> None:
    peers = seen(100, us=record(OURS, lifetime=1), them=record(BELOW, lifetime=30), person=record(100, lifetime=60))
    assert peers.next_expiry() == 130
    assert [peers.expired(now) for now in (129.9, 130, 160)] == [[], ["them"], ["them", "person"]]
    peers.observe({"us": record(OURS, lifetime=1), "them": record(BELOW, 1, lifetime=30), "person": record(100, lifetime=60)}, 125)
    assert peers.next_expiry() == 155, "whoever renews stays"
    assert Peers(OURS).next_expiry() is None


def test_our_record_withdrawn_by_somebody_ends_our_turn() -> None:
    peers = seen(100, us=record(OURS))
    peers.observe({}, 101)
    assert not peers.verdict(102).active


def test_a_record_under_another_name_but_with_our_priority_is_ours() -> None:
    peers = seen(100, before_the_restart=record(OURS, 1), after=record(OURS, 2))
    assert peers.verdict(101).active


def test_a_lifetime_that_is_no_number_is_over_at_once() -> None:
    endless = b'{"priority": %d, "lifetime": "nan", "lastseen": "x"}' % OURS
    assert not seen(100, us=msgspec.Raw(endless)).verdict(101).active


@pytest.mark.parametrize(
    "strange", [b"null", b"7", b'"x"', b"[]", b'{"priority": "high"}', b'{"priority": 5, "lifetime": {}}', b"[" * 5000]
)
def test_what_is_no_record_counts_for_nothing_and_is_named(strange: bytes) -> None:
    peers = seen(100, us=record(OURS), them=msgspec.Raw(strange))
    assert peers.verdict(101).active and peers.unreadable == {"them"}


def test_a_lifetime_without_end_does_not_lock_everybody_out_for_good() -> None:
    peers = seen(100, us=record(OURS), them=record(ABOVE, lifetime=1e300))
    peers.observe({"us": record(OURS, 2), "them": record(ABOVE, lifetime=1e300)}, 3800)
    assert peers.verdict(3801).active


def test_fields_that_we_do_not_know_are_no_reason_to_ignore_a_peer() -> None:
    assert not seen(100, us=record(OURS), them=record(ABOVE, shard="a")).verdict(101).active


def test_of_any_number_of_live_replicas_exactly_the_oldest_is_active() -> None:
    priorities = [-1, -2, -3, -4]
    status = {f"replica{priority}": record(priority) for priority in priorities}
    verdicts = []
    for priority in priorities:
        peers = Peers(priority)
        peers.observe(status, 100)
        verdicts.append(peers.verdict(101).active)
    assert verdicts == [True, False, False, False]
