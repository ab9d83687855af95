"""`placewright version`: what is installed here."""

from __future__ import annotations

import argparse
import platform
import sys
from importlib.metadata import PackageNotFoundError, version

from placewright.cli.options import Subparsers


def register(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("version", help="print the version of placewright and of what it stands on")
    parser.set_defaults(main=main)


def main(_args: argparse.Namespace) -> int:
    """Print one line."""
    python = platform.python_version()
    sys.stdout.write(f"placewright {installed('placewright')} (Python {python}, Kopf {installed('kopf')})\n")
    return 0


def installed(distribution: str) -> str:
    """The installed version of a distribution, or `unknown` when the code runs without being installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "unknown"
