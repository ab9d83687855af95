"""In tests `pod`, `node`, `claim` and `profile` are the kit's makers. A maker with a room's own defaults has a name of its own: `a_pod`."""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).parents[1]
NAMES = {name + ending for name in ("pod", "node", "claim", "profile") for ending in ("", "s")}


def private_makers(text: str) -> list[str]:
    """Return names of functions of the module that hide the kit's. A fixture is an object, not a maker."""
    if not any(f"def {name}(" in text for name in NAMES):
        return []
    functions = [each for each in ast.parse(text).body if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return [each.name for each in functions if each.name in NAMES and not any("fixture" in ast.unparse(of) for of in each.decorator_list)]


def test_a_maker_of_the_module_is_found_and_methods_and_fixtures_are_not() -> None:
    text = "def pod(name): ...\nasync def nodes(): ...\nclass A:\n    def node(self): ...\n@pytest.fixture\ndef profiles(): ...\n"
    assert private_makers(text) == ["pod", "nodes"]


def test_no_module_of_tests_has_a_maker_of_the_name_of_one_of_the_kit() -> None:
    found = {str(path.relative_to(TESTS)): private_makers(path.read_text()) for path in TESTS.rglob("*.py")}
    assert {path: names for path, names in found.items() if names} == {}
