"""The control plane's programs, wherever they can be had: named by the user, built before, or built now.

kube-apiserver, kube-scheduler, etcd and kubectl from Debian's own packages, put into one folder.

etcd and kubectl are taken out of their packages without installing these: no etcd service starts, and another kubectl stays what it is.
Debian does not package kube-apiserver and kube-scheduler: they are built from its source package `kubernetes`, by that package's own
rules. No version is named here: the machine's release decides it. Only the tools that a build needs are installed.

Decision 0010 says why this way, and why one vendored library is exchanged.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from placewright.api.bad_input import InputError
from placewright_lab.controlplane.assets import INSTEAD, Assets, Unavailable, from_environment, from_folder

SOURCE: Final = "kubernetes"
TARGETS: Final = ("cmd/kube-apiserver", "cmd/kube-scheduler")
#: The same, and the programs of a conformance run: a controller manager, and upstream's end-to-end tests.
FOR_CONFORMANCE: Final = (*TARGETS, "cmd/kube-controller-manager", "test/e2e/e2e.test")
#: Taken out of packages: package, and the programs in it.
PACKAGED: Final = (("etcd-server", "etcd"), ("kubernetes-client", "kubectl"))
#: Needed to build: program, and the package that has it.
TOOLS: Final = (("go", "golang-go"), ("make", "make"), ("rsync", "rsync"), ("jq", "jq"), ("dpkg-source", "dpkg-dev"))
#: Import path of the replaced library, the package with a newer one, and the file by which that is recognised.
EXCHANGED: Final = ("github.com/modern-go/reflect2", "golang-github-modern-go-reflect2-dev", "go_above_118.go")
#: Bytes; the tree, its objects and Go's cache come to 3.3 GB.
ROOM: Final = 5 * 10**9

_LAST_LINES: Final = 8
_LAST_BYTES: Final = 8192
_END_SECONDS: Final = 30.0
_LOCK_SECONDS: Final = 300
_UNFINISHED: Final = ".building-"

Say = Callable[[str], None]


class BuildFailed(Exception):
    """A step of the build went wrong: a line that says which, the end of the log, and a line that says how to do without."""

    def __init__(self, why: str, log: Path, last_lines: Sequence[str]) -> None:
        first = f"the build of Kubernetes failed: {why} (the whole output: {log})"
        super().__init__("\n".join([first, *last_lines, f"to do without it, {INSTEAD}"]))


@dataclass(frozen=True, slots=True)
class Machine:
    """Where a recipe works.

    Attributes:
        os_release: the file that names the system.
        apt: the folder with apt's sources.
        path: folders of programs, Debian's own only: another Go on the user's path may not build this old a Kubernetes.
        root: whether packages may be installed.
    """

    os_release: Path = Path("/etc/os-release")
    apt: Path = Path("/etc/apt")
    path: str = "/usr/sbin:/usr/bin:/sbin:/bin"
    root: bool = False

    @classmethod
    def this(cls) -> Machine:
        """Return the machine that this process runs on."""
        return cls(root=os.geteuid() == 0)

    @property
    def is_debian(self) -> bool:
        """Debian itself: its derivatives have other versions of these packages."""
        try:
            lines = self.os_release.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return False
        return any(line.strip().replace('"', "").replace("'", "") == "ID=debian" for line in lines)

    def has(self, program: str) -> bool:
        """Whether a program is installed."""
        return shutil.which(program, path=self.path) is not None


def recipe(targets: Sequence[str] = TARGETS) -> str:
    """Return a short name of this way to build: programs built in another way are not reused."""
    return hashlib.sha256(repr((SOURCE, tuple(targets), PACKAGED, EXCHANGED)).encode()).hexdigest()[:8]


class Build:
    """Builds programs into the cache, in a folder of its own.

    Args:
        cache: takes the programs and the log of the build.
        environ: variables of apt, which may need a proxy; the build itself gets an environment of its own.
        machine: machine that builds.
        say: takes a line of progress each time something begins that one has to wait for.
        targets: programs to compile, as the source's Makefile names them.
    """

    def __init__(self, cache: Path, environ: Mapping[str, str], machine: Machine, say: Say, targets: Sequence[str]) -> None:
        self._cache = cache
        self._targets = targets
        self._log = cache / "build.log"
        self._machine = machine
        self._say = say
        self._began = time.monotonic()
        self._for_apt = {**environ, "PATH": machine.path, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}

    def run(self) -> Assets:
        """Build everything, or wait for another build; returns the programs. Raises as `provide` does."""
        if not self._machine.is_debian:
            raise Unavailable("this is not Debian, where root can build one")
        if not self._machine.root:
            raise Unavailable("only root can build one")
        try:
            self._cache.mkdir(parents=True, exist_ok=True)
            # The compilers keep the lock open, too, so this process stays in possession until the last of them ends.
            with _alone(self._cache, self._say) as self._lock:
                return _built_before(self._cache, self._targets) or self._build_alone()
        except OSError as error:
            raise InputError(f"{error.filename or self._cache}: {error.strerror or error}") from None

    def _build_alone(self) -> Assets:
        """Remove unfinished builds first: we hold the lock, so no process works on them."""
        for left in self._cache.glob(f"{_UNFINISHED}*"):
            shutil.rmtree(left, ignore_errors=True)
        free = shutil.disk_usage(self._cache).free
        if free < ROOM:
            raise Unavailable(f"{self._cache} has {free / 1e9:.1f} GB free where a build needs {ROOM / 1e9:.0f} GB")
        self._log.unlink(missing_ok=True)
        self._say(f"there is no Kubernetes to run on yet: it is built from Debian's packages, once, into {self._cache}")
        with tempfile.TemporaryDirectory(prefix=_UNFINISHED, dir=self._cache, ignore_cleanup_errors=True) as work:
            self._work = Path(work)
            self._tree, self._packages, self._programs = (self._work / name for name in ("tree", "packages", "programs"))
            return self._keep(self._made())

    def _keep(self, built: Assets) -> Assets:
        """Into its place in one step: a half-built folder never has the name of a good one."""
        target = self._cache / f"kubernetes-1.{built.minor}-{_suffix(self._targets)}"
        shutil.rmtree(target, ignore_errors=True)
        self._log.replace(built.folder / "build.log")
        built.folder.rename(target)
        return Assets(target.resolve(), built.minor)

    def _made(self) -> Assets:
        for folder in (self._programs, self._packages, self._work / "apt" / "parts", self._work / "apt" / "lists", self._work / "tmp"):
            folder.mkdir(parents=True)
        (self._work / "apt" / "preferences").write_text("Package: *\nPin: release o=Debian\nPin-Priority: 1001\n")
        with_source_packages(self._machine.apt, self._work / "apt" / "parts")
        self._step("asking Debian's archive what there is", [*self._apt(), "update"])
        self._install_tools()
        self._unpack_packages()
        self._unpack_source()
        self._exchange()
        self._compile()
        return self._collect()

    def _install_tools(self) -> None:
        missing = [package for program, package in TOOLS if not self._machine.has(program)]
        if missing:
            command = [*self._apt(), "install", "--yes", "--no-install-recommends", *missing]
            self._step(f"installing {', '.join(missing)}", command)

    def _unpack_packages(self) -> None:
        wanted = [*(package for package, _ in PACKAGED), EXCHANGED[1]]
        self._step(f"downloading {', '.join(wanted)}", [*self._apt(), "download", *wanted], self._packages)
        for package in sorted(self._packages.glob("*.deb")):
            self._run(["dpkg-deb", "--extract", str(package), str(self._packages)], self._packages, self._for_apt)

    def _unpack_source(self) -> None:
        command = [*self._apt(), "source", "--download-only", "--only-source", SOURCE]
        self._step(f"downloading the source of {SOURCE}", command, self._work)
        found = sorted(self._work.glob("*.dsc"))
        if len(found) != 1:
            raise self._failed(f"found {len(found)} source packages named {SOURCE} where there should be one")
        self._step(f"unpacking {found[0].stem}", ["dpkg-source", "--extract", str(found[0]), str(self._tree)])
        lacking = [target for target in self._targets if not self._has_source(target)]
        if lacking:  # Debian 13 and later keep only what kubectl is made of
            raise Unavailable(f"this Debian's source package {found[0].stem} has no {' and no '.join(lacking)} to build")

    def _has_source(self, target: str) -> bool:
        """Return whether a program's folder exists. A test program's folder is the folder of the tests."""
        folder = self._tree / target
        return (folder.parent if target.endswith(".test") else folder).is_dir()

    def _exchange(self) -> None:
        """Replace an old reflect2, because its functions for maps kill the API server since Go 1.18."""
        name, package, sign = EXCHANGED
        old, new = self._tree / "vendor" / name, self._packages / "usr/share/gocode/src" / name
        if not old.is_dir() or (old / sign).exists():
            return
        if not (new / sign).is_file():
            raise self._failed(f"{package} has no {name} that knows Go 1.18")
        self._note(f"exchanging vendor/{name} for that of {package}")
        shutil.rmtree(old)
        shutil.copytree(new, old, ignore=shutil.ignore_patterns("*_test.go"))

    def _compile(self) -> None:
        names = " and ".join(target.rpartition("/")[2] for target in self._targets)
        # Part of the build unsets CGO_ENABLED; a setting in Go's own file stays, and so no C compiler is needed.
        (self._work / "go.env").write_text("CGO_ENABLED=0\n")
        environ = {
            "PATH": self._machine.path,
            "HOME": str(self._work),
            "LC_ALL": "C.UTF-8",
            "TMPDIR": str(self._work / "tmp"),
            "GOENV": str(self._work / "go.env"),
            "GOCACHE": str(self._work / "go-cache"),
            "GOPATH": str(self._tree / "_output/local/go"),
            "GO111MODULE": "off",
            "GOFLAGS": "",
            "GOTOOLCHAIN": "local",
        }
        self._say(self._timed(f"compiling {names}: four minutes on two cores, more on a busy machine"))
        self._run(["make", f"WHAT={' '.join(self._targets)}"], self._tree, environ, keep_lock=True)

    def _collect(self) -> Assets:
        built = [self._tree / "_output/local/go/bin" / target.rpartition("/")[2] for target in self._targets]
        packaged = [self._packages / "usr/bin" / program for _, program in PACKAGED]
        for program in (*built, *packaged):
            if not program.is_file():
                raise self._failed(f"{program.name} was not made")
            shutil.copy(program, self._programs)
        try:
            assets = from_folder(self._programs, "what was built")
        except InputError as error:
            raise self._failed(str(error)) from None
        self._say(self._timed(f"done: Kubernetes 1.{assets.minor}"))
        return assets

    def _apt(self) -> list[str]:
        """Return apt-get with sources and lists of our own: the machine's stay as they are, and Debian's packages go before all others."""
        private = self._work / "apt"
        options = {
            "Dir::Etc::sourcelist": "/dev/null",
            "Dir::Etc::sourceparts": str(private / "parts"),
            "Dir::Etc::preferences": str(private / "preferences"),
            "Dir::Etc::preferencesparts": "/dev/null",
            "Dir::State::lists": str(private / "lists"),
            "Dir::Cache::pkgcache": "",
            "Dir::Cache::srcpkgcache": "",
            # The user it usually downloads as cannot enter a home directory. Downloads are checked against Debian's keys all the same.
            "APT::Sandbox::User": "root",
            "DPkg::Lock::Timeout": str(_LOCK_SECONDS),
        }
        return ["apt-get", "--quiet", *(word for name, value in options.items() for word in ("-o", f"{name}={value}"))]

    def _step(self, what: str, command: Sequence[str], folder: Path | None = None) -> None:
        self._say(self._timed(what))
        self._run(command, folder or self._work, self._for_apt)

    def _timed(self, what: str) -> str:
        return f"[{time.monotonic() - self._began:4.0f} s] {what}"

    def _note(self, text: str) -> None:
        with self._log.open("a", encoding="utf-8") as log:
            log.write(f"+ {text}\n")

    def _run(self, command: Sequence[str], folder: Path, environ: Mapping[str, str], *, keep_lock: bool = False) -> None:
        self._note(" ".join(command))
        program = shutil.which(command[0], path=self._machine.path)
        if program is None:
            raise self._failed(f"there is no {command[0]}")
        process = None
        with self._log.open("ab") as log:
            try:
                process = subprocess.Popen(  # noqa: S603 - no shell, and every word is ours
                    [program, *command[1:]],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=folder,
                    env=dict(environ),
                    pass_fds=[self._lock] if keep_lock else [],
                    # A group of its own, to be ended as a whole when we are interrupted.
                    start_new_session=True,
                )
                code = process.wait()
            except BaseException:
                if process is not None:
                    _end_group(process)
                raise
        if code != 0:
            raise self._failed(f"{' '.join([command[0], command[-1]])} ended with {code}")

    def _failed(self, why: str) -> BuildFailed:
        content = self._log.read_bytes()[-_LAST_BYTES:] if self._log.exists() else b""
        return BuildFailed(why, self._log, content.decode(errors="replace").splitlines()[-_LAST_LINES:])


def with_source_packages(apt: Path, parts: Path) -> None:
    """Copy the entries of apt's folder to `parts`, each for binary and source packages."""
    for file in (apt / "sources.list", *sorted((apt / "sources.list.d").glob("*"))):
        if file.is_file():
            text = file.read_text(encoding="utf-8", errors="replace")
            text = re.sub(r"^(\s*)deb(\s.*)$", r"\1deb\2\n\1deb-src\2", text, flags=re.MULTILINE)
            text = re.sub(r"^Types:.*$", "Types: deb deb-src", text, flags=re.MULTILINE | re.IGNORECASE)
            (parts / file.name).write_text(text, encoding="utf-8")


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Politely first: dpkg must not be torn off in the middle of a package."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(_END_SECONDS)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


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
    if (named := from_environment(environ)) is not None:
        return named
    cache = cache_folder(environ)
    return _built_before(cache, targets) or Build(cache, environ, machine or Machine.this(), say, targets).run()


def at_hand(environ: Mapping[str, str]) -> Assets | None:
    """As `provide`, but nothing is built: None where there is nothing yet."""
    return from_environment(environ) or _built_before(cache_folder(environ), TARGETS)


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Where built programs are kept: `placewright` in the user's cache folder."""
    chosen = Path(environ.get("XDG_CACHE_HOME", ""))
    # The XDG specification has relative paths ignored.
    home = chosen if chosen.is_absolute() else Path(environ.get("HOME") or Path.home(), ".cache")
    return home / "placewright"


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
