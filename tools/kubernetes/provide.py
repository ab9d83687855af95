"""The control plane's programs, wherever they can be had: named by the user, built before, or built now."""

from __future__ import annotations

import fcntl
import platform
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from placewright.api.bad_input import InputError
from placewright_lab.controlplane.assets import Assets, Unavailable, from_environment, from_folder
from tools.kubernetes.debian import FOR_CONFORMANCE, ROOM, TARGETS, Build, BuildFailed, Machine, Say, recipe

_UNFINISHED: Final = ".building-"


def provide(environ: Mapping[str, str], say: Say, machine: Machine | None = None, targets: Sequence[str] = TARGETS) -> Assets:
    """Return the programs of KUBEBUILDER_ASSETS; else those in the user's cache; else, as root on Debian, built into the cache, in minutes.

    Args:
        environ: variables, KUBEBUILDER_ASSETS, XDG_CACHE_HOME and HOME among them.
        say: takes a line of progress each time something begins that one has to wait for.
        machine: machine that builds; this one unless a test brings another.
        targets: programs to build. Programs that were built before count if all are there.

    Raises:
        Unavailable: there is nothing and nothing can be built; the message says what to set.
        InputError: KUBEBUILDER_ASSETS is set, but not to a folder with such programs; or the cache cannot be written.
        BuildFailed: with the fault, where the log is, and its last lines.
    """
    named = from_environment(environ)
    if named is not None:
        return named
    cache = cache_folder(environ)
    built = _built_before(cache, targets)
    return built if built is not None else _build(cache, environ, _Task(say, machine or Machine.this(), targets))


def at_hand(environ: Mapping[str, str]) -> Assets | None:
    """As `provide`, but nothing is built: None where there is nothing yet."""
    return from_environment(environ) or _built_before(cache_folder(environ), TARGETS)


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Where built programs are kept: `placewright` in the user's cache folder."""
    chosen = Path(environ.get("XDG_CACHE_HOME", ""))
    # The XDG specification has relative paths ignored.
    home = chosen if chosen.is_absolute() else Path(environ.get("HOME") or Path.home(), ".cache")
    return home / "placewright"


@dataclass(frozen=True, slots=True)
class _Task:
    """A build that may be needed."""

    say: Say
    machine: Machine
    targets: Sequence[str]


def _suffix(targets: Sequence[str]) -> str:
    return f"{platform.machine()}-{recipe(targets)}"


def _built_before(cache: Path, targets: Sequence[str]) -> Assets | None:
    """Return the newest folder whose programs work and include all targets. Additional programs do no harm."""
    suffixes = [_suffix(each) for each in (TARGETS, FOR_CONFORMANCE) if set(targets) <= set(each)]
    folders = [folder for suffix in suffixes for folder in cache.glob(f"kubernetes-*-{suffix}")]
    for folder in sorted(folders, key=lambda folder: folder.stat().st_mtime, reverse=True):
        try:
            found = from_folder(folder, str(folder))
        except InputError:
            continue
        if all((folder / target.rpartition("/")[2]).is_file() for target in targets if target not in TARGETS):
            return found
    return None


def _build(cache: Path, environ: Mapping[str, str], task: _Task) -> Assets:
    if not task.machine.is_debian:
        raise Unavailable("this is not Debian, where root can build one")
    if not task.machine.root:
        raise Unavailable("only root can build one")
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with _alone(cache, task.say) as lock:
            return _built_before(cache, task.targets) or _build_alone(cache, environ, task, lock)
    except OSError as error:
        raise InputError(f"{error.filename or cache}: {error.strerror or error}") from None


def _build_alone(cache: Path, environ: Mapping[str, str], task: _Task, lock: int) -> Assets:
    """Remove unfinished builds first: we hold the lock, so no process works on them."""
    for left in cache.glob(f"{_UNFINISHED}*"):
        shutil.rmtree(left, ignore_errors=True)
    free = shutil.disk_usage(cache).free
    if free < ROOM:
        room = f"{free / 1e9:.1f} GB free where a build needs {ROOM / 1e9:.0f} GB"
        raise Unavailable(f"{cache} has {room}")
    log = cache / "build.log"
    log.unlink(missing_ok=True)
    task.say(f"there is no Kubernetes to run on yet: it is built from Debian's packages, once, into {cache}")
    with tempfile.TemporaryDirectory(prefix=_UNFINISHED, dir=cache, ignore_cleanup_errors=True) as work:
        build = Build(Path(work), log, environ, task.machine, task.say, lock, task.targets)
        return _keep(build.run(), cache, log, task.targets)


def _keep(built: Assets, cache: Path, log: Path, targets: Sequence[str]) -> Assets:
    """Into its place in one step: a half-built folder never has the name of a good one."""
    target = cache / f"kubernetes-1.{built.minor}-{_suffix(targets)}"
    shutil.rmtree(target, ignore_errors=True)
    log.replace(built.folder / "build.log")
    built.folder.rename(target)
    return Assets(target.resolve(), built.minor)


@contextmanager
def _alone(cache: Path, say: Say) -> Iterator[int]:
    """Hold a lock that the kernel releases, however its holders end."""
    with (cache / "lock").open("wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another build is under way: waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


__all__ = ["BuildFailed", "Unavailable", "at_hand", "cache_folder", "provide"]
