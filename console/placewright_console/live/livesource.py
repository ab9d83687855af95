"""The running operator's state for the console: nodes, queue and decisions, kept up to date from what changed, while there are readers.

Without readers nothing is kept and nothing is noted. With readers, the work is done in slices of a bounded number of steps, between which
pods are placed. A slice reads rows of nodes from the journals, pods that the queue noted, and new attempts from the records.

The reasons of a waiting pod are those of its last attempt, as the records have them; a pod whose record is gone has its plugins alone.

The pods without a node of a running operator, for the pages of groups, claims and verdicts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final

from placewright.api.objects import NodeName, PodKey
from placewright.api.podgroups import GroupRef
from placewright.api.pods import PodInfo
from placewright.explain.records import AttemptRecord
from placewright.framework.runtime.evaluation import Evaluator
from placewright.profiles.problem import did_you_mean
from placewright.queue.queued import QueuedPod, SubQueue
from placewright.scheduler.attempts import Result
from placewright.scheduler.cycle import cut
from placewright.scheduler.policy import ProfilePolicy
from placewright.serving.rights import Rights
from placewright.serving.schedulerview import SchedulerView
from placewright_console.pages.companypages import CompanyPages
from placewright_console.pages.decisionrows import ERROR, PLACED, PREEMPTING, REFUSED, LastDecisions, SeenDecision
from placewright_console.pages.nodepage import node_page
from placewright_console.pages.noderows import ConsoleNodes
from placewright_console.pages.pendingpods import GroupTurn, WaitingPlace, unclaimed, unix_seconds
from placewright_console.pages.podpage import pod_page
from placewright_console.pages.statedelta import Section, Sections
from placewright_console.pages.turnrows import WaitingTenants, turn_rows, waiting_tenants
from placewright_console.pages.waitinggroups import WaitingGroups
from placewright_console.pages.waitingpage import PodsAsked, waiting_page
from placewright_console.pages.waitingrows import PendingPod, WaitReason, gate_reason


class QueuedPods:
    """The pods of a scheduler's queue. Implements `PendingPods`.

    Example:
        CompanyPages(view.cluster, QueuedPods(view), time.monotonic)
    """

    def __init__(self, view: SchedulerView) -> None:
        """Look at a scheduler."""
        self._view = view

    def named(self, namespace: str, name: str) -> PodInfo | None:
        """Find a pod without a node.

        Returns:
            None for an unknown pod, and for one that is assumed on a node already.
        """
        uid = self._view.queue.uid_of(PodKey(f"{namespace}/{name}"))
        return None if uid is None else self._waiting(uid)

    def of_namespace(self, namespace: str) -> Iterator[PodInfo]:
        """Iterate over the waiting pods of a namespace. O(pods of the queue)."""
        for uid in list(self._view.queue.uids()):
            pod = self._waiting(uid)
            if pod is not None and pod.namespace == namespace:
                yield pod

    def members(self, ref: GroupRef) -> Collection[PodInfo]:
        """Return the members of a group that are in the queue."""
        return self._view.queue.pod_groups.members(ref)

    def standing(self, pod: PodInfo) -> WaitingPlace:
        """Return the pod's place in the queue, and since when it exists."""
        place = self._view.queue.locate(pod.uid)
        return WaitingPlace("" if place is None else place.value, unix_seconds(pod.created))

    def evaluator(self, pod: PodInfo) -> Evaluator | str:
        """Return the evaluator of the pod's profile, or why there is none: no profile claims the pod, or it is a suspect."""
        view = self._view
        queued, active = view.queue.get(pod.uid), view.live.by_scheduler_name(pod.scheduler_name)
        suspect = "" if queued is None else view.suspect_reason(queued)
        if suspect:
            return suspect
        if active is None:
            meant = did_you_mean(pod.scheduler_name, view.live.active)
            return f"no profile takes pods of schedulerName {pod.scheduler_name!r}{meant}"
        return active.evaluator

    def turn_of(self, ref: GroupRef) -> GroupTurn:
        """Return the group's wait, its failures, its shortage at the last attempt, and the nodes that are kept for it."""
        view = self._view
        queued, kept = view.queue.pod_groups.get(ref), view.kept_for(ref)
        if queued is None:
            return GroupTurn(kept=kept)
        return GroupTurn(round(time.monotonic() - queued.since, 3), queued.failures, queued.lacks, kept)

    def _waiting(self, uid: str) -> PodInfo | None:
        return None if self._view.cluster.placement(uid) is not None else self._view.queue.latest(uid)


#: Steps of one slice, of each kind. Together they take about two milliseconds.
NODES_A_SLICE: Final = 60
PODS_A_SLICE: Final = 100
GROUPS_A_SLICE: Final = 40
DECISIONS_A_SLICE: Final = 200
_MOST_REASONS: Final = 1_000
#: Places of pods that wait apart from the others of their sub-queue.
SUSPECT: Final = "suspect"
GIVEN_UP: Final = "given-up"
#: The reasons of a pod that has not been tried, and of a pod whose attempt broke.
_UNTRIED: Final = WaitReason("", "not tried yet")
_BROKE: Final = WaitReason("", "the last attempt broke")

#: Makes further sections, such as a time line, which are the same for all readers.
MoreSections = Callable[[Rights], Mapping[str, Section]]


class _Kept:
    """The rows of one time with readers."""

    def __init__(self, view: SchedulerView, epoch: float) -> None:
        self.nodes = ConsoleNodes(view.cluster, ())
        #: Rows of nodes and pods that were to be made at the beginning; 0 once they were.
        self.first = view.cluster.node_count + len(view.queue.uids()) + 1
        self.waiting = WaitingGroups()
        self.decisions = LastDecisions()
        self.turns: list[WaitingTenants] = []
        #: The profiles in effect when all pods were looked at.
        self.active: Mapping[str, object] = {}
        #: The last attempt that is among the decisions.
        self.known: AttemptRecord | None = None
        #: Reasons by what they say: thousands of pods share few, and each object that is kept is one more for the garbage collector.
        self.reasons: dict[tuple[tuple[str, str, int], ...], tuple[WaitReason, ...]] = {}
        #: Seconds since 1970 when the queue's clock was 0. Kept, as rows would change with each reading.
        self.epoch = epoch


class LiveSource:
    """One scheduler's state and pages. Implements `CompanySource`.

    Example:
        feed = Feed(LiveSource(view))
    """

    def __init__(
        self,
        view: SchedulerView,
        more: MoreSections = lambda _rights: {},
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Keep nothing yet.

        Args:
            view: view of the scheduler.
            more: further sections, with what they add to `about`.
            clock: clock of the scheduler's queue.
            wall: seconds since 1970.
        """
        self._clock = clock
        self._wall = wall
        self._view = view
        #: The pages of groups and claims, and the verdicts about each node.
        self.company = CompanyPages(view.cluster, QueuedPods(view), clock)
        self._more = more
        self._kept: _Kept | None = None

    @property
    def behind(self) -> int:
        """Number of rows of nodes, and of pods, that are known to be out of date."""
        return 0 if self._kept is None else self._kept.nodes.left + len(self._view.queue.changed.uids or ())

    def advance(self) -> bool:
        """Do a slice of work; nothing without readers."""
        kept = self._kept
        if kept is None:
            return False
        self._look_at_profiles(kept)
        more = kept.nodes.refresh(NODES_A_SLICE)
        noted = self._view.queue.changed.take(PODS_A_SLICE)
        for uid in noted:
            self._look_at(kept, uid)
        self._read_decisions(kept)
        made = kept.waiting.settle(GROUPS_A_SLICE)
        if noted:
            kept.turns = waiting_tenants(self._view.queue.profile_queues())
        if not more and self.behind < PODS_A_SLICE:
            kept.first = 0
        return more or len(noted) == PODS_A_SLICE or made == GROUPS_A_SLICE

    def sections(self, rights: Rights) -> Sections:
        """Return the state. The first call begins to keep it, so that it fills as `advance` is called."""
        kept = self._kept
        if kept is None:
            kept = self._kept = _Kept(self._view, self._wall() - self._clock())
            self._view.queue.changed.begin(self._view.queue.uids())
        more = self._more(rights)
        return {
            **more,
            "about": {**kept.nodes.about(), **self._about(kept), **more.get("about", {})},
            "nodes": kept.nodes.nodes,
            "loads": kept.nodes.loads,
            "queue": kept.waiting.rows(rights),
            "decisions": kept.decisions.rows(rights),
            "turns": turn_rows(kept.turns, rights),
        }

    def release(self) -> None:
        """Drop all that is kept."""
        self._kept = None
        self._view.queue.changed.end()

    def node(self, name: str, rights: Rights) -> dict[str, Any] | None:
        """Return what runs on a node, what is assumed there, and which pods are nominated for it.

        Returns:
            None for an unknown node.
        """
        node = NodeName(name)
        return node_page(self._view.cluster, node, self._view.queue.nominator.pods_on(node), rights)

    def pod(self, namespace: str, name: str, rights: Rights) -> dict[str, Any] | None:
        """Explain a pod as `placewright explain` does, with its attempts.

        Returns:
            None for an unknown pod, and for one that the reader may not see.
        """
        found = self._view.explanation(namespace, name) if rights.may_see(namespace) else None
        if found is None:
            return None
        active = self._view.live.by_scheduler_name(found.scheduler_name)
        placed = self._view.cluster.placement(found.uid)
        pod = self._view.queue.latest(found.uid) if placed is None else placed.pod
        return pod_page(found, None if active is None else active.evaluator, rights, pod)

    def waiting(self, asked: PodsAsked, rights: Rights) -> dict[str, Any]:
        """Return a page of the pods of rows of the queue; empty without readers of the feed, who alone know rows."""
        return waiting_page((), None) if self._kept is None else self._kept.waiting.page(asked, rights)

    # --- inside ------------------------------------------------------------------------------------------------------------------

    def _about(self, kept: _Kept) -> dict[str, Any]:
        view, behind = self._view, self.behind
        # While the first rows are made, pages say how far that is.
        opening = {"opening": [max(kept.first - behind, 0), kept.first]} if kept.first else {}
        away_since = view.away_since
        stale = {} if away_since is None else {"stale": [round(kept.epoch + away_since, 1), "The API server does not answer the operator."]}
        return {
            **opening,
            **stale,
            "kind": "operator",
            "source": view.source,
            "replica": view.replica,
            "server": view.server,
            "now": round(self._wall(), 1),
            "behind": behind,
        }

    def _look_at_profiles(self, kept: _Kept) -> None:
        """Read all pods again if profiles changed: their profile, and how long they back off."""
        active, queue = self._view.live.active, self._view.queue
        if active is not kept.active:
            kept.active, kept.nodes.profiles = active, tuple(sorted(active))
            for uid in queue.uids():
                queue.changed.note(uid)

    def _look_at(self, kept: _Kept, uid: str) -> None:
        queued = self._view.queue.get(uid)
        if queued is None:
            kept.waiting.remove(uid)
        else:
            kept.waiting.put(uid, self._pending(kept, queued))

    def _pending(self, kept: _Kept, queued: QueuedPod) -> PendingPod:
        view, pod, uid = self._view, queued.pod, queued.uid
        active = view.live.by_scheduler_name(pod.scheduler_name)
        place = view.queue.locate(uid)
        until = 0.0
        if place is SubQueue.BACKOFF and active is not None:
            window = queued.backoff_window(ProfilePolicy(active.evaluator.runtime).backoff)
            until = 0.0 if window is None else round(kept.epoch + window + 1, 1)
        if active is None:
            told: tuple[WaitReason, ...] = (WaitReason("", unclaimed(pod, view.live.active)),)
        else:
            told = self._reasons(kept, queued)
        return PendingPod(
            pod.namespace,
            pod.name,
            "" if active is None else pod.scheduler_name,
            _place(queued, place),
            told,
            unix_seconds(pod.created) or round(kept.epoch + queued.timestamp, 1),
            "" if pod.pod_group is None else pod.pod_group.name,
            (pod.priority, queued.attempts, until),
        )

    def _reasons(self, kept: _Kept, queued: QueuedPod) -> tuple[WaitReason, ...]:
        """Return the reasons of the last attempt that ended."""
        if queued.gated:
            gate = gate_reason(queued.pod, queued.gating_plugin)
            return self._shared(kept, ((gate.plugin, gate.reason, 0),))
        record = self._view.records.last_failed(queued.uid)
        if record is not None:
            told = self._shared(kept, tuple([(each.plugin, each.reason, each.nodes) for each in record.refusals]))
            return told or (WaitReason("", cut(record.message)) if record.message else _BROKE,)
        if queued.rejecting_plugins:
            known = kept.waiting.get(queued.uid)
            told = () if known is None else tuple([each for each in known.rejections if each.nodes])  # a gate's reason ends with the gate
            if {each.plugin for each in told} >= queued.rejecting_plugins:
                return told
            return tuple([WaitReason(plugin, "") for plugin in sorted(queued.rejecting_plugins)])
        return (_BROKE if queued.consecutive_errors else _UNTRIED,)

    def _shared(self, kept: _Kept, said: tuple[tuple[str, str, int], ...]) -> tuple[WaitReason, ...]:
        reasons = kept.reasons.get(said)
        if reasons is None:
            if len(kept.reasons) >= _MOST_REASONS:
                kept.reasons.clear()
            reasons = kept.reasons[said] = tuple([WaitReason(*each) for each in said])
        return reasons

    def _read_decisions(self, kept: _Kept) -> None:
        """Add the attempts that ended since the last slice; of very many the latest ones."""
        found = self._view.records.since(kept.known, DECISIONS_A_SLICE)
        if found:
            kept.known = found[-1]
            names = {each.profile.name: scheduler_name for scheduler_name, each in self._view.live.active.items()}
            for record in found:
                kept.decisions.add(_decision(record, names.get(record.profile, "")))


def _decision(record: AttemptRecord, scheduler_name: str) -> SeenDecision:
    result = PLACED if record.result == Result.SCHEDULED else REFUSED
    if record.result == Result.ERROR:
        result = ERROR
    if result is not PLACED and record.victims:
        result = PREEMPTING
    node = record.node if result is PLACED else record.nominated_node if result is PREEMPTING else None
    who = (record.uid, record.namespace, record.name, node or "", scheduler_name)
    first = next(iter(sorted(record.refusals, key=lambda each: -each.nodes)), None)
    reason = "" if result is PLACED else cut(record.message) if first is None else cut(first.reason)
    return SeenDecision(*who, round(record.at, 1), result, record.generation, record.victims, reason)


def _place(queued: QueuedPod, place: SubQueue | None) -> str:
    if queued.given_up_at is not None and place in (SubQueue.UNSCHEDULABLE, SubQueue.GATED):
        return GIVEN_UP
    if queued.suspicion is not None and place is SubQueue.BACKOFF:
        return SUSPECT
    return "" if place is None else place.value
