"""`placewright schema`: prints the JSON Schema of a plugin's arguments, or of a whole profile."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from placewright.api.bad_input import InputError, shown
from placewright.api.profile import KIND
from placewright.cli.options import Subparsers
from placewright.framework.registry import Registry, installed_plugins
from placewright.plugins.catalog import in_tree
from placewright.profiles.arguments import argument_schema, has_arguments
from placewright.profiles.editorschema import editor_schema
from placewright.profiles.problem import did_you_mean


def register(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("schema", help="print the JSON Schema of a plugin's arguments, or of a profile")
    parser.add_argument("name", nargs="?", metavar="NAME", help=f"a plugin, or {KIND} (default: list the names)")
    parser.set_defaults(main=main)


def main(args: argparse.Namespace) -> int:
    """Print the schema; without a name, the names of all schemas, a line each."""
    registry = in_tree().with_installed(installed_plugins())
    if args.name is None:
        sys.stdout.writelines(f"{name}\n" for name in _known(registry))
    else:
        sys.stdout.write(json.dumps(_schema(args.name, registry), indent=2) + "\n")
    return 0


def _known(registry: Registry) -> list[str]:
    return [KIND, *(name for name in registry if has_arguments(registry[name]))]


def _schema(name: str, registry: Registry) -> dict[str, Any]:
    if name == KIND:
        return editor_schema(registry)
    if name in registry:
        return argument_schema(registry[name])
    raise InputError(f"schema: found {shown(name)}; allowed {KIND} or a known plugin{did_you_mean(name, [KIND, *registry])}")
