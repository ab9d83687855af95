"""What docs/plugins.md shows works as it stands there."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from types import ModuleType

import pytest
from markdown_it import MarkdownIt

DOCUMENT = Path(__file__).parents[2] / "docs" / "plugins.md"


def blocks(language: str) -> list[str]:
    tokens = MarkdownIt().parse(DOCUMENT.read_text(encoding="utf-8"))
    return [token.content for token in tokens if token.type == "fence" and token.info == language]


def test_the_example_passes_its_own_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin, tests, *_ = blocks("python")
    module = ModuleType("quiet_nodes")
    monkeypatch.setitem(sys.modules, "quiet_nodes", module)
    exec(compile(textwrap.dedent(plugin), "quiet_nodes.py", "exec", dont_inherit=True), module.__dict__)
    found: dict[str, object] = {}
    exec(compile(tests, "test_quiet_nodes.py", "exec", dont_inherit=True), found)
    written = [each for name, each in found.items() if name.startswith("test_") and callable(each)]
    assert len(written) == 2
    for test in written:
        test()
