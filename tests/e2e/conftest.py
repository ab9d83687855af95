"""What these tests run on.

`installation` (session) is a control plane of ours, or the cluster of KUBECONFIG_E2E, with Placewright installed as shipped; `stage`
(function) is a clean stretch of it: a namespace, a profile, no nodes. `rough_installation` (module) and `rough_stage` are the same for
tests that kill: always a control plane of ours, and skipped with KUBECONFIG_E2E. After each test with a stage, its end is checked: nothing
denied, every pod bound once, no node overfilled, no pod left that fits (`ending.check`).

Tests that start control planes of another kind have no need of these: `control_plane` in `tests/conftest.py` is shared by all rooms, and
`placewright_lab.controlplane.server.ControlPlane` starts more.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from placewright_lab.controlplane.assets import VARIABLE, from_environment
from placewright_lab.controlplane.server import ControlPlane
from programs import not_on_this_server

from .ending import check
from .installation import Installation, install
from .stage import Stage, new_stage

FOREIGN = "KUBECONFIG_E2E"


@pytest.fixture(scope="session")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp("installation")
    if kubeconfig := os.environ.get(FOREIGN):
        yield install(Path(kubeconfig), None, folder)
    else:
        with _control_plane() as running:
            yield install(running.kubeconfig, running, folder)


@pytest.fixture(scope="module")
def rough_installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    if os.environ.get(FOREIGN):
        not_on_this_server(f"it is that of {FOREIGN}, whose processes are not ours to stop")
    with _control_plane() as running:
        yield install(running.kubeconfig, running, tmp_path_factory.mktemp("rough"))


def _control_plane() -> ControlPlane:
    assets = from_environment(os.environ)
    if assets is None:
        not_on_this_server(f"neither {VARIABLE} nor {FOREIGN} names one")
    return ControlPlane(assets)


@pytest.fixture
async def stage(installation: Installation) -> AsyncIterator[Stage]:
    async with new_stage(installation) as made:
        yield made
        await check(made)


@pytest.fixture
async def rough_stage(rough_installation: Installation) -> AsyncIterator[Stage]:
    async with new_stage(rough_installation) as made:
        yield made
        await check(made)
