"""`placewright console`: shows the kubeconfig's cluster, a snapshot or a recording in the browser of this machine."""

from __future__ import annotations

import argparse
import asyncio
import signal
import socket
import sys
import webbrowser
from pathlib import Path
from typing import Final

from placewright.api.bad_input import InputError, printable
from placewright.cli.helptexts import HelpText, describe
from placewright.cli.operatorport import CannotAsk, OperatorPlace, add_operator_port_options, operator_url
from placewright.cli.options import Subparsers, add_cluster_options, add_largest_option, whole_number
from placewright.framework.distributions import lacking
from placewright.http.listener import bind
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright_console.local.additions import installed_additions
from placewright_console.local.liveconsole import live_console
from placewright_console.local.localserver import LOOPBACK, ConsoleServer, MorePages
from placewright_console.local.operatorlink import CertificateChangedError
from placewright_console.pages.source import CompanySource

TEXTS: Final = {
    "console": HelpText(
        "Show a cluster in the browser: every node with its load, the waiting pods by reason, and the decision about a pod; of the "
        "kubeconfig's cluster, live, or of a snapshot or a recording. It is served on this machine alone, and the URL that is printed "
        "works once.",
        (
            "placewright console --open # the kubeconfig's cluster",
            "placewright console acme.snapshot.gz --open",
            "placewright console acme.recording.gz --speed 60 # an hour in a minute",
            "placewright console comparison.json # of compare -o json",
        ),
    ),
}


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
    added = installed_additions()
    if added is None:
        raise InputError(f"FILE: files are opened by another package: {lacking('lab') or 'none is installed'}")
    source, more = added.open_source(args.file, args.largest << 20, args.speed or 1, say)
    show(source, bind(LOOPBACK, args.port, "--port"), more, open_browser=args.open)
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
    """Write a line for the person who started the console."""
    sys.stderr.write(f"placewright: {printable(note)}\n")
    sys.stderr.flush()


def show(source: CompanySource, listening: socket.socket, more: MorePages | None = None, *, open_browser: bool = False) -> None:
    """Serve a source until Ctrl-C or SIGTERM.

    Args:
        source: source of the pages.
        listening: socket on loopback.
        more: pages of another package.
        open_browser: open the browser, too.

    Raises:
        InputError: the source's file turned out to be damaged.
    """
    try:
        asyncio.run(_serve(ConsoleServer(source, listening, more), open_browser=open_browser))
    except ExceptionGroup as problems:
        damaged = problems.subgroup(InputError)
        raise (damaged.exceptions[0] if damaged is not None else problems) from None


async def _serve(server: ConsoleServer, *, open_browser: bool) -> None:
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
