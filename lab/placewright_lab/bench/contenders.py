"""The two schedulers that are compared, each as a process of its own with its own scheduler name."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from placewright.api.profile import DEFAULT_SCHEDULER_NAME
from placewright_lab.controlplane.kubescheduler import KubeScheduler
from placewright_lab.demo.operatorprocess import OperatorProcess, operator_command

OUR_SCHEDULER_NAME: Final = "placewright-bench"


class RunningScheduler(Protocol):
    """A scheduler's process."""

    @property
    def pid(self) -> int:
        """Process id."""

    @property
    def ended(self) -> bool:
        """Whether it has ended by itself."""

    def last_words(self) -> str:
        """Return the end of its log, in one line."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A scheduler that can be started.

    Attributes:
        label: for people.
        scheduler_name: what its pods have as `spec.schedulerName`.
        start: given a folder for configuration and log, a context in which its process runs.
    """

    label: str
    scheduler_name: str
    start: Callable[[Path], AbstractAsyncContextManager[RunningScheduler]]


def ours(kubeconfig: Path) -> Contender:
    """Return the operator, as it is shipped; a profile for its scheduler name must exist."""

    @asynccontextmanager
    async def start(folder: Path) -> AsyncIterator[RunningScheduler]:
        async with OperatorProcess(operator_command(kubeconfig), folder / "operator.log") as process:
            yield _Operator(process)

    return Contender("placewright", OUR_SCHEDULER_NAME, start)


def kube_scheduler(program: Path, minor: int, kubeconfig: Path, gates: str = "") -> Contender:
    """Make a kube-scheduler of version 1.`minor` with its defaults, except the limit on its requests and the given feature gates."""

    @asynccontextmanager
    async def start(folder: Path) -> AsyncIterator[RunningScheduler]:
        made = KubeScheduler(program, minor, kubeconfig, folder, profile={"schedulerName": DEFAULT_SCHEDULER_NAME})
        made.gates = gates
        with made as process:
            yield process

    return Contender(f"kube-scheduler 1.{minor}", DEFAULT_SCHEDULER_NAME, start)


class _Operator:
    """An operator's process as `RunningScheduler` has it."""

    def __init__(self, process: OperatorProcess) -> None:
        self.pid = process.pid
        self._process = process

    @property
    def ended(self) -> bool:
        return self._process.exit_code is not None

    def last_words(self) -> str:
        return self._process.last_words()
