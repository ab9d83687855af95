"""The options of `placewright run` about its endpoints, with kube-scheduler's names where it has them. docs/endpoints.md."""

from __future__ import annotations

import argparse
import ipaddress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from placewright.api.bad_input import InputError
from placewright.cli.options import whole_number

if TYPE_CHECKING:
    from placewright.serving.endpoints import ServingOptions

_SECURE_PORT: Final = 10259
_HIGHEST_PORT: Final = 65535
_LONGEST_HANG: Final = 3600


def add_serving_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
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
