"""An extender for tests, and certificates for it and its clients."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import ssl
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kube.fake_api import FakeApi, Step


class ExtenderServer(FakeApi):
    """Answers `POST /<anything>/<verb>`."""

    def on(self, request: str, *answers: Any) -> None:
        """What to answer to a verb, one after the other: JSON, a function from the request's JSON to it, a response, or a step."""
        self._scripts[request] = [each if asyncio.iscoroutinefunction(each) else _step(each) for each in answers]

    def _script(self, method: str, path: str) -> list[Step] | None:
        return self._scripts.get(path.rpartition("/")[2])


def _step(content: Any) -> Step:
    async def step(request: web.BaseRequest) -> web.StreamResponse:
        if isinstance(content, web.Response):
            return web.Response(status=content.status, body=content.body, headers=dict(content.headers))
        return web.json_response(content(json.loads(await request.read())) if callable(content) else content)

    return step


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
