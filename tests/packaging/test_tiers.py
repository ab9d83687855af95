"""The tables of tiers name tests that exist, every command and page has its test in `make test`, and the tiers are watched."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from choice import CHOICE
from randomcases import some
from tiers import LONG, PROCESS, SECONDS, TESTS, TIERS, UNIT_ROOMS, chosen, tier_of

ROOT = TESTS.parent
ENTRIES = sorted({*SECONDS, *PROCESS, *LONG, *(entry for entries in CHOICE.values() for entry in entries)})


def functions(file: Path) -> set[str]:
    return {each.name for each in ast.walk(ast.parse(file.read_text())) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}


def is_there(entry: str) -> bool:
    path, _, name = entry.partition("::")
    return (TESTS / path).exists() and (not name or name.partition("[")[0] in functions(TESTS / path))


def test_every_entry_of_the_tables_is_a_room_a_file_or_a_test() -> None:
    assert [entry for entry in ENTRIES if not is_there(entry)] == []
    assert not is_there("faults/test_soak.py::test_that_was_renamed")
    assert not is_there("faults/test_that_was_moved.py")


def features() -> Iterator[str]:
    """The commands in the table of commands, and the pages in the tables of pages."""
    yield from re.findall(r"^\| `placewright (\w+)`", (ROOT / "docs" / "commands.md").read_text(), re.MULTILINE)
    yield from (f"docs/{page}" for page in re.findall(r"\]\(([a-z0-9/-]+(?:README)?\.md)\)", (ROOT / "docs" / "index.md").read_text()))


def test_every_command_and_page_has_a_test_that_make_test_runs() -> None:
    named = set(features())
    assert len(named) > 40
    assert named - CHOICE.keys() == set(), "tests/choice.py names no test for these"
    assert CHOICE.keys() - named - {"record"} == set(), (
        "docs/commands.md or docs/index.md does not name these"
    )  # `record` is beside `snapshot`


@pytest.mark.parametrize(
    ("test", "tier"),
    [
        ("tests/queue/test_queue_order.py::test_x", "unit"),
        ("tests/vectors/test_golden_cases.py::test_x[resources-1]", "unit"),
        ("tests/engine/test_reload.py::test_x[1]", "server"),
        ("tests/handlers/test_placing.py::test_x", "server"),
        ("tests/kubectl/test_reading.py::test_x", "process"),
        ("tests/kubectl/test_tutorial.py::test_x", "long"),
        ("tests/faults/test_soak.py::test_soak_with_churn[1]", "long"),
        ("tests/faults/test_audit.py::test_x", "server"),
        ("tests/lab/readers/test_openb.py::test_x[made-up]", "server"),
        ("tests/lab/readers/test_openb.py::test_x[real]", "long"),
        ("tests/kubectl/test_shared_manifests.py::test_x[real-a.yaml]", "long"),
        ("tests/lab/readers/test_openb.py::test_x[realistic]", "server"),
    ],
)
def test_the_narrower_entry_decides(test: str, tier: str) -> None:
    assert tier_of(test) == tier


def test_a_single_case_of_a_test_can_be_chosen() -> None:
    (case,) = CHOICE["docs/uninstall.md"]
    assert chosen(f"tests/{case}")
    assert not chosen(f"tests/{case.replace('[base]', '[single]')}")


def test_what_takes_real_data_is_chosen_by_no_entry() -> None:
    (test, *_) = (entry for entry in CHOICE["sandbox"] if "manifests" in entry)
    assert chosen(f"tests/{test}::test_x[made-up-a.yaml]")
    assert not chosen(f"tests/{test}::test_x[real-a.yaml]")


def test_every_core_room_is_there() -> None:
    assert {room for room in UNIT_ROOMS if not any((TESTS / room).rglob("test_*.py"))} == set()


FILE = "tests/engine/test_reconcile_property.py"
AS_IN_MAKE_TEST = ["-o", f"testpaths={FILE}"]
QUICK = ["0-11", "0-11", "0-5"]
ALL_SEEDS = ["0-19", "20-39", "40-59"] * 2 + ["0-19", "20-29"]


@pytest.mark.parametrize(
    ("asked", "batches"),
    some(
        [
            pytest.param(AS_IN_MAKE_TEST, QUICK, id="test"),
            pytest.param(["-m", "unit", FILE], QUICK, id="unit"),
            pytest.param(["--all", *AS_IN_MAKE_TEST], ALL_SEEDS, id="test-all"),
            pytest.param([FILE], ALL_SEEDS, id="the file"),
        ]
    ),
)
def test_quick_runs_try_a_fifth_of_the_seeds_of_a_property_and_others_all(asked: list[str], batches: list[str]) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--collect-only", *asked]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert re.findall(r"\[(\d+-\d+)\]", ran.stdout) == batches


# --- a run of its own -----------------------------------------------------------------------------------------------------------------

SUITE = {
    "queue/test_of_the_core.py": """
        import socket, subprocess, sys

        def test_that_stays_inside(): pass
        def test_that_listens():
            with socket.socket() as opened: opened.bind(("127.0.0.1", 0))
    """,
    "handlers/test_of_the_edges.py": """
        import socket, subprocess, sys
        import pytest

        def test_that_listens():
            with socket.socket() as opened: opened.bind(("127.0.0.1", 0))
        def test_that_starts_a_process(): subprocess.run([sys.executable, "-c", ""], check=True)
        @pytest.mark.parametrize("case", range(3))
        def test_that_wants_more(case): pytest.skip("needs a moon")
    """,
    "kubectl/test_reading.py": """
        import subprocess, sys

        def test_that_starts_a_process(): subprocess.run([sys.executable, "-c", ""], check=True)
    """,
    "kubectl/test_of_something_else.py": "def test_that_is_left(): pass",
    "kubectl/test_tutorial.py": "def test_that_is_chosen(): pass",
    "faults/test_soak.py": "def test_that_is_left(): pass",
}


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A small suite under `tests`, with the plugin that the real one has."""
    for name, text in SUITE.items():
        file = pytester.path / "tests" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        lines = text.splitlines()
        file.write_text("\n".join(line.removeprefix("        ") for line in lines))
    pytester.makeconftest("""
        import tiers

        def pytest_addoption(parser):
            parser.addoption("--all", action="store_true")

        def pytest_configure(config):
            for tier in tiers.TIERS: config.addinivalue_line("markers", tier)
            config.pluginmanager.register(tiers.Tiers(every_test=config.getoption("--all")))
    """)
    monkeypatch.setenv("PYTHONPATH", str(TESTS))  # for workers
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # what other plugins are installed costs a second a run
    return pytester


@pytest.mark.parametrize("workers", [(), ("-p", "xdist", "-n", "2")], ids=["one process", "two workers"])
def test_a_run_says_what_it_ran_what_it_left_and_why_it_skipped(suite: pytest.Pytester, workers: tuple[str, ...]) -> None:
    ran = suite.runpytest_inprocess("-q", "-p", "no:cacheprovider", *workers)
    lines = [re.sub(r" \(\d+ s of work\)", "", line) for line in ran.outlines]
    assert "tiers: unit 2, server 2, process 1 of 2, long 1 of 2" in lines
    assert "left for `make test-all`: 1 process and 1 long" in lines
    assert "skipped: 3: needs a moon" in lines


@pytest.mark.parametrize(
    ("asked", "soak", "left"),
    [
        (("tests/faults", "tests/kubectl"), 0, ["left for `make test-all`: 1 process and 1 long"]),
        (("--all",), 1, []),
        (("tests/faults/test_soak.py",), 1, []),
        (("tests/faults/test_soak.py::test_that_is_left",), 1, []),
    ],
    ids=["rooms", "all", "a file", "a test"],
)
def test_slow_tests_run_where_they_are_named_or_all_are_asked_for(
    suite: pytest.Pytester, asked: tuple[str, ...], soak: int, left: list[str]
) -> None:
    ran = suite.runpytest_inprocess("-v", "-p", "no:cacheprovider", *asked)
    assert sum("test_soak.py::test_that_is_left PASSED" in line for line in ran.outlines) == soak
    assert [line for line in ran.outlines if line.startswith("left for")] == left


def test_a_test_that_opens_what_its_tier_must_not_fails(suite: pytest.Pytester) -> None:
    ran = suite.runpytest_inprocess("-p", "no:cacheprovider", "-rE", "--all")
    failed = {line.partition(" - ")[0] for line in ran.outlines if line.startswith("ERROR tests")}
    assert failed == {
        "ERROR tests/queue/test_of_the_core.py::test_that_listens",
        "ERROR tests/handlers/test_of_the_edges.py::test_that_starts_a_process",
    }
    assert "a test of tier 'unit' caused socket.bind (tests/tiers.py)" in ran.stdout.str()


@pytest.mark.parametrize("tier", TIERS)
def test_a_tier_can_be_asked_for(suite: pytest.Pytester, tier: str) -> None:
    ran = suite.runpytest_inprocess("-q", "-p", "no:cacheprovider", "-m", tier)
    assert any(line.startswith(f"tiers: {tier} ") and "," not in line for line in ran.outlines)
