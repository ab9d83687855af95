"""Selectors of device classes and claims: CEL expressions over `device`, compiled once and evaluated once per distinct device.

`device.attributes["domain"]` is an empty map for a domain that the device lacks. The expression is rewritten for that, so that it calls a
function of ours.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence, Sized
from typing import Any, Final
from weakref import WeakValueDictionary

from placewright.api.boundedcache import BoundedCache, forgets_unasked
from placewright.api.bytecount import sample
from placewright.api.devices import Device, DeviceAttribute
from placewright.api.quantity import nano
from placewright.cel.cost import ValueSizes, steps_of
from placewright.cel.program import DOES_NOT_COMPILE, Environment, Program
from placewright.cel.respelled import Respell
from placewright.cel.syntax import Brackets, ExpressionError, Item, Token, at, is_brackets, is_sign, name_of, tree
from placewright.cel.values import quantity_functions, quantity_value, version_value
from placewright.plugins.dynamicresources.effort import COMPILE, COMPILE_A_CHARACTER, StepBudget

#: Most steps for one device: two milliseconds.
MOST_STEPS: Final = 20_000
#: A device has no more values of attributes (ResourceSliceMaxAttributeValuesPerDevice), and fewer attributes and capacities. No text, name
#: with its domain, or number as text has more characters. A domain is passed with all its attributes.
_DEVICE_SIZES: Final = ValueSizes(entries=48, characters=96, maps=frozenset({"attributes", "capacity"}))
_LONGEST_SHOWN: Final = 160
_MOST_EXPRESSIONS: Final = 1024
#: Measured bytes of a compiled expression for each of its characters, and most bytes of all, for 256 Ki characters.
_BYTES_A_CHARACTER: Final = 60
_MOST_COMPILED_BYTES: Final = _BYTES_A_CHARACTER * 256 * 1024
#: Most verdicts that are kept of one shape of devices, and of all together. Each takes 50 bytes. Drivers decide how many shapes there are,
#: and tenants how many expressions.
_MOST_VERDICTS: Final = 256
_LEAST_VERDICTS: Final = 16
_MOST_VERDICTS_IN_ALL: Final = 1_000_000
_DEVICE: Final = "device"
_FIELDS: Final = ("driver", "attributes", "capacity", "allowMultipleAllocations")
_DOMAIN_OF: Final = {"attributes": "__attributes", "capacity": "__capacity"}

DeviceDomains = dict[str, dict[str, Any]]


class DeviceShape:
    """A device as expressions see it; equal devices share one.

    Attributes:
        problem: why no expression can be evaluated on such a device, or "".
    """

    __slots__ = ("__weakref__", "_attributes", "_capacity", "_device", "_shapes", "_unasked", "_verdicts", "problem")

    def __init__(self, driver: str, device: Device, shapes: Sized = ()) -> None:
        """Convert a device. The verdicts of all `shapes` share one limit."""
        self.problem = ""
        self._shapes = shapes
        self._attributes: DeviceDomains = {}
        self._capacity: DeviceDomains = {}
        try:
            self._attributes = _by_domain(driver, {name: _value(each) for name, each in (device.attributes or {}).items()})
            self._capacity = _by_domain(driver, {name: quantity_value(nano(each.value)) for name, each in (device.capacity or {}).items()})
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
        #: Verdicts that were not asked for since the last `forget_unasked`.
        self._unasked: dict[str, bool | str] = {}

    def matches(self, selector: CompiledSelector) -> bool | str:
        """Return whether a device like this is selected, or why that is unknown; the verdict is kept."""
        verdict = self._verdicts.get(selector.source)
        if verdict is None:
            if len(self._verdicts) >= self._most_verdicts():
                self._verdicts.clear()
            verdict = self._unasked.get(selector.source)
            self._verdicts[selector.source] = verdict = (self.problem or self._ask(selector)) if verdict is None else verdict
        return verdict

    @property
    def nbytes(self) -> int:
        """Bytes of the verdicts."""
        kept = self._verdicts, self._unasked
        return sum(map(sys.getsizeof, (*kept, *(verdict for verdicts in kept for verdict in verdicts.values()))))

    def forget_unasked(self) -> None:
        """Drop the verdicts that were not asked for since the last call."""
        self._verdicts, self._unasked = {}, self._verdicts

    def _most_verdicts(self) -> int:
        return max(_LEAST_VERDICTS, min(_MOST_VERDICTS, _MOST_VERDICTS_IN_ALL // max(len(self._shapes), 1)))

    def _ask(self, selector: CompiledSelector) -> bool | str:
        domains = {_DOMAIN_OF["attributes"]: self._attributes_of, _DOMAIN_OF["capacity"]: self._capacity_of}
        try:
            return selector.evaluate(self._device, domains)
        except ExpressionError as error:
            return str(error)

    def _attributes_of(self, domain: str) -> dict[str, Any]:
        return self._attributes.get(domain, {})

    def _capacity_of(self, domain: str) -> dict[str, Any]:
        return self._capacity.get(domain, {})


class DeviceShapes:
    """The shapes of all devices."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[tuple[Any, ...], DeviceShape] = WeakValueDictionary()
        forgets_unasked(self)

    @property
    def nbytes(self) -> int:
        """Bytes of the verdicts on all shapes."""
        return round(sum([number * shape.nbytes for shape, number in sample(list(self._known.values()))]))

    def forget_unasked(self) -> None:
        """Have all shapes drop the verdicts that were not asked for since the last call."""
        for shape in list(self._known.values()):
            shape.forget_unasked()

    def of(self, driver: str, device: Device) -> DeviceShape:
        """Return the shape of a device."""
        attributes = tuple(sorted((name, repr(each)) for name, each in (device.attributes or {}).items()))
        capacity = tuple(sorted((name, str(each.value)) for name, each in (device.capacity or {}).items()))
        key = (driver, bool(device.allow_multiple_allocations), attributes, capacity)
        shape = self._known.get(key)
        if shape is None:
            shape = self._known[key] = DeviceShape(driver, device, self._known)
        return shape


class CompiledSelector:
    """One compiled selector; raises `ExpressionError` if it does not compile, costs too much, or is not supported.

    Attributes:
        source: text as written.
        steps: most steps of one evaluation.
    """

    def __init__(self, source: str, effort: StepBudget | None = None) -> None:
        self.source = source
        self._effort = StepBudget() if effort is None else effort
        read = tree(source)
        self.steps = steps_for_a_device(read)
        try:
            self._program = Program(read, _ENVIRONMENT)
        except ExpressionError as error:
            raise _shortened(error) from None
        if self._program.undeclared:
            raise ExpressionError(f"{DOES_NOT_COMPILE}undeclared reference to {min(self._program.undeclared)}")
        if unknown := self._program.unknown - set(_DOMAIN_OF.values()):
            first = min(unknown, key=lambda name: (source.find(name), name))
            raise ExpressionError(f"the function {first} is not supported")
        self._domains = self._program.functions & set(_DOMAIN_OF.values())

    def evaluate(self, device: Mapping[str, Any], domains: Mapping[str, Callable[..., Any]]) -> bool:
        """Evaluate the selector for a device. Raise `ExpressionError` if there is no answer, and `OutOfSteps`.

        There is none for a missing key, or if the value is no bool. `domains` has functions by name that find a device's values in a
        domain.
        """
        self._effort.spend(self.steps)
        try:
            answer = self._program.evaluate(
                {_DEVICE: device} if self._program.variables else {}, {name: domains[name] for name in self._domains}
            )
        except ExpressionError as error:
            raise _shortened(error) from None
        if not isinstance(answer, bool):
            raise ExpressionError(f"evaluates to {type(answer).__name__}, must be true or false")
        return answer


class CompiledSelectors:
    """Compiled expressions, the most recently used ones within the limits. Expressions that do not compile are kept as well.

    Attributes:
        effort: step budget of evaluations.
    """

    def __init__(self) -> None:
        self.effort = StepBudget()
        self._known: BoundedCache[str, CompiledSelector | str] = BoundedCache(
            _MOST_COMPILED_BYTES, most=_MOST_EXPRESSIONS, largest=_MOST_COMPILED_BYTES
        )

    def get(self, source: str) -> CompiledSelector:
        """Return the compiled expression. Raise `ExpressionError` or `OutOfSteps`."""
        known = self._known.get(source)
        if known is None:
            known = self._compile(source)
            self._known.put(source, known, _BYTES_A_CHARACTER * len(source))
        if isinstance(known, str):
            raise ExpressionError(known)  # a new one each time: a kept error would hold the frames that it passed
        return known

    def _compile(self, source: str) -> CompiledSelector | str:
        self.effort.spend(COMPILE + COMPILE_A_CHARACTER * len(source))
        try:
            return CompiledSelector(source, self.effort)
        except ExpressionError as error:
            return str(error)


def steps_for_a_device(selector: Brackets) -> int:
    """Return the most steps that one evaluation takes. Raise `ExpressionError` for more than `MOST_STEPS`."""
    steps = steps_of(selector, _DEVICE_SIZES)
    if steps > MOST_STEPS:
        advice = "use fewer loops, sums, patterns, and shorter texts"
        raise ExpressionError(f"may take {steps:.0e} steps for one device, at most {MOST_STEPS} are allowed: {advice}")
    return steps


def _by_domain(driver: str, values: Mapping[str, Any]) -> DeviceDomains:
    """Group values by domain; names without a domain belong to the driver's. A name with that domain goes before one without."""
    domains: DeviceDomains = {}
    for name, value in sorted(values.items(), key=lambda each: "/" in each[0]):
        domain, slash, identifier = name.partition("/")
        domains.setdefault(domain if slash else driver, {})[identifier if slash else name] = value
    return domains


def _value(attribute: DeviceAttribute) -> Any:
    if attribute.version is not None:
        return version_value(attribute.version)
    if attribute.versions is not None:
        return [version_value(each) for each in attribute.versions]
    alone = (attribute.number, attribute.truth, attribute.text)
    lists = (attribute.numbers, attribute.truths, attribute.texts)
    value = next((each for each in (*alone, *lists) if each is not None), None)
    if value is None:
        raise ValueError("an attribute has a type that is not supported")
    return list(value) if isinstance(value, tuple) else value


def _shortened(error: ExpressionError) -> ExpressionError:
    text = str(error)
    shown = _LONGEST_SHOWN + (len(DOES_NOT_COMPILE) if text.startswith(DOES_NOT_COMPILE) else 0)
    return error if len(text) <= shown else ExpressionError(f"{text[:shown]}...")


# --- how `device` is rewritten -----------------------------------------------------------------------------------------------------


def _respell_device(items: Sequence[Item], i: int, respell: Respell) -> tuple[list[Item], int]:
    """Rewrite `device.field`, and a domain of it if one is named."""
    field = name_of(at(items, i + 2)) if is_sign(at(items, i + 1), ".") else ""
    if field not in _FIELDS:
        raise ExpressionError(f"device can only be used as {', '.join(f'device.{name}' for name in _FIELDS)}")
    plain = list(items[i : i + 3])
    function = _DOMAIN_OF.get(field)
    if function is None:
        return plain, 3
    index, name, call = at(items, i + 3), name_of(at(items, i + 4)), at(items, i + 5)
    if isinstance(index, Brackets) and index.opening == "[":
        return [Token("name", function), Brackets("(", respell(index.items))], 4
    if is_sign(index, ".") and name and not is_brackets(call, "("):
        return [Token("name", function), Brackets("(", [Token("text", json.dumps(name))])], 5
    if is_sign(index, ".") or name_of(at(items, i - 1)) == "in":
        return plain, 3
    raise ExpressionError(f'device.{field} can only be used with a domain, as in device.{field}["example.com"]')


_ENVIRONMENT: Final = Environment(frozenset({_DEVICE}), quantity_functions(nano), respellings={_DEVICE: _respell_device})
