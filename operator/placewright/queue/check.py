"""The check that no pod is lost or doubled. Tests run it after every step, the debug dump on demand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from placewright.queue.profilequeue import ProfileQueue
from placewright.queue.queue import SchedulingQueue
from placewright.queue.queued import SubQueue


class InvariantError(AssertionError):
    """The queue contradicts itself; the message lists every contradiction."""


def check_invariants(queue: SchedulingQueue) -> None:
    """Check that every pod is in exactly one sub-queue and that all indexes agree. O(pods).

    Args:
        queue: only read.

    Raises:
        InvariantError: a pod is in no sub-queue or in two, or an index disagrees with the pods.
    """
    lanes = (problem for lane in queue.profile_queues() for problem in (*_queue_of(lane), *_index(lane), *_turns_of(lane)))
    found = [*_places(queue), *_names(queue), *_pod_groups(queue), *lanes]
    if queue.in_flight.events_kept and not len(queue.in_flight):
        found.append(f"{queue.in_flight.events_kept} events are kept although no pod is in flight")
    if found:
        raise InvariantError("; ".join(found))


def _places(queue: SchedulingQueue) -> Iterator[str]:
    places: dict[str, list[SubQueue]] = {}
    for place, queued in queue.pods():
        places.setdefault(queued.uid, []).append(place)
    for uid in queue.uids() - places.keys():
        yield f"pod {uid} is in no place"
    for uid, where in places.items():
        if uid not in queue.uids():
            yield f"pod {uid} is in {where[0]} but unknown"
        elif len(where) != 1:
            yield f"pod {uid} is in {len(where)} places: {', '.join(where)}"
        elif queue.locate(uid) is not where[0]:
            yield f"pod {uid} is in {where[0]}, not where it is looked for ({queue.locate(uid)})"


def _names(queue: SchedulingQueue) -> Iterator[str]:
    keys = Counter(queued.key for _, queued in queue.pods())
    yield from (f"{count} pods are named {key}" for key, count in keys.items() if count > 1)
    for place, queued in queue.pods():
        if queue.uid_of(queued.key) != queued.uid:
            yield f"{queued.key} is indexed as {queue.uid_of(queued.key)}, but {queued.uid} is in {place}"


def _pod_groups(queue: SchedulingQueue) -> Iterator[str]:
    members = {uid: pod_group.ref for pod_group in queue.pod_groups for uid in pod_group.members}
    for _, queued in queue.pods():
        if queued.pod.pod_group != members.pop(queued.uid, None):
            yield f"pod {queued.uid} names the group {queued.pod.pod_group}, and is not listed with it alone"
    yield from (f"pod {uid} is listed with the group {ref}, and is gone" for uid, ref in members.items())
    yield from (f"the group {pod_group.ref} is listed without members" for pod_group in queue.pod_groups if not pod_group.members)


def _queue_of(lane: ProfileQueue) -> Iterator[str]:
    for place, queued in lane.waiting():
        if queued.pod.scheduler_name != lane.name:
            yield f"pod {queued.uid} of {queued.pod.scheduler_name!r} waits among those of {lane.name!r}"
        if not lane.served and place is not SubQueue.UNSCHEDULABLE:
            yield f"pod {queued.uid} is in {place} although no profile claims {lane.name!r}"


def _index(lane: ProfileQueue) -> Iterator[str]:
    for waiting in (lane.unschedulable, lane.gated):
        uids = {queued.uid for queued in waiting}
        for plugin in waiting.plugins():
            if not waiting.held_by(plugin).keys() <= uids:
                yield f"the index of {plugin} names pods that are not waiting"
    for queued in lane.unschedulable if lane.served else ():
        if any(queued.uid not in lane.unschedulable.held_by(plugin) for plugin in queued.rejecting_plugins):
            yield f"pod {queued.uid} is not indexed under all of {sorted(queued.rejecting_plugins)}"
        if not queued.rejecting_plugins:
            yield f"pod {queued.uid} waits for an event that no plugin asks for"


def _turns_of(lane: ProfileQueue) -> Iterator[str]:
    for turns in () if lane.fair is None else lane.fair.turns():
        at = f"at priority {turns.priority}"
        if turns.weights != sum(tenant.weight for tenant in turns.tenants.values()):
            yield f"the weights {at} do not add up to {turns.weights}"
        for tenant in turns.tenants.values():
            if not len(tenant.lanes):
                yield f"tenant {tenant.name!r} takes turns {at} without a pod"
            if not tenant.lined_up and not tenant.sleeps_in:
                yield f"tenant {tenant.name!r} neither has a turn {at} nor waits for room"
