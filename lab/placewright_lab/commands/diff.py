"""`placewright diff`: shows the effect of a change of profiles on a cluster, for a review before it is merged."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from msgspec.structs import replace

from placewright.api.bad_input import InputError, in_json
from placewright.api.compatibility import CHOICES
from placewright.cli.helptexts import describe
from placewright.cli.options import Subparsers
from placewright.cli.terminal import console, print_data
from placewright.framework.registry import Registry, installed_plugins
from placewright.plugins.catalog import in_tree
from placewright.profiles.resolve import resolve
from placewright_lab.commands.helptexts import TEXTS
from placewright_lab.commands.review import Review, effective, markdown, review_data, show
from placewright_lab.commands.scenariooptions import (
    Candidate,
    FailedPlugins,
    add_jobs_option,
    add_scenario_options,
    candidates,
    names_together,
    say_left_out,
    say_not_asked,
    scenario_of,
)
from placewright_lab.figures.comparison import ProfileComparison, compare
from placewright_lab.simulation.scenario import Scenario
from placewright_lab.simulation.simulation import Which
from placewright_lab.simulation.sweep import SimulationRun, Sweep, outcomes_of


def register(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("diff", help="say what a change of profiles would do to a cluster, for a pull request")
    profiles = "a file of SchedulingProfiles, or a KubeSchedulerConfiguration"
    parser.add_argument("before", type=Path, metavar="BEFORE", help=f"{profiles}, as it is")
    parser.add_argument(
        "after", type=Path, nargs="?", metavar="AFTER", help="the same as it shall be; may be left out with --compatibility"
    )
    versions = "follow one version of kube-scheduler before and another after, such as 1.36..1.38, and not what the profiles say"
    parser.add_argument("--compatibility", type=_versions, metavar="FROM..TO", help=versions)
    add_scenario_options(parser, Which.ALL)
    add_jobs_option(parser)
    parser.add_argument("-o", "--output", choices=("table", "markdown", "json"), default="table", help="default: table")
    grows = "exit code 1 when more pods are pending than before"
    parser.add_argument("--fail-if-pending-grows", action="store_true", help=grows)
    parser.set_defaults(main=main)
    describe(parser, "diff", TEXTS)


def main(args: argparse.Namespace) -> int:
    """Print the differences in effect, and their result on the cluster."""
    registry = in_tree().with_installed(installed_plugins())
    if args.after is None and args.compatibility is None:
        raise InputError("AFTER: found nothing; allowed a file of profiles, or --compatibility FROM..TO")
    after = args.after or args.before
    sides = candidates([args.before, after], registry)
    if args.compatibility is not None:
        sides = [_following(version, side, registry) for version, side in zip(args.compatibility, sides, strict=True)]
    found = effective(sides[0].profiles, sides[1].profiles)
    scenario = scenario_of(args, sides)  # wrong input is an error, even if nothing differs
    failed = FailedPlugins()
    comparison = _compared(scenario, sides, registry, args, failed) if found else None
    versions = [f" at {version}" for version in args.compatibility or ()] or ["", ""]
    review = Review(f"{args.before}{versions[0]}", f"{after}{versions[1]}", found, comparison)
    _print(review, args.output)
    return failed.exit_code() or int(args.fail_if_pending_grows and review.more_pending > 0)


def _versions(text: str) -> list[str]:
    found = text.split("..")
    if len(found) != 2 or not all(each in CHOICES[1:] for each in found):
        raise argparse.ArgumentTypeError(
            f"found {in_json(text)}; allowed two versions from {CHOICES[1]} to {CHOICES[-1]}, such as 1.36..1.38"
        )
    return found


def _following(version: str, side: Candidate, registry: Registry) -> Candidate:
    """Let profiles follow a version, instead of the one that they say."""
    declared = tuple(replace(each, spec=replace(each.spec, compatibility=version)) for each in side.declared)
    return Candidate(side.name, tuple(resolve(each, registry) for each in declared), declared)


def _compared(
    scenario: Scenario, sides: list[Candidate], registry: Registry, args: argparse.Namespace, failed: FailedPlugins
) -> ProfileComparison:
    say_not_asked(sides, "diff")
    simulations = [SimulationRun(name, side.declared, args.seed) for side, name in zip(sides, ("before", "after"), strict=True)]
    with outcomes_of(Sweep(scenario, registry, args.which, names_together(sides, scenario)), simulations, args.jobs) as outcomes:
        found = list(failed.watch(outcomes))
    say_left_out(found)
    return compare(scenario.source, found)


def _print(review: Review, output: str) -> None:
    if output == "json":
        print_data(review_data(review), output)
    elif output == "markdown":
        sys.stdout.write(markdown(review))
    else:
        show(console(), review)
