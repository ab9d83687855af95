"""The steps of one attempt to place a pod, and how long each took: what metrics, traces and the log of slow attempts are made of."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Final, NamedTuple, Self

from placewright.framework.status import Code

#: Extension points, as kube-scheduler's metrics name them.
PRE_FILTER: Final = "PreFilter"
FILTER: Final = "Filter"
POST_FILTER: Final = "PostFilter"
PRE_SCORE: Final = "PreScore"
SCORE: Final = "Score"
RESERVE: Final = "Reserve"
PERMIT: Final = "Permit"
PRE_BIND: Final = "PreBind"
BIND: Final = "Bind"
POST_BIND: Final = "PostBind"
#: Waiting until every Permit plugin has allowed the pod; left out where none made it wait.
WAIT_ON_PERMIT: Final = "WaitOnPermit"
#: Questions to extenders, all of them for one verb together.
EXTENDER_FILTER: Final = "ExtenderFilter"
EXTENDER_PRIORITIZE: Final = "ExtenderPrioritize"
EXTENDER_PREEMPT: Final = "ExtenderPreempt"


class Step(NamedTuple):
    """One step.

    Attributes:
        name: the extension point, or another of the names above.
        began: seconds on the attempt's clock.
        seconds: how long it took.
        outcome: what came of it.
    """

    name: str
    began: float
    seconds: float
    outcome: Code


class Steps:
    """Takes the time of steps that follow each other: `begin`, then `end` after each one; the next begins where the last ended.

    Without a clock nothing is noted.

    Attributes:
        taken: the steps so far, in order. A step that was repeated is there as often.
    """

    __slots__ = ("_clock", "_mark", "taken")

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        """`clock`: monotonic seconds."""
        self.taken: list[Step] = []
        self._clock = clock
        self._mark = 0.0 if clock is None else clock()

    def begin(self) -> None:
        """The next step begins now."""
        if self._clock is not None:
            self._mark = self._clock()

    def end(self, name: str, outcome: Code = Code.SUCCESS) -> None:
        """The step that began last ends now."""
        if self._clock is not None:
            now = self._clock()
            self.taken.append(Step(name, self._mark, now - self._mark, outcome))
            self._mark = now

    def step(self, name: str) -> UnderWay:
        """`with` it: what is done inside is a step."""
        return UnderWay(self, name)


class UnderWay:
    """A step that is being taken.

    Attributes:
        outcome: what came of it: a success, an error when it raises, or what is set inside.
    """

    __slots__ = ("_name", "_steps", "outcome")

    def __init__(self, steps: Steps, name: str) -> None:
        self._steps = steps
        self._name = name
        self.outcome = Code.SUCCESS

    def __enter__(self) -> Self:
        self._steps.begin()
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        self._steps.end(self._name, self.outcome if kind is None else Code.ERROR)
