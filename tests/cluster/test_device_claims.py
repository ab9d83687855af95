"""Claims to devices: what was decided holds until the API server shows it, shows that it is lost, or it is taken back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.makers import a_claim, gets, with_allocation
from placewright.api.devices import AllocationResult, ResourceClaim, devices_of
from placewright.cluster.devices import ClaimTable, owner_of_extended
from randomcases import cases

ONE, OTHER = gets("gpu-1"), gets("gpu-2")


class Table(ClaimTable):
    """A table with the claim in it as the API server showed it at version 1, and somebody who hears what listeners hear."""

    __slots__ = ("told",)

    def __init__(self, *shown: ResourceClaim) -> None:
        super().__init__()
        self.told: list[tuple[ResourceClaim, ResourceClaim | None]] = []
        self.listeners.append(lambda before, now: self.told.append((before, now)))
        for each in shown or (a_claim("1"),):
            self.put(each)

    @property
    def here(self) -> ResourceClaim | None:
        """The claim as it is taken to be."""
        return self.get("c", "ns")

    @property
    def has(self) -> AllocationResult | None:
        """What it is taken to have."""
        return self.here.status.allocation if self.here else None


def allocated(version: str = "1", user: str = "p") -> Table:
    found = Table(a_claim(version))
    found.allocate(a_claim(version), ONE, user)
    return found


# --- while it is in flight -------------------------------------------------------------------------------------------------------


def test_what_was_decided_stands_at_once_and_beside_it_what_the_api_server_shows() -> None:
    table = Table()
    before = table.version
    pending = table.allocate(a_claim("1"), ONE, "p")
    assert (table.has, table.shown("c", "ns")) == (ONE, a_claim("1"))
    assert table.pending(a_claim("1")) is pending
    assert (pending.uid, pending.users, pending.written, pending.unseen, pending.awaited) == ("u", {"p"}, "", False, False)
    assert table.version > before
    assert "ns/c" in (table.changes.since(before) or ())


@pytest.mark.parametrize("news", [a_claim("1"), a_claim("2"), a_claim("2", finalizers=["x"])])
def test_news_without_the_allocation_does_not_free_the_devices(news: ResourceClaim) -> None:
    """A watch may show a finalizer that was written before; no device may be given away twice for that."""
    table = allocated()
    assert table.put(news) == a_claim("1")
    assert (table.has, table.shown("c", "ns")) == (ONE, news)
    assert table.pending(news) is not None
    assert not table.told


def test_a_claim_that_nobody_has_shown_yet_is_kept_and_forgotten_with_its_allocation() -> None:
    table = Table(a_claim(name="else"))
    pending = table.allocate(a_claim("1"), ONE, "p")
    assert (table.has, pending.unseen) == (ONE, True)
    table.withdraw(a_claim("1"))
    assert (table.here, table.pending(a_claim("1"))) == (None, None)
    table.allocate(a_claim("1"), ONE, "p")
    assert table.put(a_claim("2")) is None, "nobody had seen it before"
    assert (table.has, table.shown("c", "ns")) == (ONE, a_claim("2"))
    table.withdraw(a_claim("2"))
    assert table.here == a_claim("2")


def test_a_claim_of_the_same_name_and_another_uid_has_nothing_to_do_with_it() -> None:
    table = allocated()
    assert table.pending(a_claim(uid="other")) is None
    table.wait_for(a_claim(uid="other"))
    table.written(a_claim("9", uid="other"))
    table.leave(a_claim(uid="other"), "p")
    pending = table.pending(a_claim())
    assert pending is not None
    assert (pending.awaited, pending.written, pending.users) == (False, "", {"p"})
    table.put(a_claim("2", uid="other"))
    assert (table.here, table.pending(a_claim())) == (a_claim("2", uid="other"), None)
    assert [now for _, now in table.told] == [a_claim("2", uid="other")], "the devices are free"


# --- how it ends -----------------------------------------------------------------------------------------------------------------


def test_a_written_allocation_is_pending_until_the_last_pod_on_its_way_has_arrived() -> None:
    table = allocated()
    pending = table.pending(a_claim())
    assert pending is not None
    pending.users.add("q")
    written = a_claim("2", allocated=ONE)
    table.written(written)
    table.put(written)
    table.leave(written, "p")
    assert table.pending(written) is pending
    table.leave(written, "stranger")
    table.leave(written, "q")
    assert (table.pending(written), table.here, table.told) == (None, written, [])
    table.leave(written, "q")
    table.withdraw(written)
    assert table.here == written


@pytest.mark.parametrize("first", ["answer", "watch"])
def test_the_answer_and_the_watch_may_come_in_either_order(first: str) -> None:
    table, written = allocated(), a_claim("2", allocated=ONE)
    for news in ("answer", "watch") if first == "answer" else ("watch", "answer"):
        if news == "answer":
            table.written(written)
        else:
            table.put(written)
        pending = table.pending(written)
        assert pending is not None
        assert (pending.written, table.has) == ("2", ONE)
    table.leave(written, "p")
    assert (table.pending(written), table.has) == (None, ONE)


def test_a_pod_that_leaves_before_anything_was_written_leaves_the_allocation_in_flight() -> None:
    """The write may still succeed: whoever decided takes it back where it does not."""
    table = allocated()
    table.leave(a_claim(), "p")
    assert (table.has, table.pending(a_claim()) is not None) == (ONE, True)
    table.put(a_claim("2", allocated=ONE))
    assert (table.has, table.pending(a_claim())) == (ONE, None)


def test_a_claim_that_lost_its_allocation_again_is_free_when_nobody_is_on_the_way_with_it() -> None:
    table = allocated()
    table.written(a_claim("2", allocated=ONE))
    table.put(a_claim("3"))
    assert table.has == ONE, "a pod counts on it"
    table.leave(a_claim(), "p")
    assert (table.here, table.pending(a_claim())) == (a_claim("3"), None)
    assert table.told == [(a_claim("3", allocated=ONE), a_claim("3"))]


def test_news_that_is_older_than_the_write_does_not_end_a_written_allocation() -> None:
    table = allocated()
    table.written(a_claim("5", allocated=ONE))
    table.leave(a_claim(), "p")
    table.put(a_claim("4"))
    assert (table.has, table.shown("c", "ns")) == (ONE, a_claim("4"))
    table.put(a_claim("6"))
    assert table.has is None


def test_another_allocation_than_ours_ends_ours_and_frees_its_devices() -> None:
    table, theirs = allocated(), a_claim("2", allocated=OTHER)
    table.put(theirs)
    assert (table.here, table.pending(theirs)) == (theirs, None)
    assert table.told == [(a_claim("2", allocated=ONE), theirs)]


def test_an_allocation_of_the_same_devices_is_ours_whatever_else_it_says() -> None:
    stamped = AllocationResult(devices=ONE.devices, allocation_timestamp="2026-01-01T00:00:00Z")
    table = allocated()
    table.put(a_claim("2", allocated=stamped))
    pending = table.pending(a_claim())
    assert pending is not None
    assert (pending.written, table.has, table.told) == ("2", stamped, [])


def test_a_claim_that_is_deleted_frees_what_was_on_its_way_into_it() -> None:
    table = allocated()
    assert table.remove(a_claim("1")) == a_claim("1")
    assert (table.here, table.pending(a_claim())) == (None, None)
    assert table.told == [(a_claim("1", allocated=ONE), None)]
    assert table.remove(a_claim("1")) is None
    assert len(table.told) == 1


def test_the_end_of_a_claim_with_nothing_on_its_way_is_no_news_beside_the_api_servers() -> None:
    table = Table(a_claim("1", allocated=ONE))
    assert table.remove(a_claim("1")) is not None
    assert table.told == []


def test_what_is_withdrawn_is_as_the_api_server_shows_it_and_twice_is_once() -> None:
    table = allocated()
    for _ in range(2):
        table.withdraw(a_claim())
        assert (table.here, table.pending(a_claim()), table.told) == (a_claim("1"), None, [])


def test_a_later_allocation_takes_the_place_of_an_earlier_one() -> None:
    table = allocated()
    second = table.allocate(a_claim("1"), OTHER, "q")
    assert (table.has, table.pending(a_claim()), second.users) == (OTHER, second, {"q"})
    assert table.shown("c", "ns") == a_claim("1")


# --- who waits -------------------------------------------------------------------------------------------------------------------


def test_who_waits_for_an_allocation_in_flight_hears_of_it_once_when_it_is_written() -> None:
    table, written = allocated(), a_claim("2", allocated=ONE)
    table.wait_for(a_claim())
    table.written(written)
    table.written(written)
    assert table.told == [(a_claim("2"), written)]


def test_who_waits_hears_when_it_is_withdrawn() -> None:
    table = allocated()
    table.wait_for(a_claim())
    table.withdraw(a_claim())
    assert table.told == [(a_claim("1", allocated=ONE), a_claim("1"))]
    unseen = Table(a_claim(name="else"))
    unseen.allocate(a_claim(), ONE, "p")
    unseen.wait_for(a_claim())
    unseen.withdraw(a_claim())
    assert unseen.told == [(a_claim("1", allocated=ONE), None)]


def test_what_a_watch_shows_is_news_for_everybody_and_needs_no_telling() -> None:
    table, written = allocated(), a_claim("2", allocated=ONE)
    table.wait_for(a_claim())
    table.put(written)
    table.written(written)
    assert table.told == []


def test_nobody_is_told_who_did_not_wait_and_waiting_for_nothing_is_no_error() -> None:
    table = Table()
    table.wait_for(a_claim())
    table.written(a_claim("2"))
    table.leave(a_claim(), "p")
    table.allocate(a_claim(), ONE, "p")
    table.written(a_claim("2", allocated=ONE))
    assert table.told == []


def test_every_listener_is_told() -> None:
    table, heard = allocated(), list[str]()
    table.listeners += [lambda before, now: heard.append("second"), lambda before, now: heard.append("third")]
    table.remove(a_claim())
    assert (len(table.told), heard) == (1, ["second", "third"])


# --- versions --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("noted", "then", "written"),
    [
        ("", "5", "5"), ("5", "6", "6"), ("5", "4", "5"), ("9", "10", "10"), ("10", "9", "10"), ("5", "5", "5"),
        ("", "x", "x"), ("x", "y", "x"), ("5", "x", "5"), ("x", "5", "x"),
    ],
)  # fmt: skip
def test_a_late_answer_says_nothing_of_what_was_written_after_it(noted: str, then: str, written: str) -> None:
    pending = Table().allocate(a_claim(), ONE, "p")
    if noted:
        pending.note_written(noted)
    pending.note_written(then)
    assert pending.written == written


@pytest.mark.parametrize(
    ("written", "shown", "lost"),
    [
        ("", "5", False), ("5", "6", True), ("5", "5", False), ("5", "4", False), ("9", "10", True), ("10", "9", False),
        ("99", "100", True), ("x", "y", True), ("x", "x", False), ("5", "x", True), ("x", "5", True),
    ],
)  # fmt: skip
def test_a_version_comes_after_another_as_a_number_or_where_it_is_none_by_being_another(written: str, shown: str, *, lost: bool) -> None:
    pending = Table().allocate(a_claim(), ONE, "p")
    pending.written = written
    assert pending.precedes(shown) is lost


# --- claims that are released ----------------------------------------------------------------------------------------------------


def test_a_claim_is_being_released_until_it_was_ended_as_often_as_it_was_begun() -> None:
    table = Table()
    assert not table.releasing(a_claim())
    for _ in range(2):
        table.begin_release(a_claim())
    assert table.releasing(a_claim("7"))
    assert not table.releasing(a_claim(uid="other"))
    table.end_release(a_claim())
    assert table.releasing(a_claim())
    table.end_release(a_claim())
    assert not table.releasing(a_claim())
    table.end_release(a_claim())
    table.begin_release(a_claim())
    assert table.releasing(a_claim()), "what was ended too often counts no less"


# --- which pod a claim serves ----------------------------------------------------------------------------------------------------

EXTENDED = {"resource.kubernetes.io/extended-resource-claim": "true"}
POD = {"kind": "Pod", "name": "p", "uid": "pod-uid", "controller": True}


@pytest.mark.parametrize(
    ("metadata", "owner"),
    [
        ({"annotations": EXTENDED, "ownerReferences": [POD]}, "pod-uid"),
        ({"annotations": EXTENDED, "ownerReferences": [{"uid": "x"}, {"uid": "y", "controller": False}, POD]}, "pod-uid"),
        ({"annotations": EXTENDED}, ""),
        ({"annotations": EXTENDED, "ownerReferences": [{"uid": "x"}]}, ""),
        ({"ownerReferences": [POD]}, ""),
        ({"annotations": dict.fromkeys(EXTENDED, "false"), "ownerReferences": [POD]}, ""),
        ({}, ""),
    ],
)
def test_a_claim_for_extended_resources_is_found_by_the_pod_that_controls_it(metadata: dict[str, Any], owner: str) -> None:
    found = a_claim(**metadata)
    assert owner_of_extended(found) == owner
    table = Table(found)
    assert list(table.where("pod-uid")) == ([found] if owner else [])
    table.allocate(found, ONE, "p")
    assert [each.status.allocation for each in table.where("pod-uid")] == ([ONE] if owner else [])
    table.remove(found)
    assert list(table.where("pod-uid")) == []


# --- any history -----------------------------------------------------------------------------------------------------------------

HISTORY = st.lists(
    st.one_of(
        st.tuples(st.just("show"), st.sampled_from([None, ONE, OTHER]), st.sampled_from(["u", "u", "other"])),
        st.tuples(st.just("again")),
        st.tuples(st.just("allocate"), st.sampled_from([ONE, OTHER]), st.sampled_from("pq")),
        st.tuples(st.just("answer")),
        st.tuples(st.just("leave"), st.sampled_from("pq")),
        st.tuples(st.just("wait")),
        st.tuples(st.just("withdraw")),
        st.tuples(st.just("remove")),
    ),
    max_size=12,
)


class Story:
    """A table, and what the API server shows of the claim."""

    def __init__(self) -> None:
        self.table = Table(a_claim(name="else"))
        self.shown: ResourceClaim | None = None
        self.version = 1

    @property
    def target(self) -> ResourceClaim:
        return self.shown or a_claim()

    def show(self, allocation: AllocationResult | None, uid: str) -> None:
        self.version += 1
        self.shown = a_claim(str(self.version), uid=uid, allocated=allocation)
        self.table.put(self.shown)

    def again(self) -> None:
        if self.shown is not None:
            self.table.put(self.shown)

    def allocate(self, allocation: AllocationResult, user: str) -> None:
        if self.table.has is None:
            self.table.allocate(self.target, allocation, user)

    def answer(self) -> None:
        if pending := self.table.pending(self.target):
            self.version += 1
            self.table.written(a_claim(str(self.version), uid=self.target.metadata.uid, allocated=pending.allocation))

    def leave(self, user: str) -> None:
        heard, held = len(self.table.told), self.table.has
        self.table.leave(self.target, user)
        assert held is None or self.table.has is not None or len(self.table.told) > heard, "free, and nobody was told"

    def wait(self) -> None:
        self.table.wait_for(self.target)

    def withdraw(self) -> None:
        self.table.withdraw(self.target)

    def remove(self) -> None:
        self.table.remove(self.target)
        self.shown = None

    def check(self) -> None:
        here, has = self.table.here, self.table.has
        pending = self.table.pending(here) if here else None
        if pending is None:
            assert here == self.shown, "nothing is pending, and yet it is not as it is shown"
        else:
            assert has is not None, "pending, and yet free"
            assert devices_of(has) == devices_of(pending.allocation)
        assert self.shown is None or self.table.shown("c", "ns") == self.shown


@settings(max_examples=cases(150))
@given(HISTORY)
def test_through_any_history_devices_are_held_while_pending_and_nobody_misses_that_they_are_free(history: list[Any]) -> None:
    """A table for which nobody listens would keep pods waiting for devices that are free."""
    story = Story()
    for act, *what in history:
        before, version = story.table.here, story.table.version
        getattr(story, act)(*what)
        story.check()
        assert story.table.here is before or story.table.version > version


@pytest.mark.parametrize("times", [1, 2])
def test_telling_is_left_to_listeners_and_changes_nothing_by_itself(times: int) -> None:
    table = Table()
    before = table.version
    for _ in range(times):
        table.tell(a_claim("1"), None)
    assert (table.told, table.version) == ([(a_claim("1"), None)] * times, before)
    assert with_allocation(a_claim("1"), None) == a_claim("1")
