"""Virtual environments in which tests install what a release or an image has."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path


def environment(folder: Path) -> Path:
    """An environment with all that ours has, but for the distributions of this repository; its Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = (folder / "lib").glob("python*/site-packages")
    for each in Path(sysconfig.get_path("purelib")).iterdir():
        if not each.name.lower().lstrip("_").startswith(("placewright", "kubesandbox", "editable_")):
            (packages / each.name).symlink_to(each)
    return folder / "bin" / "python"
