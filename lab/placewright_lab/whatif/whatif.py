"""Tries a changed profile on the cluster that the console shows.

It answers three questions:

- Which waiting pods would fit that do not fit now, and which would not fit any more?
- How full would nodes be if the waiting pods were placed?
- Which placements of the last hour would differ?

The answers about the unchanged profile are kept, so that a further change needs its own answers alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from placewright.api.bad_input import InputError
from placewright.api.profile import SchedulingProfile
from placewright.explain.observed import oldest_of
from placewright.framework.errors import PluginError
from placewright.framework.registry import Registry
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.offline.world import offline_evaluator
from placewright.profiles.editorschema import editor_schema
from placewright.profiles.resolve import resolve
from placewright_console.local.seenworld import SeenWorld
from placewright_lab.figures.figures import PodClass
from placewright_lab.whatif.whatifanswer import Answer, LastHour, Line, Lines, Mix, Subject, TriedProfile
from placewright_lab.whatif.whatifpatch import ChangedProfile, changed, settable_weights, shown_spec, taken_along
from placewright_lab.whatif.whatifworld import TrialCluster

#: Seconds for which the copy of a changing cluster serves, so that the answers about two changes can be compared.
_FRESH_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class _Known:
    """A profile without a change, and the answers about it on the current copy."""

    profile: SchedulingProfile
    resolved: ResolvedProfile | None
    side: TriedProfile
    subject: Subject


class WhatIf:
    """Answers questions about changes of profiles, one at a time."""

    def __init__(self, registry: Registry, clock: Callable[[], float]) -> None:
        """Know no cluster yet. `clock` returns monotonic seconds."""
        self._registry = registry
        self._clock = clock
        self._world: SeenWorld | None = None
        self._trial: TrialCluster | None = None
        self._mix: tuple[PodClass, ...] = ()
        self._hour = LastHour()
        self._changes = -1
        self._copied = 0.0
        self._known: _Known | None = None

    def form(self, world: SeenWorld) -> Line:
        """Return the form of the page: the profiles, their weights in effect, and the schema of their fields."""
        schema = editor_schema(self._registry)
        pods = Counter(pod.scheduler_name for pod in world.pending.values())
        pods.update(each.pod.scheduler_name for each in world.cluster.placements())
        return {
            "profiles": [{**self._described(profile), "pods": pods[profile.spec.scheduler_name]} for profile in world.profiles],
            "schema": schema["properties"]["spec"],
            "definitions": schema["$defs"],
        }

    def _described(self, profile: SchedulingProfile) -> Line:
        meta = profile.metadata
        return {
            "name": meta.name,
            "uid": meta.uid,
            "generation": meta.generation,
            "schedulerName": profile.spec.scheduler_name,
            "spec": shown_spec(profile),
            "weights": settable_weights(profile, self._registry),
        }

    # --- the copy ----------------------------------------------------------------------------------------------------------------

    def is_fresh(self, world: SeenWorld) -> bool:
        """Return whether the copy of the cluster still serves: nothing has changed since, or it was made some seconds ago."""
        fresh = self._changes == world.changes or self._clock() < self._copied + _FRESH_SECONDS
        return self._trial is not None and self._world is world and fresh

    def prepared(self, world: SeenWorld) -> Iterator[None]:
        """Bring the copy of the cluster up to date if it is not fresh, piece by piece. `answer` needs all pieces."""
        if self.is_fresh(world):
            return
        # If this does not run to its end, there is no copy, and the next one is made from nothing.
        trial, self._trial, self._known = self._trial if self._world is world else None, None, None
        trial = trial or TrialCluster(world)
        self._world, self._changes = world, world.changes
        yield from trial.follow()
        mix, hour = Mix(), LastHour()
        yield from mix.count(trial)
        yield from hour.find(trial, list(world.placements))
        self._trial, self._mix, self._hour, self._copied = trial, mix.classes(), hour, self._clock()

    # --- answers -----------------------------------------------------------------------------------------------------------------

    def answer(self, name: str, changes: Mapping[str, Any]) -> Lines:
        """Answer what a merge patch of a profile's `spec` would do, on the copy that `prepared` made.

        Lines have a `part`: `problems`, or `patch`, `basis`, then `waiting`, `placing` and `recent` several times each, and `end`. A step
        without a line yields None.
        """
        began, profile = self._clock(), self._profile(name)
        if profile is None:
            yield {"part": "problems", "problems": [["", "no such profile", "the name of a profile that the console shows"]]}
            return
        made = changed(profile, changes, self._registry)
        yield self._patch(profile, made)
        if made.profile is None:
            return
        known = self._as_is(profile)
        yield None
        try:
            after = self._after(known, made)
        except (PluginError, InputError) as problem:
            yield {"part": "problems", "problems": [["", str(problem), "a profile whose plugins can be built"]]}
            return
        yield {
            "part": "basis", "now": known.subject.trial.now, "same": after is known.side, "claims": self._claims(profile),
            "problem": known.side.problem,
        }  # fmt: skip
        answer = Answer(known.subject, known.side, after, self._clock)
        yield from answer.lines()
        yield {"part": "end", "seconds": round(self._clock() - began, 3), "cut": answer.cut}

    def _profile(self, name: str) -> SchedulingProfile | None:
        assert self._world is not None
        return next((each for each in self._world.profiles if each.metadata.name == name), None)

    def _patch(self, profile: SchedulingProfile, made: ChangedProfile) -> Line:
        if made.problems:
            return {"part": "problems", "problems": [list(each) for each in made.problems]}
        weights = {} if made.profile is None else settable_weights(made.profile, self._registry)
        return {"part": "patch", **taken_along(profile, made, self._registry), "weights": weights}

    def _claims(self, profile: SchedulingProfile) -> bool:
        """Return whether the profile serves its schedulerName: of several profiles, the oldest one does."""
        assert self._world is not None
        return oldest_of(list(self._world.profiles), profile.spec.scheduler_name) is profile

    def _as_is(self, profile: SchedulingProfile) -> _Known:
        known = self._known
        # An operator writes the status every few seconds, and each time there is a new object.
        if known is not None and _same(known.profile, profile):
            return known
        trial = self._trial
        assert trial is not None
        name = profile.spec.scheduler_name
        pods = [pod for pod in trial.pending if pod.scheduler_name == name and not pod.terminating] if self._claims(profile) else []
        resolved: ResolvedProfile | None = None
        try:
            resolved = self._resolved(profile)
            side = self._side(resolved)
        except (PluginError, InputError) as problem:
            side = TriedProfile(None, f"the profile cannot be used: {problem}")
        self._known = _Known(profile, resolved, side, Subject(trial, pods, self._hour.of(name), self._mix))
        return self._known

    def _after(self, known: _Known, made: ChangedProfile) -> TriedProfile:
        """Return the changed profile on trial. If it decides like before, return the same object as before."""
        assert made.profile is not None
        resolved = self._resolved(made.profile)
        if known.resolved is not None and _decisive(resolved) == _decisive(known.resolved):
            return known.side
        return self._side(resolved)

    def _resolved(self, profile: SchedulingProfile) -> ResolvedProfile:
        assert self._world is not None
        return resolve(profile, self._registry, self._world.kubernetes)

    def _side(self, resolved: ResolvedProfile) -> TriedProfile:
        trial = self._trial
        assert trial is not None
        return TriedProfile(offline_evaluator(resolved, self._registry, trial.cluster, trial.members))


def _same(one: SchedulingProfile, other: SchedulingProfile) -> bool:
    return (one.metadata.name, one.metadata.uid, one.spec) == (other.metadata.name, other.metadata.uid, other.spec)


def _decisive(profile: ResolvedProfile) -> tuple[object, ...]:
    """Return the parts of a profile that decide on which node a pod goes. Backoff and fairness are no such parts."""
    return profile.points, profile.weights, profile.args, profile.settings.percentage_of_nodes_to_score
