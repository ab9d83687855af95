"""The certificate of the HTTPS port: from files that are replaced under us, or made at the start."""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import socket
import ssl
import tempfile
from pathlib import Path
from typing import Any, Final, NoReturn

from placewright.api.bad_input import InputError
from placewright.engine.certificates import self_signed

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

