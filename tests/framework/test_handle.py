"""What plugins may ask of the scheduler around them, and what answers where there is no scheduler."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from framework.makers import Scene
from framework.scripts import Script, bare
from placewright.api.decode import convert
from placewright.api.devices import ResourceClaim
from placewright.api.errors import BindError, ClaimError, VolumeError
from placewright.api.objects import NodeName, PodExtendedResourceClaimStatus
from placewright.api.podgroups import Form, GroupRef
from placewright.api.pods import PodInfo
from placewright.api.storage import PersistentVolume, PersistentVolumeClaim
from placewright.cluster.cluster import Cluster
from placewright.framework.events import Action, ClusterEvent
from placewright.framework.interface import Plugin
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.guard import Guarding
from placewright.framework.runtime.handle import (
    NoBinder,
    NoClaimWriter,
    NoPodGroupMembers,
    NoVolumeWriter,
    ProfileHandle,
    ignore,
)
from placewright.framework.runtime.rowchecks import NoNominations
from placewright.framework.status import SUCCESS, Status, unschedulable
from placewright.testing import pod

POD = pod("p").build()
A = NodeName("a")
GROUP = GroupRef(Form.NATIVE, "default", "g")
CLAIM = convert({"metadata": {"name": "c"}}, ResourceClaim)
STATUS = convert({"resourceClaimName": "c"}, PodExtendedResourceClaimStatus)


class Nominated(NoNominations):
    """Nobody; victims are evicted on behalf of who is named here."""

    making_room_for: frozenset[str] = frozenset()  # type: ignore[assignment]


class Around:
    """A handle whose ports are told apart, around a profile of these scripts.

    Attributes:
        announced: what was said of pods.
        waiting: pods that wait for Permit.
    """

    def __init__(self, *scripts: Script) -> None:
        self.announced: list[Any] = []
        self.waiting: list[Any] = []
        self.nominations = Nominated()
        self.binder, self.volumes, self.claims = NoBinder(), NoVolumeWriter(), NoClaimWriter()
        self.guarding = Guarding()
        self.scene: Scene = bare(*scripts)
        self.profile = self.scene.evaluator().runtime.profile
        self.handle = ProfileHandle(
            self.scene.cluster, self.binder, self.nominations, self.waiting, self.volumes,
            self.claims, lambda *said: self.announced.append(said), self, self.guarding,
        )  # fmt: skip

    def members(self, ref: GroupRef) -> list[Any]:
        return [f"member of {ref.name}"]

    def ready_members(self, ref: GroupRef, beside: PodInfo) -> dict[str, int]:
        return {f"{beside.name} of {ref.name}": 7}

    def evaluator(self) -> Evaluator:
        return self.handle.evaluator(self.profile, self.scene.registry)


# --- a profile's handle ---------------------------------------------------------------------------------------------------------------


def test_a_handle_leads_to_what_is_around_the_profile() -> None:
    around = Around()
    handle = around.handle
    assert handle.cluster is around.scene.cluster
    assert handle.binder is around.binder
    assert handle.volumes is around.volumes
    assert handle.claims is around.claims
    assert handle.guarding is around.guarding
    assert handle.waiting_members(GROUP) == ["member of g"]
    asked = POD
    assert handle.ready_members(GROUP, asked) == {"p of g": 7}
    handle.announce(asked, "Reason", "Action", "message")
    assert around.announced == [(asked, "Reason", "Action", "message", False)]


def test_pods_that_wait_are_those_that_wait_when_they_are_asked_for() -> None:
    around = Around()
    assert list(around.handle.waiting_pods()) == []
    around.waiting.append("w")
    assert list(around.handle.waiting_pods()) == ["w"]


def test_room_is_made_for_a_pod_while_its_victims_are_evicted() -> None:
    around = Around()
    assert not around.handle.making_room_for(POD)
    around.nominations.making_room_for = frozenset({"uid-p"})
    assert around.handle.making_room_for(POD)
    assert not around.handle.making_room_for(pod("q").build())


def test_a_plugin_learns_which_plugins_run_beside_it_at_any_point_while_it_is_built() -> None:
    def look(plugin: Plugin, args: Any, handle: Any) -> None:
        seen.update({name: handle.runs(name) for name in ("A", "B", "PrioritySort", "DefaultBinder", "NodeName")})

    seen: dict[str, bool] = {}
    around = Around(Script("A").reserves().writing(__init__=look), Script("B").scores())
    assert not around.handle.runs("A"), "nothing is built yet"
    around.evaluator()
    assert seen == {"A": True, "B": True, "PrioritySort": True, "DefaultBinder": True, "NodeName": False}


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda handle: handle.check_row(POD, 0), "check_row was called before the profile was built"),
        (lambda handle: handle.trials(POD), "trials were asked for before the profile was built"),
    ],
)
def test_rows_are_checked_once_the_profile_is_built(ask: Callable[[Any], Any], said: str) -> None:
    around = Around(Script("A").filters({"a": unschedulable("no")}))
    with pytest.raises(RuntimeError, match=said):
        ask(around.handle)
    around.evaluator()
    assert isinstance(ask(around.handle), Status) or ask(around.handle).rows_are_apart
    assert around.handle.check_row(POD, 0) == unschedulable("no").by("A")
    assert around.handle.check_row(POD, 1) == SUCCESS


def test_all_plugins_of_a_profile_have_its_handle_and_their_failures_are_the_handles() -> None:
    around = Around(Script("A").filters())
    runtime = around.evaluator().runtime
    assert {id(runtime.plugin(name).handle) for name in runtime.profile.plugin_names} == {id(around.handle)}
    assert runtime.failures is around.guarding.failures


def test_each_handle_watches_its_own_plugins_unless_it_is_told_otherwise() -> None:
    scene = bare()
    handles = [ProfileHandle(scene.cluster) for _ in range(2)]
    assert handles[0].guarding is not handles[1].guarding
    assert not handles[0].guarding.untouched


def test_an_evaluator_without_a_scheduler_has_a_handle_that_says_so() -> None:
    scene = bare()
    registry = scene.registry
    profile = scene.evaluator().runtime.profile
    handle: Any = ProfileHandle(scene.cluster).evaluator(profile, registry).runtime.queue_sort.handle
    assert list(handle.waiting_pods()) == []
    assert list(handle.waiting_members(GROUP)) == []
    assert (handle.claims.now(), type(handle.volumes)) == (0.0, NoVolumeWriter)
    handle.announce(POD, "Reason", "Action", "said to nobody")


# --- where there is no scheduler ------------------------------------------------------------------------------------------------------

VOLUME = convert({"metadata": {"name": "v"}}, PersistentVolume)
VOLUME_CLAIM = convert({"metadata": {"name": "vc"}}, PersistentVolumeClaim)


@pytest.mark.parametrize(
    ("write", "refusal", "said"),
    [
        (lambda: NoBinder().bind(POD, A, {}), BindError, "default/p cannot be bound to a: there is no API server"),
        (lambda: NoBinder().bind_by(POD, A, lambda: pytest.fail("asked")), BindError, "default/p cannot be bound to a"),
        (lambda: NoVolumeWriter().bind(VOLUME), VolumeError, "persistentvolume v cannot be bound: there is no API server"),
        (lambda: NoVolumeWriter().select_node(VOLUME_CLAIM), VolumeError, "persistentvolumeclaim vc cannot be provisioned: there is"),
        (lambda: NoClaimWriter().reserve(CLAIM, None, POD), ClaimError, "resourceclaim c cannot be reserved: there is no API server"),
        (lambda: NoClaimWriter().release(CLAIM, POD, deallocate=True), ClaimError, "resourceclaim c cannot be released: there is no"),
        (lambda: NoClaimWriter().create(CLAIM, "c-"), ClaimError, "resourceclaim c cannot be created: there is no API server"),
        (lambda: NoClaimWriter().delete(CLAIM), ClaimError, "resourceclaim c cannot be deleted: there is no API server"),
        (lambda: NoClaimWriter().tell_pod(POD, STATUS), ClaimError, "the status of pod default/p cannot be written: there is no API"),
    ],
)
async def test_nothing_is_written_and_the_refusal_says_what(
    write: Callable[[], Awaitable[Any]], refusal: type[Exception], said: str
) -> None:
    with pytest.raises(refusal) as refused:
        await write()
    assert str(refused.value).startswith(said)
    assert not any(getattr(refused.value, fact, False) for fact in ("conflict", "unknown"))


@pytest.mark.parametrize("writer", [NoVolumeWriter(), NoClaimWriter()])
@pytest.mark.parametrize("done", [True, False])
async def test_what_is_waited_for_is_so_or_is_not(writer: Any, done: bool) -> None:
    assert await writer.until(lambda: done, 60) is done


async def test_work_beside_everything_else_is_put_away_unstarted() -> None:
    async def work() -> None:
        started.append(1)

    started: list[int] = []
    coroutine = work()
    NoClaimWriter().beside(coroutine)
    assert coroutine.cr_frame is None
    assert started == []
    assert NoClaimWriter().waited("p", ["d"], "success", 1.0) is None  # type: ignore[func-returns-value]


def test_no_group_has_members() -> None:
    assert list(NoPodGroupMembers().members(GROUP)) == []
    assert NoPodGroupMembers().ready_members(GROUP, POD) == {}


def test_the_time_of_a_plugin_is_that_of_its_handle_and_stands_still_where_none_was_given() -> None:
    cluster = Cluster()
    timeless, timed = (ProfileHandle(cluster, now=now) for now in (None, lambda: 7.0))
    assert (timeless.now(), timed.now()) == (0.0, 7.0)


def test_an_event_that_a_plugin_asks_for_later_goes_to_those_who_wake_pods_and_nowhere_without_them() -> None:
    asked: list[tuple[float, ClusterEvent, object]] = []
    event = ClusterEvent("Seats", Action.UPDATE, "SeatsFree")
    for wake in (ignore, lambda *what: asked.append(what)):
        ProfileHandle(Cluster(), wake=wake).wake_after(5.0, event, "row")
    assert asked == [(5.0, event, "row")]
