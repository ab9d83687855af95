"""Packages of examples/ as if pip had installed them: a folder with their modules, their metadata and their entry points."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from placewright.framework.registry import installed_sources

EXAMPLES = Path(__file__).parents[1] / "examples"


def site_folder(folder: Path, package: str) -> Path:
    """Fill a folder that stands for site-packages; on `sys.path`, or in PYTHONPATH, it has the package installed."""
    root = EXAMPLES / package
    declared = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    folder.mkdir(exist_ok=True)
    for module in (root / "src").iterdir():
        (folder / module.name).symlink_to(module)
    about = folder / f"{declared['name'].replace('-', '_')}-{declared['version']}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {declared['name']}\nVersion: {declared['version']}\n")
    groups = declared["entry-points"].items()
    lines = [line for group, entries in groups for line in (f"[{group}]", *(f"{name} = {value}" for name, value in entries.items()))]
    (about / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return folder


@contextmanager
def installed(folder: Path, package: str) -> Iterator[None]:
    """Have the package installed in this process for as long as the context is open."""
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(site_folder(folder, package)))
        installed_sources.cache_clear()
        try:
            yield
        finally:
            installed_sources.cache_clear()
