"""What docs/plugins.md shows works as it stands there."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from markdown_it import MarkdownIt

DOCUMENT = Path(__file__).parents[2] / "docs" / "plugins.md"
#: Plugins of the page, by the module that it names.
TAUGHT = ("maintenance", "fewpods", "quiet_nodes")


def files() -> dict[str, str]:
    """Blocks of Python by the name in their first line: `# quiet_nodes.py`."""
    tokens = MarkdownIt().parse(DOCUMENT.read_text(encoding="utf-8"))
    blocks = [token.content for token in tokens if token.type == "fence" and token.info == "python"]
    return {match[1]: block for block in blocks if (match := re.match(r"# (\w+)\.py\n", block))}


def written_tests() -> Iterator[Any]:
    for name in TAUGHT:
        for test in re.findall(r"^def (test_\w+)", files()[f"test_{name}"], re.MULTILINE):
            yield pytest.param(name, test, id=test)


@pytest.fixture
def taught(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], dict[str, Any]]:
    """Runs the page's module, then its test file; what the latter defines."""

    def run(name: str) -> dict[str, Any]:
        module = ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
        exec(compile(files()[name], f"{name}.py", "exec", dont_inherit=True), module.__dict__)
        found: dict[str, Any] = {}
        exec(compile(files()[f"test_{name}"], f"test_{name}.py", "exec", dont_inherit=True), found)
        return found

    return run


@pytest.mark.parametrize(("name", "test"), list(written_tests()))
def test_a_test_of_the_page_passes(name: str, test: str, taught: Callable[[str], dict[str, Any]]) -> None:
    taught(name)[test]()


def test_the_page_teaches_a_filter_a_score_and_one_with_arguments_and_checks_each() -> None:
    assert list(files()) == [each for name in TAUGHT for each in (name, f"test_{name}")]
    assert [len(re.findall("check_plugin\\(", files()[f"test_{name}"])) for name in TAUGHT] == [1, 1, 1]
