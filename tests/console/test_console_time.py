"""The time line of a recording, and the shadows of a file's profiles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from placewright.api.objects import NodeName
from placewright.api.profile import ShadowStatus
from placewright.serving.rights import ALL_NAMESPACES, Rights
from placewright.shadow.figures import Disagreement
from placewright_console.pages.shadowrows import MOST_NAMED, SeenShadow, shadow_rows
from placewright_console.pages.timeline import GENERATIONS, OTHERS
from placewright_lab.consolefiles.additions import open_file
from placewright_lab.consolefiles.openedfile import FileSource

from .makers import a_node, a_pod, claim_profile, file_of


def recording(path: Path, *changes: tuple[float, str, Any]) -> FileSource:
    """A recording, all of it played."""
    file_of(path, [a_node("a", cpu=64), claim_profile(), a_pod("old", created="2026-11-23T11:00:00Z")], changes)
    source = open_file(path, 2**24)
    source._speed = 1e9
    while source.advance():
        pass
    return source


def told(item: Any, reason: str = "Unschedulable") -> Any:
    """The pod, with the condition that a scheduler writes."""
    return {**item, "status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": reason}]}}


def came_and_placed(at: float, name: str, scheduler: str = "default-scheduler", *, after: float = 2.0) -> list[tuple[float, str, Any]]:
    minute, second = divmod(int(at), 60)
    made = {"created": f"2026-11-23T12:{minute:02d}:{second:02d}Z", "schedulerName": scheduler}
    return [(at, "ADDED", a_pod(name, **made)), (at + after, "MODIFIED", a_pod(name, "a", **made))]


def stretches(source: FileSource) -> list[Any]:
    return sorted(row for key, row in source.sections(ALL_NAMESPACES)["time"].items() if key != GENERATIONS)


def test_a_recording_tells_what_was_placed_and_what_waited(tmp_path: Path) -> None:
    changes = [change for i in range(10) for change in came_and_placed(10.0 + i, f"web-{i}")]
    source = recording(tmp_path / "r", *sorted(changes, key=lambda each: each[0]), (600.0, "ADDED", a_pod("late")))
    rows = stretches(source)
    assert sum(row[2][1] for row in rows) == 10
    assert {each[0] for row in rows for each in row[3]} == {"default-scheduler"}
    assert 1.4 <= max(row[2][5] or 0 for row in rows) <= 2.9
    busy = next(row for row in rows if row[2][1])
    assert busy[2][1] / busy[1] == pytest.approx(1.0, abs=0.5)
    assert rows[-1][2][2][0] == 1.0, "one has waited from the beginning"
    assert rows[-1][0] + rows[-1][1] == pytest.approx(rows[0][0] + 600.0)
    assert source.sections(ALL_NAMESPACES)["about"]["can"] == ["time"]


def test_refusals_are_counted_once_for_each_condition_that_tells_one(tmp_path: Path) -> None:
    waits, gated = told(a_pod("web")), told(a_pod("gated"), "SchedulingGated")
    before, other = told(a_pod("old", created="2026-11-23T11:00:00Z")), told(a_pod("db", schedulerName="tenants-own-words"))
    again = told(a_pod("web"), "SchedulerError")
    changes = [(1.0, waits), (2.0, waits), (3.0, gated), (4.0, again), (5.0, before), (6.0, other), (7.0, a_pod("web", "a")), (90.0, gated)]
    source = recording(tmp_path / "r", *((at, "MODIFIED", item) for at, item in changes))
    rows = stretches(source)
    assert sum(row[2][0] - row[2][1] for row in rows) == 4, "web twice, for two reasons"
    assert sum(row[2][1] for row in rows) == 1
    by_profile = sorted((each[0], each[2] - each[3]) for row in rows for each in row[3] if each[2] > each[3])
    assert by_profile == [(OTHERS, 1), *[("default-scheduler", 1)] * 3]
    assert "refusals" in source.sections(ALL_NAMESPACES)["about"]["timeFigures"]


def test_what_was_refused_before_a_recording_began_is_not_counted(tmp_path: Path) -> None:
    path = file_of(tmp_path / "r", [a_node("a"), claim_profile(), told(a_pod("old"))], [(9.0, "ADDED", a_pod("late"))])
    source = open_file(path, 2**24)
    source._speed = 1e9
    while source.advance():
        pass
    assert sum(row[2][0] for row in stretches(source)) == 0


def test_pods_of_schedulers_without_a_profile_are_not_named(tmp_path: Path) -> None:
    source = recording(tmp_path / "r", *came_and_placed(1.0, "web", "tenants-own-words"), (90.0, "ADDED", a_pod("late")))
    told = {each[0] for row in stretches(source) for each in row[3]}
    assert told == {OTHERS, "default-scheduler"}


def test_another_generation_is_marked_and_has_its_own_sums(tmp_path: Path) -> None:
    newer = claim_profile()
    newer["metadata"]["generation"] = 4
    source = recording(
        tmp_path / "r",
        *came_and_placed(1.0, "web"),
        (30.0, "MODIFIED", newer),
        *came_and_placed(40.0, "db"),
        (90.0, "ADDED", a_pod("late")),
    )
    sections = source.sections(ALL_NAMESPACES)
    (mark,) = sections["marks"].values()
    assert mark["text"] == "generation 4 of profile default took effect, after generation 0"
    assert mark["at"] == sections["about"]["began"] + 30
    assert [(each[1], each[5]) for each in sections["time"][GENERATIONS]] == [(0, 1), (4, 1)]


def test_a_quiet_hour_is_one_stretch_that_thins_out_nothing(tmp_path: Path) -> None:
    source = recording(tmp_path / "r", *came_and_placed(1.0, "web"), *came_and_placed(3590.0, "db"))
    rows = stretches(source)
    assert [(row[1], row[2][1]) for row in rows] == [(15.0, 1), (3570.0, 0), (7.0, 1)]


def test_a_snapshot_has_no_time_line(tmp_path: Path) -> None:
    sections = open_file(file_of(tmp_path / "s", [a_node("a"), claim_profile()]), 2**20).sections(ALL_NAMESPACES)
    assert "time" not in sections
    assert sections["about"]["can"] == []


def test_a_shadow_of_a_file_is_told_by_its_status(tmp_path: Path) -> None:
    shadow = claim_profile("packed")
    shadow["spec"] = {"mode": "Shadow", "shadows": "default", "preset": "bin-packing"}
    regret = {"decisions": 9, "meanPoints": 16.11, "maxPoints": 40, "meanPercent": 4.87}
    figures = {"since": "2026-11-23T11:00:00Z", "pods": 10, "decided": 9, "agreementPercent": 33.3, "same": 3, "other": 6}
    shadow["status"] = {"shadow": {**figures, "regret": regret, "lastError": "pod secret/name"}}
    source = open_file(file_of(tmp_path / "s", [a_node("a"), claim_profile(), shadow]), 2**20)
    row = source.sections(ALL_NAMESPACES)["shadows"]["packed"]
    assert (row["beside"], row["agreement"], row["outcomes"]) == ("default", 33.3, [3, 6, 0, 0, 0])
    assert row["regret"] == [9, 16.11, 40, 4.87]
    assert row["lastError"] == "pod secret/name"
    assert source.sections(Rights.of(["shop"]))["shadows"]["packed"]["lastError"] == ""


def test_examples_of_hidden_namespaces_are_counted_and_not_named() -> None:
    differences = [Disagreement("shop", f"web-{i}", NodeName("a"), NodeName("b"), i) for i in range(30)]
    differences.append(Disagreement("bank", "vault", None, NodeName("b")))
    shadow = SeenShadow("packed", "default", 2, ShadowStatus(last_error="bank/vault"), differences)
    owner = shadow_rows([shadow], ALL_NAMESPACES)["packed"]
    assert owner["examples"][0] == ["bank", "vault", None, "b", None]
    assert len(owner["examples"]) == MOST_NAMED
    assert owner["hidden"] == 0
    tenant = shadow_rows([shadow], Rights.of(["shop"]))["packed"]
    assert tenant["examples"][0] == ["shop", "web-29", "a", "b", 29]
    assert tenant["hidden"] == 1
    assert b"vault" not in msgspec.json.encode(tenant)
