"""The measure of Weng et al. (USENIX ATC 2023, section 3) as the paper writes it: one node, one class of pods, one device at a time.

It shares nothing with the plugin. Devices are counted in fractions of one, as in the paper.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations


@dataclass(frozen=True)
class Task:
    """A class of pods: D_m. `gpu` is below one, or a whole number; `models` are the labels that it accepts, None for any."""

    cpu: int
    memory: int
    gpu: Fraction
    models: frozenset[str] | None = None


@dataclass(frozen=True)
class Machine:
    """A node: R_n. `gpus` are what is free on each device."""

    cpu: int
    memory: int
    gpus: tuple[Fraction, ...]
    model: str = ""


def can_run(task: Task, machine: Machine) -> bool:
    """Whether the machine is in the paper's quadrant III for this task."""
    if task.cpu > machine.cpu or task.memory > machine.memory:
        return False
    if task.models is not None and machine.model not in task.models:
        return False
    if task.gpu <= 1:
        return any(free >= task.gpu for free in machine.gpus)
    return sum(1 for free in machine.gpus if free == 1) >= task.gpu


def fragment_for(task: Task, machine: Machine) -> Fraction:
    """F_n(m)."""
    if not can_run(task, machine):
        return sum(machine.gpus, Fraction(0))
    return sum((free for free in machine.gpus if free < min(task.gpu, Fraction(1))), Fraction(0))


def fragmentation(mix: Sequence[tuple[Task, int]], machine: Machine) -> Fraction:
    """F_n(M), with the number of pods of a class for its popularity."""
    return sum((count * fragment_for(task, machine) for task, count in mix), Fraction(0))


def placements(task: Task, machine: Machine) -> Iterator[tuple[tuple[int, ...], Machine]]:
    """Every choice of devices for the task, and what is left then."""
    left = replace(machine, cpu=machine.cpu - task.cpu, memory=machine.memory - task.memory)
    number = 0 if task.gpu == 0 else 1 if task.gpu <= 1 else int(task.gpu)
    each = min(task.gpu, Fraction(1))
    for chosen in combinations(range(len(machine.gpus)), number):
        if all(machine.gpus[index] >= each for index in chosen):
            yield chosen, replace(left, gpus=tuple(free - each if index in chosen else free for index, free in enumerate(machine.gpus)))


def least_growth(mix: Sequence[tuple[Task, int]], task: Task, machine: Machine) -> Fraction | None:
    """The least growth of F_n(M) that any choice of devices has; None where the task has no room."""
    before = fragmentation(mix, machine)
    return min((fragmentation(mix, left) - before for _, left in placements(task, machine)), default=None)
