"""An extender for tests: a real HTTP(S) server on loopback that records what it is asked and answers as it is told, well or badly."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Self

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

#: From a request's JSON to an answer's, or to a whole response.
Answer = Callable[[Any], Any]


@dataclass(frozen=True)
class Asked:
    """One request as it came."""

    verb: str
    path: str
    headers: dict[str, str]
    raw: bytes
    client_certificate: str = ""

    @property
    def body(self) -> Any:
        return json.loads(self.raw)


class ExtenderServer:
    """Answers `POST /<anything>/<verb>`. A verb without an answer gets 404; `open` lets those go on that wait."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.asked: list[Asked] = []
        self.answers: dict[str, Answer | web.Response | Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]] = {}
        self.connections = 0
        self.open = asyncio.Event()
        self.url = ""
        self._tls = tls
        self._arrived = asyncio.Condition()
        self._runner: web.ServerRunner | None = None

    async def __aenter__(self) -> Self:
        self._runner = web.ServerRunner(web.Server(self._answer), shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._tls).start()
        scheme = "https" if self._tls else "http"
        self.url = f"{scheme}://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.open.set()
        await self.die()

    async def die(self) -> None:
        """Stop listening: from now on nobody answers."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    def on(self, verb: str, answer: Any) -> None:
        """What to answer: JSON, a function from the request's JSON to it, a ready response, or what a misbehaving server does."""
        self.answers[verb] = answer if callable(answer) or isinstance(answer, web.Response) else (lambda _: answer)

    def of(self, verb: str) -> list[Asked]:
        return [one for one in self.asked if one.verb == verb]

    async def until_asked(self, verb: str, times: int = 1) -> list[Asked]:
        """Wait until that many such requests have come."""
        async with self._arrived:
            await asyncio.wait_for(self._arrived.wait_for(lambda: len(self.of(verb)) >= times), 10)
        return self.of(verb)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        verb = request.path.rpartition("/")[2]
        raw = await request.read()
        peer = request.transport.get_extra_info("peercert") if request.transport is not None else None
        async with self._arrived:
            self.asked.append(Asked(verb, request.path, dict(request.headers), raw, _common_name(peer)))
            self._arrived.notify_all()
        answer = self.answers.get(verb)
        if answer is None:
            return web.Response(status=404)
        if isinstance(answer, web.Response):
            return web.Response(status=answer.status, body=answer.body, headers=dict(answer.headers))
        if asyncio.iscoroutinefunction(answer):
            misbehaved: web.StreamResponse = await answer(request)
            return misbehaved
        return web.json_response(answer(json.loads(raw)))


def _common_name(peer: Any) -> str:
    subject = (peer or {}).get("subject", ())
    return next((value for part in subject for key, value in part if key == "commonName"), "")


# --- how a server misbehaves -----------------------------------------------------------------------------------------------------


def silent(server: ExtenderServer) -> Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]:
    """Takes the question, and answers only once `open` is set."""

    async def wait(_: web.BaseRequest) -> web.StreamResponse:
        await server.open.wait()
        return web.json_response({})

    return wait


def trickling(server: ExtenderServer) -> Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]:
    """Sends the head of an answer and half of its body."""

    async def trickle(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"NodeNames": [')
        await server.open.wait()
        return response

    return trickle


def hanging_up(times: int = 1, then: Any = None) -> Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]:
    """Breaks the connection so many times, then answers."""
    left = [times]

    async def hang_up(request: web.BaseRequest) -> web.StreamResponse:
        if left[0] <= 0:
            return web.json_response(then)
        left[0] -= 1
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    return hang_up


def endless(mebibytes: int) -> Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]:
    """Sends that much of a string that does not end."""

    async def send(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"Error": "')
        for _ in range(mebibytes):
            await response.write(b"x" * 2**20)
        return response

    return send


# --- certificates ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Certificate:
    """A certificate with its key, as files in PEM."""

    certificate: Path
    key: Path


def certificate(folder: Path, name: str, *hosts: str, serving: bool = True) -> Certificate:
    """A self-signed certificate for these hosts or addresses; it is its own CA."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    )
    if serving:
        builder = builder.add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False)
    made = Certificate(folder / f"{name}.crt", folder / f"{name}.key")
    made.certificate.write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    made.key.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    return made


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def serving(with_: Certificate, clients: Certificate | None = None) -> ssl.SSLContext:
    """A server's context; `clients`: only who has a certificate of this CA may connect."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(with_.certificate, with_.key)
    if clients is not None:
        context.load_verify_locations(clients.certificate)
        context.verify_mode = ssl.CERT_REQUIRED
    return context
