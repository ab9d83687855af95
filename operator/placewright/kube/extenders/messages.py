"""The JSON of questions to extenders, and of their answers.

The envelopes are Go structs without JSON names, so their fields are capitalised and empty ones are null; the Kubernetes objects in them
have their usual form. Answers are read as Go's encoding/json reads them, because extenders are tested with that. Field names may have any
case, and the last of several counts. Unknown fields are skipped, null is empty, and text after the first value is ignored. Types are
strict: a score of 5.0 or "5" is no integer.

The cost of reading an answer follows from its number of elements, not from its bytes. So elements are counted before any is decoded
(`AnswerRoom`). Readers keep no state: an answer may be read in a thread.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, TypeVar

import msgspec

from placewright.api.bad_input import shown
from placewright.api.extenders import NodeVictims
from placewright.api.objects import NodeName
from placewright.kube.fullobjects import WholeNode

T = TypeVar("T")
Raw = msgspec.Raw
_NULL: Final = b"null"
#: Bytes of a null with white space around it; of a longer text only the beginning is looked at.
_LONGEST_NULL: Final = 16
_INTEGER: Final = re.compile(rb"-?[0-9]{1,19}")
_INT64: Final = range(-(2**63), 2**63)
_ERRORS: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class BadAnswer(ValueError):
    """An answer that is no JSON, or has another shape than kube-scheduler's. The message names the field."""


# --- questions ---------------------------------------------------------------------------------------------------------------


def node_request(pod: Raw, nodes: Sequence[WholeNode] | None, names: Sequence[NodeName] | None) -> bytes:
    """Build the question of filter and prioritize.

    Args:
        pod: the whole pod, JSON text.
        nodes: whole nodes, for an extender without a cache of its own; else None.
        names: names of nodes, for an extender with one; else None.
    """
    listed = None if nodes is None else {"metadata": {}, "items": nodes}
    return msgspec.json.encode({"Pod": pod, "Nodes": listed, "NodeNames": names})


def preempt_request(pod: Raw, victims: Mapping[NodeName, NodeVictims], whole: Iterable[Raw] | None) -> bytes:
    """Build the question of preempt.

    Args:
        pod: the whole preemptor, JSON text.
        victims: victims by node.
        whole: all victims in full, in the order of `victims`; None sends their uids.
    """
    uids = ({"UID": one.uid} for on in victims.values() for one in on.pods)
    sent = iter(uids if whole is None else whole)
    by_node = {name: {"Pods": list(islice(sent, len(on.pods))), "NumPDBViolations": on.violations} for name, on in victims.items()}
    full, meta = (None, by_node) if whole is None else (by_node, None)
    return msgspec.json.encode({"Pod": pod, "NodeNameToVictims": full, "NodeNameToMetaVictims": meta})


def bind_request(name: str, namespace: str, uid: str, node: NodeName) -> bytes:
    """Build the question of bind."""
    return msgspec.json.encode({"PodName": name, "PodNamespace": namespace, "PodUID": uid, "Node": node})


# --- how much may come back --------------------------------------------------------------------------------------------------

#: Commas that an answer may have for each node of the cluster. A comma precedes every element but the first of a list or an object. An
#: entry of an answer has two or three, and a reason some of its own; nodes sent back in full have about as many as in the question.
_COMMAS_A_NODE: Final = 64
#: Commas that an answer may have beyond those.
_COMMAS_BESIDES: Final = 2**16
#: Entries beyond two for each node: an extender may name nodes that have just gone.
_ENTRIES_BESIDES: Final = 1000
#: Characters of a reason or an error; a pod's condition has room for no more text in all.
_LONGEST_REASON: Final = 2**15


@dataclass(frozen=True, slots=True)
class AnswerRoom:
    """The number of elements that an answer may have; by default, of an answer about a thousand nodes.

    Attributes:
        entries: number of entries in one list or map about nodes.
        elements: number of elements in all lists and objects together.
    """

    entries: int = 2 * _ENTRIES_BESIDES
    elements: int = _COMMAS_BESIDES

    @classmethod
    def beside(cls, question: bytes, nodes: int) -> AnswerRoom:
        """Compute the bound for the answer to a question."""
        return cls(2 * nodes + _ENTRIES_BESIDES, 2 * question.count(b",") + _COMMAS_A_NODE * nodes + _COMMAS_BESIDES)

    def check(self, body: bytes) -> None:
        """Refuse an answer that may have more elements. It counts commas: that takes no memory, and a moment for any answer.

        Raises:
            BadAnswer: the answer has too many commas.
        """
        found = body.count(b",")
        if found > self.elements:
            raise BadAnswer(f"an answer of up to {found} elements; allowed {self.elements}, for as many nodes as there are")


ANY_ROOM: Final = AnswerRoom()


# --- answers -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FilterAnswer:
    """An answer of filter as it stands on the wire.

    Attributes:
        nodes: names of the nodes in `Nodes`; None if the field is null.
        node_names: `NodeNames`; None if the field is null.
        failed: reason by node that failed.
        unresolvable: reason by node that preemption cannot help.
        error: error of the whole question; empty for none.
    """

    nodes: tuple[str, ...] | None
    node_names: tuple[str, ...] | None
    failed: dict[NodeName, str]
    unresolvable: dict[NodeName, str]
    error: str


@dataclass(frozen=True, slots=True)
class MetaVictims:
    """The victims on one node, by uid, as an extender names them, and the number of violated PodDisruptionBudgets."""

    uids: tuple[str, ...]
    violations: int


def read_filter(body: bytes, room: AnswerRoom = ANY_ROOM) -> FilterAnswer:
    """Read the answer of filter.

    Raises:
        BadAnswer: it is too large, no JSON, or has another shape.
    """
    most, fields = room.entries, _fields(_first_value(body, room), "the answer")
    return FilterAnswer(
        nodes=_maybe(fields, "Nodes", lambda raw, where: _node_list(raw, where, most)),
        node_names=_maybe(fields, "NodeNames", lambda raw, where: tuple(_list(raw, where, _text, most))),
        failed=_maybe(fields, "FailedNodes", lambda raw, where: _messages(raw, where, most)) or {},
        unresolvable=_maybe(fields, "FailedAndUnresolvableNodes", lambda raw, where: _messages(raw, where, most)) or {},
        error=_maybe(fields, "Error", _reason) or "",
    )


def read_scores(body: bytes, room: AnswerRoom = ANY_ROOM) -> list[tuple[str, int]]:
    """Read the answer of prioritize.

    Raises:
        BadAnswer: it is too large, no JSON, or has another shape.
    """
    return _list(_first_value(body, room), "the answer", _host_priority, room.entries)


def read_victims(body: bytes, room: AnswerRoom = ANY_ROOM) -> dict[str, MetaVictims]:
    """Read the answer of preempt.

    Raises:
        BadAnswer: it is too large, no JSON, or has another shape.
    """
    fields = _fields(_first_value(body, room), "the answer")
    return _maybe(fields, "NodeNameToMetaVictims", lambda raw, where: _map(raw, where, _victims, room.entries)) or {}


def read_error(body: bytes, room: AnswerRoom = ANY_ROOM) -> str:
    """Read the answer of bind.

    Returns:
        The error; empty for none.

    Raises:
        BadAnswer: it is too large, no JSON, or has another shape.
    """
    return _maybe(_fields(_first_value(body, room), "the answer"), "Error", _reason) or ""


def _host_priority(raw: Raw, where: str) -> tuple[str, int]:
    fields = _fields(raw, where)
    return _maybe(fields, "Host", _text, where) or "", _maybe(fields, "Score", _integer, where) or 0


def _victims(raw: Raw, where: str) -> MetaVictims:
    if _is_null(raw):
        raise BadAnswer(f"{where}: found nothing; allowed an object")
    fields = _fields(raw, where)
    uids = _maybe(fields, "Pods", lambda pods, inner: tuple(_list(pods, inner, _uid)), where) or ()
    return MetaVictims(uids, _maybe(fields, "NumPDBViolations", _integer, where) or 0)


def _uid(raw: Raw, where: str) -> str:
    return _maybe(_fields(raw, where), "UID", _text, where) or ""


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""


class _Named(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()


class _NamedItems(msgspec.Struct):
    items: list[_Named] | None = None


def _node_list(raw: Raw, where: str, most: int) -> tuple[str, ...]:
    """Read the names of a NodeList's items: in one pass if all fields have Kubernetes' spelling, else field by field."""
    try:
        found = msgspec.json.decode(raw, type=_NamedItems).items
    except _ERRORS:
        found = None
    if found and all(item.metadata.name for item in found):
        _refuse_more(len(found), most, f"{where}.items")
        return tuple(item.metadata.name for item in found)
    return _maybe(_fields(raw, where), "items", lambda items, inner: tuple(_list(items, inner, _node_name, most)), where) or ()


def _node_name(raw: Raw, where: str) -> str:
    metadata = _maybe(_fields(raw, where), "metadata", _fields, where) or {}
    return _maybe(metadata, "name", _text, f"{where}.metadata") or ""


def _messages(raw: Raw, where: str, most: int) -> dict[NodeName, str]:
    return {NodeName(name): text for name, text in _map(raw, where, _reason, most).items()}


def _reason(raw: Raw, where: str) -> str:
    return _text(raw, where)[:_LONGEST_REASON]


# --- as Go reads JSON ----------------------------------------------------------------------------------------------------------


def _first_value(body: bytes, room: AnswerRoom) -> Raw:
    """Find the first JSON value of a text; raise `BadAnswer` without one, or if the text has too many elements."""
    room.check(body)
    text = body if _is_utf8(body) else body.decode("utf-8", "replace").encode()
    try:
        return msgspec.json.decode(text, type=Raw)
    except _ERRORS:
        return _first_of_several(text.decode().lstrip(" \t\r\n"))


def _is_utf8(body: bytes) -> bool:
    if body.isascii():  # nearly always true, and many times faster than decoding
        return True
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _first_of_several(text: str) -> Raw:
    if not text:
        raise BadAnswer("an empty answer")
    try:
        _, end = json.JSONDecoder(parse_constant=_refuse_constant).raw_decode(text)
    except (ValueError, RecursionError) as error:
        raise BadAnswer(f"no JSON: {error}") from None
    return Raw(text[:end].encode())


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"found {name}")


def _is_null(raw: Raw) -> bool:
    view = memoryview(raw)
    return view.nbytes <= _LONGEST_NULL and bytes(view).strip() == _NULL


def _fields(raw: Raw, where: str) -> dict[str, Raw]:
    """Return the fields of an object by name in lower case, nothing for null."""
    return {name.casefold(): value for name, value in _map(raw, where, lambda value, _: value).items()}


def _maybe(fields: Mapping[str, Raw], name: str, read: Callable[[Raw, str], T], inside: str = "") -> T | None:
    """Read one field; None when it is absent or null."""
    raw = fields.get(name.casefold())
    return None if raw is None or _is_null(raw) else read(raw, f"{inside}.{name}" if inside else name)


def _map(raw: Raw, where: str, read: Callable[[Raw, str], T], most: int | None = None) -> dict[str, T]:
    if _is_null(raw):
        return {}
    items: dict[str, Raw] = _decoded(raw, where, dict[str, Raw], "an object")
    _refuse_more(len(items), most, where)
    return {name: read(value, f"{where}[{shown(name)}]") for name, value in items.items()}


def _list(raw: Raw, where: str, read: Callable[[Raw, str], T], most: int | None = None) -> list[T]:
    if _is_null(raw):
        return []
    items: list[Raw] = _decoded(raw, where, list[Raw], "a list")
    _refuse_more(len(items), most, where)
    return [read(item, f"{where}[{index}]") for index, item in enumerate(items)]


def _refuse_more(found: int, most: int | None, where: str) -> None:
    if most is not None and found > most:
        raise BadAnswer(f"{where}: found {found} entries; allowed {most}, for as many nodes as there are")


def _text(raw: Raw, where: str) -> str:
    return "" if _is_null(raw) else _decoded(raw, where, str, "text")


def _integer(raw: Raw, where: str) -> int:
    if _is_null(raw):
        return 0
    text = bytes(raw).strip()
    if not _INTEGER.fullmatch(text) or int(text) not in _INT64:
        raise BadAnswer(f"{where}: found {_cut(raw)}; allowed a whole number")
    return int(text)


def _decoded(raw: Raw, where: str, kind: Any, allowed: str) -> Any:
    try:
        return msgspec.json.decode(raw, type=kind)
    except _ERRORS:
        raise BadAnswer(f"{where}: found {_cut(raw)}; allowed {allowed}") from None


def _cut(raw: Raw) -> str:
    return shown(bytes(memoryview(raw)[:200]).decode("utf-8", "replace"))
