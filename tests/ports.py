"""Ports for servers that have to be told theirs before they listen. All others listen on port 0, and are asked."""

from __future__ import annotations

import socket


def reserved_port() -> int:
    """A port of the loopback interface where nobody listens, and that nobody else is given for a minute.

    A connection to it is opened and closed from its own side, after which the kernel remembers it (TIME_WAIT): whoever asks for any port,
    in whichever process, gets another one; who names this port and says SO_REUSEADDR, as servers do, gets it.
    """
    with socket.socket() as server, socket.socket() as client:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("127.0.0.1", 0))
        server.listen(1)
        client.connect(server.getsockname())
        accepted, _ = server.accept()
        accepted.close()  # the side that closes first keeps the memory
        client.recv(1)
        return int(server.getsockname()[1])
