"""`placewright run`: runs the operator against the current kubeconfig context, or from inside a cluster."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from placewright.api.bad_input import InputError, printable
from placewright.cli import version
from placewright.cli.options import Subparsers
from placewright.cli.runflags import (
    RunSettings,
    add_admission_options,
    add_flags,
    add_serving_options,
    admission_options,
    log_options,
    serving_options,
    settings_of,
)
from placewright.engine.options import EngineOptions
from placewright.framework.registry import Registry, installed_plugins
from placewright.observability.logs import logging_to_stderr
from placewright.plugins.catalog import in_tree
from placewright.profiles.kubescheduler.documents import to_yaml
from placewright.profiles.kubescheduler.writer import to_configuration

if TYPE_CHECKING:
    from placewright.engine.companions import MakeCompanions


def register(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("run", help="run the scheduler against a cluster")
    add_flags(parser)
    add_serving_options(parser)
    add_admission_options(parser)
    check = "for development: report a third-party plugin that changes the objects it is given; compares them at every call"
    parser.add_argument("--check-plugins", action="store_true", help=check)
    parser.add_argument("--exit-with-stdin", action="store_true", help=argparse.SUPPRESS)
    parser.set_defaults(main=main)


def main(args: argparse.Namespace) -> int:
    """Run until a signal ends the process."""
    if args.version:
        return version.main(args)
    registry = in_tree().with_installed(installed_plugins())
    for name, problem in registry.broken.items():
        sys.stderr.write(f"placewright: profiles cannot use plugin {printable(name)}: it {printable(problem)}\n")
    settings = settings_of(args, registry)
    if args.write_config_to is not None:
        return _write_configuration(Path(args.write_config_to), settings, registry)
    # kube-scheduler passes over such settings; one that is there and does nothing is said here (decision 0014).
    for finding in settings.unused:
        sys.stderr.write(f"placewright: {printable(f'{args.config}: {finding.path} has no effect: {finding.text}')}\n")
    options = EngineOptions(
        leader_elect=settings.process.leader_elect is not False,  # elect if neither flag nor file decides, as kube-scheduler does
        peering_lifetime=args.leader_elect_lease_duration,
        profiles=settings.profiles,
        qps=settings.qps,
        burst=settings.burst,
        admission=admission_options(args),
        check_plugins=args.check_plugins,
    )
    if args.exit_with_stdin:
        threading.Thread(target=_end_with_input, name="stdin", daemon=True).start()
    from placewright.handlers.operator import run  # noqa: PLC0415 - loads Kopf, which takes a while

    with logging_to_stderr(log_options(args)):
        return run(settings.process.kubeconfig, args.context, options, _companions(args))


def _companions(args: argparse.Namespace) -> MakeCompanions:
    """Make the listeners and endpoints that are open while the engine exists."""
    # Here and not above: they load aiohttp, the engine and Kopf, which other commands, and the help, do without.
    from placewright.engine.companions import together  # noqa: PLC0415
    from placewright.observability.decisionlog import decision_log  # noqa: PLC0415
    from placewright.observability.tracing import tracing  # noqa: PLC0415
    from placewright.serving.endpoints import endpoints  # noqa: PLC0415

    traces = tracing(args.tracing_sampling_rate_per_million)
    return together(decision_log, traces, endpoints(serving_options(args)))


def _write_configuration(path: Path, settings: RunSettings, registry: Registry) -> int:
    """Write the file as a configuration of today, with the defaults of its version that differ from today's."""
    document, lost = to_configuration(settings.profiles or (), registry)
    lines = [str(finding) for finding in lost]
    try:
        path.write_text(to_yaml([document | settings.process.document()], lines), encoding="utf-8")
    except OSError as error:
        raise InputError(f"--write-config-to: {path}: cannot be written: {error.strerror}") from None
    sys.stderr.writelines(f"placewright: {printable(line)}\n" for line in lines)
    return 0


def _end_with_input() -> None:
    """End in order when standard input ends: the process that started us holds its other end, and has died."""
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
