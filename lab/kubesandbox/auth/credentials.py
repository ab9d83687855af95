"""Keys of one sandbox run: a fresh certificate authority, a server certificate, a bearer token, and a kubeconfig.

Each start makes new ones. Only the kubeconfig (mode 0600) leaves the process.
"""

from __future__ import annotations

import base64
import datetime as dt
import ipaddress
import os
import secrets
import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALID: Final = dt.timedelta(days=30)


def _new_token() -> str:
    return secrets.token_urlsafe(32)


@dataclass(frozen=True)
class Credentials:
    """Keys of one run. `ca` is the authority's certificate as PEM, and `key` and `certificate` are the server's."""

    ca: bytes
    certificate: bytes
    key: bytes = field(repr=False)
    token: str = field(default_factory=_new_token, repr=False)

    def server_context(self) -> ssl.SSLContext:
        """Make the TLS context of the listening socket."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        with tempfile.TemporaryDirectory(prefix="placewright-sandbox-") as folder:
            chain = Path(folder, "server.pem")
            write_private(chain, self.key + self.certificate)
            context.load_cert_chain(chain)
        return context

    def kubeconfig(self, server: str, token: str = "") -> bytes:
        """Return the kubeconfig, as YAML, of an administrator, or of the owner of another token."""
        name = "placewright-sandbox"
        authority = base64.b64encode(self.ca).decode()
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "clusters": [{"name": name, "cluster": {"server": server, "certificate-authority-data": authority}}],
            "users": [{"name": name, "user": {"token": token or self.token}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": "default"}}],
        }
        return yaml.safe_dump(content, sort_keys=False).encode()


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, in one step, so that no reader sees half of it."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    unfinished.unlink(missing_ok=True)
    handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    unfinished.replace(path)


def make_credentials() -> Credentials:
    """Make keys, certificates for loopback, and a token."""
    authority_key, server_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority = _authority(authority_key)
    certificate = _server_certificate(authority, authority_key, server_key)
    key = server_key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Credentials(
        authority.public_bytes(serialization.Encoding.PEM),
        certificate.public_bytes(serialization.Encoding.PEM),
        key,
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(subject: str, issuer: x509.Name, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_named(subject))
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + _VALID)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _authority(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    name = "placewright-sandbox-ca"
    builder = _builder(name, _named(name), key.public_key())
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    return builder.add_extension(usage, critical=True).sign(key, hashes.SHA256())


def _server_certificate(
    authority: x509.Certificate, authority_key: ec.EllipticCurvePrivateKey, key: ec.EllipticCurvePrivateKey
) -> x509.Certificate:
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.IPv4Address("127.0.0.1"))])
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    builder = _builder("placewright-sandbox", authority.subject, key.public_key())
    builder = builder.add_extension(names, critical=False).add_extension(issuer, critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    # A real API server shows the same certificate to its etcd.
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    return builder.add_extension(usage, critical=False).sign(authority_key, hashes.SHA256())
