"""Searches for weights of a profile. Each trial is a whole simulation; the trials that no other beats throughout are the Pareto front.

Where the trials suffice for every combination, all are tried. Otherwise Optuna's multi-objective TPE proposes them, in rounds of a fixed
size, so that what is found depends on the seed and not on how many processes there are. Trial 0 is the profile as it is.
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
#: Fields that can be varied beside weights.
STRATEGY: Final = "NodeResourcesFit.scoringStrategy"


@dataclass(frozen=True, slots=True)
class TunedSetting:
    """One setting of a profile that is varied: the weight of the plugin `name`, or the type of NodeResourcesFit's `STRATEGY`.

    Attributes:
        choices: in the order in which people gave them; whole numbers without a gap for a weight.
    """

    name: str
    choices: Sequence[Setting]


@dataclass(frozen=True, slots=True)
class Task:
    """The common part of all trials; each process gets it once."""

    scenario: Scenario
    base: SchedulingProfile
    knobs: tuple[TunedSetting, ...]
    objectives: tuple[Objective, ...]
    registry: Registry
    seed: int = 0
    which: Which = Which.PENDING

    @property
    def combinations(self) -> int:
        """How many settings there are."""
        return math.prod(len(knob.choices) for knob in self.knobs)


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one simulation.

    Attributes:
        values: each objective's, in order.
        pending: number of pods that wait at the end.
        plugin_failures: a sentence for each extension point at which a plugin failed.
    """

    values: tuple[float, ...]
    pending: int
    plugin_failures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Trial:
    """One setting that was tried; number 0 is the profile as it is, and sets nothing."""

    number: int
    settings: Settings
    result: Result


@dataclass(slots=True)
class Search:
    """The results so far; complete when `tune` returns.

    Attributes:
        trials: by number.
    """

    task: Task
    trials: list[Trial] = field(default_factory=list)

    @property
    def front(self) -> list[Trial]:
        """Trials that no other one beats, the best by the first objective first; of those with equal values the earliest."""
        earliest: dict[tuple[float, ...], Trial] = {}
        for trial in self.trials:
            earliest.setdefault(self.losses(trial), trial)
        front = [losses for losses in earliest if not any(_beats(other, losses) for other in earliest)]
        return [earliest[losses] for losses in sorted(front)]

    @property
    def best(self) -> Trial:
        """The best by the first objective, among equals by the next; the earliest of equals."""
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
    """At least as good in everything, and better in something."""
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


def tune(task: Task, search: Search, trials: int, processes: int = 1, told: Callable[[Search], None] = lambda _: None) -> None:
    """Try the profile as it is, then up to `trials` settings. After an interruption `search` has the results so far.

    `told` is called when trials have ended. Raises `InputError` for an objective that the scenario has nothing of, and `ProfileError` for
    settings that the profile cannot have.
    """
    check_corners(task)
    proposals: Proposals = Everything(task.knobs) if task.combinations <= trials else Proposed(search, trials)
    with evaluator_of(task, processes) as evaluate:
        search.add({}, next(iter(evaluate([{}]))))
        told(search)
        while settings_list := proposals.next_round():
            for settings, result in zip(settings_list, evaluate(settings_list), strict=True):
                search.add(settings, result)
                told(search)
                proposals.learn(settings, search.losses(search.trials[-1]))


def check_corners(task: Task) -> None:
    """Try the first and last value of every choice: a fault of the profile shows there. Raises `ProfileError`."""
    for at in (0, -1):
        resolve(with_settings(task.base, {knob.name: knob.choices[at] for knob in task.knobs}), task.registry)


class Proposals:
    """Where settings come from."""

    def next_round(self) -> list[Settings]:
        """Return the settings to try next, each once; none at the end."""
        raise NotImplementedError

    def learn(self, settings: Settings, losses: tuple[float, ...]) -> None:
        """Tell the result."""


def all_settings(knobs: Sequence[TunedSetting]) -> Iterator[Settings]:
    """Return every combination, in order."""
    names = [knob.name for knob in knobs]
    return (dict(zip(names, choices, strict=True)) for choices in itertools.product(*(knob.choices for knob in knobs)))


class Everything(Proposals):
    """Every combination, in order, in one round: none depends on the result of another."""

    def __init__(self, knobs: Sequence[TunedSetting]) -> None:
        self._left = all_settings(knobs)

    def next_round(self) -> list[Settings]:
        """Return all combinations, and none the next time."""
        return list(self._left)


class Proposed(Proposals):
    """Optuna's proposals, without repeated ones: equal settings have equal outcomes."""

    def __init__(self, search: Search, trials: int) -> None:
        """Begin a study of the task."""
        optuna = optuna_library()
        task = search.task
        sampler = optuna.samplers.TPESampler(seed=task.seed, n_startup_trials=2 * ROUND)
        self._study = optuna.create_study(directions=["minimize"] * len(task.objectives), sampler=sampler)
        self._distributions = {knob.name: distribution_of(optuna, knob) for knob in task.knobs}
        self._left = trials
        self._known: dict[tuple[Setting, ...], tuple[float, ...]] = {}
        self._asked: dict[tuple[Setting, ...], Any] = {}

    def next_round(self) -> list[Settings]:
        """As many as a round has; repeated proposals are answered with what is known."""
        for _ in range(PATIENCE):
            for _ in range(ROUND):
                if len(self._asked) < min(ROUND, self._left):
                    self._ask()
            if self._asked:
                break
        self._left -= len(self._asked)
        return [trial.params for trial in self._asked.values()]

    def _ask(self) -> None:
        trial = self._study.ask(self._distributions)
        key = tuple(trial.params.values())
        if key in self._known:
            self._study.tell(trial, self._known[key])
        elif key in self._asked:
            self._study.tell(trial, state=optuna_library().trial.TrialState.PRUNED)
        else:
            self._asked[key] = trial

    def learn(self, settings: Settings, losses: tuple[float, ...]) -> None:
        """Optuna learns it, too."""
        key = tuple(settings.values())
        self._known[key] = losses
        self._study.tell(self._asked.pop(key), losses)


def optuna_library() -> Any:
    """Return the library, which takes a second to load and is not needed where every combination is tried."""
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
    """Yield a function from settings to results, in their order: here, or in other processes."""
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
