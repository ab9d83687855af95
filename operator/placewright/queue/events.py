"""Tells waiting pods of events. Few pods are told at once, and many in slices, to keep the event loop free (decision 28).

These promises hold, however slices and events interleave:

- A pod is told of events in the order in which they happened, and of no event twice.
- A pod that began to wait after an event is not told of it. Its last attempt saw the change, or the event was recorded for it
  in flight.
- Every other waiting pod that an event concerns is told, unless another event brings it back first.

Each event has a number, and each pod knows the number up to which it was told (`QueuedPod.told`). An event that concerns many
pods is kept until a sweep begins. The sweep finds the pods that any kept event concerns, and tells each of them all kept
events. Events that come meanwhile wait for the next sweep. A caller with news for one waiting pod first brings that pod
up to date (`catch_up`).

All work in slices is a job: an iterator that works for one pod in each step. A sweep is a job. Other jobs requeue the pods of a
profile that has changed, or move its active pods to a new order.

Some events happen because time has passed, while the cluster has not changed. `Alarms` has acts for a stated time.
"""

from __future__ import annotations

import asyncio
import itertools
import math
from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

from placewright.api.boundedcache import counts_bytes
from placewright.api.pods import PodInfo, held_bytes
from placewright.framework.events import UNSCHEDULABLE_TIMEOUT, WILDCARD, ClusterEvent, EventResource
from placewright.queue.hints import Reached, Requeue
from placewright.queue.order import KeyedHeap, OrderTransition
from placewright.queue.profilequeue import ProfileQueue, ProfileQueues, RequeuePod
from placewright.queue.queued import PROFILE_UPDATE, QueuedPod, QueuedPodGroups, SubQueue

#: Pods that are told of an event at once, or in one slice: mostly 1 to 3 ms of work.
A_SLICE: Final = 128
#: Seconds after which a slice ends if hints take longer.
SLICE_SECONDS: Final = 0.005
#: Most events that are kept. If more come before a sweep can begin, waiting pods are told "anything may have happened" instead.
EVENT_LIMIT: Final = 10_000
#: Most bytes of the objects in these events.
EVENT_BYTES: Final = 24 * 2**20
#: Seconds that a sweep may ask hints. Then the remaining pods are told "anything may have happened", because a decision takes less.
SWEEP_SECONDS: Final = 1.0
#: Most events whose names are known; about 300 bytes each.
KEPT_EVENTS: Final = 1024
#: Most alarms that are kept; a hundred bytes each.
MOST_ALARMS: Final = 16_384

Act = Callable[[], object]
#: The number of an event, and the steps that are left of what it causes.
_Job = tuple[float, Iterator[object]]


class RecentEvent(NamedTuple):
    """The kind of an event, and the names of its object.

    Attributes:
        number: the count of noted events up to and including this one.
        event: its kind and label.
        about: the object's name, as `namespace/name` where it has a namespace; empty when only the kind is known.
        node: the name of the node that changed, or that the pod stands on; empty for all other objects.
    """

    number: int
    event: ClusterEvent
    about: str = ""
    node: str = ""


class RecentEvents:
    """Remembers the latest events, to name the event that should have brought a forgotten pod back (decision 37).

    Events are noted only while pods wait for events. The memory has the kind and two names of each event. It has no objects, because their
    size is the tenants' choice. Of older events only the last number of each kind is known.

    Args:
        keep: events whose names are kept.

    Attributes:
        noted: count of all events so far. `QueuedPod.seen` holds the count at the start of a pod's attempt.
    """

    __slots__ = ("_kinds", "_latest", "noted")

    def __init__(self, keep: int = KEPT_EVENTS) -> None:
        self.noted = 0
        self._latest: deque[RecentEvent] = deque(maxlen=keep)
        #: The last event of each kind by label, without names.
        self._kinds: dict[str, RecentEvent] = {}

    def note(self, event: ClusterEvent, old: Any, new: Any) -> None:
        """Note an event.

        Args:
            event: its kind and label.
            old: the object before; None when it appeared.
            new: the object after; None when it is gone.
        """
        self.noted += 1
        about, node = _names(event, old if new is None else new)
        self._latest.append(RecentEvent(self.noted, event, about, node))
        self._kinds[event.label] = RecentEvent(self.noted, event)

    def since(self, seen: int) -> list[RecentEvent]:
        """Return the events since a pod's attempt.

        Args:
            seen: `noted` at that time.

        Returns:
            The events, the latest first. Events that are too old to have names follow once for each kind.
        """
        named = [each for each in reversed(self._latest) if each.number > seen]
        oldest = named[-1].number if named else self.noted + 1
        return [*named, *(each for each in self._kinds.values() if seen < each.number < oldest)]


class NumberedEvent(NamedTuple):
    """An event, and the pods that it is for.

    Attributes:
        number: the count of events up to and including this one.
        event: its kind and label.
        old: the object before; None when it appeared.
        new: the object after; None when it is gone.
        except_uid: uid of a pod that is not told.
        up_to_priority: highest priority of pods that are told; None tells all.
    """

    number: int
    event: ClusterEvent
    old: Any
    new: Any
    except_uid: str = ""
    up_to_priority: int | None = None

    def is_for(self, queued: QueuedPod) -> bool:
        """Return whether the pod may be told."""
        return queued.uid != self.except_uid and (self.up_to_priority is None or queued.pod.priority <= self.up_to_priority)


@dataclass(eq=False)
class EventSweeps:
    """Tells waiting pods of events.

    Attributes:
        queues: the waiting pods.
        pod_groups: finds the members of a group that an event is about.
        requeue: moves a pod between sub-queues.
        a_slice: pods that are told at once; None tells all at once.
        ready: called when a pod may be handed out that could not be handed out before.
        clock: seconds, monotonic.
        happened: count of events so far.
        recent: the latest events that happened while pods waited.
        nbytes: bytes of the objects of events that wait to be told.
    """

    queues: ProfileQueues
    pod_groups: QueuedPodGroups
    requeue: RequeuePod
    a_slice: int | None
    ready: Callable[[], None]
    clock: Callable[[], float]

    def __post_init__(self) -> None:
        self.happened = 0
        self.recent = RecentEvents()
        self._kept: deque[NumberedEvent] = deque()
        self.nbytes = 0
        counts_bytes(self)
        #: The events of the sweep that is under way.
        self._sweeping: tuple[NumberedEvent, ...] = ()
        #: Jobs that bring pods back or tell them of events, with the number of the event. The events of a sweep have numbers of their own.
        self._jobs: deque[_Job] = deque()
        #: Jobs that move active pods to the new order of their profile. The change counts as an event.
        self._sorting: deque[_Job] = deque()
        self._stirred = asyncio.Event()
        self._swept = asyncio.Event()

    @property
    def behind(self) -> bool:
        """True while pods are still to be told of an event, or to be moved to their profile's new order."""
        return bool(self._sorting or self._jobs)

    def tell(self, event: ClusterEvent, old: Any, new: Any, except_uid: str, up_to_priority: int | None) -> int:
        """Tell waiting pods of an event, at once when they are few; otherwise keep the event for a sweep.

        Args:
            event: its kind and label.
            old: the object before; None when it appeared.
            new: the object after; None when it is gone.
            except_uid: this pod is not told.
            up_to_priority: pods of a higher priority are not told; None tells all.

        Returns:
            The number of pods that moved at once.
        """
        self.happened += 1
        if any(queue.unschedulable for queue in self.queues.values()):
            self.recent.note(event, old, new)
        told = NumberedEvent(self.happened, event, old, new, except_uid, up_to_priority)
        found = [(queue, self._reach(queue, event, old, new)) for queue in self.queues.values() if queue.served]
        if self.a_slice is not None and sum(len(reached.pods) for _, by_plugin in found for reached in by_plugin) > self.a_slice:
            self._keep(told)
            return 0
        moved, until = 0, self.clock() + SLICE_SECONDS
        for queue, queued in ((queue, each) for queue, by_plugin in found for each in _each_once(by_plugin, old, new)):
            if self.a_slice is not None and self.clock() > until:
                self._keep(told)
                break
            moved += self._tell_now(queue, queued, told)
        return moved

    def tell_changes(self, queue: ProfileQueue, queued: QueuedPod, events: Sequence[ClusterEvent], old: PodInfo) -> None:
        """Tell a waiting pod of its own changes, up to the first that helps it. No other pod is told.

        Args:
            queue: the pod's profile.
            queued: waits in `queue`, in its newest version.
            events: its changes.
            old: its version before.
        """
        for event in events:
            self.recent.note(event, old, queued.pod)
        any(self._answer(queue, queued, NumberedEvent(self.happened, event, old, queued.pod)) for event in events)

    def flush(self, oldest: float) -> int:
        """Try pods again that have waited for an event since before `oldest`. Pods that are given up go on waiting.

        Args:
            oldest: seconds on the queue's clock.

        Returns:
            The number of pods that moved at once.
        """
        served = [queue for queue in self.queues.values() if queue.served]
        return sum(self.requeue_all(queue, queue.waiting_since(oldest), UNSCHEDULABLE_TIMEOUT.label) for queue in served)

    def requeue_all(self, queue: ProfileQueue, chosen: Sequence[QueuedPod], label: str, *, kept_out: bool = False) -> int:
        """Try waiting pods of one profile again after their backoff. If they are many, do so in slices.

        Args:
            queue: the profile's.
            chosen: pods that wait in `queue`.
            label: event that metrics name.
            kept_out: whether the pods are to be gated, also active ones. Meanwhile the profile hands out no pod.

        Returns:
            The number of pods that moved at once.
        """
        job = self._requeueing(queue, [(queued, queued.attempts) for queued in chosen], label, kept_out=kept_out)
        if self.a_slice is None or len(chosen) <= self.a_slice:
            return sum(1 for _ in job)
        queue.sifted = queue.sifted and not kept_out
        self.happened += 1
        # First of all jobs, because no pod may be handed out before these.
        self._jobs.appendleft((self.happened, job))
        self._stirred.set()
        return 0

    def _requeueing(self, queue: ProfileQueue, pods: Iterable[tuple[QueuedPod, int]], label: str, *, kept_out: bool) -> Iterator[None]:
        """Requeue waiting pods. A pod that was tried since has been judged by newer facts, and is left alone."""
        late = label == UNSCHEDULABLE_TIMEOUT.label
        for queued, attempts in pods:
            here = queued.place not in (None, SubQueue.IN_FLIGHT) if kept_out else queued.waits and queued.attempts == attempts
            if queue.served and here:
                queued.flushed |= late
                self.requeue(queue, queued, Requeue.AFTER_BACKOFF, label)
            yield
        if kept_out:
            queue.sifted = True
            self.ready()

    def keep_out(self, scheduler_name: str, which: Callable[[PodInfo], bool], label: str = PROFILE_UPDATE) -> None:
        """Gate pods that a change of their profile or namespace keeps out, in every sub-queue, before one is handed out.

        Many of them are gated in slices, and until the last one is, the profile hands out no pod. PreEnqueue is asked about each, so it
        must refuse them.

        Args:
            scheduler_name: the name that the profile claims.
            which: true for these pods.
            label: the event that metrics name.
        """
        queue = self.queues.serving(scheduler_name)
        if queue is not None:
            chosen = [queued for place, queued in queue.waiting() if place is not SubQueue.GATED and which(queued.pod)]
            self.requeue_all(queue, chosen, label, kept_out=True)

    def sort(self, queue: ProfileQueue) -> None:
        """Move active pods to the new order of their profile; many of them in slices."""
        if self.a_slice is None or len(queue.active) <= self.a_slice:
            queue.sort_some()
        elif isinstance(queue.active, OrderTransition):
            self.happened += 1
            self._sorting.append((self.happened, iter(partial(queue.sort_some, 1), 0)))
            self._stirred.set()

    def catch_up(self, queue: ProfileQueue, queued: QueuedPod) -> None:
        """Tell a waiting pod of the kept events that it has not been told of.

        Args:
            queue: the pod's profile.
            queued: waits in `queue`.
        """
        if self.behind and queue.served:
            until = self.clock() + SLICE_SECONDS
            for told in self._outstanding():
                late = self.clock() > until
                self._tell_one(queue, queued, _anything(self.happened) if late else told)

    def sweep_some(self) -> None:
        """Move the next slice of pods to their new order, or tell the next slice."""
        self._go_on_with(self._sorting or self._jobs)

    def sweep_all(self) -> None:
        """Tell all pods that are still to be told, now."""
        while self._jobs:
            self._go_on_with(self._jobs)

    def _go_on_with(self, jobs: deque[_Job]) -> None:
        """Take the steps of one slice. At most one hint is asked in each."""
        left, until = self.a_slice or A_SLICE, self.clock() + SLICE_SECONDS
        while left > 0 and jobs and self.clock() < until:
            left -= 1
            if next(jobs[0][1], self) is self:
                jobs.popleft()
        self._swept.set()

    async def caught_up(self, patience: float = math.inf) -> None:
        """Return when waiting pods have been told of all events up to this call. `run` has to be running.

        Args:
            patience: return after so many seconds at the latest.
        """
        happened, until = self.happened, self.clock() + patience
        while (first := self._first()) is not None and first <= happened and self.clock() < until:
            self._swept.clear()
            await self._swept.wait()

    async def run(self) -> None:
        """Tell waiting pods in slices, until cancelled."""
        while True:
            while self.behind:
                self.sweep_some()
                await asyncio.sleep(0)
            self._stirred.clear()
            await self._stirred.wait()

    def _first(self) -> float | None:
        """Return the number of the earliest event that pods are still to be told of."""
        numbers = [each[0] for each in (*self._sorting, *self._jobs)]
        numbers += [told.number for told in itertools.islice(self._outstanding(), 1)]
        return min(numbers, default=None)

    # --- whom -----------------------------------------------------------------------------------------------------------------------

    def _reach(self, queue: ProfileQueue, event: ClusterEvent, old: Any, new: Any, *, keyed: bool = True) -> list[Reached]:
        """Return the pods of a queue whose hints may have to be asked."""
        if event.resource is EventResource.POD_GROUP:  # a change of one group concerns its members only, and groups may be thousands
            refs = self.pod_groups.concerned_by(new or old)
            members = (queued for ref in refs if (group := self.pod_groups.get(ref)) for queued in group.members.values())
            waiting = {each.uid: each for each in members if each.pod.scheduler_name == queue.name and each.waits}
            return [Reached(waiting, None)]
        return queue.reach(event, old, new, keyed=keyed)

    def _keep(self, told: NumberedEvent) -> None:
        if all(number != math.inf for number, _ in self._jobs):
            self._jobs.append((math.inf, self._sweep()))
        self._kept.append(told)
        self.nbytes += held_bytes(told.old, told.new)
        # All kept events become one wildcard event. It tries too many pods, but to drop the oldest event could forget a pod.
        if len(self._kept) > EVENT_LIMIT or self.nbytes > EVENT_BYTES:
            self._kept.clear()
            self.nbytes = 0
            self._kept.append(_anything(told.number))
        self._stirred.set()

    def _outstanding(self) -> Iterator[NumberedEvent]:
        return itertools.chain(self._sweeping, self._kept)

    # --- one after the other --------------------------------------------------------------------------------------------------------

    def _sweep(self) -> Iterator[None]:
        """Tell waiting pods of the kept events, and of the events that come meanwhile."""
        while self._kept:
            self._sweeping = tuple(self._kept)
            self._kept.clear()
            self.nbytes = 0
            until = self.clock() + SWEEP_SECONDS
            for queue, queued in self._concerned():
                for told in self._sweeping:
                    if self.clock() > until:
                        told = _anything(self._sweeping[-1].number)  # noqa: PLW2901 - told instead
                        self._sweeping, until = (told,), math.inf
                    self._tell_one(queue, queued, told)
                    yield
            self._sweeping = ()

    def _concerned(self) -> Collection[tuple[ProfileQueue, QueuedPod]]:
        """Find the pods that any event of the sweep may concern."""
        kinds: dict[Hashable, NumberedEvent] = {}
        for told in self._sweeping:
            by_group = told.event.resource is EventResource.POD_GROUP
            kinds.setdefault(told.number if by_group else (told.event.resource, told.event.action), told)
        found: dict[str, tuple[ProfileQueue, QueuedPod]] = {}
        for queue in self.queues.values():
            for told in kinds.values() if queue.served else ():
                for reached in self._reach(queue, told.event, told.old, told.new, keyed=False):
                    found.update((uid, (queue, queued)) for uid, queued in reached.pods.items())
        return found.values()

    def _tell_now(self, queue: ProfileQueue, queued: QueuedPod, told: NumberedEvent) -> bool:
        # Kept events happened earlier, and each pod hears of events in their order.
        self.catch_up(queue, queued)
        queued.told = told.number
        return queued.waits and self._answer(queue, queued, told)

    def _tell_one(self, queue: ProfileQueue, queued: QueuedPod, told: NumberedEvent) -> None:
        """Tell a pod of a kept event, if the event concerns the pod."""
        if told.number <= queued.told or not queued.waits:
            return
        queued.told = told.number
        if told.event.resource is EventResource.POD_GROUP:
            concerned = queued.pod.pod_group in self.pod_groups.concerned_by(told.new or told.old)
        else:
            concerned = queue.concerns(queued, told.event, told.old, told.new)
        if concerned:
            self._answer(queue, queued, told)

    def _answer(self, queue: ProfileQueue, queued: QueuedPod, told: NumberedEvent) -> bool:
        """Return True when the event took the pod out of the sub-queue where it waited."""
        if not told.is_for(queued):
            return False
        how = queue.hints.about(told.event).effect_on(queued, told.old, told.new)
        return how is not Requeue.SKIP and self.requeue(queue, queued, how, told.event.label) is not SubQueue.GATED


def _anything(number: int) -> NumberedEvent:
    return NumberedEvent(number, WILDCARD, None, None)


def _each_once(by_plugin: Iterable[Reached], old: Any, new: Any) -> Iterable[QueuedPod]:
    found: dict[str, QueuedPod] = {}
    for reached in by_plugin:
        found.update(reached.chosen(old, new))
    return found.values()


def _names(event: ClusterEvent, item: Any) -> tuple[str, str]:
    if isinstance(item, PodInfo):
        return item.key, item.node_name
    meta = getattr(item, "metadata", None)
    if meta is None:
        return "", ""
    about = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
    return about, meta.name if event.resource is EventResource.NODE else ""


class Alarms(KeyedHeap[Act]):
    """Acts that are due at a stated time: events that concern the pods that wait then, or the next try of one pod.

    An alarm rings once, at the first whole second after its moment, when the queue ends backoffs. An alarm of its own identity replaces
    an earlier one, and may be removed. Other alarms are never taken back, because a pod that they wake is judged anew. Beyond
    `MOST_ALARMS` they are dropped, and their pods are tried again after the queue's five minutes.

    Args:
        clock: seconds, monotonic; the queue's.
        move: tells waiting pods of an event: (event, object before, object after).
    """

    def __init__(self, clock: Callable[[], float], move: Callable[[ClusterEvent, Any, Any], object]) -> None:
        super().__init__()
        self._clock = clock
        self._move = move

    @property
    def next(self) -> float | None:
        """When the next alarm rings, in seconds of the clock; None while none is set."""
        key = self.first_key()
        return None if key is None else key[0]

    def after(self, seconds: float, act: Act, identity: Hashable | None = None) -> None:
        """Set an alarm.

        Args:
            seconds: seconds from now.
            act: called when it rings, between two decisions.
            identity: the owner of the alarm, who has one at most; None for an alarm without an owner.

        Example:
            queue.alarms.after(30.0, lambda: queue.retry(uid))
        """
        if identity is not None or len(self) < MOST_ALARMS:
            self.push(identity or object(), (self._clock() + seconds,), act)

    def wake_after(self, seconds: float, event: ClusterEvent, subject: Any) -> None:
        """Move waiting pods by the event when the alarm rings."""
        self.after(seconds, partial(self._move, event, None, subject))

    def of(self, identity: Hashable) -> float | None:
        """Return the seconds until the alarm of this identity rings; None without one."""
        return max(self.entry_of(identity)[0][0] - self._clock(), 0.0) if identity in self else None

    def ring(self) -> int:
        """Call the acts of all alarms that are due, in the order of their moments; return how many. Called at every whole second."""
        now, rung = self._clock(), 0
        while (due := self.next) is not None and due <= now:
            self.take_first()[1]()
            rung += 1
        return rung
