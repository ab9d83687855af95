"""Traces of attempts: what the spans say, that a collector gets them, and that one which is away costs nothing but spans."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, Sampler
from opentelemetry.trace import StatusCode

from handlers.stage import Stage
from observability.test_logs_process import running
from placewright.api.bad_input import InputError
from placewright.cli.main import main
from placewright.engine.companions import no_companions
from placewright.observability import tracing, tracingexport
from placewright.observability.tracing import RATE_FLAG
from placewright.observability.tracingexport import AttemptTraces, resource_of, sampler_of
from ports import reserved_port
from scheduler.makers import REFUSED, World, node, pod

#: Spans that are ready to go wait no longer than this, milliseconds, and for an answer this, seconds.
QUICKLY = {"OTEL_BSP_SCHEDULE_DELAY": "50", "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}


@pytest.fixture(autouse=True)
def _no_leftovers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    for name, value in QUICKLY.items():
        monkeypatch.setenv(name, value)
    for name in ("no_proxy", "NO_PROXY"):  # OpenTelemetry's exporter goes through a proxy even to this machine
        monkeypatch.setenv(name, "127.0.0.1")


async def traced(world: World, sampler: Sampler = ALWAYS_ON) -> list[ReadableSpan]:
    """The spans of one attempt."""
    exporter = InMemorySpanExporter()
    async with AttemptTraces(sampler, exporter, resource_of("us"), "memory") as traces:
        world.listening.append(traces)
        await world.attempt()
    return list(exporter.get_finished_spans())


def by_name(spans: list[ReadableSpan]) -> dict[str, ReadableSpan]:
    return {span.name: span for span in spans}


# --- the spans -----------------------------------------------------------------------------------------------------------------------


async def test_an_attempt_is_one_trace_with_the_queue_and_every_step_below_its_root() -> None:
    world = World().nodes(node("a"), node("b")).pods(pod("web"))
    world.now += 2.5
    spans = await traced(world)
    [root] = [span for span in spans if span.parent is None]
    children = [span for span in spans if span.parent is not None]
    assert root.name == "schedule pod"
    assert {span.context.trace_id for span in spans} == {root.context.trace_id}
    assert {span.parent.span_id for span in children if span.parent} == {root.context.span_id}
    points = ["PreFilter", "Filter", "PreScore", "Score", "Reserve", "Permit", "PreBind", "Bind", "PostBind"]
    assert [span.name for span in children] == ["queue", *points]


async def test_the_root_says_which_pod_went_where_and_who_decided() -> None:
    world = World().nodes(node("a"), node("b")).pods(pod("web"))
    root = by_name(await traced(world))["schedule pod"]
    [(_, uid, bound, decision)] = world.binder.bound
    assert decision is not None
    assert dict(root.attributes or {}) == {
        "k8s.pod.name": "web", "k8s.namespace.name": "default", "k8s.pod.uid": uid, "k8s.node.name": bound,
        "placewright.profile": decision.profile, "placewright.generation": decision.generation, "placewright.attempt": 1,
        "placewright.result": "scheduled", "placewright.score": decision.score, "placewright.runner_up": decision.runner_up,
        "placewright.feasible_nodes": 2,
    }  # fmt: skip


async def test_times_are_the_wall_clock_s_and_steps_lie_within_the_attempt() -> None:
    world = World().nodes(node("a"), node("b")).pods(pod("web"))
    began = time.time_ns()
    world.now = time.monotonic()

    def ticking() -> float:
        world.now += 0.25
        return world.now

    world.scheduler.attempts.clock = ticking
    spans = by_name(await traced(world))
    root, queue = spans["schedule pod"], spans["queue"]
    assert abs((queue.end_time or 0) - began) < 3600e9, "the clock that is taken for the wall's is not the scheduler's"
    for span in spans.values():
        assert root.start_time <= span.start_time < span.end_time <= root.end_time  # type: ignore[operator]
    steps = [span for name, span in spans.items() if name not in ("schedule pod", "queue")]
    assert [step.end_time - step.start_time for step in steps] == pytest.approx([0.25e9] * len(steps), abs=2)  # type: ignore[operator]


async def test_a_pod_that_fits_nowhere_is_no_error_and_has_its_message() -> None:
    world = World().nodes(node("a")).pods(pod("web").requests(cpu="900"))
    spans = by_name(await traced(world))
    root = spans["schedule pod"]
    assert root.status.status_code is StatusCode.UNSET
    assert root.attributes is not None
    assert (root.attributes["placewright.result"], root.attributes["placewright.plugins"]) == ("unschedulable", "NodeResourcesFit")
    assert str(root.attributes["placewright.message"]).startswith("0/1 nodes are available")
    assert "k8s.node.name" not in root.attributes
    assert spans["Filter"].attributes == {"placewright.outcome": "Unschedulable"}


async def test_a_binding_that_fails_is_an_error_of_the_step_and_of_the_attempt() -> None:
    world = World().nodes(node("a")).pods(pod("web"))
    world.binder.answers["uid-web"] = REFUSED
    spans = by_name(await traced(world))
    assert spans["Bind"].status.status_code is StatusCode.ERROR
    assert (spans["schedule pod"].status.status_code, spans["PreFilter"].status.status_code) == (StatusCode.ERROR, StatusCode.UNSET)


async def test_what_is_not_sampled_makes_no_spans() -> None:
    assert await traced(World().nodes(node("a")).pods(pod("web")), ALWAYS_OFF) == []


class Sizes(SpanExporter):
    """Notes how many spans each request has; the first one waits until it may go."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.may_go = threading.Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.may_go.wait(30)
        self.sizes.append(len(spans))
        return SpanExportResult.SUCCESS


async def test_requests_have_as_many_spans_as_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "4")
    exporter = Sizes()
    exporter.may_go.set()
    world = World().nodes(node("a")).pods(pod("web"))
    async with AttemptTraces(ALWAYS_ON, exporter, resource_of("us"), "memory") as traces:
        world.scheduler.binding.observers.members.append(traces)
        await world.attempt()
    assert exporter.sizes == [4, 4, 1]


async def test_attempts_beyond_those_that_may_wait_are_dropped_and_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "2")
    exporter = Sizes()
    ended: list[Any] = []
    world = World().nodes(node("a")).pods(pod("web"))
    world.scheduler.binding.observers.members.append(Noting(ended))
    await world.attempt()
    async with AttemptTraces(ALWAYS_ON, exporter, resource_of("us"), "memory") as traces:
        traces.attempt_ended(ended[0])
        await until(lambda: traces.exporter.taken == 1)
        for _ in range(5):
            traces.attempt_ended(ended[0])
        assert traces.dropped == 3
        exporter.may_go.set()
    assert sum(exporter.sizes) == 3 * 9
    assert said(caplog)[-1].startswith("traces: 0 spans were not exported, 3 attempts not made into spans")


class Noting:
    """An observer that keeps attempts."""

    def __init__(self, ended: list[Any]) -> None:
        self.ended = ended

    def attempt_ended(self, attempt: Any) -> None:
        self.ended.append(attempt)

    def pod_entered(self, place: str, event: str) -> None:
        """Nothing."""


@pytest.mark.parametrize(("rate", "least", "most"), [(0, 0, 0), (100_000, 500, 1500), (1_000_000, 10_000, 10_000)])
def test_so_many_in_a_million_are_sampled(rate: int, least: int, most: int) -> None:
    sampler, new_id = sampler_of(rate), tracingexport.RandomIdGenerator().generate_trace_id
    sampled = sum(sampler.should_sample(None, new_id(), "x").decision.value > 0 for _ in range(10_000))
    assert least <= sampled <= most


# --- a collector -----------------------------------------------------------------------------------------------------------------------


class Collector:
    """An OTLP receiver over HTTP on loopback."""

    def __init__(self) -> None:
        self.requests: list[ExportTraceServiceRequest] = []
        self.status = 200
        self.url = ""

    async def take(self, request: web.Request) -> web.Response:
        if self.status == 200:
            self.requests.append(ExportTraceServiceRequest.FromString(await request.read()))
        return web.Response(status=self.status)

    def spans(self) -> list[Any]:
        scopes = (scope for each in self.requests for resource in each.resource_spans for scope in resource.scope_spans)
        return [span for scope in scopes for span in scope.spans]

    def resources(self) -> list[dict[str, Any]]:
        return [values(resource.resource.attributes) for each in self.requests for resource in each.resource_spans]


def values(attributes: Any) -> dict[str, Any]:
    def value(of: AnyValue) -> Any:
        return getattr(of, of.WhichOneof("value") or "string_value")

    found: list[KeyValue] = list(attributes)
    return {each.key: value(each.value) for each in found}


@asynccontextmanager
async def collecting() -> AsyncIterator[Collector]:
    collector = Collector()
    app = web.Application()
    app.router.add_post("/v1/traces", collector.take)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        collector.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield collector
    finally:
        await runner.cleanup()


async def until(condition: Any, seconds: float = 30.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what changes, changes in another thread
            await asyncio.sleep(0.02)


async def test_a_collector_gets_the_trace_and_who_sent_it(stage: Stage, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "k8s.cluster.name=test")
        async with running(stage, tmp_path, RATE_FLAG, "1000000") as process:
            stage.pod("web")
            await stage.until(lambda: stage.placed("web"))
            await until(lambda: any(span.name == "schedule pod" for span in collector.spans()))
        assert process.exit_code == 0
    [root] = [span for span in collector.spans() if span.name == "schedule pod"]
    found = values(root.attributes)
    assert (found["k8s.pod.name"], found["k8s.node.name"]) == ("web", stage.node_of("web"))
    assert abs(root.end_time_unix_nano - time.time_ns()) < 300e9
    below = [span for span in collector.spans() if span.parent_span_id == root.span_id]
    assert {span.name for span in below} >= {"queue", "Filter", "Bind"}
    resource = collector.resources()[0]
    assert (resource["service.name"], resource["k8s.cluster.name"]) == ("placewright", "test")
    assert resource["service.instance.id"]


async def test_the_environment_names_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    assert resource_of("us").attributes["service.name"] == "placewright"
    monkeypatch.setenv("OTEL_SERVICE_NAME", "the-other-scheduler")
    assert resource_of("us").attributes["service.name"] == "the-other-scheduler"


@pytest.mark.parametrize("text", ["half a pair \ud800", "x" * 1_000_000, "\x00\x1b"])
async def test_no_text_costs_a_batch(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World().nodes(node("a")).pods(pod("odd").requests(cpu="900"), pod("web"))
    async with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        async with AttemptTraces.exporting(1_000_000, "us") as traces:
            world.listening.insert(0, Spoiling(text))
            world.listening.append(traces)
            await world.attempt()
            await world.attempt()
            await until(lambda: len(collector.spans()) >= 12)
        assert traces.exporter.failed == 0
    messages = [values(span.attributes).get("placewright.message") for span in collector.spans() if span.name == "schedule pod"]
    assert sum(message is not None for message in messages) == 1
    assert max(len(message or "") for message in messages) < 3000


class Spoiling:
    """An observer that gives failed attempts a message that a plugin might have given them."""

    def __init__(self, message: str) -> None:
        self.message = message

    def attempt_ended(self, attempt: Any) -> None:
        if attempt.failure is not None:
            attempt.failure.message = self.message

    def pod_entered(self, place: str, event: str) -> None:
        """Nothing."""


@pytest.fixture(autouse=True)
async def _nobody_exports_any_more() -> AsyncIterator[None]:
    """The end of tracing does not wait for whoever exports; here it must, or what they say then stands in the log of another test."""
    yield
    exporting = [thread for thread in threading.enumerate() if thread.name == "traces" or thread.name.startswith("Otel")]
    for thread in exporting:
        await asyncio.to_thread(thread.join, 30)
    assert not any(thread.is_alive() for thread in exporting)


# --- one that is away ---------------------------------------------------------------------------------------------------------------------


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


async def test_a_collector_that_is_away_costs_spans_and_is_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://somebody:secret@127.0.0.1:{reserved_port()}")
    world = World().nodes(node("a").offers(cpu="100")).pods(*(pod(f"web-{i}") for i in range(6)))
    async with AttemptTraces.exporting(1_000_000, "us") as traces:
        world.listening.append(traces)
        for wave in range(3):
            await world.attempt()
            await world.attempt()
            await until(lambda: traces.exporter.failed > wave * 18)  # noqa: B023
    assert all(world.node_of(f"web-{i}") == "a" for i in range(6))
    away = [line for line in said(caplog) if "traces are not exported to http://127.0.0.1:" in line]
    assert len(away) == 1
    assert "secret" not in caplog.text
    assert said(caplog)[-1].startswith("traces: 54 spans were not exported")
    assert len(said(caplog)) == 2


async def test_a_collector_that_comes_back_is_told_with_what_was_lost(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = World().nodes(node("a")).pods(pod("first"), pod("second"))
    async with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        collector.status = 400
        async with AttemptTraces.exporting(1_000_000, "us") as traces:
            world.listening.append(traces)
            await world.attempt()
            await until(lambda: traces.exporter.failed)
            lost = traces.exporter.failed
            collector.status = 200
            await world.attempt()
            await until(lambda: traces.exporter.exported)
    [not_exported, again, *_] = said(caplog)
    assert "400" in not_exported
    assert again.endswith(f"again, {lost} spans were dropped")
    assert traces.exporter.exported + traces.exporter.failed == 18


async def test_the_end_does_not_wait_for_a_collector_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracingexport, "END_SECONDS", 0.2)
    asked = asyncio.Event()
    done = asyncio.Event()

    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await done.wait()
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")  # after which nobody tries again
        writer.close()

    server = await asyncio.start_server(never, "127.0.0.1", 0)  # ends with the loop: who exports still has to be answered
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "60")
    world = World().nodes(node("a")).pods(pod("web"))
    async with AttemptTraces.exporting(1_000_000, "us") as traces:
        world.listening.append(traces)
        await world.attempt()
        await asyncio.wait_for(asked.wait(), 30)
        began = time.monotonic()
    assert time.monotonic() - began < 20, "two seconds are promised"
    done.set()


# --- whether anything is traced ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rate", "environ", "wanted"),
    [
        (None, {}, False),
        (None, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, False),
        (None, {"OTEL_TRACES_SAMPLER": "always_on"}, True),
        (0, {"OTEL_TRACES_SAMPLER": "always_on"}, False),
        (10, {}, True),
        (10, {"OTEL_SDK_DISABLED": "true"}, False),
        (10, {"OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_the_flag_or_a_sampler_switches_it_on(rate: int | None, environ: dict[str, str], wanted: bool) -> None:
    assert (tracing.tracing(rate, environ) is not no_companions) == wanted


def test_without_a_flag_the_environment_s_sampler_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0.25")
    assert sampler_of(None).get_description() == "TraceIdRatioBased{0.25}"


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the extra is not installed."""
    real = importlib.util.find_spec

    def find(name: str, package: str | None = None) -> Any:
        if name.startswith("opentelemetry"):
            raise ModuleNotFoundError(name)
        return real(name, package)

    monkeypatch.setattr(tracing, "find_spec", find)


def test_the_flag_without_the_extra_is_one_line_that_says_what_to_install(bare: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", RATE_FLAG, "1000", "--kubeconfig", "/nowhere"]) == 2
    error = "found 1000, but OpenTelemetry is not installed; allowed after pip install 'placewright[otel]'"
    assert capsys.readouterr().err == f"placewright: error: {RATE_FLAG}: {error}\n"


def test_an_environment_made_for_others_is_no_error_without_the_extra(bare: None, caplog: pytest.LogCaptureFixture) -> None:
    assert tracing.tracing(None, {"OTEL_TRACES_SAMPLER": "always_on"}) is no_companions
    assert "nothing is traced: OpenTelemetry is not installed" in said(caplog)[0]


@pytest.mark.parametrize("number", ["-1", "1000001", "all", "0.5"])
def test_a_rate_that_cannot_be_is_refused(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", f"{RATE_FLAG}={number}"]) == 2
    assert RATE_FLAG in capsys.readouterr().err


@pytest.mark.parametrize(
    ("environ", "error"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "OTEL_TRACES_EXPORTER: found 'zipkin'; allowed otlp, or none"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "OTEL_EXPORTER_OTLP_PROTOCOL: found 'grpc'; allowed http/protobuf"),
    ],
)
def test_what_is_not_spoken_is_refused(environ: dict[str, str], error: str) -> None:
    with pytest.raises(InputError) as refused:
        tracing.tracing(1, environ)
    assert str(refused.value).startswith(error)


def test_the_scheduler_runs_without_opentelemetry() -> None:
    program = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "import placewright.cli.main, placewright.cli.run, placewright.handlers.operator, placewright.observability.tracing\n"
        "import placewright.observability.decisionlog, placewright.serving.endpoints\n"
        "print(placewright.observability.tracing.installed())"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert (ended.stdout, ended.stderr) == ("False\n", "")
