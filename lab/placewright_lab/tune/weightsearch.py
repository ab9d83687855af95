"""A search for weights of a profile: the settings, their trials, and the best trials (the Pareto front).

Each trial is a whole simulation. Trial 0 is the unchanged profile. `sharedstudy` chooses the settings to try.

The objectives of tuning: figures of an outcome, each with the direction in which it is better. Pure functions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final

import msgspec

from placewright.api.bad_input import bad_field
from placewright.api.profile import PluginConfig, SchedulingProfile
from placewright.api.requests import CPU, MEMORY
from placewright.framework.registry import Registry
from placewright.profiles.problem import did_you_mean
from placewright.profiles.resolve import resolve
from placewright_lab.figures.figures import Figures, figures_of, fullest_moment
from placewright_lab.readers.openb import is_gpu, whole_gpus
from placewright_lab.simulation.scenario import Scenario
from placewright_lab.simulation.simulation import Which, simulate
from placewright_lab.simulation.workprocesses import WorkProcesses

Value = float | None

_SEPARATOR: Final = ","


@dataclass(frozen=True, slots=True)
class Objective:
    """One figure.

    Attributes:
        maximise: True if more is better.
        summary: meaning of the figure, in one sentence.
        value: function that returns the figure; None if the scenario has nothing to count.
    """

    name: str
    maximise: bool
    summary: str
    value: Callable[[Figures], Value]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the name, because functions do not pickle. Another process has the same table."""
        return objective_named, (self.name,)

    def loss(self, value: float) -> float:
        """Return the value, turned so that less is better."""
        return -value if self.maximise else value


def _sum(amounts: Iterable[float]) -> Value:
    several = list(amounts)
    return sum(several) if several else None


def _placed_gpu(figures: Figures) -> Value:
    return _sum(whole_gpus(use.resource, use.requested) for use in figures.uses if is_gpu(use.resource))


def _stranded_gpu(figures: Figures) -> Value:
    return _sum(whole_gpus(one.resource, one.stranded) for one in figures.fragmentations if is_gpu(one.resource))


def _fragmentation(figures: Figures) -> Value:
    return _sum(whole_gpus(one.resource, one.expected) for one in figures.fragmentations if is_gpu(one.resource))


def _deviation(resource: str) -> Callable[[Figures], Value]:
    return lambda figures: next((use.deviation for use in figures.uses if use.resource == resource), None)


def _wait(figures: Figures) -> Value:
    return figures.times.mean if figures.times else 0.0


_ALL: Final = (
    Objective("pending", False, "Pods that wait for a node at the end.", lambda figures: figures.pending),
    Objective("placed-gpu", True, "GPUs that pods on nodes ask for.", _placed_gpu),
    Objective("stranded-gpu", False, "Free GPUs on nodes where no pod of the workload that asks for a GPU fits any more.", _stranded_gpu),
    Objective("fragmentation", False, "GPUs that are expected to be of no use to the next pod (Weng et al., ATC 2023).", _fragmentation),
    Objective("empty-nodes", True, "Nodes without a pod other than those of DaemonSets.", lambda figures: figures.empty_nodes),
    Objective("cpu-std", False, "Standard deviation over the nodes of the requested share of CPU.", _deviation(CPU)),
    Objective("memory-std", False, "Standard deviation over the nodes of the requested share of memory.", _deviation(MEMORY)),
    Objective("zone-skew", False, "Pods in the fullest zone less those in the emptiest one.", lambda figures: figures.zone_skew),
    Objective("preemptions", False, "Pods that had to leave for others.", lambda figures: figures.preempted),
    Objective("wait", False, "Virtual seconds from a pod's creation to its binding, mean of the pods that got a node.", _wait),
)
OBJECTIVES: Final[Mapping[str, Objective]] = MappingProxyType({objective.name: objective for objective in _ALL})


def objective_named(name: str) -> Objective:
    """Return the objective of that name. Raises `KeyError` for an unknown one."""
    return OBJECTIVES[name]


def parse_objectives(text: str) -> tuple[Objective, ...]:
    """Parse `empty-nodes,stranded-gpu`, the most important first. Raises `InputError` for an unknown or repeated name."""
    names = [name.strip() for name in text.split(_SEPARATOR)]
    for name in names:
        if name not in OBJECTIVES:
            raise bad_field("--objective", name, f"{', '.join(OBJECTIVES)}{did_you_mean(name, OBJECTIVES)}")
        if names.count(name) > 1:
            raise bad_field("--objective", text, f"each name once, and {name} is there {names.count(name)} times")
    return tuple(OBJECTIVES[name] for name in names)


def measured(objectives: Iterable[Objective], figures: Figures) -> tuple[float, ...]:
    """Return each objective's value. Raises `InputError` for an objective that the scenario has nothing of."""
    return tuple(_present(objective, objective.value(figures)) for objective in objectives)


def _present(objective: Objective, value: Value) -> float:
    if value is None:
        raise bad_field("--objective", objective.name, "what the scenario has: there is nothing of this kind to count")
    return float(value)


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
    evaluate = partial(_result, task)
    if processes == 1:
        yield lambda several: map(evaluate, several)
        return
    with WorkProcesses[Settings, Result](evaluate, processes) as running:
        yield running.results


def _result(task: Task, settings: Settings) -> Result:
    profile = resolve(with_settings(task.base, settings), task.registry, task.scenario.kubernetes)
    outcome = simulate(task.scenario, profile, task.registry, seed=task.seed, which=task.which)
    figures = figures_of(outcome, at=fullest_moment(outcome))
    return Result(measured(task.objectives, figures), figures.pending, tuple(outcome.plugin_failures))
