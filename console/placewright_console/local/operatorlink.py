"""The way to an operator's console: the active replica, found by its Lease, and a port that leads to it. Both are found again when lost.

The operator is shown the person's bearer token. The token stays in this process: what is handed on of an answer is its status, media type
and body. A certificate on loopback cannot be verified, so it is remembered before the token is sent. At a port that a person named it holds
until the process ends: any user of the machine may listen there later. At a port of our own kubectl it holds while that runs.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from errno import errorcode
from typing import Any, Final

import aiohttp
from yarl import URL

from placewright.cli.operatorport import (
    CannotAsk,
    ForwardedPort,
    NoActiveReplica,
    OperatorPlace,
    active_replica,
    find_kubectl,
    forwarded,
    on_this_machine,
    operator_tls,
    operator_url,
    token_for,
)
from placewright.cli.profiles.connection import in_words
from placewright.kube.errors import FORBIDDEN, NOT_FOUND, UNAUTHORIZED, RequestError
from placewright.kube.tasks import cancelled

_PATH: Final = "/console/api/"
_OK: Final = 200
#: Seconds for connecting, for the beginning of an answer, and of silence in one: the feed says something every 15.
_CONNECT_SECONDS: Final = 10.0
_ANSWER_SECONDS: Final = 20.0
_SILENT_SECONDS: Final = 60.0
#: Bytes of a refusal that are read.
_LONGEST_WORD: Final = 300
#: Seconds between two looks at the Lease.
LOOK_SECONDS: Final = 5.0
#: Seconds until a lost operator is looked for again, doubled after each failure, and until a refusal is tried again.
RETRY_SECONDS: Final = 0.5
LONGEST_RETRY_SECONDS: Final = 10.0
REFUSED_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class LinkState:
    """State of the link.

    Attributes:
        url: address of the operator's console; None if it cannot be asked.
        why: the reason for that, in one line.
        lasting: whether the reason stays until the cluster or rights change: no operator, or a console closed to this person.
    """

    url: URL | None = None
    why: str = "the operator is being looked for"
    lasting: bool = False


class OperatorAwayError(CannotAsk):
    """The operator does not answer now. It may answer the next time."""


class CertificateChangedError(CannotAsk):
    """At the port that a person named another server answers than before. It may be another user's, so the console ends."""


class OperatorLink:
    """Keeps the way to the console of the active replica open.

    Example:
        keeping = asyncio.create_task(link.keep())
        async with link.answer("node", {"name": "a"}) as answer:
            body = await answer.read()

    Attributes:
        state: state of the link; replaced as a whole.
    """

    def __init__(self, place: OperatorPlace, server: str | None, token: str | None, changed: Callable[[LinkState], None]) -> None:
        """Ask nothing yet.

        Args:
            place: place of the operator.
            server: URL of its HTTPS port; None: kubectl forwards it.
            token: bearer token; None for the kubeconfig's.
            changed: told each new state.
        """
        self.state = LinkState()
        self._place = place
        self._server = server
        self._token = token
        self._changed = changed
        self._broken = asyncio.Event()
        self._http: aiohttp.ClientSession | None = None
        self._open: set[aiohttp.ClientResponse] = set()
        self._failures = 0
        self._tls: ssl.SSLContext | aiohttp.Fingerprint | None = None

    async def keep(self) -> None:
        """Find the operator's console, and find it again whenever it is lost, until cancelled.

        Raises:
            CertificateChangedError: the server at the port that a person named has changed.
        """
        # One connection a request, as the operator closes each: no pool, so that no connection of a former replica is used again.
        connector = aiohttp.TCPConnector(force_close=True, limit=0)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS, sock_read=_SILENT_SECONDS)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=False) as self._http:
            while True:
                pause = await self._kept_once()
                await asyncio.sleep(pause)

    @asynccontextmanager
    async def answer(self, name: str, query: dict[str, str]) -> AsyncIterator[aiohttp.ClientResponse]:
        """Ask the operator's console.

        Args:
            name: name of the data, such as `node`.
            query: parameters.

        Yields:
            The answer; its body comes as it is read.

        Raises:
            CannotAsk: no operator can be asked now.
        """
        url = self.state.url
        if url is None:
            raise CannotAsk(self.state.why)
        try:
            answer = await self._asked(url, name, query)
        except CannotAsk:
            self._broken.set()
            raise
        self._open.add(answer)
        try:
            yield answer
        finally:
            self._open.discard(answer)
            answer.close()

    def lost(self) -> None:
        """Look at the operator again, because it answers otherwise than before."""
        self._broken.set()

    async def _kept_once(self) -> float:
        """Find the console and stay with it. Return the seconds after which another try is worth it."""
        try:
            why, lasting = await self._stayed(), False
        except CertificateChangedError:
            raise
        except CannotAsk as problem:
            why, lasting = str(problem), not isinstance(problem, (OperatorAwayError, NoActiveReplica))
        except RequestError as problem:
            why, lasting = f"the API server does not say which replica is active: {in_words(problem)}", False
        self._change(LinkState(None, why, lasting))
        for each in list(self._open):
            each.close()
        if lasting:
            return REFUSED_SECONDS
        # An address costs little to try, a kubectl more.
        self._failures += self._server is None
        return min(RETRY_SECONDS * 2.0 ** min(self._failures, 10), LONGEST_RETRY_SECONDS)

    async def _stayed(self) -> str:
        """Stay with the console until the way to it is lost. Return the reason."""
        if self._server is not None:
            return await self._stayed_at(operator_url(self._server))
        kubectl = find_kubectl()
        await self._shown_token()  # before kubectl is started for nothing
        replica = await active_replica(self._place)
        async with AsyncExitStack() as stack:
            try:
                port = await stack.enter_async_context(forwarded(kubectl, self._place, replica))
            except CannotAsk as problem:  # the replica has just gone, or has just begun
                raise OperatorAwayError(str(problem)) from None
            except OSError as problem:
                raise CannotAsk(f"{kubectl} cannot be started: {problem}") from None
            return await self._stayed_at(operator_url(port.url), self._replaced(replica), _ended(port))

    async def _stayed_at(self, url: URL, *losses: Coroutine[Any, Any, str]) -> str:
        self._broken.clear()
        watching = [asyncio.ensure_future(each) for each in (self._until_broken(), *losses)]
        try:
            if self._tls is None or self._server is None:
                self._tls = await _pinned(url)
            await self._admitted(url)
            self._failures = 0
            self._change(LinkState(url, ""))
            done, _ = await asyncio.wait(watching, return_when=asyncio.FIRST_COMPLETED)
            return next(iter(done)).result()
        finally:
            await cancelled(*watching)

    async def _until_broken(self) -> str:
        await self._broken.wait()
        return "the operator does not answer"

    async def _replaced(self, replica: str) -> str:
        """Return when another replica is the active one, or none is."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                holder = await active_replica(self._place)
            except CannotAsk as problem:
                return str(problem)
            except RequestError:
                continue  # without the API server there is no other leader
            if holder != replica:
                return f"{holder} is the active replica now"

    async def _admitted(self, url: URL) -> None:
        """Ask for the feed, as the page will, and close it again."""
        answer = await self._asked(url, "feed", {})
        try:
            if answer.status == UNAUTHORIZED:
                self._place.client.access.rejected()
            if answer.status != _OK:
                told = " ".join((await answer.content.read(_LONGEST_WORD)).decode(errors="replace").split())
                raise _refusal(answer.status, told)
        finally:
            answer.close()

    async def _asked(self, url: URL, name: str, query: dict[str, str]) -> aiohttp.ClientResponse:
        assert self._http is not None
        assert self._tls is not None
        token = await self._shown_token()
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                # No redirects: the token is shown to this server only.
                return await self._http.get(
                    url.with_path(f"{_PATH}{name}").with_query(query),
                    headers={"Authorization": f"Bearer {token}"},
                    ssl=self._tls,
                    allow_redirects=False,
                )
        except aiohttp.ServerFingerprintMismatch:
            if self._server is None:
                raise OperatorAwayError("the operator does not answer: another server does, at its port") from None
            changed = f"the server at {self._server} has another certificate than before, and may be another user's: no token is sent to it"
            raise CertificateChangedError(
                f"{changed}; if you started the operator or its port-forward anew, start the console again"
            ) from None
        except (aiohttp.ClientError, OSError, TimeoutError) as problem:
            raise _silent(problem) from None

    async def _shown_token(self) -> str:
        access = self._place.client.access
        await access.refresh_when_due()
        return token_for(access, self._token, self._server)

    def _change(self, state: LinkState) -> None:
        self.state = state
        self._changed(state)


async def _pinned(url: URL) -> ssl.SSLContext | aiohttp.Fingerprint:
    """Make the TLS side for all requests to an operator; on loopback it accepts the certificate that is there now and no other."""
    tls = operator_tls(url)
    if not on_this_machine(str(url)):
        return tls
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(url.host, url.port, ssl=tls)
    except (OSError, TimeoutError) as problem:
        raise _silent(problem) from None
    try:
        return aiohttp.Fingerprint(hashlib.sha256(writer.get_extra_info("ssl_object").getpeercert(binary_form=True)).digest())
    finally:
        writer.close()


def _silent(problem: Exception) -> OperatorAwayError:
    return OperatorAwayError(f"the operator does not answer: {_cause(problem)}")


def _cause(problem: Exception) -> str:
    """Say why there is no answer, without the objects of Python that the texts of libraries quote."""
    cause = problem.os_error if isinstance(problem, aiohttp.ClientConnectorError) else problem
    if isinstance(cause, TimeoutError):
        return "the time for an answer is over"
    if isinstance(cause, OSError) and cause.errno is not None and cause.errno in errorcode:
        return os.strerror(cause.errno)
    text = " ".join(str(cause).split())
    return type(cause).__name__ if not text or " object at 0x" in text else text


async def _ended(port: ForwardedPort) -> str:
    return f"kubectl port-forward ended: {await port.ended()}"


def _refusal(status: int, told: str) -> CannotAsk:
    if status == NOT_FOUND:
        return CannotAsk("the operator's console is switched off (404); --console of placewright run switches it on")
    if status == UNAUTHORIZED:
        return CannotAsk("the operator does not know the bearer token (401)")
    if status == FORBIDDEN:
        return CannotAsk(f"the operator's console is not open to this user (403): {told}")
    return OperatorAwayError(f"the operator answers {status}: {told}")
