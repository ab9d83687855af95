"""`placewright evaluate`: shows the scheduler's decision about a pod, and its reasons, without a cluster.

A verdict as tables for people.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from placewright.api.bad_input import InputError, bad_field, printable
from placewright.api.pods import PodInfo
from placewright.api.profile import SchedulingProfile, default_profile
from placewright.cli.helptexts import describe
from placewright.cli.options import Subparsers
from placewright.cli.terminal import lines, plain, print_json, printable_json
from placewright.framework.errors import PluginError
from placewright.framework.registry import Registry, installed_plugins
from placewright.framework.runtime.calllimit import limited_calls
from placewright.framework.runtime.guard import Guarding
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.offline.world import OfflineCluster, offline_evaluator, world_from
from placewright.plugins.catalog import in_tree
from placewright.profiles.config import placing, read_profiles
from placewright.profiles.problem import ProfileError
from placewright.profiles.resolve import resolve
from placewright_lab.commands.helptexts import TEXTS
from placewright_lab.readers.goldencases import answer, read_cases
from placewright_lab.readers.inputs import load_objects, read_sources
from placewright_lab.simulation.evaluation import NodeVerdict, Verdict, evaluate_pod

#: Number of nodes with all their scores. A line sums up the rest.
MOST_NODES: Final = 20
_NUMBER_COLUMNS: Final = ("RAW", "NORMALISED", "WEIGHT", "PRODUCT")


def show_verdict(console: Console, pod: PodInfo, profile: SchedulingProfile, verdict: Verdict) -> None:
    """Print which nodes fit and how well, the reasons of the others, and the result of preemption."""
    name = profile.metadata.name or profile.spec.scheduler_name
    console.print(plain(f"pod {pod.key}, profile {name}"))
    for told in (verdict.gated and f"gated: {verdict.gated}", verdict.error and f"error: {verdict.error}"):
        if told:
            console.print(plain(told))
    fitting = sorted((node for node in verdict.nodes if node.fits), key=lambda node: (-node.total, node.node))
    rejected = [node for node in verdict.nodes if not node.fits]
    if fitting:
        console.print(_scores(fitting[:MOST_NODES], verdict.best))
        _say_hidden(console, fitting, "more nodes fit, with totals no higher")
    if rejected:
        console.print(_rejections(rejected[:MOST_NODES]))
        _say_hidden(console, rejected, "more nodes do not fit")
    console.print(lines(_outcome(verdict)))


def _say_hidden(console: Console, nodes: list[NodeVerdict], what: str) -> None:
    if len(nodes) > MOST_NODES:
        console.print(plain(f"{len(nodes) - MOST_NODES} {what}; all of them with -o json"))


def _scores(nodes: Iterable[NodeVerdict], best: tuple[str, ...]) -> Table:
    table = _table("NODE", "VERDICT", "PLUGIN")
    for column in _NUMBER_COLUMNS:
        table.add_column(column, justify="right")
    for node in nodes:
        verdict = "fits, best" if node.node in best else "fits"
        names = (plain(node.node), plain(verdict))
        for plugin, score in node.scores.items():
            numbers = (score.raw, score.normalised, score.weight, score.product)
            table.add_row(*names, plain(plugin), *(str(number) for number in numbers))
            names = (Text(), Text())
        table.add_row(*names, Text("total", style="bold"), "", "", "", Text(str(node.total), style="bold"), end_section=True)
    return table


def _table(*columns: str) -> Table:
    """Return a table that wraps long text, because a cut name is no name."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _rejections(nodes: Iterable[NodeVerdict]) -> Table:
    table = _table("NODE", "VERDICT", "PLUGIN", "REASON")
    for node in nodes:
        table.add_row(*(plain(text) for text in (node.node, node.code.value, node.plugin, ", ".join(node.reasons))))
    return table


def _outcome(verdict: Verdict) -> list[str]:
    if verdict.best:
        others = f" or {len(verdict.best) - 1} others with the same total, chosen at random" if len(verdict.best) > 1 else ""
        return [f"goes to {verdict.best[0]}{others}"]
    if verdict.nominated_node:
        room = f"preemption would make room on {verdict.nominated_node} by evicting {', '.join(sorted(verdict.leaving or verdict.victims))}"
        return [verdict.message, room]
    return [verdict.message or "stays pending"]


def register(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("evaluate", help="say what would be done with a pod, and why, without a cluster")
    parser.add_argument("-f", "--file", action="append", type=Path, default=[], metavar="FILE", help="manifests; repeatable")
    parser.add_argument("--pod", metavar="NS/NAME", help="the pod (default: the only pending one)")
    parser.add_argument("--profile", type=Path, metavar="FILE", help="a SchedulingProfile or KubeSchedulerConfiguration")
    parser.add_argument("--cases", type=Path, metavar="FILE", help="golden cases instead: .jsonl or .jsonl.gz; one JSON line each")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="default: table")
    parser.set_defaults(main=main)
    describe(parser, "evaluate", TEXTS)


def main(args: argparse.Namespace) -> int:
    """Print the verdict. The exit code is 1 if the pod would not be placed."""
    registry = in_tree().with_installed(installed_plugins())
    with limited_calls():
        return _one_pod(args, registry) if args.cases is None else _cases(args.cases, registry)


def _cases(path: Path, registry: Registry) -> int:
    """Print one line a case. The error of a case is in its own line, and spoils no other."""
    for case in read_cases(path):
        try:
            result = answer(case, registry)
        except (InputError, PluginError) as problem:
            result = {"id": case["id"], "nodes": {}, "error": "; ".join(str(problem).splitlines())}
        sys.stdout.write(printable_json(msgspec.json.encode(result).decode()) + "\n")
    return 0


def _one_pod(args: argparse.Namespace, registry: Registry) -> int:
    if not args.file:
        raise InputError("nothing to evaluate: name manifests with -f, or golden cases with --cases")
    inputs = load_objects(args.file)
    world = world_from([*inputs.nodes, *inputs.others, *inputs.pods], ", ".join(str(path) for path in args.file))
    pod = _pending_pod(world, args.pod)
    profile = _profile(args.profile, pod)
    resolved = _resolve(profile, registry, str(args.profile or "the default profile"))
    for extender in resolved.extenders:
        if extender.interested_in(pod):
            sys.stderr.write(f"placewright: {printable(extender.name)} is not asked: evaluate calls no extenders\n")
    evaluator = offline_evaluator(resolved, registry, world.cluster, guarding=Guarding(untouched=True))
    verdict = evaluate_pod(evaluator, world.cluster, pod)
    if args.output == "json":
        print_json(as_data(pod, profile, verdict))
    else:
        show_verdict(Console(), pod, profile, verdict)
    return 0 if verdict.best else 1


def _pending_pod(world: OfflineCluster, wanted: str | None) -> PodInfo:
    if wanted is not None:
        key = wanted if "/" in wanted else f"default/{wanted}"
        if key in world.pending:
            return world.pending[key]
        raise bad_field("--pod", wanted, _choices(world) if world.pending else "a pending pod, but the files have none")
    if len(world.pending) != 1:
        raise InputError(f"--pod is needed: the files have {len(world.pending)} pending pods; {_choices(world)}")
    return next(iter(world.pending.values()))


def _choices(world: OfflineCluster, most: int = 10) -> str:
    keys = sorted(world.pending)
    return "one of " + ", ".join(keys[:most]) + (f" and {len(keys) - most} more" if len(keys) > most else "")


def _profile(path: Path | None, pod: PodInfo) -> SchedulingProfile:
    """Return the profile in the file that serves the pod, or its only one, or kube-scheduler's default without a file."""
    if path is None:
        return default_profile()
    profiles = placing([profile for source in read_sources([path]) for profile in read_profiles(source.text, source.name)])
    claiming = [profile for profile in profiles if profile.spec.scheduler_name == pod.scheduler_name]
    if not claiming and len(profiles) != 1:
        names = ", ".join(sorted(profile.spec.scheduler_name for profile in profiles)) or "none"
        raise bad_field(f"{path}: schedulerName", names, f"{pod.scheduler_name}, which the pod asks for, or one profile alone")
    return (claiming or profiles)[0]


def _resolve(profile: SchedulingProfile, registry: Registry, source: str) -> ResolvedProfile:
    try:
        return resolve(profile, registry)
    except ProfileError as error:
        raise ProfileError(error.problems, source) from None


def as_data(pod: PodInfo, profile: SchedulingProfile, verdict: Verdict) -> dict[str, Any]:
    """Return the verdict as plain data."""
    return {
        "pod": pod.key,
        "profile": profile.metadata.name or profile.spec.scheduler_name,
        "gated": verdict.gated,
        "error": verdict.error,
        "best": list(verdict.best),
        "message": verdict.message,
        "nominatedNode": verdict.nominated_node,
        "victims": list(verdict.victims),
        "unschedulablePlugins": list(verdict.unschedulable_plugins),
        "nodes": {node.node: _node(node) for node in verdict.nodes},
    }


def _node(verdict: NodeVerdict) -> dict[str, Any]:
    if not verdict.fits:
        return {"code": verdict.code.value, "plugin": verdict.plugin, "reasons": list(verdict.reasons)}
    scores = {
        plugin: {"raw": s.raw, "normalised": s.normalised, "weight": s.weight, "product": s.product} for plugin, s in verdict.scores.items()
    }
    return {"code": verdict.code.value, "total": verdict.total, "scores": scores}
