"""Samples attempts, makes spans of them in a thread, and hands these to OpenTelemetry's own batches. Needs OpenTelemetry.

A collector that is away, slow or wrong costs spans, which are counted, and nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Decision, Sampler, TraceIdRatioBased

from placewright import __version__
from placewright.api.bad_input import InputError, printable
from placewright.observability.logformat import cut, message_of
from placewright.observability.tracing import MILLION
from placewright.observability.tracingspans import ROOT, export_spans
from placewright.scheduler.attempts import Attempt

_log = logging.getLogger(__name__)

#: Attempts that wait to become spans.
MOST_WAITING: Final = 4096
#: How long the end waits for what has not been exported yet, seconds.
END_SECONDS: Final = 2.0
_LONGEST_REASON: Final = 400
_SERVICE: Final = "placewright"
_DEFAULT_ENDPOINT: Final = "http://localhost:4318"
_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
#: What these say of every batch, of every retry and of every span too many is said here once.
_EXPORTER: Final = "opentelemetry.exporter.otlp.proto.http.trace_exporter"
_TALKATIVE: Final = (_EXPORTER, "opentelemetry.sdk._shared_internal")

_Waiting = tuple[Attempt, int] | None


class AttemptTraces:
    """An observer that traces some of the attempts, for as long as its context is open.

    Attributes:
        dropped: attempts that were sampled, but found too many waiting.
        exporter: counts what was exported.
    """

    def __init__(self, sampler: Sampler, exporter: SpanExporter, resource: Resource, target: str) -> None:
        """`target`: where the exporter exports to, for people."""
        self.dropped = 0
        self.exporter = WatchedExporter(exporter, target)
        self._sampler = sampler
        self._new_trace_id = RandomIdGenerator().generate_trace_id
        self._handed = 0
        self._waiting: queue.SimpleQueue[_Waiting] = queue.SimpleQueue()
        # What gets there has been sampled already, in the thread that it would have cost.
        self._provider = TracerProvider(sampler=ALWAYS_ON, resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(self.exporter))
        self._tracer = self._provider.get_tracer(_SERVICE, __version__)
        self._thread = threading.Thread(target=self._work, name="traces", daemon=True)
        self._ended = asyncio.Event()

    @classmethod
    def exporting(cls, rate_per_million: int | None, identity: str) -> Self:
        """As the flag and OpenTelemetry's environment variables say; raises `InputError` when these cannot be understood."""
        try:
            exporter, resource = OTLPSpanExporter(), resource_of(identity)
            sampler = sampler_of(rate_per_million)
        except Exception as problem:
            raise InputError(f"tracing: OpenTelemetry cannot be set up as the environment says (OTEL_...): {problem}") from problem
        return cls(sampler, exporter, resource, _target())

    # --- in the loop ------------------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._thread.start()
        _log.info("attempts are traced (%s), spans go to %s", self._sampler.get_description(), self.exporter.target)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._waiting.put(None)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(END_SECONDS):
                await self._ended.wait()
        lost = self._handed - self.exporter.exported
        if lost or self.dropped:
            reason = self.exporter.reason
            _log.warning("traces: %d spans were not exported, %d attempts not made into spans: %s", lost, self.dropped, reason)

    def attempt_ended(self, attempt: Attempt) -> None:
        """Sample it."""
        if self._sampler.should_sample(None, self._new_trace_id(), ROOT).decision is not Decision.RECORD_AND_SAMPLE:
            return
        if self._waiting.qsize() >= MOST_WAITING:
            self.dropped += 1
        else:
            self._waiting.put((attempt, time.time_ns() - time.monotonic_ns()))

    def pod_entered(self, place: str, event: str) -> None:
        """Nothing to trace."""

    # --- in the thread ----------------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        with quiet(self.exporter.heard):
            while (waiting := self._waiting.get()) is not None:
                try:
                    self._handed += export_spans(self._tracer, *waiting)
                except Exception:  # noqa: BLE001 - whatever one attempt holds, the next is traced
                    _log.exception("an attempt could not be traced")
            self._provider.shutdown()
        with contextlib.suppress(RuntimeError):  # nobody waited for so long
            self._loop.call_soon_threadsafe(self._ended.set)


class WatchedExporter(SpanExporter):
    """Counts what another one exports, and says once when it cannot, and once when it can again.

    Attributes:
        exported, failed: spans.
        target: where they go, for people.
    """

    def __init__(self, exporter: SpanExporter, target: str) -> None:
        self.exported = 0
        self.failed = 0
        self.target = target
        self._exporter = exporter
        self._away_since = 0
        self._away = False
        self._heard: deque[str] = deque(maxlen=2)

    def heard(self, message: str) -> None:
        """The exporter said something, perhaps why it fails."""
        self._heard.append(cut(message, _LONGEST_REASON))

    @property
    def reason(self) -> str:
        """What the exporter said last: of an attempt that failed, and of giving up."""
        return "; ".join(dict.fromkeys(self._heard)) or "no reason was given"

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Export them, or lose them."""
        try:
            result = self._exporter.export(spans)
        except Exception as problem:  # noqa: BLE001 - it must not end the thread that exports
            self.heard(f"{type(problem).__name__}: {problem}")
            result = SpanExportResult.FAILURE
        if result is SpanExportResult.SUCCESS:
            self.exported += len(spans)
            self._works_again()
        else:
            self._fails()
            self.failed += len(spans)
        return result

    def shutdown(self) -> None:
        """End it."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Nothing waits here."""
        return True

    def _fails(self) -> None:
        if not self._away:
            self._away, self._away_since = True, self.failed
            _log.warning("traces are not exported to %s, spans are dropped: %s", self.target, self.reason)

    def _works_again(self) -> None:
        if self._away:
            self._away = False
            _log.warning("traces are exported to %s again, %d spans were dropped", self.target, self.failed - self._away_since)


def sampler_of(rate_per_million: int | None) -> Sampler:
    """Of the flag; without one, what OTEL_TRACES_SAMPLER names."""
    if rate_per_million is None:
        return TracerProvider(shutdown_on_exit=False).sampler
    return TraceIdRatioBased(rate_per_million / MILLION)


def resource_of(identity: str) -> Resource:
    """Who traces; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES go before."""
    ours = Resource({"service.name": _SERVICE, "service.version": __version__, "service.instance.id": identity})
    return ours.merge(OTELResourceDetector().detect())


@contextlib.contextmanager
def quiet(heard: Callable[[str], None]) -> Iterator[None]:
    """What OpenTelemetry's exporter says goes to `heard`, and not to the log."""

    def listen(record: logging.LogRecord) -> bool:
        if record.name == _EXPORTER:
            heard(message_of(record))
        return False

    for name in _TALKATIVE:
        logging.getLogger(name).addFilter(listen)
    try:
        yield
    finally:
        for name in _TALKATIVE:
            logging.getLogger(name).removeFilter(listen)


def _target() -> str:
    """Host and port: an address may hold a password."""
    url = next((found for each in _ENDPOINTS if (found := os.environ.get(each))), _DEFAULT_ENDPOINT)
    try:
        parts = urlsplit(url)
        return printable(f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else ""))
    except ValueError:
        return "an address that is none"
