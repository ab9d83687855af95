"""`placewright tune`: searches for weights with better figures on the same cluster and pods, and shows their cost in other figures."""

from __future__ import annotations

import argparse
import re
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
from rich.console import Console

from placewright.api.bad_input import bad_field
from placewright.api.objects import ObjectMeta
from placewright.api.profile import SchedulingProfile
from placewright.api.profilelimits import MAX_WEIGHT
from placewright.cli.helptexts import describe
from placewright.cli.options import Subparsers, whole_number
from placewright.cli.terminal import console, print_data, print_table, say, table
from placewright.framework.registry import Registry, installed_plugins
from placewright.framework.runtime.resolvedprofile import ExtensionPoint
from placewright.plugins.catalog import in_tree
from placewright.profiles.kubescheduler.documents import manifest, to_yaml
from placewright.profiles.problem import did_you_mean
from placewright.profiles.resolve import resolve
from placewright_lab.commands.helptexts import TEXTS
from placewright_lab.commands.scenariooptions import (
    Candidate,
    FailedPlugins,
    add_jobs_option,
    add_scenario_options,
    profiles_in_file,
    profiles_of,
    say_not_asked,
    scenario_of,
    write_text,
)
from placewright_lab.simulation.sweep import jobs_for
from placewright_lab.tune.sharedstudy import SharedStudy, StudyPlace, tune, tune_together
from placewright_lab.tune.studystorage import errors_in_a_line, open_storage
from placewright_lab.tune.weightsearch import OBJECTIVES, STRATEGY, Search, Setting, Task, Trial, TunedSetting, parse_objectives

INTERRUPTED: Final = 130
_STUDY: Final = "tune"
_STRATEGIES: Final = ("LeastAllocated", "MostAllocated")
_RANGE: Final = re.compile(r"([0-9]{1,9})\.\.([0-9]{1,9})")


def register(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("tune", help="search for weights under which the same pods are placed better")
    add_scenario_options(parser)
    objective = f"what is to be better, the most important first, with commas between them: {', '.join(OBJECTIVES)}"
    parser.add_argument("--objective", required=True, metavar="NAMES", help=objective)
    vary = f"a plugin's weight and its range (NodeResourcesFit=0..10), or {STRATEGY}={'|'.join(_STRATEGIES)}; repeatable"
    parser.add_argument("--vary", action="append", required=True, metavar="PLUGIN=LOW..HIGH", help=vary)
    profile = "the SchedulingProfile to begin with (default: the snapshot's or recording's, or kube-scheduler's default profile)"
    parser.add_argument("--profile", type=Path, metavar="FILE", help=profile)
    trials = "simulations besides that of the profile as it is (default: 30)"
    parser.add_argument("--trials", type=whole_number(1, 100_000), default=30, metavar="N", help=trials)
    add_jobs_option(parser, "--processes")
    _add_storage_options(parser)
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="default: table")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the best as a SchedulingProfile")
    parser.set_defaults(main=main)
    describe(parser, "tune", TEXTS)


def _add_storage_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("several machines, and searches that go on")
    storage = "keep the search in a file of Optuna's (a path on a shared file system) or a database (sqlite:///, postgresql://)"
    group.add_argument("--storage", metavar="URL", help=f"{storage}; all workers that name it share the trials")
    group.add_argument("--study", metavar="NAME", help=f"which search of the storage (default: {_STUDY})")
    worker = "the number of this worker, so that each proposes other settings (default: 0)"
    group.add_argument("--worker", type=whole_number(0, 1_000_000), metavar="N", help=worker)


def main(args: argparse.Namespace) -> int:
    """Search, and print the results. After an interruption, print the results until then."""
    registry = in_tree().with_installed(installed_plugins())
    objectives, knobs = parse_objectives(args.objective), parse_knobs(args.vary, registry)
    base = _base(args.profile, args.snapshot, args.record)
    tried = [Candidate(base.metadata.name, (resolve(base, registry),))]
    say_not_asked(tried, "tune")
    task = Task(scenario_of(args, tried), base, knobs, objectives, registry, args.seed, args.which)
    if args.write is not None:
        _try_to_write(args.write)
    search, code = Search(task), 0
    try:
        _search(search, args)
    except KeyboardInterrupt:
        code = INTERRUPTED
    if not search.trials:
        return code
    failed = FailedPlugins()
    for trial in search.trials:
        failed.note(base.metadata.name or base.spec.scheduler_name, trial.result.plugin_failures)
    _print(search, args.output)
    if args.write is not None:
        write_text(args.write, to_yaml([manifest(_named(search.best_profile))], [_summary(search)]))
    return code or failed.exit_code()


def _search(search: Search, args: argparse.Namespace) -> None:
    task, told = search.task, _progress(args.trials)
    jobs = jobs_for(task.scenario, _simulations(task, args.trials), args.jobs)
    if args.storage is None:
        for option in ("study", "worker"):
            if getattr(args, option) is not None:
                raise bad_field(f"--{option}", getattr(args, option), "only with --storage")
        tune(search, args.trials, jobs, told)
        return
    place = StudyPlace(open_storage(args.storage), args.study or _STUDY, partial(errors_in_a_line, args.storage))
    study = SharedStudy(place, task, args.trials, args.worker or 0)
    with _ended_as_by_an_interrupt():
        tune_together(search, study, jobs, told)


@contextmanager
def _ended_as_by_an_interrupt() -> Iterator[None]:
    """End on SIGTERM like on Ctrl-C. So a worker that a cluster or a batch system ends gives its unfinished trials back."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _simulations(task: Task, trials: int) -> int:
    """Return the number of simulations, including that of the unchanged profile."""
    return min(trials, task.combinations) + 1


def parse_knobs(texts: Sequence[str], registry: Registry) -> tuple[TunedSetting, ...]:
    """Parse each `--vary`. Raises `InputError` for a setting that cannot vary in this way, or occurs twice."""
    knobs = tuple(_knob(text, registry) for text in texts)
    names = [knob.name for knob in knobs]
    for name in names:
        if names.count(name) > 1:
            raise bad_field("--vary", name, f"each name once, and it is there {names.count(name)} times")
    return knobs


def _knob(text: str, registry: Registry) -> TunedSetting:
    name, _, choices = text.partition("=")
    if name == STRATEGY:
        return TunedSetting(name, _words(name, choices))
    scoring = sorted(plugin for plugin, kind in registry.items() if ExtensionPoint.SCORE.implemented_by(kind))
    if name not in scoring:
        raise bad_field("--vary", name, f"{', '.join(scoring)}, {STRATEGY}{did_you_mean(name, [*scoring, STRATEGY])}")
    match = _RANGE.fullmatch(choices)
    low, high = (int(match[1]), int(match[2])) if match else (1, 0)
    if not low <= high <= MAX_WEIGHT:
        raise bad_field(f"--vary {name}", choices, f"LOW..HIGH, whole numbers from 0 to {MAX_WEIGHT}, such as 0..10")
    return TunedSetting(name, range(low, high + 1))


def _words(name: str, text: str) -> tuple[Setting, ...]:
    words = tuple(text.split("|"))
    if not set(words) <= set(_STRATEGIES) or len(set(words)) != len(words):
        raise bad_field(f"--vary {name}", text, "|".join(_STRATEGIES))
    return words


def _base(path: Path | None, snapshot: Path | None, record: Path | None) -> SchedulingProfile:
    """Return the one profile to begin with."""
    found = profiles_of(snapshot, record) if path is None else profiles_in_file(path)
    if len(found) != 1:
        raise bad_field(str(path or snapshot or record), f"{len(found)} profiles", "one; name a file with a single profile with --profile")
    return found[0]


def _named(profile: SchedulingProfile) -> SchedulingProfile:
    """Name the profile `tuned` if it has no name."""
    return profile if profile.metadata.name else msgspec.structs.replace(profile, metadata=ObjectMeta(name="tuned"))


def _progress(trials: int) -> Any:
    """Print the progress of the search on a terminal."""
    err = Console(stderr=True)

    def told(search: Search) -> None:
        if err.is_terminal:
            of = min(trials, search.task.combinations)
            end = "\n" if len(search.trials) > of else "\r"
            err.print(f"{len(search.trials) - 1} of {of} trials, {len(search.front)} on the front", end=end)

    return told


def _print(search: Search, output: str) -> None:
    if output == "json":
        print_data(as_data(search), output)
        return
    out, names = console(), [objective.name for objective in search.task.objectives]
    settings = [knob.name for knob in search.task.knobs]
    pending = [] if "pending" in names else ["PENDING"]
    heads = [*(name.upper() for name in names), *pending]
    made = table("TRIAL", *settings, *heads, "", numbers=["TRIAL", *settings, *heads])
    first = search.trials[0]
    rest = [trial for trial in search.front if trial is not first]
    for trial in [first, *rest]:
        values = [_number(value) for value in trial.result.values]
        chosen = [str(trial.settings.get(name, "–")) for name in settings]
        made.add_row(str(trial.number), *chosen, *values, *([str(trial.result.pending)] if pending else []), _note(search, trial))
    print_table(out, made)
    say(out, _summary(search))


def _note(search: Search, trial: Trial) -> str:
    notes = ["as it is"] if trial.number == 0 else []
    notes += ["beaten"] if trial not in search.front else []
    return ", ".join([*notes, "best"] if trial is search.best else notes)


def _summary(search: Search) -> str:
    objectives = ", ".join(f"{one.name} ({'more' if one.maximise else 'less'} is better)" for one in search.task.objectives)
    tried, all_ = len(search.trials) - 1, search.task.combinations
    return f"{tried} of {all_} combinations tried with seed {search.task.seed}, for {objectives}"


def _number(value: float) -> str:
    return f"{value:g}" if value == int(value) else f"{value:.4g}" if abs(value) < 1 else f"{value:.1f}"


def as_data(search: Search) -> dict[str, Any]:
    """Return the search as plain data."""
    task = search.task
    return {
        "scenario": task.scenario.source,
        "seed": task.seed,
        "combinations": task.combinations,
        "objectives": [{"name": one.name, "direction": "maximise" if one.maximise else "minimise"} for one in task.objectives],
        "best": search.best.number,
        "front": [trial.number for trial in search.front],
        "trials": [_trial(search, trial) for trial in search.trials],
    }


def _trial(search: Search, trial: Trial) -> dict[str, Any]:
    names = (objective.name for objective in search.task.objectives)
    values = dict(zip(names, trial.result.values, strict=True))
    return {"trial": trial.number, "settings": dict(trial.settings), "values": values, "pending": trial.result.pending}


def _try_to_write(path: Path) -> None:
    """Raise an error if the file cannot be written, before minutes of simulation. The file stays unchanged."""
    new = not path.exists()
    write_text(path, "", "a")
    if new:
        path.unlink()
