"""The engine is built once: no part of it is set later, and none from outside. What hears it is an argument of its build."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import placewright
from placewright.engine import decidingpart, engine, leadingpart, readingpart, writingpart

PACKAGE = Path(placewright.__file__).parent
#: The rooms from which the engine, or a part of it, can be reached.
ROOMS = ("cli", "serving", "observability", "handlers", "engine", "leadership", "explain", "shadow")
#: Names under which modules hold the engine and its parts.
PARTS = {
    "engine", "scheduler", "queue", "nominator", "observers", "detail", "event_handlers", "shadows", "client", "claims", "lease",
    "profiles", "history", "reconcile_loop", "discovery", "unclaimed", "takeover", "plugin_watch", "reflectors",
    "leading", "writing", "deciding", "reading", "binder", "marks", "forgotten",
}  # fmt: skip
#: How a list, a set or a mapping is changed in place.
CHANGES = {"append", "insert", "extend", "remove", "pop", "clear", "add", "discard", "update", "setdefault"}


def name_of(node: ast.expr) -> str:
    """The last word of a name or of an attribute: `queue` of `self._engine.queue`."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.lstrip("_")
    return ""


def targets(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.Assign(targets=found) | ast.Delete(targets=found):
            return [each for one in found for each in (one.elts if isinstance(one, ast.Tuple) else [one])]
        case ast.AugAssign(target=found) | ast.AnnAssign(target=found):
            return [found]
    return []


def set_from_outside(tree: ast.AST) -> Iterator[str]:
    """`engine.queue.timed = hints` and `engine.observers.members.append(log)`, and what else changes an attribute of a part."""
    for node in ast.walk(tree):
        changed = targets(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES:
            changed = [] if name_of(node.func.value) in PARTS else [node.func.value]  # a method of a part is for its callers
        for target in changed:
            inner = target.value if isinstance(target, ast.Subscript) else target
            if isinstance(inner, ast.Attribute) and name_of(inner.value) in PARTS:
                yield f"{node.lineno}: {ast.unparse(node)}"  # type: ignore[attr-defined]


def own(tree: ast.Module, methods: bool) -> set[str]:
    """Attributes of `self` that the last class gives a value: in its `__init__`, or in all other `methods`."""
    *_, made = (node for node in tree.body if isinstance(node, ast.ClassDef))
    functions = [node for node in made.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {
        target.attr
        for function in functions
        if (function.name != "__init__") == methods
        for node in ast.walk(function)
        if not isinstance(node, ast.AnnAssign) or node.value is not None
        for target in targets(node)
        if isinstance(target, ast.Attribute) and name_of(target.value) == "self"
    }


def test_no_part_of_an_engine_is_set_from_another_module() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{where}"
        for room in ROOMS
        for path in sorted((PACKAGE / room).rglob("*.py"))
        for where in set_from_outside(ast.parse(path.read_text()))
    ]
    assert not found, "\n".join(found)


def test_the_search_finds_what_it_is_for() -> None:
    wrong = "engine.queue.timed = x\nself._engine.observers.members.append(log)\nengine.stopwatch = x\nself._engine.profiles.seen[0] = 1"
    assert len(list(set_from_outside(ast.parse(wrong)))) == 4
    right = "memo.engine = engine\nself.queue = SchedulingQueue()\nself._said.append(engine.queue)\nengine.profiles.apply(profile)"
    assert not list(set_from_outside(ast.parse(right)))


@pytest.mark.parametrize("module", [engine, leadingpart, writingpart, decidingpart, readingpart], ids=lambda module: module.__name__)
def test_every_attribute_of_an_engine_and_its_parts_has_its_value_when_it_is_built(module: ModuleType) -> None:
    tree = ast.parse(Path(str(module.__file__)).read_text())
    assert own(tree, methods=True) <= own(tree, methods=False)
    declared = {
        node.target.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.AnnAssign) and node.value is None and isinstance(node.target, ast.Attribute)
    }
    assert not declared
