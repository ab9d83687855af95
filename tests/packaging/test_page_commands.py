"""Every command of the documents is run by a test, or says why not: the rule of `kubectl/pages.py`, without running one."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubectl.page import blocks_of
from kubectl.pages import FOLLOWED, ROOT, lines_not_run, pages, problems, run_together


@pytest.mark.parametrize("page", pages())
def test_every_command_is_run_or_says_why_not(page: str) -> None:
    assert list(problems(ROOT / page)) == []


def test_a_page_is_followed_by_one_test() -> None:
    assert FOLLOWED.keys() <= set(pages())
    for page, test in FOLLOWED.items():
        assert Path(page).name in (ROOT / "tests" / test).read_text()
    assert {"README.md"} <= set(run_together())


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        ("```sh\nplacewright doctor --colour red\n```\n", "unrecognized arguments: --colour red"),
        ("<!-- not run: needs a moon -->\n```sh\nkubectl placewright explian web\n```\n", "invalid choice: 'explian'"),
        ("```sh\nX=1 .venv/bin/placewright version > f && make tset\n```\n", "no target 'tset'"),
        ("```console\n$ make test\n2 passed\n$ make tset\n```\n", "no target 'tset'"),
        ("```sh later\nmake test\n```\n", "no test knows the kind 'later'"),
        ("```\nmake test\n```\n", "commands are in ```sh"),
        ("```bash\nmake test\n```\n", "commands are in ```sh"),
        ("Run:\n\n    make test\n", "not in a fence at the line's begin: 'make test'"),
        ("1. Run:\n\n   ```sh\n   make test\n   ```\n", "not in a fence at the line's begin: '```sh'"),
    ],
)
def test_a_command_in_no_state_is_found(page: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(page)
    assert problem in next(problems(tmp_path / "page.md"))


def test_a_console_block_is_commands_with_what_each_prints(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("```console\n$ echo a \\\n    b\na b\n\n$ true\n```\n")
    found = [(block.line, block.commands, block.shown) for block in blocks_of(tmp_path / "page.md")]
    assert found == [(2, "echo a \\\n    b\n", "a b\n\n"), (2, "true\n", None)]


def test_real_commands_are_no_problem(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(
        "```sh refused\ncat > a <<'END'\nit's ours\nEND\nplacewright --help; placewright \\\n  validate a | grep b\n```\n"
        "```sh\nmake .venv/installed test ARGS=-x\n```\n"
        "```yaml\n\n    make tset\n```\n"
    )
    assert list(problems(tmp_path / "page.md")) == []


def test_each_reason_is_said_once() -> None:
    reasons = [line.split(": ")[1] for line in lines_not_run()]
    assert len(reasons) == len(set(reasons))
