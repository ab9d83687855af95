from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kubesandbox.faults import Rule
from kubesandbox.server import Sandbox
from kubesandbox.storage.writes import DeleteOptions
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright.leadership.lease import LeaseFence
from placewright.leadership.leaseobject import CannotElect
from placewright.leadership.leaserule import Timing, real_seconds
from placewright.leadership.peering import Leadership

from .hastyloop import HastyLoop

#: Renewals and patience are of seconds, which nobody here waits for.
LOOP = HastyLoop
NAMESPACE = "placewright-system"
LEASES = "/leases"
DEADLINE = 15.0
TIMING = Timing.of(3)


def now() -> float:
    """Seconds on the clock that all of this goes by."""
    return asyncio.get_running_loop().time()


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox() as made:
        made.writes.create(made.resource("", "v1", "namespaces"), "", {"metadata": {"name": NAMESPACE}})
        yield made


class Replica:
    """One hold on the Lease, with a client of its own; `turns` is each change of the answer."""

    def __init__(self, sandbox: Sandbox, name: str, ahead: timedelta, **finished: Any) -> None:
        self.client = ApiClient(load_config(str(sandbox.kubeconfig)), timeout=TIMING.renew / 2)
        options: dict[str, Any] = {"clock": now, **finished}
        self.fence = LeaseFence(self.client, NAMESPACE, name, TIMING, **options, now=lambda: datetime.now(UTC) + ahead)
        self.fence.on_change(self._changed)
        self.turns: list[bool] = []
        self.news = asyncio.Event()

    def _changed(self) -> None:
        if self.fence.held != (self.turns or [False])[-1]:
            self.turns.append(self.fence.held)
        self.news.set()

    async def until(self, condition: Callable[[], Any]) -> None:
        async with asyncio.timeout(DEADLINE):
            while not condition():
                self.news.clear()
                await self.news.wait()

    async def holds(self) -> None:
        await self.until(lambda: self.fence.held)


@asynccontextmanager
async def replica(
    sandbox: Sandbox, name: str, *, elected: bool = True, ahead: timedelta = timedelta(), **finished: Any
) -> AsyncIterator[Replica]:
    """`finished`: what it waits for before it gives the Lease away."""
    made = Replica(sandbox, name, ahead, **finished)
    made.fence.work.start()
    made.fence.elected(elected)
    try:
        yield made
    finally:
        await made.fence.stop()
        await made.client.close()


def lease(sandbox: Sandbox) -> dict[str, Any]:
    found = sandbox.store.get(sandbox.resource("coordination.k8s.io", "v1", "leases").key, NAMESPACE, "placewright")
    return {} if found is None else dict(found.object)


def edit(sandbox: Sandbox, **spec: Any) -> None:
    """As `kubectl edit lease` does; None takes a field away."""

    def change(found: dict[str, Any]) -> None:
        found["spec"] = {key: value for key, value in {**found["spec"], **spec}.items() if value is not None}

    sandbox.writes.modify(sandbox.resource("coordination.k8s.io", "v1", "leases"), NAMESPACE, "placewright", change)


def delete(sandbox: Sandbox) -> None:
    sandbox.writes.delete(sandbox.resource("coordination.k8s.io", "v1", "leases"), NAMESPACE, "placewright", DeleteOptions())


# --- one ------------------------------------------------------------------------------------------------------------------------


async def test_it_is_written_as_client_go_writes_it_and_given_back_so(sandbox: Sandbox) -> None:
    async with replica(sandbox, "us") as us:
        await us.holds()
        first = lease(sandbox)["spec"]
        assert first["holderIdentity"] == "us"
        assert (first["leaseDurationSeconds"], first["leaseTransitions"]) == (3, 0)
        assert first["acquireTime"] == first["renewTime"] and first["renewTime"].endswith("Z")
        await us.until(lambda: lease(sandbox)["spec"]["renewTime"] != first["renewTime"])
        assert lease(sandbox)["spec"] | {"renewTime": ""} == first | {"renewTime": ""}, "renewing changes nothing else"
    left = lease(sandbox)["spec"]
    assert (left["holderIdentity"], left["leaseDurationSeconds"], left["leaseTransitions"]) == ("", 1, 0)
    assert us.turns[0] and not us.fence.held


async def test_it_is_held_without_a_break_for_as_long_as_renewals_go_through(sandbox: Sandbox) -> None:
    async with replica(sandbox, "us") as us:
        await us.holds()
        renewals = {lease(sandbox)["spec"]["renewTime"]}

        def enough() -> bool:
            renewals.add(lease(sandbox)["spec"]["renewTime"])
            return len(renewals) >= 12

        await us.until(enough)
        assert us.turns == [True] and us.fence.term == 1


async def test_it_is_not_taken_before_peering_elects_us_and_given_back_when_it_does_no_more(sandbox: Sandbox) -> None:
    async with replica(sandbox, "us", elected=False) as us:
        await us.until(lambda: us.fence.why == "no replica holds the Lease")
        assert lease(sandbox) == {}
        us.fence.elected(True)
        await us.holds()
        us.fence.elected(False)
        await us.until(lambda: lease(sandbox)["spec"]["holderIdentity"] == "")
        assert us.turns == [True, False]
        us.fence.elected(True)
        await us.holds()
        assert us.fence.term == 2 and lease(sandbox)["spec"]["leaseTransitions"] == 1


async def test_whoever_outranks_us_gets_it_when_what_was_sent_under_it_has_ended(sandbox: Sandbox) -> None:
    ended, asked = asyncio.Event(), asyncio.Event()

    async def finished() -> None:
        asked.set()
        await ended.wait()

    async with replica(sandbox, "older", elected=False) as older, replica(sandbox, "us", finished=finished) as us:
        await us.holds()
        us.fence.elected(False)
        older.fence.elected(True)
        await asked.wait()
        assert lease(sandbox)["spec"]["holderIdentity"] == "us"
        ended.set()
        await older.holds()
        assert not us.fence.held


async def test_what_was_sent_under_it_is_not_waited_for_for_ever(sandbox: Sandbox) -> None:
    async with replica(sandbox, "older", elected=False) as older, replica(sandbox, "us", finished=asyncio.Event().wait) as us:
        await us.holds()
        us.fence.elected(False)
        older.fence.elected(True)
        await older.holds()
        assert lease(sandbox)["spec"]["holderIdentity"] == "older"


async def test_what_people_put_on_it_stays_on_it(sandbox: Sandbox) -> None:
    async with replica(sandbox, "us") as us:
        await us.holds()
        resource = sandbox.resource("coordination.k8s.io", "v1", "leases")
        labelled = {"labels": {"team": "a"}, "annotations": {"note": "b"}}
        sandbox.writes.modify(resource, NAMESPACE, "placewright", lambda found: found["metadata"].update(labelled))
        before = lease(sandbox)["spec"]["renewTime"]
        await us.until(lambda: lease(sandbox)["spec"]["renewTime"] != before)
        assert {key: lease(sandbox)["metadata"][key] for key in labelled} == labelled
        assert us.turns == [True]


class Machine:
    """Its clock goes on while it is suspended; timers do not."""

    def __init__(self) -> None:
        self.suspended = 0.0

    def clock(self) -> float:
        return now() + self.suspended


async def test_whoever_wakes_up_on_a_machine_that_was_suspended_does_not_act_before_a_renewal(sandbox: Sandbox) -> None:
    machine = Machine()
    async with replica(sandbox, "us", clock=machine.clock) as us:
        await us.holds()
        renewed = lease(sandbox)["spec"]["renewTime"]
        machine.suspended = 3600.0
        assert not us.fence.held and us.fence.until is None
        await us.holds()
        assert lease(sandbox)["spec"]["renewTime"] != renewed
        assert us.fence.term == 1, "nobody had it in between"


async def test_whoever_wakes_up_when_another_leads_does_not_act_at_all(sandbox: Sandbox) -> None:
    machine = Machine()
    async with replica(sandbox, "us", clock=machine.clock) as us, replica(sandbox, "them", elected=False) as them:
        await us.holds()
        sandbox.faults.add(Rule(path=LEASES, watch=True, code=403))
        sandbox.faults.drop_watches("leases")
        us.turns.clear()
        edit(sandbox, holderIdentity="them", renewTime="2030-01-01T00:00:00.000000Z")
        machine.suspended = 3600.0
        assert not us.fence.held
        await us.until(lambda: us.fence.why == "them holds the Lease")
        assert True not in us.turns
        assert not them.fence.held


def test_the_clock_of_leadership_is_the_one_that_goes_on_while_a_machine_is_suspended() -> None:
    for made in (LeaseFence, Leadership):
        assert inspect.signature(made).parameters["clock"].default is real_seconds
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert before <= real_seconds() <= time.clock_gettime(time.CLOCK_BOOTTIME)


async def test_who_does_not_give_it_back_lets_it_run_out(sandbox: Sandbox) -> None:
    async with replica(sandbox, "us") as us, replica(sandbox, "them") as them:
        await us.holds()
        await them.until(lambda: them.fence.why == "us holds the Lease")
        began = now()
        await us.fence.stop(give_back=False)
        assert not us.fence.held and lease(sandbox)["spec"]["holderIdentity"] == "us"
        await them.holds()
        assert now() - began > TIMING.renew


async def test_what_is_not_finished_in_time_keeps_the_lease_from_being_given_back_early(sandbox: Sandbox) -> None:
    async def never() -> None:
        await asyncio.Event().wait()

    async with replica(sandbox, "us", finished=never) as us:
        await us.holds()
        until = us.fence.until
        assert until is not None
        us.fence.elected(False)
        await us.until(lambda: not lease(sandbox)["spec"]["holderIdentity"])
        assert now() >= until + TIMING.gap


# --- two ------------------------------------------------------------------------------------------------------------------------


async def test_of_two_one_holds_it_and_the_other_takes_over_at_once_when_it_is_given_back(sandbox: Sandbox) -> None:
    async with replica(sandbox, "older") as older:
        await older.holds()
        async with replica(sandbox, "younger") as younger:
            await younger.until(lambda: younger.fence.why == "older holds the Lease")
            began = now()
            await older.fence.stop()
            await younger.holds()
            took = now() - began
            assert not older.fence.held
            assert took < TIMING.lease, "without waiting for the Lease to run out"
            assert lease(sandbox)["spec"]["leaseTransitions"] == 1


async def test_without_a_watch_a_lease_that_was_given_back_is_found_when_it_would_have_run_out(sandbox: Sandbox) -> None:
    async with replica(sandbox, "older") as older:
        await older.holds()
        async with replica(sandbox, "younger") as younger:
            await younger.until(lambda: younger.fence.sight is not None)
            sandbox.faults.add(Rule(path=LEASES, watch=True, code=403))
            sandbox.faults.drop_watches("leases")
            await older.fence.stop()
            await younger.holds()
            assert lease(sandbox)["spec"]["holderIdentity"] == "younger"


@pytest.mark.parametrize("minutes", [-30, 30])
async def test_a_holder_that_vanished_is_followed_whatever_its_clock_said(sandbox: Sandbox, minutes: int) -> None:
    async with replica(sandbox, "older", ahead=timedelta(minutes=minutes)) as older:
        await older.holds()
        async with replica(sandbox, "younger") as younger:
            await younger.until(lambda: younger.fence.sight is not None)
            for task in older.fence.work.tasks:
                task.cancel()  # as if it stood still: nothing more is sent
            last = older.fence.until
            await younger.holds()
            assert last is not None and now() > last
            assert not older.fence.held


async def test_a_holder_whose_renewals_fail_ceases_to_hold_it_before_another_can(sandbox: Sandbox) -> None:
    async with replica(sandbox, "older") as older:
        await older.holds()
        async with replica(sandbox, "younger") as younger:
            await younger.until(lambda: younger.fence.sight is not None)
            sandbox.faults.add(Rule(method="PUT", path=LEASES, code=503))
            await older.until(lambda: not older.fence.held)
            assert not younger.fence.held and not younger.turns


# --- trouble --------------------------------------------------------------------------------------------------------------------


async def test_answers_that_get_lost_do_not_cost_the_lease(sandbox: Sandbox) -> None:
    async with replica(sandbox, "us") as us:
        await us.holds()
        lost = sandbox.faults.add(Rule(method="PUT", path=LEASES, share=0.5, lose_answer=True))
        await us.until(lambda: lost.met >= 5)
        sandbox.faults.clear()
        assert us.turns == [True] and us.fence.term == 1


async def test_a_lease_taken_with_a_lost_answer_is_ours(sandbox: Sandbox) -> None:
    sandbox.faults.add(Rule(method="POST", path=LEASES, lose_answer=True, times=1))
    async with replica(sandbox, "us") as us:
        await us.holds()
        assert us.fence.term == 1 and lease(sandbox)["spec"]["leaseTransitions"] == 0


@pytest.mark.parametrize("fault", [{"code": 500}, {"code": 429, "retry_after": 30}, {"code": 403}, {"latency": 60.0}], ids=str)
async def test_without_renewals_it_stops_by_itself_and_goes_on_when_they_succeed_again(
    sandbox: Sandbox, fault: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    async with replica(sandbox, "us") as us:
        await us.holds()
        sandbox.faults.add(Rule(method="PUT", path=LEASES, **fault))
        await us.until(lambda: not us.fence.held)
        assert us.fence.why == "the Lease names us, but no renewal was confirmed in time"
        assert (fault.get("code") == 403) == ("apply manifests/base/role.yaml" in caplog.text)
        sandbox.faults.clear()
        await us.holds()
        assert us.fence.term == 1, "nobody wrote in between"


async def test_a_lease_that_somebody_deleted_is_ours_again_at_once(sandbox: Sandbox, caplog: pytest.LogCaptureFixture) -> None:
    async with replica(sandbox, "us") as us, replica(sandbox, "younger") as younger:
        await us.until(lambda: us.fence.held or younger.fence.held)
        holder, other = (us, younger) if us.fence.held else (younger, us)
        await other.until(lambda: "holds the Lease" in other.fence.why and "no replica" not in other.fence.why)
        delete(sandbox)
        await holder.until(lambda: holder.turns == [True, False, True])
        assert holder.fence.term == 2 and other.turns == []
        assert "was deleted" in caplog.text


@pytest.mark.parametrize(
    "spec",
    [
        {"holderIdentity": "", "leaseDurationSeconds": 3},
        {"holderIdentity": None, "leaseDurationSeconds": None, "renewTime": None, "acquireTime": None},
        {"leaseDurationSeconds": 2**31 - 1},
        {"leaseDurationSeconds": None},
        {"leaseTransitions": 2**31 - 1},
        {"renewTime": "2999-01-01T00:00:00.000000Z"},
        {"renewTime": None, "acquireTime": None},
    ],
    ids=str,
)
async def test_a_lease_that_somebody_edited_is_put_right_and_no_other_gets_in(sandbox: Sandbox, spec: dict[str, Any]) -> None:
    async with replica(sandbox, "us") as us:
        await us.holds()
        async with replica(sandbox, "younger") as younger:
            await younger.until(lambda: younger.fence.why == "us holds the Lease")
            edit(sandbox, **spec)
            edited = lease(sandbox)["metadata"]["resourceVersion"]
            await us.until(lambda: us.fence.held and us.fence.sight is not None and int(us.fence.sight.version) > int(edited))
            right = lease(sandbox)["spec"]
            assert (right["holderIdentity"], right["leaseDurationSeconds"]) == ("us", 3)
            assert 0 <= right["leaseTransitions"] < 2**31 and "2999" not in right["renewTime"]
            assert younger.turns == []


async def test_a_lease_that_was_given_to_nobody_we_know_is_waited_for_and_taken(sandbox: Sandbox) -> None:
    async with replica(sandbox, "us") as us:
        await us.holds()
        edit(sandbox, holderIdentity="somebody-else")
        began = now()
        await us.until(lambda: not us.fence.held)
        assert us.fence.why == "somebody-else holds the Lease"
        await us.holds()
        assert now() - began >= TIMING.lease
        assert us.fence.term == 2


async def test_the_end_is_quick_when_the_server_is_away(sandbox: Sandbox, caplog: pytest.LogCaptureFixture) -> None:
    async with replica(sandbox, "us") as us:
        await us.holds()
        sandbox.faults.add(Rule(path=LEASES, latency=60.0))
        async with asyncio.timeout(DEADLINE):
            await us.fence.stop()
        assert not us.fence.held
        assert "the Lease could not be given back" in caplog.text


async def test_giving_it_back_gets_past_an_edit_in_between(sandbox: Sandbox) -> None:
    async with replica(sandbox, "us") as us:
        await us.holds()
        sandbox.faults.drop_watches("leases")
        sandbox.faults.add(Rule(path=LEASES, watch=True, code=503))
        edit(sandbox, leaseTransitions=5)
        await us.fence.stop()
    assert lease(sandbox)["spec"]["holderIdentity"] == ""


async def test_every_new_leader_is_logged(sandbox: Sandbox, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with replica(sandbox, "us") as us, replica(sandbox, "younger") as younger:
        await us.until(lambda: us.fence.held or younger.fence.held)
        await (us if us.fence.held else younger).fence.stop()
        await (younger if us.turns else us).holds()
    assert caplog.text.count("us leads") >= 1 and caplog.text.count("younger leads") >= 1


# --- at the start ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
async def us(sandbox: Sandbox) -> AsyncIterator[Replica]:
    made = Replica(sandbox, "us", timedelta())
    yield made
    await made.client.close()


async def test_looking_for_rights_stores_nothing(sandbox: Sandbox, us: Replica) -> None:
    await us.fence.store.require_rights()
    assert lease(sandbox) == {}


async def test_rights_are_looked_for_beside_a_lease_that_is_held(sandbox: Sandbox, us: Replica) -> None:
    async with replica(sandbox, "older") as older:
        await older.holds()
        await us.fence.store.require_rights()
        assert lease(sandbox)["spec"]["holderIdentity"] == "older"


@pytest.mark.parametrize(("method", "verb"), [("GET", "get"), ("POST", "create"), ("PUT", "update")])
async def test_without_a_right_it_is_said_which_and_what_to_apply(sandbox: Sandbox, us: Replica, method: str, verb: str) -> None:
    sandbox.faults.add(Rule(method=method, path="/leases/placewright" if verb == "get" else LEASES, code=403))
    with pytest.raises(CannotElect, match=f"may not be used .{verb} leases.*apply manifests/base") as told:
        await us.fence.store.require_rights()
    assert "\n" not in str(told.value) and "--leader-elect=false" in str(told.value)


async def test_outside_of_a_cluster_the_namespace_is_made(us: Replica) -> None:
    async with Sandbox() as bare, ApiClient(load_config(str(bare.kubeconfig))) as client:
        fence = LeaseFence(client, NAMESPACE, "us", TIMING)
        await fence.store.require_rights()
        await fence.store.require_rights()
        assert bare.store.get(bare.resource("", "v1", "namespaces").key, "", NAMESPACE) is not None


async def test_a_namespace_that_may_not_be_made_is_said_to_be_missing() -> None:
    async with Sandbox() as bare, ApiClient(load_config(str(bare.kubeconfig))) as client:
        bare.faults.add(Rule(method="POST", path="/api/v1/namespaces", code=403))
        with pytest.raises(CannotElect, match="namespace 'placewright-system', which does not exist and could not be created"):
            await LeaseFence(client, NAMESPACE, "us", TIMING).store.require_rights()
