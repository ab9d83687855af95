"""Asks the active replica about a pod, through a forwarded port: its debug endpoints answer on loopback only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import aiohttp
import msgspec
from kubernetes.config import ConfigException, list_kube_config_contexts

from placewright.api.decode import DECODE_ERRORS
from placewright.cli.operatorport import (
    CannotAsk,
    OperatorPlace,
    active_replica,
    find_kubectl,
    forwarded,
    operator_tls,
    operator_url,
    token_for,
)
from placewright.explain.explanation import Explanation
from placewright.kube.errors import NOT_FOUND

_DEFAULT: Final = "default"
_SECONDS: Final = 15.0
#: Bytes of an answer; an operator's is far smaller, because it keeps little of a pod.
_LARGEST: Final = 8 * 2**20


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


async def ask_forwarded(place: OperatorPlace, pod: Subject, token: str | None) -> Explanation | None:
    """Ask the replica that holds the Lease, through `kubectl port-forward`.

    Args:
        place: the place of the operator.
        pod: to explain.
        token: bearer token; None for the kubeconfig's.

    Returns:
        The explanation; None when the replica does not know the pod.

    Raises:
        CannotAsk: no replica can be asked.
    """
    kubectl = find_kubectl()
    shown = token_for(place.client.access, token)
    replica = await active_replica(place)
    async with forwarded(kubectl, place, replica) as port:
        return await ask_at(port.url, pod, shown)


async def ask_at(server: str, pod: Subject, token: str) -> Explanation | None:
    """Ask the operator at an address.

    Args:
        server: URL.
        pod: to explain.
        token: bearer token; empty for none.

    Returns:
        The explanation; None when the operator does not know the pod.

    Raises:
        CannotAsk: it does not answer, or refuses.
    """
    url = operator_url(server).with_path("/debug/explain").with_query({"pod": pod.key, **({"uid": pod.uid} if pod.uid else {})})
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    timeout = aiohttp.ClientTimeout(total=_SECONDS)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            # No redirects: the token is shown to this server only.
            session.get(url, headers=headers, ssl=operator_tls(url), allow_redirects=False) as answer,
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
        raise CannotAsk(f"{server} answers with something other than an explanation: {problem}") from None


def current_namespace(kubeconfig: str | None, context: str | None) -> str:
    """Find the namespace that kubectl would use.

    Args:
        kubeconfig: a file; None for the environment's.
        context: name of a context; None for the current one.
    """
    try:
        contexts, active = list_kube_config_contexts(kubeconfig)  # type: ignore[no-untyped-call]
    except (ConfigException, OSError, TypeError, KeyError):
        return _DEFAULT  # in a pod, for example; a missing cluster is reported by the first request
    named = next((each for each in contexts if each.get("name") == context), None) if context else active
    namespace = ((named or {}).get("context") or {}).get("namespace")
    return namespace if isinstance(namespace, str) and namespace else _DEFAULT
