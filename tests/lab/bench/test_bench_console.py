"""`placewright bench console`: real readers in another process; slow readers lose their streams."""

from __future__ import annotations

import json

import pytest

from placewright.cli.main import main
from placewright_lab.bench.consolecost import ConsoleCost, ConsoleTurn


def turn(decided: int, busy: float) -> ConsoleTurn:
    return ConsoleTurn(decided, 1.0, busy, 0.0, 0.0, 0.0, 0)


def test_the_cost_is_what_the_operator_takes_beyond_the_same_decisions_without_readers() -> None:
    measured = ConsoleCost(1, 1, 100, 0.0004, (turn(1000, 0.45), turn(500, 0.26), turn(1000, 0.47)))
    assert measured.cost == pytest.approx(0.06)


def test_readers_get_the_state_while_pods_are_decided(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--nodes", "20", "--waiting", "10", "--readers", "3", "--rate", "50", "--seconds", "1", "--rounds", "1"]
    assert main(["bench", "console", *words, "-o", "json"]) == 0
    alone, read = json.loads(capsys.readouterr().out)
    assert (alone["readers"], read["readers"]) == (0, 3)
    assert alone["turns"][0]["read"] == 0
    assert read["turns"][0]["read"] > 1000
    assert read["per_second"] == pytest.approx(50, rel=0.5)
