"""The engine's clock: steps of the system's clock move no limit, and a clock that was wrong is right in the end."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placewright import engine
from placewright.engine.steadyclock import SteadyClock


class Clocks:
    """A machine: real seconds pass, and its wall clock is set."""

    def __init__(self) -> None:
        self.passed, self.off = 0.0, 1_800_000_000.0

    def steady(self) -> SteadyClock:
        return SteadyClock(lambda: self.off + self.passed, lambda: self.passed)


STEPS = st.lists(st.tuples(st.floats(0, 600), st.floats(-7200, 7200)), max_size=30)


@given(STEPS)
def test_after_any_steps_of_the_system_s_clock_seconds_are_a_hundredth_off_at_most(steps: list[tuple[float, float]]) -> None:
    machine = Clocks()
    now = machine.steady()
    for passed, step in steps:
        before = now()
        machine.passed += passed
        machine.off += step
        assert abs(now() - before - passed) <= passed / 100 + 1e-3


@pytest.mark.parametrize("step", [-3600.0, 3600.0])
def test_a_limit_of_five_minutes_ends_after_five_minutes_when_the_clock_is_set(step: float) -> None:
    machine = Clocks()
    now = machine.steady()
    ends = now() + 300
    machine.passed += 10
    machine.off += step
    while now() < ends:
        machine.passed += 1
    assert machine.passed == pytest.approx(300, abs=4)


def test_a_clock_that_was_wrong_at_the_start_is_right_in_the_end() -> None:
    machine = Clocks()
    now = machine.steady()
    machine.off += 60
    for _ in range(7000):
        machine.passed += 1
        now()
    assert now() == pytest.approx(machine.off + machine.passed, abs=0.1)


def test_the_engine_reads_the_system_s_clock_in_no_other_way() -> None:
    """The replica's priority is made once, at the start."""
    parts = ("engine", "leadingpart", "writingpart", "decidingpart", "readingpart")
    text = "".join((Path(str(engine.__file__)).parent / f"{part}.py").read_text() for part in parts)
    assert re.findall(r"^.*\btime\.time\b.*$", text, re.MULTILINE) == [
        "        replica, namespace = make_replica(int(time.time() * 1000), random.Random(), os.environ), operator_namespace(os.environ)"
    ]
