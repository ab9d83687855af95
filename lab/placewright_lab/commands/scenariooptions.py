"""The common parts of the commands that simulate: their options, the scenario that these name, and the profiles to try."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Final

from placewright.api.bad_input import InputError, bad_field, printable
from placewright.api.profile import SchedulingProfile, default_profile
from placewright.cli.options import whole_number
from placewright.framework.registry import Registry
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.profiles.config import placing, read_profiles
from placewright.profiles.problem import ProfileError
from placewright.profiles.resolve import resolve
from placewright_lab.readers.inflation import inflated
from placewright_lab.readers.inputs import join, read_scenario, read_sources
from placewright_lab.simulation.outcome import Outcome
from placewright_lab.simulation.scenario import Scenario
from placewright_lab.simulation.simulation import Which, asked_for
from placewright_lab.snapshots.snapshot import profiles_in, read_recording, read_snapshot

#: Number of processes, more than any machine can use.
MOST_JOBS: Final = 1024


@dataclass(frozen=True, slots=True)
class Candidate:
    """The profiles of one `--profile`. The profiles of a file run side by side, each for its schedulerName.

    Attributes:
        declared: profiles in their written form, for another process.
    """

    name: str
    profiles: tuple[ResolvedProfile, ...]
    declared: tuple[SchedulingProfile, ...] = ()


def add_scenario_options(parser: argparse.ArgumentParser, default: Which = Which.PENDING) -> None:
    """Add options for the cluster, its pods, the pods to place (by default `default`), and the seed."""
    parser.add_argument("--record", type=Path, metavar="FILE", help="what `placewright record` saw; its pods come when they came")
    files = "manifests (a file or a folder), or a trace in the openb CSV format; repeatable"
    parser.add_argument("--snapshot", type=Path, metavar="FILE", help="a cluster as `placewright snapshot` saved it")
    parser.add_argument("-f", "--file", action="append", type=Path, default=[], metavar="FILE", help=files)
    parser.add_argument("--pods", action="append", type=Path, default=[], metavar="FILE", help="more pods, as -f")
    parser.add_argument("--at-once", action="store_true", help="all pods of a trace are there at the beginning, and stay")
    inflate = "draw pods from those given until they ask for so many percent of the GPUs; implies --at-once"
    parser.add_argument("--inflate", type=whole_number(1, 1000), metavar="PERCENT", help=inflate)
    start = "seconds from a pod's Binding until it is Ready, which the plugin NodeStartRate goes by (default: 0)"
    parser.add_argument("--start-seconds", type=whole_number(0, 86_400), default=0, metavar="SECONDS", help=start)
    which = parser.add_mutually_exclusive_group()
    choices = (
        ("--pending", Which.PENDING, "place the pods that have no node"),
        ("--all-pods", Which.ALL, "place pods that have a node anew, too"),
    )
    for option, pods, text in choices:
        says = f"{text} (default)" if pods is default else text
        which.add_argument(option, dest="which", action="store_const", const=pods, default=default, help=says)
    seed = "of the choice among equally good nodes, and of what --inflate draws (default: 0)"
    parser.add_argument("--seed", type=whole_number(0, 2**32), default=0, metavar="N", help=seed)


def add_jobs_option(parser: argparse.ArgumentParser, *also: str) -> None:
    """Add `--jobs`, for commands that simulate more than once. `also` is its former name."""
    jobs = "simulations at the same time; the result does not depend on it (default: one a core, or one where all of them are small)"
    parser.add_argument("--jobs", *also, dest="jobs", type=whole_number(1, MOST_JOBS), metavar="N", help=jobs)


def scenario_of(args: argparse.Namespace, tried: Sequence[Candidate]) -> Scenario:
    """Read the scenario that the options name. Raises `InputError` for one without nodes or without files.

    The pods of `tried` are placed anew if they come from a recording. Pods of other schedulers keep their nodes.
    """
    paths = [*args.file, *args.pods]
    parts = [] if args.snapshot is None else [read_snapshot(args.snapshot)]
    if args.record is not None:
        parts.append(_recorded(args.record, {profile.scheduler_name for one in tried for profile in one.profiles}))
    if paths:
        parts.append(read_scenario(paths, at_once=args.at_once or args.inflate is not None))
    if not parts:
        raise InputError("nothing to simulate: name a snapshot with --snapshot, a recording with --record, or manifests or a trace with -f")
    scenario = reduce(join, parts)
    kinds = {manifest.get("kind") for manifest in (*scenario.objects, *(happening.manifest for happening in scenario.happenings))}
    for kind in ("Node", "Pod"):
        if kind not in kinds:
            raise bad_field(f"{scenario.source}: {kind}s", "none", "at least one")
    scenario = replace(scenario, start_seconds=float(args.start_seconds))
    return scenario if args.inflate is None else replace(inflated(scenario, args.inflate, args.seed), start_seconds=scenario.start_seconds)


def _recorded(file: Path, schedulers: set[str]) -> Scenario:
    recording = read_recording(file, schedulers=schedulers)
    for note in recording.notes:
        sys.stderr.write(f"placewright: {printable(note)}\n")
    return recording.scenario


def candidates(paths: Sequence[Path], registry: Registry, snapshot: Path | None = None, record: Path | None = None) -> list[Candidate]:
    """Return the profiles of each file. Without files, return the profiles of the snapshot or the recording, or kube-scheduler's default.

    Raises `InputError` for a file without profiles, and `ProfileError` for profiles that could not take effect.
    """
    if not paths:
        return [_candidate(profiles_of(snapshot, record), str(snapshot or record or "the default profile"), registry)]
    several = [_from_file(path, registry) for path in paths]
    names = Counter(candidate.name for candidate in several)
    return [replace(one, name=f"{one.name} ({path})") if names[one.name] > 1 else one for one, path in zip(several, paths, strict=True)]


def say_not_asked(tried: Sequence[Candidate], command: str) -> None:
    """Note each extender that `command` does not call, because extenders are other people's servers."""
    for candidate in tried:
        for extender in (extender for profile in candidate.profiles for extender in profile.extenders):
            sys.stderr.write(f"placewright: {printable(extender.name)} is not asked: {command} calls no extenders\n")


class FailedPlugins:
    """Collects the failures of plugins in simulations. A command whose figures depend on a broken plugin must not end with 0."""

    def __init__(self) -> None:
        self._told: dict[str, None] = {}

    def watch(self, outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
        """Yield the outcomes, and note the failures of each."""
        for outcome in outcomes:
            self.note(outcome.profile, outcome.plugin_failures)
            yield outcome

    def note(self, name: str, failures: Iterable[str]) -> None:
        """Note the failures under the profile of this name, a sentence for each."""
        self._told |= dict.fromkeys(f"{name}: {sentence}" for sentence in failures)

    def exit_code(self) -> int:
        """Return 2 if a plugin failed, after a line on standard error for each failure. Otherwise return 0."""
        for line in self._told:
            sys.stderr.write(f"placewright: error: {printable(line)}\n")
        return 2 if self._told else 0


def names_together(tried: Sequence[Candidate], scenario: Scenario) -> frozenset[str]:
    """Return all schedulerNames that one of the candidates serves. Their pods are the subject of the comparison."""
    asked = asked_for(scenario)
    names = [{profile.scheduler_name for profile in candidate.profiles} for candidate in tried]
    return frozenset[str]().union(*(asked if len(each) == 1 and not each & asked else each for each in names))


def say_left_out(outcomes: Sequence[Outcome]) -> None:
    """Tell which pods the profiles leave where they are, because a comparison is not about them."""
    for outcome in outcomes:
        if outcome.passed_over:
            sys.stderr.write(f"placewright: {printable(left_out(outcome))}\n")


def left_out(outcome: Outcome) -> str:
    """Return the line about pods of other schedulers, for an outcome that has some."""
    first, *more = outcome.passed_over
    are = "pods of other schedulers are left where they are" if more else "pod of another scheduler is left where it is"
    return f"{outcome.profile}: {len(outcome.passed_over)} {are}, such as {first}"


def profiles_of(snapshot: Path | None, record: Path | None) -> list[SchedulingProfile]:
    """Return the profiles of a snapshot and of a recording, or kube-scheduler's default if there are none."""
    found = [] if snapshot is None else list(profiles_in(snapshot))
    found += [] if record is None else read_recording(record).profiles
    return found or [default_profile()]


def profiles_in_file(path: Path) -> list[SchedulingProfile]:
    """Return the profiles of a file or a folder."""
    return [profile for source in read_sources([path]) for profile in read_profiles(source.text, source.name)]


def write_text(path: Path, text: str, mode: str = "w") -> None:
    """Write a file. Raises `InputError` in one line."""
    try:
        with path.open(mode, encoding="utf-8") as file:
            file.write(text)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be written: {getattr(error, 'strerror', None) or error}") from None


def _from_file(path: Path, registry: Registry) -> Candidate:
    profiles = profiles_in_file(path)
    if not profiles:
        raise bad_field(str(path), "no profile", "a SchedulingProfile or a KubeSchedulerConfiguration")
    return _candidate(profiles, str(path), registry)


def _candidate(profiles: Sequence[SchedulingProfile], source: str, registry: Registry) -> Candidate:
    claimed: set[str] = set()
    profiles = placing(profiles)
    for profile in profiles:
        if profile.spec.scheduler_name in claimed:
            raise bad_field(f"{source}: schedulerName", profile.spec.scheduler_name, "a name that no other profile of the file has")
        claimed.add(profile.spec.scheduler_name)
    try:
        resolved = tuple(resolve(profile, registry) for profile in profiles)
    except ProfileError as error:
        raise ProfileError(error.problems, source) from None
    return Candidate("+".join(profile.name or profile.scheduler_name for profile in resolved), resolved, tuple(profiles))
