"""Many simulations of one scenario, with other profiles or seeds. One process a core runs them, each as if it were alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from placewright.api.profile import SchedulingProfile
from placewright.framework.registry import Registry
from placewright.framework.runtime.calllimit import limited_calls
from placewright.profiles.resolve import resolve
from placewright_lab.simulation.outcome import Outcome
from placewright_lab.simulation.scenario import Scenario
from placewright_lab.simulation.simulation import Which, simulate
from placewright_lab.simulation.workprocesses import WorkProcesses, usable_cores

#: Number of objects of all simulations below which they run one after the other. That takes less than a process's start, about a second.
_SMALL: Final = 5000


@dataclass(frozen=True, slots=True)
class SimulationRun:
    """One simulation.

    Attributes:
        name: name for people.
        profiles: profiles that serve side by side.
    """

    name: str
    profiles: tuple[SchedulingProfile, ...]
    seed: int


@dataclass(frozen=True, slots=True)
class Sweep:
    """The common part of all simulations, which each process gets once.

    Attributes:
        together: schedulerNames whose pods a single profile places besides its own.
    """

    scenario: Scenario
    registry: Registry
    which: Which
    together: frozenset[str] = frozenset()

    def outcome(self, one: SimulationRun) -> Outcome:
        """Return the outcome of one simulation. Raises `PluginError` for a plugin that does not return, because a retry would hang, too."""
        profiles = tuple(resolve(profile, self.registry, self.scenario.kubernetes) for profile in one.profiles)
        with limited_calls():
            return simulate(self.scenario, profiles, self.registry, seed=one.seed, which=self.which, name=one.name, together=self.together)


@contextmanager
def outcomes_of(sweep: Sweep, simulations: Sequence[SimulationRun], jobs: int | None = None) -> Iterator[Iterator[Outcome]]:
    """Yield the outcomes in the simulations' order. Without a number of processes `jobs`, machine and scenario decide."""
    count = jobs_for(sweep.scenario, len(simulations), jobs)
    if count == 1:
        yield map(sweep.outcome, simulations)
        return
    with WorkProcesses[SimulationRun, Outcome](sweep.outcome, count) as running:
        yield running.results(simulations)


def jobs_for(scenario: Scenario, simulations: int, jobs: int | None) -> int:
    """Return the number of processes for so many simulations: the one that was asked for, or one a core if that pays."""
    if jobs is None:
        objects = len(scenario.objects) + len(scenario.happenings)
        jobs = 1 if objects * simulations < _SMALL else usable_cores()
    return max(1, min(jobs, simulations))
