"""A small grammar of device selectors: made at random, written as CEL, and answered by plain reading. Shares nothing with the code."""

from __future__ import annotations

import random
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

SUFFIXES = {"": 1, "k": 10**3, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
#: How each kind of question is written.
FORMS = {
    "driver": 'device.driver == "{value}"',
    "shared": "device.allowMultipleAllocations",
    "has": "has({field})",
    "truth": "{field}",
    "text": '{field} {operator} "{value}"',
    "number": "{field} {operator} {value}",
    "among": "{field} in {values}",
    "listed": '{field}.includes("{value}")',
    "version": '{field}.compareTo(semver("{value}")) {operator} 0',
    "capacity": 'device.capacity["{domain}"].{identifier}.compareTo(quantity("{value}")) {operator} 0',
    "bound": 'cel.bind(d, device.attributes["{domain}"], d.{identifier} == "{value}")',
}
#: What each kind may ask about, and how: names, operators, values.
CHOICES: dict[str, tuple[list[str], list[str], list[Any]]] = {
    "has": (["model", "numa", "fast", "ver", "odd", "links"], ["=="], [None]),
    "truth": (["fast"], ["=="], [None]),
    "text": (["model"], ["==", "!="], ["a", "b"]),
    "number": (["numa"], ["==", "<", ">="], [0, 1]),
    "among": (["model"], ["=="], [("a",), ("a", "c"), ("b", "c"), ("a", "b")]),
    "listed": (["links", "links", "model"], ["=="], ["a", "b"]),
    "version": (["ver"], ["==", "<", ">="], ["1.2.3", "1.10.0", "2.0.0"]),
    "capacity": (["memory"], ["==", "<", ">="], ["10Gi", "20480Mi", "40Gi"]),
    "bound": (["model"], ["=="], ["a", "b"]),
}
Body = dict[str, Any]


class NoAnswer(Exception):
    """The expression has no value for this device."""


def amount(text: str | int) -> Fraction:
    """A quantity, naively."""
    whole = str(text)
    number = whole.rstrip("KkMGim")
    suffix = whole[len(number) :]
    return Fraction(number) / 1000 if suffix == "m" else Fraction(number) * SUFFIXES[suffix]


def version(text: str) -> tuple[int, ...]:
    """A version without pre-release."""
    return tuple(int(part) for part in text.split("."))


def attribute(device: Body, driver: str, name: str) -> Body | None:
    """An attribute by its full name."""
    domain, identifier = name.split("/")
    known = device.get("attributes", {})
    return known.get(name) or (known.get(identifier) if domain == driver else None)


@dataclass(frozen=True)
class Test:
    """One question about a device; `name` is the full name of an attribute or a capacity."""

    __test__ = False
    kind: str
    name: str = ""
    operator: str = "=="
    value: Any = None
    parts: tuple[Test, ...] = ()

    def cel(self) -> str:
        """As an expression."""
        parts = [f"({part.cel()})" for part in self.parts]
        if parts:
            return f"!{parts[0]}" if self.kind == "not" else {"and": " && ", "or": " || "}[self.kind].join(parts)
        domain, _, identifier = self.name.partition("/")
        field = f'device.attributes["{domain}"].{identifier}'
        values = "[" + ", ".join(f'"{each}"' for each in self.value or ()) + "]" if self.kind == "among" else ""
        return FORMS[self.kind].format(
            field=field, domain=domain, identifier=identifier, operator=self.operator, value=self.value, values=values
        )

    def answer(self, device: Body, driver: str) -> bool:
        """True or false; raises `NoAnswer`."""
        if self.parts:
            return not self.parts[0].answer(device, driver) if self.kind == "not" else self._both(device, driver)
        if self.kind in ("driver", "shared"):
            return driver == self.value if self.kind == "driver" else bool(device.get("allowMultipleAllocations"))
        if self.kind == "capacity":
            return self._capacity(device, driver)
        found = attribute(device, driver, self.name)
        if self.kind == "has":
            return found is not None
        if found is None:
            raise NoAnswer
        ((kind, value),) = found.items()
        return self._value(kind, value)

    def _both(self, device: Body, driver: str) -> bool:
        """One side that decides is enough, whatever the other is."""
        decides = self.kind == "or"
        answers: list[bool | None] = []
        for part in self.parts:
            try:
                answers.append(part.answer(device, driver))
            except NoAnswer:
                answers.append(None)
        if decides in answers:
            return decides
        if None in answers:
            raise NoAnswer
        return not decides

    def _capacity(self, device: Body, driver: str) -> bool:
        domain, identifier = self.name.split("/")
        known = device.get("capacity", {})
        found = known.get(self.name) or (known.get(identifier) if domain == driver else None)
        if found is None:
            raise NoAnswer
        return compare(amount(found["value"]), self.operator, amount(self.value))

    def _value(self, kind: str, value: Any) -> bool:
        """Of an attribute that is there. Only equality can be asked across types."""
        if self.kind == "listed":
            return kind in ("string", "strings") and self.value in (value if kind == "strings" else [value])
        if self.kind in ("text", "bound", "among"):
            wanted = self.value if self.kind == "among" else (self.value,)
            return (kind == "string" and value in wanted) == (self.operator == "==")
        if self.kind == "number" and self.operator == "==":
            return kind == "int" and bool(value == self.value)
        if kind != {"truth": "bool", "version": "version", "number": "int"}[self.kind]:
            raise NoAnswer
        if self.kind == "version":
            return compare(version(value), self.operator, version(self.value))
        return bool(value) if self.kind == "truth" else compare(value, self.operator, self.value)


def compare(one: Any, operator: str, other: Any) -> bool:
    """One operator of the grammar."""
    return bool({"==": one == other, "!=": one != other, "<": one < other, ">=": one >= other}[operator])


def some_test(dice: random.Random, drivers: list[str]) -> Test:
    """A question at random; mostly one that has an answer for any device."""
    test = _some(dice, drivers, 2)
    asked = {part.name for part in _parts(test) if part.kind not in ("has", "capacity") and part.name}
    for name in sorted(asked) if dice.random() < 0.9 else ():
        test = Test("and", parts=(Test("has", name), test))
    return test


def _parts(test: Test) -> list[Test]:
    return [test, *(each for part in test.parts for each in _parts(part))]


def _some(dice: random.Random, drivers: list[str], depth: int) -> Test:
    kinds = ["driver", "driver", "shared", *(kind for kind in CHOICES if kind != "capacity"), *["capacity"] * dice.choice([0, 0, 1])]
    kind = dice.choice([*kinds, *(["not", "and", "or", "or"] * 2 if depth else [])])
    if kind in ("not", "and", "or"):
        return Test(kind, parts=tuple(_some(dice, drivers, depth - 1) for _ in range(1 if kind == "not" else 2)))
    if kind not in CHOICES:
        return Test(kind, value=dice.choice(drivers))
    names, operators, values = CHOICES[kind]
    domain = dice.choice([*drivers[:1] * 4, *drivers, "other.example.com"])
    return Test(kind, f"{domain}/{dice.choice(names)}", dice.choice(operators), dice.choice(values))
