"""`placewright demo`: an embedded cluster, the operator, pods, a change half-way, and a summary."""

from __future__ import annotations

import argparse
import asyncio
import signal
import tempfile
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

from kubesandbox.controllers.provisioner import DEFAULT_CLASS
from kubesandbox.process import SandboxFailed, SandboxProcess
from placewright.api.bad_input import InputError, printable
from placewright.cli.definitions import crd_folders
from placewright.cli.helptexts import describe
from placewright.cli.options import Subparsers, whole_number
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright.offline.kinds import Manifest
from placewright_lab.bench.madeup import mixed_nodes, mixed_pods
from placewright_lab.commands.helptexts import TEXTS
from placewright_lab.demo.display import make_progress, show_notes, show_summary
from placewright_lab.demo.feed import EverydayLife, background
from placewright_lab.demo.jobs import DEVICES, LABEL, Jobs
from placewright_lab.demo.operatorprocess import OperatorProcess, operator_command
from placewright_lab.demo.run import DemoFailed, DemoRun, Limits
from placewright_lab.demo.scenario import FIRST_SPEC, DemoScenario, make_scenario
from placewright_lab.demo.showndemo import LOOKING_SECONDS, SHOWN_RATE, ShownDemo
from placewright_lab.readers.inputs import Inputs, load_inputs

NODES: Final = 100
PODS: Final = 1500
#: Pods a second in the made-up demo, slow enough to watch.
RATE: Final = 150
#: Number of pods of a shown demo. One of so many asks for more CPU than any node has, so that the queue shows it.
SHOWN_PODS: Final = 2200
_TOO_LARGE: Final = 200
_INTERRUPTED: Final = 130
_DEVICE_OPTIONS: Final = ("--devices", str(DEVICES), "--device-label", LABEL)
_NEXT: Final = "\nNext: `placewright demo --console` shows it in the browser; docs/tutorial.md does it with kubectl, step by step."


def register(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("demo", help="show the scheduler at work on an embedded cluster")
    files = "a trace in the openb CSV format, or Kubernetes manifests (a file or a folder; repeatable)"
    add = parser.add_argument
    add("--nodes", type=Path, action="append", default=[], metavar="FILE", help=f"nodes: {files}")
    add("--pods", type=Path, action="append", default=[], metavar="FILE", help=f"pods and workloads: {files}")
    add("--skip-bad", action="store_true", help="leave out documents that are wrong, and say which, instead of ending")
    rate = f"pods created a second (default {RATE}, with --console {SHOWN_RATE}; from files: as fast as they are accepted)"
    add("--rate", type=whole_number(1, 100_000), metavar="N", help=rate)
    add("--seed", type=whole_number(0, 2**32), default=0, metavar="N", help="seed of the made-up nodes and pods")
    add("--timeout", type=whole_number(1, 86_400), metavar="S", help="give up after S seconds (default 90, with --console 600)")
    add("--console", action="store_true", help="show it in the browser: prints an address, and goes on until Ctrl-C on a terminal")
    add("--open", action="store_true", help="with --console: open the browser, too")
    add("--keep", action="store_true", help="leave everything running afterwards, until Ctrl-C")
    parser.set_defaults(main=main)
    describe(parser, "demo", TEXTS)


def main(args: argparse.Namespace) -> int:
    """Run the demo. Return 0 if every pod is placed or reported as unschedulable."""
    if args.open and not args.console:
        raise InputError("--open: found without --console; allowed with it")
    console = Console()
    scenario = make_scenario(_inputs(args))
    rate = args.rate or (SHOWN_RATE if args.console else None if args.pods else RATE)
    limits = Limits(rate, run_seconds=args.timeout or (600 if args.console else 90))
    shown = ShownDemo(open_browser=args.open) if args.console else None
    try:
        with_jobs = not (args.nodes or args.pods)
        return asyncio.run(interruptible(Demo(scenario, console, limits, keep=args.keep, with_jobs=with_jobs, shown=shown)))
    except (DemoFailed, SandboxFailed) as error:
        console.print(Text(printable(f"the demo failed: {error}")), soft_wrap=True)
        return 1


def _inputs(args: argparse.Namespace) -> Inputs:
    nodes = [] if args.nodes else mixed_nodes(NODES, args.seed)
    if args.nodes or args.pods:
        inputs = load_inputs(args.nodes, args.pods, default_nodes=nodes, skip_bad=args.skip_bad)
    else:
        inputs = Inputs(nodes=nodes)
    if not args.pods and not inputs.pods:
        inputs.pods = shown_pods(args.seed) if args.console else mixed_pods(PODS, args.seed)
    return inputs


def shown_pods(seed: int) -> list[Manifest]:
    """Make the pods of a shown demo. They fill most of its nodes, and a few wait."""
    pods = mixed_pods(SHOWN_PODS, seed)
    for pod in pods[_TOO_LARGE // 4 :: _TOO_LARGE]:
        pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "120"
    return pods


@dataclass(eq=False)
class Demo:
    """The parts that one demo needs to start, run and end. `command` starts an operator with a kubeconfig.

    `with_jobs` adds a second act: jobs placed all or none, with devices.

    Attributes:
        code: exit code for an end at this moment, that of an interrupted run until the run is over.
    """

    scenario: DemoScenario
    console: Console
    limits: Limits
    _: KW_ONLY
    keep: bool = False
    with_jobs: bool = False
    command: Callable[[Path], list[str]] = operator_command
    shown: ShownDemo | None = None

    def __post_init__(self) -> None:
        self.code = _INTERRUPTED

    async def run(self) -> int:
        """Start, run, sum up and end. Return the exit code."""
        rate = f", {self.limits.rate:.0f} a second," if self.limits.rate else ""
        size = f"{len(self.scenario.pods)} pods{rate} for {len(self.scenario.nodes)} nodes"
        self._say(f"{size}; starting an embedded cluster and the operator")
        show_notes(self._say, self.scenario.problems, "left out")
        show_notes(self._say, self.scenario.notes, "note")
        with tempfile.TemporaryDirectory(prefix="placewright-demo-") as folder:
            options = [*cluster_options(self.scenario), *(_DEVICE_OPTIONS if self.with_jobs else ())]
            async with SandboxProcess(crds=crd_folders(), arguments=options) as sandbox, AsyncExitStack() as stack:
                command = self.command(sandbox.kubeconfig)
                if self.shown is not None:
                    command = self.shown.command(sandbox.kubeconfig)
                    await stack.enter_async_context(self.shown.console(sandbox.kubeconfig, self._say))
                operator = await stack.enter_async_context(OperatorProcess(command, Path(folder, "operator.log")))
                return await self._against(sandbox.kubeconfig, operator)

    async def _against(self, kubeconfig: Path, operator: OperatorProcess) -> int:
        async with ApiClient(load_config(str(kubeconfig))) as client:
            with make_progress(self.console) as progress:
                run = DemoRun(self.scenario, client, operator, progress, self.limits)
                summary = await run.run()
            show_summary(self.console, summary, run.change_note)
            pause = LOOKING_SECONDS if self.shown is not None else 0.0
            jobs = Jobs(client, operator, self._say, self.scenario.scheduler, self.limits.job_seconds, pause=pause)
            worked = not self.with_jobs or await jobs.run()
            self.code = 0 if summary.honest and worked else 1
            if self.shown is not None and self.console.is_terminal:
                await self._go_on(client, operator)
        if self.shown is None and not self.keep:
            self._say(_NEXT)
        if self.keep:
            await self._stay(kubeconfig, operator)
        return self.code

    async def _go_on(self, client: ApiClient, operator: OperatorProcess) -> None:
        self._say("\npods come and go, and the profile changes, until Ctrl-C")
        scenario = self.scenario
        life = EverydayLife(client, scenario.pods, scenario.profile, ({"spec": FIRST_SPEC}, scenario.change), self._say)
        async with background(life.go_on(), "everyday life") as going_on:
            ended = asyncio.ensure_future(operator.wait())
            try:
                await asyncio.wait((ended, going_on), return_when=asyncio.FIRST_COMPLETED)
            finally:
                ended.cancel()
            if going_on.done():
                going_on.result()
        raise DemoFailed(f"the operator ended with code {operator.exit_code}: {operator.last_words()}")

    async def _stay(self, kubeconfig: Path, operator: OperatorProcess) -> None:
        self._say("\neverything stays up until Ctrl-C; in another shell:")
        for line in _things_to_try(self.scenario, kubeconfig, operator.log):
            self._say(line)
        await operator.wait()
        raise DemoFailed(f"the operator ended with code {operator.exit_code}: {operator.last_words()}")

    def _say(self, text: str) -> None:
        for line in text.split("\n"):
            self.console.print(Text(printable(line)), soft_wrap=True)


async def interruptible(demo: Demo) -> int:
    """Run the demo. SIGINT and SIGTERM end it in order, with everything that it started."""
    task = asyncio.ensure_future(demo.run())
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        return demo.code


def cluster_options(scenario: DemoScenario) -> list[str]:
    """Return the options of the embedded cluster. Claims get volumes. If the files have no class of volumes, claims get ours."""
    own = any(manifest["kind"] == "StorageClass" for manifest in scenario.objects)
    return ["--volumes", *([] if own else ["--default-class", DEFAULT_CLASS])]


def _things_to_try(scenario: DemoScenario, kubeconfig: Path, log: Path) -> list[str]:
    return [
        f"  export KUBECONFIG={kubeconfig}",
        "  kubectl get schedprof",
        "  kubectl get pods -o wide | head",
        "  kubectl run web --image=nginx && kubectl get pod web -o yaml | grep -A3 annotations",
        f'  kubectl patch schedprof {scenario.profile} --type merge -p \'{{"spec":{{"weights":{{"NodeResourcesFit":0}}}}}}\'',
        f"  tail -f {log}",
    ]
