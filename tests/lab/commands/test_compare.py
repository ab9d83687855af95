"""`placewright compare`: the same pods under several profiles, side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab.commands.scenarios import NODES, PODS, profile_file, scenario_file
from placewright import testing as kit
from placewright.cli.main import main
from placewright.serving.rights import ALL_NAMESPACES
from placewright_lab.commands.comparisonoutput import escaped


@pytest.fixture(name="words")
def _words(tmp_path: Path) -> list[str]:
    """Return a command that compares spreading with packing."""
    one, two = profile_file(tmp_path, "plain"), profile_file(tmp_path, "packing", preset="bin-packing")
    return ["compare", "-f", str(scenario_file(tmp_path)), "--profile", str(one), "--profile", str(two)]


def test_packing_leaves_nodes_empty_that_spreading_does_not(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "-o", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    plain, packing = told["profiles"]
    assert (plain["profile"], plain["placed"], plain["emptyNodes"]) == ("plain", PODS, 0)
    assert (packing["profile"], packing["placed"], packing["emptyNodes"]) == ("packing", PODS, NODES - 2)
    assert packing["use"][0] == {
        "resource": "cpu", "nodes": 4, "allocatable": 16000, "requested": 6000,
        "min": 0.0, "mean": 0.375, "max": 1.0, "standardDeviation": pytest.approx((0.375**2 * 2 + 0.625**2 + 0.125**2) ** 0.5 / 2),
    }  # fmt: skip
    (change,) = told["changes"]
    assert (change["profile"], change["against"]) == ("packing", "plain")
    assert 2 <= len(change["moves"]) <= PODS
    assert change["nowPending"] == change["noLongerPending"] == []


def test_the_table_has_each_figure_and_how_far_it_is_from_the_first_profile(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    out = capsys.readouterr().out
    lines = {line[:40].strip(): line.split() for line in out.splitlines()}
    assert lines["left empty"][-3:] == ["0", "2", "(+2)"]
    assert any(line.startswith("Pending") for line in out.splitlines()) is False
    assert "Nodes as they stand at the end." in out


def test_markdown_is_one_table_with_a_column_for_each_profile(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "-o", "markdown"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "|  | plain | packing |"
    assert {line.count("|") for line in lines} == {4}
    assert "| left empty | 0 | 2 (+2) |" in lines


def test_the_report_is_written_beside_the_table(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--report", str(tmp_path / "out.html")]) == 0
    page = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "packing" in page
    assert "left empty" in capsys.readouterr().out


def test_the_console_shows_the_same_afterwards(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = []
    monkeypatch.setattr(
        "placewright_lab.commands.compare.show",
        lambda source, listening: shown.append((source.sections(ALL_NAMESPACES), listening.close())),
    )
    assert main(words) == 0
    assert shown == []
    assert main([*words, "--console"]) == 0
    assert [state["comparison"]["report"]["profiles"] for state, _ in shown] == [("plain", "packing")]
    assert capsys.readouterr().out.count("left empty") == 2


def test_a_report_that_cannot_be_written_is_said_before_anything_is_simulated(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("placewright_lab.simulation.sweep.simulate")
    where = tmp_path / "missing" / "out.html"
    assert main([*words, "--report", str(where)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == f"placewright: error: {where}: cannot be written: No such file or directory\n"


def test_a_report_of_before_is_kept_until_there_is_a_new_one(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("placewright_lab.simulation.sweep.simulate")
    where = tmp_path / "out.html"
    where.write_text("the old one")
    with pytest.raises(NameError):
        main([*words, "--report", str(where)])
    assert where.read_text() == "the old one"


def test_profiles_of_the_same_name_are_told_apart_by_their_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other"
    other.mkdir()
    one, two = profile_file(tmp_path, "web"), profile_file(other, "web")
    assert main(["compare", "-f", str(scenario_file(tmp_path)), "--profile", str(one), "--profile", str(two), "-o", "json"]) == 0
    assert [each["profile"] for each in json.loads(capsys.readouterr().out)["profiles"]] == [f"web ({one})", f"web ({two})"]


@pytest.mark.parametrize(
    ("hostile", "harmless"),
    [
        ("<script>", "&#60;script&#62;"),
        ("a|b\nc", r"a&#124;b\\nc"),
        ("@team #1", "&#64;team &#35;1"),
        ("[x](http://y)", r"\[x\](http&#58;//y)"),
        ("`c` **b** ~d~", r"\`c\` \*\*b\*\* \~d\~"),
        ("see www.evil.example and WWW.evil.example", "see www&#46;evil.example and WWW&#46;evil.example"),
        ("openb-pod-1 (n-1)", "openb-pod-1 (n-1)"),
        ("&lt;", "&#38;lt;"),
    ],
)
def test_names_in_markdown_show_as_they_are(hostile: str, harmless: str) -> None:
    assert escaped(hostile) == harmless


def test_profiles_that_differ_in_whom_they_displace_are_told_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One node, full of two pods; an important pod comes. Profiles' rules of preemption are part of what is compared."""
    running = [kit.pod(f"low-{number}", cpu="2", memory="1Gi").on("n0").manifest for number in range(2)]
    coming = kit.pod("vip", cpu="2", memory="1Gi").priority(10).manifest
    scenario = tmp_path / "full.json"
    items = [kit.node("n0", cpu="4", pods="20").manifest, *running, coming]
    scenario.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    free = profile_file(tmp_path, "free")
    never = profile_file(tmp_path, "never", preemption={"policy": "Never"})
    later = profile_file(tmp_path, "later", preemption={"waitSeconds": 30})
    profiles = [word for file in (free, never, later) for word in ("--profile", str(file))]
    assert main(["compare", "-f", str(scenario), *profiles, "-o", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    figures = {each["profile"]: (each["preempted"], each["placed"]) for each in told["profiles"]}
    assert figures == {"free": (1, 1), "never": (0, 0), "later": (1, 1)}
    assert [len(change["nowPending"]) for change in told["changes"]] == [1, 0]


# --- profiles of several schedulerNames ----------------------------------------------------------------------------------------


def of_two_teams(folder: Path) -> str:
    """Make two pods of team a, three of team b, all on a node, and one of neither."""
    owners = ["a", "a", "b", "b", "b", "elsewhere"]
    pods = [kit.pod(f"p{i}", cpu="100m").on("n0").scheduler(owner).manifest for i, owner in enumerate(owners)]
    (folder / "teams.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [kit.node("n0").manifest, *pods]}))
    return str(folder / "teams.json")


def team(folder: Path, name: str) -> str:
    return str(profile_file(folder, f"team-{name}", schedulerName=name))


@pytest.mark.parametrize("command", ["compare", "diff"])
def test_profiles_of_two_scheduler_names_are_held_against_each_other_by_the_same_pods_and_others_are_counted(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = [team(tmp_path, "a"), team(tmp_path, "b")]
    chosen = sides if command == "diff" else [word for side in sides for word in ("--profile", side)]
    assert main([command, *chosen, "-f", of_two_teams(tmp_path), "--all-pods", "-o", "json"]) == 0
    out, err = capsys.readouterr()
    told = json.loads(out)
    told = told if command == "compare" else told["simulation"]
    assert [each["pods"] for each in told["profiles"]] == [5, 5]
    names = ("before", "after") if command == "diff" else ("team-a", "team-b")
    left = "1 pod of another scheduler is left where it is, such as default/p5"
    assert err.splitlines() == [f"placewright: {name}: {left}" for name in names]


def test_files_of_several_profiles_leave_the_pods_that_they_do_not_name_and_say_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = tmp_path / "both.yaml"
    both.write_text("\n---\n".join(Path(team(tmp_path, name)).read_text() for name in ("a", "elsewhere")))
    assert main(["compare", "--profile", str(both), "--profile", team(tmp_path, "b"), "-f", of_two_teams(tmp_path), "--all-pods"]) == 0
    assert capsys.readouterr().err == (
        "placewright: team-a+team-elsewhere: 3 pods of other schedulers are left where they are, such as default/p2\n"
    )


def test_simulate_counts_the_pods_that_a_profile_leaves_where_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--profile", team(tmp_path, "a"), "-f", of_two_teams(tmp_path), "--all-pods"]) == 0
    assert "team-a: 4 pods of other schedulers are left where they are, such as default/p2" in capsys.readouterr().out
