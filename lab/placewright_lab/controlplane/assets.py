"""The folder of the control plane's programs: the one in KUBEBUILDER_ASSETS, like with envtest, or one of an earlier build.

A checkout can build the programs with tools/kubernetes.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from placewright.api.bad_input import InputError, bad_field

VARIABLE: Final = "KUBEBUILDER_ASSETS"
_NEEDED: Final = ("kube-apiserver", "etcd")
#: Advice for machines on which nothing can be built.
INSTEAD: Final = (
    f"set {VARIABLE} to a folder with kube-apiserver and etcd (and kubectl and kube-scheduler, if you have them) "
    "or, for tests, KUBECONFIG_E2E to the kubeconfig of a cluster that may be written to"
)
_VERSION: Final = re.compile(r"v?(\d+)\.(\d+)\.\d+")
_ASK_SECONDS: Final = 30.0


class Unavailable(InputError):
    """No programs are named or built, and this machine cannot build any. The user made no error."""

    def __init__(self, why: str) -> None:
        super().__init__(f"no Kubernetes here, and {why}: {INSTEAD}")


@dataclass(frozen=True, slots=True)
class Assets:
    """Programs in one folder.

    Attributes:
        folder: folder with `kube-apiserver` and `etcd`; `kube-scheduler` and `kubectl` may be missing.
        minor: minor version of the API server, 20 for 1.20.
    """

    folder: Path
    minor: int

    @property
    def kube_apiserver(self) -> Path:
        """The API server's program."""
        return self.folder / "kube-apiserver"

    @property
    def etcd(self) -> Path:
        """The store's program."""
        return self.folder / "etcd"

    @property
    def kube_scheduler(self) -> Path | None:
        """The kube-scheduler of the same build, if there is one."""
        return _if_there(self.folder / "kube-scheduler")

    @property
    def kubectl(self) -> Path | None:
        """The kubectl of the same build, if there is one."""
        return _if_there(self.folder / "kubectl")

    @property
    def kube_controller_manager(self) -> Path | None:
        """The kube-controller-manager of the same build, if there is one."""
        return _if_there(self.folder / "kube-controller-manager")

    @property
    def e2e_test(self) -> Path | None:
        """The program with upstream's end-to-end tests of the same build, if there is one."""
        return _if_there(self.folder / "e2e.test")


def from_environment(environ: Mapping[str, str]) -> Assets | None:
    """Return the programs that KUBEBUILDER_ASSETS names, or None if it is not set. Raises `InputError` if they are missing."""
    folder = environ.get(VARIABLE)
    return from_folder(Path(folder), VARIABLE) if folder else None


def from_folder(folder: Path, where: str) -> Assets:
    """Return the programs in a folder. Raises `InputError`, with `where` the folder comes from, if one is missing or does not run."""
    missing = [name for name in _NEEDED if not (folder / name).is_file()]
    if missing:
        raise bad_field(where, str(folder), f"a folder that holds {' and '.join(_NEEDED)} (there is no {missing[0]})")
    for name in _NEEDED:
        if not os.access(folder / name, os.X_OK):
            raise InputError(f"{where}: {folder / name} is not executable")
    return Assets(folder.resolve(), minor_version(folder / "kube-apiserver"))


def minor_version(program: Path) -> int:
    """Return the minor version of a Kubernetes program, 20 for 1.20. Raises `InputError` if it does not run or reports none."""
    command = [str(program), "--version"]
    try:
        # The user named the folder so that its programs run.
        run = subprocess.run(command, capture_output=True, text=True, timeout=_ASK_SECONDS, check=True, stdin=subprocess.DEVNULL)  # noqa: S603
    except (OSError, subprocess.SubprocessError) as error:
        raise InputError(f"{program} does not run: {error}") from None
    found = _VERSION.search(run.stdout)
    if found is None:
        raise bad_field(f"{program} --version", run.stdout.strip(), "a version such as v1.31.0")
    return int(found[2])


def _if_there(program: Path) -> Path | None:
    return program if program.is_file() else None


_CHECKOUT: Final = Path(__file__).resolve().parents[3]
_TOOL: Final = "tools.kubernetes"


def provide(environ: Mapping[str, str]) -> Assets:
    """Find the programs. If there are none, build them in a checkout, in minutes, with progress on stderr.

    Args:
        environ: environment with KUBEBUILDER_ASSETS, and with the variables of the tool.

    Raises:
        Unavailable: this is no checkout; the message says which variable to set.
        InputError: KUBEBUILDER_ASSETS names no such folder, or the tool found no programs and said why.
    """
    named = from_environment(environ)
    if named is not None:
        return named
    if not _has_tool():
        raise Unavailable("an installed lab has no tools/kubernetes, which builds one in a checkout")
    folder = _run(environ)
    if not folder:
        raise InputError(f"tools/kubernetes built nothing: {INSTEAD}")
    return from_folder(Path(folder), _TOOL)


def at_hand(environ: Mapping[str, str]) -> Assets | None:
    """Find the programs without building any. Return None if there are none."""
    named = from_environment(environ)
    if named is not None or not _has_tool():
        return named
    folder = _run(environ, "--built")
    return from_folder(Path(folder), _TOOL) if folder else None


def _has_tool() -> bool:
    return (_CHECKOUT / _TOOL.replace(".", "/")).is_dir()


def _run(environ: Mapping[str, str], *words: str) -> str:
    """Run the tool, and return the folder that it prints, empty if it fails."""
    command = [sys.executable, "-m", _TOOL, *words]
    with subprocess.Popen(command, cwd=_CHECKOUT, env=dict(environ), stdout=subprocess.PIPE, text=True) as tool:  # noqa: S603 - our own
        try:
            printed, _ = tool.communicate()
        except BaseException:
            tool.terminate()  # it ends its compilers, and we wait for it
            raise
    return printed.strip()
