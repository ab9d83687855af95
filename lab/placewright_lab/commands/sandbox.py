"""`placewright sandbox`: the embedded cluster, or with `--real` a real control plane, alone and in the foreground.

`placewright sandbox --real`: kube-apiserver and etcd instead of the embedded cluster, with the same nodes and simulated kubelets.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from kubesandbox.controllers.provisioner import DEFAULT_CLASS
from kubesandbox.devices.layouts import DeviceKind, DeviceLayout
from kubesandbox.server import Sandbox, SandboxOptions
from placewright.api.bad_input import InputError
from placewright.cli.definitions import crd_folders, shipped_definitions
from placewright.cli.helptexts import describe
from placewright.cli.options import Subparsers, whole_number
from placewright.cli.terminal import plain
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright_lab.commands.helptexts import TEXTS
from placewright_lab.controlplane.assets import provide
from placewright_lab.controlplane.installation import until_served
from placewright_lab.controlplane.kubelet import Kubelet
from placewright_lab.controlplane.nodekeeper import make_nodes
from placewright_lab.controlplane.server import ControlPlane, ControlPlaneFailed, Options

_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
#: Seconds between two looks at the API server and etcd.
_CHECK_SECONDS: Final = 0.5

_OPENAPI: Final = "/openapi/v2"
#: Seconds that a fresh server may need for its documents.
_OPENAPI_SECONDS: Final = 5.0

Ready = Callable[[ControlPlane, bool], None]


def serve(environ: Mapping[str, str], nodes: int, options: Options, ready: Ready) -> None:
    """Serve until Ctrl-C or SIGTERM.

    Args:
        environ: environment that names the programs (`controlplane.programs`).
        nodes: number of nodes at the beginning.
        options: options of the control plane.
        ready: function that is called once, with whether the API server describes itself to kubectl.

    Raises:
        InputError: there are no programs.
        ControlPlaneFailed: the programs do not run, or ended by themselves.
        OSError: the kubeconfig cannot be written.
    """
    # Until the loop handles signals, SIGTERM has to clean up like Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    assets = provide(environ)
    # This thread lives as long as we do, and the programs die with it.
    with ControlPlane(assets, options) as running:
        asyncio.run(_serve_real(running, nodes, ready))


async def _serve_real(running: ControlPlane, nodes: int, ready: Ready) -> None:
    serving = asyncio.current_task()
    assert serving is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, serving.cancel)
    # Only the signals cancel, and nothing is left to do then.
    with suppress(asyncio.CancelledError):
        async with ApiClient(load_config(str(running.kubeconfig))) as client:
            for definition in shipped_definitions():
                await _define(client, definition)
            await make_nodes(client, nodes, running.assets.minor)
            ready(running, await serves_openapi(client))
            await _run_while_served(Kubelet(client), running)


async def serves_openapi(client: ApiClient, patience: float = _OPENAPI_SECONDS) -> bool:
    """Return whether the server serves the document with which kubectl checks manifests.

    Some servers that were built with a newer Go answer 503 for ever. Then `kubectl apply` refuses everything, unless it does not check.
    """
    try:
        await until_served(lambda: client.get(_OPENAPI), range(400, 600), patience)
    except TimeoutError:
        return False
    return True


async def _run_while_served(kubelet: Kubelet, running: ControlPlane) -> None:
    working = asyncio.create_task(kubelet.run())
    try:
        while not working.done():
            running.check()
            await asyncio.wait((working,), timeout=_CHECK_SECONDS)
    finally:
        working.cancel()


async def _define(client: ApiClient, definition: dict[str, Any]) -> None:
    """Create a definition, and return when the server serves its resources."""
    await client.post(_DEFINITIONS, definition)
    spec = definition["spec"]
    await until_served(lambda: client.get(f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"))


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
