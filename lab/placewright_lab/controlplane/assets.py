"""The folder of the control plane's programs: the one in KUBEBUILDER_ASSETS, like with envtest, or one of an earlier build."""

from __future__ import annotations

import os
import re
import subprocess
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
