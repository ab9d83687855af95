"""Checks of single fields, in the words of the real server. Each yields a path and a problem.

Rules and sentences come from apimachinery's `util/validation`, and from `pkg/apis/resource/validation`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeVar

Fault = tuple[str, str]
Faults = Iterator[Fault]
T = TypeVar("T")

LONGEST_LABEL: Final = 63
LONGEST_SUBDOMAIN: Final = 253
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME_PART: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")

_LABEL_WANTED: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric "
    "character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_SUBDOMAIN_WANTED: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_NAME_PART_WANTED: Final = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE_WANTED: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


# --- checks ------------------------------------------------------------------------------------------------------------------


def invalid(path: str, value: Any, what: str) -> Fault:
    """Return the fault of an invalid value."""
    return path, f"Invalid value: {json.dumps(value, separators=(',', ':'))}: {what}"


def required(path: str, what: str = "") -> Fault:
    """Return the fault of a missing value."""
    return path, f"Required value: {what}" if what else "Required value"


def forbidden(path: str, what: str) -> Fault:
    """Return the fault of a forbidden value."""
    return path, f"Forbidden: {what}"


def unsupported(path: str, value: Any, allowed: Iterable[Any]) -> Fault:
    """Return the fault of a value that is not in `allowed`."""
    return path, f"Unsupported value: {json.dumps(value)}: supported values: {', '.join(json.dumps(each) for each in allowed)}"


def duplicate(path: str, value: Any) -> Fault:
    """Return the fault of a repeated value."""
    return path, f"Duplicate value: {json.dumps(value, separators=(',', ':'))}"


def too_many(path: str, found: int, limit: int) -> Fault:
    """Return the fault of a list with too many entries."""
    return path, f"Too many: {found}: must have at most {limit} {'item' if limit == 1 else 'items'}"


# --- names -------------------------------------------------------------------------------------------------------------------


def label_name(path: str, value: str | None) -> Faults:
    """Check a DNS label, such as the name of a request or a device."""
    yield from _name(path, value or "", _LABEL, LONGEST_LABEL, _LABEL_WANTED)


def subdomain(path: str, value: str | None) -> Faults:
    """Check a DNS subdomain, such as the name of an object, a driver or a pool."""
    if value:
        yield from _name(path, value, _SUBDOMAIN, LONGEST_SUBDOMAIN, _SUBDOMAIN_WANTED)
    else:
        yield required(path)


def _name(path: str, value: str, pattern: re.Pattern[str], longest: int, wanted: str) -> Faults:
    if len(value) > longest:
        yield invalid(path, value, f"must be no more than {longest} bytes")
    if not pattern.fullmatch(value):
        yield invalid(path, value, wanted)


def label_key(path: str, value: str | None) -> Faults:
    """Check the key of a label, a taint, a toleration or a topology."""
    value = value or ""
    prefix, slash, name = value.rpartition("/")
    if slash and not prefix:
        yield invalid(path, value, "prefix part must be non-empty")
    elif slash and not _SUBDOMAIN.fullmatch(prefix):
        yield invalid(path, value, f"prefix part {_SUBDOMAIN_WANTED}")
    if not name:
        yield invalid(path, value, "name part must be non-empty")
    elif len(name) > LONGEST_LABEL:
        yield invalid(path, value, f"name part must be no more than {LONGEST_LABEL} bytes")
    if not _NAME_PART.fullmatch(name):
        yield invalid(path, value, _NAME_PART_WANTED)


def label_value(path: str, value: str) -> Faults:
    """Check the value of a label."""
    if value:
        yield from _name(path, value, _NAME_PART, LONGEST_LABEL, _VALUE_WANTED)


# --- lists -------------------------------------------------------------------------------------------------------------------


def each_of(path: str, items: Sequence[T] | None, check: Callable[[str, T], Faults], key: Callable[[T], Hashable] | None = None) -> Faults:
    """Check every entry of a list, and, with a `key`, that no two entries have the same."""
    seen: set[Hashable] = set()
    for at, item in enumerate(items or ()):
        yield from check(f"{path}[{at}]", item)
        if key is not None and key(item) in seen:
            yield duplicate(f"{path}[{at}]", key(item))
        seen.add(key(item) if key is not None else at)
