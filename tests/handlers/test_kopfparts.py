"""What is replaced inside Kopf: the installed Kopf has it as known, it is put back, and nothing else of Kopf's inside is used."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import AsyncIterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import kopf
import pytest
from kopf._cogs.clients import api, watching
from kopf._core.reactor import queueing

import placewright
from placewright.handlers.kopfparts import JSON, STREAM, KopfPart

from .stage import Stage, operator


def part(**values: Any) -> KopfPart:
    """A part of a module that has these values, known where it is a number."""
    module = ModuleType("kopf_inside")
    vars(module).update(values)
    return KopfPart(module, "part", lambda value: isinstance(value, int))


def test_the_installed_kopf_has_its_stream_as_the_adapter_knows_it() -> None:
    """Fails when Kopf's stream of events moved or is called in another way: then see `kopfparts.py` and `docs/upstream/kopf.md`."""
    assert STREAM.module is watching
    assert STREAM.replaceable()
    assert queueing.watching is watching
    assert "watching.infinite_watch(" in inspect.getsource(queueing.watcher)


def test_the_installed_kopf_decodes_lines_as_the_adapter_knows_it() -> None:
    """Fails when Kopf's decoding of lines moved: then see `kopfparts.py`."""
    assert JSON.module is api
    assert JSON.replaceable()
    uses = {node.attr for node in ast.walk(ast.parse(inspect.getsource(api))) if _is_of_json(node)}
    assert uses == {"loads"}, "the stand-in has these names of `json`"


def _is_of_json(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "json"


def test_the_installed_kopf_lists_its_handlers_as_the_adapter_reads_them() -> None:
    registry = kopf.OperatorRegistry()
    for name in ("_watching", "_indexing", "_spawning", "_changing"):
        assert list(getattr(registry, name).get_all_handlers()) == []
        assert "resource" in inspect.signature(getattr(registry, name).has_handlers).parameters


def test_a_part_that_has_moved_or_changed_is_not_replaced() -> None:
    for moved in (part(), part(part="changed"), KopfPart(None, "part", lambda value: isinstance(value, int))):
        assert not moved.replaceable()
        before = vars(moved.module).copy() if moved.module else {}
        with moved.replaced(str) as done:
            assert not done
            assert (vars(moved.module) if moved.module else {}) == before


def test_a_stream_that_is_called_in_another_way_is_not_the_one_that_is_known() -> None:
    async def another(kind: str) -> AsyncIterator[str]:
        yield kind

    assert not KopfPart(SimpleNamespace(infinite_watch=another), "infinite_watch", STREAM._is_known).replaceable()  # type: ignore[arg-type]


def test_a_part_is_replaced_once_for_all_users_and_put_back_after_the_last() -> None:
    replaced = part(part=7)
    with replaced.replaced(lambda number: [number]):
        first = replaced.module.part  # type: ignore[union-attr]
        with replaced.replaced(lambda number: ["never", number]):
            assert replaced.module.part is first  # type: ignore[union-attr]
        assert replaced.module.part == [7]  # type: ignore[union-attr]
    assert replaced.module.part == 7  # type: ignore[union-attr]


def test_a_part_is_put_back_when_its_user_fails() -> None:
    replaced = part(part=7)
    with pytest.raises(ZeroDivisionError), replaced.replaced(str):
        raise ZeroDivisionError
    assert replaced.module.part == 7  # type: ignore[union-attr]


async def test_kopf_is_as_it_was_after_the_operator_has_ended(stage: Stage) -> None:
    kopfs = watching.infinite_watch
    async with operator(stage):
        await stage.until(lambda: stage.placed(*stage.pods(0)) and watching.infinite_watch is not kopfs)
        assert api.json is not json
    assert watching.infinite_watch is kopfs
    assert api.json is json


def test_no_other_module_imports_a_private_module_of_kopf() -> None:
    package = Path(placewright.__file__).parent
    importing = {
        str(file.relative_to(package))
        for file in package.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if any(name.startswith("kopf._") for name in _imported(node))
    }
    assert importing == {"handlers/kopfparts.py"}


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    return [each.name for each in node.names] if isinstance(node, ast.Import) else []
