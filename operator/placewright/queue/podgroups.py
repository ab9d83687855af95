"""Groups of pods that are placed together, as the queue knows them: who belongs to which, since when, and how long it backs off.

A group has no place of its own. Its members wait where each of them belongs, and when one is handed out, the others go with it (see
`SchedulingQueue.take_gang`). So whatever brings one member back brings the group back, once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from placewright.api.podgroups import FORM_OF, Form, GroupObject, GroupRef
from placewright.api.pods import PodInfo
from placewright.queue.queued import QueuedPod

_NOBODY: Final[Mapping[str, QueuedPod]] = {}
#: The object that declares groups: form, namespace, name.
_Declarer = tuple[Form, str, str]


class QueuedPodGroup:
    """A group with members that have no node yet. Only the queue changes it.

    Attributes:
        ref: what members call it.
        since: when its first member came, seconds on the queue's clock: the group's age, which its failures do not touch.
        members: by uid, in order of arrival; those in flight included.
        tried_at: when it was first tried as a group; None before.
        failed_at: when it last failed as a group; None once it is placed, and then its members are pods like any other.
        failures: how often in a row.
        lacks: what it lacked then, in words.
    """

    __slots__ = ("_first", "failed_at", "failures", "lacks", "members", "ref", "since", "tried_at")

    def __init__(self, ref: GroupRef, since: float) -> None:
        self.ref = ref
        self.since = since
        self.members: dict[str, QueuedPod] = {}
        self.tried_at: float | None = None
        self.failed_at: float | None = None
        self.failures = 0
        self.lacks = ""
        self._first: QueuedPod | None = None

    @property
    def first(self) -> QueuedPod:
        """The member of the highest priority; the whole group is tried when it is this one's turn."""
        if self._first is None:
            self._first = max(self.members.values(), key=lambda queued: queued.pod.priority)
        return self._first

    def failed(self, now: float, lacks: str = "") -> None:
        """The group was tried as one, and stays without nodes."""
        self.failed_at = now
        self.lacks = lacks
        self.failures += 1

    def placed(self) -> None:
        """The group has what it needs: members that are left over wait each for itself."""
        self.failed_at, self.failures, self.tried_at = None, 0, None
        self.lacks = ""

    def changed(self) -> None:
        """A member came, left, or has another priority."""
        self._first = None


class QueuedPodGroups:
    """All groups with members in the queue. Implements `framework.ports.GangMembers`."""

    __slots__ = ("_declared", "_pod_groups")

    def __init__(self) -> None:
        self._pod_groups: dict[GroupRef, QueuedPodGroup] = {}
        self._declared: dict[_Declarer, dict[GroupRef, None]] = {}

    def __len__(self) -> int:
        return len(self._pod_groups)

    def __iter__(self) -> Iterator[QueuedPodGroup]:
        """All groups, in order of arrival."""
        return iter(self._pod_groups.values())

    def get(self, ref: GroupRef) -> QueuedPodGroup | None:
        """The group, or None when no member of it is in the queue."""
        return self._pod_groups.get(ref)

    def members(self, ref: GroupRef) -> Collection[PodInfo]:
        """The members without a node, in order of arrival, those that are being tried or bound included."""
        pod_group = self._pod_groups.get(ref)
        return () if pod_group is None else [queued.pod for queued in pod_group.members.values()]

    def declared_by(self, item: GroupObject) -> Iterator[QueuedPod]:
        """Members of the groups that stand in this object."""
        meta = item.metadata
        for ref in self._declared.get((FORM_OF[type(item)], meta.namespace, meta.name), ()):
            yield from self._pod_groups[ref].members.values()

    def join(self, queued: QueuedPod, now: float) -> None:
        """The pod is in the queue; harmless for one that joined before. One that names another group than before changes over."""
        ref = queued.pod.pod_group
        if queued.pod_group is not None and queued.pod_group.ref != ref:
            self.leave(queued)
        if ref is None:
            return
        pod_group = self._pod_groups.get(ref)
        if pod_group is None:
            pod_group = self._pod_groups[ref] = QueuedPodGroup(ref, now)
            self._declared.setdefault(_declarer(ref), {})[ref] = None
        pod_group.members[queued.uid] = queued
        pod_group.changed()
        queued.pod_group = pod_group

    def leave(self, queued: QueuedPod) -> None:
        """The pod has a node, or is gone; harmless for one that belongs to no group."""
        pod_group, queued.pod_group = queued.pod_group, None
        if pod_group is None:
            return
        pod_group.members.pop(queued.uid, None)
        pod_group.changed()
        if not pod_group.members:
            self._pod_groups.pop(pod_group.ref, None)
            self._undeclare(pod_group.ref)

    def _undeclare(self, ref: GroupRef) -> None:
        refs = self._declared[_declarer(ref)]
        del refs[ref]
        if not refs:
            del self._declared[_declarer(ref)]


def _declarer(ref: GroupRef) -> _Declarer:
    return ref.form, ref.namespace, ref.object_name
