"""`python suspended.py run ...`: the operator on a machine that is suspended whenever the process stands still.

While a machine is suspended its monotonic clock stands still, and so do all timers; the time since boot goes on.
"""

from __future__ import annotations

import sys
import time

#: Who has not asked for the time for so long was suspended, seconds; the event loop asks several times a second.
STANDSTILL = 2.0


def suspend() -> None:
    """Whoever asks for the monotonic clock from now on gets one that leaves out each standstill."""
    right = time.monotonic
    left_out, last = 0.0, right()

    def awake() -> float:
        nonlocal left_out, last
        now = right()
        if now - last > STANDSTILL:
            left_out += now - last
        last = now
        return now - left_out

    time.monotonic = awake


if __name__ == "__main__":
    sys.modules["uvloop"] = None  # type: ignore[assignment]  # its timers do not ask Python
    suspend()
    from placewright.cli.main import main

    sys.exit(main(sys.argv[1:]))
