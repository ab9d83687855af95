"""Watch streams as the server keeps them: bookmarks, ends, breaks; what they say is asked in tests/contract."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from kubesandbox.storage import store as module
from kubesandbox.storage.reads import ListOptions, plain_view
from kubesandbox.storage.selectors import selection
from kubesandbox.storage.store import Watch
from lab.sandbox.makers import Core, Object, config_map


def open_watch(core: Core, plural: str, labels: str = "", fields: str = "", **options: Any) -> Watch:
    resource = core.type(plural)
    matches = selection(resource, labels, fields)
    return core.reads.watch(plain_view(resource), None, matches, ListOptions(**options))


async def heard(watch: Watch) -> list[tuple[str, Object]]:
    """Return the lines of the stream at this moment."""
    lines = (await asyncio.wait_for(watch.next(), 5)).splitlines()
    events = [msgspec.json.decode(line) for line in lines]
    return [(event["type"], event["object"]) for event in events]


def words(events: list[tuple[str, Object]]) -> list[tuple[str, str]]:
    return [(word, found["metadata"].get("name", "")) for word, found in events]


async def test_a_version_that_is_gone_ends_the_stream_with_a_410_event() -> None:
    core = Core()
    core.create("configmaps", config_map("a"))
    old = str(core.store.version - 1)
    core.store.compact()
    watch = open_watch(core, "configmaps", version=old)
    ((word, found),) = await heard(watch)
    assert (word, found["code"], found["reason"]) == ("ERROR", 410, "Expired")
    assert await watch.next() == b""
    assert len(core.watches) == 0


async def test_only_those_who_asked_get_bookmarks() -> None:
    core = Core()
    asked, silent = open_watch(core, "pods", bookmarks=True), open_watch(core, "pods")
    core.watches.bookmark_all()
    ((word, found),) = await heard(asked)
    assert (word, found["metadata"]["resourceVersion"]) == ("BOOKMARK", str(core.store.version))
    silent.close()
    assert await silent.next() == b""


async def test_what_was_said_before_a_stream_ends_is_still_delivered() -> None:
    core = Core()
    watch = open_watch(core, "configmaps")
    core.create("configmaps", config_map("a"))
    core.watches.close_all()
    core.create("configmaps", config_map("late"))
    assert words(await heard(watch)) == [("ADDED", "a")]
    assert await watch.next() == b""


async def test_a_broken_stream_delivers_nothing_more() -> None:
    core = Core()
    watch, other = open_watch(core, "configmaps"), open_watch(core, "pods")
    core.create("configmaps", config_map("a"))
    assert core.watches.abort_all("configmaps") == 1
    assert await watch.next() == b""
    assert watch.broken
    assert not other.closed


async def test_a_stream_is_cut_after_as_many_lines_as_were_asked_for() -> None:
    core = Core()
    core.watches.cut_after = 2
    watch = open_watch(core, "configmaps")
    for name in "abc":
        core.create("configmaps", config_map(name))
    assert words(await heard(watch)) == [("ADDED", "a"), ("ADDED", "b")]
    assert watch.cut
    assert await watch.next() == b""


async def test_a_watcher_too_far_behind_is_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_PENDING_LINES", 3)
    core = Core()
    watch = open_watch(core, "configmaps")
    for name in "abcde":
        core.create("configmaps", config_map(name))
    assert watch.broken


async def test_a_forgotten_watch_hears_nothing_and_may_be_forgotten_twice() -> None:
    core = Core()
    watch = open_watch(core, "configmaps")
    core.watches.forget(watch)
    core.watches.forget(watch)
    core.create("configmaps", config_map("a"))
    assert len(core.watches) == 0
    assert core.store.collection(("", "configmaps")).listeners == []
