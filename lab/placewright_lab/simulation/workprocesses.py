"""Work in processes of its own. Each gets the common part once, then one item after the other, and gives back results.

Simulations share nothing. So the machine runs one a core, and each has the same result as alone.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from threading import current_thread, main_thread
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from placewright.api.bad_input import InputError
from placewright.framework.errors import PluginError

Given = TypeVar("Given")
Found = TypeVar("Found")


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows do not have it
        return os.cpu_count() or 1


class WorkProcesses(Generic[Given, Found]):
    """A context for parallel work. The processes end with it, also in the middle of their work.

    A process ignores an interrupt from the terminal, because its parent decides.
    """

    def __init__(self, work: Callable[[Given], Found], count: int) -> None:
        """Take the `work` to do with each item. It is pickled and sent to each process with everything that it needs."""
        # We do not fork, because a copy of a process with threads may hang.
        context = get_context("spawn")
        self._connections: list[Connection] = []
        self._processes: list[BaseProcess] = []
        for _ in range(count):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, work), daemon=True)
            with _interrupts_ignored():
                process.start()
            theirs.close()  # we notice the death of the process only if no other process holds its end
            self._connections.append(ours)
            self._processes.append(process)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for process in self._processes:
            process.terminate()
        for process, connection in zip(self._processes, self._connections, strict=True):
            process.join()
            connection.close()

    def results(self, several: Sequence[Given]) -> Iterator[Found]:
        """Yield the results in order. Raises `InputError` for a fault of the input, and `RuntimeError` if a process dies."""
        left = iter(enumerate(several))
        busy: dict[Connection, int] = {}
        found: dict[int, Found] = {}
        for connection in self._connections:
            _hand_out(connection, left, busy)
        for index in range(len(several)):
            while index not in found:
                ready = wait(busy)
                for connection in [one for one in busy if one in ready]:
                    found[busy.pop(connection)] = _received(connection)
                    _hand_out(connection, left, busy)
            yield found.pop(index)


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Make child processes ignore interrupts from their start, because they read a scenario for seconds. It needs the main thread."""
    if current_thread() is not main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _hand_out(connection: Connection, left: Iterator[tuple[int, Any]], busy: dict[Connection, int]) -> None:
    for index, given in left:
        connection.send(given)
        busy[connection] = index
        return


def _received(connection: Connection) -> Any:
    try:
        answer = connection.recv()
    except (EOFError, ConnectionError):
        raise RuntimeError("a process that simulated has died; what it said is above") from None
    if isinstance(answer, InputError):
        raise answer
    return answer


def _serve(connection: Connection, work: Callable[[Any], Any]) -> None:
    """Work in a process until the connection is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            given = connection.recv()
        except EOFError:
            return
        try:
            answer = work(given)
        except (InputError, PluginError) as error:
            answer = InputError(str(error))  # its objects cannot be pickled
        connection.send(answer)
