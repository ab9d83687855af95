"""TLS for extenders: from a profile's `tlsConfig` to a context, or to one line that names the field.

Files are read once, when the profile takes effect, as kube-scheduler does. Errors never quote the content of a key file.
"""

from __future__ import annotations

import base64
import binascii
import logging
import re
import ssl
import stat
import tempfile
from pathlib import Path
from typing import Final, NoReturn

from placewright.api.bad_input import InputError, shown
from placewright.api.extenders import ExtenderSettings, ExtenderTLS

#: Bytes; a bundle of all public CAs takes a quarter of it.
_LARGEST_FILE: Final = 2**20
_CERTIFICATE: Final = b"-----BEGIN CERTIFICATE-----"
_KEY: Final = re.compile(rb"-----BEGIN ([A-Z]+ )?PRIVATE KEY-----")
_MISMATCH: Final = "KEY_VALUES_MISMATCH"

_log = logging.getLogger(__name__)


def tls_context(settings: ExtenderSettings) -> ssl.SSLContext:
    """Build the TLS context of an extender. Plain HTTP gets one, too, so that a wrong file is found before the URL becomes HTTPS.

    Returns:
        The context. It verifies nothing if the profile says `insecure`, or enables HTTPS without authorities, as kube-scheduler does.

    Raises:
        InputError: a file cannot be used; the message begins with the path of the field.
    """
    tls, where = settings.tls_config, f"{settings.field}.tlsConfig"
    authorities = _material(where, "ca", tls.ca_file, tls.ca_data)
    context = ssl.create_default_context()
    if authorities is not None:
        context = _trusting(authorities, _named(where, "ca", tls.ca_data), tls)
    if tls.insecure or (settings.enable_https and authorities is None):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        if settings.url_prefix.startswith("https:"):
            _log.warning("%s: the certificate of %s is not verified", where, settings.url_prefix)
    certificate, key = _material(where, "cert", tls.cert_file, tls.cert_data), _material(where, "key", tls.key_file, tls.key_data)
    if certificate is not None and key is not None:
        _present(context, certificate, key, where, tls)
    return context


def _named(where: str, kind: str, data: str) -> str:
    """Return the path of the field that the material comes from: data precedes a file."""
    return f"{where}.{kind}{'Data' if data else 'File'}"


def _material(where: str, kind: str, file: str, data: str) -> bytes | None:
    """Return the PEM text of one of two fields; None when neither is set."""
    field = _named(where, kind, data)
    if data:
        try:
            return base64.b64decode("".join(data.split()), validate=True)
        except (binascii.Error, ValueError):
            raise InputError(f"{field}: found {len(data)} characters of something else; allowed PEM, encoded in base64") from None
    return _read(field, file) if file else None


def _read(field: str, file: str) -> bytes:
    path = Path(file)
    try:
        # A pipe would block, and a device has no end.
        if not stat.S_ISREG(path.stat().st_mode):
            raise InputError(f"{field}: found {shown(file)}, which is no ordinary file; allowed a PEM file")
        with path.open("rb") as opened:
            content = opened.read(_LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        problem = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"{field}: found {shown(file)}, which cannot be read ({problem}); allowed a PEM file") from None
    if len(content) > _LARGEST_FILE:
        raise InputError(f"{field}: found {shown(file)}, which is larger than {_LARGEST_FILE} bytes; allowed a PEM file")
    return content


def _trusting(authorities: bytes, field: str, tls: ExtenderTLS) -> ssl.SSLContext:
    """Make a context that trusts these authorities and no others."""
    if _CERTIFICATE not in authorities:
        _refuse(field, tls, "no certificate in it", "certificates in PEM")
    try:
        return ssl.create_default_context(cadata=authorities.decode("ascii"))
    except (ssl.SSLError, ValueError):
        _refuse(field, tls, "a broken certificate in it", "certificates in PEM")


def _present(context: ssl.SSLContext, certificate: bytes, key: bytes, where: str, tls: ExtenderTLS) -> None:
    cert_field, key_field = _named(where, "cert", tls.cert_data), _named(where, "key", tls.key_data)
    if _CERTIFICATE not in certificate:
        _refuse(cert_field, tls, "no certificate in it", "a certificate in PEM")
    if _KEY.search(key) is None or b"ENCRYPTED" in key:
        _refuse(key_field, tls, "no unencrypted private key in it", "a private key in PEM, not encrypted")
    try:
        _load(context, certificate, key)
    except ssl.SSLError as error:
        if error.reason == _MISMATCH:
            _refuse(key_field, tls, "the key of another certificate", f"the key of the certificate in {cert_field.rpartition('.')[2]}")
        if not _is_readable(certificate):
            _refuse(cert_field, tls, "a broken certificate in it", "a certificate in PEM")
        _refuse(key_field, tls, "a broken key in it", "a private key in PEM, not encrypted")


def _load(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Load a certificate and its key, through a file that only this user may read, for a moment: Python takes them from files only."""
    with tempfile.NamedTemporaryFile(prefix="placewright-") as file:
        file.write(certificate + b"\n" + key)
        file.flush()
        context.load_cert_chain(file.name, password=_no_password)


def _no_password() -> str:
    # Without this OpenSSL would ask on the terminal.
    return ""


def _is_readable(certificate: bytes) -> bool:
    try:
        ssl.create_default_context(cadata=certificate.decode("ascii"))
    except (ssl.SSLError, ValueError):
        return False
    return True


def _refuse(field: str, tls: ExtenderTLS, found: str, allowed: str) -> NoReturn:
    file = {"caFile": tls.ca_file, "certFile": tls.cert_file, "keyFile": tls.key_file}.get(field.rpartition(".")[2])
    raise InputError(f"{field}: found {f'{shown(file)} with ' if file else ''}{found}; allowed {allowed}")
