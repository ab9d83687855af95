"""`placewright run`: the operator, against the current kubeconfig context or from inside a cluster."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from importlib import import_module

from placewright.cli.admissionoptions import add_admission_options, admission_options
from placewright.cli.options import Subparsers


def register(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("run", help="run the scheduler against a cluster")
    found = "KUBECONFIG, ~/.kube/config, or the pod's service account"
    parser.add_argument("--kubeconfig", metavar="FILE", help=f"kubeconfig (default: {found})")
    parser.add_argument("--context", metavar="NAME", help="kubeconfig context (default: the current one)")
    add_admission_options(parser)
    parser.add_argument("--exit-with-stdin", action="store_true", help=argparse.SUPPRESS)
    parser.set_defaults(main=main)


def main(args: argparse.Namespace) -> int:
    """Run until a signal ends it."""
    admission = admission_options(args)
    operator = import_module("placewright.handlers.operator")  # loads Kopf, which takes a while
    engine = import_module("placewright.handlers.engine")

    if args.exit_with_stdin:
        threading.Thread(target=_end_with_input, name="stdin", daemon=True).start()
    code: int = operator.run(args.kubeconfig, args.context, engine.EngineOptions(admission=admission))
    return code


def _end_with_input() -> None:
    """Whoever started us holds the other end of standard input: when they die, however they die, we end in order."""
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
