"""Inputs: any JSON, and valid documents with a few things changed in them, in their values and in their text."""

from __future__ import annotations

import copy
import json
from typing import Any, Final

from hypothesis import strategies as st

Document = dict[str, Any]

_WORDS: Final = (
    "", "x", "In", "Gt", "Exists", "cpu", "a/b", "10", "-1", "1Gi", "1e400", "NoSchedule", "kubernetes.io/hostname", "2026-01-01T00:00:00Z",
    "\x1b[2J", "\u202e", "\0", "\r\n", "[bold]", "A" * 300,
)  # fmt: skip
_NUMBERS: Final = (0, -1, 1, 101, 2**31, 2**63 - 1, 2**63, -(2**63) - 1, 10**30, 10**400, 1.5, 1e308, -0.0)
SCALARS = st.none() | st.booleans() | st.sampled_from(_NUMBERS) | st.sampled_from(_WORDS) | st.text(max_size=8)
ANY_JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(_WORDS) | st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
#: Text in place of text: what stands between two tokens, inside a string, at the end of a file.
_PIECES: Final = (b"", b"\0", b"\xff", b"\xed\xa0\x80", b"\\ud800", b"[" * 2000, b'{"a":' * 2000, b"9" * 5000, b'"', b",", b"\n", b"}")


def paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document."""
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path for step, inner in steps for path in ((*at, step), *paths(inner, (*at, step)))]


@st.composite
def mutants(draw: st.DrawFn, documents: tuple[Document, ...]) -> Document:
    """A valid document with up to four places changed: another value, none, one twice, or the value of somewhere else."""
    document = copy.deepcopy(draw(st.sampled_from(documents)))
    for _ in range(draw(st.integers(1, 4))):
        places = paths(document)
        if not places:
            break
        *way, last = draw(st.sampled_from(places))
        holder: Any = document
        for step in way:
            holder = holder[step]
        change = draw(st.integers(0, 4))
        if change == 0:
            del holder[last]
        elif change == 1 and isinstance(holder, list):
            holder.append(copy.deepcopy(holder[last]))
        elif change == 2 and isinstance(holder, dict):
            holder[draw(st.sampled_from(_WORDS))] = copy.deepcopy(holder[last])
        else:
            holder[last] = draw(ANY_JSON)
    return document


@st.composite
def torn(draw: st.DrawFn, documents: tuple[Document, ...]) -> bytes:
    """The text of a document, cut, with pieces put in or bytes changed."""
    text = bytearray(json.dumps(draw(st.sampled_from(documents))).encode())
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(text)))
        length = draw(st.sampled_from((0, 1, 5, 10**6)))
        text[place : place + length] = draw(st.sampled_from(_PIECES) | st.binary(max_size=4))
    return bytes(text)


def as_json(value: Any) -> bytes:
    """As an API server would send it."""
    return json.dumps(value).encode()
