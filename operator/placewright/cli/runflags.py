"""The flags of `placewright run`, with kube-scheduler's names where it has them, and their merge with a configuration file.

A flag precedes the file, and the file precedes the default. A flag that could have no effect is refused.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from placewright.api.bad_input import InputError, bad_field
from placewright.api.durations import seconds
from placewright.api.profile import SchedulingProfile
from placewright.cli.options import read_text, whole_number
from placewright.framework.registry import Registry
from placewright.observability.logs import LogFormat, LogOptions
from placewright.profiles.kubescheduler.findings import ConversionFinding, Loss, without_counterpart
from placewright.profiles.kubescheduler.process import ProcessSettings
from placewright.profiles.kubescheduler.reader import convert

_TRUE: Final = ("true", "True", "TRUE", "t", "T", "1")
_FALSE: Final = ("false", "False", "FALSE", "f", "F", "0")
_MOST_REQUESTS: Final = 1_000_000
#: Seconds. A record is renewed at most once a second, and `leadership.peers` believes no lifetime above an hour.
_SHORTEST_LIFETIME: Final = 2
_LONGEST_LIFETIME: Final = 3600
#: klog's level from which on debug lines are logged.
_DEBUG_FROM: Final = 4
_MOST_VERBOSE: Final = 10
_MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The settings of a run.

    Attributes:
        process: settings of flags and file together.
        profiles: profiles of the file; None if custom resources are watched.
        unused: settings of the file that have no effect here.
    """

    process: ProcessSettings
    profiles: tuple[SchedulingProfile, ...] | None
    unused: Sequence[ConversionFinding]

    @property
    def qps(self) -> float:
        """Requests a second; 0 for no limit."""
        return max(self.process.qps or 0.0, 0.0)

    @property
    def burst(self) -> int:
        """Requests at once; by default twice the rate, in client-go's proportion."""
        return max(self.process.burst or int(2 * self.qps), 1)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    found = "KUBECONFIG, ~/.kube/config, or the pod's service account"
    parser.add_argument("--kubeconfig", metavar="FILE", help=f"kubeconfig (default: {found})")
    parser.add_argument("--context", metavar="NAME", help="kubeconfig context (default: the current one)")
    file = "profiles from a KubeSchedulerConfiguration, Policy or SchedulingProfile manifests, instead of custom resources"
    parser.add_argument("--config", metavar="FILE", help=file)
    parser.add_argument("--write-config-to", metavar="FILE", help="write --config as a KubeSchedulerConfiguration of today, and end")
    alone = "false: this is the only replica, and nothing keeps a second one from running"
    elect = f"elect one replica (default: true); {alone}"
    parser.add_argument("--leader-elect", type=_boolean, nargs="?", const=True, metavar="BOOL", help=elect)
    lifetime = "how long a replica that vanished keeps its lead, in whole seconds, such as 15s (default: 15s)"
    parser.add_argument("--leader-elect-lease-duration", type=_lifetime, default=15, metavar="DURATION", help=lifetime)
    rate = "requests a second to the API server, without watches, Bindings first (default: no limit)"
    parser.add_argument("--kube-api-qps", type=_rate, metavar="N", help=rate)
    most = whole_number(1, _MOST_REQUESTS)
    parser.add_argument("--kube-api-burst", type=most, metavar="N", help="requests that may be sent at once (default: twice the rate)")
    _add_log_flags(parser)
    parser.add_argument("--version", action="store_true", help="print the version, and end")


def _add_log_flags(parser: argparse.ArgumentParser) -> None:
    """Declare the flags about logs and traces: docs/logs.md."""
    form = "form of log lines: text, or json for one object a line (default: %(default)s)"
    formats = [each.value for each in LogFormat]
    parser.add_argument("--logging-format", choices=formats, default=LogFormat.TEXT.value, metavar="FORMAT", help=form)
    rate = "attempts to place a pod that are traced by OpenTelemetry (default: as OTEL_TRACES_SAMPLER says; none without it)"
    parser.add_argument("--tracing-sampling-rate-per-million", type=whole_number(0, _MILLION), metavar="N", help=rate)
    parser.add_argument("-v", "--v", type=whole_number(0, _MOST_VERBOSE), default=0, metavar="N", help="log level; 4 and more: debug")


def settings_of(args: argparse.Namespace, registry: Registry) -> RunSettings:
    """Merge flags and file.

    Args:
        args: parsed options.
        registry: the plugins that exist here.

    Raises:
        InputError: flags contradict each other, or the file's profiles would place pods otherwise here.
    """
    if args.config is None:
        if args.write_config_to is not None:
            raise InputError("--write-config-to: nothing to write without --config; profiles in a cluster: kubectl get schedprof -o yaml")
        return RunSettings(_merged(args, ProcessSettings()), None, ())
    conversion = convert(read_text(args.config), args.config, registry)
    # `convert` lists such losses and goes on, because a person reads its output; a process that starts has no reader (decision 0014).
    lost = [finding for finding in conversion.findings if finding.loss is Loss.PLACEMENT]
    if lost:
        allowed = "allowed settings with a counterpart; placewright convert writes a file without the others"
        raise InputError("\n".join(f"{args.config}: {finding}; {allowed}" for finding in lost))
    return RunSettings(_merged(args, conversion.settings), conversion.profiles, without_counterpart(conversion.findings))


def _merged(args: argparse.Namespace, file: ProcessSettings) -> ProcessSettings:
    merged = ProcessSettings(
        leader_elect=file.leader_elect if args.leader_elect is None else args.leader_elect,
        kubeconfig=args.kubeconfig or file.kubeconfig,
        qps=file.qps if args.kube_api_qps is None else args.kube_api_qps,
        burst=args.kube_api_burst or file.burst,
    )
    if args.kube_api_burst and not (merged.qps and merged.qps > 0):
        raise bad_field("--kube-api-burst", args.kube_api_burst, "a burst beside a --kube-api-qps; without a rate there is no limit")
    return merged


def log_options(args: argparse.Namespace) -> LogOptions:
    """Read the flags about logs."""
    return LogOptions(LogFormat(args.logging_format), logging.DEBUG if args.v >= _DEBUG_FROM else logging.INFO)


def _boolean(text: str) -> bool:
    """Parse a boolean as Go's flags do."""
    if text not in _TRUE + _FALSE:
        raise argparse.ArgumentTypeError(f"found {text!r}; allowed true or false")
    return text in _TRUE


def _lifetime(text: str) -> int:
    """Parse a duration in whole seconds, the unit of Kopf's peering."""
    found = seconds(text)
    if found is None or not found.is_integer() or not _SHORTEST_LIFETIME <= found <= _LONGEST_LIFETIME:
        allowed = f"whole seconds from {_SHORTEST_LIFETIME}s to {_LONGEST_LIFETIME}s, such as 15s"
        raise argparse.ArgumentTypeError(f"found {text!r}; allowed {allowed}")
    return int(found)


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = float("nan")
    # Not `rate > _MOST_REQUESTS`, which is False for NaN.
    if not rate <= _MOST_REQUESTS or rate < 0:
        raise argparse.ArgumentTypeError(f"found {text!r}; allowed a number from 0 (no limit) to {_MOST_REQUESTS}")
    return rate
