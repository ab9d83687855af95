"""The steps until a changed profile took effect, and the influence of a busy machine."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

_LOG_LINE: Final = re.compile(r"^(?P<time>\d{4}-\d\d-\d\dT[\d:.]+Z)\s.*\bprofile (?P<profile>\S+): generation (?P<generation>\d+) places\b")
#: Seconds of a step from which the run tells that others use the machine.
_SLOW: Final = 0.1


@dataclass(frozen=True, slots=True)
class ChangeTimes:
    """Seconds after a change was sent.

    Attributes:
        stored: time of the API server's answer.
        seen: time at which a watch of profiles brought the change.
        in_effect: time at which the operator had checked, built and swapped it in; None if its log does not tell.
        created, bound: creation and observed binding of the new generation's first pod; None without such a pod.
    """

    stored: float
    seen: float
    in_effect: float | None = None
    created: float | None = None
    bound: float | None = None

    def __str__(self) -> str:
        """Return one line for people."""
        steps = [("stored", self.stored), ("seen by a watch", self.seen), ("in effect", self.in_effect)]
        said = ", ".join(f"{what} after {_in_ms(seconds)}" for what, seconds in steps if seconds is not None)
        if self.created is not None and self.bound is not None:
            said += f"; the first pod under it was created after {_in_ms(self.created)} and bound after {_in_ms(self.bound)}"
        return said


def took_effect(log: Path, profile: str, generation: int) -> float | None:
    """Return when the operator's log says that a generation places pods, in seconds since the epoch, or None."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    for line in reversed(lines):
        found = _LOG_LINE.match(line)
        if found is not None and (found["profile"], int(found["generation"])) == (profile, generation):
            return datetime.fromisoformat(found["time"]).timestamp()
    return None


def busy(took: float, load: float | None = None, cores: int | None = None) -> str:
    """Return a sentence about an overloaded machine if something was slow, else an empty text."""
    load = os.getloadavg()[0] if load is None else load
    cores = len(os.sched_getaffinity(0)) if cores is None else cores
    if took < _SLOW or load <= cores:
        return ""
    return (
        f"this machine is busy (load {load:.1f} on {cores} cores): API server, operator and this demo share it with others, "
        "and each step waited for its turn"
    )


def _in_ms(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms"
