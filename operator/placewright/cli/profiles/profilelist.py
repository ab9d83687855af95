"""`placewright profiles list`: the profiles of a cluster, and the pods that no profile takes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from placewright.api.bad_input import printable
from placewright.api.profile import SHADOW
from placewright.cli.profiles.connection import add_operator_options, ask, history_of, in_words
from placewright.cli.profiles.namedprofiles import active_generation, profile_of
from placewright.cli.profiles.output import BAD, age, compact, console, print_data, print_table, say, table
from placewright.cli.profiles.shadowlines import in_short
from placewright.cli.profiles.unclaimedpods import unclaimed_pods
from placewright.cli.terminal import plain
from placewright.kube.client import ApiClient
from placewright.kube.errors import RequestError
from placewright.kube.profileapi import Object, last_author, list_profiles
from placewright.profiles.profilestate import PLUGIN_FAILING
from placewright.profiles.unclaimed import Unclaimed

_COLUMNS: Final = ("NAME", "SCHEDULER", "STATE", "IN EFFECT", "PENDING", "AGE")
_WIDE: Final = ("PRESET", "WEIGHTS", "CHANGED BY", "MESSAGE")
UNKNOWN: Final = "Unknown"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options.

    Args:
        parser: of the command.
    """
    parser.add_argument("-o", "--output", choices=("table", "wide", "yaml", "json"), default="table", help="default: table")
    add_operator_options(parser)


def main(args: argparse.Namespace) -> int:
    """Print a line for each profile, and the number of pods that no profile takes.

    Args:
        args: as parsed.

    Returns:
        0.
    """
    if args.output in ("yaml", "json"):
        print_data([_without_bookkeeping(profile) for profile in ask(args, list_profiles)], args.output)
        return 0
    profiles, unclaimed = ask(args, lambda client: _with_unclaimed(client, args))
    wide = args.output == "wide"
    to = console(unfolded=wide)
    if not profiles:
        say(to, "there are no profiles: kubectl apply -f one of manifests/samples")
    else:
        _print_profiles(to, profiles, wide=wide)
    if unclaimed:
        say(to, "", *(f"{pods} {'pod waits' if pods == 1 else 'pods wait'}: {found}" for found, pods in unclaimed))
    return 0


async def _with_unclaimed(client: ApiClient, args: argparse.Namespace) -> tuple[list[Object], list[tuple[Unclaimed, int]]]:
    """Read the profiles, and the pods that none of them takes."""
    profiles = await list_profiles(client)
    try:
        return profiles, await unclaimed_pods(client, profiles, history_of(client, args))
    except RequestError as problem:
        sys.stderr.write(f"placewright: pods that no profile takes are not counted: {printable(in_words(problem))}\n")
        return profiles, []


def _print_profiles(to: Console, profiles: Sequence[Object], *, wide: bool) -> None:
    made = table(*_COLUMNS, *(_WIDE if wide else ()), numbers=("PENDING",))
    for profile in profiles:
        made.add_row(*_row(profile), *(_more(profile) if wide else ()))
    print_table(to, made)


def _without_bookkeeping(profile: Object) -> Object:
    metadata = {key: value for key, value in profile["metadata"].items() if key != "managedFields"}
    return {**profile, "metadata": metadata}


def _row(profile: Object) -> Sequence[Text]:
    metadata, status = profile["metadata"], profile.get("status") or {}
    reason, ready, _ = state(profile)
    failing = _plugins_fail(profile)
    shown = f"{reason}, {PLUGIN_FAILING}" if failing else reason
    pending = (status.get("pending") or {}).get("total", 0)
    spec = profile.get("spec") or {}
    serves = f"shadow of {spec.get('shadows')}" if spec.get("mode") == SHADOW else spec.get("schedulerName", "")
    cells = (metadata["name"], serves)
    rest = (_in_effect(profile), pending, age(metadata.get("creationTimestamp")))
    return [*map(plain, cells), plain(shown, "" if (ready == "True" or reason == "Paused") and not failing else BAD), *map(plain, rest)]


def _more(profile: Object) -> Sequence[Text]:
    spec = profile.get("spec") or {}
    author = last_author(profile["metadata"].get("managedFields") or ())
    weights = ",".join(f"{plugin}={weight}" for plugin, weight in (spec.get("weights") or {}).items())
    message = "; ".join(filter(None, (state(profile)[2], in_short(profile_of(profile).status.shadow) if spec.get("shadows") else "")))
    return [plain(cell) for cell in (compact(spec.get("preset")), weights or "none", author.manager or "unknown", message)]


def state(profile: Object) -> tuple[str, str, str]:
    """Read the condition Ready.

    Args:
        profile: as the API server shows it.

    Returns:
        (reason, status, message); `Unknown` where no operator has judged this generation.
    """
    status: Mapping[str, Any] = profile.get("status") or {}
    found = next((each for each in status.get("conditions") or () if each.get("type") == "Ready"), None)
    if found is None or int(status.get("observedGeneration") or 0) < int(profile["metadata"].get("generation") or 0):
        return UNKNOWN, UNKNOWN, "no operator has judged this generation yet"
    return str(found.get("reason")), str(found.get("status")), str(found.get("message"))


def _plugins_fail(profile: Object) -> bool:
    conditions = (profile.get("status") or {}).get("conditions") or ()
    return any((each.get("type"), each.get("status")) == (PLUGIN_FAILING, "True") for each in conditions)


def _in_effect(profile: Object) -> str:
    """Return the generation that decisions use, and the newest one where it is another."""
    active, newest = active_generation(profile), profile["metadata"].get("generation", 0)
    if active == newest:
        return str(active)
    return f"{active or 'none'} of {newest}"
