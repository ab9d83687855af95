"""The two schedulers of a comparison. Each is a process of its own with its own scheduler name."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from placewright.api.profile import DEFAULT_SCHEDULER_NAME
from placewright_lab.controlplane.flags import gates_flag
from placewright_lab.controlplane.kubescheduler import KubeScheduler
from placewright_lab.demo.operatorprocess import OperatorProcess, operator_command

OUR_SCHEDULER_NAME: Final = "placewright-bench"
OUR_LABEL: Final = "placewright"


class RunningScheduler(Protocol):
    """A scheduler's process."""

    @property
    def pid(self) -> int:
        """Process id."""

    @property
    def ended(self) -> bool:
        """True if the process has ended by itself."""

    def last_words(self) -> str:
        """Return the end of its log, in one line."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A scheduler that can be started.

    Attributes:
        label: name for people.
        scheduler_name: `spec.schedulerName` of its pods.
        start: function from a folder for configuration and log to a context in which its process runs.
    """

    label: str
    scheduler_name: str
    start: Callable[[Path], AbstractAsyncContextManager[RunningScheduler]]


def ours(kubeconfig: Path) -> Contender:
    """Return the operator as we ship it. A profile for its scheduler name must exist."""

    @asynccontextmanager
    async def start(folder: Path) -> AsyncIterator[RunningScheduler]:
        async with OperatorProcess(operator_command(kubeconfig), folder / "operator.log") as process:
            yield process

    return Contender(OUR_LABEL, OUR_SCHEDULER_NAME, start)


def label_of(minor: int) -> str:
    """Return the label of a kube-scheduler of version 1.`minor`."""
    return f"kube-scheduler 1.{minor}"


def kube_scheduler(program: Path, minor: int, kubeconfig: Path, gates: str = "") -> Contender:
    """Make a kube-scheduler of version 1.`minor` with its defaults, except the limit on its requests and the given feature gates."""

    @asynccontextmanager
    async def start(folder: Path) -> AsyncIterator[RunningScheduler]:
        with KubeScheduler(program, minor, kubeconfig, folder, flags=gates_flag(gates)) as process:
            yield process

    return Contender(label_of(minor), DEFAULT_SCHEDULER_NAME, start)
