"""`placewright profiles diff`: differences in effect, not in text."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from rich.console import Console

from placewright.cli.profiles.connection import add_operator_options, ask, history_of
from placewright.cli.profiles.namedprofiles import NAMED, NamedProfile, catalogue, from_cluster, from_file, names_file
from placewright.cli.terminal import compact, console, print_data, print_table, say, table
from placewright.kube.client import ApiClient
from placewright.profiles.effective import Difference, differences


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("before", metavar="BEFORE", help=NAMED)
    parser.add_argument("after", metavar="AFTER", help="the same; of a file with several profiles, the one that has BEFORE's name")
    parser.add_argument("-o", "--output", choices=("table", "yaml", "json"), default="table", help="default: table")
    add_operator_options(parser)


def main(args: argparse.Namespace) -> int:
    """Print a line for each difference.

    Returns:
        1 when there are differences, as with diff, else 0.
    """
    before, after = _subjects(args)
    plugins = catalogue()
    found = differences(before.resolved(plugins), after.resolved(plugins))
    if args.output == "table":
        to = console()
        if found:
            print_differences(to, found, before.label, after.label)
        else:
            say(to, f"{before.label} and {after.label} do not differ in effect")
    else:
        print_data([each._asdict() for each in found], args.output)
    return 1 if found else 0


def _subjects(args: argparse.Namespace) -> tuple[NamedProfile, NamedProfile]:
    texts = (args.before, args.after)
    known = {}
    if not all(names_file(text) for text in texts):

        async def read(client: ApiClient) -> dict[str, NamedProfile]:
            history = history_of(client, args)
            return {text: await from_cluster(client, history, text) for text in texts if not names_file(text)}

        known = ask(args, read)
    name = next((subject.profile.metadata.name for subject in known.values()), "")
    before, after = (known.get(text) or from_file(text, name) for text in texts)
    return before, after


def print_differences(to: Console, found: Iterable[Difference], before: str, after: str) -> None:
    """Print a table of differences.

    Args:
        to: the console.
        found: the differences.
        before: title of the first side.
        after: title of the second side.
    """
    print_table(to, table("WHAT", before, after, rows=((each.what, compact(each.before), compact(each.after)) for each in found)))
