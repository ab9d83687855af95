"""Checkouts of Placewright whose benchmarks run as child processes: a commit of this repository, or a folder.

A child finds the packages of its own checkout first (`PYTHONPATH`), and everything else where this process finds it. So two children differ
only in the code. Byte code goes into a temporary folder, and nothing is written into either checkout.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

import msgspec

import benchmarks
import kubesandbox
import placewright
import placewright_console
import placewright_lab
from placewright.api.bad_input import bad_field
from placewright_lab.bench.figurestamp import commit_of, git

#: The exit code of words that a command does not know.
_REFUSED: Final = 2
_PACKAGES: Final = (placewright, placewright_console, placewright_lab, kubesandbox, benchmarks)
#: Source roots of a checkout. Older ones have all packages in the first.
_ROOTS: Final = ("operator", "console", "lab")
_WHERE: Final = "import placewright, placewright_lab; print(placewright.__file__); print(placewright_lab.__file__)"


class ChildFailed(Exception):
    """A benchmark in a child process that did not come to its end; one line."""


class WordsRefused(ChildFailed):
    """The checkout's benchmark does not know a workload or an option that it was asked for."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A tree of Placewright's code.

    Attributes:
        name: the folder, or the commit as it was asked for.
        commit: its hash, with "+" if files were changed since; "" if git knows nothing of it.
        source: folder of links to the packages.
        scratch: a folder that is there as long as this is needed.
    """

    name: str
    commit: str
    source: Path
    scratch: Path

    def run(self, words: Sequence[str], number: int = 0) -> Any:
        """Return the output of `python -m benchmarks WORDS -o json`. Runs of the same `number` use the same hash seed.

        Raises `WordsRefused` for words that this checkout does not know, `ChildFailed` for a run that broke.
        """
        done = self._child([sys.executable, "-P", "-m", "benchmarks", *words, "-o", "json"], number)
        if done.returncode:
            said = done.stderr.strip().splitlines()
            kind = WordsRefused if done.returncode == _REFUSED else ChildFailed
            raise kind(said[-1].rpartition(": error: ")[2] if said else f"ended with exit code {done.returncode}")
        try:
            return msgspec.json.decode(done.stdout)
        except msgspec.DecodeError:
            raise ChildFailed("printed no JSON") from None

    def check(self) -> None:
        """Raise `InputError` if a child would run other code than this checkout's."""
        done = self._child([sys.executable, "-P", "-c", _WHERE], 0)
        files = [Path(line) for line in done.stdout.splitlines()]
        if done.returncode or not all(file.is_relative_to(self.source.resolve()) for file in files):
            raise bad_field(self.name, "packages that Python does not load", "a checkout, or a commit of one, that runs here")

    def _child(self, command: Sequence[str], number: int) -> subprocess.CompletedProcess[str]:
        environment = {
            **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
            "PYTHONPATH": str(self.source.resolve()),
            "PYTHONPYCACHEPREFIX": str(self.scratch / "bytecode"),
            # The order of a set of texts differs from process to process, and with it the work: both sides get the same hash seed.
            "PYTHONHASHSEED": str(number),
        }
        return subprocess.run(  # noqa: S603 - our own interpreter; a checkout is run because the user named it
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment, cwd=self.scratch, check=False
        )


def running(scratch: Path) -> Checkout:
    """Return the code of this process as a checkout."""
    packages = {each.__name__: Path(str(each.__file__)).resolve().parent for each in _PACKAGES}
    return Checkout("this code", commit_of(packages.values()), _linked(packages, scratch), scratch)


def checkout_named(text: str, scratch: Path, repository: Path) -> Checkout:
    """Return the folder of that name, or else the commit that git calls so in `repository`. Raises `InputError` for neither."""
    folder, commit = Path(text), ""
    if not folder.is_dir():
        found = git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{text}^{{commit}}")
        if found is None:
            raise bad_field("the checkout to compare with", text, f"a folder with a checkout of Placewright, or a commit of {repository}")
        commit = found.decode().strip()
        folder = _unpacked(commit, scratch, repository)
    packages = _packages_in(folder)
    if "placewright" not in packages:
        raise bad_field(text, "a folder without operator/placewright", "a folder with a checkout of Placewright, or a commit")
    name = f"{text} ({commit[:7]})" if commit else text
    return Checkout(name, commit or commit_of(packages.values()), _linked(packages, scratch), scratch)


def _packages_in(folder: Path) -> dict[str, Path]:
    """Find the packages of a checkout, or of a folder that holds them itself."""
    roots = [folder / name for name in _ROOTS] + [folder]
    found = [root / each.__name__ for each in _PACKAGES for root in roots]
    return {each.name: each.resolve() for each in reversed(found) if each.is_dir()}


def _linked(packages: Mapping[str, Path], scratch: Path) -> Path:
    """Make a folder of links, from which Python loads the packages of several source roots."""
    folder = Path(mkdtemp(dir=scratch))
    for name, package in packages.items():
        (folder / name).symlink_to(package, target_is_directory=True)
    return folder


def _unpacked(commit: str, scratch: Path, repository: Path) -> Path:
    top = Path((git(repository, "rev-parse", "--show-toplevel") or b".").decode().strip())
    folder = scratch / commit
    with tarfile.open(fileobj=io.BytesIO(git(top, "archive", "--format=tar", commit) or b"")) as files:
        files.extractall(folder, filter="data")
    return folder
