"""`placewright`: finds the subcommand and turns what went wrong into one line and an exit code.

Exit codes: 0 done, 1 done but not as wished (a run that did not finish, for example), 2 wrong input, 130 interrupted.
A subcommand is a module here with `register(subparsers)` and `main(args) -> int`; it is imported only when it is named or when help is
asked for, so that `placewright version` need not load what a scheduler needs.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from placewright.api.bad_input import InputError, printable
from placewright.api.decode import DecodeError
from placewright.cli.helptexts import describe
from placewright.framework.errors import PluginError, PluginRegistrationError
from placewright.kube.errors import ConfigError

COMMANDS: Final = (
    "run",
    "sandbox",
    "demo",
    "evaluate",
    "explain",
    "simulate",
    "compare",
    "tune",
    "diff",
    "bench",
    "convert",
    "schema",
    "validate",
    "profiles",
    "doctor",
    "snapshot",
    "record",
    "version",
)
#: What people wrote and we cannot use, plugins of theirs included; everything else that is raised is a defect and keeps its traceback.
_INPUT_ERRORS: Final = (InputError, ConfigError, DecodeError, PluginError, PluginRegistrationError)


class _Parser(argparse.ArgumentParser):
    """Wrong options are bad input too: one line, the same words."""

    def error(self, message: str) -> None:  # type: ignore[override]
        raise InputError(f"{message}; see {self.prog} --help")


def main(arguments: Sequence[str] | None = None, program: str = "placewright") -> int:
    """Run one subcommand; returns the exit code. `program`: what people type before the arguments."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        parsed = make_parser(words, program).parse_args(words)
        code: int = parsed.main(parsed)
        sys.stdout.flush()
    except _INPUT_ERRORS as error:
        for line in str(error).splitlines():  # a profile may have several problems, a line each
            sys.stderr.write(f"placewright: error: {printable(line)}\n")
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output left; the interpreter must not complain when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


def kubectl_plugin() -> int:
    """`kubectl placewright …`: kubectl runs `kubectl-placewright` with what follows."""
    return main(program="kubectl placewright")


def make_parser(words: Sequence[str] = (), program: str = "placewright") -> argparse.ArgumentParser:
    """The parser of the command that the words name; of all commands where they name none."""
    parser = _Parser(prog=program, description="A Kubernetes scheduler whose profiles are custom resources.")
    subparsers = parser.add_subparsers(title="commands", dest="command", required=True, metavar="COMMAND")
    named = next((word for word in words if word in COMMANDS), None)
    for command in COMMANDS if named is None else (named,):
        try:
            module = import_module(f"placewright.cli.{command}")
        except ModuleNotFoundError as error:
            if error.name != f"placewright.cli.{command}":
                raise
            continue
        module.register(subparsers)
    describe(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
