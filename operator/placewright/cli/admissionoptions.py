"""The options of `placewright run` about the webhook that checks profiles before they are stored: docs/admission.md."""

from __future__ import annotations

import argparse
import ipaddress
import re
from pathlib import Path
from typing import Final

from placewright.api.bad_input import InputError, bad_field
from placewright.engine.options import AdmissionOptions

_OFF: Final = "off"
_ADDRESS: Final = re.compile(r"(?:(?P<host>[0-9.]+)|\[(?P<host6>[0-9A-Fa-f:.]+)\])?:(?P<port>[0-9]{1,5})")
_LABEL: Final = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_SERVICE: Final = re.compile(rf"({_LABEL})/({_LABEL})(?::([0-9]{{1,5}}))?")
_FILES: Final = ("tls.crt", "tls.key")
_HIGHEST_PORT: Final = 65535


def add_admission_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
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
    address, port = _address(args.admission)
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


def _address(text: str) -> tuple[str, int]:
    found = _ADDRESS.fullmatch(text)
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
    for name in _FILES if folder is not None else ():
        if not Path(str(folder), name).is_file():
            raise bad_field("--admission-certificates", str(folder), f"a folder with {' and '.join(_FILES)} in it")
    return folder
