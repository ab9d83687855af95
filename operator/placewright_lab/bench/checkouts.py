"""Checkouts of Placewright whose benchmarks run as child processes: a commit of this repository, or a folder.

A child finds the packages of its own checkout first (`PYTHONPATH`), and everything else where this process finds it, so that two children
differ in nothing but the code. Byte code goes beside what is temporary: nothing is written into either checkout.
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

import placewright
from placewright.api.bad_input import InputError, bad_field

#: The exit code of words that a command does not know.
_REFUSED: Final = 2
_PACKAGES: Final = ("placewright", "placewright_lab", "kubesandbox")
#: Folders that a commit must have to be run: the source root, and the definitions for an embedded cluster.
_NEEDED: Final = ("operator", "crds")
_WHERE: Final = "import placewright, placewright_lab; print(placewright.__file__); print(placewright_lab.__file__)"


class ChildFailed(Exception):
    """A benchmark in a child process that did not come to its end; one line."""


class WordsRefused(ChildFailed):
    """The checkout's benchmark does not know a workload or an option that it was asked for."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A tree of Placewright's code.

    Attributes:
        name: for people: the folder, or the commit as it was asked for.
        commit: its hash, with "+" where files were changed since; "" where git knows nothing of it.
        source: the folder that holds the packages.
        scratch: a folder that is there as long as this is needed.
    """

    name: str
    commit: str
    source: Path
    scratch: Path

    def run(self, words: Sequence[str], number: int = 0) -> Any:
        """The output of `placewright bench WORDS -o json`. Runs of the same `number` use the same hash seed.

        Raises `WordsRefused` for words that this checkout does not know, `ChildFailed` for a run that broke.
        """
        command = [sys.executable, "-P", "-m", "placewright.cli.main", "bench", *words, "-o", "json"]
        done = self._child(command, number)
        if done.returncode:
            said = done.stderr.strip().splitlines()
            kind = WordsRefused if done.returncode == _REFUSED else ChildFailed
            raise kind(said[-1].removeprefix("placewright: error: ") if said else f"ended with exit code {done.returncode}")
        try:
            return msgspec.json.decode(done.stdout)
        except msgspec.DecodeError:
            raise ChildFailed("printed no JSON") from None

    def check(self) -> None:
        """Raise `InputError` where a child would run other code than this checkout's."""
        done = self._child([sys.executable, "-P", "-c", _WHERE], 0)
        files = [Path(line).resolve() for line in done.stdout.splitlines()]
        if done.returncode or not all(file.is_relative_to(self.source.resolve()) for file in files):
            raise bad_field(self.name, "packages that Python does not load", "a checkout, or a commit of one, that runs here")

    def with_benchmarks_of(self, other: Checkout) -> Checkout:
        """This checkout's scheduler under the other one's benchmarks: the only way to measure it by benchmarks that it does not have."""
        folder = Path(mkdtemp(dir=self.scratch))
        for package in _PACKAGES:
            owner = other if package == "placewright_lab" else self
            (folder / package).symlink_to(owner.source.resolve() / package, target_is_directory=True)
        return Checkout(self.name, self.commit, folder, self.scratch)

    def _child(self, command: Sequence[str], number: int) -> subprocess.CompletedProcess[str]:
        environment = _environment(self.source, self.scratch, number)
        return subprocess.run(  # noqa: S603 - our own interpreter; a checkout is run because the user named it
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment, cwd=self.scratch, check=False
        )


def _environment(source: Path, scratch: Path, number: int) -> Mapping[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {
        **kept,
        "PYTHONPATH": str(source.resolve()),
        "PYTHONPYCACHEPREFIX": str(scratch / "bytecode"),
        # The order of a set of texts differs from process to process, and with it the work: both sides get the same hash seed.
        "PYTHONHASHSEED": str(number),
    }


def running(scratch: Path) -> Checkout:
    """The code of this process."""
    source = Path(placewright.__file__).resolve().parents[1]
    return Checkout("this code", commit_of(source), source, scratch)


def checkout_named(text: str, scratch: Path, repository: Path) -> Checkout:
    """The folder of that name, or else the commit that git calls so in `repository`. Raises `InputError` for neither."""
    folder = Path(text)
    if folder.is_dir():
        source = next((one for one in (folder / "operator", folder) if (one / "placewright").is_dir()), None)
        if source is None:
            raise bad_field(text, "a folder without operator/placewright", "a folder with a checkout of Placewright, or a commit")
        return Checkout(text, commit_of(source), source, scratch)
    found = _git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{text}^{{commit}}")
    if found is None:
        raise bad_field("the checkout to compare with", text, f"a folder with a checkout of Placewright, or a commit of {repository}")
    commit = found.decode().strip()
    return Checkout(f"{text} ({commit[:7]})", commit, _unpacked(commit, scratch, repository), scratch)


def commit_of(source: Path) -> str:
    """The hash of the commit whose packages lie there, with "+" where they were changed since; "" where git does not keep them."""
    if _git(source, "ls-files", "--error-unmatch", _PACKAGES[0]) is None:
        return ""
    commit = _git(source, "rev-parse", "HEAD") or b""
    changed = _git(source, "status", "--porcelain", "--untracked-files=no", ".")
    return commit.decode().strip() + ("+" if changed else "")


def _unpacked(commit: str, scratch: Path, repository: Path) -> Path:
    top = _git(repository, "rev-parse", "--show-toplevel") or b"."
    archive = _git(Path(top.decode().strip()), "archive", "--format=tar", commit, *_NEEDED)
    if archive is None:
        raise InputError(f"{commit[:7]} has no {' or no '.join(_NEEDED)}: it is no commit of Placewright")
    folder = scratch / commit
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    return folder / "operator"


def _git(folder: Path, *words: str) -> bytes | None:
    """Git's output; None where git fails or is missing."""
    try:
        return subprocess.run(["git", "-C", str(folder), *words], capture_output=True, check=True).stdout  # noqa: S603, S607 - no shell
    except (OSError, subprocess.SubprocessError):
        return None
