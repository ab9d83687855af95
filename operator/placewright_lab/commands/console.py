"""`placewright console`: opens a snapshot or a recording in the browser of this machine."""

from __future__ import annotations

import argparse
import asyncio
import signal
import socket
import sys
import time
import webbrowser
from pathlib import Path

from placewright.api.bad_input import printable
from placewright.cli.helptexts import describe
from placewright.cli.options import Subparsers, whole_number
from placewright.framework.registry import installed_plugins
from placewright.plugins.catalog import in_tree
from placewright.serving.listener import bind
from placewright_lab.commands.helptexts import TEXTS
from placewright_lab.commands.snapshot import add_largest_option
from placewright_lab.console.filesource import FileSource
from placewright_lab.console.localserver import LOOPBACK, ConsoleServer
from placewright_lab.console.seenworld import SeenWorld
from placewright_lab.console.whatifpages import WhatIfPages
from placewright_lab.snapshots.linefile import only_what_stays
from placewright_lab.snapshots.playback import read_seen


def register(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("console", help="show a snapshot or a recording in the browser: nodes, queue, and decisions")
    parser.add_argument("file", type=Path, metavar="FILE", help="a snapshot or a recording")
    parser.add_argument("--open", action="store_true", help="open the browser, too")
    parser.add_argument("--port", type=whole_number(0, 65535), default=0, metavar="P", help="port on 127.0.0.1 (default: a free one)")
    speed = "how many seconds of a recording pass in one (default: %(default)s)"
    parser.add_argument("--speed", type=whole_number(1, 3600), default=1, metavar="N", help=speed)
    add_largest_option(parser)
    parser.set_defaults(main=main)
    describe(parser, "console", TEXTS)


def main(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C or SIGTERM."""
    source = open_file(args.file, args.largest << 20, args.speed)
    sys.stderr.writelines(f"placewright: {printable(note)}\n" for note in source.world.remarks)
    listening = bind(LOOPBACK, args.port, "--port")
    asyncio.run(_serve(source, listening, open_browser=args.open))
    return 0


def open_file(path: Path, largest: int, speed: int = 1) -> FileSource:
    """Read a snapshot or a recording for the console.

    Args:
        path: of the file.
        largest: bytes of text that it may unpack to.
        speed: seconds of a recording that pass in a second.

    Returns:
        The source of the pages.

    Raises:
        InputError: the file is neither, or is damaged.
    """
    seen = read_seen(path, largest)
    with only_what_stays():
        world = SeenWorld.of_file(seen, in_tree().extended(installed_plugins()))
    header = seen.header
    about = {"kind": header.placewright, "source": path.name, "server": header.server, "began": world.began, "speed": speed,
             "can": ["whatif"]}  # fmt: skip
    return FileSource(world, seen.changes, about, time.monotonic, speed)


async def _serve(source: FileSource, listening: socket.socket, *, open_browser: bool) -> None:
    server = ConsoleServer(source, listening, WhatIfPages(source, in_tree().extended(installed_plugins())))
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with server.serving():
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        if open_browser:
            webbrowser.open(server.url)
        else:
            sys.stderr.write("placewright: the URL works once, in one browser of this machine; Ctrl-C ends the console\n")
        await stop.wait()
