"""What a demo says about how long its change took."""

from __future__ import annotations

import logging
from pathlib import Path

from placewright.observability.logformat import TextFormatter
from placewright_lab.demo.change import ChangeTimes, busy, took_effect


def logged(*messages: str, at: float) -> str:
    """Return lines in the form of the operator's log."""
    found = []
    for message in messages:
        record = logging.LogRecord("placewright.engine.profilekeeper", logging.INFO, "x.py", 1, message, (), None)
        record.created = at
        found.append(TextFormatter().format(record))
    return "".join(f"{line}\n" for line in found)


def test_each_step_is_told_with_its_time() -> None:
    assert str(ChangeTimes(0.003, 0.0051, 0.008, 0.012, 0.0301)) == (
        "stored after 3 ms, seen by a watch after 5 ms, in effect after 8 ms; "
        "the first pod under it was created after 12 ms and bound after 30 ms"
    )


def test_steps_that_nobody_saw_are_left_out() -> None:
    assert str(ChangeTimes(0.003, 0.005)) == "stored after 3 ms, seen by a watch after 5 ms"


def test_the_operator_s_own_log_says_when_a_generation_took_effect(tmp_path: Path) -> None:
    log = tmp_path / "operator.log"
    places = "profile default: generation {} places the pods of schedulerName 'placewright'"
    first = logged(places.format(1), "profile another: generation 2 places the pods", at=100.0)
    log.write_text(first + logged(places.format(2), at=200.25))
    assert took_effect(log, "default", 2) == 200.25
    assert took_effect(log, "default", 1) == 100.0
    assert took_effect(log, "default", 3) is None
    assert took_effect(tmp_path / "none", "default", 1) is None


def test_a_busy_machine_is_named_where_something_was_slow() -> None:
    assert busy(0.9, load=7.9, cores=2).startswith("this machine is busy (load 7.9 on 2 cores)")
    assert busy(0.02, load=7.9, cores=2) == ""
    assert busy(0.9, load=1.0, cores=2) == "", "then it was not the machine"
