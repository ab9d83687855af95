"""`placewright profiles`, also `kubectl placewright profiles`: lists, compares and changes the profiles of a cluster, and rolls back."""

from __future__ import annotations

import argparse

from placewright.cli.options import Subparsers


def register(subparsers: Subparsers) -> None:
    """Add the subcommand and its own subcommands."""
    parser = subparsers.add_parser("profiles", help="list, show, compare and change profiles, and roll back")
    commands = parser.add_subparsers(title="commands", dest="profiles_command", required=True, metavar="COMMAND")
    # Imported here, because `placewright run` imports this package, too, and needs none of these modules.
    from placewright.cli.profiles import (  # noqa: PLC0415
        profilediff,
        profilehistory,
        profilelist,
        profileview,
        promote,
        rollback,
        weights,
        whogetsit,
    )

    for name, module, purpose in (
        ("list", profilelist, "list the profiles, and the generation of each that is in effect"),
        ("show", profileview, "show a profile in effect: every plugin, its extension points, its weight and arguments, and their origin"),
        ("diff", profilediff, "compare two profiles, files or revisions in effect; exit code 1 when they differ"),
        ("set", weights, "change weights of a profile, and report whether the change took effect"),
        ("promote", promote, "give a live profile the settings of its shadow, and pause the shadow"),
        ("history", profilehistory, "list the changes of a profile: author, time, changes in effect, and whether they took effect"),
        ("who", whogetsit, "show which profile a pod gets, and why the others do not"),
        ("rollback", rollback, "write an earlier revision of a profile again"),
    ):
        command: argparse.ArgumentParser = commands.add_parser(name, help=purpose, description=f"{purpose[0].upper()}{purpose[1:]}.")
        module.add_options(command)
        command.set_defaults(main=module.main)
