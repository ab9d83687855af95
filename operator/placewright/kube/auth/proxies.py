"""Chooses the proxy for an address from the environment, by the same rules as Go's clients, kubectl among them."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from yarl import URL


def proxy_for(url: URL, environ: Mapping[str, str]) -> str | None:
    """Choose the proxy for a URL.

    Requests to this machine's own addresses never use a proxy, because a proxy on another machine cannot reach them.

    Args:
        url: URL of the request.
        environ: `HTTPS_PROXY` and `HTTP_PROXY` name proxies; `NO_PROXY` names hosts, domains and networks without one.

    Returns:
        The proxy's URL; None for none.
    """
    proxy = _named(environ, f"{url.scheme}_proxy")
    exceptions = [text.strip().lower() for text in (_named(environ, "no_proxy") or "").split(",")]
    host = (url.host or "").lower()
    if not proxy or _is_local(host) or any(_covers(exception, host) for exception in exceptions if exception):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _named(environ: Mapping[str, str], name: str) -> str | None:
    return environ.get(name.upper()) or environ.get(name)


def _is_local(host: str) -> bool:
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _covers(exception: str, host: str) -> bool:
    """Return whether an entry of `NO_PROXY` covers this host: `*`, an address, a network, a name, or a domain and all names in it."""
    address = _address(host)
    if address is not None:
        return exception == "*" or _is_in(address, exception)
    name = exception.partition(":")[0].lstrip(".")
    return exception == "*" or host == name or host.endswith(f".{name}")


def _is_in(address: ipaddress.IPv4Address | ipaddress.IPv6Address, network: str) -> bool:
    try:
        return address in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
