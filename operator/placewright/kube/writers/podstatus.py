"""What the scheduler writes into pods that it could not place: the condition PodScheduled, and the node that preemption made room on.

Per pod only the latest matters: a pod that fails again before its last status is written overwrites what waits, and there is room for so
many that wait and no more. Strategic merge patches touch one condition and leave all others alone; the pod's uid in the patch keeps it
from a namesake.

Only the active replica writes, and what waits goes with its term. Its last request may be late all the same, so the pod's resourceVersion
is in the patch. If the pod changed meanwhile, it is read, and the patch is sent once more only where the pod has no node, and condition and
nomination are still what we knew: else another replica has said something newer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, ClassVar, Final, Unpack

from placewright.api.boundedcache import BoundedCache
from placewright.api.bytecount import bytes_of
from placewright.api.decode import decode
from placewright.api.objects import Condition, NodeName, ObjectMeta, Pod, PodKey, PodStatus
from placewright.api.pods import PodInfo
from placewright.kube.client import STRATEGIC_MERGE_PATCH, ApiClient
from placewright.kube.errors import CONFLICT, ApiError, RequestError
from placewright.kube.guarded import GuardedBody
from placewright.kube.ratelimit import Traffic
from placewright.kube.writers.events import seconds_time
from placewright.kube.writers.writer import QueueingWriter, WriterTiming, always

POD_SCHEDULED: Final = "PodScheduled"
#: Characters of a condition's message; longer ones are cut.
_LONGEST_MESSAGE: Final = 32_768
#: The same while more than so many verdicts wait: these messages are all that is kept of their pods.
_LONGEST_OF_MANY: Final = 2_048
_MANY: Final = 500
#: Pods, and bytes, of what was written last: of pods that are gone it is forgotten in this way.
_REMEMBERED: Final = 10_000
_REMEMBERED_BYTES: Final = 16 * 2**20
#: Writes under way at once for one namespace.
WORKERS: Final = 8
#: Verdicts that may wait to be written.
MOST_WAITING: Final = 20_000
#: So many of the oldest are looked through for one that is not about a nomination.
_OLDEST: Final = 100
#: In a row, each after another change of the pod by somebody.
_MOST_CONFLICTS: Final = 5
#: Instead of a reason: what the condition says is not to be changed.
_AS_IT_IS: Final = ""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Verdict:
    """The status somebody wants a pod to have; `nominated` None leaves the nomination, "" clears it. `pod`: in outline."""

    pod: PodInfo
    reason: str
    message: str
    nominated: NodeName | None


@dataclass(frozen=True, slots=True)
class _Written:
    """What we last made a pod say; `seen` is the version of the copy that we decided by, `version` the one that the write made."""

    seen: str
    version: str
    condition: Condition
    nominated: str


#: Makes a body one that is sent only while this replica may write.
Guard = Callable[[Mapping[str, Any]], Mapping[str, Any] | GuardedBody]


class _OutOfDate(Exception):
    """The pod has a node by now, or its name is another's, or somebody else has said something newer of it."""


class _NotActive(Exception):
    """Another replica leads, and says what is to be said."""


@dataclass(slots=True)
class StatusCounts:
    """What became of verdicts."""

    written: int = 0
    unchanged: int = 0
    overtaken: int = 0
    vanished: int = 0
    failed: int = 0
    dropped: int = 0


class HttpStatusWriter(QueueingWriter[PodKey, _Verdict]):
    """Writes verdicts, latest wins; implements the scheduler's `StatusWriter`.

    Attributes:
        counts: what happened so far.
    """

    TRAFFIC: ClassVar[Traffic] = Traffic.STATUS
    NAME: ClassVar[str] = "status"
    ERROR: ClassVar[type[Exception]] = _NotActive

    def __init__(
        self,
        client: ApiClient,
        may_write: Callable[[], bool] = always,
        *,
        workers: int = WORKERS,
        waiting: int = MOST_WAITING,
        **timing: Unpack[WriterTiming],
    ) -> None:
        """`workers`: writes under way at once. `waiting`: verdicts that may wait; beyond, old ones are dropped."""
        super().__init__(client, may_write, workers=workers, **timing)
        self.counts = StatusCounts()
        self._most_waiting = waiting
        self._written: BoundedCache[str, _Written] = BoundedCache(_REMEMBERED_BYTES, most=_REMEMBERED)

    def pod_unscheduled(self, pod: PodInfo, reason: str, message: str, nominated_node: NodeName | None) -> None:
        """Queue PodScheduled=False; returns at once."""
        longest = _LONGEST_MESSAGE if len(self._queue.waiting) < _MANY else _LONGEST_OF_MANY
        verdict = _Verdict(_outline(pod), reason, message[:longest], nominated_node)
        overtaken = self._queue.waiting.get(pod.key)
        if overtaken is not None:
            self.counts.overtaken += 1
            if nominated_node is None and overtaken.pod.uid == pod.uid:
                verdict = replace(verdict, nominated=overtaken.nominated)
        self._queue.put(pod.key, verdict)
        if len(self._queue.waiting) > self._most_waiting:
            self._drop_one()

    def nomination_cleared(self, pod: PodInfo) -> None:
        """Queue the end of the pod's nomination, beside what is to be said anyway; returns at once."""
        waiting = self._queue.waiting.get(pod.key)
        if waiting is not None and waiting.pod.uid == pod.uid:
            self._queue.waiting[pod.key] = replace(waiting, nominated=NodeName(""))
        else:
            self.pod_unscheduled(pod, _AS_IT_IS, "", NodeName(""))

    def _outlived(self, item: _Verdict) -> None:
        self.counts.dropped += 1

    def _drop_one(self) -> None:
        """The oldest verdict: the pod will be tried again and get another. Nominations are read by others, so they go last."""
        waiting = self._queue.waiting
        oldest = list(islice(waiting, _OLDEST))
        waiting.pop(next((key for key in oldest if waiting[key].nominated is None), oldest[0]))
        self.counts.dropped += 1

    def _namespace_of(self, item: _Verdict) -> str:
        return item.pod.namespace

    def _broke(self, key: PodKey) -> None:
        self.counts.failed += 1
        _log.exception("status of %s not written", key)

    async def _write(self, verdict: _Verdict) -> None:
        patch = self._patch(verdict)
        if patch is None:
            self.counts.unchanged += 1
            return
        try:
            found = await self._send(lambda: self._patched(verdict.pod, patch))
        except _OutOfDate:
            self.counts.vanished += 1
        except _NotActive:
            self.counts.dropped += 1
        except RequestError as error:
            if isinstance(error, ApiError) and error.gone_or_replaced and error.status != CONFLICT:
                self.counts.vanished += 1
            else:
                self._failed(verdict, error)
        else:
            self._done(verdict, patch, found)

    async def _patched(self, pod: PodInfo, patch: dict[str, Any]) -> Pod:
        """Send the patch, for the pod as it is; the pod that it made. Raises `_OutOfDate`, or 409 for a pod that keeps changing."""
        written = self._about(pod)
        version = pod.pod.metadata.resource_version if written is None else written.version
        for _ in range(_MOST_CONFLICTS):
            self._require_lead()
            try:
                return await patch_pod_status(self._client, pod, patch, self._guarded_if_asked, version)
            except ApiError as error:
                if error.status != CONFLICT:
                    raise
                conflict = error
            found = await self._client.get_as(_path(pod), Pod)
            if _says(found, patch):
                return found  # an answer got lost
            if found.spec.node_name or found.metadata.uid != pod.uid or not self._known(found, pod):
                raise _OutOfDate
            version = found.metadata.resource_version
        raise conflict

    def _known(self, found: Pod, info: PodInfo) -> bool:
        """Whether what the pod says is what its copy said that we decided by, or what we ourselves wrote last."""
        says = _said(find_condition(found, POD_SCHEDULED)), found.status.nominated_node_name
        copy = _said(find_condition(info.pod, POD_SCHEDULED)), info.pod.status.nominated_node_name
        written = self._written.get(info.uid)
        return says == copy or (written is not None and says == (_said(written.condition), written.nominated))

    def _about(self, info: PodInfo) -> _Written | None:
        """What we last wrote about the pod, if this copy of it is older than that."""
        known = self._written.get(info.uid)
        return known if known is not None and known.seen == info.pod.metadata.resource_version else None

    def _patch(self, verdict: _Verdict) -> dict[str, Any] | None:
        """The status part of the patch, or None when the pod says all that already."""
        condition, nominated = self._current(verdict.pod)
        changes: dict[str, Any] = {}
        if verdict.reason != _AS_IT_IS and (wanted := self._condition(verdict, condition)) != condition:
            changes["conditions"] = [_as_json(wanted)]
        if verdict.nominated is not None and verdict.nominated != nominated:
            changes["nominatedNodeName"] = verdict.nominated or None
        return changes or None

    def _current(self, info: PodInfo) -> tuple[Condition | None, str]:
        """What the pod says, or what we last made it say when this copy of the pod is older than that."""
        condition = find_condition(info.pod, POD_SCHEDULED)
        nominated = info.pod.status.nominated_node_name
        known = self._about(info)
        return (condition, nominated) if known is None else (known.condition, known.nominated)

    def _condition(self, verdict: _Verdict, existing: Condition | None) -> Condition:
        kept = existing.last_transition_time if existing is not None and existing.status == "False" else None
        return Condition(
            type=POD_SCHEDULED,
            status="False",
            reason=verdict.reason,
            message=verdict.message,
            last_transition_time=kept or seconds_time(self._now()),
            observed_generation=verdict.pod.pod.metadata.generation or None,
        )

    def _done(self, verdict: _Verdict, patch: dict[str, Any], found: Pod) -> None:
        self.counts.written += 1
        condition, nominated = self._current(verdict.pod)
        if "conditions" in patch:
            condition = self._condition(verdict, condition)
        if verdict.nominated is not None:
            nominated = verdict.nominated
        if condition is not None:
            metadata = verdict.pod.pod.metadata
            written = _Written(metadata.resource_version, found.metadata.resource_version, condition, nominated)
            self._written.put(verdict.pod.uid, written, bytes_of((verdict.pod.uid, written)))

    def _failed(self, verdict: _Verdict, error: RequestError) -> None:
        self.counts.failed += 1
        _log.warning("status of %s not written: %s", verdict.pod.key, error)


def _outline(pod: PodInfo) -> PodInfo:
    """What is written about: a pod may be large, and gone long before its status is written."""
    meta, status = pod.pod.metadata, pod.pod.status
    named = ObjectMeta(
        name=meta.name, namespace=meta.namespace, uid=meta.uid, resource_version=meta.resource_version, generation=meta.generation
    )
    condition = find_condition(pod.pod, POD_SCHEDULED)
    conditions = None if condition is None else (condition,)
    return PodInfo(Pod(metadata=named, status=PodStatus(conditions=conditions, nominated_node_name=status.nominated_node_name)))


def find_condition(pod: Pod, kind: str) -> Condition | None:
    """The pod's condition of that type."""
    return next((one for one in pod.status.conditions or () if one.type == kind), None)


def _says(found: Pod, patch: Mapping[str, Any]) -> bool:
    """Whether a pod says what a patch of its status is to make it say."""
    if "nominatedNodeName" in patch and found.status.nominated_node_name != (patch["nominatedNodeName"] or ""):
        return False
    condition = find_condition(found, POD_SCHEDULED)
    return all(condition is not None and _as_json(condition) == wanted for wanted in patch.get("conditions", ()))


def _said(condition: Condition | None) -> tuple[str, ...] | None:
    """What a condition says, without what old servers leave out."""
    return None if condition is None else (condition.status, condition.reason, condition.message)


def _as_json(condition: Condition) -> dict[str, Any]:
    body: dict[str, Any] = {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": condition.last_transition_time,
    }
    if condition.observed_generation is not None:
        body["observedGeneration"] = condition.observed_generation
    return body


async def patch_pod_status(
    client: ApiClient, pod: PodInfo, status: dict[str, Any], guarded: Guard, version: str = ""
) -> Pod:
    """Strategic merge patch of a pod's status, sent while it is `guarded`; the pod that it made.

    422 when the name now belongs to another pod; with a resourceVersion 409 when the pod is not in that version any more.
    """
    metadata = {"uid": pod.uid, "resourceVersion": version} if version else {"uid": pod.uid}
    body = guarded({"metadata": metadata, "status": status})
    return decode(await client.patch(f"{_path(pod)}/status", body, content_type=STRATEGIC_MERGE_PATCH), Pod)


def _path(pod: PodInfo) -> str:
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
