"""The sockets: addresses of both families, ports that are taken, TLS, and clients that are slow, loud or many."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from handlers.stage import DEADLINE, Stage
from placewright.http import accept
from placewright.http import listener as module
from placewright.http.certificates import self_made
from placewright.http.listener import CannotListen, Listener, bind
from placewright.http.routes import Answer, Audience, Endpoint, PublicOnly, Question, Routes
from programs import optional_module
from serving.desk import desk, get, said, trusting

LOOPBACK = "127.0.0.1"


async def hello(question: Question) -> Answer:
    return Answer(f"hello {question.peer}".encode())


async def broken_half_way(_question: Question) -> Answer:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"so far"
        raise RuntimeError("a defect further on")

    return Answer(pieces())


async def broken(_question: Question) -> Answer:
    raise RuntimeError("a defect with a secret in it")


async def endless(_question: Question) -> Answer:
    async def pieces() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 65536

    return Answer(pieces())


ROUTES = (("/hello", hello), ("/broken", broken), ("/endless", endless), ("/half", broken_half_way))


@asynccontextmanager
async def listening(tls: ssl.SSLContext | None = None, address: str = LOOPBACK) -> AsyncIterator[int]:
    """The port at which `ROUTES` are answered."""
    routes = Routes(Endpoint(path, answer, Audience.EVERYBODY) for path, answer in ROUTES)
    opened = bind(address, 0, "--port")
    port: int = opened.getsockname()[1]
    async with Listener(routes, PublicOnly()).serving(opened, tls):
        yield port


# --- where it listens --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["0.0.0.0", "::"])
async def test_everywhere_is_both_families(address: str) -> None:
    async with listening(address=address) as port:
        assert b"hello ::ffff:127.0.0.1" in await said(port, get("/hello")) or not socket.has_dualstack_ipv6()
        if socket.has_dualstack_ipv6():
            assert b"hello ::1" in await said(port, get("/hello"), address="::1")


async def test_where_the_machine_has_no_ipv6_everywhere_is_ipv4(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.socket, "has_dualstack_ipv6", lambda: False)
    async with listening(address="0.0.0.0") as port:
        assert b"hello 127.0.0.1" in await said(port, get("/hello"))


async def test_one_address_is_that_one_alone() -> None:
    async with listening(address=LOOPBACK) as port:
        assert b"hello 127.0.0.1" in await said(port, get("/hello"))
        with pytest.raises(ConnectionRefusedError):
            await said(port, get("/hello"), address="::1")


@pytest.mark.parametrize("address", [LOOPBACK, "0.0.0.0"])
def test_a_port_that_is_taken_is_one_line(address: str) -> None:
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CannotListen) as refused:
            bind(address, port, "--secure-port")
    line = f"--secure-port: found {port}, which cannot be bound at {address} (Address already in use)"
    assert str(refused.value) == f"{line}; allowed a port that is free, or 0 for none"


def test_an_address_of_another_machine_is_one_line() -> None:
    with pytest.raises(CannotListen, match=r"cannot be bound at 192\.0\.2\.1 \(Cannot assign requested address\)"):
        bind("192.0.2.1", 0, "--secure-port")


# --- TLS ---------------------------------------------------------------------------------------------------------------------------


async def test_nothing_older_than_tls_1_2_is_spoken() -> None:
    async with listening(self_made()) as port:
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            client = trusting()
            client.minimum_version = client.maximum_version = version
            assert b"hello" in await said(port, get("/hello"), tls=client)
        old = trusting()
        old.set_ciphers("ALL:@SECLEVEL=0")
        with pytest.warns(DeprecationWarning, match="TLSv1_1"):
            old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await said(port, get("/hello"), tls=old)


async def test_plain_http_at_the_port_of_tls_is_closed() -> None:
    async with listening(self_made()) as port:
        assert b"hello" not in await said(port, get("/hello"))
        assert b"hello" in await said(port, get("/hello"), tls=trusting())


@pytest.mark.parametrize("scenario", ["tls", "one request", "silence", "endless"])
def test_under_uvloop_too(scenario: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Its sockets and its TLS are its own, and it is what runs where it is installed."""
    uvloop = optional_module("uvloop")
    heard = {
        "tls": test_plain_http_at_the_port_of_tls_is_closed,
        "one request": test_a_connection_carries_one_request,
        "silence": lambda: test_who_says_nothing_is_hung_up_on(monkeypatch),
        "endless": lambda: test_who_is_never_done_reading_is_hung_up_on(monkeypatch, caplog),
    }
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(heard[scenario]()) is None


# --- odd clients -------------------------------------------------------------------------------------------------------------------


async def test_a_connection_carries_one_request() -> None:
    async with listening() as port:
        answers = await said(port, get("/hello") * 3)
    assert answers.count(b"HTTP/1.1 200 OK") == 1
    assert b"Connection: close" in answers


async def test_who_says_nothing_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accept, "REQUEST_SECONDS", 0.5)
    async with listening() as port:
        assert await said(port, b"") == b""
        assert await said(port, b"GET /hello HTTP/1.1\r\nHost:") == b""


async def test_who_is_never_done_reading_is_hung_up_on(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(accept, "ANSWER_SECONDS", 0.5)
    async with listening() as port:
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        writer.write(get("/endless"))
        async with asyncio.timeout(DEADLINE):
            with contextlib.suppress(ConnectionError):
                while await reader.read(2**20):
                    pass
        writer.close()
        assert b"hello" in await said(port, get("/hello"))
    assert caplog.text == ""


@pytest.mark.parametrize(
    "request_", [
        get("/hello", f"X: {'y' * 100_000}"), get(f"/hello?{'y' * 100_000}"), get("/hello", *(f"X-{n}: y" for n in range(500))),
        b"\x00\xff\r\n\r\n", b"GET\r\n\r\n", b"\r\n" * 1000, get("/hello", "Transfer-Encoding: chunked", "Content-Length: 5"),
    ],
)  # fmt: skip
async def test_what_is_no_decent_request_is_refused_and_the_next_one_answered(
    request_: bytes, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accept, "REQUEST_SECONDS", 0.5)
    async with listening() as port:
        answer = await said(port, request_ + b"\r\n")
        assert b"200 OK" not in answer
        assert b"hello" in await said(port, get("/hello"))
    assert "Traceback" not in caplog.text


async def test_a_body_is_not_waited_for() -> None:
    async with listening() as port:
        assert b"200 OK" in await said(port, get("/hello", "Content-Length: 1000000000"))


async def test_a_defect_in_one_page_is_logged_and_tells_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    async with listening() as port:
        answer = await said(port, get("/broken"))
        assert answer.startswith(b"HTTP/1.1 500 ")
        assert b"secret" not in answer
        assert b"hello" in await said(port, get("/hello"))
    assert "GET /broken failed" in caplog.text
    assert "a defect with a secret in it" in caplog.text


async def test_a_page_that_breaks_off_is_seen_to_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with listening() as port:
        answer = await said(port, get("/half"))
        assert not answer.endswith(b"0\r\n\r\n"), "no end of what has no end"
    assert "GET /half failed half-way" in caplog.text


async def test_the_end_does_not_wait_for_those_who_linger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accept, "END_SECONDS", 0.1)
    loop = asyncio.get_running_loop()
    async with listening() as port:
        writers = [(await asyncio.open_connection(LOOPBACK, port))[1] for _ in range(3)]
        writers[0].write(get("/endless"))
        await said(port, get("/hello"))
        started = loop.time()
    assert loop.time() - started < 10.0, "a second is promised"
    for writer in writers:
        writer.close()


# --- as an operator ------------------------------------------------------------------------------------------------------------------


async def test_a_port_that_is_taken_ends_the_operator_before_it_asks_for_anything(stage: Stage) -> None:
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CannotListen, match=f"--secure-port: found {port}, which cannot be bound at 127.0.0.1"):
            async with desk(stage, port=port):
                pass
        with pytest.raises(CannotListen, match=f"--health-port: found {port}, which cannot be bound at 127.0.0.1"):
            async with desk(stage, health_port=port):
                pass
    assert stage.peers() == set()
