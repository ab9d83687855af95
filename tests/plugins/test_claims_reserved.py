"""Claims from Reserve to PreBind and back: shared ones, trials, writes that fail, versions that come late."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from placewright.api.devices import ConsumerReference, ResourceClaim
from placewright.api.errors import ClaimError
from placewright.api.objects import NodeName
from placewright.plugins.dynamicresources.plugin import DEALLOCATED, DELETED, IN_USE, NOT_AVAILABLE, STILL_NOT
from plugins.claiming import Claiming

GANG = {"scheduling.x-k8s.io/pod-group": "train"}
TWO = {"requests": {"example.com/gpu": "2"}}


def test_what_is_reserved_is_taken_before_anything_is_written_and_free_when_it_is_given_back() -> None:
    at = Claiming(1)
    at.claim("mine")
    at.claim("other")
    decided = at.reserve(at.pod("web", "mine"), "n0")
    assert at.server.writes == []
    assert at.taken() == [("n0", "d0")]
    assert at.why(at.pod("next", "other")) == {"cannot allocate all claims"}
    at.unreserve(decided, "n0")
    assert (at.taken(), at.server.late, at.fits(at.pod("next", "other"))) == ([], [], ["n0"])


def test_a_pending_allocation_outlives_every_version_that_was_written_without_it() -> None:
    at = Claiming(1)
    claim = at.claim("mine")
    at.claim("other")
    decided = at.reserve(at.pod("web", "mine"), "n0")
    for _ in range(3):
        at.server.keep(replace(claim, metadata=replace(claim.metadata, finalizers=("theirs",))))
        at.show("mine")
        assert at.why(at.pod("next", "other")) == {"cannot allocate all claims"}
    assert at.pre_bind(decided, "n0").ok
    at.cluster.objects.put(claim)  # a watch that comes late
    assert at.why(at.pod("next", "other")) == {"cannot allocate all claims"}
    at.show("mine")
    assert at.table.pending(claim) is None
    assert at.taken() == [("n0", "d0")]


def test_a_claim_that_lost_what_was_written_is_free_although_the_watch_never_showed_it() -> None:
    at = Claiming(1)
    claim = at.claim("mine")
    decided = at.reserve(at.pod("web", "mine"), "n0")
    assert at.pre_bind(decided, "n0").ok
    at.server.keep(replace(at.server.claims["mine"], status=claim.status))  # the pod finished, the controller freed the claim
    at.show("mine")
    assert at.taken() == []
    assert at.table.pending(claim) is None


def test_another_claim_of_the_same_name_has_nothing_of_the_old_one() -> None:
    at = Claiming(1)
    at.claim("mine")
    at.reserve(at.pod("web", "mine"), "n0")
    at.cluster.objects.put(replace(at.server.claims["mine"], metadata=replace(at.server.claims["mine"].metadata, uid="u-new")))
    assert at.taken() == []


def test_a_pod_waits_while_another_one_gets_the_claim_that_both_share_and_then_joins_it() -> None:
    at = Claiming(1, 1)
    at.claim("shared")
    first = at.reserve(at.pod("first", "shared"), "n1")
    assert at.why(at.pod("second", "shared")) == {"resource claim default/shared is in the process of being allocated"}
    assert at.pre_bind(first, "n1").ok
    second = at.reserve(at.pod("second", "shared"), "n1")
    assert at.fits(at.pod("third", "shared")) == ["n1"]
    assert at.pre_bind(second, "n1").ok
    assert [user.name for user in at.server.claims["shared"].status.reserved_for or ()] == ["first", "second"]


def test_of_two_pods_that_were_decided_before_either_was_reserved_one_gets_the_claim() -> None:
    """As happens while extenders are asked."""
    at = Claiming(2)
    claim = at.claim("shared")
    late = at.evaluator.evaluate(at.pod("late", "shared"))
    at.reserve(at.pod("early", "shared"), "n0")
    status = at.evaluator.runtime.run_reserve(late.state, late.pod, NodeName("n0"))
    assert status.message == "resource claim default/shared is in the process of being allocated"
    pending = at.table.pending(claim)
    assert pending is not None
    assert pending.users == {"p-early"}


def test_members_of_a_group_share_a_claim_in_one_decision_and_any_of_them_writes_it() -> None:
    at = Claiming(1, 1)
    at.claim("shared")
    first = at.reserve(at.pod("first", "shared", labels=GANG), "n0")
    second = at.reserve(at.pod("second", "shared", labels=GANG), "n0")
    assert at.taken() == [("n0", "d0")]
    assert at.pre_bind(second, "n0").ok
    assert at.pre_bind(first, "n0").ok
    at.show("shared")
    assert [user.name for user in at.server.claims["shared"].status.reserved_for or ()] == ["second", "first"]
    assert at.taken() == [("n0", "d0")]


def test_a_trial_of_a_group_that_is_taken_back_leaves_nothing() -> None:
    at = Claiming(2)
    at.claim("shared")
    at.claim("own")
    decided = [at.reserve(at.pod("first", "shared", "own", labels=GANG), "n0"), at.reserve(at.pod("second", "shared", labels=GANG), "n0")]
    for each in reversed(decided):
        at.unreserve(each, "n0")
    assert (at.taken(), at.server.late, at.server.writes) == ([], [], [])
    assert [at.table.pending(claim) for claim in at.table.values()] == [None, None]


def test_the_devices_stay_with_the_member_that_is_still_on_its_way() -> None:
    at = Claiming(1)
    at.claim("shared")
    first = at.reserve(at.pod("first", "shared", labels=GANG), "n0")
    second = at.reserve(at.pod("second", "shared", labels=GANG), "n0")
    assert at.pre_bind(first, "n0").ok
    at.unreserve(first, "n0")
    at.server.catch_up()
    for _ in range(2):
        at.show("shared")
        assert at.taken() == [("n0", "d0")]
    assert at.pre_bind(second, "n0").ok
    assert [user.name for user in at.server.claims["shared"].status.reserved_for or ()] == ["second"]


def test_what_was_written_is_freed_beside_and_nobody_counts_on_the_claim_meanwhile() -> None:
    at = Claiming(1)
    claim = at.claim("mine")
    decided = at.reserve(at.pod("web", "mine"), "n0")
    assert at.pre_bind(decided, "n0").ok
    at.show("mine")
    at.unreserve(decided, "n0")
    assert at.table.releasing(claim)
    at.server.catch_up()
    at.show("mine")
    assert not at.table.releasing(claim)
    assert (at.taken(), at.server.claims["mine"].status.reserved_for) == ([], None)


def test_a_write_that_fails_is_looked_after_because_it_may_have_been_done() -> None:
    at = Claiming(1)
    at.claim("mine")
    at.server.fail(ClaimError("reserve does not work"), "mine")
    decided = at.reserve(at.pod("web", "mine"), "n0")
    status = at.pre_bind(decided, "n0")
    assert not status.ok
    assert status.message == 'running PreBind plugin "DynamicResources": reserve does not work'
    at.unreserve(decided, "n0")
    at.server.catch_up()
    assert at.server.writes == [("reserve", "mine"), ("release", "mine")]
    assert at.taken() == []


def test_a_release_that_does_not_work_keeps_nobody_waiting() -> None:
    at = Claiming(1)
    claim = at.claim("mine")
    at.server.fail(ClaimError("nothing works"))
    decided = at.reserve(at.pod("web", "mine"), "n0")
    at.pre_bind(decided, "n0")
    at.unreserve(decided, "n0")
    at.server.catch_up()
    assert (at.table.releasing(claim), at.table.pending(claim), at.fits(at.pod("web", "mine"))) == (False, None, ["n0"])


def test_a_claim_that_binds_its_pod_to_a_full_node_is_freed_if_nobody_else_uses_it() -> None:
    at = Claiming(1, 1)
    at.claim("mine")
    decided = at.reserve(at.pod("first", "mine"), "n0")
    assert at.pre_bind(decided, "n0").ok
    at.show("mine")
    large = at.pod("large", "mine", resources={"requests": {"cpu": "64"}})
    at.reserve(at.pod("filler", resources={"requests": {"cpu": "32"}}), "n0")
    assert at.why(large) == {"Insufficient cpu", NOT_AVAILABLE}
    assert at.post_filter(large) == STILL_NOT
    free = at.server.claims["mine"]
    at.server.keep(replace(free, status=replace(free.status, reserved_for=None)))
    at.show("mine")
    assert at.post_filter(large) == DEALLOCATED
    at.server.catch_up()
    at.show("mine")
    assert at.fits(large) == ["n1"]


def test_a_deleted_claim_that_still_lists_the_waiting_pod_is_released() -> None:
    """An earlier leader wrote the claim and ended before the Binding; then somebody deleted the claim."""
    at = Claiming(1)
    at.claim("mine")
    at.claim("shared")
    web, other = at.pod("web", "mine"), at.pod("other", "shared")
    assert at.pre_bind(at.reserve(web, "n0"), "n0").ok
    for name in ("mine", "shared"):
        there = at.server.claims[name]
        at.server.keep(replace(there, metadata=replace(there.metadata, deletion_timestamp="2026-01-01T00:00:00Z")))
        at.show(name)
    assert at.pre_enqueue(web) == ""  # nothing would attempt it and so release the claim
    assert at.pre_enqueue(other) == 'resourceclaim "shared" is being deleted'
    assert at.why(web) == {'resourceclaim "mine" is being deleted'}
    assert at.post_filter(web) == DEALLOCATED
    at.server.catch_up()
    at.show("mine")
    assert (at.server.claims["mine"].status.reserved_for, at.taken()) == (None, [])
    assert at.post_filter(web) == "no new claims to deallocate"
    assert at.pre_enqueue(web) == 'resourceclaim "mine" is being deleted'


def test_a_deleted_claim_of_a_pod_on_its_way_to_a_node_is_not_released() -> None:
    at = Claiming(1)
    at.claim("mine")
    web = at.pod("web", "mine")
    at.reserve(web, "n0")
    there = at.server.claims["mine"]
    users = (ConsumerReference(resource="pods", name="web", uid="p-web"),)
    ending = replace(there.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    at.server.keep(replace(there, metadata=ending, status=replace(there.status, reserved_for=users)))
    at.show("mine")
    assert at.post_filter(web) == "no new claims to deallocate"
    assert at.server.late == []


def test_no_more_pods_than_256_use_a_claim() -> None:
    at = Claiming(1)
    at.claim("mine")
    assert at.pre_bind(at.reserve(at.pod("web", "mine"), "n0"), "n0").ok
    kept = at.server.claims["mine"]
    users = tuple(replace((kept.status.reserved_for or ())[0], uid=f"u{number}") for number in range(256))
    at.server.keep(replace(kept, status=replace(kept.status, reserved_for=users)))
    at.show("mine")
    assert at.why(at.pod("late", "mine")) == {IN_USE}
    at.server.keep(replace(at.server.claims["mine"], status=replace(kept.status, reserved_for=users[1:])))
    at.show("mine")
    assert at.fits(at.pod("late", "mine")) == ["n0"]


def test_a_claim_for_extended_resources_is_made_told_and_deleted_again() -> None:
    at = Claiming(2, 1, resource="example.com/gpu")
    web = at.pod("web", resources=TWO)
    assert at.fits(web) == ["n0"]
    decided = at.reserve(web, "n0")
    assert at.taken() == [("n0", "d0"), ("n0", "d1")]
    assert at.pre_bind(decided, "n0").ok
    (claim,) = at.server.claims.values()
    assert claim.metadata.annotations == {"resource.kubernetes.io/extended-resource-claim": "true"}
    assert [owner.uid for owner in claim.metadata.owner_references or ()] == ["p-web"]
    assert at.server.told[0].resource_claim_name == claim.metadata.name
    assert [(each.container_name, each.resource_name, each.request_name) for each in at.server.told[0].request_mappings or ()] == [
        ("main", "example.com/gpu", "container-0-request-0")
    ]
    assert at.taken() == [("n0", "d0"), ("n0", "d1")]
    at.unreserve(decided, "n0")
    at.server.catch_up()
    assert (at.taken(), at.server.claims) == ([], {})


def test_a_claim_that_was_left_over_goes_before_its_pod_is_tried_again() -> None:
    at = Claiming(2, resource="example.com/gpu")
    web = at.pod("web", resources=TWO)
    decided = at.reserve(web, "n0")
    assert at.pre_bind(decided, "n0").ok
    (name,) = at.server.claims
    at.show(name)
    at.cluster.forget(web, NodeName("n0"))
    again = at.pod("web", resources=TWO)
    assert at.why(again) == {"cannot schedule extended resource claim"}
    assert at.post_filter(again) == DELETED
    left = at.table.get(name, "default")
    assert left is not None
    at.server.catch_up()
    at.cluster.objects.remove(left)
    assert at.fits(again) == ["n0"]


@pytest.mark.parametrize(
    ("said", "counted"),
    [({"ready": "True"}, "success"), ({}, "timeout"), ({"broken": "True"}, "failure")],
)
def test_how_the_wait_for_devices_ended_is_told_with_their_driver(said: dict[str, str], counted: str) -> None:
    world = Claiming(1)
    world.with_conditions("n0", "ready")
    world.claim("c")
    world.says("c", **said)
    world.server.before_looking = lambda: world.show("c")
    status = world.pre_bind(world.reserve(world.pod("p", "c"), "n0"), "n0")
    assert status.ok == (counted == "success"), status
    assert [(drivers, how) for _, drivers, how, _ in world.server.waits] == [(("d",), counted)]


def test_who_waits_for_no_device_is_not_counted() -> None:
    world = Claiming(1)
    world.claim("c")
    assert world.pre_bind(world.reserve(world.pod("p", "c"), "n0"), "n0").ok
    assert world.server.waits == []


# --- a watch that is faster than the answer -------------------------------------------------------------------------------------


class Told:
    """What listeners of the table of claims hear: (name, devices before, devices now)."""

    def __init__(self, at: Claiming) -> None:
        self.heard: list[tuple[str, bool, bool | None]] = []
        at.table.listeners.append(self._hear)

    def _hear(self, before: ResourceClaim, now: ResourceClaim | None) -> None:
        has = None if now is None else now.status.allocation is not None
        self.heard.append((before.metadata.name, before.status.allocation is not None, has))


def test_what_the_watch_shows_is_written_before_the_answer_is_there() -> None:
    at = Claiming(1)
    mine = at.claim("mine")
    decided = at.reserve(at.pod("web", "mine"), "n0")
    pending = at.table.pending(mine)
    assert pending is not None
    asyncio.run(at.server.reserve(mine, pending.allocation, decided.pod))
    at.show("mine")
    assert at.fits(at.pod("second", "mine")) == ["n0"]
    assert at.table.pending(mine) is pending, "the pod is on its way still"


def test_an_answer_does_not_take_back_what_the_watch_has_shown_since() -> None:
    at = Claiming(1)
    mine = at.claim("mine")
    decided = at.reserve(at.pod("web", "mine"), "n0")
    pending = at.table.pending(mine)
    assert pending is not None
    answer = asyncio.run(at.server.reserve(mine, pending.allocation, decided.pod))
    at.server.keep(answer)
    at.show("mine")
    shown = at.server.claims["mine"].metadata.resource_version
    at.table.written(answer)
    assert pending.written == shown
    assert shown > answer.metadata.resource_version


def test_who_waited_for_a_write_hears_of_its_answer_where_the_watch_says_nothing_more() -> None:
    """The claim had lost its devices again before the watch looked."""
    at = Claiming(1)
    mine = at.claim("mine")
    told = Told(at)
    decided = at.reserve(at.pod("web", "mine"), "n0")
    assert at.why(at.pod("second", "mine")) == {"resource claim default/mine is in the process of being allocated"}
    assert at.pre_bind(decided, "n0").ok
    assert told.heard == [("mine", False, True)]
    at.unreserve(decided, "n0")
    at.server.catch_up()
    assert at.table.pending(mine) is None
    assert at.taken() == []
    assert told.heard[-1] == ("mine", True, False)


def test_nobody_is_told_of_what_nobody_waited_for() -> None:
    at = Claiming(1)
    at.claim("mine")
    told = Told(at)
    at.unreserve(at.reserve(at.pod("web", "mine"), "n0"), "n0")
    assert told.heard == []


def test_devices_that_somebody_else_gave_to_the_claim_end_what_is_in_flight() -> None:
    at = Claiming(2)
    mine = at.claim("mine")
    at.claim("other")
    told = Told(at)
    decided = at.reserve(at.pod("web", "mine"), "n0")
    pending = at.table.pending(mine)
    assert pending is not None
    taken = pending.allocation.devices.results or ()
    theirs = replace(pending.allocation, devices=replace(pending.allocation.devices, results=(replace(taken[0], device="d1"),)))
    at.server.keep(replace(mine, status=replace(mine.status, allocation=theirs)))
    at.show("mine")
    assert at.taken() == [("n0", "d1")]
    assert told.heard == [("mine", True, True)]
    assert at.fits(at.pod("second", "mine")) == ["n0"]
    assert at.fits(at.pod("third", "other")) == ["n0"], "what was taken is free again"
    at.unreserve(decided, "n0")
    assert at.taken() == [("n0", "d1")]
