"""`placewright profiles`, also `kubectl placewright profiles`: look at the profiles of a cluster, compare them, change them, go back."""

from __future__ import annotations

import argparse

from placewright.cli.options import Subparsers


def register(subparsers: Subparsers) -> None:
    """Add the subcommand and its own."""
    parser = subparsers.add_parser("profiles", help="look at profiles, compare and change them, go back")
    commands = parser.add_subparsers(title="commands", dest="profiles_command", required=True, metavar="COMMAND")
    # Of these, only this command needs any: `placewright run` reads a module of this package, too.
    from placewright.cli.profiles import (  # noqa: PLC0415
        profilediff,
        profilehistory,
        profilelist,
        profileview,
        promote,
        rollback,
        weights,
    )

    for name, module, purpose in (
        ("list", profilelist, "the profiles there are, and which generation of each is in effect"),
        ("show", profileview, "a profile in effect: every plugin, where it runs, its weight and arguments, and where they came from"),
        ("diff", profilediff, "how two profiles, files or revisions differ in effect; exit code 1 when they do"),
        ("set", weights, "change weights of a profile, and see whether it took"),
        ("promote", promote, "give a live profile the settings of its shadow, and pause the shadow"),
        ("history", profilehistory, "who changed a profile, when, what that changed in effect, and whether it took"),
        ("rollback", rollback, "go back to an earlier revision of a profile"),
    ):
        command: argparse.ArgumentParser = commands.add_parser(name, help=purpose, description=f"{purpose[0].upper()}{purpose[1:]}.")
        module.add_options(command)
        command.set_defaults(main=module.main)
