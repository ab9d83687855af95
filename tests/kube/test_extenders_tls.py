"""Extenders over HTTPS: whom they trust, who they say they are, and what is said of files that cannot be used."""

from __future__ import annotations

import base64
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from kube.extender_server import Certificate, ExtenderServer, certificate, serving
from kube.pods import a_pod
from placewright.api.bad_input import InputError
from placewright.api.extenders import ExtenderError, ExtenderSettings, ExtenderTLS
from placewright.api.objects import NodeName
from placewright.kube.auth.login import ClusterAccess
from placewright.kube.client import ApiClient
from placewright.kube.extenders.httpextender import HttpExtender
from placewright.kube.extenders.tls import tls_context
from placewright.kube.fullobjects import FullObjects

A = NodeName("a")
FIELD = "spec.extenders[2].tlsConfig"


@asynccontextmanager
async def calling(server: ExtenderServer, tls: ExtenderTLS = ExtenderTLS(), *, https: bool = False) -> AsyncIterator[HttpExtender]:  # noqa: B008
    """An extender that binds, which needs no object of the cluster."""
    server.on("bind", {})
    settings = ExtenderSettings(url_prefix=server.url, bind_verb="bind", tls_config=tls, enable_https=https)
    async with ApiClient(ClusterAccess("http://127.0.0.1:1")) as client:
        extender = HttpExtender(settings, FullObjects(client), {})
        extender.open()
        try:
            yield extender
        finally:
            await extender.close()


async def refused(extender: HttpExtender) -> str:
    with pytest.raises(ExtenderError) as caught:
        await extender.bind(a_pod(), A)
    return str(caught.value)


def in_base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


async def test_a_server_is_verified_with_the_ca_of_the_profile(tmp_path: Path) -> None:
    server_side = certificate(tmp_path, "extender", "127.0.0.1")
    stranger = certificate(tmp_path, "stranger", "127.0.0.1")
    async with ExtenderServer(serving(server_side)) as server:
        for tls in (ExtenderTLS(ca_file=str(server_side.certificate)), ExtenderTLS(ca_data=in_base64(server_side.certificate))):
            async with calling(server, tls) as extender:
                await extender.bind(a_pod(), A)
        # Data goes before the file.
        both = ExtenderTLS(ca_file=str(server_side.certificate), ca_data=in_base64(stranger.certificate))
        async with calling(server, both) as extender:
            assert "certificate verify failed" in await refused(extender)
        assert len(server.asked("POST", "/bind")) == 2


async def test_without_a_ca_the_systems_own_are_trusted_unless_it_is_said_that_none_is_needed(tmp_path: Path) -> None:
    async with ExtenderServer(serving(certificate(tmp_path, "extender", "127.0.0.1"))) as server:
        async with calling(server) as extender:
            assert "certificate verify failed" in await refused(extender)
        async with calling(server, ExtenderTLS(insecure=True)) as extender:
            await extender.bind(a_pod(), A)
        async with calling(server, https=True) as extender:
            await extender.bind(a_pod(), A)


async def test_enable_https_verifies_when_there_is_a_ca(tmp_path: Path) -> None:
    stranger = certificate(tmp_path, "stranger", "127.0.0.1")
    trusting = ExtenderTLS(ca_file=str(stranger.certificate))
    server_side = serving(certificate(tmp_path, "extender", "127.0.0.1"))
    async with ExtenderServer(server_side) as server, calling(server, trusting, https=True) as extender:
        assert "certificate verify failed" in await refused(extender)


async def test_the_name_in_the_certificate_is_the_hosts_or_the_one_that_the_profile_expects(tmp_path: Path) -> None:
    server_side = certificate(tmp_path, "extender", "gpu.example")
    authority = str(server_side.certificate)
    async with ExtenderServer(serving(server_side)) as server:
        async with calling(server, ExtenderTLS(ca_file=authority)) as extender:
            assert "mismatch" in await refused(extender)
        async with calling(server, ExtenderTLS(ca_file=authority, server_name="gpu.example")) as extender:
            await extender.bind(a_pod(), A)
        async with calling(server, ExtenderTLS(ca_file=authority, server_name="other.example")) as extender:
            assert "mismatch" in await refused(extender)


async def test_a_server_that_wants_a_certificate_is_shown_ours(tmp_path: Path) -> None:
    server_side, ours = certificate(tmp_path, "extender", "127.0.0.1"), certificate(tmp_path, "placewright", serving=False)
    trust = {"ca_file": str(server_side.certificate)}
    async with ExtenderServer(serving(server_side, clients=ours)) as server:
        async with calling(server, ExtenderTLS(**trust)) as extender:
            await refused(extender)
        files = ExtenderTLS(**trust, cert_file=str(ours.certificate), key_file=str(ours.key))
        data = ExtenderTLS(**trust, cert_data=in_base64(ours.certificate), key_data=in_base64(ours.key))
        for tls in (files, data):
            async with calling(server, tls) as extender:
                await extender.bind(a_pod(), A)
        assert [asked.peer for asked in server.requests] == ["placewright", "placewright"]


# --- files that cannot be used -----------------------------------------------------------------------------------------------


def complaint(**tls: str) -> str:
    with pytest.raises(InputError) as caught:
        tls_context(ExtenderSettings(url_prefix="http://x", tls_config=ExtenderTLS(**tls), field="spec.extenders[2]"))
    return str(caught.value)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which files have short names, because long ones are cut in messages."""
    monkeypatch.chdir(tmp_path)
    return Path()


@pytest.fixture
def pair(here: Path) -> Certificate:
    return certificate(here, "good", "x")


def test_a_file_that_is_not_there_or_no_file_is_named(here: Path, pair: Certificate) -> None:
    missing, folder = "missing", here / "folder"
    folder.mkdir()
    problem = "which cannot be read (No such file or directory); allowed a PEM file"
    assert complaint(ca_file=missing) == f"{FIELD}.caFile: found '{missing}', {problem}"
    assert complaint(ca_file=str(folder)).startswith(f"{FIELD}.caFile: found '{folder}', which is no ordinary file; allowed a PEM file")
    assert complaint(ca_file="/dev/zero").startswith(f"{FIELD}.caFile: found '/dev/zero', which is no ordinary file")
    null = rf"{re.escape(FIELD)}\.caFile: found 'a\\x00b', which cannot be read \((stat: )?embedded null .+\); allowed a PEM file"
    assert re.fullmatch(null, complaint(ca_file="a\0b")), "the words in between are Python's, by version"
    assert complaint(cert_file=missing, key_file=str(pair.key)).startswith(f"{FIELD}.certFile: found '{missing}', which cannot be read")
    assert complaint(cert_file=str(pair.certificate), key_file=missing).startswith(f"{FIELD}.keyFile: found '{missing}', which cannot be")


def test_a_huge_file_is_not_read_to_its_end(tmp_path: Path) -> None:
    huge = tmp_path / "huge"
    with huge.open("wb") as file:
        file.truncate(2**34)
    assert "which is larger than 1048576 bytes" in complaint(ca_file=str(huge))


def test_a_file_without_the_right_pem_is_named(here: Path, pair: Certificate) -> None:
    cert, key = str(pair.certificate), str(pair.key)
    broken = here / "broken"
    broken.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    broken_key = here / "broken.key"
    broken_key.write_text("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
    binary = here / "binary"
    binary.write_bytes(b"-----BEGIN CERTIFICATE-----\xff\xfe")
    lines = {
        complaint(ca_file=key): f"{FIELD}.caFile: found '{key}' with no certificate in it; allowed certificates in PEM",
        complaint(ca_file=str(broken)): f"{FIELD}.caFile: found '{broken}' with a broken certificate in it; allowed certificates in PEM",
        complaint(ca_file=str(binary)): f"{FIELD}.caFile: found '{binary}' with a broken certificate in it; allowed certificates in PEM",
        complaint(cert_file=key, key_file=key): f"{FIELD}.certFile: found '{key}' with no certificate in it; allowed a certificate in PEM",
        complaint(cert_file=str(broken), key_file=key): (
            f"{FIELD}.certFile: found '{broken}' with a broken certificate in it; allowed a certificate in PEM"
        ),
        complaint(cert_file=cert, key_file=cert): (
            f"{FIELD}.keyFile: found '{cert}' with no unencrypted private key in it; allowed a private key in PEM, not encrypted"
        ),
        complaint(cert_file=cert, key_file=str(broken_key)): (
            f"{FIELD}.keyFile: found '{broken_key}' with a broken key in it; allowed a private key in PEM, not encrypted"
        ),
    }
    for found, expected in lines.items():
        assert found == expected


def test_a_key_of_another_certificate_is_named(here: Path, pair: Certificate) -> None:
    other = certificate(here, "other", "x")
    said = complaint(cert_file=str(pair.certificate), key_file=str(other.key))
    assert said.startswith(f"{FIELD}.keyFile: found '{other.key}' with the key of another certificate; ")
    assert said.endswith("allowed the key of the certificate in certFile")


def test_an_encrypted_key_is_refused_and_nobody_is_asked_for_its_password(tmp_path: Path, pair: Certificate) -> None:
    key = serialization.load_pem_private_key(pair.key.read_bytes(), None)
    formats = serialization.PrivateFormat
    for number, kind in enumerate((formats.PKCS8, formats.TraditionalOpenSSL)):
        file = tmp_path / f"encrypted{number}"
        file.write_bytes(key.private_bytes(serialization.Encoding.PEM, kind, serialization.BestAvailableEncryption(b"secret")))
        assert "with no unencrypted private key in it" in complaint(cert_file=str(pair.certificate), key_file=str(file))


def test_data_that_cannot_be_used_is_named_and_not_quoted(pair: Certificate) -> None:
    assert complaint(ca_data="!!") == f"{FIELD}.caData: found 2 characters of something else; allowed PEM, encoded in base64"
    assert complaint(ca_data="aGVsbG8=") == f"{FIELD}.caData: found no certificate in it; allowed certificates in PEM"
    said = complaint(cert_data=in_base64(pair.certificate), key_data=in_base64(pair.certificate))
    assert said == f"{FIELD}.keyData: found no unencrypted private key in it; allowed a private key in PEM, not encrypted"


def test_a_good_configuration_leaves_no_key_behind(tmp_path: Path, pair: Certificate, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    tls = ExtenderTLS(cert_file=str(pair.certificate), key_data=in_base64(pair.key), ca_file=str(pair.certificate))
    context = tls_context(ExtenderSettings(url_prefix="https://x", tls_config=tls))
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("url", "tls", "https", "warned"),
    [
        ("https://x", ExtenderTLS(insecure=True), False, True),
        ("https://x", ExtenderTLS(), True, True),
        ("https://x", ExtenderTLS(), False, False),
        ("http://x", ExtenderTLS(insecure=True), False, False),
    ],
)
def test_an_extender_that_is_not_verified_is_warned_of(
    url: str, tls: ExtenderTLS, https: bool, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    tls_context(ExtenderSettings(url_prefix=url, tls_config=tls, enable_https=https, field="spec.extenders[2]"))
    assert (f"{FIELD}: the certificate of {url} is not verified" in caplog.text) == warned
