"""Writes conditions of pods: PodScheduled of pods that could not be placed, one of our own beside it, and the nominated node.

Of a pod only the latest verdict is written: a pod that fails again replaces its waiting verdict, and the number of waiting verdicts is
bounded. Strategic merge patches touch one condition and leave all others alone; the pod's uid in the patch protects a new pod of its name.

Only the active replica writes, and waiting verdicts are dropped at the end of its term. Its last request may still arrive late, so the
pod's resourceVersion is in the patch. If the pod changed meanwhile, it is read. The patch is sent again only if the pod has no node and its
known condition and nomination. Otherwise another replica has written something newer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime
from itertools import islice
from typing import Any, ClassVar, Final

import msgspec

from placewright.api.boundedcache import BoundedCache
from placewright.api.bytecount import bytes_of
from placewright.api.decode import decode
from placewright.api.objects import Condition, NodeName, ObjectMeta, Pod, PodKey, PodSpec, PodStatus
from placewright.api.podgroups import CompositePodGroup, NativePodGroup
from placewright.api.pods import PodInfo
from placewright.kube.client import STRATEGIC_MERGE_PATCH, ApiClient
from placewright.kube.errors import CONFLICT, ApiError, RequestError
from placewright.kube.guarded import GuardedBody
from placewright.kube.ratelimit import Traffic
from placewright.kube.writers.events import seconds_time
from placewright.kube.writers.writequeue import QueueingWriter, WriteCounts
from placewright.kube.writers.writer import pod_path, precondition

POD_SCHEDULED: Final = "PodScheduled"
#: Characters of a condition's message; longer ones are cut.
_LONGEST_MESSAGE: Final = 32_768
#: The same while more than `_MANY` verdicts wait: messages are most of the memory that waiting verdicts take.
_LONGEST_OF_MANY: Final = 2_048
_MANY: Final = 500
#: Pods whose last written status is remembered, and its bytes. The bound drops pods that are gone.
_REMEMBERED: Final = 10_000
_REMEMBERED_BYTES: Final = 16 * 2**20
#: Writes under way at once for one namespace.
WORKERS: Final = 8
#: Verdicts that may wait to be written.
MOST_WAITING: Final = 20_000
#: Oldest verdicts that are searched for one without a nomination.
_OLDEST: Final = 100
#: Conflicts in a row, each after another change of the pod.
_MOST_CONFLICTS: Final = 5
#: Reason of a verdict that leaves the condition unchanged.
_AS_IT_IS: Final = ""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Verdict:
    """The status that a pod is to have.

    Attributes:
        pod: the pod in outline.
        reason: reason of the condition.
        message: message of the condition.
        nominated: the nominated node; None leaves the nomination, "" clears it.
        beside: another condition to write, without its time; None writes only PodScheduled.
    """

    pod: PodInfo
    reason: str
    message: str
    nominated: NodeName | None
    beside: Condition | None = None

    @property
    def of_bound_pod(self) -> bool:
        """True for news of a pod that we have bound. It stays true, so no version is demanded of the pod."""
        return bool(self.pod.node_name)


@dataclass(frozen=True, slots=True)
class _Written:
    """The status that we last wrote.

    Attributes:
        seen: version of the pod that the decision saw.
        version: version that the write made.
        condition: condition PodScheduled after the write; None without one.
        nominated: nominated node as written.
    """

    seen: str
    version: str
    condition: Condition | None
    nominated: str


#: Seconds that a Binding waits for the nomination of its pod. A write takes milliseconds; an API server that is overloaded delays both.
_NOMINATION_SECONDS: Final = 1.0


#: Guards a body, so that it is sent only while this replica may write.
Guard = Callable[[Mapping[str, Any]], GuardedBody]


class _OutOfDate(Exception):
    """The pod has a node by now, its name belongs to another pod, or another replica wrote something newer."""


@dataclass(slots=True)
class StatusCounts(WriteCounts):
    """Outcomes of verdicts about pods or groups."""

    unchanged: int = 0
    overtaken: int = 0
    vanished: int = 0


@dataclass(eq=False)
class HttpStatusWriter(QueueingWriter[PodKey, _Verdict]):
    """Writes verdicts, latest wins; implements the scheduler's port `StatusWriter`.

    Attributes:
        most_waiting: verdicts that may wait; beyond, the oldest is dropped.
        counts: outcomes so far.
    """

    TRAFFIC: ClassVar[Traffic] = Traffic.STATUS
    NAME: ClassVar[str] = "status"

    _: KW_ONLY
    workers: int = WORKERS
    most_waiting: int = MOST_WAITING
    counts: StatusCounts = field(init=False, default_factory=StatusCounts)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._written: BoundedCache[str, _Written] = BoundedCache(_REMEMBERED_BYTES, most=_REMEMBERED, forgets=False)
        #: Uids of pods whose nomination is being written.
        self._nominating: set[str] = set()

    async def nomination_written(self, pod: PodInfo) -> None:
        """Wait for the write of the pod's nomination, if there is one under way: autoscalers and other schedulers read nominations."""
        waiting = self.waiting.get(pod.key)
        waits = waiting is not None and waiting.pod.uid == pod.uid and bool(waiting.nominated)
        if waits or pod.uid in self._nominating:
            await self.written(pod.key, _NOMINATION_SECONDS)

    def pod_unscheduled(self, pod: PodInfo, reason: str, message: str, nominated_node: NodeName | None) -> None:
        """Queue the condition PodScheduled=False; returns at once.

        Args:
            pod: that was not placed.
            reason: reason of the condition, such as `Unschedulable`.
            message: message of the condition; cut to 32,768 characters, to 2,048 while many verdicts wait.
            nominated_node: the node that preemption made room on; "" clears the nomination, None leaves it.
        """
        longest = _LONGEST_MESSAGE if len(self.waiting) < _MANY else _LONGEST_OF_MANY
        verdict = _Verdict(_outline(pod), reason, message[:longest], nominated_node)
        overtaken = self.waiting.get(pod.key)
        if overtaken is not None:
            self.counts.overtaken += 1
            if overtaken.pod.uid == pod.uid:
                nominated = overtaken.nominated if nominated_node is None else nominated_node
                beside = overtaken.beside
                outline = _outline(pod, "" if beside is None else beside.type)
                verdict = replace(verdict, pod=outline, nominated=nominated, beside=beside)
        self._enqueue(verdict)

    def _enqueue(self, verdict: _Verdict) -> None:
        self._put(verdict.pod.key, verdict)
        if len(self.waiting) > self.most_waiting:
            self._drop_one()

    def pod_nominated(self, pod: PodInfo, node: NodeName) -> None:
        """Queue a pod's nomination, or its end if the name is empty, together with a verdict that waits; returns at once."""
        waiting = self.waiting.get(pod.key)
        if waiting is not None and waiting.pod.uid == pod.uid:
            self._put(pod.key, replace(waiting, nominated=node))
        else:
            self.pod_unscheduled(pod, _AS_IT_IS, "", node)

    def pod_condition(self, pod: PodInfo, condition: Condition) -> None:
        """Queue a condition that is not PodScheduled, together with a verdict that waits; returns at once.

        Args:
            pod: a pod without a node. If it has just been bound to one, a verdict that waits is dropped.
            condition: the condition without its time.
        """
        waiting = self.waiting.get(pod.key)
        if waiting is not None and waiting.pod.uid == pod.uid and not pod.node_name:
            self._put(pod.key, replace(waiting, beside=condition, pod=_outline(pod, condition.type)))
        else:
            self._enqueue(_Verdict(_outline(pod, condition.type), _AS_IT_IS, "", None, condition))

    def _drop_one(self) -> None:
        """Drop the oldest verdict: its pod will be tried again and get another. Nominations go last, because others read them."""
        oldest = list(islice(self.waiting, _OLDEST))
        self._drop(self._take_out(next((key for key in oldest if self.waiting[key].nominated is None), oldest[0])))

    def _namespace_of(self, item: _Verdict) -> str:
        return item.pod.namespace

    async def _write(self, verdict: _Verdict) -> None:
        patch, condition, nominated = self._planned(verdict)
        if not patch:
            self.counts.unchanged += 1
            return
        if verdict.nominated:
            self._nominating.add(verdict.pod.uid)
        try:
            found = await self._send(lambda: self._patched(verdict, patch))
        except _OutOfDate:
            self.counts.vanished += 1
        except RequestError as error:
            if isinstance(error, ApiError) and error.gone_or_replaced and error.status != CONFLICT:
                self.counts.vanished += 1
            else:
                self.counts.failed += 1
                _log.warning("status of %s not written: %s", verdict.pod.key, error)
        else:
            self.counts.written += 1
            seen = verdict.pod.pod.metadata.resource_version
            written = _Written(seen, found.metadata.resource_version, condition, nominated)
            self._written.put(verdict.pod.uid, written, bytes_of((verdict.pod.uid, written)))
        finally:
            self._nominating.discard(verdict.pod.uid)

    async def _patched(self, verdict: _Verdict, patch: dict[str, Any]) -> Pod:
        """Send the patch, for the pod as it is.

        Raises `_OutOfDate`, or `ApiError` 409 for a pod that keeps changing.
        """
        pod = verdict.pod
        written = self._about(pod)
        version = pod.pod.metadata.resource_version if written is None else written.version
        if verdict.of_bound_pod:
            version = ""
        for _ in range(_MOST_CONFLICTS):
            self._require_lead()
            try:
                return await patch_pod_status(self.client, pod, patch, self._guarded, version)
            except ApiError as error:
                if error.status != CONFLICT:
                    raise
                conflict = error
            found = await self.client.get_as(pod_path(pod), Pod)
            if _says(found, patch):
                return found  # an answer got lost
            if found.spec.node_name or found.metadata.uid != pod.uid or not self._known(found, pod):
                raise _OutOfDate
            version = found.metadata.resource_version
        raise conflict

    def _known(self, found: Pod, info: PodInfo) -> bool:
        """Whether the pod's condition and nomination are as the decision saw them, or as we last wrote them."""
        says = _said(find_condition(found, POD_SCHEDULED)), found.status.nominated_node_name
        copy = _said(find_condition(info.pod, POD_SCHEDULED)), info.pod.status.nominated_node_name
        written = self._written.get(info.uid)
        return says == copy or (written is not None and says == (_said(written.condition), written.nominated))

    def _about(self, info: PodInfo) -> _Written | None:
        """Return the status that we last wrote, if this copy of the pod is older than that."""
        known = self._written.get(info.uid)
        return known if known is not None and known.seen == info.pod.metadata.resource_version else None

    def _planned(self, verdict: _Verdict) -> tuple[dict[str, Any], Condition | None, str]:
        """Return the status part of the patch, and the condition and nomination after it. The part is empty if nothing changes."""
        pod = verdict.pod.pod
        condition, nominated = self._current(verdict.pod)
        wanted = [] if verdict.beside is None else [(verdict.beside, find_condition(pod, verdict.beside.type))]
        if verdict.reason != _AS_IT_IS:
            told = Condition(type=POD_SCHEDULED, status="False", reason=verdict.reason, message=verdict.message)
            wanted.insert(0, (told, condition))
        planned = [(dated(each, known, pod.metadata.generation, self.utc_now()), known) for each, known in wanted]
        if verdict.reason != _AS_IT_IS:
            condition = planned[0][0]
        changes: dict[str, Any] = {}
        if conditions := [condition_json(each) for each, known in planned if each != known]:
            changes["conditions"] = conditions
        if verdict.nominated is not None and verdict.nominated != nominated:
            nominated = verdict.nominated
            changes["nominatedNodeName"] = nominated or None
        return changes, condition, nominated

    def _current(self, info: PodInfo) -> tuple[Condition | None, str]:
        """Return the pod's condition and nomination: as in this copy, or as we last wrote them if the copy is older."""
        condition = find_condition(info.pod, POD_SCHEDULED)
        nominated = info.pod.status.nominated_node_name
        known = self._about(info)
        return (condition, nominated) if known is None else (known.condition, known.nominated)


def _outline(pod: PodInfo, beside: str = "") -> PodInfo:
    """Return the fields that a status write needs: a pod may be large, and gone long before its status is written.

    Args:
        pod: to write about.
        beside: type of the condition that is written beside PodScheduled.
    """
    meta, status = pod.pod.metadata, pod.pod.status
    named = ObjectMeta(
        name=meta.name, namespace=meta.namespace, uid=meta.uid, resource_version=meta.resource_version, generation=meta.generation
    )
    conditions = tuple(each for each in status.conditions or () if each.type in (POD_SCHEDULED, beside)) or None
    kept = PodStatus(conditions=conditions, nominated_node_name=status.nominated_node_name)
    return PodInfo(Pod(metadata=named, spec=PodSpec(node_name=pod.node_name), status=kept))


def find_condition(item: Pod | NativePodGroup | CompositePodGroup, kind: str) -> Condition | None:
    """Find a condition of a pod or a group.

    Returns:
        The condition; None without one.
    """
    return next((one for one in item.status.conditions or () if one.type == kind), None)


def _says(found: Pod, patch: Mapping[str, Any]) -> bool:
    """Whether a pod has the status that a patch is to give it."""
    if "nominatedNodeName" in patch and found.status.nominated_node_name != (patch["nominatedNodeName"] or ""):
        return False
    return all(
        (condition := find_condition(found, wanted["type"])) is not None and condition_json(condition) == wanted
        for wanted in patch.get("conditions", ())
    )


def _said(condition: Condition | None) -> tuple[str, ...] | None:
    """Return the fields of a condition that every server keeps: old servers drop observedGeneration."""
    return None if condition is None else (condition.status, condition.reason, condition.message)


def dated(wanted: Condition, existing: Condition | None, generation: int, now: datetime) -> Condition:
    """Add time and generation to a condition. The time is the existing one's while the status stays.

    Args:
        wanted: the condition without its time.
        existing: condition of the same type; None without one.
        generation: generation of the object; 0 if it has none.
        now: the time of day.
    """
    kept = existing.last_transition_time if existing is not None and existing.status == wanted.status else None
    return msgspec.structs.replace(wanted, last_transition_time=kept or seconds_time(now), observed_generation=generation or None)


def condition_json(condition: Condition) -> dict[str, Any]:
    """Write a condition as the API server takes it."""
    # Written also if they are empty: a strategic merge patch would leave the earlier text.
    body: dict[str, Any] = msgspec.to_builtins(condition)
    return {"reason": "", "message": "", "lastTransitionTime": None} | body


async def patch_pod_status(client: ApiClient, pod: PodInfo, status: dict[str, Any], guarded: Guard, version: str = "") -> Pod:
    """Patch a pod's status (strategic merge).

    Args:
        client: the API server's client.
        pod: the pod of this uid.
        status: the part to change.
        guarded: guards the body.
        version: resourceVersion that the pod must have; empty for any.

    Raises:
        RequestError: the server refused or did not answer; 422 when the name belongs to another pod, 409 when the pod has another version.
        DecodeError: the answer is no pod.
    """
    body = guarded({"metadata": precondition(pod.uid, version), "status": status})
    return decode(await client.patch(f"{pod_path(pod)}/status", body, content_type=STRATEGIC_MERGE_PATCH), Pod)
