"""Samples attempts and passes them to OpenTelemetry's batch thread, which makes spans of them and exports those. Needs OpenTelemetry.

A collector that is away, slow or wrong costs spans, which are counted, and delays no decision.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, Final, NamedTuple, Self, cast
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Decision, Sampler, TraceIdRatioBased
from opentelemetry.trace import SpanContext, TraceFlags

from placewright import __version__
from placewright.api.bad_input import InputError, printable
from placewright.observability.logformat import cut, message_of
from placewright.observability.tracing import MILLION
from placewright.observability.tracingspans import ROOT, export_spans
from placewright.scheduler.attempts import Attempt

_log = logging.getLogger(__name__)

#: Attempts that may wait to become spans, and spans in one request. The environment may say otherwise.
MOST_WAITING: Final = 4096
_SPANS_IN_REQUEST: Final = 512
#: Attempts that wake OpenTelemetry's thread before its time: about as many as make one request.
_BATCH: Final = 48
#: Seconds for which the end waits for attempts that are not exported yet.
END_SECONDS: Final = 2.0
_LONGEST_REASON: Final = 400
_SERVICE: Final = "placewright"
_DEFAULT_ENDPOINT: Final = "http://localhost:4318"
_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
#: Loggers that write a line for each batch, each retry and each span too many; `quiet` keeps them out of the log.
_EXPORTER: Final = "opentelemetry.exporter.otlp.proto.http.trace_exporter"
_TALKATIVE: Final = (_EXPORTER, "opentelemetry.sdk._shared_internal")


class _SampledAttempt(NamedTuple):
    """An attempt in OpenTelemetry's queue, in place of its spans, which the exporting thread makes.

    Attributes:
        attempt: that has ended.
        offset: nanoseconds from the attempt's clock to the wall's.
        context: tells the queue that the attempt was sampled.
    """

    attempt: Attempt
    offset: int
    context: SpanContext = SpanContext(1, 1, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


class AttemptTraces:
    """An observer that traces some of the attempts, for as long as its context is open.

    The event loop only puts attempts into the queue of OpenTelemetry's batch thread. The exporter makes their spans in that thread.

    Attributes:
        dropped: sampled attempts for which the queue had no room.
        exporter: counts the exported spans.
    """

    def __init__(self, sampler: Sampler, exporter: SpanExporter, resource: Resource, target: str) -> None:
        """Trace nothing yet.

        Args:
            sampler: chooses attempts.
            exporter: exporter of spans.
            resource: describes this process.
            target: host and port of the collector, for log lines.
        """
        self.dropped = 0
        self._most_waiting = _number("OTEL_BSP_MAX_QUEUE_SIZE", MOST_WAITING)
        self.exporter = WatchedExporter(exporter, resource, target)
        self._sampler = sampler
        self._new_trace_id = RandomIdGenerator().generate_trace_id
        self._handed = 0
        self._quiet = contextlib.ExitStack()
        self._ended = asyncio.Event()

    @classmethod
    def exporting(cls, rate_per_million: int | None, identity: str) -> Self:
        """Make traces that are exported by OTLP, set up by the flag and OpenTelemetry's environment variables.

        Returns:
            Traces that are not open yet.

        Raises:
            InputError: OpenTelemetry cannot read the variables.
        """
        try:
            exporter, resource = OTLPSpanExporter(), resource_of(identity)
            sampler = sampler_of(rate_per_million)
        except Exception as problem:
            raise InputError(f"tracing: OpenTelemetry cannot be set up as the environment says (OTEL_...): {problem}") from problem
        return cls(sampler, exporter, resource, _target())

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._quiet.enter_context(quiet(self.exporter.heard))
        self._batches = BatchSpanProcessor(
            self.exporter, max_queue_size=self._most_waiting, max_export_batch_size=min(_BATCH, self._most_waiting)
        )
        _log.info("attempts are traced (%s), spans go to %s", self._sampler.get_description(), self.exporter.target)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        # Not a thread of the loop's executor: the loop would wait for it when it closes.
        threading.Thread(target=self._end, name="traces", daemon=True).start()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(END_SECONDS):
                await self._ended.wait()
        lost, dropped = self.exporter.made - self.exporter.exported, self.dropped + self._waiting()
        if lost or dropped:
            _log.warning("traces: %d spans were not exported, %d attempts not made into spans: %s", lost, dropped, self.exporter.reason)

    def attempt_ended(self, attempt: Attempt) -> None:
        """Sample an attempt that has ended, and queue it for export."""
        if self._sampler.should_sample(None, self._new_trace_id(), ROOT).decision is not Decision.RECORD_AND_SAMPLE:
            return
        if self._waiting() >= self._most_waiting:
            self.dropped += 1
        else:
            self._handed += 1
            self._batches.on_end(cast(Any, _SampledAttempt(attempt, time.time_ns() - time.monotonic_ns())))

    def pod_entered(self, place: str, event: str) -> None:
        """Do nothing, because moves in the queue are not traced."""

    def _waiting(self) -> int:
        return self._handed - self.exporter.taken

    def _end(self) -> None:
        cast(Callable[[], None], self._batches.shutdown)()
        self._quiet.close()
        with contextlib.suppress(RuntimeError):  # the loop was closed before the export ended
            self._loop.call_soon_threadsafe(self._ended.set)


class WatchedExporter(SpanExporter):
    """Makes spans of attempts and has another exporter export them. A line says when exports begin to fail, and when they work again.

    Attributes:
        taken: attempts taken from the queue.
        made: spans made of them.
        exported: spans that the other exporter has sent.
        failed: spans that it could not send.
        target: host and port of the collector, for log lines.
    """

    def __init__(self, exporter: SpanExporter, resource: Resource, target: str) -> None:
        self.taken = self.made = self.exported = self.failed = 0
        self.target = target
        self._exporter = exporter
        self._away_since = 0
        self._away = False
        self._heard: deque[str] = deque(maxlen=2)
        self._spans = InMemorySpanExporter()
        # The attempts that come here were sampled in the event loop's thread already.
        provider = TracerProvider(sampler=ALWAYS_ON, resource=resource, shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._spans))
        self._tracer = provider.get_tracer(_SERVICE, __version__)

    def heard(self, message: str) -> None:
        """Keep a message of the exporter, which may be the reason of a failure."""
        self._heard.append(cut(message, _LONGEST_REASON))

    @property
    def reason(self) -> str:
        """The last two messages of the exporter: of a failed try, and of giving up."""
        return "; ".join(dict.fromkeys(self._heard)) or "no reason was given"

    def export(self, attempts: Sequence[Any]) -> SpanExportResult:
        """Export the spans of attempts; spans that the collector does not take are dropped."""
        spans, most = self._spans_of(attempts), _number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", _SPANS_IN_REQUEST)
        results = [self._request(spans[start : start + most]) for start in range(0, len(spans), most)]
        return SpanExportResult.FAILURE if SpanExportResult.FAILURE in results else SpanExportResult.SUCCESS

    def _request(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
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
        """End the other exporter."""
        self._exporter.shutdown()

    def _spans_of(self, attempts: Sequence[_SampledAttempt]) -> Sequence[ReadableSpan]:
        for attempt, offset, _ in attempts:
            try:
                export_spans(self._tracer, attempt, offset)
            except Exception:  # noqa: BLE001 - one attempt that cannot be traced must not stop the next
                _log.exception("an attempt could not be traced")
        spans = self._spans.get_finished_spans()
        self._spans.clear()
        self.made += len(spans)
        self.taken += len(attempts)
        return spans

    def _fails(self) -> None:
        if not self._away:
            self._away, self._away_since = True, self.failed
            _log.warning("traces are not exported to %s, spans are dropped: %s", self.target, self.reason)

    def _works_again(self) -> None:
        if self._away:
            self._away = False
            _log.warning("traces are exported to %s again, %d spans were dropped", self.target, self.failed - self._away_since)


def sampler_of(rate_per_million: int | None) -> Sampler:
    """Return the sampler of the flag's rate; without a flag, the one that OTEL_TRACES_SAMPLER names."""
    if rate_per_million is None:
        return TracerProvider(shutdown_on_exit=False).sampler
    return TraceIdRatioBased(rate_per_million / MILLION)


def resource_of(identity: str) -> Resource:
    """Return the OpenTelemetry resource of this replica. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES override it."""
    ours = Resource({"service.name": _SERVICE, "service.version": __version__, "service.instance.id": identity})
    return ours.merge(OTELResourceDetector().detect())


@contextlib.contextmanager
def quiet(heard: Callable[[str], None]) -> Iterator[None]:
    """Pass the messages of OpenTelemetry's exporter to `heard`, and not to the log, for as long as the block runs."""

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
    """Return scheme, host and port of the collector, without the rest of its address, which may hold a password."""
    url = next((found for each in _ENDPOINTS if (found := os.environ.get(each))), _DEFAULT_ENDPOINT)
    try:
        parts = urlsplit(url)
        return printable(f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else ""))
    except ValueError:
        return "an address that is none"


def _number(variable: str, default: int) -> int:
    """Return the number in an environment variable, or the default if it is no number above 0."""
    text = os.environ.get(variable, "").strip()
    return (int(text) if text.isascii() and text.isdigit() else 0) or default
