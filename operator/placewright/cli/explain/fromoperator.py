"""Asks the active replica about a pod, through a forwarded port: its debug endpoints answer on loopback only."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import re
import shutil
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import aiohttp
import msgspec
from kubernetes.config import ConfigException, list_kube_config_contexts
from yarl import URL

from placewright.api.decode import DECODE_ERRORS
from placewright.explain.explanation import Explanation
from placewright.kube.auth.login import ClusterAccess
from placewright.kube.client import ApiClient
from placewright.kube.errors import NOT_FOUND, ApiError
from placewright.leadership.leaseobject import LEASE_NAME

_DEFAULT: Final = "default"
_PORT: Final = 10259
_SECONDS: Final = 15.0
#: Bytes of an answer; an operator's is far smaller, because it keeps little of a pod.
_LARGEST: Final = 8 * 2**20
_FORWARDING: Final = re.compile(rb"Forwarding from (127\.0\.0\.1):(\d+) ")


@dataclass(frozen=True, slots=True)
class Subject:
    """A pod by name. An empty `uid` means the pod that has the name now."""

    namespace: str
    name: str
    uid: str = ""

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


class CannotAsk(Exception):
    """No operator answers. The message gives the reason in one line."""


@dataclass(frozen=True, slots=True)
class Forwarded:
    """The cluster of the operator, as kubectl finds it."""

    client: ApiClient
    kubeconfig: str | None
    context: str | None
    namespace: str


class _LeaseSpec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None


class _Lease(msgspec.Struct):
    spec: _LeaseSpec | None = None


async def ask_forwarded(cluster: Forwarded, pod: Subject, token: str | None) -> Explanation | None:
    """Ask the replica that holds the Lease, through `kubectl port-forward`.

    Args:
        cluster: of the operator.
        pod: to explain.
        token: bearer token; None for the kubeconfig's.

    Returns:
        The explanation; None when the replica does not know the pod.

    Raises:
        CannotAsk: no replica can be asked.
    """
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        raise CannotAsk("there is no kubectl to forward its port; --server names a port that is forwarded already")
    shown = token or bearer_token(cluster.client.access)
    if not shown:
        raise CannotAsk("the kubeconfig has no token to show it, such as kubectl create token makes; --token names one")
    replica = await _active_replica(cluster)
    async with _forwarded(kubectl, cluster, replica) as port:
        return await ask_at(f"https://127.0.0.1:{port}", pod, shown)


async def ask_at(server: str, pod: Subject, token: str) -> Explanation | None:
    """Ask the operator at an address.

    An operator makes its own certificate, which cannot be verified: on loopback it is accepted, at any other address it must be a trusted
    one.

    Args:
        server: URL.
        pod: to explain.
        token: bearer token; empty for none.

    Returns:
        The explanation; None when the operator does not know the pod.

    Raises:
        CannotAsk: it does not answer, or refuses.
    """
    url = _url(server).with_path("/debug/explain").with_query({"pod": pod.key, **({"uid": pod.uid} if pod.uid else {})})
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    timeout = aiohttp.ClientTimeout(total=_SECONDS)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            # No redirects: the token is shown to this server only.
            session.get(url, headers=headers, ssl=_tls(url), allow_redirects=False) as answer,
        ):
            body = await answer.content.read(_LARGEST)
    except (aiohttp.ClientError, OSError, TimeoutError) as problem:
        raise CannotAsk(f"{server} does not answer: {str(problem) or type(problem).__name__}") from None
    # The operator's own words: a 404 of another server says nothing about the pod.
    if answer.status == NOT_FOUND and body.startswith(b"pod:"):
        return None
    if answer.status != 200:
        raise CannotAsk(f"{server} answers {answer.status}: {body[:300].decode(errors='replace').strip()}")
    try:
        return msgspec.json.decode(body, type=Explanation)
    except DECODE_ERRORS as problem:
        raise CannotAsk(f"{server} answers what is no explanation: {problem}") from None


def _url(server: str) -> URL:
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

    Args:
        server: URL.

    Returns:
        True for a loopback address.

    Raises:
        CannotAsk: it is no https URL.
    """
    return _is_loopback(_url(server))


def bearer_token(access: ClusterAccess) -> str:
    """Read the token of a kubeconfig's user.

    Args:
        access: as loaded.

    Returns:
        The token; "" for users with a certificate or a password.
    """
    return access.authorization.removeprefix("Bearer ") if access.authorization.startswith("Bearer ") else ""


def _is_loopback(url: URL) -> bool:
    host = url.host or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _tls(url: URL) -> ssl.SSLContext:
    context = ssl.create_default_context()
    # A certificate of the operator need not name 127.0.0.1, and this connection does not leave the machine.
    if _is_loopback(url):
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


async def _active_replica(cluster: Forwarded) -> str:
    """The pod of the replica that holds the Lease: a replica's identity begins with its name."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/{cluster.namespace}/leases/{LEASE_NAME}"
    try:
        lease = await cluster.client.get_as(path, _Lease)
    except ApiError as problem:
        if problem.status == NOT_FOUND:
            missing = f"there is no Lease {LEASE_NAME} in namespace {cluster.namespace}"
            raise CannotAsk(f"{missing}; --operator-namespace names another") from None
        raise CannotAsk(f"the Lease {cluster.namespace}/{LEASE_NAME} cannot be read: {problem}") from None
    except DECODE_ERRORS as problem:
        raise CannotAsk(f"the Lease {cluster.namespace}/{LEASE_NAME} cannot be read: {problem}") from None
    holder = ((lease.spec and lease.spec.holder_identity) or "").partition("/")[0]
    # kubectl would take a name with a leading dash for an option.
    if not holder or holder.startswith("-"):
        raise CannotAsk(f"no replica holds the Lease {cluster.namespace}/{LEASE_NAME}")
    return holder


@asynccontextmanager
async def _forwarded(kubectl: str, cluster: Forwarded, replica: str) -> AsyncIterator[int]:
    """A port of this machine that leads to the replica, for as long as the context is open."""
    options = {"--kubeconfig": cluster.kubeconfig, "--context": cluster.context}
    which = [word for option, value in options.items() if value for word in (option, value)]
    command = (kubectl, *which, "-n", cluster.namespace, "port-forward", "--address", "127.0.0.1", f"pod/{replica}", f":{_PORT}")
    # The empty local port makes kubectl choose a free one and print it.
    child = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        yield await _port(child, replica)
    finally:
        with contextlib.suppress(ProcessLookupError):
            child.terminate()
        try:
            await asyncio.wait_for(child.communicate(), 5.0)
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
    raise CannotAsk(f"kubectl port-forward to pod {replica} says: {complaint or 'nothing'}")


def current_namespace(kubeconfig: str | None, context: str | None) -> str:
    """Find the namespace that kubectl would use.

    Args:
        kubeconfig: a file; None for the environment's.
        context: name of a context; None for the current one.

    Returns:
        The namespace.
    """
    try:
        contexts, active = list_kube_config_contexts(kubeconfig)  # type: ignore[no-untyped-call]
    except (ConfigException, OSError, TypeError, KeyError):
        return _DEFAULT  # in a pod, for example; a missing cluster is reported by the first request
    named = next((each for each in contexts if each.get("name") == context), None) if context else active
    namespace = ((named or {}).get("context") or {}).get("namespace")
    return namespace if isinstance(namespace, str) and namespace else _DEFAULT
