"""Parts that all subcommands share to declare their options: the type of the parsers' registry, cluster options, and checked types."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    #: The result of `add_subparsers`; argparse has no public name for its type.
    Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001
    #: The result of `add_argument_group`, likewise.
    Group: TypeAlias = argparse._ArgumentGroup  # noqa: SLF001
else:
    Subparsers = Group = object


#: Text that a snapshot or a recording may unpack to without `--largest`: 2 GiB.
LARGEST_MIB: Final = 2 * 2**10


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
