"""Each test here runs with one seed, or with `--seeds N`; `--report FILE` gets a line of JSON for each run. A failure shows the logs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from importlib.metadata import distributions
from pathlib import Path

import pytest

from benchmarks.checkouts import checkout_named, running
from placewright.framework.registry import ENTRY_POINT_GROUP

from .report import append
from .stage import Stage, new_stage

FAILED = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seeds", type=int, default=1, help="how many runs, each with a seed of its own")
    parser.addoption("--soak-seconds", type=float, default=4.0, help="how long the soak takes")
    parser.addoption("--soak-rate", type=float, default=40.0, help="pods a second in the soak")

    parser.addoption("--upgrade-from", default="", help="a commit, or a folder with a checkout; without it the upgrade is from this code")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "devices(count): each node of the stage has so many")
    config.addinivalue_line("markers", "ends(seconds): the most that the end of a pod takes")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "stage" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(1, 1 + metafunc.config.getoption("seeds", 1)))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):  # noqa: ANN201
    outcome = yield
    report = outcome.get_result()
    stage = getattr(item, "funcargs", {}).get("stage")
    if report.failed:
        item.stash[FAILED] = True
    if report.failed and isinstance(stage, Stage):
        report.sections.append(("replicas", stage.words()))


@pytest.fixture(scope="session")
def older(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the packages of the version that is upgraded from."""
    named, scratch = request.config.getoption("--upgrade-from"), tmp_path_factory.mktemp("older")
    checkout = checkout_named(named, scratch, Path(__file__).parent) if named else running(scratch)
    checkout.check()
    if named:
        _without_plugins_of_now(checkout.source)
    return checkout.source


def _without_plugins_of_now(source: Path) -> None:
    """Hide installed packages of plugins from an older version, which may lack what they import.

    Of two distributions of one name Python takes the entry points of the one that it finds first, and this one has none.
    """
    for found in distributions():
        if any(entry.group == ENTRY_POINT_GROUP for entry in found.entry_points):
            empty = source / f"{found.name.replace('-', '_')}-0.dist-info"
            empty.mkdir()
            (empty / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {found.name}\nVersion: 0\n")


@pytest.fixture
async def stage(request: pytest.FixtureRequest, tmp_path: Path, seed: int) -> AsyncIterator[Stage]:
    """A cluster with a profile; when the test is over all pods settle, and the audit must find nothing."""
    marked = {name: marker.args[0] for name in ("devices", "ends") if (marker := request.node.get_closest_marker(name)) is not None}
    async with new_stage(tmp_path, seed, **marked) as made:
        yield made
        if request.node.stash.get(FAILED, False):
            return
        await made.until_settled()
        await made.until_told()
        await made.until_agreed()
        await made.until_used()
        found = made.audit()
        fault = request.node.originalname.removeprefix("test_").replace("_", " ")
        file: Path | None = request.config.getoption("report")
        if file is not None:
            append(file, fault, seed, found, made.recovery)
        assert found.faults == []
        assert found.pods == len(made.created)
        assert [line for each in made.replicas for line in each.breakdowns()] == []
        assert [line for each in made.replicas for line in each.forgotten()] == []
