"""`placewright console`: shows the kubeconfig's cluster, a snapshot or a recording in the browser of this machine."""

from __future__ import annotations

import argparse
import asyncio
import signal
import socket
import sys
import time
import webbrowser
from pathlib import Path

from placewright.api.bad_input import InputError, printable
from placewright.cli.helptexts import describe
from placewright.cli.operatorport import CannotAsk, OperatorPlace, add_operator_port_options, operator_url
from placewright.cli.options import Subparsers, add_cluster_options, whole_number
from placewright.framework.registry import installed_plugins
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright.plugins.catalog import in_tree
from placewright.serving.listener import bind
from placewright_lab.commands.helptexts import TEXTS
from placewright_lab.commands.snapshot import add_largest_option
from placewright_lab.console.comparisonsource import ComparisonSource, read_comparison
from placewright_lab.console.filesource import FileSource
from placewright_lab.console.liveconsole import live_console
from placewright_lab.console.localserver import LOOPBACK, ConsoleServer
from placewright_lab.console.openedfile import OpenedFile
from placewright_lab.console.operatorlink import CertificateChangedError
from placewright_lab.console.whatifpages import WhatIfPages
from placewright_lab.report.content import ReportContent


def register(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("console", help="show a cluster, a snapshot or a recording in the browser: nodes, queue, and decisions")
    a_file = "a snapshot, a recording, or a comparison (`compare -o json`) (default: the kubeconfig's cluster, live)"
    parser.add_argument("file", type=Path, nargs="?", metavar="FILE", help=a_file)
    parser.add_argument("--open", action="store_true", help="open the browser, too")
    parser.add_argument("--port", type=whole_number(0, 65535), default=0, metavar="P", help="port on 127.0.0.1 (default: a free one)")
    speed = "how many seconds of a recording pass in one (default: 1)"
    parser.add_argument("--speed", type=whole_number(1, 3600), metavar="N", help=speed)
    changes = "let the pages change things in the cluster, with your own rights (default: they only read)"
    parser.add_argument("--allow-changes", action="store_true", help=changes)
    add_largest_option(parser)
    add_cluster_options(parser)
    add_operator_port_options(parser)
    parser.set_defaults(main=main)
    describe(parser, "console", TEXTS)


def main(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C or SIGTERM."""
    if args.file is None:
        return _show_cluster(args)
    live = {"--kubeconfig": args.kubeconfig, "--context": args.context, "--server": args.server, "--token": args.token}
    for flag, found in {**live, "--allow-changes": args.allow_changes}.items():
        if found:
            raise InputError(f"{flag}: found beside FILE; allowed without one, for a live cluster")
    comparison = read_comparison(args.file, args.largest << 20)
    if comparison is not None:
        show_comparison(comparison, args.file.name, args.port, open_browser=args.open)
        return 0
    source = OpenedFile(args.file, args.largest << 20, in_tree().with_installed(installed_plugins()), time.monotonic, args.speed or 1, say)
    try:
        asyncio.run(_serve(source, bind(LOOPBACK, args.port, "--port"), open_browser=args.open))
    except ExceptionGroup as problems:
        damaged = problems.subgroup(InputError)
        raise (damaged.exceptions[0] if damaged is not None else problems) from None
    return 0


def _show_cluster(args: argparse.Namespace) -> int:
    if args.speed is not None:
        raise InputError(f"--speed: found {args.speed}; allowed with the FILE of a recording")
    if args.server is not None:
        try:
            operator_url(args.server)
        except CannotAsk as problem:
            raise InputError(f"--server: {problem}") from None
    access = load_config(args.kubeconfig, args.context)
    listening = bind(LOOPBACK, args.port, "--port")

    async def serve() -> None:
        async with ApiClient(access, user_agent="placewright-cli") as client:
            place = OperatorPlace(client, args.kubeconfig, args.context, args.operator_namespace)
            given = {"server": args.server, "token": args.token, "allow_changes": args.allow_changes}
            async with live_console(place, listening, **given, say=say) as server:
                await _until_stopped(server, open_browser=args.open)

    try:
        asyncio.run(serve())
    except ExceptionGroup as problems:
        changed = problems.subgroup(CertificateChangedError)
        raise (InputError(f"--server: {changed.exceptions[0]}") if changed is not None else problems) from None
    return 0


def say(note: str) -> None:
    """Write a line for the person who started the console.

    Args:
        note: the line.
    """
    sys.stderr.write(f"placewright: {printable(note)}\n")
    sys.stderr.flush()


def show_comparison(content: ReportContent, name: str, port: int = 0, *, open_browser: bool = False) -> None:
    """Serve a comparison until Ctrl-C or SIGTERM.

    Args:
        content: of its report.
        name: of the file, or of the scenario.
        port: on 127.0.0.1; 0 for a free one.
        open_browser: open the browser, too.
    """
    asyncio.run(_serve(ComparisonSource(content, name), bind(LOOPBACK, port, "--port"), open_browser=open_browser))


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
    return OpenedFile(path, largest, in_tree().with_installed(installed_plugins()), time.monotonic, speed).whole()


def what_if_of(source: FileSource) -> WhatIfPages:
    """Make the what-if page's answers, and have the source offer the page.

    Args:
        source: of the cluster that is shown.

    Returns:
        The answers.
    """
    what_if = WhatIfPages(source, in_tree().with_installed(installed_plugins()))
    source.can += what_if.can
    return what_if


async def _serve(source: FileSource | ComparisonSource, listening: socket.socket, *, open_browser: bool) -> None:
    server = ConsoleServer(source, listening, None if isinstance(source, ComparisonSource) else what_if_of(source))
    async with server.serving():
        await _until_stopped(server, open_browser=open_browser)


async def _until_stopped(server: ConsoleServer, *, open_browser: bool) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    sys.stdout.write(f"{server.url}\n")
    sys.stdout.flush()
    if open_browser:
        webbrowser.open(server.url)
    else:
        say("the URL works once, in one browser of this machine; Ctrl-C ends the console")
    await stop.wait()
