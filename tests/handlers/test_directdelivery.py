"""Direct delivery: the registered handler is what runs, for marked handlers alone, and Kopf's workers serve wherever it may not."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from types import ModuleType
from typing import Any

import kopf
import pytest
from kopf._core.reactor import processing

from placewright.api.profile import GROUP, PLURAL, VERSION
from placewright.handlers import events, kopftasks
from placewright.handlers.directdelivery import delivered_directly, direct_delivery, direct_handlers
from placewright.handlers.kopfparts import STREAM, KopfPart

from .stage import Stage, operator

PODS = kopf.Resource("", "v1", "pods", kind="Pod")
NODES = kopf.Resource("", "v1", "nodes", kind="Node")
PROFILES = kopf.Resource(GROUP, VERSION, PLURAL)
Told = list[tuple[str, Any]]


def pods_through_workers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The plurals of the resources whose events Kopf's workers processed from here on."""
    seen: list[str] = []
    original = processing.process_resource_event

    async def noted(*, resource: Any, **rest: Any) -> str | None:
        seen.append(resource.plural)
        return await original(resource=resource, **rest)

    monkeypatch.setattr(processing, "process_resource_event", noted)
    return seen


def registry_of(**handlers: Any) -> kopf.OperatorRegistry:
    """A registry with these `on.event` handlers of pods, in order, by their ids."""
    registry = kopf.OperatorRegistry()
    for name, handler in handlers.items():
        kopf.on.event("", "v1", "pods", id=name, registry=registry)(handler)
    return registry


@delivered_directly
async def direct(**_: Any) -> None:
    pass


async def ordinary(**_: Any) -> None:
    pass


# --- in an operator -------------------------------------------------------------------------------------------------------------------


async def test_the_registered_handler_runs_for_pods_without_workers_and_profiles_have_theirs(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = pods_through_workers(monkeypatch)
    ran: list[Any] = []

    @delivered_directly
    async def noted(event: Any, memo: kopf.Memo, **rest: Any) -> None:
        ran.append(memo.engine)
        await events.pod_event(event=event, memo=memo, **rest)

    monkeypatch.setattr(kopftasks, "_registry", lambda engine: declared_with(noted))
    async with operator(stage) as running:
        names = stage.pods(5)
        await stage.until(lambda: stage.placed(*names))
        assert set(ran) == {running.engine}
        assert len(ran) >= len(names)
    assert "schedulingprofiles" in seen
    assert "pods" not in seen


def declared_with(pod_handler: Any) -> kopf.OperatorRegistry:
    """The handlers of the operator, with another one for pods."""
    registry = kopftasks._handlers_of_pods()
    registry._watching._handlers.clear()
    kopf.on.event("", "v1", "pods", registry=registry)(pod_handler)
    kopf.on.event(GROUP, VERSION, PLURAL, registry=registry)(events.profile_event)
    return registry


async def test_where_kopf_has_moved_its_workers_call_the_same_handler(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    seen = pods_through_workers(monkeypatch)
    monkeypatch.setattr(STREAM, "_is_known", lambda value: False)
    async with operator(stage):
        names = stage.pods(5)
        await stage.until(lambda: stage.placed(*names))
    assert "pods" in seen
    assert caplog.text.count("Kopf's workers deliver the events of pods") == 1


async def test_a_handler_that_fails_is_logged_and_the_next_event_is_delivered(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    kept = events.take_pod_event

    def failing(engine: Any, event: Any) -> None:
        if event["object"]["metadata"]["name"] == "cursed":
            raise RuntimeError("no")
        kept(engine, event)

    monkeypatch.setattr(events, "take_pod_event", failing)
    with caplog.at_level(logging.ERROR):
        async with operator(stage):
            stage.pod("cursed")
            await stage.until(lambda: "an event of pods.v1 cursed could not be handled" in caplog.text)
            stage.pod("web")
            await stage.until(lambda: stage.placed("web"))
            assert not stage.placed("cursed")


# --- whose events are delivered ---------------------------------------------------------------------------------------------------------


def test_what_is_declared_for_pods_is_delivered_directly_and_what_is_declared_for_profiles_is_not() -> None:
    registry = kopf.get_default_registry()
    assert [one.fn for one in direct_handlers(registry, PODS)] == [events.pod_event]
    assert direct_handlers(registry, PROFILES) == []
    assert [one.fn for one in direct_handlers(kopftasks._handlers_of_pods(), PODS)] == [events.pod_event]


def test_all_marked_handlers_of_a_resource_are_called_in_the_order_of_their_registration() -> None:
    @delivered_directly
    async def second(**_: Any) -> None:
        pass

    assert [one.id for one in direct_handlers(registry_of(one=direct, two=second), PODS)] == ["one", "two"]
    assert direct_handlers(registry_of(one=direct), NODES) == []


def test_one_handler_that_is_not_marked_sends_all_of_its_resource_through_the_workers(caplog: pytest.LogCaptureFixture) -> None:
    assert direct_handlers(registry_of(one=direct, two=ordinary), PODS) == []
    assert "Kopf's workers deliver the events of pods.v1, which costs more" in caplog.text


@pytest.mark.parametrize("declare", [kopf.on.create, kopf.on.resume, kopf.on.delete, kopf.daemon, kopf.index])
def test_a_handler_of_another_kind_sends_its_resource_through_the_workers(declare: Any) -> None:
    registry = registry_of(one=direct)
    declare("", "v1", "pods", registry=registry)(ordinary)
    assert direct_handlers(registry, PODS) == []
    declare("", "v1", "nodes", registry=registry)(ordinary)
    assert direct_handlers(registry, NODES) == []


@pytest.mark.parametrize("narrowed", [{"labels": {"app": "web"}}, {"when": lambda **_: True}, {"field": "spec.nodeName"}])
def test_a_handler_that_is_narrowed_down_is_called_by_the_workers_which_judge_that(narrowed: dict[str, Any]) -> None:
    registry = kopf.OperatorRegistry()
    kopf.on.event("", "v1", "pods", registry=registry, **narrowed)(direct)
    assert not direct_handlers(registry, PODS)


def test_a_registry_that_has_changed_inside_leaves_events_to_the_workers(caplog: pytest.LogCaptureFixture) -> None:
    registry = registry_of(one=direct)
    del registry._spawning
    assert direct_handlers(registry, PODS) == []
    assert "this version of Kopf has changed inside" in caplog.text


def test_a_handler_that_asks_for_what_is_not_given_cannot_be_marked() -> None:
    async def greedy(spec: Any, patch: Any, **_: Any) -> None:
        pass

    async def closed(event: Any) -> None:
        pass

    def synchronous(**_: Any) -> None:
        pass

    with pytest.raises(TypeError, match="greedy asks for patch, spec: direct delivery gives event, memo, param, resource, type"):
        delivered_directly(greedy)
    for handler in (closed, synchronous):
        with pytest.raises(TypeError, match="a coroutine function that takes"):
            delivered_directly(handler)  # type: ignore[type-var]


# --- how ------------------------------------------------------------------------------------------------------------------------------


def kopfs_stream(*marks: Any) -> KopfPart:
    """A Kopf whose stream of any resource has 120 events, then these."""

    async def infinite_watch(*, resource: Any) -> AsyncIterator[Any]:
        for number in range(120):
            yield {"type": "ADDED", "object": number}
        for mark in marks:
            yield mark

    module = ModuleType("kopf_inside")
    module.infinite_watch = infinite_watch  # type: ignore[attr-defined]
    return KopfPart(module, "infinite_watch", STREAM._is_known)


async def test_events_come_in_order_and_kopfs_own_marks_stay_kopfs() -> None:
    told: list[Any] = []

    @delivered_directly
    async def noted(event: Any, **_: Any) -> None:
        told.append(event["object"])

    listed, bookmark = object(), {"type": "BOOKMARK", "object": {}}
    part = kopfs_stream(listed, bookmark, {"type": "DELETED", "object": 0})
    with direct_delivery(registry_of(one=noted), kopf.Memo(), part):
        stream: Any = part.module.infinite_watch  # type: ignore[union-attr]
        assert [each async for each in stream(resource=PODS)] == [listed, bookmark]
        assert len([each async for each in stream(resource=NODES)]) == 123
    assert told == [*range(120), 0]
    assert len([each async for each in stream(resource=PODS)]) == 123, "outside, it is Kopf's own"


async def test_a_handler_gets_what_kopf_would_give_it_of_what_it_asked_for(monkeypatch: pytest.MonkeyPatch, stage: Stage) -> None:
    """Once by the adapter, once by Kopf's workers: the same arguments, but for a memo that is a copy."""
    told: list[dict[str, Any]] = []

    @delivered_directly
    async def noted(type: Any, event: Any, resource: Any, memo: Any, param: Any, **_: Any) -> None:  # noqa: A002
        told.append({"type": type, "event": event, "resource": resource, "memo": dict(memo), "param": param})

    def registry(_: Any) -> kopf.OperatorRegistry:
        made = declared_with(noted)
        made._watching._handlers.clear()
        kopf.on.event("", "v1", "pods", param="a word", registry=made)(noted)
        return made

    stage.pod("web")
    monkeypatch.setattr(kopftasks, "_registry", registry)
    seen = pods_through_workers(monkeypatch)
    for known in (STREAM._is_known, lambda value: False):
        monkeypatch.setattr(STREAM, "_is_known", known)
        before = len(told)
        async with operator(stage):
            await stage.until(lambda before=before: len(told) > before)  # type: ignore[misc]
            told[-1]["memo"].pop("engine")
    assert seen.count("pods") == 1
    assert told[0] == told[1]
    assert told[0]["param"] == "a word"
