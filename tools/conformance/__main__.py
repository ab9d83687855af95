"""`python -m tools.conformance`: runs upstream's end-to-end tests and prints the outcome of each spec.

Progress goes to stderr. Exit codes: 0 nothing failed; 1 a spec failed or the run broke off; 2 wrong input; 3 a program is missing and
cannot be built on this machine; 130 interrupted.

A cluster for upstream's tests: a real control plane, simulated nodes, and one scheduler, Placewright as shipped or kube-scheduler.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path
from typing import Final

import yaml

from placewright.api.bad_input import InputError, printable
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright.kube.errors import RequestError
from placewright_lab.controlplane.audit import denied, read_records
from placewright_lab.controlplane.controllermanager import ControllerManager
from placewright_lab.controlplane.flags import Features, gates_flag
from placewright_lab.controlplane.installation import FOR_ALL_PODS, PROFILES, USER, apply, apply_shipped, ask_for_token
from placewright_lab.controlplane.kubelet import Kubelet
from placewright_lab.controlplane.kubescheduler import KubeScheduler
from placewright_lab.controlplane.nodekeeper import NodeKeeper, make_nodes
from placewright_lab.controlplane.server import Child, ControlPlane, ControlPlaneFailed, Options, check_running
from tools.conformance.program import Cluster, E2eTest
from tools.conformance.programs import ConformancePrograms, programs
from tools.conformance.specs import (
    LEFT_OUT,
    SpecOutcome,
    SpecVerdict,
    lines,
    reason_to_leave_out,
)
from tools.conformance.systempods import make_system_pods
from tools.kubernetes.provide import BuildFailed, Machine, Unavailable

#: The last minor version whose default profile, and so whose tests, know a plugin that Placewright's default profile has not.
_AVOIDING: Final = 21
_AVOID_PODS: Final = {"name": "NodePreferAvoidPods", "weight": 10_000}
_ACTIVE_SECONDS: Final = 120.0
_LOOK_SECONDS: Final = 0.1


class PodPlacer(StrEnum):
    """The scheduler that places the pods."""

    PLACEWRIGHT = "placewright"
    KUBE_SCHEDULER = "kube-scheduler"


def rights_denied(running: ControlPlane) -> list[str]:
    """Return rights that Placewright asked for and its role does not give, each once."""
    records = read_records(running.audit_log)
    return sorted({f"{each.verb} {each.resource}" for each in denied(records, USER)})


@asynccontextmanager
async def cluster(
    args: argparse.Namespace, running: ControlPlane, manager: ControllerManager, gates: str, logs: Path
) -> AsyncIterator[Callable[[], None]]:
    """Nodes and a scheduler on that control plane, which writes to `logs`; yields what raises if any program has ended."""
    async with ApiClient(load_config(str(running.kubeconfig))) as client:
        await make_nodes(client, args.nodes, running.assets.minor)
        kubelets = [asyncio.create_task(each.run()) for each in (Kubelet(client), NodeKeeper(client))]
        try:
            await make_system_pods(client, args.nodes)
            async with _scheduler(args.scheduler, running, client, gates, logs) as scheduler:

                def check() -> None:
                    running.check()
                    check_running(manager, scheduler)

                yield check
        finally:
            for task in kubelets:
                task.cancel()
            await asyncio.gather(*kubelets, return_exceptions=True)


@asynccontextmanager
async def _scheduler(placer: PodPlacer, running: ControlPlane, client: ApiClient, gates: str, logs: Path) -> AsyncIterator[Child]:
    if placer is PodPlacer.PLACEWRIGHT:
        async with _placewright(running, client, logs) as child:
            yield child
        return
    program = running.assets.kube_scheduler
    assert program is not None, "the caller has looked"
    with KubeScheduler(program, running.assets.minor, running.kubeconfig, logs, flags=gates_flag(gates)) as scheduler:
        yield scheduler


@asynccontextmanager
async def _placewright(running: ControlPlane, client: ApiClient, logs: Path) -> AsyncIterator[Child]:
    """Placewright as shipped to be the default scheduler, with the rights of its ServiceAccount only."""
    await apply_shipped(client)
    profile = yaml.safe_load(FOR_ALL_PODS.read_text())
    if running.assets.minor <= _AVOIDING:
        profile["spec"]["plugins"] = {"score": {"enabled": [_AVOID_PODS]}}
    await apply(client, profile)
    kubeconfig = running.kubeconfig_of(await ask_for_token(client), running.folder / "placewright.kubeconfig")
    command = ["-m", "placewright.cli.main", "run", "--kubeconfig", str(kubeconfig), "--secure-port", "0"]
    with Child(Path(sys.executable), command, logs, "placewright") as child:
        await _until_active(client, profile["metadata"]["name"], child)
        yield child


async def _until_active(client: ApiClient, profile: str, child: Child) -> None:
    try:
        async with asyncio.timeout(_ACTIVE_SECONDS):
            while not json.loads(await client.get(f"{PROFILES}/{profile}")).get("status", {}).get("activeGeneration"):
                check_running(child)
                await asyncio.sleep(_LOOK_SECONDS)
    except TimeoutError:
        raise ControlPlaneFailed(f"Placewright did not take up its profile in time: {child.last_words()}") from None


FOCUS: Final = r"\[sig-scheduling\]"
#: First minor version with an API for groups of pods that Placewright reads, and the features that turn it on.
_GROUPS: Final = 36
_GROUP_GATES: Final = "GenericWorkload=true,GangScheduling=true"
_GROUP_APIS: Final = "scheduling.k8s.io/v1alpha2=true"


def main(arguments: Sequence[str], environ: Mapping[str, str], machine: Machine | None = None) -> int:
    """Return the exit code."""
    args = _parser().parse_args(arguments)
    try:
        found = programs(environ, args.e2e_test, _say, machine)
        return _conduct(args, found)
    except KeyboardInterrupt:
        return 130
    except (InputError, BuildFailed, ControlPlaneFailed, RequestError) as error:
        for line in str(error).splitlines():
            _say(line)
        return 3 if isinstance(error, Unavailable) else 2 if isinstance(error, InputError) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make conformance", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--e2e-test", type=Path, metavar="FILE", help="the program (default: E2E_TEST, or beside kube-apiserver)")
    parser.add_argument("--focus", default=FOCUS, metavar="REGEX", help=f"specs to run (default: {FOCUS})")
    parser.add_argument("--skip", default="", metavar="REGEX", help="specs to leave out of these")
    parser.add_argument("--all", action="store_true", help="leave no spec out, not even specs that no scheduler can pass here")
    whose = "who places the pods (default: placewright)"
    parser.add_argument("--scheduler", type=PodPlacer, choices=list(PodPlacer), default=PodPlacer.PLACEWRIGHT, help=whose)
    parser.add_argument("--nodes", type=int, default=3, metavar="N", help="simulated nodes, in three zones (default: 3)")
    parser.add_argument("--minutes", type=float, default=60.0, metavar="N", help="the run is ended after these (default: 60)")
    parser.add_argument("--feature-gates", metavar="NAME=BOOL,...", help=f"of all programs (default from 1.{_GROUPS}: {_GROUP_GATES})")
    parser.add_argument("--runtime-config", metavar="API=BOOL,...", help=f"of kube-apiserver (default from 1.{_GROUPS}: {_GROUP_APIS})")
    parser.add_argument(
        "--output", type=Path, default=Path("build/conformance"), metavar="FOLDER", help="for logs and reports (default: build/conformance)"
    )
    return parser


def _conduct(args: argparse.Namespace, found: ConformancePrograms) -> int:
    _check(args, found)
    groups = found.assets.minor >= _GROUPS
    gates = (_GROUP_GATES if groups else "") if args.feature_gates is None else args.feature_gates
    apis = (_GROUP_APIS if groups else "") if args.runtime_config is None else args.runtime_config
    options = Options(features=Features(gates, apis, controllers=True))
    output = args.output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    _say(f"starting Kubernetes 1.{found.assets.minor} with {args.nodes} simulated nodes and {args.scheduler}")
    # Outside the event loop, in the main thread, with which they die.
    with ControlPlane(found.assets, options) as running, ControllerManager(found.controller_manager, running, gates) as manager:
        told = Cluster(running.kubeconfig, args.nodes, found.assets.kubectl)
        e2e_test = E2eTest(found.e2e_test, told, output)

        async def conduct() -> tuple[list[SpecOutcome], list[str]]:
            async with cluster(args, running, manager, gates, output) as check:
                return await _run(args, e2e_test, check, _gates_on(gates)), rights_denied(running)

        outcomes, denied = asyncio.run(conduct())
    for line in lines(outcomes):
        _print(line)
    for each in denied:
        _print(f"denied   {each}: Placewright asked for what its shipped role does not give")
    _say(f"logs and reports are in {output}")
    return 1 if denied or any(each.verdict is SpecVerdict.FAILED for each in outcomes) else 0


def _check(args: argparse.Namespace, found: ConformancePrograms) -> None:
    for option, expression in (("--focus", args.focus), ("--skip", args.skip)):
        try:
            re.compile(expression)
        except re.error as error:
            raise InputError(f"{option}: found {expression!r}; allowed a regular expression ({error})") from None
    if args.nodes < 1:
        raise InputError(f"--nodes: found {args.nodes}; allowed 1 or more")
    if args.minutes <= 0:
        raise InputError(f"--minutes: found {args.minutes:g}; allowed more than 0")
    if args.scheduler is PodPlacer.KUBE_SCHEDULER and found.assets.kube_scheduler is None:
        raise InputError(f"--scheduler: {found.assets.folder} has no kube-scheduler")


async def _run(args: argparse.Namespace, e2e_test: E2eTest, check: Callable[[], None], gates: frozenset[str]) -> list[SpecOutcome]:
    asked = await e2e_test.specs(args.focus, check)
    if not asked:
        raise InputError(f"--focus: no spec of e2e.test 1.{e2e_test.minor} matches {args.focus!r}")
    left_out = {} if args.all else {spec: why for spec in asked if (why := reason_to_leave_out(spec, gates))}
    left_out |= {spec: "--skip" for spec in asked if args.skip and re.search(args.skip, spec)}
    _say(f"running {len(asked) - len(left_out)} of the {len(asked)} specs of e2e.test 1.{e2e_test.minor} that match {args.focus}")
    # Patterns rather than names: names may be more than fit on a command line.
    patterns = [*([] if args.all else [each.pattern for each in LEFT_OUT]), *([args.skip] if args.skip else [])]
    by_name = [spec for spec in left_out if not any(re.search(each, spec) for each in patterns)]
    skip = [*patterns, *(f"{re.escape(spec)}$" for spec in by_name)]
    found = await e2e_test.run(args.focus, skip, args.minutes * 60, check) if len(left_out) < len(asked) else []
    ran = [each for each in found if each.spec not in left_out and (each.spec in asked or each.verdict is SpecVerdict.FAILED)]
    return [*ran, *(SpecOutcome(spec, SpecVerdict.LEFT_OUT, why=why) for spec, why in left_out.items())]


def _gates_on(gates: str) -> frozenset[str]:
    return frozenset(name for name, _, value in (each.partition("=") for each in gates.split(",")) if value == "true")


def _print(line: str) -> None:
    sys.stdout.write(f"{printable(line)}\n")


def _say(line: str) -> None:
    sys.stderr.write(f"placewright: {printable(line)}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    # SIGTERM is an interruption, too: our child processes have to end with us.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main(sys.argv[1:], os.environ))
