"""A copy of this tree in which tests change files and run commands."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: What a change may touch, and what its commands read.
COPIED = (
    "operator",
    "console",
    "lab",
    "benchmarks",
    "tools",
    "tests",
    "docs",
    "crds",
    "manifests",
    "examples",
    "pyproject.toml",
    "Makefile",
    "README.md",
    "CHANGELOG.md",
)


class Checkout:
    """A copy of this tree, with the environment of this one."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, root / name)  # with compiled modules, which are as old as their sources there, too
            elif (ROOT / name).exists():
                shutil.copy2(ROOT / name, root / name)
        (root / ".venv").symlink_to(sys.prefix)
        ours = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "MAKE"))}
        self._environment = {
            **ours,
            "PYTHONPATH": ":".join(str(root / each) for each in ("operator", "console", "lab")),
            "PYTEST_ADDOPTS": "-p no:cacheprovider",
        }

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a command in this checkout. The environment is that of the real checkout, so make is told that it is up to date."""
        told = command.replace("make ", "make --old-file=.venv/installed ", 1) if command.startswith("make ") else command
        return subprocess.run(
            ["bash", "-c", told], cwd=self.root, env=self._environment, capture_output=True, text=True, timeout=300, check=False
        )
