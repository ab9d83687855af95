"""`placewright sandbox`: the embedded cluster, or with `--real` a real control plane, alone and in the foreground."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Final

from rich.console import Console

from kubesandbox.controllers.provisioner import DEFAULT_CLASS
from kubesandbox.devices.layouts import DeviceKind, DeviceLayout
from kubesandbox.server import Sandbox, SandboxOptions
from placewright.api.bad_input import InputError
from placewright.cli.definitions import crd_folders
from placewright.cli.helptexts import describe
from placewright.cli.options import Subparsers, whole_number
from placewright_lab.commands.helptexts import TEXTS
from placewright_lab.commands.realsandbox import serve
from placewright_lab.controlplane.children import ControlPlaneFailed
from placewright_lab.controlplane.server import ControlPlane, Options
from placewright_lab.demo.display import plain

#: The name of a profile that places pods of `kubectl run`.
_PROFILE: Final = {
    "apiVersion": "placewright.dev/v1alpha1",
    "kind": "SchedulingProfile",
    "metadata": {"name": "default"},
    "spec": {"schedulerName": "default-scheduler"},
}
_NO_OPENAPI: Final = "this API server does not serve /openapi/v2: kubectl apply and create want --validate=false"


def register(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("sandbox", help="run the embedded cluster alone, for kubectl and for experiments")
    parser.add_argument("--nodes", type=whole_number(0, 20_000), default=3, metavar="N", help="nodes to begin with (default 3)")
    parser.add_argument("--port", type=whole_number(0, 65535), default=0, metavar="P", help="port on 127.0.0.1 (default: a free one)")
    parser.add_argument("--kubeconfig", type=Path, metavar="FILE", help="where to write the kubeconfig (default: a temporary file)")
    count = "devices of each node, by a simulated driver (default: none; not with --real)"
    parser.add_argument("--devices", type=whole_number(0, 1024), default=0, metavar="N", help=count)
    kinds = "how devices may be handed out: one claim each, in partitions, shared by memory, or attached first (default whole)"
    parser.add_argument("--device-kind", choices=[kind.value for kind in DeviceKind], default=DeviceKind.WHOLE.value, help=kinds)
    parser.add_argument("--real", action="store_true", help="run kube-apiserver and etcd instead (docs/e2e.md says where from)")
    parser.set_defaults(main=main)
    describe(parser, "sandbox", TEXTS)


def main(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C or SIGTERM."""
    return _real(args) if args.real else _embedded(args)


def _embedded(args: argparse.Namespace) -> int:
    options = SandboxOptions(
        port=args.port,
        kubeconfig=args.kubeconfig,
        nodes=args.nodes,
        crds=crd_folders(),
        volumes=True,
        default_class=DEFAULT_CLASS,
        devices=DeviceLayout(args.devices, DeviceKind(args.device_kind)) if args.devices else None,
    )
    try:
        asyncio.run(_serve(options, Console()))
    except OSError as error:
        raise _unusable(error) from None
    return 0


def _real(args: argparse.Namespace) -> int:
    if args.devices:
        raise InputError("sandbox: --devices: only the embedded cluster has a simulated driver; leave out --devices or --real")
    kubeconfig = args.kubeconfig and args.kubeconfig.absolute()
    if kubeconfig and not os.access(kubeconfig.parent, os.W_OK):
        # We ask before a build that takes minutes.
        raise InputError(f"sandbox: --kubeconfig: no file can be written to {kubeconfig.parent}")
    console, progress = Console(), Console(stderr=True)

    def ready(running: ControlPlane, describes_itself: bool) -> None:
        what = f"a real control plane, Kubernetes 1.{running.assets.minor}, with {args.nodes} nodes"
        _announce(console, what, running.server, running.kubeconfig, validates=describes_itself)

    try:
        serve(os.environ, args.nodes, Options(audit=False, kubeconfig=kubeconfig, port=args.port), ready)
    except OSError as error:
        raise _unusable(error) from None
    except ControlPlaneFailed as failed:
        for line in str(failed).splitlines():
            progress.print(plain(f"placewright: error: sandbox: {line}"), soft_wrap=True)
        return 1
    return 0


def _unusable(error: OSError) -> InputError:
    return InputError(f"sandbox: {error.filename or ''} {error.strerror or error}".replace("  ", " "))


async def _serve(options: SandboxOptions, console: Console) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with Sandbox(options) as sandbox:
        _announce(console, f"an embedded cluster with {options.nodes} nodes", sandbox.server, sandbox.kubeconfig)
        await ended.wait()


def _announce(console: Console, what: str, server: str, kubeconfig: Path, *, validates: bool = True) -> None:
    console.print(plain(f"{what} serves on {server}; Ctrl-C ends it"), soft_wrap=True)
    for line in kubectl_lines(kubeconfig, validates=validates):
        console.print(plain(line), soft_wrap=True)
    if not validates:
        console.print(plain(_NO_OPENAPI), soft_wrap=True)


def kubectl_lines(kubeconfig: Path, *, validates: bool = True) -> list[str]:
    """Return commands to begin with. `validates` is True if the server serves the document with which kubectl checks manifests."""
    unchecked = "" if validates else " --validate=false"
    return [
        f"  export KUBECONFIG={kubeconfig}",
        "  kubectl get nodes",
        f"  echo '{json.dumps(_PROFILE)}' | kubectl apply{unchecked} -f -",
        "  kubectl run web --image=nginx",
        "  kubectl get pods -o wide --watch",
        "  placewright run        # in another shell with the same KUBECONFIG: places the pods",
    ]
