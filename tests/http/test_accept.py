"""Whoever opens connections keeps nobody else out: real sockets, with a health probe beside every kind of intruder."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import random
import socket
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from handlers.stage import DEADLINE
from intruders import HABITS, LOOPBACK, intruders
from placewright.http import accept as module
from placewright.http import listener
from placewright.http.accept import Connection
from placewright.http.certificates import self_made
from placewright.http.listener import Listener, bind
from placewright.http.routes import Answer, Audience, Endpoint, Following, PublicOnly, Question, RequestRefused, Routes
from programs import optional_module
from randomcases import some
from serving.desk import get, said, trusting

#: Places that a crowd which a test can bear fills over and over.
SMALL = 32
FOLLOWING = 32
REQUEST_SECONDS = 1.0
#: Two probes each wait for that long behind a crowd that reads no answers.
ANSWER_SECONDS = 2.0
CROWD = 90
#: Requests beyond the first one.
MORE = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n" * 10
#: An answer larger than the kernel's buffers take.
MUCH = b"x" * 8_000_000


async def livez(_question: Question) -> Answer:
    return Answer(b"ok")


async def much(_question: Question) -> Answer:
    return Answer(MUCH)


class Admitting(PublicOnly):
    async def admit(self, endpoint: Endpoint, question: Question) -> None:
        """All that ask are users who may."""


@asynccontextmanager
async def served(tls: ssl.SSLContext | None, answer_much: Callable[[Question], Coroutine[Any, Any, Answer]] = much) -> AsyncIterator[int]:
    routes = Routes([Endpoint("/livez", livez, Audience.EVERYBODY), Endpoint("/much", answer_much)])
    opened = bind(LOOPBACK, 0, "--port")
    port: int = opened.getsockname()[1]
    async with Listener(routes, Admitting()).serving(opened, tls):
        yield port


async def probe(port: int, tls: ssl.SSLContext | None, source: str = LOOPBACK) -> bytes:
    """The first line of the answer, as a kubelet sees it: one connection, one try."""
    reader, writer = await asyncio.open_connection(LOOPBACK, port, ssl=tls, local_addr=(source, 0))
    try:
        async with asyncio.timeout(DEADLINE):
            writer.write(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
            return (await reader.read()).partition(b"\r\n")[0]
    finally:
        writer.transport.abort()


def connections() -> list[Connection]:
    """Connections that the server keeps anything of."""
    gc.collect()
    return [each for each in gc.get_objects() if isinstance(each, Connection)]


def under(loop: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run it on asyncio's loop or on uvloop's, whose sockets and TLS are its own."""
    factory = optional_module("uvloop").new_event_loop if loop == "uvloop" else None
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(work())


@pytest.fixture
def few_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PLACES", SMALL)
    monkeypatch.setattr(module, "FOLLOWING", FOLLOWING)
    monkeypatch.setattr(module, "REQUEST_SECONDS", REQUEST_SECONDS)
    monkeypatch.setattr(module, "ANSWER_SECONDS", ANSWER_SECONDS)


# --- probes beside intruders ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("habit", "loop"),
    some([*((habit, "uvloop") for habit in HABITS), *((habit, "asyncio") for habit in list(HABITS)[:3])]),
)
def test_health_is_told_beside_a_crowd_of_one_habit_and_of_one_address(habit: str, loop: str, few_places: None) -> None:
    async def beside() -> None:
        client = trusting()
        async with served(self_made()) as port, intruders(port, [habit] * CROWD, client):
            for _ in range(2):
                assert await probe(port, client) == b"HTTP/1.1 200 OK"
            assert len(connections()) <= 2 * SMALL

    under(loop, beside)


@pytest.mark.parametrize("seed", range(2))
def test_health_is_told_beside_any_mixture(seed: int, few_places: None) -> None:
    """Crowds of random sizes and habits, over TLS or without, from the probe's address or another, one after the other on one port."""
    rng = random.Random(seed)

    async def beside() -> None:
        server = self_made() if rng.random() < 0.7 else None
        client = trusting()
        async with served(server) as port:
            for _ in range(2):
                plain = [name for name, (_, secure) in HABITS.items() if server is not None or not secure]
                crowd = rng.choices(plain, k=rng.randrange(20, 80))
                async with intruders(port, crowd, client, rng.choice((LOOPBACK, "127.0.0.9"))):
                    for _ in range(3):
                        assert await probe(port, None if server is None else client) == b"HTTP/1.1 200 OK", crowd

    under(rng.choice(("asyncio", "uvloop")), beside)


TORN_HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
NO_TURN_IS_LEFT = 500


@asynccontextmanager
async def newcomers(port: int, number: int, words: bytes) -> AsyncIterator[list[socket.socket]]:
    """So many connections that say this and no more; entered when the server has had its turns with all of them."""
    loop = asyncio.get_running_loop()
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(socket.socket()) for _ in range(number)]
        for each in opened:
            each.setblocking(False)
            await loop.sock_connect(each, (LOOPBACK, port))
            each.send(words)
        for _ in range(NO_TURN_IS_LEFT):
            await asyncio.sleep(0)
        yield opened


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("words", [b"", TORN_HELLO])
def test_who_has_just_begun_keeps_the_place_whoever_comes_from_the_same_address(
    words: bytes, loop: str, few_places: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No time is over: all are as young as can be, and those for whom there is no place wait."""
    monkeypatch.setattr(module, "REQUEST_SECONDS", DEADLINE)

    async def beside() -> None:
        client = trusting()
        async with served(self_made()) as port:
            reader, writer = await asyncio.open_connection(LOOPBACK, port, ssl=client)
            async with newcomers(port, CROWD, words):
                assert len(connections()) <= SMALL
                writer.write(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
                assert (await reader.read()).startswith(b"HTTP/1.1 200 OK")
            writer.close()

    under(loop, beside)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_who_has_just_come_keeps_the_place_whoever_comes_from_the_same_address(
    loop: str, few_places: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REQUEST_SECONDS", DEADLINE)

    async def beside() -> None:
        async with served(self_made()) as port, newcomers(port, 1, b"") as (first,), newcomers(port, CROWD, b""):
            assert len(connections()) == SMALL
            reader, writer = await asyncio.open_connection(sock=first.dup(), ssl=trusting(), server_hostname=LOOPBACK)
            writer.write(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await reader.read()).startswith(b"HTTP/1.1 200 OK")
            writer.close()

    under(loop, beside)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_all_whose_requests_are_complete_in_one_turn_are_answered(loop: str, few_places: None) -> None:
    async def beside() -> None:
        ours = asyncio.get_running_loop()
        async with served(None) as port, newcomers(port, SMALL, b"GET /livez HTTP/1.1\r\n") as crowd:
            for each in crowd:
                each.send(b"Host: x\r\n\r\n")
            answers = [await ours.sock_recv(each, 100) for each in crowd]
            assert [each.partition(b"\r\n")[0] for each in answers] == [b"HTTP/1.1 200 OK"] * SMALL

    under(loop, beside)


def test_thousands_of_connections_that_say_nothing_cost_no_more_than_hundreds(monkeypatch: pytest.MonkeyPatch) -> None:
    async def beside() -> None:
        client = trusting()
        loop = asyncio.get_running_loop()
        async with served(self_made()) as port:
            for _ in range(3000):
                with socket.socket() as raw:
                    raw.setblocking(False)
                    await loop.sock_connect(raw, (LOOPBACK, port))
                    kept = raw.detach()
                held.append(kept)
            assert len(connections()) <= module.PLACES
            assert await probe(port, client) == b"HTTP/1.1 200 OK"

    held: list[int] = []
    monkeypatch.setattr(module, "REQUEST_SECONDS", 0.2)
    with files_allowed(5000):
        try:
            under("asyncio", beside)
        finally:
            for each in held:
                socket.close(each)


@contextlib.contextmanager
def files_allowed(number: int) -> Any:
    """The client's side of so many connections lies in this process."""
    resource = optional_module("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, number), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# --- shares and times -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("habit", ["silent within TLS", "silent before TLS", "a byte at a time", "half a handshake"])
async def test_who_does_not_complete_a_request_in_time_is_hung_up_on(habit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REQUEST_SECONDS", 0.5)
    async with served(self_made()) as port, intruders(port, [habit], trusting()) as crowd:
        async with asyncio.timeout(DEADLINE):
            while crowd[0].connections < 3:  # noqa: ASYNC110 - each but the last was hung up on
                await asyncio.sleep(0.02)


async def test_who_reads_no_answer_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.5)
    async with served(self_made()) as port, intruders(port, ["answers that nobody reads"], trusting()):
        async with asyncio.timeout(DEADLINE):
            while not connections():  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.02)
            while connections():  # noqa: ASYNC110
                await asyncio.sleep(0.02)


async def test_a_loop_that_stood_still_takes_nobodys_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REQUEST_SECONDS", 1.0)
    client = trusting()
    async with served(self_made()) as port:
        reader, writer = await asyncio.open_connection(LOOPBACK, port, ssl=client)
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            pass  # nothing else runs: that is what is tried
        writer.write(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 200 OK")
        writer.close()


async def test_a_head_that_is_too_long_is_refused() -> None:
    async with served(None) as port:
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        writer.write(b"GET /livez HTTP/1.1\r\nX: " + b"y" * 17_000)
        assert (await reader.read()).startswith(b"HTTP/1.0 400 ")
        writer.close()


async def test_who_says_no_more_after_the_request_is_answered() -> None:
    """A client may close its side as soon as it has asked, as `nc -N` does."""
    async with served(None) as port:
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        writer.write(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        writer.write_eof()
        assert (await reader.read()).startswith(b"HTTP/1.1 200 OK")
        writer.close()


@pytest.mark.parametrize("more", [b"", MORE], ids=["silent", "with more bytes than a request has"])
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_request_whose_client_is_gone_ends(loop: str, more: bytes) -> None:
    async def beside() -> None:
        begun, ended = asyncio.Event(), asyncio.Event()

        async def wait(_question: Question) -> Answer:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
            raise AssertionError

        client = trusting()
        async with served(self_made(), wait) as port, asyncio.timeout(DEADLINE):
            _, writer = await asyncio.open_connection(LOOPBACK, port, ssl=client)
            writer.write(b"GET /much HTTP/1.1\r\nHost: x\r\n\r\n" + more)
            await begun.wait()
            assert not ended.is_set()
            writer.close()
            await ended.wait()

    under(loop, beside)


async def test_a_client_that_sends_more_and_more_after_its_request_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_SECONDS", 10 * DEADLINE)

    async def wait(_question: Question) -> Answer:
        await asyncio.Event().wait()
        raise AssertionError

    async with served(None, wait) as port, asyncio.timeout(DEADLINE):
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        writer.write(b"GET /much HTTP/1.1\r\nHost: x\r\n\r\n" + b"x" * 100_000)
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()


async def test_health_is_told_beside_more_users_than_are_answered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "MOST_ANSWERS", 2)
    waiting, done = asyncio.Queue[None](), asyncio.Event()

    async def wait(_question: Question) -> Answer:
        waiting.put_nowait(None)
        await done.wait()
        return Answer(b"at last")

    async with served(None, wait) as port, asyncio.timeout(DEADLINE):
        users = [asyncio.create_task(said(port, get("/much"))) for _ in range(2)]
        for _ in users:
            await waiting.get()
        assert (await said(port, get("/much"))).endswith(b"503 too many answers are under way; try again later\n")
        assert await probe(port, None) == b"HTTP/1.1 200 OK"
        done.set()
        assert all(answer.endswith(b"at last") for answer in await asyncio.gather(*users))


async def test_a_crowd_whose_requests_are_complete_in_one_turn_turns_no_user_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "MOST_ANSWERS", 4)

    class Judging(PublicOnly):
        async def admit(self, endpoint: Endpoint, question: Question) -> None:
            if not question.authorization:
                await asyncio.sleep(0)
                raise RequestRefused(401, "Unauthorized")

    monkeypatch.setattr(f"{__name__}.Admitting", Judging)
    async with served(None, livez) as port, newcomers(port, SMALL, b"GET /much HTTP/1.1\r\n") as crowd, asyncio.timeout(DEADLINE):
        for each in crowd:
            each.send(b"Host: x\r\n\r\n")
        answers = [await asyncio.get_running_loop().sock_recv(each, 100) for each in crowd]
        assert {each.partition(b"\r\n")[0] for each in answers} == {b"HTTP/1.1 401 Unauthorized"}


# --- long answers -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("secure", [True, False], ids=["TLS", "plain"])
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_who_follows_takes_no_place_of_those_who_ask_and_is_missed_at_once_when_gone(
    loop: str, secure: bool, few_places: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing more is written: the end of the connection itself is noticed."""
    monkeypatch.setattr(listener, "MOST_ANSWERS", 1)

    async def beside() -> None:
        gone = [asyncio.Event() for _ in range(FOLLOWING)]
        waiting = iter(gone)

        async def follow(_question: Question) -> Answer:
            mine = next(waiting, asyncio.Event())

            async def pieces() -> AsyncGenerator[bytes, None]:
                yield b"first\n"
                await mine.wait()

            return Answer(Following(pieces(), mine.set))

        client = trusting() if secure else None
        async with served(self_made() if secure else None, follow) as port:
            followers = [await asyncio.open_connection(LOOPBACK, port, ssl=client) for _ in gone]
            for reader, writer in followers:
                writer.write(b"GET /much HTTP/1.1\r\nHost: x\r\n\r\n")
                await reader.readuntil(b"first")
            assert await probe(port, client) == b"HTTP/1.1 200 OK"
            reader, writer = await asyncio.open_connection(LOOPBACK, port, ssl=client)
            writer.write(b"GET /much HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await reader.read()).endswith(b"503 too many clients follow\n")
            assert not any(each.is_set() for each in gone)
            async with asyncio.timeout(DEADLINE):
                for (_, writer), missed in zip(followers, gone, strict=True):
                    writer.close()
                    await missed.wait()

    under(loop, beside)


# --- descriptors --------------------------------------------------------------------------------------------------------------------


class Exhausted:
    """A listening socket of a process that has no descriptor left, for so many times."""

    def __init__(self, listening: socket.socket, times: int) -> None:
        self._listening = listening
        self.times = times

    def accept(self) -> tuple[socket.socket, Any]:
        if self.times:
            self.times -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return self._listening.accept()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._listening, name)


async def test_without_descriptors_it_accepts_again_in_a_moment(caplog: pytest.LogCaptureFixture) -> None:
    routes = Routes([Endpoint("/livez", livez, Audience.EVERYBODY)])
    opened: Any = Exhausted(bind(LOOPBACK, 0, "--port"), 2)
    port: int = opened.getsockname()[1]
    async with Listener(routes, PublicOnly()).serving(opened, None):
        assert await probe(port, None) == b"HTTP/1.1 200 OK"
    assert caplog.text.count("connections cannot be accepted") == 1


async def test_a_port_that_accepts_no_more_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_memory(_port: module.Port, _accepted: socket.socket) -> None:
        raise MemoryError

    reported = asyncio.Queue[dict[str, Any]]()
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: reported.put_nowait(context))
    monkeypatch.setattr(module.Port, "_admit", without_memory)
    async with served(None) as port, asyncio.timeout(DEADLINE):
        _, writer = await asyncio.open_connection(LOOPBACK, port)
        assert isinstance((await reported.get())["exception"], MemoryError)
        writer.close()


async def test_that_all_places_are_taken_is_said_once(caplog: pytest.LogCaptureFixture, few_places: None) -> None:
    async with served(self_made()) as port, intruders(port, ["silent before TLS"] * CROWD, trusting()):
        assert await probe(port, trusting()) == b"HTTP/1.1 200 OK"
    assert caplog.text.count("all 32 connections of a port are open") == 1


async def test_nothing_is_left_of_anybody_at_the_end() -> None:
    async with served(self_made()) as port, intruders(port, ["silent within TLS", "half a handshake", "silent before TLS"] * 5, trusting()):
        assert len(connections()) == 15
    assert len(connections()) == 0
