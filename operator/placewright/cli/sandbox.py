"""`placewright sandbox`: the embedded cluster alone, in the foreground."""

from __future__ import annotations

import argparse
import asyncio
import signal
from pathlib import Path

from rich.console import Console

from placewright.api.bad_input import InputError
from placewright.cli.definitions import crd_folders
from placewright.cli.display import plain
from placewright.cli.options import Subparsers, whole_number
from placewright.sandbox.server import Sandbox, SandboxOptions


def register(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("sandbox", help="run the embedded cluster alone, for kubectl and for experiments")
    parser.add_argument("--nodes", type=whole_number(0, 20_000), default=3, metavar="N", help="nodes to begin with (default 3)")
    parser.add_argument("--port", type=whole_number(0, 65535), default=0, metavar="P", help="port on 127.0.0.1 (default: a free one)")
    parser.add_argument("--kubeconfig", type=Path, metavar="FILE", help="where to write the kubeconfig (default: a temporary file)")
    parser.set_defaults(main=main)


def main(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C or SIGTERM."""
    options = SandboxOptions(port=args.port, kubeconfig=args.kubeconfig, nodes=args.nodes, crds=crd_folders())
    try:
        asyncio.run(_serve(options, Console()))
    except OSError as error:
        raise InputError(f"sandbox: {error.filename or ''} {error.strerror or error}".replace("  ", " ")) from None
    return 0


async def _serve(options: SandboxOptions, console: Console) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with Sandbox(options) as sandbox:
        console.print(plain(f"an embedded cluster with {options.nodes} nodes serves on {sandbox.server}; Ctrl-C ends it"), soft_wrap=True)
        for line in kubectl_lines(sandbox.kubeconfig):
            console.print(plain(line), soft_wrap=True)
        await ended.wait()


def kubectl_lines(kubeconfig: Path) -> list[str]:
    """Commands to begin with."""
    return [
        f"  export KUBECONFIG={kubeconfig}",
        "  kubectl get nodes",
        "  kubectl run web --image=nginx",
        "  kubectl get pods -o wide --watch",
        "  placewright run        # in another shell with the same KUBECONFIG: places the pods",
    ]
