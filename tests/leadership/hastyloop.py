"""An event loop that waits for nobody: real sockets within this process, and time that jumps to the next timer when nothing stirs.

For tests of what happens after seconds, whose every part runs in one loop and takes its clock from it. What another thread does is waited
for; another process would find that hours have passed.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, Final

#: What was sent over loopback is there at once; this long nothing has to stir before time jumps, in real seconds.
_QUIET: Final = 0.002


class HastyLoop(asyncio.SelectorEventLoop):
    """`time()` is the clock to give to whatever is tested."""

    def __init__(self) -> None:
        self._selecting = _Jumping()
        self._in_threads = 0
        super().__init__(self._selecting)

    def time(self) -> float:
        return super().time() + self._selecting.ahead

    def run_in_executor(self, executor: Executor | None, func: Callable[..., Any], *args: Any) -> Any:
        found = super().run_in_executor(executor, func, *args)
        self._selecting.busy += 1
        found.add_done_callback(self._thread_ended)
        return found

    def _thread_ended(self, _: object) -> None:
        self._selecting.busy -= 1


class _Jumping(selectors.DefaultSelector):
    """What it would have waited is added to `ahead`, unless something came, or some thread is `busy`."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead = 0.0
        self.busy = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= _QUIET or self.busy:
            return super().select(timeout)
        found = super().select(_QUIET)
        if not found:
            self.ahead += timeout - _QUIET
        return found
