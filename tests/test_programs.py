"""What a run leaves out for want of a program: found where it is, missed in one way, and nowhere in other words."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import contract.conftest
import e2e.test_same_sequences
import programs
from programs import PROGRAMS, find, missing, needs, needs_alpha_gates, not_on_this_server, optional_module, program

TESTS = Path(__file__).parent


def installed(folder: Path, name: str) -> Path:
    file = folder / name
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    return file


def test_a_program_is_found_on_the_search_path_by_the_first_of_its_names(tmp_path: Path) -> None:
    environ = {"PATH": str(tmp_path)}
    assert find("chromium", environ) is None
    later = installed(tmp_path, "google-chrome")
    assert find("chromium", environ) == str(later)
    first = installed(tmp_path, "chromium")
    assert find("chromium", environ) == str(first)


def test_a_variable_names_another_binary_and_then_no_other_is_taken(tmp_path: Path) -> None:
    on_path, other = installed(tmp_path, "kubectl"), installed(tmp_path, "kubectl-1.20")
    environ = {"PATH": str(tmp_path)}
    assert find("kubectl", environ) == find("kubectl", environ | {"KUBECTL": ""}) == str(on_path)
    assert find("kubectl", environ | {"KUBECTL": str(other)}) == str(other)
    assert find("kubectl", environ | {"KUBECTL": str(tmp_path / "none")}) is None


def test_what_is_installed_beside_python_is_not_sought_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, "hadolint")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nowhere" / "python"))
    assert find("hadolint", {"PATH": str(tmp_path)}) is None
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert find("hadolint", {"PATH": ""}) == str(tmp_path / "hadolint")


@pytest.mark.parametrize("name", PROGRAMS)
def test_mark_and_fixture_give_the_same_reason(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "find", lambda _: None)
    mark = needs(name).mark
    assert (mark.args, mark.kwargs) == ((True,), {"reason": missing(name)})
    with pytest.raises(pytest.skip.Exception, match=rf"^{name} is not installed \(") as skipped:
        program(name)
    assert skipped.value.msg == missing(name)


def test_with_the_program_nothing_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "find", lambda _: "/bin/it")
    assert needs("kubectl").mark.args == (False,)
    assert program("kubectl") == "/bin/it"


def test_a_module_that_is_missing_is_missed_in_the_same_way() -> None:
    assert optional_module("ast") is ast
    with pytest.raises(pytest.skip.Exception, match=r"^no_such_module is not installed \(pip install no_such_module\)$"):
        optional_module("no_such_module")


def test_what_a_real_server_cannot_be_asked_names_the_server() -> None:
    with pytest.raises(pytest.skip.Exception, match=r"^not on this real API server: it is old$"):
        not_on_this_server("it is old")


@pytest.mark.parametrize(
    ("module", "fixture", "asks", "version", "since"),
    [
        (contract.conftest.__name__, "alpha_plane", "control_plane", "SimpleNamespace(assets=SimpleNamespace(minor=20))", 33),
        (e2e.test_same_sequences.__name__, "groups", "minor", "20", 36),
    ],
    ids=["contract", "e2e"],
)
def test_on_older_programs_one_line_says_that_the_second_server_was_not_started(
    module: str, fixture: str, asks: str, version: str, since: int, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(f"""
        from types import SimpleNamespace
        import pytest
        from {module} import {fixture} as second

        @pytest.fixture(scope="session")
        def {asks}(): return {version}

        def test_of_what_is_alpha(second): pass
        def test_of_more_that_is_alpha(second): pass
    """)
    ran = pytester.runpytest_inprocess("-q", "-rs", "-p", "no:cacheprovider")
    said = {line.partition(": ")[2] for line in ran.outlines if line.startswith("SKIPPED")}
    assert said == {f"not on this real API server: the second server with alpha gates was not started (programs 1.20 < 1.{since})"}
    assert set(ran.parseoutcomes()) == {"skipped"}


@pytest.mark.parametrize("minor", [33, 34, 36])
def test_programs_with_the_gates_skip_nothing(minor: int) -> None:
    try:
        needs_alpha_gates(minor, 33)
    except pytest.skip.Exception as skipped:
        pytest.fail(f"1.{minor} has the gates of 1.33: {skipped}")


def test_the_page_on_tests_says_what_goes_without_each_program() -> None:
    page = (TESTS.parent / "docs" / "tests.md").read_text(encoding="utf-8")
    table = page.partition("| program |")[2].partition("\n\n")[0]
    rows = [line.split("|")[1] for line in table.splitlines()[2:]]
    assert sorted(re.findall(r"`(\w+)`", " ".join(rows))) == sorted(PROGRAMS)


def skips() -> Iterator[str]:
    """`file: line` of everything in the tests that skips by itself."""
    texts = {file: file.read_text(encoding="utf-8") for file in sorted(TESTS.rglob("*.py"))}
    for file, text in texts.items():
        for node in ast.walk(ast.parse(text)) if "skip" in text else ():
            if isinstance(node, ast.Attribute) and node.attr in {"skip", "skipif", "importorskip"} and "pytest" in ast.unparse(node.value):
                yield f"{file.relative_to(TESTS)}: {node.lineno}"


def test_no_test_is_skipped_but_for_a_program_a_platform_or_a_real_server() -> None:
    """A reason of another kind would be a test that never runs."""
    assert {place.partition(":")[0] for place in skips()} == {"programs.py", Path(__file__).name}
