"""`placewright profiles list`: the profiles of a cluster, and the pods that no profile takes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Final

from placewright.api.bad_input import printable
from placewright.api.profile import SHADOW
from placewright.cli.profiles.connection import add_operator_options, ask, history_of, in_words
from placewright.cli.profiles.namedprofiles import active_generation, condition, profile_of
from placewright.cli.profiles.shadowlines import in_short
from placewright.cli.profiles.unclaimedpods import unclaimed_pods
from placewright.cli.terminal import BAD, age, compact, console, plain, print_data, print_table, say, table
from placewright.kube.client import ApiClient
from placewright.kube.errors import RequestError
from placewright.kube.profileapi import Object, last_author, list_profiles
from placewright.profiles.profilestate import PLUGIN_FAILING
from placewright.profiles.unclaimed import Unclaimed

_COLUMNS: Final = ("NAME", "SCHEDULER", "STATE", "IN EFFECT", "PENDING", "AGE")
_WIDE: Final = ("PRESET", "WEIGHTS", "CHANGED BY", "MESSAGE")
UNKNOWN: Final = "Unknown"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("-o", "--output", choices=("table", "wide", "yaml", "json"), default="table", help="default: table")
    add_operator_options(parser)


def main(args: argparse.Namespace) -> int:
    """Print a line for each profile, and the number of pods that no profile takes."""
    if args.output in ("yaml", "json"):
        print_data([_without_bookkeeping(profile) for profile in ask(args, list_profiles)], args.output)
        return 0
    profiles, unclaimed = ask(args, lambda client: _with_unclaimed(client, args))
    wide = args.output == "wide"
    to = console(unfolded=wide)
    if not profiles:
        say(to, "there are no profiles: kubectl apply -f one of manifests/samples")
    else:
        rows = ((*_row(profile), *(_more(profile) if wide else ())) for profile in profiles)
        print_table(to, table(*_COLUMNS, *(_WIDE if wide else ()), numbers=("PENDING",), rows=rows))
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


def _without_bookkeeping(profile: Object) -> Object:
    metadata = {key: value for key, value in profile["metadata"].items() if key != "managedFields"}
    return {**profile, "metadata": metadata}


def _row(profile: Object) -> Iterator[object]:
    metadata, spec = profile["metadata"], profile.get("spec") or {}
    reason, ready, _ = state(profile)
    failing = condition(profile, PLUGIN_FAILING).get("status") == "True"
    yield metadata["name"]
    yield f"shadow of {spec.get('shadows')}" if spec.get("mode") == SHADOW else spec.get("schedulerName", "")
    good = (ready == "True" or reason == "Paused") and not failing
    yield plain(f"{reason}, {PLUGIN_FAILING}" if failing else reason, "" if good else BAD)
    active, newest = active_generation(profile), metadata.get("generation", 0)
    yield active if active == newest else f"{active or 'none'} of {newest}"
    yield ((profile.get("status") or {}).get("pending") or {}).get("total", 0)
    yield age(metadata.get("creationTimestamp"))


def _more(profile: Object) -> Sequence[str]:
    spec = profile.get("spec") or {}
    author = last_author(profile["metadata"].get("managedFields") or ())
    weights = ",".join(f"{plugin}={weight}" for plugin, weight in (spec.get("weights") or {}).items())
    message = "; ".join(filter(None, (state(profile)[2], in_short(profile_of(profile).status.shadow) if spec.get("shadows") else "")))
    return compact(spec.get("preset")), weights or "none", author.manager or "unknown", message


def state(profile: Object) -> tuple[str, str, str]:
    """Read the condition Ready.

    Returns:
        (reason, status, message); `Unknown` if no operator has judged this generation.
    """
    found, observed = condition(profile, "Ready"), (profile.get("status") or {}).get("observedGeneration")
    if not found or int(observed or 0) < int(profile["metadata"].get("generation") or 0):
        return UNKNOWN, UNKNOWN, "no operator has judged this generation yet"
    return str(found.get("reason")), str(found.get("status")), str(found.get("message"))
