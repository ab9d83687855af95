"""SIGUSR2: compare, then everything to the log, bounded and harmless to a terminal."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable

import pytest

from handlers.stage import Running, Stage, operator
from kubesandbox.faults import Rule
from placewright.api.decode import convert
from placewright.api.objects import Node, NodeName, Pod
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.engine import debugsignal
from placewright.engine.debuglines import MOST_NAMES, cache_lines, queue_lines
from placewright.engine.debugsignal import Debugger, on_debug_signal
from placewright.queue.nominator import Nominator
from placewright.queue.queue import SchedulingQueue

LAST = "debug: queue: every pod is in exactly one place"


def debug_lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [text for record in caplog.records if (text := record.getMessage()).startswith("debug: ")]


async def signalled(stage: Stage, caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the signal makes the operator say."""
    caplog.set_level("INFO")
    caplog.clear()
    os.kill(os.getpid(), signal.SIGUSR2)
    await stage.until(lambda: LAST in debug_lines(caplog), "the dump is complete")
    return debug_lines(caplog)


async def settled(stage: Stage, running: Running) -> list[str]:
    names = stage.pods(2)
    stage.pod("big", cpu="80")
    await stage.until(lambda: all(stage.show(name)["status"].get("phase") == "Running" for name in names))
    await stage.until(lambda: stage.condition("big") and running.agrees_with(stage))
    return names


async def test_the_signal_compares_and_then_tells_everything(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    before = signal.getsignal(signal.SIGUSR2)
    async with operator(stage) as running:
        names = await settled(stage, running)
        lines = await signalled(stage, caplog)
        assert lines[0] == "debug: compared with the API server: no difference"
        assert lines[1] == f"debug: replica {running.engine.leading.replica.identity} is active"
        assert "debug: profile default of placewright: generation 1 decides, 1 is Active" in lines
        assert "debug: cached nodes: 3; pods on nodes: 2; of these assumed: 0" in lines
        assert "debug: queue: activeQ:0; backoffQ:0; unschedulablePods:1" in lines
        assert "debug: waiting pods decided afresh: 1; forgotten: 0" in lines
        uid = stage.show("big")["metadata"]["uid"]
        assert any(line.startswith(f"debug: pod default/big uid {uid} of placewright: unschedulable; attempts ") for line in lines)
        (home,) = {stage.node_of(names[0])}
        (told,) = [line for line in lines if line.startswith(f"debug: node {home}: ")]
        assert "allocatable cpu 4000, memory 17179869184" in told
        assert f"default/{names[0]}" in told
    assert signal.getsignal(signal.SIGUSR2) is before


async def test_differences_are_mended_before_they_are_told(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    async with operator(stage) as running:
        await settled(stage, running)
        running.impatient()
        running.engine.deciding.cluster.remove_node(NodeName("node-2"))
        lines = await signalled(stage, caplog)
        assert lines[0] == "debug: compared with the API server: nodes missed 1"
        assert any(line.startswith("debug: node node-2: ") for line in lines)


async def test_without_an_answer_of_the_api_server_the_dump_comes_all_the_same(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    async with operator(stage) as running:
        await settled(stage, running)
        stage.sandbox.faults.add(Rule(method="GET", path="/api/v1/nodes", watch=False, code=503))
        lines = await signalled(stage, caplog)
        assert lines[0].startswith("debug: cache and queue could not be compared with the API server: 503 ServiceUnavailable")
        assert len(lines) > 5


async def test_asked_twice_while_it_works_it_tells_twice_at_most(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    async with operator(stage) as running:
        await settled(stage, running)
        await signalled(stage, caplog)
        for _ in range(10):
            os.kill(os.getpid(), signal.SIGUSR2)
        await stage.until(lambda: debug_lines(caplog).count(LAST) >= 2)
        assert debug_lines(caplog).count(LAST) <= 3


# --- what is told --------------------------------------------------------------------------------------------------------------------


def cluster_of(count: int, pods_on_first: int = 0) -> Cluster:
    cluster = Cluster()
    for number in range(count):
        cluster.set_node(convert({"metadata": {"name": f"n{number}"}, "status": {"allocatable": {"cpu": "4", "pods": "110"}}}, Node))
    for number in range(pods_on_first):
        cluster.set_pod(made(f"p{number}", node="n0"))
    return cluster


def made(name: str, node: str = "") -> PodInfo:
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": "1"}
    container = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
    return PodInfo(convert({"metadata": meta, "spec": {"nodeName": node, "containers": [container]}}, Pod))


def queue_of(*names: str) -> SchedulingQueue:
    queue = SchedulingQueue(lambda _: None, lambda: 0.0)
    for name in names:
        queue.add(made(name))
    return queue


def contradictions(lines: Iterable[str]) -> list[str]:
    return [line.removeprefix("debug: contradiction: ") for line in lines if line.startswith("debug: contradiction: ")]


def test_of_many_nodes_and_pods_the_first_are_told_and_how_many_more_there_are() -> None:
    lines = list(cache_lines(cluster_of(10, pods_on_first=MOST_NAMES + 5), Nominator(), most=3))
    assert [line.split(":")[1] for line in lines[1:-1]] == [" node n0", " node n1", " node n2"]
    assert lines[-1] == "debug: and 7 more nodes"
    assert "and 5 more; nominated: none" in lines[1]
    lines = list(queue_lines(queue_of(*(f"p{number}" for number in range(8))), most=5))
    assert sum(line.startswith("debug: pod ") for line in lines) == 5
    assert "debug: and 3 more pods" in lines


def test_a_nomination_is_told_at_the_node_and_at_the_pod() -> None:
    queue = queue_of("web")
    queue.nominate(made("web"), NodeName("n0"))
    assert list(cache_lines(cluster_of(1), queue.nominator))[1].endswith("; nominated: default/web")
    (line,) = [line for line in queue_lines(queue) if line.startswith("debug: pod ")]
    assert line.endswith("; nominated to n0")


def test_a_queue_that_contradicts_itself_says_how() -> None:
    queue = queue_of("web")
    queue._uids.clear()
    lines = list(queue_lines(queue))
    assert contradictions(lines) == ["default/web is indexed as None, but uid-web is in unschedulable"]
    assert lines[-1].startswith("debug: contradiction: ")
    assert LAST not in lines


def test_columns_that_do_not_add_up_are_told() -> None:
    cluster = cluster_of(1, pods_on_first=2)
    assert contradictions(cache_lines(cluster, Nominator())) == []
    cluster.resources.column("cpu").requested[0] += 500
    found = contradictions(cache_lines(cluster, Nominator()))
    assert found == ["node n0 counts 2500 of cpu as requested, its pods ask for 2000"]


async def test_names_that_would_move_a_cursor_are_written_as_escapes(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    async with operator(stage) as running:
        await settled(stage, running)
        running.engine.deciding.queue.add(made("\x1b[2Jwiped\nagain"))
        debugger = Debugger(running.engine.leading, running.engine.deciding, running.engine.reading)
        await debugger._dump()
        assert not any("\x1b" in line or "\n" in line for line in debug_lines(caplog))
        assert any("\\x1b[2Jwiped\\nagain" in line for line in debug_lines(caplog))


async def test_where_there_is_no_such_signal_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debugsignal, "DEBUG_SIGNAL", None)
    before = signal.getsignal(signal.SIGUSR2)
    debugsignal.ignore_debug_signal()
    with on_debug_signal(lambda: None):
        assert signal.getsignal(signal.SIGUSR2) is before
