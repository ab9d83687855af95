r"""The part of Kubernetes' JSONPath that printer columns use: fields, indexes, wildcards and filters by a text.

`.status.conditions[?(@.type=="Ready")].status`, `.spec.hosts[0]`, `.metadata.labels.app\.kubernetes\.io/name`, `.spec['my-key']`. A
filter compares with a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

_STEP: Final = re.compile(
    r"""\.(?P<field>(?:\\.|[^.\[\\])+)
      | \[(?P<index>-?\d+)\]
      | \[(?P<all>\*)\]
      | \[(?P<quote>['"])(?P<key>.*?)(?P=quote)\]
      | \[\?\((?P<filter>(?:"[^"]*"|'[^']*'|[^)"'])*)\)\]""",
    re.VERBOSE,
)
_FILTER: Final = re.compile(r"\s*@(?P<path>[^=!<>]*?)\s*==\s*(?P<quote>['\"])(?P<value>.*)(?P=quote)\s*$")


class JsonPathError(ValueError):
    """The path is not understood. The message shows where."""


class JsonPath:
    """A compiled path. Raises `JsonPathError` for one that is not understood."""

    def __init__(self, path: str) -> None:
        text = path.strip().removeprefix("{").removesuffix("}").removeprefix("$")
        self._steps: list[re.Match[str]] = []
        at = 0
        while at < len(text):
            step = _STEP.match(text, at)
            if step is None:
                raise JsonPathError(f"JSONPath {path!r}: cannot read {text[at:]!r}")
            if step["filter"] is not None and _FILTER.match(step["filter"]) is None:
                raise JsonPathError(f"JSONPath {path!r}: cannot read the filter {step['filter']!r}")
            self._steps.append(step)
            at = step.end()

    def find(self, value: Any) -> list[Any]:
        """Return all values at this path in `value`, or nothing if a part of the path is missing."""
        found = [value]
        for step in self._steps:
            found = [below for each in found for below in _descend(each, step)]
        return found


def _descend(value: Any, step: re.Match[str]) -> Iterable[Any]:
    name = step["key"] if step["field"] is None else re.sub(r"\\(.)", r"\1", step["field"])
    if name is not None:
        if name == "*":
            return _all(value)
        return [value[name]] if isinstance(value, dict) and name in value else []
    if step["index"] is not None:
        return value[int(step["index"]) :][:1] if isinstance(value, list) else []
    if step["filter"] is not None:
        return [each for each in _all(value) if _passes(each, step["filter"])]
    return _all(value)


def _all(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _passes(value: Any, expression: str) -> bool:
    parts = _FILTER.match(expression)
    return parts is not None and parts["value"] in JsonPath(parts["path"]).find(value)
