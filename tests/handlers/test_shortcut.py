"""The shortcut past Kopf's causes: there, used for pods alone, and harmless when a handler fails or Kopf has moved."""

from __future__ import annotations

import logging
from types import ModuleType
from typing import Any

import pytest
from kopf._core.reactor import processing

from placewright.handlers import shortcut, watching
from placewright.handlers.engine import Engine

from .stage import Stage, operator


def kopfs_way(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The plurals of the resources whose events took Kopf's own way from here on."""
    seen: list[str] = []
    original = processing.process_resource_event

    async def noted(*, resource: Any, **rest: Any) -> str | None:
        seen.append(resource.plural)
        return await original(resource=resource, **rest)

    monkeypatch.setattr(processing, "process_resource_event", noted)
    # The signature tells whether the shortcut may be taken, and the spy has none.
    monkeypatch.setattr(shortcut, "kopf_allows_it", lambda: True)
    return seen


def test_the_installed_kopf_allows_it() -> None:
    """Fails when Kopf's processor of events moved or is called in another way: then see `shortcut.py`."""
    assert shortcut.kopf_allows_it()


def test_a_kopf_without_its_processor_or_with_another_one_does_not_allow_it() -> None:
    renamed, changed = ModuleType("renamed"), ModuleType("changed")
    changed.process_resource_event = lambda *, resource, event: None  # type: ignore[attr-defined]
    assert not shortcut.kopf_allows_it(None)
    assert not shortcut.kopf_allows_it(renamed)
    assert not shortcut.kopf_allows_it(changed)


async def test_pods_take_it_and_profiles_do_not(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = kopfs_way(monkeypatch)
    async with operator(stage):
        names = stage.pods(5)
        await stage.until(lambda: stage.placed(*names))
    assert "schedulingprofiles" in seen
    assert "pods" not in seen


async def test_where_kopf_has_moved_pods_are_placed_all_the_same(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    seen = kopfs_way(monkeypatch)
    monkeypatch.setattr(shortcut, "kopf_allows_it", lambda: False)
    async with operator(stage):
        names = stage.pods(5)
        await stage.until(lambda: stage.placed(*names))
    assert "pods" in seen
    assert caplog.text.count("events of pods take the long way") == 1


async def test_an_event_whose_handling_fails_is_logged_and_the_next_one_is_taken(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(engine: Engine, event: Any) -> None:
        if event["object"]["metadata"]["name"] == "cursed":
            raise RuntimeError("no")
        watching.take_pod_event(engine, event)

    monkeypatch.setattr("placewright.handlers.kopfrunning.take_pod_event", failing)
    with caplog.at_level(logging.ERROR):
        async with operator(stage):
            stage.pod("cursed")
            await stage.until(lambda: "the handler of a pod's event failed" in caplog.text)
            stage.pod("web")
            await stage.until(lambda: stage.placed("web"))


async def test_kopf_has_its_own_processor_back_once_it_is_started(stage: Stage) -> None:
    before = processing.process_resource_event
    async with operator(stage):
        stage.pod("web")
        await stage.until(lambda: stage.placed("web"))
        assert processing.process_resource_event is before
