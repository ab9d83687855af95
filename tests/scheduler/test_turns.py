"""Work that gives way to other pods: an error while it is hidden or put back is the work's own."""

from __future__ import annotations

from itertools import count

import pytest

from placewright.scheduler.cycle import FitError
from placewright.scheduler.extendedcycle import LEAD_LOST
from placewright.scheduler.turns import TURN_SECONDS, DecisionLock, Steps, Turns


class Breaking:
    """A trial that breaks when it is hidden, or put back."""

    def __init__(self, at: str) -> None:
        self._at = at
        self.closed = False

    @property
    def hidden(self) -> bool:
        return True

    @property
    def settled(self) -> bool:
        return True

    def suspend(self) -> None:
        self._break("suspend")

    def resume(self) -> None:
        self._break("resume")

    def _break(self, at: str) -> None:
        if at == self._at:
            raise ValueError(f"a plugin broke at {at}")

    def work(self) -> Steps[str]:
        """Go on for ever; tell of an error that is thrown in."""
        try:
            while True:
                yield self
        except (ValueError, FitError) as problem:
            return str(problem)
        finally:
            self.closed = True


@pytest.mark.parametrize("at", ["suspend", "resume"])
async def test_an_error_while_work_is_hidden_or_put_back_reaches_the_work(at: str) -> None:
    ticks, trial = count(), Breaking(at)
    turns = Turns(lambda: next(ticks) * TURN_SECONDS, lambda: True, DecisionLock())
    assert await turns.take(trial.work()) == f"a plugin broke at {at}"
    assert trial.closed


async def test_work_hears_that_the_lead_is_lost() -> None:
    ticks, trial = count(), Breaking("")
    turns = Turns(lambda: next(ticks) * TURN_SECONDS, lambda: not turns.given_way, DecisionLock())
    assert await turns.take(trial.work()) == LEAD_LOST
    assert trial.closed
