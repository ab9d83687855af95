"""A snapshot or a recording, as the console shows it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from placewright.api.bad_input import InputError
from placewright.cli.main import main
from placewright.explain.nearestmiss import MOST_MISSES
from placewright.serving.rights import ALL_NAMESPACES
from placewright.testing import VirtualTime
from placewright_lab.consolefiles.additions import open_file
from placewright_lab.consolefiles.openedfile import FileSource

from .makers import HOSTILE, a_node, a_pod, claim_profile, file_of, shop


def settled(source: FileSource) -> Any:
    while source.advance():
        pass
    return source.sections(ALL_NAMESPACES)


def reasons(state: Any) -> dict[str, Any]:
    """By the first pod's name: sub-queue, number of pods, reasons."""
    return {row["pods"][0][0]: (row["place"], row["count"], row["reasons"]) for row in state["queue"].values()}


def test_waiting_pods_are_shown_with_the_reasons_that_keep_them(tmp_path: Path) -> None:
    state = settled(open_file(shop(tmp_path / "shop.snapshot"), 2**20))
    found = reasons(state)
    fit, gpu = "NodeResourcesFit", "Insufficient example.com/gpu"
    assert found["train-0"] == ("unschedulable", 3, [[fit, gpu, 3, 3], ["NodeUnschedulable", "node(s) were unschedulable", 1, 1]])
    assert found["small"] == ("active", 1, [["", "fits", 2, 2]])
    assert found["held"][0] == "gated"
    assert "example.com/quota" in found["held"][2][0][1]
    unclaimed = "no SchedulingProfile has schedulerName 'defualt-scheduler' (did you mean 'default-scheduler'?)"
    assert found["lost"] == ("", 1, [["", unclaimed, 0, 0]])
    assert found[HOSTILE][0] == "unschedulable"
    assert sum(row["count"] for row in state["queue"].values()) == 7


def test_before_pods_are_evaluated_they_are_shown_as_such(tmp_path: Path) -> None:
    state = open_file(shop(tmp_path / "shop.snapshot"), 2**20).sections(ALL_NAMESPACES)
    assert state["about"]["notEvaluated"] == 7
    assert {row["reasons"][0][1] for row in state["queue"].values()} == {"not evaluated yet"}


def test_a_pod_is_explained_in_the_words_of_explain_and_its_funnel_adds_up(tmp_path: Path) -> None:
    page = open_file(shop(tmp_path / "shop.snapshot"), 2**20).pod("ml", "train-0")
    assert page is not None
    assert page["verdict"] == "now: 0 of 4 nodes can hold it"
    assert page["message"] == "0/4 nodes are available: 1 node(s) were unschedulable, 3 Insufficient example.com/gpu."
    assert page["changes"][0] == "gpu-1 needs 2 more example.com/gpu"
    assert 1 <= len(page["changes"]) <= MOST_MISSES
    steps = [(step["plugin"], step["rejected"], step["left"]) for step in page["funnel"]]
    assert steps == [("NodeUnschedulable", 1, 3), ("NodeResourcesFit", 3, 0)]


def test_the_best_ten_nodes_are_told_with_scores_that_add_up(tmp_path: Path) -> None:
    nodes = [a_node(f"n{i:02d}", cpu=1 + i) for i in range(15)]
    path = file_of(tmp_path / "many.snapshot", [*nodes, a_pod("web"), claim_profile()])
    page = open_file(path, 2**20).pod("shop", "web")
    assert page is not None
    assert len(page["best"]) == 10
    totals = [each["total"] for each in page["best"]]
    assert totals == sorted(totals, reverse=True)
    for each in page["best"]:
        assert each["total"] == sum(product for *_, product in each["parts"].values())
        assert all(normalised * weight == product for _, normalised, weight, product in each["parts"].values())


def test_a_pod_on_a_node_and_an_unknown_one(tmp_path: Path) -> None:
    source = open_file(shop(tmp_path / "shop.snapshot"), 2**20)
    page = source.pod("shop", "web-1")
    assert page is not None
    assert page["lines"] == ["on node a-1"]
    assert page["funnel"] == []
    assert source.pod("shop", "nobody") is None


def test_explaining_leaves_the_cluster_as_it_is(tmp_path: Path) -> None:
    source = open_file(shop(tmp_path / "shop.snapshot"), 2**20)
    before = json.dumps(settled(source)["loads"])
    source.pod("ml", "train-0")
    source.pod("shop", "small")
    assert json.dumps(settled(source)["loads"]) == before


def test_the_pods_of_a_node_are_listed(tmp_path: Path) -> None:
    nominated = a_pod("next") | {"status": {"nominatedNodeName": "a"}}
    path = file_of(tmp_path / "one.snapshot", [a_node("a"), a_pod("web", "a"), nominated, claim_profile()])
    page = open_file(path, 2**20).node("a")
    assert page is not None
    assert [(each["namespace"], each["name"], each["cpu"]) for each in page["pods"]] == [("shop", "web", 1000)]
    assert page["nominated"] == ["shop/next"]


# --- recordings ---------------------------------------------------------------------------------------------------------------------


def recording(path: Path) -> Path:
    deleted = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "old", "namespace": "shop", "uid": "shop-old"}}
    changes = [
        (1.0, "ADDED", a_pod("web")),
        (2.0, "MODIFIED", a_pod("web", "a")),
        (3.0, "ADDED", a_node("b")),
        (3.0, "DELETED", deleted),
        (9.0, "ADDED", a_pod("late", cpu=99000)),
    ]
    return file_of(path, [a_node("a"), a_pod("old", "a"), claim_profile()], changes)


def test_a_recording_goes_on_as_it_went(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = VirtualTime(1000.0)
    monkeypatch.setattr("placewright_lab.consolefiles.additions.time.monotonic", clock)
    source = open_file(recording(tmp_path / "shop.recording"), 2**20, speed=2)
    pods = lambda state: state["loads"]["a"][0][2]  # noqa: E731
    state = settled(source)
    assert (pods(state), len(state["queue"]), state["about"]["changes"]) == (1, 0, [0, 5])
    clock.now += 0.5
    assert reasons(settled(source)).keys() == {"web"}
    clock.now += 0.5
    state = settled(source)
    assert (pods(state), dict(state["queue"])) == (2, {})
    (row,) = state["decisions"].values()
    assert row[:4] == ["shop", "web", "a", "default-scheduler"]
    assert row[4] == state["about"]["now"]
    clock.now += 0.5
    state = settled(source)
    assert (pods(state), state["nodes"].keys()) == (1, {"a", "b"})
    clock.now += 3.0
    state = settled(source)
    assert reasons(state)["late"][0] == "unschedulable"
    assert state["about"]["changes"] == [5, 5]


def test_a_verdict_is_made_anew_after_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = VirtualTime(1000.0)
    monkeypatch.setattr("placewright_lab.consolefiles.additions.time.monotonic", clock)
    path = file_of(tmp_path / "r", [a_node("a", cpu=1), a_pod("big", cpu=3000), claim_profile()], [(1.0, "ADDED", a_node("b", cpu=4))])
    source = open_file(path, 2**20)
    assert reasons(settled(source))["big"][0] == "unschedulable"
    clock.now += 1.0
    assert reasons(settled(source))["big"] == ("active", 1, [["", "fits", 1, 1]])


def test_a_profile_that_changes_changes_the_verdicts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = VirtualTime(1000.0)
    monkeypatch.setattr("placewright_lab.consolefiles.additions.time.monotonic", clock)
    of_others, late, bad = claim_profile(), claim_profile("late", "late"), claim_profile("late", "late")
    of_others["spec"]["pods"] = {"allowedNamespaces": ["ml"]}
    bad["spec"]["weights"] = {"NoSuchPlugin": 1}
    changes = [(1.0, "MODIFIED", of_others), (2.0, "ADDED", late), (3.0, "MODIFIED", bad), (4.0, "DELETED", late)]
    path = file_of(tmp_path / "r", [a_node("a"), a_pod("web"), a_pod("new", schedulerName="late"), claim_profile()], changes)
    source = open_file(path, 2**20)
    seen = []
    for _ in range(5):
        state = settled(source)
        found = reasons(state)
        seen.append((found["web"][0], found["new"][0], state["about"]["profiles"], len(state["about"]["notes"])))
        clock.now += 1.0
    one, both = ("default-scheduler",), ("default-scheduler", "late")
    assert seen == [
        ("active", "", one, 0),
        ("gated", "", one, 0),
        ("gated", "active", both, 0),
        ("gated", "", one, 1),
        ("gated", "", one, 0),
    ]


def test_an_object_that_is_not_valid_is_noted_and_the_recording_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = VirtualTime(1000.0)
    monkeypatch.setattr("placewright_lab.consolefiles.additions.time.monotonic", clock)
    bad = a_pod("bad")
    bad["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "many"
    path = file_of(tmp_path / "r", [a_node("a"), claim_profile()], [(1.0, "ADDED", bad), (2.0, "ADDED", a_pod("good"))])
    source = open_file(path, 2**20)
    clock.now += 5.0
    state = settled(source)
    assert reasons(state).keys() == {"good"}
    (note,) = state["about"]["notes"]
    assert note.startswith("left out, 1.0 s after the beginning:") and "many" in note


# --- bad files ----------------------------------------------------------------------------------------------------------------------


BAD = ("", "{}\n", "not JSON\n", '{"placewright":"snapshot","version":99}\n', '{"placewright":"trace","version":1}\n', "[]\n")


@pytest.mark.parametrize("text", BAD)
def test_a_file_that_is_neither_is_refused_in_a_line(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad"
    path.write_text(text)
    assert main(["console", str(path)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"placewright: error: {path}: line 1")
    assert said.count("\n") == 1


def test_a_change_that_goes_back_in_time_is_refused(tmp_path: Path) -> None:
    path = file_of(tmp_path / "r", [a_node("a")], [(2.0, "ADDED", a_node("b")), (1.0, "ADDED", a_node("c"))])
    with pytest.raises(InputError, match="line 4: at: found 1"):
        open_file(path, 2**20)


def test_a_profile_that_cannot_be_used_is_noted_and_the_rest_is_shown(tmp_path: Path) -> None:
    bad = claim_profile()
    bad["spec"]["weights"] = {"NoSuchPlugin": 1}
    source = open_file(file_of(tmp_path / "s", [a_node("a"), a_pod("web"), bad]), 2**20)
    state = settled(source)
    assert "NoSuchPlugin" in state["about"]["notes"][0]
    assert "default-scheduler" in reasons(state)["web"][2][0][1]
