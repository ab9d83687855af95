"""The program e2e.test of any version: its flags, which specs it has for a focus, and a run of them in one process."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from placewright_lab.controlplane.assets import minor_version
from placewright_lab.controlplane.server import Child, ControlPlaneFailed
from tools.conformance.specs import SpecOutcome, SpecVerdict, UnreadableReport, read_report

_REPORT: Final = "junit_01.xml"
#: The first minor version with the second version of Ginkgo, which spells its flags otherwise.
_GINKGO_2: Final = 25
_LOOK_SECONDS: Final = 0.5
#: Asked to end, it still cleans up and writes its report.
_END_SECONDS: Final = 60.0
_LIST_SECONDS: Final = 180.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """The facts about the cluster that e2e.test is given.

    Attributes:
        kubeconfig: file of a user who may do everything.
        nodes: number of nodes.
        kubectl: program for the specs that run it, or None.
    """

    kubeconfig: Path
    nodes: int
    kubectl: Path | None


class E2eTest:
    """One e2e.test.

    Attributes:
        minor: its minor version.
        output: the folder with its logs and reports.
    """

    def __init__(self, program: Path, cluster: Cluster, output: Path) -> None:
        self.minor = minor_version(program)
        self.output = output
        self._program = program
        self._cluster = cluster

    async def specs(self, focus: str, check: Callable[[], None]) -> list[str]:
        """Names of all specs that match a regular expression; nothing of them is run."""
        flag = "--ginkgo.dry-run" if self.minor >= _GINKGO_2 else "--ginkgo.dryRun"
        found = await self._report("list", [flag, f"--ginkgo.focus={focus}"], _LIST_SECONDS, check)
        return [each.spec for each in found if each.verdict is not SpecVerdict.SKIPPED]

    async def run(self, focus: str, skip: Sequence[str], seconds: float, check: Callable[[], None]) -> list[SpecOutcome]:
        """Return the outcome of every spec of the program.

        Args:
            focus: a regular expression.
            skip: regular expressions of specs to be left out.
            seconds: after which it is ended; specs that have ended by then may be in its report.
            check: called now and then; what it raises ends the run.

        Raises:
            ControlPlaneFailed: it did not write a report.
        """
        flags = [f"--ginkgo.focus={focus}", *([f"--ginkgo.skip={'|'.join(skip)}"] if skip else [])]
        return await self._report("run", flags, seconds, check)

    async def _report(self, name: str, flags: Sequence[str], seconds: float, check: Callable[[], None]) -> list[SpecOutcome]:
        folder = self.output / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        child = Child(self._program, [*self._common(folder), *flags], folder)
        late = False
        try:
            until = time.monotonic() + seconds
            while not child.ended and not late:
                check()
                await asyncio.sleep(_LOOK_SECONDS)
                late = time.monotonic() > until
        finally:
            if not child.ended:
                child.end(_END_SECONDS)
        try:
            return read_report(folder / _REPORT)
        except UnreadableReport:
            what = f"was not done after {seconds:.0f} s" if late else f"ended with {child.exit_code}"
            raise ControlPlaneFailed(f"{self._program.name} {what} and left no report: {child.last_words()}") from None

    def _common(self, folder: Path) -> list[str]:
        kubectl = self._cluster.kubectl
        return [
            f"--kubeconfig={self._cluster.kubeconfig}",
            # A cluster without a provider: what needs a cloud skips itself.
            "--provider=skeleton",
            f"--num-nodes={self._cluster.nodes}",
            f"--report-dir={folder}",
            *([f"--kubectl-path={kubectl}"] if kubectl else []),
            # Of simulated nodes there is nothing to be dumped, and each attempt waits for an answer.
            "--dump-logs-on-failure=false",
            "--disable-log-dump=true",
            "--ginkgo.no-color" if self.minor >= _GINKGO_2 else "--ginkgo.noColor",
        ]
