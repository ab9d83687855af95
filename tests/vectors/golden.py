"""The golden cases, and how an answer differs from the recorded one."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec

from placewright.plugins.catalog import in_tree

FOLDER: Final = Path(os.environ.get("PLACEWRIGHT_VECTORS", Path(__file__).parent))
FILES: Final = sorted(FOLDER.glob("*.jsonl*"))
REGISTRY: Final = in_tree()

Case = Mapping[str, Any]


class Golden(msgspec.Struct, frozen=True):
    """A case that is not read yet: every worker collects all of them, and each is read where its test runs.

    Attributes:
        id: its name, `resources-1042`.
        line: the line of JSON that it is.
    """

    id: str
    line: bytes = b""

    @property
    def family(self) -> str:
        """`resources` of `resources-1042`."""
        return self.id.rpartition("-")[0]

    def read(self) -> dict[str, Any]:
        """The case."""
        case: dict[str, Any] = msgspec.json.decode(self.line)
        return case


@cache
def golden_cases() -> tuple[Golden, ...]:
    """All cases.

    Raises:
        FileNotFoundError: there are none. Tests are parametrised with them, so that a clone without them fails at collection.
    """
    lines = (line for file in FILES for line in _text(file).splitlines() if line.strip())
    heads = msgspec.json.Decoder(Golden)
    cases = tuple(msgspec.structs.replace(heads.decode(line), line=line) for line in lines)
    if not cases:
        raise FileNotFoundError(f"no golden cases in {FOLDER}: they belong to the repository (tests/vectors/README.md)")
    return cases


def _text(file: Path) -> bytes:
    return gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()


def differences(expected: Case, found: Case) -> Iterator[str]:
    """A line for everything in which an answer differs from the recorded one; the choice of preemption is compared elsewhere."""
    for name in sorted(expected["nodes"].keys() | found["nodes"].keys()):
        wanted, got = _comparable(expected["nodes"].get(name)), _comparable(found["nodes"].get(name))
        for key in sorted(wanted.keys() | got.keys()):
            if wanted.get(key) != got.get(key):
                yield f"node {name}: {key}: expected {wanted.get(key)}, found {got.get(key)}"
    for key in ("best", "message", "preFilterMessage", "error", "unschedulablePlugins"):
        if expected.get(key) != found.get(key):
            yield f"{key}: expected {expected.get(key)!r}, found {found.get(key)!r}"


def _comparable(node: Mapping[str, Any] | None) -> dict[str, Any]:
    """Reasons as a set: scalar resources come in the order of a Go map. A score of zero is as good as none."""
    if node is None:
        return {"code": "not evaluated"}
    values = dict(node)
    if "reasons" in values:
        values["reasons"] = sorted(values["reasons"])
    if "scores" in values:
        values["scores"] = {plugin: score for plugin, score in sorted(values["scores"].items()) if score}
    return values
