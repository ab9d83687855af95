"""`placewright demo`: an embedded cluster, the operator, pods, a change half-way, and a summary."""

from __future__ import annotations

import argparse
import asyncio
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

from kubesandbox.controllers.provisioner import DEFAULT_CLASS
from kubesandbox.process import SandboxFailed, SandboxProcess
from placewright.api.bad_input import printable
from placewright.cli.definitions import crd_folders
from placewright.cli.helptexts import describe
from placewright.cli.options import Subparsers, whole_number
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright_lab.bench.madeup import mixed_nodes, mixed_pods
from placewright_lab.commands.helptexts import TEXTS
from placewright_lab.demo.display import make_progress, show_notes, show_summary
from placewright_lab.demo.jobs import DEVICES, LABEL, Jobs
from placewright_lab.demo.operatorprocess import OperatorProcess, operator_command
from placewright_lab.demo.run import DemoFailed, DemoRun, Limits
from placewright_lab.demo.scenario import DemoScenario, make_scenario
from placewright_lab.readers.inputs import Inputs, load_inputs

NODES: Final = 100
PODS: Final = 1500
#: Pods a second in the made-up demo: slow enough to watch.
RATE: Final = 150
_INTERRUPTED: Final = 130
_DEVICE_OPTIONS: Final = ("--devices", str(DEVICES), "--device-label", LABEL)


def register(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("demo", help="show the scheduler at work on an embedded cluster")
    files = "a trace in the openb CSV format, or Kubernetes manifests (a file or a folder; repeatable)"
    add = parser.add_argument
    add("--nodes", type=Path, action="append", default=[], metavar="FILE", help=f"nodes: {files}")
    add("--pods", type=Path, action="append", default=[], metavar="FILE", help=f"pods and workloads: {files}")
    add("--skip-bad", action="store_true", help="leave out documents that are wrong, and say which, instead of ending")
    rate = f"pods created a second (default {RATE}; from files: as fast as they are accepted)"
    add("--rate", type=whole_number(1, 100_000), metavar="N", help=rate)
    add("--seed", type=whole_number(0, 2**32), default=0, metavar="N", help="seed of the made-up nodes and pods")
    add("--timeout", type=whole_number(1, 86_400), default=90, metavar="S", help="give up after S seconds (default 90)")
    add("--keep", action="store_true", help="leave everything running afterwards, until Ctrl-C")
    parser.set_defaults(main=main)
    describe(parser, "demo", TEXTS)


def main(args: argparse.Namespace) -> int:
    """Run the demo; 0 when every pod is placed or said to be unschedulable."""
    console = Console()
    scenario = make_scenario(_inputs(args))
    limits = Limits(args.rate or (None if args.pods else RATE), run_seconds=args.timeout)
    try:
        with_jobs = not (args.nodes or args.pods)
        return asyncio.run(interruptible(Demo(scenario, console, limits, keep=args.keep, with_jobs=with_jobs)))
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
        inputs.pods = mixed_pods(PODS, args.seed)
    return inputs


class Demo:
    """The parts that one demo needs to start, run and end; `command` starts an operator against a kubeconfig.

    `with_jobs` adds a second act: jobs placed all or none, with devices.

    Attributes:
        code: exit code for an end at this moment: until the run is over, that of an interrupted one.
    """

    def __init__(
        self,
        scenario: DemoScenario,
        console: Console,
        limits: Limits,
        *,
        keep: bool = False,
        with_jobs: bool = False,
        command: Callable[[Path], list[str]] = operator_command,
    ) -> None:
        self._scenario = scenario
        self._console = console
        self._limits = limits
        self._keep = keep
        self._with_jobs = with_jobs
        self.code = _INTERRUPTED
        self._command = command

    async def run(self) -> int:
        """Start, run, sum up, end; returns the exit code."""
        rate = f", {self._limits.rate:.0f} a second," if self._limits.rate else ""
        size = f"{len(self._scenario.pods)} pods{rate} for {len(self._scenario.nodes)} nodes"
        self._say(f"{size}; starting an embedded cluster and the operator")
        show_notes(self._say, self._scenario.problems, "left out")
        show_notes(self._say, self._scenario.notes, "note")
        with tempfile.TemporaryDirectory(prefix="placewright-demo-") as folder:
            options = [*cluster_options(self._scenario), *(_DEVICE_OPTIONS if self._with_jobs else ())]
            async with SandboxProcess(crds=crd_folders(), arguments=options) as sandbox:
                command = self._command(sandbox.kubeconfig)
                async with OperatorProcess(command, Path(folder, "operator.log")) as operator:
                    return await self._against(sandbox.kubeconfig, operator)

    async def _against(self, kubeconfig: Path, operator: OperatorProcess) -> int:
        async with ApiClient(load_config(str(kubeconfig))) as client:
            with make_progress(self._console) as progress:
                run = DemoRun(self._scenario, client, operator, progress, self._limits)
                summary = await run.run()
            show_summary(self._console, summary, run.change_note)
            jobs = Jobs(client, operator, self._say, self._scenario.scheduler, self._limits.job_seconds)
            worked = not self._with_jobs or await jobs.run()
        self.code = 0 if summary.honest and worked else 1
        if self._keep:
            await self._stay(kubeconfig, operator)
        return self.code

    async def _stay(self, kubeconfig: Path, operator: OperatorProcess) -> None:
        self._say("\neverything stays up until Ctrl-C; in another shell:")
        for line in _things_to_try(self._scenario, kubeconfig, operator.log):
            self._say(line)
        await operator.ended()
        raise DemoFailed(f"the operator ended with code {operator.exit_code}: {operator.last_words()}")

    def _say(self, text: str) -> None:
        for line in text.split("\n"):
            self._console.print(Text(printable(line)), soft_wrap=True)


async def interruptible(demo: Demo) -> int:
    """Run the demo; SIGINT and SIGTERM end it in order, with everything it started."""
    task = asyncio.ensure_future(demo.run())
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        return demo.code


def cluster_options(scenario: DemoScenario) -> list[str]:
    """Options of the embedded cluster: claims get volumes; those without a class one of ours, unless the files bring classes along."""
    own = any(manifest["kind"] == "StorageClass" for manifest in scenario.objects)
    return ["--volumes", *([] if own else ["--default-class", DEFAULT_CLASS])]


def _things_to_try(scenario: DemoScenario, kubeconfig: Path, log: Path) -> list[str]:
    return [
        f"  export KUBECONFIG={kubeconfig}",
        "  kubectl get schedprof",
        "  kubectl get pods -o wide | head",
        "  kubectl run web --image=nginx && kubectl get pod web -o yaml | grep -A3 annotations",
        f"  kubectl patch schedprof {scenario.profile} --type merge -p '{{\"spec\":{{\"weights\":{{\"NodeResourcesFit\":0}}}}}}'",
        f"  tail -f {log}",
    ]
