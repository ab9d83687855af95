"""A live cluster's console on this machine, put together: its source, the pages that other packages add, the door and the server."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from placewright.cli.operatorport import OperatorPlace
from placewright.framework.registry import installed_plugins
from placewright.plugins.catalog import in_tree
from placewright_console.local.additions import installed_additions
from placewright_console.local.clustersource import ClusterSource
from placewright_console.local.localserver import ConsoleServer


@asynccontextmanager
async def live_console(
    place: OperatorPlace,
    listening: socket.socket,
    *,
    server: str | None = None,
    token: str | None = None,
    allow_changes: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> AsyncIterator[ConsoleServer]:
    """Serve the console of a live cluster for as long as the context is open.

    Args:
        place: place of the operator, with a client of the API server that has the person's rights.
        listening: socket on loopback; closed at the end.
        server: URL of the operator's HTTPS port; None: kubectl forwards it.
        token: bearer token for the operator; None for the kubeconfig's.
        allow_changes: whether the pages may change things in the cluster.
        say: takes a line for the terminal when another source is shown.

    Yields:
        The server, with the address for the person.
    """
    registry = in_tree().with_installed(installed_plugins())
    source = ClusterSource(place, registry, server=server, token=token, allow_changes=allow_changes, say=say)
    added = installed_additions()
    more = None if added is None else added.more_pages(source)
    source.can += () if more is None else more.can
    served = ConsoleServer(source, listening, more, source.through)
    async with source.running(), served.serving():
        yield served
