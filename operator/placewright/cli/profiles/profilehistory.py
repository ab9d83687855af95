"""`placewright profiles history`: the changes of a profile, and their effect."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from placewright.api.bad_input import InputError
from placewright.cli.profiles.connection import add_operator_options, ask, revisions_of
from placewright.cli.profiles.namedprofiles import active_generation, catalogue, existing, recorded_profile, took
from placewright.cli.terminal import BAD, age, compact, console, lines, plain, print_data, print_table, say, table
from placewright.framework.registry import Registry
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.kube.client import ApiClient
from placewright.kube.history import Revision
from placewright.profiles.effective import Difference, differences
from placewright.profiles.resolve import resolve

#: Differences in one row of the table; all of them with `-o json`.
_MOST_SHOWN: Final = 4


@dataclass(frozen=True, slots=True)
class Entry:
    """A revision, and its differences in effect from the revision that was in effect before it.

    Attributes:
        revision: the recorded revision.
        changes: differences; empty for the first, for a refused one, and if nothing changed in effect.
        note: reason why there are no changes.
        in_effect: decisions use it now.
    """

    revision: Revision
    changes: tuple[Difference, ...] = ()
    note: str = ""
    in_effect: bool = False


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("name", metavar="NAME", help="name of the profile; a deleted one still has its history")
    parser.add_argument("-o", "--output", choices=("table", "yaml", "json"), default="table", help="default: table")
    add_operator_options(parser)


def main(args: argparse.Namespace) -> int:
    """Print a line for each revision, the newest last."""
    revisions, active = ask(args, lambda client: _read(client, args))
    entries = list(told(revisions, active, catalogue()))
    if args.output != "table":
        print_data([_as_data(entry) for entry in entries], args.output)
        return 0
    to = console()
    if not entries:
        say(to, f"nothing is recorded of profile {args.name} in namespace {args.namespace}; --operator-namespace names the operator's")
        return 0
    print_table(to, table("REV", "GEN", "AGE", "BY", "RESULT", "CHANGE", numbers=("REV", "GEN"), rows=map(_row, entries)))
    return 0


def _row(entry: Entry) -> Iterator[object]:
    recorded, result = entry.revision.recorded, entry.revision.result or "unknown"
    yield from (entry.revision.number, recorded.generation, age(recorded.changed_at), recorded.changed_by or "unknown")
    yield plain(f"{result}, in effect" if entry.in_effect else result, "" if took(entry.revision) else BAD)
    yield lines(_change(entry))


async def _read(client: ApiClient, args: argparse.Namespace) -> tuple[list[Revision], tuple[str, int]]:
    """Read the revisions, and uid and generation of the one in effect."""
    revisions = await revisions_of(client, args)
    try:
        body = await existing(client, args.name)
    except InputError:
        if not revisions:
            raise
        return revisions, ("", 0)
    return revisions, (body["metadata"].get("uid", ""), active_generation(body))


def told(revisions: Sequence[Revision], active: tuple[str, int], plugins: Registry) -> Iterator[Entry]:
    """Compare each revision with the one in effect before it. A revision that did not take effect changed nothing.

    Args:
        revisions: oldest first.
        active: uid and generation that decisions use.
        plugins: that exist here.

    Yields:
        An entry for each revision.
    """
    before: ResolvedProfile | None = None
    for revision in revisions:
        in_effect = (revision.recorded.uid, revision.recorded.generation) == active
        if not took(revision):
            yield Entry(revision, note=revision.message, in_effect=in_effect)
            continue
        try:
            after = resolve(recorded_profile(revision.recorded), plugins)
        except InputError as problem:
            yield Entry(revision, note=f"this placewright cannot tell: {problem}", in_effect=in_effect)
            before = None
            continue
        changes = differences(before, after) if before is not None else ()
        note = "the first that is known" if before is None else "nothing in effect"
        yield Entry(revision, changes, "" if changes else note, in_effect)
        before = after


def _change(entry: Entry) -> list[str]:
    if entry.note:
        return [entry.note]
    shown = [f"{each.what}: {compact(each.before)} → {compact(each.after)}" for each in entry.changes[:_MOST_SHOWN]]
    more = len(entry.changes) - len(shown)
    return [*shown, *([f"and {more} more"] if more else [])]


def _as_data(entry: Entry) -> dict[str, Any]:
    revision, recorded = entry.revision, entry.revision.recorded
    return {
        "revision": revision.number,
        "profile": recorded.profile,
        "generation": recorded.generation,
        "changedAt": recorded.changed_at,
        "changedBy": recorded.changed_by,
        "result": revision.result,
        "message": revision.message,
        "took": took(revision),
        "inEffect": entry.in_effect,
        "changes": [each._asdict() for each in entry.changes],
        "spec": recorded.spec,
    }
