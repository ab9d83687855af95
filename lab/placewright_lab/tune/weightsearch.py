"""A search for weights of a profile: the settings, their trials, and the best trials (the Pareto front).

Each trial is a whole simulation. Trial 0 is the unchanged profile. `sharedstudy` chooses the settings to try.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final

import msgspec

from placewright.api.profile import PluginConfig, SchedulingProfile
from placewright.framework.registry import Registry
from placewright.profiles.resolve import resolve
from placewright_lab.figures.figures import figures_of, fullest_moment
from placewright_lab.simulation.scenario import Scenario
from placewright_lab.simulation.simulation import Which, simulate
from placewright_lab.simulation.workprocesses import WorkProcesses
from placewright_lab.tune.objectives import Objective, measured

Setting = int | str
Settings = Mapping[str, Setting]

#: Trials that are proposed before their results are waited for.
ROUND: Final = 8
#: Rounds that may bring nothing new before the search ends.
PATIENCE: Final = 20
#: The field that can be varied beside weights.
STRATEGY: Final = "NodeResourcesFit.scoringStrategy"


@dataclass(frozen=True, slots=True)
class TunedSetting:
    """A setting of a profile that is varied: the weight of the plugin `name`, or the type of NodeResourcesFit's `STRATEGY`.

    Attributes:
        choices: values in the order of the command line; for a weight, whole numbers without a gap.
    """

    name: str
    choices: Sequence[Setting]


@dataclass(frozen=True, slots=True)
class Task:
    """The common part of all trials, which each process gets once."""

    scenario: Scenario
    base: SchedulingProfile
    knobs: tuple[TunedSetting, ...]
    objectives: tuple[Objective, ...]
    registry: Registry
    seed: int = 0
    which: Which = Which.PENDING

    @property
    def combinations(self) -> int:
        """Number of different settings."""
        return math.prod(len(knob.choices) for knob in self.knobs)


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one simulation.

    Attributes:
        values: value of each objective, in order.
        pending: number of pods that wait at the end.
        plugin_failures: sentences, one for each extension point at which a plugin failed.
    """

    values: tuple[float, ...]
    pending: int
    plugin_failures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Trial:
    """Settings that were tried, and their result. Trial 0 sets nothing, because it is the unchanged profile."""

    number: int
    settings: Settings
    result: Result


@dataclass(slots=True)
class Search:
    """The results so far. They are complete when `tune` returns.

    Attributes:
        trials: trials by number.
    """

    task: Task
    trials: list[Trial] = field(default_factory=list)

    @property
    def front(self) -> list[Trial]:
        """Trials that no other trial beats, the best by the first objective first. Of equal trials, only the earliest counts."""
        earliest: dict[tuple[float, ...], Trial] = {}
        for trial in self.trials:
            earliest.setdefault(self.losses(trial), trial)
        front = [losses for losses in earliest if not any(_beats(other, losses) for other in earliest)]
        return [earliest[losses] for losses in sorted(front)]

    @property
    def best(self) -> Trial:
        """Best trial by the first objective. Among equal trials the next objective decides, and at last the number."""
        return min(self.trials, key=lambda trial: (self.losses(trial), trial.number))

    @property
    def best_profile(self) -> SchedulingProfile:
        """The profile with the best trial's settings."""
        return with_settings(self.task.base, self.best.settings)

    def losses(self, trial: Trial) -> tuple[float, ...]:
        """Return each objective, turned so that less is better."""
        pairs = zip(self.task.objectives, trial.result.values, strict=True)
        return tuple(objective.loss(value) for objective, value in pairs)

    def add(self, settings: Settings, result: Result) -> None:
        """Remember a trial."""
        self.trials.append(Trial(len(self.trials), settings, result))


def _beats(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    """Return whether `one` is at least as good by all objectives, and better by one."""
    return one != other and all(mine <= theirs for mine, theirs in zip(one, other, strict=True))


def with_settings(base: SchedulingProfile, settings: Settings) -> SchedulingProfile:
    """Return the profile with these settings over its own."""
    weights = {name: value for name, value in settings.items() if isinstance(value, int)}
    spec = base.spec
    if weights:
        spec = msgspec.structs.replace(spec, weights={**(spec.weights or {}), **weights})
    if STRATEGY in settings:
        spec = msgspec.structs.replace(spec, plugin_config=_with_strategy(spec.plugin_config or [], str(settings[STRATEGY])))
    return msgspec.structs.replace(base, spec=spec)


def _with_strategy(configs: Sequence[PluginConfig], chosen: str) -> list[PluginConfig]:
    """Choose a strategy, but keep the resources of the profile."""
    plugin, _, name = STRATEGY.partition(".")
    own: dict[str, Any] = next((config.args or {} for config in configs if config.name == plugin), {})
    args = {**own, name: {**(own.get(name) or {}), "type": chosen}}
    changed = PluginConfig(name=plugin, args=args)
    others = [config for config in configs if config.name != plugin]
    return [*others, changed]


def check_corners(task: Task) -> None:
    """Try the first and last value of every choice, because a fault of the profile shows there. Raises `ProfileError`."""
    for at in (0, -1):
        resolve(with_settings(task.base, {knob.name: knob.choices[at] for knob in task.knobs}), task.registry)


def all_settings(knobs: Sequence[TunedSetting]) -> Iterator[Settings]:
    """Return every combination, in order."""
    names = [knob.name for knob in knobs]
    return (dict(zip(names, choices, strict=True)) for choices in itertools.product(*(knob.choices for knob in knobs)))


def optuna_library() -> Any:
    """Return the library, which takes a second to load. A search that tries every combination does not need it."""
    optuna = import_module("optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def distribution_of(optuna: Any, knob: TunedSetting) -> Any:
    """Return the distribution from which Optuna draws a knob's setting."""
    numbers = [choice for choice in knob.choices if isinstance(choice, int)]
    if numbers:
        return optuna.distributions.IntDistribution(numbers[0], numbers[-1])
    return optuna.distributions.CategoricalDistribution(tuple(knob.choices))


Evaluate = Callable[[Sequence[Settings]], Iterable[Result]]


@contextmanager
def evaluator_of(task: Task, processes: int) -> Iterator[Evaluate]:
    """Yield a function that computes the results of settings, in order, in this process or in several others."""
    trier = Trier(task)
    if processes == 1:
        yield lambda several: map(trier.result, several)
        return
    with WorkProcesses[Settings, Result](trier.result, processes) as running:
        yield running.results


class Trier:
    """Simulates a task's trials."""

    def __init__(self, task: Task) -> None:
        self._task = task

    def result(self, settings: Settings) -> Result:
        """Return the result of the profile with these settings."""
        task = self._task
        profile = resolve(with_settings(task.base, settings), task.registry)
        outcome = simulate(task.scenario, profile, task.registry, seed=task.seed, which=task.which)
        figures = figures_of(outcome, at=fullest_moment(outcome))
        return Result(measured(task.objectives, figures), figures.pending, tuple(outcome.plugin_failures))
