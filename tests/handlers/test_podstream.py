"""The shortcut past Kopf's workers: there, used for pods alone, and harmless when a handler fails or Kopf has moved."""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import AsyncIterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kopf._cogs.clients import api, watching
from kopf._core.reactor import processing

from placewright.engine.engine import Engine
from placewright.handlers import podstream
from placewright.handlers.events import take_pod_event

from .stage import Stage, operator


def pods_through_kopf(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The plurals of the resources whose events Kopf processed itself from here on."""
    seen: list[str] = []
    original = processing.process_resource_event

    async def noted(*, resource: Any, **rest: Any) -> str | None:
        seen.append(resource.plural)
        return await original(resource=resource, **rest)

    monkeypatch.setattr(processing, "process_resource_event", noted)
    return seen


def test_the_installed_kopf_allows_it() -> None:
    """Fails when Kopf's stream of events moved or is called in another way: then see `podstream.py`."""
    module = ModuleType("fresh")
    module.infinite_watch = kopfs_own_stream()  # type: ignore[attr-defined]
    assert podstream.kopf_allows_it(module)


def kopfs_own_stream() -> Any:
    """As Kopf defines it, whoever has replaced it in this process by now."""
    stream = watching.infinite_watch
    return getattr(stream, "_kopfs", stream)


def test_a_kopf_without_its_stream_or_with_another_one_does_not_allow_it() -> None:
    async def another(kind: str) -> AsyncIterator[str]:
        yield kind

    renamed, changed = ModuleType("renamed"), ModuleType("changed")
    changed.infinite_watch = another  # type: ignore[attr-defined]
    assert not podstream.kopf_allows_it(None)
    assert not podstream.kopf_allows_it(renamed)
    assert not podstream.kopf_allows_it(changed)


async def test_pods_take_it_and_profiles_do_not(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = pods_through_kopf(monkeypatch)
    async with operator(stage):
        names = stage.pods(5)
        await stage.until(lambda: stage.placed(*names))
    assert "schedulingprofiles" in seen
    assert "pods" not in seen


async def test_where_kopf_has_moved_pods_are_placed_all_the_same(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    seen = pods_through_kopf(monkeypatch)
    monkeypatch.setattr(podstream, "kopf_allows_it", lambda module: False)
    async with operator(stage):
        names = stage.pods(5)
        await stage.until(lambda: stage.placed(*names))
    assert "pods" in seen
    assert caplog.text.count("events of pods take the long way") == 1


async def test_events_come_in_order_and_what_is_kopfs_own_stays_kopfs() -> None:
    pods, others = SimpleNamespace(group="", plural="pods"), SimpleNamespace(group="", plural="nodes")
    listed, told = object(), []

    async def stream(*, resource: Any) -> AsyncIterator[Any]:
        for number in range(120):
            yield {"type": "ADDED", "object": number}
        yield listed
        yield {"type": "BOOKMARK", "object": {}}
        yield {"type": "DELETED", "object": 0}

    kopf = ModuleType("kopf")
    kopf.infinite_watch = stream  # type: ignore[attr-defined]
    with podstream.pods_go_directly_to(told.append, kopf):
        assert [each async for each in kopf.infinite_watch(resource=pods)] == [listed]
        assert len([each async for each in kopf.infinite_watch(resource=others)]) == 123
    assert [event["object"] for event in told] == [*range(120), 0]
    assert len([each async for each in kopf.infinite_watch(resource=pods)]) == 123, "outside, it is Kopf's own"


def test_the_installed_kopf_reads_lines_by_the_module_that_is_replaced() -> None:
    """Fails when Kopf's reading of lines moved: then see `podstream.py`."""
    assert "json.loads(line.decode" in inspect.getsource(api.stream)
    assert api.json is json or api.json.loads is podstream.loads
    fresh = ModuleType("fresh")
    fresh.json = json  # type: ignore[attr-defined]
    podstream.decode_quickly(fresh)
    assert fresh.json.loads is podstream.loads


def test_a_kopf_that_reads_lines_in_another_way_is_left_alone() -> None:
    without, other = ModuleType("without"), ModuleType("other")
    other.json = SimpleNamespace()  # type: ignore[attr-defined]
    for module in (without, other, None):
        podstream.decode_quickly(module)
    assert not hasattr(without, "json") and vars(other.json) == {}


TEXTS = st.text() | st.sampled_from(["\ud800", "\udfff\ud800", "\x00", "\u2028", "\U0001f600"])
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=8)


@given(value=VALUES, ascii_only=st.booleans())
def test_lines_are_read_as_the_standard_library_reads_them(value: Any, ascii_only: bool) -> None:
    line = json.dumps(value, ensure_ascii=ascii_only)
    assert repr(podstream.loads(line)) == repr(json.loads(line))


@pytest.mark.parametrize("line", ["", "{", '{"a": }', "[" * 100_000, "{} {}"])
def test_a_line_that_is_no_json_fails_as_kopf_knows_it(line: str) -> None:
    with pytest.raises((json.JSONDecodeError, RecursionError)):
        podstream.loads(line)


async def test_an_event_whose_handling_fails_is_logged_and_the_next_one_is_taken(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(engine: Engine, event: Any) -> None:
        if event["object"]["metadata"]["name"] == "cursed":
            raise RuntimeError("no")
        take_pod_event(engine, event)

    monkeypatch.setattr("placewright.handlers.kopftasks.take_pod_event", failing)
    with caplog.at_level(logging.ERROR):
        async with operator(stage):
            stage.pod("cursed")
            await stage.until(lambda: "the handler of a pod's event failed" in caplog.text)
            stage.pod("web")
            await stage.until(lambda: stage.placed("web"))
            assert not stage.placed("cursed")
