"""What every room's tests may ask for: with `--real` (that is `make e2e`), a real API server."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from browser import running
from looks import take_all
from placewright.api.bad_input import InputError
from placewright_lab.controlplane.assets import VARIABLE, from_environment
from placewright_lab.controlplane.server import ControlPlane
from randomcases import cases, take_few
from tiers import TIERS, UNIT_ROOMS, Tiers

# How long an example takes says nothing on a machine with others at work.
hypothesis.settings.register_profile("untimed", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("untimed")

E2E = Path(__file__).parent / "e2e"
TERMINAL = ("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
"""What tells programs about the terminal. Whoever imports readline, as workers do, gets the first two."""
FOREIGN = "KUBECONFIG_E2E"
"""Names the kubeconfig of a cluster that is not ours; with it alone `control_plane` is None."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--real", action="store_true", help=f"use the API server of {VARIABLE}, and run tests/e2e too")
    parser.addoption(
        "--all", action="store_true", help="every test of the tiers process and long, not the choice of tests/choice.py; all random cases"
    )
    parser.addoption("--nightly", action="store_true", help="browsers look at each page in all windows, not in one")
    parser.addoption("--report", type=Path, default=None, help="tests with faults append a line of JSON for each run")


def pytest_configure(config: pytest.Config) -> None:
    """Asked for a real server and given none, tests must not quietly run on the sandbox. No test depends on the terminal."""
    for variable in TERMINAL:
        os.environ.pop(variable, None)
    for tier in TIERS:
        config.addinivalue_line("markers", f"{tier}: set by tests/tiers.py, which says what it means")
    every = config.getoption("--all") or config.getoption("--real")
    config.pluginmanager.register(Tiers(every_test=every), "tiers")
    if config.getoption("--nightly"):
        take_all()
    names_file = any(Path(each.partition("::")[0]).is_file() for each in config.option.file_or_dir)
    if config.option.markexpr == "unit" or not (every or names_file):
        take_few()
        hypothesis.settings.register_profile("few", hypothesis.settings.get_profile("untimed"), max_examples=cases(100))
        hypothesis.settings.load_profile("few")
    if config.getoption("--real"):
        try:
            assets = from_environment(os.environ)
        except InputError as wrong:
            raise pytest.UsageError(str(wrong)) from None
        if assets is None and not os.environ.get(FOREIGN):
            raise pytest.UsageError(f"--real needs {VARIABLE} or {FOREIGN}; `make e2e` sees to that")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`make test` has no API server to run tests/e2e on. `-m unit` need not read other rooms to leave them out."""
    if collection_path == E2E and not config.getoption("--real"):
        return True
    if config.option.markexpr == "unit" and collection_path.parent == E2E.parent and collection_path.is_dir():
        return None if collection_path.name in UNIT_ROOMS else True
    return None


def pytest_collection_finish() -> None:
    """Thousands of tests and their modules stay until the end: the collector need not walk them again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def control_plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane | None]:
    """One real control plane for the whole run; None without `--real`. Tests that stop it or fill it start one of their own."""
    assets = from_environment(os.environ) if request.config.getoption("--real") else None
    if assets is None:
        yield None
        return
    with ControlPlane(assets) as running:
        yield running


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """One Chromium for all tests that look at a page, each with a tab of its own: the port on which it can be told what to do."""
    with running(tmp_path_factory.mktemp("chromium")) as port:
        yield port


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """A worker for each core that we may use, xdist itself would count others, and half as many again where tests wait for processes."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores if config.option.markexpr == "unit" else cores + cores // 2
