"""`python -m kubesandbox`: a sandbox in a process of its own, until a signal or its parent ends it."""

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib.util
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from kubesandbox.controllers.kubelet import KubeletTimes
from kubesandbox.devices.layouts import DeviceKind, DeviceLayout
from kubesandbox.server import Sandbox, SandboxOptions

#: Number of devices of one node.
MAX_DEVICES: Final = 1024


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT, or until standard input ends if asked to. Return the exit code."""
    parser = _parser()
    parsed = parser.parse_args(arguments)
    for name, most in (("port", 65_535), ("nodes", 100_000), ("history", 10_000_000), ("devices", MAX_DEVICES)):
        if not 0 <= getattr(parsed, name) <= most:
            parser.error(f"--{name} {getattr(parsed, name)}: must be 0 to {most}")
    for folder in parsed.crds:
        if not folder.is_dir():
            parser.error(f"--crds {folder}: not a directory")
    options = SandboxOptions(
        port=parsed.port,
        kubeconfig=parsed.kubeconfig,
        nodes=parsed.nodes,
        crds=tuple(parsed.crds),
        history=parsed.history,
        volumes=parsed.volumes,
        default_class=parsed.default_class,
        devices=_layout(parsed),
        kubelets=KubeletTimes(start=parsed.start_seconds, end=parsed.end_seconds),
    )
    gc.set_threshold(50_000, 20, 50)
    try:
        _run(options, parsed.exit_with_stdin)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"sandbox: {error}\n")
        return 2
    return 0


def _layout(parsed: argparse.Namespace) -> DeviceLayout | None:
    if not parsed.devices:
        return None
    return DeviceLayout(parsed.devices, DeviceKind(parsed.device_kind), label=parsed.device_label)


def _run(options: SandboxOptions, exit_with_stdin: bool) -> None:
    with asyncio.Runner(loop_factory=_fast_loop()) as runner:
        runner.run(_serve(options, exit_with_stdin))


def _fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's loop, or None for the standard one if uvloop is not installed."""
    if importlib.util.find_spec("uvloop") is None:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = importlib.import_module("uvloop").new_event_loop
    return factory


async def _serve(options: SandboxOptions, exit_with_stdin: bool) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    if exit_with_stdin:
        _end_with_input(loop, ended)
    async with Sandbox(options) as sandbox:
        gc.freeze()
        sys.stdout.write(json.dumps({"server": sandbox.server, "kubeconfig": str(sandbox.kubeconfig)}) + "\n")
        sys.stdout.flush()
        await ended.wait()


def _end_with_input(loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
    """End when standard input ends, because then the parent process has died."""
    descriptor = sys.stdin.fileno()

    def read() -> None:
        with suppress(BlockingIOError):
            if not os.read(descriptor, 4096):
                loop.remove_reader(descriptor)
                ended.set()

    os.set_blocking(descriptor, False)
    loop.add_reader(descriptor, read)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m kubesandbox", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1 (default: any free one)")
    parser.add_argument("--kubeconfig", type=Path, help="where to write the kubeconfig (default: a temporary folder)")
    parser.add_argument("--nodes", type=int, default=0, help="how many nodes to begin with")
    parser.add_argument("--crds", type=Path, action="append", default=[], help="a folder of definitions; repeatable")
    parser.add_argument("--history", type=int, default=10_000, help="changes that each type remembers for resuming")
    parser.add_argument("--start-seconds", type=float, default=0.05, help="from bound to running")
    parser.add_argument("--end-seconds", type=float, default=0.05, help="the most that a graceful end takes")
    parser.add_argument("--volumes", action="store_true", help="give claims volumes, as controllers and provisioners would")
    parser.add_argument("--default-class", default="", metavar="NAME", help="a default StorageClass to begin with")
    parser.add_argument("--devices", type=int, default=0, metavar="N", help="devices of each node, by a simulated driver (default: none)")
    kinds = [kind.value for kind in DeviceKind]
    parser.add_argument("--device-kind", choices=kinds, default=kinds[0], help="how they may be handed out")
    parser.add_argument("--device-label", default="", metavar="KEY", help="only nodes with this label have devices (default: all)")
    parser.add_argument("--exit-with-stdin", action="store_true", help="end when standard input ends")
    return parser


if __name__ == "__main__":
    sys.exit(main())
