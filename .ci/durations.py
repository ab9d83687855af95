"""`make durations`: runs the targets of the Makefile that contributors wait for, one after the other, and writes how long each took.

The table in docs/tests.md is the only place that states these durations. Run it on a machine that has nothing else to do.
"""

from __future__ import annotations

import datetime as dt
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "tests.md"
TARGETS: Final = ("lint", "types", "imports", "generated", "unit", "test", "test-all")
_REGION: Final = re.compile(r"(?<=<!-- durations -->\n).*?(?=<!-- end of durations -->)", re.DOTALL)


def measured(target: str) -> tuple[float, bool]:
    """Run a target of the Makefile. Returns its seconds, and whether it succeeded."""
    began = time.monotonic()
    make = shutil.which("make") or "make"
    code = subprocess.run([make, "--silent", target], cwd=ROOT, check=False).returncode
    return time.monotonic() - began, code == 0


def words(seconds: float) -> str:
    """Return a duration as the table has it: seconds below two minutes, then minutes."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def table(seconds: dict[str, float], *, cores: int, day: dt.date) -> str:
    """Return the text between the markers.

    Args:
        seconds: duration of each target, by its name.
        cores: number of cores that the run may use.
        day: the date of the run.
    """
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    rows = "\n".join(f"| `make {target}` | {words(took)} |" for target, took in seconds.items())
    return f"Measured {day} on {cores} cores with Python {python}; set-up is not counted.\n\n| command | takes |\n|---|---|\n{rows}\n"


def main() -> int:
    """Measure all targets and write the table. Exit code 1 if a target failed; then nothing is written."""
    runs = {target: measured(target) for target in TARGETS}
    failed = [target for target, (_, fine) in runs.items() if not fine]
    if failed:
        sys.stderr.write(f"durations: not written, because these failed: {', '.join(failed)}\n")
        return 1
    text = table(
        {target: took for target, (took, _) in runs.items()}, cores=len(os.sched_getaffinity(0)), day=dt.datetime.now(dt.UTC).date()
    )
    PAGE.write_text(_REGION.sub(lambda _: text, PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
