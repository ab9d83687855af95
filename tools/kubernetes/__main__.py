"""`python -m tools.kubernetes`: prints the folder with the control plane's programs, after building them where need be.

With `--built` nothing is built: the folder is printed if there is one.

Progress goes to stderr. Exit codes: 0 done, 1 the build failed, 2 wrong input, 3 nothing to be had on this machine, 130 interrupted.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence

from placewright.api.bad_input import InputError, printable
from tools.kubernetes.provide import BuildFailed, Machine, Unavailable, at_hand, provide


def main(environ: Mapping[str, str], machine: Machine | None = None, words: Sequence[str] = ()) -> int:
    """Return the exit code."""
    try:
        if "--built" in words:
            built = at_hand(environ)
            sys.stdout.write(f"{built.folder}\n" if built else "")
            return 0 if built else 3
        sys.stdout.write(f"{provide(environ, _say, machine).folder}\n")
    except KeyboardInterrupt:
        return 130
    except (InputError, BuildFailed) as error:
        for line in str(error).splitlines():
            _say(line)
        return 3 if isinstance(error, Unavailable) else 2 if isinstance(error, InputError) else 1
    return 0


def _say(line: str) -> None:
    sys.stderr.write(f"placewright: {printable(line)}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    # SIGTERM is an interruption, too: our child processes have to end with us.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main(os.environ, words=sys.argv[1:]))
