"""`placewright profiles rollback`: writes an earlier revision of a profile again."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from placewright.api.bad_input import InputError
from placewright.cli.options import whole_number
from placewright.cli.profiles.connection import add_operator_options, ask, revisions_of
from placewright.cli.profiles.namedprofiles import existing, find, took
from placewright.cli.profiles.profilewrites import ProfileChange, add_change_options, to_apply, write
from placewright.kube.client import ApiClient
from placewright.kube.history import Revision, with_keys_of
from placewright.kube.profileapi import Object


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("name", metavar="NAME", help="name of the profile")
    parser.add_argument(
        "--to-revision", type=whole_number(0, 2**53), default=0, metavar="N", help="default: the last revision that took effect and differs"
    )
    add_change_options(parser)
    add_operator_options(parser)


def main(args: argparse.Namespace) -> int:
    """Write the fields in which the profile differs from a revision that took effect."""

    async def change(client: ApiClient) -> int:
        body = await existing(client, args.name)
        revision = _wanted(await revisions_of(client, args), body, args)
        spec = _spec_of(revision, body)
        return await write(client, ProfileChange(body, spec, to_apply(body, spec), checked=True), args)

    return ask(args, change)


def _wanted(revisions: Sequence[Revision], body: Object, args: argparse.Namespace) -> Revision:
    """Return the revision that was asked for, or the latest that took effect and differs from the profile now."""
    if args.to_revision:
        revision = find(list(revisions), args.name, args.to_revision)
        if not took(revision):
            raise InputError(f"profile {args.name}: revision {revision.number} never took: {revision.message}")
        return revision
    # The history has no private keys (decision 0015), so a revision is compared with the profile's present keys filled in.
    for revision in reversed(revisions):
        if took(revision) and with_keys_of(revision.recorded.spec, body.get("spec") or {})[0] != body.get("spec"):
            return revision
    raise InputError(f"profile {args.name}: found no earlier revision that took in namespace {args.namespace}; allowed one to go back to")


def _spec_of(revision: Revision, body: Object) -> Object:
    spec, missing = with_keys_of(revision.recorded.spec, body.get("spec") or {})
    if missing:
        where = f"profile {revision.recorded.profile}: extender {', '.join(missing)}"
        raise InputError(f"{where}: its private key is neither in the history nor in the profile")
    return spec
