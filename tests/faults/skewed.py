"""`python skewed.py SECONDS run ...`: the operator on a machine whose wall clock is wrong. Monotonic clocks are as they were.

Only who asks for the time gets another: types stay what they are, as decoders compare them.
"""

from __future__ import annotations

import datetime  # noqa: ICN001 - by this name the modules have it
import inspect
import sys
import time
import types
from typing import Self


def skew(seconds: float) -> None:
    """Every module of Kopf and of ours that is loaded, and asks for the time, gets one that is so much ahead."""
    right = time.time
    time.time = lambda: right() + seconds
    ahead = datetime.timedelta(seconds=seconds)

    class Skewed(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Self:
            return super().now(tz) + ahead

    module = types.SimpleNamespace(**vars(datetime) | {"datetime": Skewed})
    for each in tuple(sys.modules.values()):
        if each.__name__.startswith(("kopf.", "placewright.")) and "datetime.now(" in _source(each):
            for name, value in tuple(vars(each).items()):
                if value is datetime:
                    setattr(each, name, module)
                elif value is datetime.datetime:
                    setattr(each, name, Skewed)


def _source(module: types.ModuleType) -> str:
    try:
        return inspect.getsource(module)
    except (OSError, TypeError):
        return ""


if __name__ == "__main__":
    import placewright.handlers.operator  # noqa: F401 - it loads what asks for the time
    from placewright.cli.main import main

    skew(float(sys.argv[1]))
    sys.exit(main(sys.argv[2:]))
