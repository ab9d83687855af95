"""`placewright profiles`, also `kubectl placewright profiles`: lists, compares and changes the profiles of a cluster, and rolls back."""

from __future__ import annotations

from importlib import import_module

from placewright.cli.options import Subparsers


def register(subparsers: Subparsers) -> None:
    """Add the subcommand and its own subcommands."""
    parser = subparsers.add_parser("profiles", help="list, show, compare and change profiles, and roll back")
    commands = parser.add_subparsers(title="commands", dest="profiles_command", required=True, metavar="COMMAND")
    for name, module, purpose in (
        ("list", "profilelist", "list the profiles, and the generation of each that is in effect"),
        ("show", "profileview", "show a profile in effect: every plugin, its extension points, its weight and arguments, and their origin"),
        ("diff", "profilediff", "compare two profiles, files or revisions in effect; exit code 1 when they differ"),
        ("set", "weights", "change weights of a profile, and report whether the change took effect"),
        ("promote", "promote", "give a live profile the settings of its shadow, and pause the shadow"),
        ("history", "profilehistory", "list the changes of a profile: author, time, changes in effect, and whether they took effect"),
        ("who", "whogetsit", "show which profile a pod gets, and why the others do not"),
        ("rollback", "rollback", "write an earlier revision of a profile again"),
    ):
        # Imported here, because `placewright run` imports this package, too, and needs none of these modules.
        command = import_module(f"placewright.cli.profiles.{module}")
        options = commands.add_parser(name, help=purpose)
        command.add_options(options)
        options.set_defaults(main=command.main)
