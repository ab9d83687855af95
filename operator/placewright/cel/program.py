"""Compiles CEL expressions, and evaluates them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from placewright.cel.functions import FUNCTIONS
from placewright.cel.respelled import Respelling, bound_names, respelt
from placewright.cel.syntax import Brackets, ExpressionError

if TYPE_CHECKING:
    import cel

#: Functions of the language itself. Operators are no words, so they need no entry.
_STANDARD: Final = frozenset(
    {"contains", "startsWith", "endsWith", "matches", "type", "string", "bytes", "int", "uint", "double", "dyn", "has"}
    | {"duration", "timestamp"}
)
_TYPES: Final = frozenset({"int", "uint", "double", "bool", "string", "bytes", "list", "map", "null_type", "type"})
DOES_NOT_COMPILE: Final = "does not compile: "


@dataclass(frozen=True, slots=True)
class Environment:
    """The names that the expressions of one user may use.

    Attributes:
        variables: names of variables.
        functions: functions that this user adds to `FUNCTIONS`.
        standard: functions of the language that not every user allows.
        respellings: respelling of each name; a loop cannot give such a name to another value.
    """

    variables: frozenset[str]
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    standard: frozenset[str] = frozenset()
    respellings: Mapping[str, Respelling] = field(default_factory=dict)


class Program:
    """One compiled expression.

    Args:
        expression: the parsed expression.
        environment: names that it may use.

    Attributes:
        variables: variables of the environment that it names.
        functions: all functions that it calls.
        undeclared: variables that it names and the environment does not have; the caller refuses them in its own words.
        unknown: functions that do not exist, which the caller refuses, too.

    Raises:
        ExpressionError: it does not compile.
    """

    def __init__(self, expression: Brackets, environment: Environment) -> None:
        import cel  # noqa: PLC0415 - takes a sixth of a second, and most clusters have no expressions

        logging.getLogger("cel").setLevel(logging.ERROR)  # it warns of each runtime error, which we report ourselves
        bound = bound_names(expression)
        hidden = bound & environment.respellings.keys()
        if hidden:
            raise ExpressionError(f"the name {min(hidden)} cannot be given to something else")
        try:
            self._program: cel.Program = cel.compile(respelt(expression, environment.respellings))
        except ValueError as error:
            raise ExpressionError(DOES_NOT_COMPILE + one_line(str(error).partition(": ")[2] or str(error))) from None
        named = set(self._program.variables())
        self.variables = named & environment.variables
        self.undeclared = named - bound - _TYPES - environment.variables
        self.functions = {name for name in self._program.functions() if name.isidentifier()}
        known = {**FUNCTIONS, **environment.functions}
        self.unknown = {name for name in self.functions if not name.startswith("_")} - _STANDARD - environment.standard - known.keys()
        #: Only functions that it calls: handing over all of them takes longer than most evaluations.
        self._functions = {name: function for name, function in known.items() if name in self.functions}

    def evaluate(self, variables: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]] | None = None) -> Any:
        """Evaluate the expression.

        Args:
            variables: values of variables by name; variables that are not in `self.variables` only cost time.
            functions: functions by name that differ from one evaluation to the next.

        Returns:
            The value, in Python's types.

        Raises:
            ExpressionError: there is no value (a missing key, an overflow).
        """
        import cel  # noqa: PLC0415 - see above

        try:
            return self._program.execute(cel.Context(dict(variables), {**self._functions, **(functions or {})}))
        except KeyError as error:
            raise ExpressionError(f"no such key: {error.args[0]}") from None
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - the library raises many types, each for an error of the expression
            raise ExpressionError(one_line(str(error))) from None


def one_line(text: str) -> str:
    """Join the lines of a text.

    Returns:
        The text, with single blanks.
    """
    return " ".join(text.split())
