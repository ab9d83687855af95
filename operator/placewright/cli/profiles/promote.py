"""`placewright profiles promote`: the live profile gets the settings of its shadow.

Only what a shadow decides with is taken over: preset, plugins, their arguments and weights, and how many nodes are scored. Backoff and
extenders were not tried, so those of the live profile stay. The shadow is paused afterwards and not removed: beside a live profile with the
same settings it would tell nothing, and it may be managed in Git, which would only bring it back.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping

from placewright.api.bad_input import bad_field, printable
from placewright.api.profile import DECIDING, LIVE, SHADOW
from placewright.cli.profiles.connection import add_operator_options, ask
from placewright.cli.profiles.namedprofiles import existing, profile_of
from placewright.cli.profiles.output import console, print_data, say
from placewright.cli.profiles.profilelist import state
from placewright.cli.profiles.profilewrites import ProfileChange, add_change_options, write
from placewright.cli.profiles.shadowlines import in_full
from placewright.kube.client import ApiClient
from placewright.kube.history import without_keys
from placewright.kube.profileapi import Object, manifest_of, owned_spec
from placewright.profiles.effective import HIDDEN


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("name", metavar="NAME", help="of the shadow; the live profile is the one that it names")
    parser.add_argument(
        "-o", "--output", choices=("yaml", "json"), help="write nothing, and print both profiles as they would be: for Git"
    )
    add_change_options(parser)
    add_operator_options(parser)


def main(args: argparse.Namespace) -> int:
    """Write the live profile, and pause the shadow once that took effect.

    Args:
        args: as parsed.

    Returns:
        The exit code.
    """

    async def promote(client: ApiClient) -> int:
        shadow = await existing(client, args.name)
        live = await existing(client, _shadowed(shadow))
        promoted, paused = _promoted(live, shadow), _paused(shadow)
        if args.output:
            _print([promoted, paused], args.output)
            return 0
        _say_what_is_known(shadow)
        # In this order: a shadow that is paused first would have stopped comparing although nothing was promoted.
        code = await write(client, promoted, args)
        return code or await write(client, paused, _forced(args))

    return ask(args, promote)


def _forced(args: argparse.Namespace) -> argparse.Namespace:
    """Options with force.

    The manager that applied the shadow owns its `paused`, because the API server wrote the default in its name.
    """
    return argparse.Namespace(**{**vars(args), "force_conflicts": True})


def _shadowed(shadow: Object) -> str:
    """The live profile's name; raises `InputError` where there is none."""
    spec, name = shadow.get("spec") or {}, shadow["metadata"]["name"]
    if spec.get("mode", LIVE) != SHADOW or not spec.get("shadows"):
        raise bad_field(f"profile {name}: spec.mode", spec.get("mode", LIVE), f"{SHADOW}: other profiles are live already")
    return str(spec["shadows"])


def _promoted(live: Object, shadow: Object) -> ProfileChange:
    return ProfileChange(live, _with_settings_of(shadow, live.get("spec") or {}), _with_settings_of(shadow, owned_spec(live)))


def _with_settings_of(shadow: Object, spec: Mapping[str, object]) -> Object:
    """A live profile's spec, or our part of it, with everything that the shadow tries and nothing else of that kind."""
    kept = {name: value for name, value in spec.items() if name not in DECIDING}
    return kept | {name: value for name, value in (shadow.get("spec") or {}).items() if name in DECIDING}


def _paused(shadow: Object) -> ProfileChange:
    return ProfileChange(shadow, {**(shadow.get("spec") or {}), "paused": True}, {**owned_spec(shadow), "paused": True}, checked=True)


def _say_what_is_known(shadow: Object) -> None:
    """Print the shadow's results, and on standard error that it was not tried in its present form."""
    name, (reason, ready, message) = shadow["metadata"]["name"], state(shadow)
    if ready != "True":
        sys.stderr.write(f"placewright: {printable(f'shadow {name} was not tried as it is now: {reason}: {message}')}\n")
    say(console(), *(f"shadow {name}: {line}" for line in in_full(profile_of(shadow).status.shadow)))


def _print(changes: list[ProfileChange], output: str) -> None:
    """Print both profiles without private keys: they belong on no terminal, and the person who commits the manifests fills them in."""
    manifests = [manifest_of(change.name, without_keys(change.wanted, HIDDEN)) for change in changes]
    if output == "json":
        print_data({"apiVersion": "v1", "kind": "List", "items": manifests}, output)
        return
    for number, manifest in enumerate(manifests):
        sys.stdout.write("---\n" if number else "")
        print_data(manifest, output)
