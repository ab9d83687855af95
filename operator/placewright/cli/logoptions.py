"""The options of `placewright run` about what it logs and traces: kube-scheduler's names where kube-scheduler has them. docs/logs.md."""

from __future__ import annotations

import argparse
import logging
from typing import Final

from placewright.cli.options import whole_number
from placewright.observability.logs import LogFormat, LogOptions

#: klog's levels: up to here what happens is told, from here on also why.
_DEBUG_FROM: Final = 4
_MOST_VERBOSE: Final = 10
_MILLION: Final = 1_000_000


def add_log_options(parser: argparse.ArgumentParser) -> None:
    """Declare them."""
    form = "how log lines read: text, or json for one object a line (default: %(default)s)"
    formats = [each.value for each in LogFormat]
    parser.add_argument("--logging-format", choices=formats, default=LogFormat.TEXT.value, metavar="FORMAT", help=form)
    rate = "attempts to place a pod that are traced by OpenTelemetry (default: as OTEL_TRACES_SAMPLER says; none without it)"
    parser.add_argument("--tracing-sampling-rate-per-million", type=whole_number(0, _MILLION), metavar="N", help=rate)
    parser.add_argument("-v", "--v", type=whole_number(0, _MOST_VERBOSE), default=0, metavar="N", help="log level; 4 and more: debug")


def log_options(args: argparse.Namespace) -> LogOptions:
    """What they come to."""
    return LogOptions(LogFormat(args.logging_format), log_level(args.v))


def log_level(verbosity: int) -> int:
    """The level of Python's logging for klog's `-v`."""
    return logging.DEBUG if verbosity >= _DEBUG_FROM else logging.INFO
