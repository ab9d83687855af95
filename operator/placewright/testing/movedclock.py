"""Another time of day during a call, which exposes a plugin that reads a clock of its own."""

from __future__ import annotations

import datetime as dt
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

#: The real class and the real clocks. Those of `_NS` tell nanoseconds.
_REAL: Final = dt.datetime
_CLOCKS: Final = (time.time, time.monotonic)
_NS: Final = (time.time_ns, time.monotonic_ns)
#: Packages whose modules go on with the real clocks.
_NOT_THE_AUTHORS: Final = ("placewright", "builtins", "abc", "typing")


class MovedClock:
    """The clocks of the modules `time` and `datetime`, as one plugin sees them.

    Names that a module of the plugin imported by themselves (`from time import time`) are moved, too. A clock that is asked in C, or that
    another module imported by name, stays.

    Args:
        plugin: the class of the plugin.
    """

    def __init__(self, plugin: type[Any]) -> None:
        self._seconds = 0.0
        moved: dict[int, Any] = {id(clock): self._later(clock, 1) for clock in _CLOCKS}
        moved |= {id(clock): self._later(clock, 10**9) for clock in _NS}
        moved[id(_REAL)] = self._later_datetime()
        own = [sys.modules[each] for each in {kind.__module__ for kind in plugin.__mro__} if each.partition(".")[0] not in _NOT_THE_AUTHORS]
        #: Dictionary of a module, name in it, the real thing and the moved one.
        self._names: list[tuple[dict[str, Any], str, Any, Any]] = [
            (vars(module), name, value, moved[id(value)])
            for module in (time, dt, *own)
            for name, value in vars(module).items()
            if id(value) in moved
        ]

    @contextmanager
    def by(self, seconds: float) -> Iterator[None]:
        """Move the clocks, and set them back afterwards.

        Args:
            seconds: length of the move.
        """
        self._seconds = seconds
        for names, name, _, moved in self._names:
            names[name] = moved
        try:
            yield
        finally:
            for names, name, real, _ in self._names:
                names[name] = real

    def _later(self, clock: Callable[[], Any], units: int) -> Callable[[], Any]:
        return lambda: clock() + type(clock())(self._seconds * units)

    def _later_datetime(self) -> type[dt.datetime]:
        clock = self

        class AnyDatetime(type):
            def __instancecheck__(cls, value: object) -> bool:
                return isinstance(value, _REAL)

        class MovedDatetime(dt.datetime, metaclass=AnyDatetime):
            @classmethod
            def now(cls, tz: dt.tzinfo | None = None) -> Any:
                return _REAL.now(tz) + dt.timedelta(seconds=clock._seconds)

            @classmethod
            def utcnow(cls) -> Any:
                return cls.now(dt.UTC).replace(tzinfo=None)

            @classmethod
            def today(cls) -> Any:
                return cls.now()

        return MovedDatetime
