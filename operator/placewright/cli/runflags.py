"""The flags of `placewright run`, with kube-scheduler's names where it has them, and their merge with a configuration file.

A flag precedes the file, and the file precedes the default. A flag that could have no effect is refused.
"""

from __future__ import annotations

import argparse
import ipaddress
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from placewright.api.bad_input import InputError, bad_field
from placewright.api.durations import seconds
from placewright.api.profile import SchedulingProfile
from placewright.cli.options import add_cluster_options, read_text, whole_number
from placewright.engine.options import AdmissionOptions
from placewright.framework.registry import Registry
from placewright.observability.logs import LogFormat, LogOptions
from placewright.profiles.kubescheduler.findings import ConversionFinding, Loss, without_counterpart
from placewright.profiles.kubescheduler.process import ProcessSettings
from placewright.profiles.kubescheduler.reader import convert

if TYPE_CHECKING:
    from placewright.serving.endpoints import ServingOptions

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
_SECURE_PORT: Final = 10259
_HIGHEST_PORT: Final = 65535
_LONGEST_HANG: Final = 3600
_OFF: Final = "off"
_ADMISSION_ADDRESS: Final = re.compile(r"(?:(?P<host>[0-9.]+)|\[(?P<host6>[0-9A-Fa-f:.]+)\])?:(?P<port>[0-9]{1,5})")
_LABEL: Final = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_SERVICE: Final = re.compile(rf"({_LABEL})/({_LABEL})(?::([0-9]{{1,5}}))?")
_CERTIFICATE_FILES: Final = ("tls.crt", "tls.key")


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
    add_cluster_options(parser)
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


# --- health, metrics and debug pages ----------------------------------------------------------------------------------------------


def add_serving_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options about endpoints: docs/endpoints.md."""
    group = parser.add_argument_group("health, metrics and debug pages")
    port = whole_number(0, _HIGHEST_PORT)
    group.add_argument("--secure-port", type=port, default=_SECURE_PORT, metavar="PORT", help="HTTPS; 0: none (default: %(default)s)")
    everywhere = "address that serves HTTPS (default: %(default)s, all addresses of both families)"
    group.add_argument("--bind-address", type=_address, default="0.0.0.0", metavar="ADDRESS", help=everywhere)  # noqa: S104
    files = "read again when it is replaced (default: a certificate made at the start)"
    group.add_argument("--tls-cert-file", type=Path, metavar="FILE", help=f"certificate for HTTPS, {files}")
    group.add_argument("--tls-private-key-file", type=Path, metavar="FILE", help="key of that certificate")
    plain = "plain HTTP on 127.0.0.1 for health alone; 0: none (default: %(default)s)"
    patience = "end the process when its event loop has stood still for so many seconds, because a plugin blocks it, for example"
    patience += " (default: %(default)s)"
    group.add_argument("--hang-timeout", type=whole_number(1, _LONGEST_HANG), default=60, metavar="SECONDS", help=patience)
    console = "serve the console at /console of the HTTPS port, for people whom the API server lets in"
    group.add_argument("--console", action="store_true", help=console)
    group.add_argument("--health-port", type=port, default=0, metavar="PORT", help=plain)


def serving_options(args: argparse.Namespace) -> ServingOptions:
    """Read the options.

    Returns:
        The options of the endpoints.

    Raises:
        InputError: options contradict each other.
    """
    certificate, key = args.tls_cert_file, args.tls_private_key_file
    if (certificate is None) != (key is None):
        raise InputError("--tls-cert-file, --tls-private-key-file: found one of them; allowed both, or neither")
    if args.health_port and args.health_port == args.secure_port:
        raise InputError(f"--health-port: found {args.health_port}, which is --secure-port; allowed another port, or 0 for none")
    if args.console and not args.secure_port:
        raise InputError("--console: found without HTTPS (--secure-port=0); allowed with a --secure-port")
    # Here and not above: they load aiohttp and the engine, which other commands do without.
    from placewright.observability.watchdog import Patience  # noqa: PLC0415
    from placewright.serving.endpoints import ServingOptions  # noqa: PLC0415

    return ServingOptions(
        address=args.bind_address,
        port=args.secure_port or None,
        health_port=args.health_port or None,
        certificate=None if certificate is None else (certificate, key),
        console=args.console,
        patience=Patience(min(5.0, args.hang_timeout / 2), args.hang_timeout),
    )


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"found {text!r}; allowed an IP address, such as 0.0.0.0, 127.0.0.1 or ::") from None


# --- checking profiles ------------------------------------------------------------------------------------------------------------


def add_admission_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options about the webhook that checks profiles before they are stored: docs/admission.md."""
    group = parser.add_argument_group("checking profiles before they are stored")
    group.add_argument(
        "--admission", default=_OFF, metavar="ADDRESS:PORT", help="answer the API server's questions here, over TLS (default: off)"
    )
    group.add_argument(
        "--admission-certificates", type=Path, metavar="FOLDER", help="tls.crt, tls.key and perhaps ca.crt (default: made at the start)"
    )
    group.add_argument(
        "--admission-service", metavar="NAMESPACE/NAME[:PORT]", help="the Service that the API server calls (default: the address itself)"
    )
    group.add_argument(
        "--admission-configuration",
        default="placewright",
        metavar="NAME",
        help="the ValidatingWebhookConfiguration to keep; '' when you keep it yourself (default: %(default)s)",
    )
    group.add_argument(
        "--admission-failure-policy",
        choices=("Ignore", "Fail"),
        default="Ignore",
        help="whether the API server stores profiles unchecked while the webhook does not answer (default: %(default)s)",
    )


def admission_options(args: argparse.Namespace) -> AdmissionOptions | None:
    """Read the options.

    Returns:
        The options of the webhook; None when it is off.

    Raises:
        InputError: a value is wrong, or options contradict each other.
    """
    if args.admission == _OFF:
        return None
    address, port = _admission_address(args.admission)
    if getattr(args, "config", None):
        raise bad_field("--admission", args.admission, "off, beside --config: no custom resources are looked at then")
    service = None if args.admission_service is None else _service(args.admission_service)
    if service is None and ipaddress.ip_address(address).is_unspecified and args.admission_configuration:
        raise InputError(
            f"--admission: found {args.admission}, which the API server cannot call; "
            "allowed an address that it can, or --admission-service, or --admission-configuration ''"
        )
    return AdmissionOptions(
        address=address,
        port=port,
        certificates=_certificates(args.admission_certificates),
        service=service,
        configuration=args.admission_configuration,
        failure_policy=args.admission_failure_policy,
    )


def _admission_address(text: str) -> tuple[str, int]:
    found = _ADMISSION_ADDRESS.fullmatch(text)
    allowed = "off, or an IP address and a port, such as 0.0.0.0:9443 or :9443"
    if found is None or not 1 <= int(found["port"]) <= _HIGHEST_PORT:
        raise bad_field("--admission", text, allowed)
    address = found["host"] or found["host6"] or "0.0.0.0"  # noqa: S104 - nothing before the colon means everywhere
    try:
        ipaddress.ip_address(address)
    except ValueError:
        raise bad_field("--admission", text, allowed) from None
    return address, int(found["port"])


def _service(text: str) -> tuple[str, str, int]:
    found = _SERVICE.fullmatch(text)
    if found is None or not 1 <= int(found[3] or 443) <= _HIGHEST_PORT:
        raise bad_field("--admission-service", text, "a namespace and a name, such as placewright/webhook or placewright/webhook:8443")
    return found[1], found[2], int(found[3] or 443)


def _certificates(folder: Path | None) -> Path | None:
    for name in _CERTIFICATE_FILES if folder is not None else ():
        if not Path(str(folder), name).is_file():
            raise bad_field("--admission-certificates", str(folder), f"a folder with {' and '.join(_CERTIFICATE_FILES)} in it")
    return folder
