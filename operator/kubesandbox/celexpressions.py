"""CEL expressions of definitions, compiled: what they may name, and what they come to.

The library (docs/decisions/0012) evaluates without declared types, so it takes what a real API server's type check refuses, such as a
number compared with a word. Functions that Kubernetes adds to the language are here as far as `_ADDED` goes; others are refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import cel

_MACRO: Final = re.compile(r"\.(?:all|exists|exists_one|existsOne|filter|map)\(\s*([A-Za-z_]\w*)\s*,")
_BOUND: Final = re.compile(r"\bcel\.bind\(\s*([A-Za-z_]\w*)\s*,")
#: What conditions on devices may name: the device, and where functions of Kubernetes' libraries live.
_SELECTOR_NAMES: Final = frozenset({"device", "cel", "sets", "math", "base64", "optional", "lists", "strings"})
_NAME: Final = re.compile(r"[A-Za-z]\w*")
#: Functions of the language itself.
_STANDARD: Final = frozenset(
    {"size", "contains", "startsWith", "endsWith", "matches", "type", "string", "bytes", "int", "uint", "double", "bool"}
    | {"duration", "timestamp", "has", "dyn", "hasValue", "value", "orValue"}
    | {"getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getHours", "getMinutes", "getSeconds"}
)
#: What Kubernetes adds and rules use most.
_ADDED: Final[Mapping[str, Callable[..., Any]]] = MappingProxyType(
    {
        "trim": str.strip,
        "lowerAscii": str.lower,
        "upperAscii": str.upper,
        "indexOf": lambda whole, part: whole.find(part) if isinstance(whole, str) else _index(whole, part),
        "split": str.split,
        "replace": str.replace,
        "join": lambda parts, between="": between.join(parts),
        "isSorted": lambda items: items == sorted(items),
        "sum": sum,
    }
)


class ExpressionError(Exception):
    """An expression that cannot be compiled, or could not be evaluated on some value; the text says why, in one line."""


class Expression:
    """One compiled expression over `self` and `oldSelf`.

    Attributes:
        source: as written.
        compares: it looks at `oldSelf`, so it can only be asked about a change.
    """

    def __init__(self, source: str) -> None:
        import cel  # noqa: PLC0415 - takes a sixth of a second, and most definitions have no rules

        self.source = source
        try:
            self._program: cel.Program = cel.compile(source)
        except ValueError as error:
            raise ExpressionError(_one_line(str(error).partition(": ")[2] or str(error))) from None
        names = set(self._program.variables())
        self.compares = "oldSelf" in names
        _refuse_undeclared(names - {"self", "oldSelf"} - set(_MACRO.findall(source)))
        _refuse_unknown({name for name in self._program.functions() if _NAME.fullmatch(name)} - _STANDARD - _ADDED.keys())

    def evaluate(self, variables: Mapping[str, Any]) -> Any:
        """The value; raise `ExpressionError` where the language has none (a missing key, an overflow)."""
        import cel  # noqa: PLC0415 - see above

        try:
            return self._program.execute(cel.Context(dict(variables), dict(_ADDED)))
        except KeyError as error:
            raise ExpressionError(f"no such key: {error.args[0]}") from None
        except Exception as error:  # noqa: BLE001 - whatever the library raises, a rule must not take the server down
            raise ExpressionError(_one_line(str(error))) from None


@cache
def expression(source: str) -> Expression:
    """The compiled expression, compiled once however many definitions have it. Raises `ExpressionError`."""
    return Expression(source)


def check_selector(source: str) -> None:
    """Raises `ExpressionError` unless it compiles as a condition on a device; what its functions are is left to who evaluates it."""
    import cel  # noqa: PLC0415 - see above

    try:
        program: cel.Program = cel.compile(source)
    except ValueError as error:
        raise ExpressionError(f"ERROR: {_one_line(str(error).partition(': ')[2] or str(error))}") from None
    _refuse_undeclared(set(program.variables()) - _SELECTOR_NAMES - set(_MACRO.findall(source)) - set(_BOUND.findall(source)))


def _refuse_undeclared(names: set[str]) -> None:
    if names:
        raise ExpressionError(f"ERROR: undeclared reference to '{min(names)}' (in container '')")


def _refuse_unknown(functions: set[str]) -> None:
    if functions:
        raise ExpressionError(f"ERROR: the sandbox does not have the function '{min(functions)}' (in container '')")


def _index(items: list[Any], item: Any) -> int:
    return items.index(item) if item in items else -1


def _one_line(text: str) -> str:
    return " ".join(text.split())
