"""Parts that all subcommands share to declare their options: the type of the parsers' registry, cluster options, and checked types."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    #: The result of `add_subparsers`; argparse has no public name for its type.
    Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001
    #: The result of `add_argument_group`, likewise.
    Group: TypeAlias = argparse._ArgumentGroup  # noqa: SLF001
else:
    Subparsers = Group = object


def add_cluster_options(parser: argparse.ArgumentParser) -> Group:
    """Add `--kubeconfig` and `--context`, as kubectl has them.

    Args:
        parser: of a command.

    Returns:
        Their group.
    """
    group = parser.add_argument_group("cluster")
    found = "KUBECONFIG, ~/.kube/config, or the pod's service account"
    group.add_argument("--kubeconfig", metavar="FILE", help=f"kubeconfig (default: {found})")
    group.add_argument("--context", metavar="NAME", help="kubeconfig context (default: the current one)")
    return group


def whole_number(least: int, most: int) -> Callable[[str], int]:
    """Make an argparse type for a whole number.

    Args:
        least: smallest value.
        most: largest value.

    Returns:
        The type.
    """

    def parse(text: str) -> int:
        value = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else least - 1
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"found {text!r}; allowed a whole number from {least} to {most}")
        return value

    return parse
