"""The addresses in the status of a pod: one of each family, and `podIP` the first of `podIPs`, as in Kubernetes 1.36."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterator

from kubesandbox.status import Object

MOST_ADDRESSES = 2
_ONE_OF_EACH = "may specify no more than one IP for each IP family"
_NOT_ONE = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"

Faults = Iterator[tuple[str, str]]


def settle_addresses(status: Object) -> None:
    """Make `podIP` and `podIPs` agree, in place: where they differ, `podIP` alone counts."""
    first, listed = status.get("podIP"), _listed(status, "podIPs")
    if first and first != (listed or [""])[0]:
        status["podIPs"] = [{"ip": first}]
    elif listed:
        status["podIP"] = listed[0]


def check_addresses(status: Object, old: Object) -> Faults:
    """What is wrong with the addresses of a status that replaces `old`, whose addresses may stay."""
    hosts = _listed(status, "hostIPs")
    if hosts and hosts[0] != (status.get("hostIP") or ""):
        yield "status.hostIPs[0].ip", f"Invalid value: {json.dumps(hosts[0])}: must be equal to `hostIP`"
    for field in ("podIPs", "hostIPs"):
        yield from _check(f"status.{field}", _listed(status, field), _listed(old, field))


def _check(path: str, addresses: list[str], before: list[str]) -> Faults:
    for at, address in enumerate(addresses):
        if address not in before and not _family(address):
            yield f"{path}[{at}]", f"Invalid value: {json.dumps(address)}: {_NOT_ONE}"
    families = [_family(address) for address in addresses]
    if len(addresses) > MOST_ADDRESSES or len(set(families)) < len(families):
        shown = json.dumps([{"IP": address} for address in addresses], separators=(",", ":"))
        yield path, f"Invalid value: {shown}: {_ONE_OF_EACH}"


def _listed(status: Object, field: str) -> list[str]:
    return [str(each.get("ip") or "") for each in status.get(field) or ()]


def _family(address: str) -> int:
    """4 or 6; 0 for what is no address."""
    try:
        return ipaddress.ip_address(address).version
    except ValueError:
        return 0
