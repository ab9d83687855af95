"""Writes Kubernetes events about pods and groups, best effort: no decision waits for them.

`record` puts a note into a bounded queue and returns; a few workers write. Under overload the oldest notes are dropped and counted. A note
that repeats within a window joins a series on the first event instead of becoming another event.

A warning tells why a decision failed: only the active replica writes it, and waiting warnings are dropped at the end of its term. A normal
event tells a finished action, such as a binding. That stays true whichever replica leads, so it is written all the same.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Final, NamedTuple

from placewright.api.pods import PodInfo
from placewright.kube.client import JSON, MERGE_PATCH
from placewright.kube.errors import CONFLICT, NOT_FOUND, ApiError, RequestError, RetryBackoff, with_retries
from placewright.kube.ratelimit import Traffic
from placewright.kube.writers.writequeue import QueueingWriter, WriteCounts, remember

#: Bytes of a note; the API server refuses more.
LONGEST_NOTE: Final = 1024
_CUT: Final = " ..."
#: Characters of a name; the API server refuses more.
_LONGEST_NAME: Final = 253
_WARNING: Final = "Warning"


class Regarding(NamedTuple):
    """The object that an event is about, and the reporter: `controller` is a scheduler's name."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str
    controller: str


class _Key(NamedTuple):
    """The fields in which two records of one series are equal."""

    uid: str
    kind: str
    reason: str
    action: str
    note: str


@dataclass(slots=True)
class _Record:
    """One event, and how often it was repeated since it was first recorded."""

    key: _Key
    name: str
    regarding: Regarding
    first: datetime
    last: datetime
    last_seen: float
    count: int = 1
    written: int = 0
    next_write: float = 0.0
    queued: bool = True


@dataclass(slots=True)
class EventCounts(WriteCounts):
    """Outcomes of events."""

    recorded: int = 0
    repeated: int = 0


@dataclass(eq=False)
class HttpEventRecorder(QueueingWriter[str, _Record]):
    """Writes events of events.k8s.io/v1; implements the scheduler's port `EventRecorder`. Only warnings need the lead.

    Attributes:
        instance: the reporter, such as the replica's identity; cut to 128 characters.
        most_waiting: notes that may wait; beyond, the oldest is dropped.
        window: seconds in which a repeated note joins a series.
        series_interval: seconds between two updates of one series.
        remembered: notes remembered for series.
        counts: outcomes so far.
    """

    TRAFFIC: ClassVar[Traffic] = Traffic.EVENTS
    NAME: ClassVar[str] = "events"
    SUBJECT: ClassVar[str] = "event"

    _: KW_ONLY
    instance: str
    workers: int = 16
    most_waiting: int = 10_000
    window: float = 360.0
    series_interval: float = 30.0
    remembered: int = 5_000
    #: The number of client-go. With these waits a server may be away for about a minute.
    attempts: int = 12
    backoff: RetryBackoff = RetryBackoff(initial=0.5, maximum=10.0)  # noqa: RUF009 - frozen
    counts: EventCounts = field(init=False, default_factory=EventCounts)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._recent: OrderedDict[_Key, _Record] = OrderedDict()

    def record(self, pod: PodInfo, kind: str, reason: str, action: str, note: str) -> None:
        """Queue an event about a pod; returns at once.

        Args:
            pod: the event is about.
            kind: `Normal` or `Warning`.
            reason: one word, such as `Scheduled`.
            action: one word, such as `Binding`.
            note: the message; cut to 1,024 bytes.
        """
        version = pod.pod.metadata.resource_version
        self.record_about(Regarding("v1", "Pod", pod.namespace, pod.name, pod.uid, version, pod.scheduler_name), kind, reason, action, note)

    def record_about(self, regarding: Regarding, kind: str, reason: str, action: str, note: str) -> None:
        """Queue an event about any object; returns at once.

        Args:
            regarding: the object, and the reporter.
            kind: `Normal` or `Warning`.
            reason: one word, such as `Scheduled`.
            action: one word, such as `Scheduling`.
            note: the message; cut to 1,024 bytes.
        """
        self.counts.recorded += 1
        key = _Key(regarding.uid, str(kind), reason, action, cut_note(note))
        now = self.clock()
        known = self._recent.get(key)
        if known is not None and now - known.last_seen < self.window:
            self._repeat(known, now)
        else:
            record = self._new(key, regarding, now)
            remember(self._recent, key, record, self.remembered)
            self._enqueue(record)

    # --- recording ---

    def _new(self, key: _Key, regarding: Regarding, now: float) -> _Record:
        moment = self.utc_now()
        # Like client-go's names, made without asking the server; the counter separates two notes of one microsecond.
        stamp = f".{int(moment.timestamp() * 1_000_000):x}{self.counts.recorded & 0xFFF:03x}"
        name = regarding.name[: _LONGEST_NAME - len(stamp)].rstrip("-.") + stamp
        return _Record(key, name, regarding, moment, moment, now)

    def _repeat(self, record: _Record, now: float) -> None:
        self.counts.repeated += 1
        record.count += 1
        record.last_seen, record.last = now, self.utc_now()
        if not record.queued and now >= record.next_write:
            record.queued = True
            self._enqueue(record)

    def _enqueue(self, record: _Record) -> None:
        if len(self.waiting) >= self.most_waiting:
            self._drop(self._take_out(next(iter(self.waiting))))
        self._put(record.name, record)

    def _drop(self, record: _Record) -> None:
        super()._drop(record)
        record.queued = False
        # A first event that was never written cannot be made a series.
        if record.written == 0:
            self._recent.pop(record.key, None)

    # --- writing ---

    def _ends_with_term(self, item: _Record) -> bool:
        return item.key.kind == _WARNING

    def _namespace_of(self, item: _Record) -> str:
        return item.regarding.namespace

    async def _write(self, record: _Record) -> None:
        try:
            await with_retries(lambda: self._request(record), self.attempts, self.backoff, self.sleep)
        except RequestError as error:
            # No other writer uses our names: an event that exists was written by us, and its answer got lost.
            if isinstance(error, ApiError) and error.status == CONFLICT:
                self._done(record)
            else:
                self._recent.pop(record.key, None)
                self._failed(f"about {record.regarding.namespace}/{record.regarding.name}", error)
        else:
            self._done(record)

    async def _request(self, record: _Record) -> None:
        path = f"/apis/events.k8s.io/v1/namespaces/{record.regarding.namespace}/events"
        if record.written == 0:
            await self._write_one("POST", path, self._body(record), record)
            return
        try:
            await self._write_one("PATCH", f"{path}/{record.name}", _series(record), record, MERGE_PATCH)
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise
            # The server forgets events after an hour: begin a new one.
            await self._write_one("POST", path, self._body(record), record)

    async def _write_one(self, method: str, path: str, body: dict[str, Any], record: _Record, content_type: str = JSON) -> None:
        if not self._ends_with_term(record):
            await self.client.write(method, path, body, content_type)
            return
        self._require_lead()
        await self.client.write(method, path, self._guarded(body), content_type)

    def _done(self, record: _Record) -> None:
        self.counts.written += 1
        record.written = record.count
        record.next_write = self.clock() + (self.series_interval if record.count > 1 else 0.0)
        record.queued = False
        self._complained = False

    # --- shapes ---

    def _body(self, record: _Record) -> dict[str, Any]:
        body = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": record.name, "namespace": record.regarding.namespace},
            "eventTime": micro_time(record.first),
            "reportingController": record.regarding.controller,
            "reportingInstance": self.instance[:128],
            "type": record.key.kind,
            "reason": record.key.reason,
            "action": record.key.action,
            "note": record.key.note,
            "regarding": _reference(record.regarding),
        }
        return body | _series(record) if record.count > 1 else body


def _series(record: _Record) -> dict[str, Any]:
    return {"series": {"count": record.count, "lastObservedTime": micro_time(record.last)}}


def _reference(regarding: Regarding) -> dict[str, str]:
    """Write an ObjectReference, without its empty fields."""
    names = ("apiVersion", "kind", "namespace", "name", "uid", "resourceVersion")
    return {name: value for name, value in zip(names, regarding, strict=False) if value}


def core_event(namespace: str, about: Regarding, told: tuple[str, str, str], instance: str, moment: datetime) -> dict[str, Any]:
    """Build a core/v1 event that is written once, without a queue.

    It has no eventTime: with it, Kubernetes 1.20 refuses events about objects without a namespace.

    Args:
        namespace: namespace of the event.
        about: its `involvedObject`, and the reporter.
        told: type, reason and note; the note is cut to 1,024 bytes.
        instance: identity of the reporter; cut to 128 characters, the API server's limit.
        moment: the time in UTC.
    """
    now = seconds_time(moment)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{about.name}.{secrets.token_hex(8)}", "namespace": namespace},
        "involvedObject": _reference(about),
        "type": told[0],
        "reason": told[1],
        "message": cut_note(told[2]),
        "reportingComponent": about.controller,
        "reportingInstance": instance[:128],
        "source": {"component": about.controller},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }


def cut_note(note: str) -> str:
    """Cut a note to the API server's limit.

    Returns:
        At most 1,024 bytes of UTF-8 in whole characters, with ` ...` if text was cut.
    """
    raw = note.encode("utf-8", "replace")
    if len(raw) <= LONGEST_NOTE:
        return note
    return raw[: LONGEST_NOTE - len(_CUT)].decode("utf-8", "ignore") + _CUT


def micro_time(moment: datetime) -> str:
    """Write a time in UTC as a MicroTime.

    Returns:
        Such as `2026-01-31T12:00:00.000000Z`.
    """
    return moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def seconds_time(moment: datetime) -> str:
    """Write a time in UTC as a Time.

    Returns:
        Such as `2026-01-31T12:00:00Z`.
    """
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
