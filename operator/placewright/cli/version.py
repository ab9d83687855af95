"""`placewright version`: prints the installed versions."""

from __future__ import annotations

import argparse
import platform
import sys
from importlib.metadata import PackageNotFoundError, version

from placewright.cli.options import Subparsers


def register(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("version", help="print the versions of Placewright, Python and Kopf")
    parser.set_defaults(main=main)


def main(_args: argparse.Namespace) -> int:
    """Print one line, and return 0."""
    python = platform.python_version()
    sys.stdout.write(f"placewright {installed('placewright')} (Python {python}, Kopf {installed('kopf')})\n")
    return 0


def installed(distribution: str) -> str:
    """Find the installed version of a distribution.

    Args:
        distribution: its name on PyPI.

    Returns:
        The version; `unknown` when the code runs without being installed.
    """
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "unknown"
