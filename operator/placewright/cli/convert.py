"""`placewright convert`: translates between SchedulingProfiles and the files of kube-scheduler, old and new."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import Final

from placewright.api.bad_input import printable
from placewright.cli.options import Subparsers, read_text
from placewright.framework.registry import Registry, installed_plugins
from placewright.plugins.catalog import in_tree
from placewright.profiles.kubescheduler.documents import Document, manifest, to_yaml
from placewright.profiles.kubescheduler.findings import ConversionFinding, Loss, without_counterpart
from placewright.profiles.kubescheduler.reader import Conversion, convert
from placewright.profiles.kubescheduler.writer import to_configuration

PROFILES: Final = "schedulingprofile"
CONFIGURATION: Final = "kubeschedulerconfiguration"
_WORDS: Final = {
    Loss.PLACEMENT: "no counterpart, and pods may be placed differently",
    Loss.SETTING: "no counterpart",
    Loss.NOTE: "note",
}


def register(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("convert", help="translate kube-scheduler's configuration or Policy into profiles, and back")
    kinds = "a KubeSchedulerConfiguration (v1, v1beta1 to v1beta3), a legacy Policy (JSON or YAML), SchedulingProfiles; - for stdin"
    parser.add_argument("file", metavar="FILE", help=kinds)
    parser.add_argument("--to", choices=(PROFILES, CONFIGURATION), default=PROFILES, help=f"kind to write (default: {PROFILES})")
    parser.add_argument("--strict", action="store_true", help="exit with 2 when a setting has no counterpart")
    parser.set_defaults(main=main)


def main(args: argparse.Namespace) -> int:
    """Print YAML; settings without a counterpart are printed as comments, and on standard error.

    Returns:
        2 with `--strict` and a setting without a counterpart, else 0.
    """
    registry = in_tree().with_installed(installed_plugins())
    documents, findings = _converted(convert(read_text(args.file), args.file, registry), args.to, registry)
    lines = [f"{_WORDS[finding.loss]}: {finding}" for finding in findings]
    sys.stdout.write(to_yaml(documents, lines))
    sys.stderr.writelines(f"placewright: {printable(line)}\n" for line in lines)
    # Losses alone are no error: a person reads the result (decision 0014).
    return 2 if args.strict and without_counterpart(findings) else 0


def _converted(conversion: Conversion, to: str, registry: Registry) -> tuple[Sequence[Document], Sequence[ConversionFinding]]:
    if to == PROFILES:
        return [manifest(profile) for profile in conversion.profiles], [*conversion.findings, *_flags(conversion)]
    document, lost = to_configuration(conversion.profiles, registry)
    return [document | conversion.settings.document()], [*conversion.findings, *lost]


def _flags(conversion: Conversion) -> Iterable[ConversionFinding]:
    """Write the settings of the process as flags, because a profile cannot hold them."""
    for field, flag in conversion.settings.flags():
        yield ConversionFinding(field, f"a setting of the process, not of a profile: placewright run {flag}", Loss.SETTING)
