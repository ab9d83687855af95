"""The programs of a conformance run: named by the user, built before, or built now from Debian's packages."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from placewright.api.bad_input import InputError
from placewright_lab.controlplane.assets import VARIABLE, Assets, Unavailable, from_environment
from tools.kubernetes.provide import FOR_CONFORMANCE, Machine, Say, provide

E2E_TEST: Final = "E2E_TEST"
_MANAGER: Final = "kube-controller-manager"
_INSTEAD: Final = f"set {E2E_TEST} to one, as Kubernetes' test tarball has it (kubernetes-test-linux-amd64.tar.gz)"


class Lacking(Unavailable):
    """A control plane was found, and a program beside it is missing."""

    def __init__(self, why: str) -> None:
        InputError.__init__(self, why)


@dataclass(frozen=True, slots=True)
class ConformancePrograms:
    """All programs of a run."""

    assets: Assets
    e2e_test: Path
    controller_manager: Path


def programs(environ: Mapping[str, str], chosen: Path | None, say: Say, machine: Machine | None = None) -> ConformancePrograms:
    """Find the programs, or build them where none are named.

    Args:
        environ: variables, E2E_TEST and variables of `provide` among them.
        chosen: the e2e.test that was asked for, before all others.
        say: takes a line of progress each time something begins that one has to wait for.
        machine: machine that builds; this one unless a test brings another.

    Raises:
        Unavailable: something is missing and cannot be built; the message says what to set.
        InputError: what was named is not there.
        BuildFailed: the build went wrong.
    """
    named = chosen or (Path(environ[E2E_TEST]) if environ.get(E2E_TEST) else None)
    if named is not None:
        _check(named, "--e2e-test" if chosen else E2E_TEST)
    assets = from_environment(environ) or provide(environ, say, machine, FOR_CONFORMANCE)
    e2e_test = named or assets.e2e_test
    if e2e_test is None:
        raise Lacking(f"{VARIABLE}: {assets.folder} has no e2e.test: {_INSTEAD}")
    beside = e2e_test.resolve().parent / _MANAGER
    manager = assets.kube_controller_manager or (beside if beside.is_file() else None)
    if manager is None:
        raise Lacking(f"{VARIABLE}: neither {assets.folder} nor {beside.parent} has a {_MANAGER}: put one of the same version into either")
    return ConformancePrograms(assets, e2e_test.resolve(), manager)


def _check(program: Path, where: str) -> None:
    if not program.is_file():
        raise InputError(f"{where}: {program} is not there")
    if not os.access(program, os.X_OK):
        raise InputError(f"{where}: {program} is not executable")
