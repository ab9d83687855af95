"""The steps of one attempt to place a pod, and how long each took: what metrics, traces and the log of slow attempts are made of."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from types import TracebackType
from typing import Final, NamedTuple, Self, TypeVar, TypeVarTuple

from placewright.framework.status import Code, Status

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

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
#: Waiting until every Permit plugin has allowed the pod; left out if none made it wait.
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
        seconds: duration of the step.
        outcome: its result.
    """

    name: str
    began: float
    seconds: float
    outcome: Code


class PluginStep(NamedTuple):
    """One plugin's part in a step: at Filter and Score one call for many nodes, and none if its last answer still holds.

    Attributes:
        point: the extension point.
        seconds: duration of the step.
    """

    plugin: str
    point: str
    seconds: float
    outcome: Code


class Steps:
    """Takes the time of steps that follow each other: `begin`, then `end` after each one; the next begins where the last ended.

    Without a clock nothing is noted.

    Attributes:
        taken: the steps so far, in order, since the last `forget`. A step that was repeated is there as often.
        plugins: the plugins' parts in them, in order; None if they are not taken, as in most attempts.
        skip_filter, skip_score: plugins that had nothing to say to the pod, at Filter and at Score.
    """

    __slots__ = ("_clock", "_mark", "_plugin_mark", "plugins", "skip_filter", "skip_score", "taken")

    def __init__(self, clock: Callable[[], float] | None = None, *, plugins: bool = False) -> None:
        """`clock`: monotonic seconds. `plugins`: take the plugins' times, too."""
        self.taken: list[Step] = []
        self.plugins: list[PluginStep] | None = [] if plugins and clock is not None else None
        self.skip_filter: AbstractSet[str] = frozenset()
        self.skip_score: AbstractSet[str] = frozenset()
        self._clock = clock
        self._mark = self._plugin_mark = 0.0 if clock is None else clock()

    def forget(self) -> None:
        """Drop the steps so far, because the pod is tried anew: a member of a group may be tried in hundreds of domains."""
        self.taken.clear()
        if self.plugins is not None:
            self.plugins.clear()

    def begin(self) -> None:
        """Begin the next step now."""
        if self._clock is not None:
            self._mark = self._clock()

    def end(self, name: str, outcome: Code = Code.SUCCESS) -> None:
        """End the step that began last, and begin the next one."""
        if self._clock is not None:
            now = self._clock()
            self.taken.append(Step(name, self._mark, now - self._mark, outcome))
            self._mark = now  # one reading of the clock for two steps

    def ask(self, plugin: str, point: str, call: Callable[[*Ts], T], *asked: *Ts) -> T:
        """Call a plugin, and note how long that takes if `plugins` is not None.

        Args:
            plugin: its name.
            point: the extension point.
            call: the plugin's method.
            asked: arguments of the call.

        Returns:
            The plugin's answer.
        """
        if self.plugins is None:
            return call(*asked)
        self.plugin_begins()
        answer = call(*asked)
        status = getattr(answer, "status", answer)
        self.plugin_ended(plugin, point, status.code if isinstance(status, Status) else Code.SUCCESS)
        return answer

    def plugin_begins(self) -> None:
        """Note that a plugin is called now; nothing is noted if `plugins` is None."""
        if self.plugins is not None and self._clock is not None:
            self._plugin_mark = self._clock()

    def plugin_ended(self, plugin: str, point: str, outcome: Code = Code.SUCCESS) -> None:
        """Note that a plugin has answered; the next plugin's time begins."""
        if self.plugins is not None and self._clock is not None:
            now = self._clock()
            self.plugins.append(PluginStep(plugin, point, now - self._plugin_mark, outcome))
            self._plugin_mark = now

    def step(self, name: str) -> UnderWay:
        """Take the time of a block of code as a step.

        Args:
            name: name of the step, as for `end`.

        Returns:
            A context manager; an exception out of it is the outcome ERROR.

        Example:
            with steps.step(PRE_BIND) as step:
                status = await self._prepare(placement)
                step.outcome = status.code
        """
        return UnderWay(self, name)


class UnderWay:
    """A step that is being taken.

    Attributes:
        outcome: its result: SUCCESS, ERROR when it raises, or the code that is set inside.
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
