"""Finds the objects that Python reaches from some roots, and the ways to texts among them: the holder of an object that should be gone."""

from __future__ import annotations

import gc
import sys
from collections import Counter, deque
from collections.abc import Iterable
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, Final

#: Of a function its closure, defaults and attributes count, and not the module that it belongs to.
_PASSED_OVER: Final = (CodeType, BuiltinFunctionType)
_ROOM: Final = "placewright"


class Reached:
    """The objects that are reached from roots and from the variables of all modules of ours.

    Attributes:
        kinds: number of objects by the name of their type.
    """

    def __init__(self, roots: Iterable[object]) -> None:
        """Walk.

        Args:
            roots: such as a scheduler.
        """
        gc.collect()
        self._found: dict[int, tuple[Any, int]] = {}
        ours = [module for name, module in sys.modules.items() if name.split(".")[0] == _ROOM]
        waiting = deque[tuple[Any, int]]((each, 0) for each in (*roots, *(vars(module) for module in ours)))
        while waiting:
            item, parent = waiting.popleft()
            if id(item) in self._found or isinstance(item, _PASSED_OVER):
                continue
            self._found[id(item)] = (item, parent)
            if isinstance(item, ModuleType) or (isinstance(item, type) and item.__module__.split(".")[0] != _ROOM):
                continue
            parts = _parts_of(item) if isinstance(item, FunctionType) else gc.get_referents(item)
            waiting.extend((part, id(item)) for part in parts)
        self.kinds = Counter(type(item).__qualname__ for item, _ in self._found.values())

    def ways_to(self, text: str) -> list[str]:
        """Find the texts that contain a text.

        Args:
            text: only the objects in question have it.

        Returns:
            For each, the types on the way to it.
        """
        mark = text.encode()
        found = [
            item
            for item, _ in self._found.values()
            if (isinstance(item, str) and text in item) or (isinstance(item, (bytes, bytearray)) and mark in item)
        ]
        return sorted({self._way_to(item) for item in found})

    def _way_to(self, item: object) -> str:
        names, at = list[str](), id(item)
        while at:
            each, at = self._found[at]
            names.append(type(each).__qualname__)
        return " < ".join([repr(item)[:60], *names[1:]])


def _parts_of(function: FunctionType) -> list[object]:
    return [function.__closure__, function.__defaults__, function.__kwdefaults__, function.__dict__]
