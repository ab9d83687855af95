"""Accepts the connections of a port, so that a client which opens many keeps no other client out. Every port of ours is behind a doorway.

A connection is in one of three rooms. `silent`: no byte came, or its turn has not come; it is a bare socket, without TLS, buffers or a
task, and costs what a socket costs. `begun`: its TLS handshake is under way, its request is not complete, or it waits for a place to ask.
`asked`: its request is being answered; only an answer may be large, so no more of them than this room has places are in memory.

From `asked` a connection may go on to `following`, for an answer that goes on for hours, such as the console's. There it has no end, and
no other connection pushes it out, because its user was let in: the server of such answers bounds their number, and ends unread ones.

Each room has so many places, and is fair between peers (`api.fairroom`): when there are more connections than places, the peer that has
most loses its oldest, which is hung up on. So silent clients cannot take the places of clients that speak, and clients that speak slowly
cannot take those of clients that have asked.

**Invariant**: a connection keeps its place, however many others come, for as long as a client needs that does at once what is to be done:

- `silent`: for `SPEAK_BEATS` until its first byte, and with that until its handshake begins;
- `begun`: for `COMPLETE_BEATS` until its request is complete, and with that until it is answered;
- `asked`: for `ANSWER_TURNS` turns of the event loop, in which the answer of a page is written that has nothing to wait for.

So a health probe is answered, also at an address that it shares with a crowd; it waits for its turn. While no place may be taken away, a
complete request waits in `begun`, a connection that has spoken waits in `silent`, and a new one waits with the kernel.

A connection that says nothing ends `REQUEST_SECONDS` after its accept, one whose request is not complete as long after its handshake
began, one that has asked after `ANSWER_SECONDS`. All are counted in beats of the event loop, so that a loop that stood still takes no
client's time away. In one turn of the loop only so many connections are accepted, and so many handshakes begun: a client that opens
connections as fast as it can leaves the scheduler its turns.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
import struct
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, cast

from placewright.api.fairroom import FairRoom, peer_of

_log = logging.getLogger(__name__)

#: From accept until the first byte, and from the beginning of the handshake until the request is complete.
REQUEST_SECONDS: Final = 3.0
#: From the request to the last byte of the answer.
ANSWER_SECONDS: Final = 30.0
BEAT_SECONDS: Final = 0.1
#: Beats for which an accepted connection keeps its place before its first byte. One less than that is certain.
SPEAK_BEATS: Final = 3
#: The same from the beginning of the handshake until the request. A client needs two ways through the network, and processor time.
COMPLETE_BEATS: Final = 8
#: Turns of the event loop, of one who has asked, for the answer. Our pages of health need about four.
ANSWER_TURNS: Final = 16
#: Connections accepted, and handshakes begun, in one turn of the event loop. A handshake takes about a millisecond of it.
A_TURN: Final = 8
#: Without descriptors or buffers for another connection, how long none is accepted, seconds.
_PAUSE_SECONDS: Final = 0.25
#: How long a goodbye of TLS is waited for, seconds.
_GOODBYE_SECONDS: Final = 1.0
#: The same trouble is logged this often, seconds.
_SAID_EVERY: Final = 60.0
#: Hang up at once: the kernel keeps nothing for the other side.
_AT_ONCE: Final = struct.pack("ii", 1, 0)

#: Makes what reads and writes a connection. It tells the caller when the request is complete, and when the connection is lost.
ProtocolFactory = Callable[["Caller"], asyncio.Protocol]


@dataclass(frozen=True, slots=True)
class Places:
    """How many connections may be in each room; their sum bounds the descriptors that a port takes."""

    silent: int
    begun: int
    asked: int
    following: int


#: Of every port.
PLACES: Final = Places(silent=256, begun=128, asked=64, following=128)


class Caller:
    """One connection, from accept to its end."""

    __slots__ = ("_answer", "_door", "_socket", "_task", "_transport", "peer", "since", "turn")

    def __init__(self, door: Doorway, connection: socket.socket, peer: str, since: int) -> None:
        """`since`: the beat at which it came into the room that it is in."""
        self.peer = peer
        self.since = since
        #: At which it began to be answered; counted while others wait for that.
        self.turn = 0
        self._door = door
        self._answer: Callable[[], None] | None = None
        self._socket: socket.socket | None = connection
        self._task: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport | None = None

    def opened(self, transport: asyncio.BaseTransport) -> None:
        """The protocol has its transport."""
        # Not asserted: uvloop's are of another class.
        self._transport = cast(asyncio.Transport, transport)

    def asked(self, answer: Callable[[], None]) -> None:
        """The request is complete.

        Args:
            answer: has the request answered. It is called once, now or as soon as there is a place to ask.
        """
        self._answer = answer
        self._door.asked(self)

    def follow(self) -> bool:
        """Give back the place in the room `asked`, because the answer goes on for long.

        Returns:
            Whether there is a place to follow; without one the connection stays where it is.
        """
        return self._door.follow(self)

    def lost(self) -> None:
        """The connection is no more."""
        self._answer = None
        self._door.left(self)

    # --- for the door ---

    @property
    def bare(self) -> socket.socket | None:
        """The socket, as long as no transport has it."""
        return self._socket

    def taken(self) -> socket.socket:
        """The socket, for the transport that has it from now on."""
        assert self._socket is not None
        taken, self._socket = self._socket, None
        return taken

    def served_by(self, task: asyncio.Task[None]) -> None:
        """Note the task that opens the connection."""
        self._task = task

    def answered(self) -> None:
        """Have the request answered."""
        assert self._answer is not None
        answer, self._answer = self._answer, None
        answer()

    def hang_up(self) -> None:
        """End the connection, wherever it is, without a word."""
        if self._socket is not None:
            _close_at_once(self._socket)
            self._socket = None
        if self._transport is not None:
            self._transport.abort()
        elif self._task is not None:
            self._task.cancel()  # in the midst of its handshake


class Doorway:
    """Accepts on one socket, and keeps the rooms."""

    def __init__(self, listening: socket.socket, tls: ssl.SSLContext | None, factory: ProtocolFactory) -> None:
        """`listening`: is not blocking from now on, and closed at the end."""
        self._listening = listening
        self._tls = tls
        self._factory = factory
        self._loop = asyncio.get_running_loop()
        self._silent: FairRoom[Caller] = FairRoom()
        #: In the room `silent`, too: have said something, and their turn has not come.
        self._spoken: FairRoom[Caller] = FairRoom()
        self._begun: FairRoom[Caller] = FairRoom()
        #: In the room `begun`, too: their requests are complete, and their turn has not come.
        self._complete: FairRoom[Caller] = FairRoom()
        self._asked: FairRoom[Caller] = FairRoom()
        self._following: set[Caller] = set()
        #: `_begin_some` is called in the next turn, `_answer_some` too.
        self._beginning = self._answering = False
        #: No connection is accepted, for lack of places (`_full`), or of descriptors as well (`_exhausted`).
        self._full = self._exhausted = False
        self._closed = False
        self._beat = self._turn = 0
        self._said = -_SAID_EVERY
        self._opening: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Accept for as long as the context is open; who is still there at its end is hung up on."""
        self._listening.setblocking(False)
        self._loop.add_reader(self._listening, self._accept)
        beats = asyncio.create_task(self._count_beats(), name="connections without a request")
        try:
            yield
        finally:
            beats.cancel()
            self.shut()
            for caller in (*self._complete, *self._asked):
                self._hang_up(caller)
            await asyncio.gather(beats, *self._opening, return_exceptions=True)

    def shut(self) -> None:
        """Accept no more connections; hang up on all that have no request, or an answer without an end. The others get their answers."""
        if self._closed:
            return
        self._closed = True
        self._loop.remove_reader(self._listening)
        self._listening.close()
        for caller in (*self._silent, *self._spoken, *self._begun, *self._following):
            self._hang_up(caller)

    # --- what callers say of themselves -----------------------------------------------------------------------------------------

    def asked(self, caller: Caller) -> None:
        """The caller's request is complete."""
        if caller not in self._begun:
            return
        self._begun.leave(caller)
        caller.since = self._beat
        self._complete.enter(caller, caller.peer)
        self._go_on()

    def follow(self, caller: Caller) -> bool:
        """The caller's answer goes on for long. Returns whether there is a place for that."""
        if self._closed or caller not in self._asked or len(self._following) >= PLACES.following:
            return False
        self._asked.leave(caller)
        self._following.add(caller)
        self._go_on()
        return True

    def left(self, caller: Caller) -> None:
        """The caller's connection is no more."""
        self._following.discard(caller)
        for room in (self._silent, self._spoken, self._begun, self._complete, self._asked):
            room.leave(caller)
        self._go_on()

    def _go_on(self) -> None:
        """Serve waiting connections, for which there may be a place now."""
        if self._complete and not self._answering:
            self._answering = True
            self._loop.call_soon(self._answer_some)
        if self._spoken and not self._beginning and not self._closed:
            self._beginning = True
            self._loop.call_soon(self._begin_some)
        self._accept_further()

    # --- accepting ----------------------------------------------------------------------------------------------------------------

    @property
    def _waiting(self) -> int:
        """Connections that are bare sockets, or are in line to be more."""
        return len(self._silent) + len(self._spoken)

    def _accept(self) -> None:
        for _ in range(A_TURN):
            loser = None
            if self._waiting >= PLACES.silent:
                loser = self._who_waits_too_long()
                if loser is None:
                    self._accept_none()
                    return
            try:
                connection, address = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as problem:
                self._pause(problem)
                return
            if loser is not None:
                self._crowd_out(loser)
            connection.setblocking(False)
            self._welcome(Caller(self, connection, peer_of(address[0]), self._beat))

    def _who_waits_too_long(self) -> Caller | None:
        """Return a connection that said nothing for long enough, of the peer that has most connections in this room."""
        peers = self._silent.peers | self._spoken.peers
        crowd = max(peers, key=lambda peer: self._silent.guests_of(peer) + self._spoken.guests_of(peer))
        oldest = self._silent.oldest_of(crowd)
        return oldest if oldest is not None and self._waits_too_long(oldest) else None

    def _waits_too_long(self, silent: Caller) -> bool:
        return self._beat - silent.since >= SPEAK_BEATS

    def _welcome(self, caller: Caller) -> None:
        """Give an accepted connection its place; where its first bytes are here, it has spoken at once."""
        if _says_something(caller):
            self._queue_up(caller)
        elif caller.bare is not None:
            self._silent.enter(caller, caller.peer)
            self._loop.add_reader(caller.bare, self._hear, caller)

    def _pause(self, problem: OSError) -> None:
        """No descriptors or buffers: free some, and accept again in a moment."""
        self._say("connections cannot be accepted: %s", problem)
        self._exhausted = True
        self._accept_none()
        for caller in list(self._silent)[:A_TURN]:
            if self._waits_too_long(caller):
                self._hang_up(caller)
        self._loop.call_later(_PAUSE_SECONDS, self._accept_again)

    def _accept_none(self) -> None:
        """Leave new connections with the kernel."""
        self._full = True
        self._loop.remove_reader(self._listening)

    def _accept_again(self) -> None:
        self._exhausted = False
        self._accept_further()

    def _accept_further(self) -> None:
        """Accept again after a lack of places, if there is one now."""
        if not self._full or self._exhausted or self._closed:
            return
        if self._waiting < PLACES.silent or self._who_waits_too_long() is not None:
            self._full = False
            self._loop.add_reader(self._listening, self._accept)

    # --- beginning ----------------------------------------------------------------------------------------------------------------

    def _hear(self, caller: Caller) -> None:
        if caller.bare is None:
            return
        self._loop.remove_reader(caller.bare)
        self._silent.leave(caller)
        if _says_something(caller):
            self._queue_up(caller)
        else:
            self._go_on()

    def _queue_up(self, caller: Caller) -> None:
        self._spoken.enter(caller, caller.peer)
        self._go_on()

    def _begin_some(self) -> None:
        self._beginning = False
        for _ in range(A_TURN):
            caller = self._spoken.next_into(self._begun)
            if caller is None or not self._has_place_to_begin(caller.peer):
                break  # who leaves, or the next beat, calls again
            self._spoken.leave(caller)
            caller.since = self._beat
            self._begun.enter(caller, caller.peer)
            task = self._loop.create_task(self._begin(caller))
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)
            caller.served_by(task)
        else:
            self._go_on()
        self._accept_further()

    def _has_place_to_begin(self, peer: str) -> bool:
        """Whether there is a place, or may be made, for one more of a peer."""
        if len(self._begun) + len(self._complete) < PLACES.begun:
            return True
        loser = self._begun.who_makes_room(peer)
        if loser is None or self._beat - loser.since < COMPLETE_BEATS:
            return False
        self._crowd_out(loser)
        return True

    async def _begin(self, caller: Caller) -> None:
        """Give the caller a transport. Until this runs the socket is the caller's, who may lose their place meanwhile."""
        try:
            await self._open(caller.taken(), lambda: self._factory(caller))
        except OSError:
            self.left(caller)  # who speaks no TLS, or has gone
        except BaseException:
            self.left(caller)
            raise

    async def _open(self, connection: socket.socket, factory: Callable[[], asyncio.Protocol]) -> None:
        if self._tls is None:
            await self._loop.connect_accepted_socket(factory, connection)
            return
        await self._loop.connect_accepted_socket(
            factory, connection, ssl=self._tls, ssl_handshake_timeout=ANSWER_SECONDS, ssl_shutdown_timeout=_GOODBYE_SECONDS
        )

    # --- ends ---------------------------------------------------------------------------------------------------------------------

    async def _count_beats(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            self._beat += 1
            self._end_overdue()
            self._go_on()

    def _end_overdue(self) -> None:
        for room, seconds in ((self._silent, REQUEST_SECONDS), (self._begun, REQUEST_SECONDS), (self._asked, ANSWER_SECONDS)):
            for caller in room:
                if (self._beat - caller.since) * BEAT_SECONDS >= seconds:
                    self._hang_up(caller)

    def _answer_some(self) -> None:
        """Have complete requests answered while there are places, or may be made; if some have to wait, again in the next turn."""
        self._turn += 1
        self._answering = False
        while (caller := self._complete.next_into(self._asked)) is not None and self._has_place_to_ask(caller.peer):
            self._complete.leave(caller)
            caller.since, caller.turn = self._beat, self._turn
            self._asked.enter(caller, caller.peer)
            caller.answered()
        self._go_on()

    def _has_place_to_ask(self, peer: str) -> bool:
        """Whether there is a place, or may be made, for one more of a peer."""
        if len(self._asked) < PLACES.asked:
            return True
        loser = self._asked.who_makes_room(peer)
        if loser is None or self._turn - loser.turn < ANSWER_TURNS:
            return False
        self._crowd_out(loser)
        return True

    def _crowd_out(self, loser: Caller) -> None:
        self._say("there are more connections than places; connections without a request make room, first those of %s", loser.peer)
        self._hang_up(loser)

    def _hang_up(self, caller: Caller) -> None:
        if caller.bare is not None:
            self._loop.remove_reader(caller.bare)
        self.left(caller)
        caller.hang_up()

    def _say(self, what: str, about: object) -> None:
        now = time.monotonic()
        if now - self._said >= _SAID_EVERY:
            self._said = now
            _log.warning(what + " (said once a minute)", about)


def _says_something(caller: Caller) -> bool:
    """Whether bytes are there to be read. Who has gone already is let go."""
    assert caller.bare is not None
    try:
        if caller.bare.recv(1, socket.MSG_PEEK):
            return True
    except (BlockingIOError, InterruptedError):
        return False
    except OSError:
        pass
    caller.hang_up()
    return False


def _close_at_once(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
    connection.close()
