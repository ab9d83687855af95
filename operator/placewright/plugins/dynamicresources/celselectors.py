"""Selectors of device classes and claims: CEL expressions over `device`, compiled once and asked once per distinct device."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

from placewright.api.devices import Device, DeviceAttribute
from placewright.plugins.dynamicresources.celbounds import steps_of
from placewright.plugins.dynamicresources.celfunctions import FUNCTIONS, quantity_value, version_value
from placewright.plugins.dynamicresources.celspelling import DEVICE, DOMAIN_OF, bound_names, respell
from placewright.plugins.dynamicresources.celtokens import ExpressionError, tree

if TYPE_CHECKING:
    import cel

_LONGEST_SHOWN: Final = 160
_MOST_EXPRESSIONS: Final = 1024
_MOST_VERDICTS: Final = 256
#: Two seconds, which most selectors need for a hundred thousand devices that all differ.
MOST_STEPS_IN_ALL: Final = 20_000_000
#: Functions of the language itself; operators have names that are no words.
_STANDARD: Final = frozenset(
    {"contains", "startsWith", "endsWith", "matches", "type", "string", "bytes", "int", "uint", "double", "dyn", "has"}
    | {"duration", "timestamp"}
)
_TYPES: Final = frozenset({"int", "uint", "double", "bool", "string", "bytes", "list", "map", "null_type", "type"})

Values = dict[str, dict[str, Any]]


class Shape:
    """What expressions can tell of a device; devices that look the same share one.

    Attributes:
        problem: why no expression can be evaluated on such a device, or nothing.
    """

    __slots__ = ("__weakref__", "_attributes", "_capacity", "_device", "_verdicts", "problem")

    def __init__(self, driver: str, device: Device) -> None:
        self.problem = ""
        self._attributes: Values = {}
        self._capacity: Values = {}
        try:
            self._attributes = _by_domain(driver, {name: _value(each) for name, each in (device.attributes or {}).items()})
            self._capacity = _by_domain(driver, {name: quantity_value(each.value) for name, each in (device.capacity or {}).items()})
        except ValueError as error:
            self.problem = str(error)
        several = bool(device.allow_multiple_allocations)
        self._device = {
            "driver": driver,
            "attributes": self._attributes,
            "capacity": self._capacity,
            "allowMultipleAllocations": several,
        }
        self._verdicts: dict[str, bool | str] = {}

    def matches(self, expression: Expression) -> bool | str:
        """Whether a device like this is selected, or why that cannot be said; kept."""
        verdict = self._verdicts.get(expression.source)
        if verdict is None:
            if len(self._verdicts) >= _MOST_VERDICTS:
                self._verdicts.clear()
            verdict = self._verdicts[expression.source] = self.problem or self._ask(expression)
        return verdict

    def _ask(self, expression: Expression) -> bool | str:
        domains = {DOMAIN_OF["attributes"]: self._attributes_of, DOMAIN_OF["capacity"]: self._capacity_of}
        try:
            return expression.evaluate(self._device, domains)
        except ExpressionError as error:
            return str(error)

    def _attributes_of(self, domain: str) -> dict[str, Any]:
        return self._attributes.get(domain, {})

    def _capacity_of(self, domain: str) -> dict[str, Any]:
        return self._capacity.get(domain, {})


class Shapes:
    """The shapes of all devices that there are."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[tuple[Any, ...], Shape] = WeakValueDictionary()

    def of(self, driver: str, device: Device) -> Shape:
        """The shape of a device."""
        attributes = tuple(sorted((name, _key(each)) for name, each in (device.attributes or {}).items()))
        capacity = tuple(sorted((name, str(each.value)) for name, each in (device.capacity or {}).items()))
        key = (driver, bool(device.allow_multiple_allocations), attributes, capacity)
        shape = self._known.get(key)
        if shape is None:
            shape = self._known[key] = Shape(driver, device)
        return shape


class OutOfSteps(Exception):
    """Selectors took too long on all devices together; what was answered is kept, so another attempt gets further."""

    def __init__(self) -> None:
        super().__init__(f"selectors take more than {MOST_STEPS_IN_ALL} steps on all devices together; the rest is for the next attempt")


class Effort:
    """Steps that evaluations may still take, of all expressions on all devices, before `renew` is called."""

    def __init__(self) -> None:
        self._left = MOST_STEPS_IN_ALL

    def renew(self) -> None:
        """Begin to count anew."""
        self._left = MOST_STEPS_IN_ALL

    def spend(self, steps: int) -> None:
        """Raises `OutOfSteps` when there are not as many."""
        if steps > self._left:
            raise OutOfSteps
        self._left -= steps


class Expression:
    """One compiled expression; raises `ExpressionError` for what does not compile, costs too much, or is not supported.

    Attributes:
        steps: what one evaluation may take.
    """

    def __init__(self, source: str, effort: Effort | None = None) -> None:
        import cel  # noqa: PLC0415 - takes a sixth of a second, and most clusters have no claims

        logging.getLogger("cel").setLevel(logging.ERROR)  # it warns of each runtime error, which we report ourselves
        self.source = source
        self._effort = Effort() if effort is None else effort
        read = tree(source)
        self.steps = steps_of(read)
        names = bound_names(read)
        try:
            self._program: cel.Program = cel.compile(respell(read))
        except ValueError as error:
            raise ExpressionError(f"does not compile: {_shortened(str(error).partition(': ')[2] or str(error))}") from None
        variables = set(self._program.variables())
        unknown = variables - names - _TYPES - {DEVICE}
        if unknown:
            raise ExpressionError(f"does not compile: undeclared reference to {min(unknown)}")
        functions = {name for name in self._program.functions() if name.isidentifier()}
        self._refuse_unknown(functions)
        #: Only what is needed is handed over, since that takes longer than most evaluations.
        self._functions = {name: function for name, function in FUNCTIONS.items() if name in functions}
        self._domains = functions & set(DOMAIN_OF.values())
        self._needs_device = DEVICE in variables

    def evaluate(self, device: Mapping[str, Any], domains: Mapping[str, Callable[..., Any]]) -> bool:
        """The answer for a device; raise `ExpressionError` where there is none (a missing key, no truth value), and `OutOfSteps`.

        Args:
            device: the variable.
            domains: functions that find what a device has in a domain, by name.
        """
        import cel  # noqa: PLC0415 - see above

        self._effort.spend(self.steps)
        functions = {**self._functions, **{name: domains[name] for name in self._domains}}
        try:
            answer = self._program.execute(cel.Context({DEVICE: device} if self._needs_device else {}, functions))
        except KeyError as error:
            raise ExpressionError(f"no such key: {error.args[0]}") from None
        except Exception as error:  # noqa: BLE001 - whatever the library raises is the expression's fault
            raise ExpressionError(_shortened(str(error))) from None
        if not isinstance(answer, bool):
            raise ExpressionError(f"evaluates to {type(answer).__name__}, must be true or false")
        return answer

    def _refuse_unknown(self, functions: set[str]) -> None:
        unknown = {name for name in functions if not name.startswith("_")} - _STANDARD - FUNCTIONS.keys()
        if unknown:
            first = min(unknown, key=lambda name: (self.source.find(name), name))
            raise ExpressionError(f"the function {first} is not supported")


class Expressions:
    """Compiled expressions, the most recently used `_MOST_EXPRESSIONS` of them; those that do not compile are remembered as well.

    Attributes:
        effort: what evaluating them may take.
    """

    def __init__(self) -> None:
        self.effort = Effort()
        self._known: dict[str, Expression | ExpressionError] = {}

    def get(self, source: str) -> Expression:
        """The compiled expression; raises `ExpressionError`."""
        known = self._known.pop(source, None) or self._compile(source)
        self._known[source] = known  # at the end: the first ones were used longest ago
        if len(self._known) > _MOST_EXPRESSIONS:
            del self._known[next(iter(self._known))]
        if isinstance(known, ExpressionError):
            raise known.with_traceback(None)
        return known

    def _compile(self, source: str) -> Expression | ExpressionError:
        try:
            return Expression(source, self.effort)
        except ExpressionError as error:
            return error


def _by_domain(driver: str, values: Mapping[str, Any]) -> Values:
    """Names without a domain belong to the driver's."""
    domains: Values = {}
    for name, value in values.items():
        domain, slash, identifier = name.partition("/")
        domains.setdefault(domain if slash else driver, {})[identifier if slash else name] = value
    return domains


def _value(attribute: DeviceAttribute) -> Any:
    if attribute.version is not None:
        return version_value(attribute.version)
    value = next((each for each in (attribute.number, attribute.truth, attribute.text) if each is not None), None)
    if value is None:
        raise ValueError("an attribute has a type that is not supported")
    return value


def _key(attribute: DeviceAttribute) -> tuple[str, ...]:
    """Hashable and sortable; tells 1 from true."""
    return tuple(repr(each) for each in (attribute.number, attribute.truth, attribute.text, attribute.version))


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_SHOWN else f"{line[:_LONGEST_SHOWN]}..."


__all__ = ["Effort", "Expression", "ExpressionError", "Expressions", "OutOfSteps", "Shape", "Shapes"]
