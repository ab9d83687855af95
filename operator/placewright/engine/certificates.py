"""Certificates of what the operator serves: made by itself for the webhook and the HTTPS port, or in files that are replaced under it."""

from __future__ import annotations

import asyncio
import datetime as dt
import ipaddress
import logging
import socket
import ssl
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NoReturn

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from placewright.api.bad_input import InputError

_VALID: Final = dt.timedelta(days=365)


def self_signed(names: Iterable[str], now: dt.datetime, owner: str = "placewright-webhook") -> tuple[bytes, bytes]:
    """Certificate and key, PEM, for these DNS names and IP addresses; valid for a year from `now`, and its own authority.

    `owner`: the certificate's common name.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, owner)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + _VALID)
        .add_extension(x509.SubjectAlternativeName([_alternative(name) for name in dict.fromkeys(names)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    )
    certificate = builder.sign(key, hashes.SHA256())
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return certificate.public_bytes(serialization.Encoding.PEM), private


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


_log = logging.getLogger(__name__)

#: How often files are looked at, seconds. A mounted Secret is a minute old by itself.
LOOK_SECONDS: Final = 10.0


class CertificateFiles:
    """A certificate and its key in files, as `tls` for a listening socket; `look` takes over what has become of them.

    A pair that cannot be used, such as one of which half is written, leaves the last good one in use, and is said once.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        """Raises `InputError` where there is no usable pair to begin with."""
        self._files = (certificate, key)
        self._seen = self._stamps()
        try:
            self._good = _context(certificate, key)
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            raise InputError(f"--tls-cert-file, --tls-private-key-file: {certificate}, {key}: {_in_words(error)}") from None
        self.tls = _context(certificate, key)
        # Asked at every handshake, with a name or without: connections that are open keep what they began with.
        self.tls.sni_callback = self._choose

    def _choose(self, connection: Any, _name: str | None, _tls: ssl.SSLContext) -> None:
        connection.context = self._good

    async def keep_looking(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await asyncio.to_thread(self.look)

    def look(self) -> None:
        """Take over the files where they have changed."""
        stamps = self._stamps()
        if stamps == self._seen:
            return
        self._seen = stamps
        try:
            self._good = _context(*self._files)
        except (OSError, ValueError) as error:
            _log.warning("%s, %s: the certificate that was read before stays in use: %s", *self._files, _in_words(error))
        else:
            _log.info("%s: a new certificate is in use", self._files[0])

    def _stamps(self) -> tuple[tuple[int, int, int] | None, ...]:
        return tuple(map(_stamp, self._files))


def self_made() -> ssl.SSLContext:
    """With a certificate of our own making, for localhost and this host's name: whoever asks must not expect to know it."""
    names = ("localhost", "127.0.0.1", "::1", socket.gethostname())
    certificate, key = self_signed(names, dt.datetime.now(dt.UTC), "placewright")
    with tempfile.TemporaryDirectory(prefix="placewright-") as folder:
        chain = Path(folder, "pair.pem")  # the folder is for our eyes only
        chain.write_bytes(certificate + key)
        return _context(chain, chain)


def _context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Raises `OSError` for files that cannot be read, or are no pair."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.load_cert_chain(certificate, key, password=_no_password)
    return context


def _no_password() -> NoReturn:
    raise ValueError("the key is encrypted; allowed one that is not")


def _stamp(file: Path) -> tuple[int, int, int] | None:
    """Changes when the file does; None while it is not there."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size


def _in_words(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return f"they are no certificate and its key ({error.reason or error})"
    return (isinstance(error, OSError) and error.strerror) or str(error)
