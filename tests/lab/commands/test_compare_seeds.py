"""`placewright compare --seeds N`: what is the profile's doing, and what may be chance."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest

from lab.commands.scenarios import profile_file, scenario_file
from placewright.cli.main import main

SEEDS = 4


@pytest.fixture(name="words")
def _words(tmp_path: Path) -> list[str]:
    """Return a command with two profiles that differ only in name, and one that packs."""
    files = [profile_file(tmp_path, "plain"), profile_file(tmp_path, "same"), profile_file(tmp_path, "packing", preset="bin-packing")]
    return ["compare", "-f", str(scenario_file(tmp_path)), *(word for file in files for word in ("--profile", str(file)))]


def told(words: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main([*words, "-o", "json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def figure(data: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """One entry a profile."""
    found: list[dict[str, Any]] = next(each["profiles"] for each in data["overSeeds"] if each["figure"] == name)
    return found


def test_each_seed_counts_as_a_run_of_its_own(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    single = [told([*words, "--seed", str(7 + number)], capsys)["profiles"] for number in range(SEEDS)]
    data = told([*words, "--seed", "7", "--seeds", str(SEEDS)], capsys)
    deviations = figure(data, "cpu asked for: of a node, standard deviation")
    for place, found in enumerate(deviations):
        values = [run[place]["use"][0]["standardDeviation"] for run in single]
        assert found["values"] == values
        assert (found["mean"], found["standardDeviation"]) == (pytest.approx(mean(values)), pytest.approx(stdev(values)))
        assert (found["min"], found["max"]) == (min(values), max(values))
    assert data["seeds"] == [7, 8, 9, 10]
    assert data["profiles"] == single[0]


def test_a_profile_that_does_the_same_differs_within_the_spread_alone(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    data = told([*words, "--seeds", str(SEEDS)], capsys)
    plain, same, packing = figure(data, "Nodes: left empty")
    assert (plain["values"], same["values"]) == ([0] * SEEDS, [0] * SEEDS)
    assert min(packing["values"]) > 0
    assert not packing["differenceWithinSpread"]
    assert not any(row["profiles"][0]["differenceWithinSpread"] for row in data["overSeeds"])


def test_pods_that_move_by_chance_are_counted_for_the_first_profile_too(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    data = told([*words, "--seeds", str(SEEDS)], capsys)
    first, same, _ = figure(data, "Pods: on another node than under the first")
    assert (len(first["values"]), len(same["values"])) == (SEEDS - 1, SEEDS)
    assert max(first["values"]) > 0
    assert same["values"][0] == 0
    assert same["values"][1:] == first["values"]
    assert same["differenceWithinSpread"]


def test_every_form_says_what_lies_within_the_spread(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "out.html"
    assert main([*words, "--seeds", str(SEEDS), "--report", str(page)]) == 0
    out = capsys.readouterr().out
    moved = next(line for line in out.splitlines() if "on another node than under the first" in line)
    assert " ± " in moved
    assert " ~)" in moved
    assert "over seeds 0 to 3" in out
    assert main([*words, "--seeds", str(SEEDS), "-o", "markdown"]) == 0
    assert ", within the spread)" in capsys.readouterr().out
    text = page.read_text(encoding="utf-8")
    assert "seeds 0 to 3" in text
    assert ", within the spread</small>" in text


def test_a_single_seed_says_nothing_of_seeds(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "out.html"
    assert main([*words, "--report", str(page)]) == 0
    out = capsys.readouterr().out
    assert "±" not in out
    assert "~" not in out
    assert "seeds" not in page.read_text(encoding="utf-8")
    assert told(words, capsys).keys() == {"scenario", "profiles", "changes", "report"}


@pytest.mark.parametrize("count", ["0", "-1", "many", "1001"])
def test_a_number_of_seeds_that_makes_no_sense_is_refused(words: list[str], count: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--seeds", count]) == 2
    assert "1 to 1000" in capsys.readouterr().err
