"""Checks of single fields, in the words of the real server: each yields (path, what is wrong).

Source of the rules and of the sentences: apimachinery's `util/validation`, and `pkg/apis/resource/validation`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

Fault = tuple[str, str]
Faults = Iterator[Fault]
T = TypeVar("T")

LONGEST_LABEL = 63
LONGEST_SUBDOMAIN = 253
LONGEST_IDENTIFIER = 32
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME_PART = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_LABEL_WANTED = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric "
    "character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_SUBDOMAIN_WANTED = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_NAME_PART_WANTED = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE_WANTED = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_IDENTIFIER_WANTED = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' "
    "(e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')"
)


# --- what may be wrong -------------------------------------------------------------------------------------------------------


def invalid(path: str, value: Any, what: str) -> Fault:
    """A value that does not fit."""
    return path, f"Invalid value: {json.dumps(value, separators=(',', ':'))}: {what}"


def required(path: str, what: str = "") -> Fault:
    """A value that is missing."""
    return path, f"Required value: {what}" if what else "Required value"


def forbidden(path: str, what: str) -> Fault:
    """A value that may not be there."""
    return path, f"Forbidden: {what}"


def unsupported(path: str, value: str, allowed: Iterable[str]) -> Fault:
    """A value that is none of those known."""
    return path, f"Unsupported value: {json.dumps(value)}: supported values: {', '.join(json.dumps(each) for each in allowed)}"


def duplicate(path: str, value: Any) -> Fault:
    """A value that is there already."""
    return path, f"Duplicate value: {json.dumps(value, separators=(',', ':'))}"


def too_many(path: str, found: int, limit: int) -> Fault:
    """More entries than allowed."""
    return path, f"Too many: {found}: must have at most {limit} items"


def too_long(path: str, limit: int) -> Fault:
    """A longer text than allowed."""
    return path, f"Too long: may not be more than {limit} bytes"


# --- names -------------------------------------------------------------------------------------------------------------------


def label_name(path: str, value: str | None) -> Faults:
    """A DNS label: names of requests, devices and counters."""
    value = value or ""
    if len(value) > LONGEST_LABEL:
        yield invalid(path, value, f"must be no more than {LONGEST_LABEL} bytes")
    if not _LABEL.fullmatch(value):
        yield invalid(path, value, _LABEL_WANTED)


def subdomain(path: str, value: str) -> Faults:
    """A DNS subdomain: names of objects."""
    if len(value) > LONGEST_SUBDOMAIN:
        yield invalid(path, value, f"must be no more than {LONGEST_SUBDOMAIN} bytes")
    if not _SUBDOMAIN.fullmatch(value):
        yield invalid(path, value, _SUBDOMAIN_WANTED)


def driver_name(path: str, value: str | None) -> Faults:
    """The name of a driver, in any case."""
    if not value:
        yield required(path)
        return
    if len(value) > LONGEST_LABEL:
        yield too_long(path, LONGEST_LABEL)
    if not _SUBDOMAIN.fullmatch(value.lower()):
        yield invalid(path, value, _SUBDOMAIN_WANTED)


def pool_name(path: str, value: str | None) -> Faults:
    """One or more subdomains, with slashes between."""
    if not value:
        yield required(path)
        return
    if len(value) > LONGEST_SUBDOMAIN:
        yield too_long(path, LONGEST_SUBDOMAIN)
    for part in value.split("/"):
        yield from subdomain(path, part)


def qualified_name(path: str, value: str) -> Faults:
    """The name of an attribute or a capacity, with or without a domain."""
    domain, slash, name = value.partition("/")
    if not slash:
        yield from _identifier(path, value)
    elif "/" in name:
        yield invalid(path, value, "must not contain more than one slash")
    else:
        yield from driver_name(path, domain) if domain else [invalid(path, "", "the domain must not be empty")]
        yield from _identifier(path, name) if name else [invalid(path, "", "the name must not be empty")]


def fully_qualified_name(path: str, value: str) -> Faults:
    """The name of an attribute, with its domain."""
    yield from qualified_name(path, value)
    if "/" not in value:
        yield invalid(path, value, "a fully qualified name must be a domain and a name separated by a slash")


def label_key(path: str, value: str | None) -> Faults:
    """The key of a label: keys of taints, types of conditions."""
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
    """The value of a label."""
    if len(value) > LONGEST_LABEL:
        yield invalid(path, value, f"must be no more than {LONGEST_LABEL} bytes")
    if value and not _NAME_PART.fullmatch(value):
        yield invalid(path, value, _VALUE_WANTED)


def _identifier(path: str, value: str) -> Faults:
    if len(value) > LONGEST_IDENTIFIER:
        yield too_long(path, LONGEST_IDENTIFIER)
    if not _IDENTIFIER.fullmatch(value):
        yield invalid(path, value, _IDENTIFIER_WANTED)


# --- lists -------------------------------------------------------------------------------------------------------------------


def each_of(path: str, items: Sequence[T] | None, limit: int, check: Callable[[str, T], Faults]) -> Faults:
    """Every entry of a list of at most `limit` entries; of a longer one only that it is too long."""
    found = items or ()
    if len(found) > limit:
        yield too_many(path, len(found), limit)
        return
    for at, item in enumerate(found):
        yield from check(f"{path}[{at}]", item)


def distinct(path: str, items: Sequence[T] | None, key: Callable[[T], Hashable]) -> Faults:
    """No two entries of a list with one key."""
    seen: set[Hashable] = set()
    for at, item in enumerate(items or ()):
        identity = key(item)
        if identity in seen:
            yield duplicate(f"{path}[{at}]", identity)
        seen.add(identity)


def set_of(
    path: str, items: Sequence[T] | None, limit: int, check: Callable[[str, T], Faults], key: Callable[[T], Hashable]
) -> Faults:
    """`each_of` and, unless there are too many, `distinct`."""
    yield from each_of(path, items, limit, check)
    if len(items or ()) <= limit:
        yield from distinct(path, items, key)
