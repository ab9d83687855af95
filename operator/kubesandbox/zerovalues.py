"""Null where a value belongs: a server that decodes into typed structs takes it for the zero value of the type, and so does this one."""

from __future__ import annotations

import re
from typing import Any

_NULL = re.compile(r"Expected `([a-z]+).*`, got `null` - at `(?:key in )?\$(.*)`")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_ZEROS = {"object": dict, "array": list, "str": str, "int": int, "float": float, "bool": bool}


def fill_null(body: Any, complaint: str) -> bool:
    """Mends in place what msgspec complains of, if that is a null: True where it did.

    A field goes; an entry of a list or of a map becomes the zero value of its type, and so do all nulls beside it.
    """
    found = _NULL.match(complaint)
    zero = _ZEROS.get(found[1]) if found else None
    if found is None or zero is None:
        return False
    steps = [name or index for name, index in _STEP.findall(found[2])]
    if not steps:
        return False
    mended = [_fill(parent, steps[-1], zero) for parent in _reached([body], steps[:-1])]
    return any(mended)


def _reached(values: list[Any], steps: list[str]) -> list[Any]:
    """What stands at a path; `...` is every entry, because msgspec does not say of which."""
    for step in steps:
        values = [inner for value in values for inner in _inside(value, step)]
    return values


def _inside(value: Any, step: str) -> list[Any]:
    if isinstance(value, list):
        return value if step == "..." else value[int(step) : int(step) + 1]
    if isinstance(value, dict):
        return list(value.values()) if step == "..." else [value[step]] if step in value else []
    return []


def _fill(parent: Any, step: str, zero: type) -> bool:
    if isinstance(parent, list):
        places: list[Any] = [at for at, each in enumerate(parent) if each is None]
    elif isinstance(parent, dict) and step == "...":
        places = [key for key, each in parent.items() if each is None]
    else:
        return isinstance(parent, dict) and parent.pop(step, parent) is None
    for place in places:
        parent[place] = zero()
    return bool(places)
