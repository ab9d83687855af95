"""The certificate of the HTTPS port: made at the start, or of files that are replaced while it is open."""

from __future__ import annotations

import asyncio
import datetime as dt
import hashlib
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from handlers.stage import DEADLINE, Stage
from placewright.api.bad_input import InputError
from placewright.http import certificates as module
from placewright.http.certificates import CertificateFiles, self_made, self_signed
from programs import optional_module
from serving.desk import desk, trusting

LOOPBACK = "127.0.0.1"


def pair() -> tuple[bytes, bytes]:
    return self_signed(["localhost", LOOPBACK], dt.datetime.now(dt.UTC), "test")


class Files:
    """A certificate and its key, as they are written."""

    def __init__(self, folder: Path) -> None:
        self.certificate, self.key = folder / "tls.crt", folder / "tls.key"
        self.write(*pair())

    def write(self, certificate: bytes | None = None, key: bytes | None = None) -> None:
        for file, content in ((self.certificate, certificate), (self.key, key)):
            if content is not None:
                fresh = file.with_suffix(".new")
                fresh.write_bytes(content)
                fresh.replace(file)

    @property
    def fingerprint(self) -> str:
        return fingerprint(x509.load_pem_x509_certificate(self.certificate.read_bytes()).public_bytes(Encoding.DER))


def fingerprint(certificate: bytes) -> str:
    return hashlib.sha256(certificate).hexdigest()


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@asynccontextmanager
async def served(tls: ssl.SSLContext) -> AsyncIterator[int]:
    server = await asyncio.start_server(lambda _, writer: writer.close(), LOOPBACK, 0, ssl=tls)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def shown(port: int, name: str | None = None) -> str:
    """The fingerprint of the certificate that a client is shown; `name` is what it asks for."""
    _, writer = await asyncio.open_connection(LOOPBACK, port, ssl=trusting(), server_hostname=name or LOOPBACK)
    found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return fingerprint(found)


def test_the_one_made_at_the_start_is_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bytes] = []

    def noted(*arguments: object) -> tuple[bytes, bytes]:
        certificate, key = self_signed(*arguments)  # type: ignore[arg-type]
        made.append(certificate)
        return certificate, key

    monkeypatch.setattr(module, "self_signed", noted)
    context = self_made()
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    certificate = x509.load_pem_x509_certificate(made[0])
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "localhost" in names.get_values_for_type(x509.DNSName)
    assert certificate.not_valid_after_utc > dt.datetime.now(dt.UTC) + dt.timedelta(days=360)


@pytest.mark.parametrize("name", [None, "localhost"])
async def test_new_files_are_shown_to_the_next_client(files: Files, name: str | None) -> None:
    """With a name in the greeting and without one, as a kubelet's probe has none."""
    used = CertificateFiles(files.certificate, files.key)
    async with served(used.tls) as port:
        first = files.fingerprint
        assert await shown(port, name) == first
        files.write(*pair())
        used.look()
        assert await shown(port, name) == files.fingerprint != first


def test_under_uvloop_too(files: Files) -> None:
    """Its TLS is its own, and it is what runs where it is installed."""
    uvloop = optional_module("uvloop")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(test_new_files_are_shown_to_the_next_client(files, None)) is None


@pytest.mark.parametrize(
    "spoil",
    [
        lambda files: files.write(certificate=pair()[0]),
        lambda files: files.write(key=b""),
        lambda files: files.write(certificate=files.certificate.read_bytes()[:200]),
        lambda files: files.key.unlink(),
    ],
    ids=["half of a new pair", "an empty key", "half a certificate", "no key"],
)
async def test_a_pair_that_is_none_leaves_the_last_good_one_with_one_warning(
    files: Files, spoil: Callable[[Files], None], caplog: pytest.LogCaptureFixture
) -> None:
    used = CertificateFiles(files.certificate, files.key)
    good = files.fingerprint
    async with served(used.tls) as port:
        spoil(files)
        for _ in range(3):
            used.look()
        assert await shown(port) == good
        assert caplog.text.count("the certificate that was read before stays in use") == 1
        files.write(*pair())
        used.look()
        assert await shown(port) == files.fingerprint


def test_files_that_are_no_pair_to_begin_with_are_one_line(files: Files) -> None:
    files.write(certificate=pair()[0])
    with pytest.raises(InputError) as refused:
        CertificateFiles(files.certificate, files.key)
    assert str(refused.value).startswith(f"--tls-cert-file, --tls-private-key-file: {files.certificate}, {files.key}: they are no ")
    files.key.unlink()
    with pytest.raises(InputError, match="No such file or directory"):
        CertificateFiles(files.certificate, files.key)


def test_an_encrypted_key_asks_nobody_for_a_password(files: Files) -> None:
    certificate, key = pair()
    opened = load_pem_private_key(key, None)
    files.write(certificate, opened.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"word")))
    with pytest.raises(InputError, match="the key is encrypted; allowed one that is not"):
        CertificateFiles(files.certificate, files.key)


async def test_an_operator_takes_over_files_by_itself(stage: Stage, files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.05)
    async with desk(stage, certificate=(files.certificate, files.key)) as asked:
        assert asked.served.port is not None
        assert await shown(asked.served.port) == files.fingerprint
        files.write(*pair())
        async with asyncio.timeout(DEADLINE):
            while await shown(asked.served.port) != files.fingerprint:  # noqa: ASYNC110 - a client sees it at its next greeting
                await asyncio.sleep(0.02)
        assert (await asked.get("/livez")).text == "ok"
