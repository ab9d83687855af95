"""Lists the fields of SchedulingProfile: `python -m tools.release.fields > tools/release/fields.txt`, once for each release.

A line has the path of a field and its type, and `required` if its object cannot be without it. `[]` stands for the elements of a list,
`{}` for the values of a map. The file is the record of the newest release, with which `broken` compares.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from tools.generated.definition import custom_resource_definition


def current() -> dict[str, str]:
    """Return the fields of the definition as it is now: path to type, and `required`."""
    (version,) = custom_resource_definition()["spec"]["versions"]
    return dict(_fields(version["schema"]["openAPIV3Schema"], version["name"], required=False))


def parsed(text: str) -> dict[str, str]:
    """Return the fields that a record has."""
    return {path: kind for path, _, kind in (line.partition(" ") for line in text.splitlines())}


def broken(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Say how the definition breaks profiles that an earlier one took.

    A field is gone, has another type, or is newly required in an object that there was.
    """
    found = [f"{path}: gone" for path in before if path not in now]
    for path, kind in now.items():
        was = before.get(path)
        if was is not None and kind.split()[0] != was.split()[0]:
            found.append(f"{path}: {kind.split()[0]}, was {was.split()[0]}")
        if kind.endswith(" required") and path.rpartition(".")[0] in before and not (was or "").endswith(" required"):
            found.append(f"{path}: newly required")
    return found


def _fields(schema: Mapping[str, Any], path: str, *, required: bool) -> Iterator[tuple[str, str]]:
    kind = schema.get("type") or ("int-or-string" if schema.get("x-kubernetes-int-or-string") else "any")
    yield path, f"{kind} required" if required else kind
    for name, each in schema.get("properties", {}).items():
        yield from _fields(each, f"{path}.{name}", required=name in schema.get("required", ()))
    for mark, each in (("[]", schema.get("items")), ("{}", schema.get("additionalProperties"))):
        if isinstance(each, dict):
            yield from _fields(each, path + mark, required=False)


if __name__ == "__main__":
    sys.stdout.writelines(f"{path} {kind}\n" for path, kind in sorted(current().items()))
