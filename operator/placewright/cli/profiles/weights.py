"""`placewright profiles set`: changes weights of a profile."""

from __future__ import annotations

import argparse
import copy
import re
from collections.abc import Iterable
from typing import Final

from placewright.api.bad_input import bad_field
from placewright.api.profilelimits import MAX_WEIGHT
from placewright.cli.profiles.connection import add_operator_options, ask
from placewright.cli.profiles.namedprofiles import existing
from placewright.cli.profiles.profilewrites import ProfileChange, add_change_options, write
from placewright.kube.client import ApiClient
from placewright.kube.profileapi import owned_spec

_CHANGE: Final = re.compile(r"(?P<plugin>[A-Za-z0-9][A-Za-z0-9._/]*)(?:=(?P<weight>[0-9]{1,9})|(?P<gone>-))")
_ALLOWED: Final = f"PLUGIN=WEIGHT with a weight from 0 (does not score) to {MAX_WEIGHT}, or PLUGIN- to say nothing of its weight"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("name", metavar="NAME", help="name of the profile")
    parser.add_argument("changes", nargs="+", metavar="PLUGIN=WEIGHT", help="0: the plugin does not score; PLUGIN- takes the weight back")
    add_change_options(parser)
    add_operator_options(parser)


def main(args: argparse.Namespace) -> int:
    """Write `spec.weights`, and no other field of the profile."""
    weights = dict(_read(args.changes))

    async def change(client: ApiClient) -> int:
        body = await existing(client, args.name)
        wanted, applied = copy.deepcopy(body.get("spec") or {}), copy.deepcopy(owned_spec(body))
        for spec in (wanted, applied):
            merged = {**(spec.get("weights") or {}), **weights}
            spec["weights"] = {plugin: weight for plugin, weight in merged.items() if weight is not None}
            if not spec["weights"]:
                del spec["weights"]
        return await write(client, ProfileChange(body, wanted, applied), args)

    return ask(args, change)


def _read(changes: Iterable[str]) -> Iterable[tuple[str, int | None]]:
    for text in changes:
        found = _CHANGE.fullmatch(text)
        if found is None or int(found["weight"] or 0) > MAX_WEIGHT:
            raise bad_field("weight", text, _ALLOWED)
        yield found["plugin"], None if found["gone"] else int(found["weight"])
