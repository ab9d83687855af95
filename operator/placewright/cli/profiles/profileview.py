"""`placewright profiles show`: prints the effective profile."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from rich.console import Console

from placewright.cli.profiles.connection import add_operator_options, ask, history_of
from placewright.cli.profiles.namedprofiles import (
    NAMED,
    NamedProfile,
    active_generation,
    catalogue,
    existing,
    from_cluster,
    from_file,
    in_effect,
    names_file,
    profile_of,
)
from placewright.cli.profiles.profilelist import state
from placewright.cli.profiles.shadowlines import in_full
from placewright.cli.terminal import compact, console, lines, print_data, print_table, say, table
from placewright.framework.registry import Registry
from placewright.framework.runtime.resolvedprofile import ExtensionPoint, Origin, ResolvedProfile
from placewright.kube.client import ApiClient
from placewright.profiles.defaults import default_plugins
from placewright.profiles.effective import as_document, changed_settings, effective_plugins, extender_fields, whole

#: Settings that the head of the table has a sentence for.
_IN_WORDS: Final = frozenset({"paused", "percentageOfNodesToScore", "backoff.initialSeconds", "backoff.maxSeconds"})


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("profile", metavar="PROFILE", help=NAMED)
    parser.add_argument("-o", "--output", choices=("table", "yaml", "json"), default="table", help="default: table")
    add_operator_options(parser)


def main(args: argparse.Namespace) -> int:
    """Print the profile. If its newest generation was refused, print the generation that is in effect."""
    plugins = catalogue()
    note = ""
    if names_file(args.profile):
        subject = from_file(args.profile)
    elif "@" in args.profile:
        subject = ask(args, lambda client: from_cluster(client, history_of(client, args), args.profile))
    else:
        subject, note = ask(args, lambda client: _current(client, args))
    resolved = subject.resolved(plugins)
    if args.output == "table":
        found = in_full(subject.profile.status.shadow) if resolved.shadows is not None and not names_file(args.profile) else ()
        _print(console(), subject.label, resolved, plugins, note, found)
    else:
        print_data(as_document(resolved), args.output)
    return 0


async def _current(client: ApiClient, args: argparse.Namespace) -> tuple[NamedProfile, str]:
    body = await existing(client, args.profile)
    newest, active = body["metadata"].get("generation", 0), active_generation(body)
    reason, ready, message = state(body)
    if active in (0, newest) or ready == "True":
        note = "" if active == newest else f"generation {newest} is not in effect: {reason}: {message}"
        return NamedProfile(args.profile, profile_of(body)), note
    found = await in_effect(history_of(client, args), body)
    if found is None:
        return NamedProfile(args.profile, profile_of(body)), f"generation {newest} is not in effect, {active} is: {reason}: {message}"
    return found, f"generation {newest} is not in effect: {reason}: {message}"


def _print(to: Console, label: str, profile: ResolvedProfile, plugins: Registry, note: str, found: Iterable[str]) -> None:
    if note:
        say(to, note, "")
    say(to, *_head(label, profile, plugins), *found, "")
    print_table(to, table("PLUGIN", "WEIGHT", "FROM", "POINTS", numbers=("WEIGHT",), rows=_plugins(profile, plugins)))
    say(to, "")
    print_table(to, table("ARGUMENT", "VALUE", "FROM", rows=_arguments(profile)))
    if profile.extenders:
        say(to, "")
        print_table(to, table("EXTENDER", "SETTINGS", rows=_extenders(profile)))


def _head(label: str, profile: ResolvedProfile, plugins: Registry) -> Iterator[str]:
    generation = f", generation {profile.generation}" if profile.generation else ""
    serves = f"schedulerName {profile.scheduler_name}"
    if profile.shadows is not None:
        serves = f"shadow of {profile.shadows} for at most {whole(100 * profile.shadow_budget)} % of the time"
    yield f"profile {label}{generation}: {serves}, preset {profile.preset}"
    share = profile.settings.percentage_of_nodes_to_score
    nodes = "all nodes are scored" if share is None else f"{share} % of the nodes are scored"
    initial, longest = profile.settings.backoff.initial_seconds, profile.settings.backoff.max_seconds
    backoff = f"backoff {whole(initial)} s to {whole(longest)} s" if longest else "no backoff"
    yield f"{backoff}, {nodes}, {'PAUSED: no new pods are taken' if profile.settings.paused else 'new pods are taken'}"
    if others := [f"{each.what} {compact(each.after)}" for each in changed_settings(profile.settings) if each.what not in _IN_WORDS]:
        yield f"settings: {', '.join(others)}"
    if off := [name for name in default_plugins(plugins) if name not in profile.plugin_names]:
        yield f"switched off: {', '.join(off)}"


def _plugins(profile: ResolvedProfile, plugins: Registry) -> Iterator[tuple[object, ...]]:
    for plugin in effective_plugins(profile):
        scores = ExtensionPoint.SCORE.implemented_by(plugins[plugin.name])
        weight = (0 if scores else "", "") if plugin.weight is None else plugin.weight
        points = ", ".join(point if origin is Origin.DEFAULT else f"{point} ({origin})" for point, origin in plugin.points.items())
        yield plugin.name, *weight, points


def _arguments(profile: ResolvedProfile) -> Iterator[tuple[object, ...]]:
    """Yield a row for each plugin, and below it one for each of its arguments. Two columns of names would not fit."""
    for plugin in effective_plugins(profile):
        if plugin.args:
            yield (plugin.name,)
        for name, (value, origin) in plugin.args.items():
            yield from ((f"  {path}", compact(leaf), origin) for path, leaf in _leaves(value, name))


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, Mapping) or not value:
        yield path, value
        return
    for name, each in value.items():
        yield from _leaves(each, f"{path}.{name}")


def _extenders(profile: ResolvedProfile) -> Iterator[tuple[object, ...]]:
    for extender in profile.extenders:
        settings = (f"{name}: {compact(value)}" for name, value in extender_fields(extender).items() if name != "urlPrefix")
        yield extender.url_prefix, lines(settings)
