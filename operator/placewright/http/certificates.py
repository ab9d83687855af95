"""TLS certificates of the webhook and the HTTPS port: self-signed, or read from files and read again when they change."""

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
    """Make a certificate that is its own authority.

    It is valid from an hour before `now`, for clients whose clocks are behind, to a year after.

    Args:
        names: DNS names and IP addresses of the server.
        now: the time, with a time zone.
        owner: the common name.

    Returns:
        The certificate and its unencrypted key, both PEM.
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

#: Seconds between two looks at the files. The kubelet takes about a minute to replace a mounted Secret, so ten seconds add little.
LOOK_SECONDS: Final = 10.0


class CertificateFiles:
    """A certificate and its key in files, which may be replaced while they are served.

    If a pair cannot be used, such as a half written one, the error is logged once. The last good pair then stays in use.

    Attributes:
        tls: context of the listening socket; each handshake uses the newest good pair.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        """Read the certificate with its chain, and its unencrypted key, both PEM.

        Raises:
            InputError: the files are no usable pair.
        """
        self._files = (certificate, key)
        self._seen = self._stamps()
        try:
            self._good = _context(certificate, key)
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            raise InputError(f"--tls-cert-file, --tls-private-key-file: {certificate}, {key}: {_in_words(error)}") from None
        self.tls = _context(certificate, key)
        # OpenSSL calls this at each handshake, also if the client names no host. Open connections keep their certificate.
        self.tls.sni_callback = self._choose

    def _choose(self, connection: Any, _name: str | None, _tls: ssl.SSLContext) -> None:
        connection.context = self._good

    async def keep_looking(self) -> None:
        """Call `look` at a beat until cancelled, in a thread: a network file system may block."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await asyncio.to_thread(self.look)

    def look(self) -> None:
        """Read the files again if their time, inode or size has changed."""
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
    """Return a TLS context with a self-signed certificate for localhost and this host's name. Clients must skip verification."""
    names = ("localhost", "127.0.0.1", "::1", socket.gethostname())
    certificate, key = self_signed(names, dt.datetime.now(dt.UTC), "placewright")
    with tempfile.TemporaryDirectory(prefix="placewright-") as folder:
        chain = Path(folder, "pair.pem")  # the folder's mode is 0700, and ssl reads files only
        chain.write_bytes(certificate + key)
        return _context(chain, chain)


def _context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Load a pair. Raises `OSError` for files that cannot be read or are no pair, `ValueError` for an encrypted key."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.load_cert_chain(certificate, key, password=_no_password)
    return context


def _no_password() -> NoReturn:
    raise ValueError("the key is encrypted; allowed one that is not")


def _stamp(file: Path) -> tuple[int, int, int] | None:
    """Return time, inode and size of a file, which change when it is replaced or written; None if there is no file."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size


def _in_words(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return f"they are no certificate and its key ({error.reason or error})"
    return (isinstance(error, OSError) and error.strerror) or str(error)
