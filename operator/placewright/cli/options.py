"""Parts that all subcommands share: the type of the parsers' registry, cluster options, checked types, and the text of a named file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from placewright.api.bad_input import InputError

if TYPE_CHECKING:
    #: The result of `add_subparsers`; argparse has no public name for its type.
    Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001
    #: The result of `add_argument_group`, likewise.
    Group: TypeAlias = argparse._ArgumentGroup  # noqa: SLF001
else:
    Subparsers = Group = object


#: Text that a snapshot or a recording may unpack to without `--largest`: 2 GiB.
LARGEST_MIB: Final = 2 * 2**10
#: Characters that are read of a file of profiles. Its parser refuses fewer, so that a file without an end is refused, too.
_MOST_READ: Final = 4 * 2**20


def add_cluster_options(parser: argparse.ArgumentParser) -> Group:
    """Add `--kubeconfig` and `--context`, as kubectl has them."""
    group = parser.add_argument_group("cluster")
    found = "KUBECONFIG, ~/.kube/config, or the pod's service account"
    group.add_argument("--kubeconfig", metavar="FILE", help=f"kubeconfig (default: {found})")
    group.add_argument("--context", metavar="NAME", help="kubeconfig context (default: the current one)")
    return group


def add_largest_option(parser: argparse.ArgumentParser) -> None:
    """Add `--largest`, the bound on the unpacked size of a file.

    Args:
        parser: parser of a command that reads a snapshot or a recording.
    """
    parser.add_argument(
        "--largest",
        type=whole_number(1, 2**20),
        default=LARGEST_MIB,
        metavar="MIB",
        help="refuse a snapshot or recording that unpacks to more text than this (default: %(default)s)",
    )


def whole_number(least: int, most: int) -> Callable[[str], int]:
    """Make an argparse type for a whole number."""

    def parse(text: str) -> int:
        value = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else least - 1
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"found {text!r}; allowed a whole number from {least} to {most}")
        return value

    return parse


def read_text(name: str) -> str:
    """Read a file of profiles, or standard input for `-`; raise `InputError` if it cannot be read."""
    try:
        with nullcontext(sys.stdin) if name == "-" else Path(name).open(encoding="utf-8") as opened:
            return opened.read(_MOST_READ)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{name}: cannot be read: {getattr(error, 'strerror', 'it is not UTF-8')}") from None
