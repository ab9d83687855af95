"""What the subcommands share to declare themselves: the type of their registry, and types of options that say what is allowed."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    #: What `add_subparsers` returns; argparse has no public name for it.
    Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001
    #: What `add_argument_group` returns, likewise.
    Group: TypeAlias = argparse._ArgumentGroup  # noqa: SLF001
else:
    Subparsers = Group = object


def add_cluster_options(parser: argparse.ArgumentParser) -> Group:
    """`--kubeconfig` and `--context`, as kubectl has them; returns their group."""
    group = parser.add_argument_group("cluster")
    found = "KUBECONFIG, ~/.kube/config, or the pod's service account"
    group.add_argument("--kubeconfig", metavar="FILE", help=f"kubeconfig (default: {found})")
    group.add_argument("--context", metavar="NAME", help="kubeconfig context (default: the current one)")
    return group


def whole_number(least: int, most: int) -> Callable[[str], int]:
    """An argparse type: a whole number within bounds."""

    def parse(text: str) -> int:
        value = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else least - 1
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"found {text!r}; allowed a whole number from {least} to {most}")
        return value

    return parse
