"""`python -m tools.release FOLDER`: writes all files of a release into the folder, which is emptied first.

`SOURCE_DATE_EPOCH` sets the time in all archives; without it, the time of the commit counts. The same tree then gives the same bytes, with
the same versions of the programs in use. `PLACEWRIGHT_REPOSITORY` is the address of the repository on GitHub that publishes the release.
Manifests and chart then name the image in its registry, and links of the README lead there. Without it they name the image that
`docker build` makes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tools.release import files


def write(folder: Path, environ: Mapping[str, str]) -> None:
    """Write all files of a release.

    Raises:
        ValueError: a program is not installed, or a variable cannot be used.
    """
    if missing := [program for program in ("git", "kubectl") if shutil.which(program) is None]:
        raise ValueError(f"{' and '.join(missing)} not found; a release needs git for its time, and kubectl for its manifests")
    seconds, image = files.time(environ), files.image(environ)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    files.write_distributions(folder, seconds, files.repository(environ))
    files.write_chart(folder, seconds, image)
    files.write_manifests(folder, image)
    files.write_bills(folder, seconds)
    files.write_sums(folder)


def main(arguments: list[str]) -> int:
    """Return the exit status."""
    try:
        write(Path(arguments[0]).resolve(), os.environ)
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        sys.stderr.write(f"{getattr(error, 'stderr', '')}release: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
