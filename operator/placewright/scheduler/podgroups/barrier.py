"""The barrier between PreBind and Bind. No Binding of a group, or of a tree of groups, is sent before all of its members are prepared."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Final

from placewright.api.podgroups import GroupRef
from placewright.api.pods import PodInfo
from placewright.cluster.podgrouptrees import Counts, ref_of
from placewright.framework.status import SUCCESS, Status, error, unschedulable
from placewright.scheduler.messages import go_duration

#: Members that begin to be bound, or are let go, in one turn of the event loop.
MEMBERS_A_TURN: Final = 32
LEFT: Final = "deleted while its group was being prepared"


class Barrier:
    """The barrier of one group or tree. It opens when every expected member has arrived, and fails when too few members are left.

    If the barrier fails, all members are taken back. If one group of a tree has too few, its members are. After the barrier has opened,
    each Binding succeeds or fails by itself, because a Binding cannot be undone.

    Attributes:
        expired: True when the barrier failed because its time was up. Then no event would bring the group back.
        groups: groups whose further members join the barrier.
        staying: those of `groups` whose members may go on, as far as it is known.
    """

    def __init__(
        self,
        plugin: str,
        pods: Mapping[str, PodInfo],
        staying: Callable[[Counts], AbstractSet[GroupRef]],
        call_off: Callable[[str], None],
        opened: Callable[[bool], None],
    ) -> None:
        """Expect all members.

        Args:
            plugin: name of the plugin that rejects the members when the barrier fails.
            pods: members by uid.
            staying: returns the groups whose members may go on if each group has as many members left.
            call_off: ends the preparation of a member, by uid.
            opened: called once with True or False when the barrier opens or fails, before any member goes on.
        """
        self._plugin = plugin
        self._opened = opened
        self._pods = dict(pods)
        self._left = Counter(ref_of(pod) for pod in pods.values())
        self._stays = staying
        self.groups = self.staying = staying(self._left)
        self._call_off = call_off
        self._expected = set(pods)
        self._arrived: dict[str, asyncio.Future[Status]] = {}
        self._members = set(pods)
        self._verdict: Status | None = None
        self._taken_back: Status | None = None
        self.expired = False

    @property
    def decided(self) -> bool:
        """True once it has opened or failed."""
        return self._verdict is not None

    def refusal(self, pod: PodInfo) -> Status | None:
        """Return why a member may not go on: the barrier has failed, or its group was taken back. Return None if it may."""
        if self._verdict is not None and not self._verdict.ok:
            return self._verdict
        return self._taken_back if pod.pod_group not in self.staying else None

    async def arrive(self, pod: PodInfo, status: Status) -> Status:
        """Wait until the barrier opens or fails. The barrier does not wait for a member that joined later.

        Args:
            pod: the member.
            status: SUCCESS when the member is prepared, otherwise the reason why it cannot be.

        Returns:
            SUCCESS when the member may be bound, otherwise the reason why not.
        """
        uid, refusal = pod.uid, self.refusal(pod)
        if refusal is not None:
            return refusal
        if not status.ok:
            self.leave(uid, status)
            return status
        if self._verdict is not None:
            return self._verdict
        # Each member has a future. Members that wait for one event would all go on in one turn.
        told: asyncio.Future[Status] = asyncio.get_running_loop().create_future()
        self._pods[uid] = pod
        self._arrived[uid] = told
        self._expected.discard(uid)
        self._look()
        return await told

    def leave(self, uid: str, status: Status) -> None:
        """Note that a member will not be bound; harmless once the barrier is decided.

        Args:
            uid: uid of the member.
            status: reason.
        """
        if self._verdict is not None:
            return
        self._release(uid, status)
        why = self._for_the_others(self._pods.get(uid), status)
        before, self.staying = self.staying, self._stays(self._left)
        if not self.staying:
            self._fail(why)
            return
        if before - self.staying:
            self._taken_back = why
            for other in [each for each in self._members | self._arrived.keys() if self._pods[each].pod_group not in self.staying]:
                self._release(other, why)
                self._call_off(other)
        self._look()

    def _release(self, uid: str, status: Status) -> None:
        """Expect a member no more, and let it go with this status if it waits."""
        self._expected.discard(uid)
        if uid in self._members:
            self._members.discard(uid)
            self._left[ref_of(self._pods[uid])] -= 1
        told = self._arrived.pop(uid, None)
        if told is not None and not told.done():
            told.set_result(status)

    def expire(self, seconds: float) -> None:
        """Fail the barrier because members have not arrived in `seconds`; the group is tried again."""
        if self._verdict is None:
            late = ", ".join(sorted(self._pods[uid].name for uid in self._expected))
            self.expired = True
            why = f"its group was not ready after {go_duration(seconds)}: {late} could not be prepared for binding"
            self._fail(unschedulable(why).by(self._plugin))

    def _look(self) -> None:
        if not self._expected:
            self._decide(SUCCESS)

    def _fail(self, verdict: Status) -> None:
        expected = tuple(self._expected)
        self._decide(verdict)
        for uid in expected:
            self._call_off(uid)

    def _decide(self, verdict: Status) -> None:
        self._verdict = verdict
        # The queue hears first: members that return to it must find their group in backoff already.
        self._opened(verdict.ok)
        self._let_go(iter(tuple(self._arrived.values())), verdict)

    def _let_go(self, waiting: Iterator[asyncio.Future[Status]], verdict: Status) -> None:
        """Let some members go on now and the others in later turns of the event loop. Thousands at once would hold it up."""
        told = None
        for told in islice(waiting, MEMBERS_A_TURN):
            if not told.done():
                told.set_result(verdict)
        if told is not None:
            told.get_loop().call_soon(self._let_go, waiting, verdict)

    def _for_the_others(self, pod: PodInfo | None, status: Status) -> Status:
        """Turn a member's failure into the group's. After a rejection the group waits for events; after an error it is tried again."""
        why = f"its group is taken back, because {'a member' if pod is None else pod.name} could not be bound: {status.message}"
        return unschedulable(why).by(self._plugin) if status.rejected else error(why)
