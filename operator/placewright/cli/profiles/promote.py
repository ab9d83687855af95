"""`placewright profiles promote`: the live profile gets the settings of its shadow.

Only the fields with which a shadow decides are taken over (`api.profile.DECIDING`). All other fields were not tried, so those of the live
profile stay. `STAYS` says why, and so does the command if the shadow states one otherwise. The shadow is paused afterwards, because it
would tell nothing beside a live profile with the same settings. It is not removed, because Git may manage it and would bring it back.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from typing import Final

from placewright.api.bad_input import bad_field, printable
from placewright.api.profile import DECIDING, LIVE, SHADOW
from placewright.cli.profiles.connection import add_operator_options, ask
from placewright.cli.profiles.namedprofiles import existing, profile_of
from placewright.cli.profiles.profilelist import state
from placewright.cli.profiles.profilewrites import ProfileChange, add_change_options, write
from placewright.cli.profiles.shadowlines import in_full
from placewright.cli.terminal import console, print_data, say
from placewright.kube.client import ApiClient
from placewright.kube.history import without_keys
from placewright.kube.profileapi import Object, manifest_of, owned_spec
from placewright.profiles.effective import HIDDEN

#: Fields of `spec` that are not taken over, with the reason. A field is here or in `DECIDING`.
STAYS: Final[Mapping[str, str]] = {
    "schedulerName": "a shadow claims none",
    "backoff": "a shadow decides each pod when the live profile does",
    "fairness": "a shadow decides pods in the order of the live profile",
    "giveUpAfterSeconds": "a shadow decides each pod when the live profile does",
    "pods": "a shadow decides the pods of the live profile",
    "extenders": "a shadow asks no extender",
    "preemption": "a shadow tries no preemption",
    "paused": "a pause is no setting to try",
    "mode": "the live profile stays live",
    "shadows": "it is of the shadow alone",
    "shadow": "it is of the shadow alone",
}
#: Fields whose values always differ between a shadow and its live profile.
_UNLIKE: Final = frozenset({"schedulerName", "paused", "mode", "shadows", "shadow"})


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("name", metavar="NAME", help="name of the shadow, which names the live profile")
    parser.add_argument("-o", "--output", choices=("yaml", "json"), help="write nothing, and print both profiles as they would be: for Git")
    add_change_options(parser)
    add_operator_options(parser)


def main(args: argparse.Namespace) -> int:
    """Write the live profile, and pause the shadow once that took effect."""

    async def promote(client: ApiClient) -> int:
        shadow = await existing(client, args.name)
        live = await existing(client, _shadowed(shadow))
        promoted, paused = _promoted(live, shadow), _paused(shadow)
        if args.output:
            _print([promoted, paused], args.output)
            return 0
        _say_what_is_known(shadow)
        sys.stderr.writelines(f"placewright: {printable(line)}\n" for line in not_taken_over(live, shadow))
        # In this order: a shadow that is paused first would have stopped comparing although nothing was promoted.
        code = await write(client, promoted, args)
        return code or await write(client, paused, _forced(args))

    return ask(args, promote)


def _forced(args: argparse.Namespace) -> argparse.Namespace:
    """Return the options with force.

    The manager that applied the shadow owns its `paused`, because the API server wrote the default in its name.
    """
    return argparse.Namespace(**{**vars(args), "force_conflicts": True})


def _shadowed(shadow: Object) -> str:
    """Return the live profile's name; raise `InputError` if there is none."""
    spec, name = shadow.get("spec") or {}, shadow["metadata"]["name"]
    if spec.get("mode", LIVE) != SHADOW or not spec.get("shadows"):
        raise bad_field(f"profile {name}: spec.mode", spec.get("mode", LIVE), f"{SHADOW}: other profiles are live already")
    return str(spec["shadows"])


def _promoted(live: Object, shadow: Object) -> ProfileChange:
    return ProfileChange(live, _with_settings_of(shadow, live.get("spec") or {}), _with_settings_of(shadow, owned_spec(live)))


def _with_settings_of(shadow: Object, spec: Mapping[str, object]) -> Object:
    """Put the fields that a shadow tries into a live profile's spec, or into our part of it."""
    kept = {name: value for name, value in spec.items() if name not in DECIDING}
    return kept | {name: value for name, value in (shadow.get("spec") or {}).items() if name in DECIDING}


def not_taken_over(live: Object, shadow: Object) -> Iterator[str]:
    """Name the fields that the shadow states otherwise than the live profile, and that are not taken over.

    Args:
        live: the profile that is promoted to.
        shadow: the shadow of the API server.

    Yields:
        A line for each field.
    """
    said, has = shadow.get("spec") or {}, live.get("spec") or {}
    for name, why in STAYS.items():
        if name not in _UNLIKE and name in said and said[name] != has.get(name):
            yield f"spec.{name} of the shadow is not taken over: {why}"


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
