"""Finds the active replica of an operator and leads to its HTTPS port, for commands that ask it.

The replica's name is in its Lease. `kubectl port-forward` leads to it, because some of its endpoints answer on loopback only.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ipaddress
import re
import shutil
import ssl
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import msgspec
from yarl import URL

from placewright.api.decode import DECODE_ERRORS
from placewright.cli.options import Group
from placewright.kube.auth.login import ClusterAccess
from placewright.kube.client import ApiClient
from placewright.kube.errors import NOT_FOUND, ApiError
from placewright.kube.history import DEFAULT_NAMESPACE
from placewright.leadership.leaseobject import LEASE_NAME

_PORT: Final = 10259
#: Seconds until kubectl must have said its port.
_SECONDS: Final = 15.0
_END_SECONDS: Final = 5.0
_FORWARDING: Final = re.compile(rb"Forwarding from (127\.0\.0\.1):(\d+) ")
#: Lines of kubectl's complaints that are kept.
_LAST_LINES: Final = 5


class CannotAsk(Exception):
    """No operator answers. The message gives the reason in one line."""


class ReplicaOutOfReach(CannotAsk):
    """A replica leads, and no port can be forwarded to it.

    Attributes:
        replica: name of the pod or machine, as its Lease has it.
    """

    def __init__(self, message: str, replica: str) -> None:
        super().__init__(message)
        self.replica = replica


class NoActiveReplica(CannotAsk):
    """The operator has a Lease, and no replica holds it now, as while its replicas are replaced."""


@dataclass(frozen=True, slots=True)
class OperatorPlace:
    """Where the operator runs, as kubectl finds it.

    Attributes:
        client: client of the API server.
        kubeconfig, context: options of kubectl; None for the defaults.
        namespace: namespace of the operator.
    """

    client: ApiClient
    kubeconfig: str | None
    context: str | None
    namespace: str


class _LeaseSpec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None


class _Lease(msgspec.Struct):
    spec: _LeaseSpec | None = None


class ForwardedPort:
    """A port of this machine that leads to a replica.

    Attributes:
        port: port on 127.0.0.1.
    """

    def __init__(self, child: asyncio.subprocess.Process, port: int) -> None:
        self.port = port
        self._child = child
        self._said: deque[bytes] = deque(maxlen=_LAST_LINES)
        # kubectl writes a line for each connection, and would stand still if they were not read.
        self._reading = [asyncio.create_task(self._read(each)) for each in (child.stdout, child.stderr) if each is not None]

    @property
    def url(self) -> str:
        """The port as a URL."""
        return f"https://127.0.0.1:{self.port}"

    async def ended(self) -> str:
        """Return when kubectl has ended.

        Returns:
            Its last words, in one line.
        """
        await self._child.wait()
        await asyncio.wait(self._reading, timeout=_END_SECONDS)
        return b" ".join(self._said).decode(errors="replace").strip() or "nothing"

    async def close(self) -> None:
        """Stop reading what kubectl says."""
        for task in self._reading:
            task.cancel()
        await asyncio.gather(*self._reading, return_exceptions=True)

    async def _read(self, stream: asyncio.StreamReader) -> None:
        with contextlib.suppress(ValueError):  # a line without an end
            async for line in stream:
                if not line.startswith((b"Handling connection", b"Forwarding from")):
                    self._said.append(line.strip())


def add_operator_port_options(parser: argparse.ArgumentParser) -> Group:
    """Add the options that say which operator is asked, and with which token."""
    group = parser.add_argument_group("operator")
    group.add_argument("--server", metavar="URL", help="its HTTPS port, forwarded to this machine (default: kubectl forwards it)")
    group.add_argument("--token", metavar="TOKEN", help="bearer token for it (default: the kubeconfig's, if --server is on this machine)")
    group.add_argument(
        "--operator-namespace", default=DEFAULT_NAMESPACE, metavar="NAME", help="where the operator runs (default: %(default)s)"
    )
    return group


def bearer_token(access: ClusterAccess) -> str:
    """Read the token of a kubeconfig's user.

    Returns:
        The token; "" for users with a certificate or a password.
    """
    return access.authorization.removeprefix("Bearer ") if access.authorization.startswith("Bearer ") else ""


def token_for(access: ClusterAccess, token: str | None, server: str | None = None) -> str:
    """Choose the token that the operator is shown.

    The kubeconfig's token is sent to this machine only, because it gives all of its owner's rights in the cluster.

    Args:
        access: credentials of the kubeconfig.
        token: that a person named; None for the kubeconfig's.
        server: URL of the operator that a person named; None if kubectl forwards a port.

    Raises:
        CannotAsk: there is none, or it may not be sent there.
    """
    if token:
        return token
    if server is not None and not on_this_machine(server):
        raise CannotAsk(f"{server} is not on this machine, so the kubeconfig's token is not sent there; give --token")
    found = bearer_token(access)
    if not found:
        raise CannotAsk("the kubeconfig has no token to show it, such as kubectl create token makes; --token names one")
    return found


def operator_url(server: str) -> URL:
    """Read a URL that a person named.

    Raises:
        CannotAsk: it is no https URL.
    """
    try:
        url = URL(server)
        usable = url.scheme == "https" and bool(url.host) and not url.user
    except ValueError:
        usable = False
    if not usable:
        raise CannotAsk(f"found {server[:200]!r}; allowed an https URL, such as https://127.0.0.1:{_PORT}")
    return url


def on_this_machine(server: str) -> bool:
    """Whether a URL names this machine.

    Returns:
        True for a loopback address.

    Raises:
        CannotAsk: it is no https URL.
    """
    return _is_loopback(operator_url(server))


def operator_tls(url: URL) -> ssl.SSLContext:
    """Make the TLS side for a connection to an operator.

    An operator makes its own certificate, which cannot be verified: on loopback it is accepted, at any other address it must be a trusted
    one.
    """
    context = ssl.create_default_context()
    # A certificate of the operator need not name 127.0.0.1, and this connection does not leave the machine.
    if _is_loopback(url):
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _is_loopback(url: URL) -> bool:
    host = url.host or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def active_replica(place: OperatorPlace) -> str:
    """Find the pod of the replica that holds the Lease: a replica's identity begins with its name.

    Raises:
        CannotAsk: there is no Lease, or it has no holder, or it may not be read.
        Unreachable: the API server does not answer.
    """
    path = f"/apis/coordination.k8s.io/v1/namespaces/{place.namespace}/leases/{LEASE_NAME}"
    try:
        lease = await place.client.get_as(path, _Lease)
    except (ApiError, *DECODE_ERRORS) as problem:
        if isinstance(problem, ApiError) and problem.status == NOT_FOUND:
            missing = f"there is no Lease {LEASE_NAME} in namespace {place.namespace}"
            raise CannotAsk(f"{missing}; --operator-namespace names another") from None
        raise CannotAsk(f"the Lease {place.namespace}/{LEASE_NAME} cannot be read: {problem}") from None
    holder = ((lease.spec and lease.spec.holder_identity) or "").partition("/")[0]
    # kubectl would take a name with a leading dash for an option.
    if not holder or holder.startswith("-"):
        raise NoActiveReplica(f"no replica holds the Lease {place.namespace}/{LEASE_NAME}")
    return holder


def find_kubectl() -> str:
    """Find kubectl.

    Raises:
        CannotAsk: there is none.
    """
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        raise CannotAsk("there is no kubectl to forward its port; --server names a port that is forwarded already")
    return kubectl


@asynccontextmanager
async def forwarded(kubectl: str, place: OperatorPlace, replica: str) -> AsyncIterator[ForwardedPort]:
    """Forward a port of this machine to a replica, for as long as the context is open.

    Args:
        kubectl: its path.
        place: the place of the operator.
        replica: name of the pod.

    Yields:
        The port.

    Raises:
        ReplicaOutOfReach: kubectl does not forward it, for example because the replica runs outside the cluster.
    """
    options = {"--kubeconfig": place.kubeconfig, "--context": place.context}
    which = [word for option, value in options.items() if value for word in (option, value)]
    command = (kubectl, *which, "-n", place.namespace, "port-forward", "--address", "127.0.0.1", f"pod/{replica}", f":{_PORT}")
    # The empty local port makes kubectl choose a free one and print it. In a session of its own it does not get the terminal's Ctrl-C.
    child = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        port = ForwardedPort(child, await _port(child, replica))
        try:
            yield port
        finally:
            await port.close()
    finally:
        with contextlib.suppress(ProcessLookupError):
            child.terminate()
        try:
            await asyncio.wait_for(child.communicate(), _END_SECONDS)
        except TimeoutError:
            child.kill()
            await child.wait()


async def _port(child: asyncio.subprocess.Process, replica: str) -> int:
    assert child.stdout is not None
    assert child.stderr is not None
    try:
        async with asyncio.timeout(_SECONDS):
            said = _FORWARDING.search(await child.stdout.readline())
            if said is not None:
                return int(said[2])
            complaint = " ".join((await child.stderr.read(2_000)).decode(errors="replace").split())
            await child.wait()
    except (TimeoutError, ValueError):
        complaint = f"nothing within {_SECONDS:g} s"
    how = f"--server names its HTTPS port, such as https://127.0.0.1:{_PORT} if it runs on this machine"
    if "not found" in complaint.lower():
        raise ReplicaOutOfReach(f"{replica} leads, and is no pod there; {how}", replica)
    raise ReplicaOutOfReach(f"{replica} leads, and kubectl port-forward to it says: {complaint or 'nothing'}; {how}", replica)
