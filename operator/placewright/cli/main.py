"""`placewright`: finds the subcommand, and turns an error of the input into one line and an exit code.

Exit codes: 0 done; 1 done with a negative result, such as a run that did not finish; 2 wrong input; 130 interrupted.

A subcommand is a module with `register(subparsers)` and `main(args) -> int`. The operator's own are here; the entry point group
`placewright.commands` names those of other packages. A module is imported only for its own command and for the help of all commands.
So `placewright version` does not load a scheduler.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Final, Protocol

from placewright.api.bad_input import InputError, printable
from placewright.api.decode import DecodeError
from placewright.cli.helptexts import TEXTS, describe
from placewright.cli.options import Subparsers
from placewright.framework.distributions import home_of, lacking
from placewright.framework.errors import PluginError, PluginRegistrationError
from placewright.kube.errors import ConfigError

#: The entry point group for commands of other packages, such as those of `placewright-lab`.
ENTRY_POINT_GROUP: Final = "placewright.commands"
#: Top-level packages of this repository: a missing module of one is a defect, not a library that is not installed.
_OWN_PACKAGES: Final = frozenset({"placewright", "placewright_console", "placewright_lab", "kubesandbox"})
#: Errors of a person's input, plugins included. Every other error is a defect and keeps its traceback.
_INPUT_ERRORS: Final = (InputError, ConfigError, DecodeError, PluginError, PluginRegistrationError)


class Command(Protocol):
    """A module that adds a subcommand. It sets the parser's default `main`, a function from the parsed arguments to the exit code."""

    def register(self, subparsers: Subparsers) -> None:
        """Add the subcommand."""


class _Parser(argparse.ArgumentParser):
    """Reports a wrong option as every other wrong input: in one line."""

    def error(self, message: str) -> None:  # type: ignore[override]
        raise InputError(f"{message}; see {self.prog} --help")


def main(arguments: Sequence[str] | None = None, program: str = "placewright") -> int:
    """Run one subcommand.

    Args:
        arguments: words of the command line; None for the process's.
        program: the words that a person types before the arguments.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        parsed = make_parser(words, program).parse_args(words)
        code: int = parsed.main(parsed)
        sys.stdout.flush()  # here, where a closed pipe is still caught, and not at the interpreter's end
    except _INPUT_ERRORS as error:
        for line in str(error).splitlines():  # a profile may have several problems, a line each
            sys.stderr.write(f"placewright: error: {printable(line)}\n")
        return 2
    except ModuleNotFoundError as missing:
        if _is_ours(missing.name):
            raise
        sys.stderr.write(f"placewright: error: {program} {words[0]}: {missing.name} is not installed\n")
        return 2
    except KeyboardInterrupt:
        return 130  # as shells report a program that SIGINT has ended
    except BrokenPipeError:
        # The reader of our output, such as `head`, has ended; the interpreter must not complain when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


def _is_ours(module: str | None) -> bool:
    """Whether a missing module belongs to this repository, which is a defect."""
    return module is None or module.partition(".")[0] in _OWN_PACKAGES


def kubectl_plugin() -> int:
    """Run `kubectl placewright …`: kubectl starts `kubectl-placewright` with the words that follow."""
    return main(program="kubectl placewright")


def commands() -> dict[str, Callable[[], Command]]:
    """List the commands.

    Returns:
        By name, a function that loads the command: the operator's own first, then those of the entry point group.
    """
    others = sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda each: each.name)
    # A package adds commands and cannot replace the operator's.
    return {**OWN_COMMANDS, **{each.name: each.load for each in others if each.name not in OWN_COMMANDS}}


def make_parser(words: Sequence[str] = (), program: str = "placewright") -> argparse.ArgumentParser:
    """Build the parser of the command that the words name.

    Args:
        words: words of the command line; if they name no command, all commands are loaded.
        program: the words that a person types before the arguments.

    Raises:
        InputError: the command is of a distribution that is not installed.
    """
    parser = _Parser(prog=program, description="A Kubernetes scheduler whose profiles are custom resources.")
    subparsers = parser.add_subparsers(title="commands", dest="command", required=True, metavar="COMMAND")
    # The operator's own commands need no search for entry points, which reads the metadata of every installed package.
    there = OWN_COMMANDS if words and words[0] in OWN_COMMANDS else commands()
    named = next((word for word in words if word in there), None)
    home = home_of(words[0]) if words and named is None else None
    if home is not None:
        raise InputError(f"{program} {words[0]}: {lacking(home) or f'placewright-{home} is damaged: install it again'}")
    for name in there if named is None else (named,):
        try:
            command = there[name]()
        except ModuleNotFoundError as missing:
            # The help of all commands lists this one, too.
            if named is not None or _is_ours(missing.name):
                raise
            subparsers.add_parser(name, help=f"not here: {missing.name} is not installed")
            continue
        command.register(subparsers)  # type: ignore[arg-type] # parsers of a subclass of ours are parsers
    describe(parser, "", TEXTS)
    return parser


#: A function that loads each command of the operator, so that no command loads the modules of another.
OWN_COMMANDS: Final[Mapping[str, Callable[[], Any]]] = {
    name: partial(import_module, f"placewright.cli.{module}")
    for name, module in {
        "run": "run",
        "explain": "explain.command",
        "profiles": "profiles",
        "validate": "validate",
        "convert": "convert",
        "schema": "schema",
        "doctor": "doctor.command",
        "version": "version",
    }.items()
}


if __name__ == "__main__":
    sys.exit(main())
