from __future__ import annotations

from collections import deque
from dataclasses import replace
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from placewright.leadership.leaserule import LONGEST, LeaseRecord, Sight, Tenure, Timing

STAMP = "1999-01-01T00:00:00.000000Z"
TIMING = Timing()


def theirs(beat: int = 0, duration: int = 15) -> LeaseRecord:
    return LeaseRecord("them", duration, STAMP, f"{beat}", 3)


def seen(record: LeaseRecord | None, version: int = 1) -> Sight | None:
    return None if record is None else Sight("uid", str(version), record)


def holding(now: float) -> Tenure:
    """One that took a Lease which nobody had, at that moment."""
    tenure = Tenure("us", TIMING)
    tenure.observe(None, now)
    claim = tenure.claim(STAMP, now)
    tenure.confirmed(Sight("uid", "1", claim), claim, now)
    return tenure


# --- taking it -----------------------------------------------------------------------------------------------------------------


def test_a_lease_that_does_not_exist_is_taken_at_once_and_held_for_the_renew_deadline_after_sending() -> None:
    tenure = Tenure("us", TIMING)
    assert not tenure.held(100)
    tenure.observe(None, 100)
    assert tenure.may_claim(100)
    claim = tenure.claim(STAMP, 100)
    assert (claim.holder, claim.duration, claim.acquired, claim.transitions) == ("us", 15, STAMP, 0)
    assert not tenure.held(100), "sent is not confirmed"
    tenure.confirmed(Sight("uid", "1", claim), claim, 104)
    assert tenure.held(109.9) and not tenure.held(110) and tenure.until == 110


def test_somebodys_lease_is_waited_for_from_when_it_was_last_seen_to_change() -> None:
    tenure = Tenure("us", TIMING)
    tenure.observe(seen(theirs(1)), 100)
    tenure.observe(seen(theirs(2)), 110)
    tenure.observe(seen(theirs(2)), 124)
    assert not tenure.may_claim(124.9) and tenure.may_claim(125)


def test_another_version_of_the_same_record_is_no_renewal() -> None:
    tenure = Tenure("us", TIMING)
    tenure.observe(seen(theirs(1), 1), 100)
    tenure.observe(seen(theirs(1), 2), 110)  # somebody labelled it
    assert tenure.may_claim(115)


def test_a_lease_that_was_given_back_is_taken_at_once() -> None:
    tenure = Tenure("us", TIMING)
    tenure.observe(seen(theirs()), 100)
    tenure.observe(seen(LeaseRecord("", 1, STAMP, STAMP, 7)), 101)
    assert tenure.may_claim(101)
    assert tenure.claim(STAMP, 101).transitions == 8


@pytest.mark.parametrize(
    "record", [LeaseRecord("", 15), LeaseRecord(), LeaseRecord(garbled=b"[]"), LeaseRecord("nobody", 0), LeaseRecord("us", 15)]
)
def test_a_record_that_says_nothing_to_go_by_is_waited_for_and_then_taken(record: LeaseRecord) -> None:
    tenure = Tenure("us", TIMING)
    tenure.observe(seen(record), 100)
    assert not tenure.may_claim(114.9) and tenure.may_claim(115) and not tenure.held(101)


def test_a_lease_that_was_deleted_is_waited_for_as_if_its_holder_had_just_renewed_it() -> None:
    tenure = Tenure("us", TIMING)
    tenure.observe(seen(theirs()), 100)
    tenure.observe(None, 110)
    assert not tenure.may_claim(124.9) and tenure.may_claim(125)


def test_a_holder_that_is_more_patient_than_we_are_is_given_its_time() -> None:
    tenure = Tenure("us", Timing.of(6))
    tenure.observe(seen(theirs(duration=30)), 100)
    assert not tenure.may_claim(129.9) and tenure.may_claim(130)
    tenure.observe(None, 110)
    assert not tenure.may_claim(130) and tenure.may_claim(134), "four times our own patience, when the record is gone"


def test_a_record_without_end_does_not_lock_everybody_out_for_good() -> None:
    tenure = Tenure("us", TIMING)
    tenure.observe(seen(theirs(duration=2**31 - 1)), 100)
    assert tenure.may_claim(100 + LONGEST)
    tenure.observe(None, 200)
    assert tenure.may_claim(260), "and deleting it helps"


# --- keeping it ----------------------------------------------------------------------------------------------------------------


def test_a_renewal_extends_from_its_own_sending_and_keeps_the_rest() -> None:
    tenure = holding(100)
    claim = tenure.claim("2001-01-01T00:00:00.000000Z", 104)
    assert (claim.acquired, claim.transitions) == (STAMP, 0)
    assert tenure.until == 110
    tenure.confirmed(Sight("uid", "2", claim), claim, 109)
    assert tenure.until == 114 and tenure.term == 1


def test_a_renewal_whose_answer_got_lost_counts_from_its_sending_once_it_is_seen() -> None:
    tenure = holding(100)
    first, second = tenure.claim(STAMP, 102), tenure.claim(STAMP, 104)
    assert first != second, "two claims never look the same, whatever the clock on the wall does"
    tenure.refused(second)
    tenure.observe(seen(first, 2), 105)
    assert tenure.until == 112


def test_a_renewal_that_comes_late_is_the_same_term_because_nobody_wrote_in_between() -> None:
    tenure = holding(100)
    assert not tenure.held(112) and tenure.may_claim(112)
    claim = tenure.claim(STAMP, 112)
    tenure.confirmed(Sight("uid", "2", claim), claim, 112)
    assert tenure.held(121) and tenure.term == 1


@pytest.mark.parametrize("record", [theirs(), LeaseRecord("", 15), LeaseRecord("", 1), LeaseRecord(garbled=b"7"), None])
def test_what_is_not_ours_any_more_ends_our_turn_at_once(record: LeaseRecord | None) -> None:
    tenure = holding(100)
    tenure.observe(seen(record, 2), 101)
    assert not tenure.held(101)


@pytest.mark.parametrize("record", [LeaseRecord("", 15), LeaseRecord(garbled=b"7"), None])
def test_what_was_spoiled_under_our_hands_we_may_take_again_at_once(record: LeaseRecord | None) -> None:
    tenure = holding(100)
    tenure.observe(seen(record, 2), 101)
    assert tenure.may_claim(101)
    claim = tenure.claim(STAMP, 101)
    tenure.confirmed(Sight("uid", "3", claim), claim, 101)
    assert tenure.held(102) and tenure.term == 2


def test_what_was_spoiled_after_our_time_had_run_out_may_be_somebody_elses() -> None:
    tenure = holding(100)
    tenure.observe(None, 111)
    assert not tenure.may_claim(125.9) and tenure.may_claim(126)


def test_other_fields_edited_by_hand_neither_end_nor_extend_our_turn() -> None:
    tenure = holding(100)
    assert tenure.sight is not None
    tenure.observe(seen(replace(tenure.sight.record, duration=1), 2), 105)
    assert tenure.until == 110 and tenure.may_claim(105)


def test_a_record_that_somebody_wrote_in_our_name_gives_us_nothing() -> None:
    tenure = Tenure("us", TIMING)
    tenure.observe(seen(theirs()), 100)
    tenure.observe(seen(LeaseRecord("us", 15, STAMP, STAMP, 3), 2), 101)
    assert not tenure.held(101) and not tenure.may_claim(101) and tenure.may_claim(116)


# --- giving it back --------------------------------------------------------------------------------------------------------------


def test_giving_it_back_ends_our_turn_before_anything_is_sent() -> None:
    tenure = holding(100)
    record = tenure.renounce(STAMP)
    assert not tenure.held(101)
    assert record.released and record.holder == "" and record.transitions == 0


def test_a_claim_that_lands_after_we_gave_it_back_does_not_make_us_act() -> None:
    tenure = holding(100)
    late = tenure.claim(STAMP, 102)
    tenure.renounce(STAMP)
    tenure.observe(seen(late, 2), 103)
    assert tenure.ours and not tenure.held(103)


@pytest.mark.parametrize("transitions", [-1, 2**31 - 1, 2**63])
def test_a_number_of_transitions_that_cannot_be_written_begins_anew(transitions: int) -> None:
    tenure = Tenure("us", TIMING)
    tenure.observe(seen(LeaseRecord("", 1, transitions=transitions)), 100)
    assert tenure.claim(STAMP, 100).transitions == 0
    assert 0 <= tenure.renounce(STAMP).transitions < 2**31


@pytest.mark.parametrize(("lease", "renew", "retry"), [(15, 15, 2), (15, 10, 10), (15, 10, 0), (LONGEST + 1, 10, 2), (0, 0, 0)])
def test_a_timing_that_would_let_two_in_is_refused(lease: int, renew: float, retry: float) -> None:
    with pytest.raises(ValueError, match="allowed 0 < retry < renew < lease"):
        Timing(lease, renew, retry)


@pytest.mark.parametrize("lifetime", [2, 15, 3600])
def test_the_proportions_are_kube_schedulers(lifetime: int) -> None:
    timing = Timing.of(lifetime)
    assert (timing.lease, timing.renew, timing.retry) == (lifetime, pytest.approx(lifetime / 1.5), pytest.approx(lifetime / 7.5))


# --- whatever happens ------------------------------------------------------------------------------------------------------------


class Server:
    """One object that is written by compare and swap."""

    def __init__(self) -> None:
        self.version = 0
        self.record: LeaseRecord | None = None

    def sight(self) -> Sight | None:
        return seen(self.record, self.version)

    def write(self, base: int | None, record: LeaseRecord | None) -> bool:
        """`base`: the version that was read; None: there was nothing."""
        if base != (None if self.record is None else self.version):
            return False
        self.put(record)
        return True

    def put(self, record: LeaseRecord | None) -> None:
        self.version += 1
        self.record = record


class Site:
    """One replica: its rule, its clocks, its request under way."""

    def __init__(self, number: int, lifetime: int, ahead: float) -> None:
        self.tenure = Tenure(f"replica-{number}", Timing.of(lifetime))
        self.ahead = ahead
        #: It stands still; it cannot reach the server; it hears no watch; peering elects it; answers to it get lost.
        self.frozen, self.cut, self.deaf, self.elected, self.loses = False, False, False, True, False
        #: What is on its way to the server: its claim if it is one, what it writes, and over which version.
        self.request: tuple[LeaseRecord | None, LeaseRecord, int | None] | None = None
        #: What is on its way back: the claim, what was written, and the version; None was refused.
        self.answers: deque[tuple[LeaseRecord | None, LeaseRecord, int | None]] = deque()

    def clock(self, now: float) -> float:
        return now + self.ahead

    def held(self, now: float) -> bool:
        return self.tenure.held(self.clock(now))


class Replicas(RuleBasedStateMachine):
    """Up to four replicas, one server, and everything that may happen between them.

    Left out is what a replica cannot tell from the truth: a record that somebody forges as given back, and a Lease that was deleted before
    the replica had seen any.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        self.server = Server()
        self.sites: list[Site] = []
        self.started = 0

    def start(self, ahead: float) -> None:
        site = Site(self.started, self.lifetime, ahead)
        self.started += 1
        site.tenure.observe(self.server.sight(), site.clock(self.now))
        self.sites.append(site)

    @initialize(lifetime=st.sampled_from([6, 15]), aheads=st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=3))
    def begin(self, lifetime: int, aheads: list[float]) -> None:
        self.lifetime = lifetime
        for ahead in aheads:
            self.start(ahead)

    @rule(seconds=st.floats(0, 3))
    def a_moment_passes_in_which_nobody_does_anything(self, seconds: float) -> None:
        self.now += seconds

    @rule(seconds=st.integers(1, 20), seed=st.integers(0, 9))
    def everybody_works(self, seconds: int, seed: int) -> None:
        order = Random(seed)
        for _ in range(seconds):
            self.now += 1
            for which in order.sample(range(len(self.sites)), len(self.sites)):
                self.work(which)
                self.never_do_two_say_that_they_may()

    def work(self, which: int) -> None:
        """What a replica does in a second, as far as it can."""
        site = self.sites[which]
        if site.frozen or site.cut:
            return
        if not site.deaf:
            self.looks(which)
        if not site.elected:
            self.gives_back(which)
        else:
            self.claims(which, STAMP)
        self.reaches_the_server(which)
        while site.answers:
            self.is_answered(which, site.loses)

    @rule(which=st.integers(0, 3), what=st.sampled_from(["frozen", "cut", "deaf", "elected", "loses"]))
    def something_turns(self, which: int, what: str) -> None:
        site = self.sites[which % len(self.sites)]
        setattr(site, what, not getattr(site, what))

    @rule(which=st.integers(0, 3), wall=st.sampled_from([STAMP, "2001-01-01T00:00:00.000001Z", "2050-01-01T00:00:00.999999Z"]))
    def claims(self, which: int, wall: str) -> None:
        site = self.sites[which % len(self.sites)]
        now = site.clock(self.now)
        if site.request is None and site.tenure.may_claim(now):
            sight = site.tenure.sight
            claim = site.tenure.claim(wall, now)
            site.request = claim, claim, None if sight is None else int(sight.version)

    @rule(which=st.integers(0, 3))
    def gives_back(self, which: int) -> None:
        site = self.sites[which % len(self.sites)]
        if site.tenure.ours and site.tenure.sight is not None:
            # A claim that is under way may still land; what gives the Lease back goes after it.
            base = int(site.tenure.sight.version)
            record = site.tenure.renounce(STAMP)
            self.reaches_the_server(which)
            site.request = None, record, base

    @rule(which=st.integers(0, 3))
    def reaches_the_server(self, which: int) -> None:
        site = self.sites[which % len(self.sites)]
        if site.request is not None:
            claim, record, base = site.request
            written = self.server.write(base, record)
            site.answers.append((claim, record, self.server.version if written else None))
            site.request = None

    @rule(which=st.integers(0, 3))
    def never_reaches_the_server(self, which: int) -> None:
        self.sites[which % len(self.sites)].request = None

    @rule(which=st.integers(0, 3), lost=st.booleans())
    def is_answered(self, which: int, lost: bool) -> None:
        site = self.sites[which % len(self.sites)]
        if not site.answers:
            return
        claim, record, version = site.answers.popleft()
        known = site.tenure.sight
        if lost or (version is not None and known is not None and int(known.version) > version):
            return  # what was seen since is newer
        if version is None:
            if claim is not None:
                site.tenure.refused(claim)
            self.looks(which)
        elif claim is not None:
            site.tenure.confirmed(Sight("uid", str(version), record), claim, site.clock(self.now))
        else:
            site.tenure.observe(seen(record, version), site.clock(self.now))

    @rule(which=st.integers(0, 3))
    def looks(self, which: int) -> None:
        site = self.sites[which % len(self.sites)]
        site.tenure.observe(self.server.sight(), site.clock(self.now))

    @precondition(lambda self: len(self.sites) < 4)
    @rule(ahead=st.floats(-1e6, 1e6))
    def another_starts(self, ahead: float) -> None:
        if self.server.record is not None or self.server.version == 0:
            self.start(ahead)

    @rule(which=st.integers(0, 3))
    def dies_and_is_started_again(self, which: int) -> None:
        if self.server.record is not None or self.server.version == 0:
            dead = self.sites.pop(which % len(self.sites))
            self.start(dead.ahead)

    @rule(how=st.sampled_from(["delete", "empty", "garble", "name", "hurry", "label"]), which=st.integers(0, 3))
    def is_edited_by_hand(self, how: str, which: int) -> None:
        record = self.server.record
        if record is None or (how == "delete" and any(site.tenure.sight is None for site in self.sites)):
            return
        name = self.sites[which % len(self.sites)].tenure._identity
        edited: dict[str, LeaseRecord | None] = {
            "delete": None,
            "empty": LeaseRecord("", 15 if record.duration == 1 else record.duration, transitions=record.transitions),
            "garble": LeaseRecord(garbled=b"{"),
            "name": replace(record, holder=name),
            "hurry": replace(record, duration=2),
            "label": record,
        }
        if not any(
            edited[how] in site.tenure._written for site in self.sites
        ):  # no person forges the claim that a replica is about to send
            self.server.put(edited[how])

    @invariant()
    def never_do_two_say_that_they_may(self) -> None:
        saying = [site.tenure._identity for site in self.sites if site.held(self.now)]
        assert len(saying) <= 1, saying


Replicas.TestCase.settings = settings(max_examples=80, stateful_step_count=30)
test_whatever_happens_two_replicas_never_both_say_that_they_may = Replicas.TestCase
