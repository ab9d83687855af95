"""The objectives of tuning: figures of an outcome, each with the direction in which it is better. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from placewright.api.bad_input import bad_field
from placewright.api.requests import CPU, MEMORY
from placewright.profiles.problem import did_you_mean
from placewright_lab.figures.figures import Figures
from placewright_lab.readers.openb import is_gpu, whole_gpus

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
