"""The steps until a changed profile took effect, and the influence of a busy machine."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

_LOG_LINE: Final = re.compile(r"^(?P<time>\d{4}-\d\d-\d\dT[\d:.]+Z)\s.*\bprofile (?P<profile>\S+): generation (?P<generation>\d+) places\b")
#: From here on it is worth a word that others use the machine, in seconds.
_SLOW: Final = 0.1


@dataclass(frozen=True, slots=True)
class ChangeTimes:
    """Seconds after a change was sent.

    Attributes:
        stored: the API server had answered.
        seen: a watch of profiles had brought it.
        in_effect: the operator had checked, built and swapped it in, by its own log; None where that does not say.
        created, bound: the first pod that the new generation decided was created, and seen bound; None without such a pod.
    """

    stored: float
    seen: float
    in_effect: float | None = None
    created: float | None = None
    bound: float | None = None

    def __str__(self) -> str:
        """One line for people."""
        steps = [("stored", self.stored), ("seen by a watch", self.seen), ("in effect", self.in_effect)]
        said = ", ".join(f"{what} after {_in_ms(seconds)}" for what, seconds in steps if seconds is not None)
        if self.created is not None and self.bound is not None:
            said += f"; the first pod under it was created after {_in_ms(self.created)} and bound after {_in_ms(self.bound)}"
        return said


def took_effect(log: Path, profile: str, generation: int) -> float | None:
    """When the operator's log says that a generation places pods, as seconds since the epoch; None where it does not."""
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
    """Return a sentence about an overloaded machine, if something was slow; else empty."""
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
