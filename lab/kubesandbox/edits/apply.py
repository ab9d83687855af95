"""Server-side apply: the owners of fields, and conflicts between two of them.

An apply sends the fields of an object that its manager wants. They are merged into the live object. A field that this manager applied
before and no longer sends is removed, unless another manager owns it, too. A field that another manager set to another value is a conflict,
unless the apply is forced. Every other write (`track_update`) moves the ownership of the fields that it changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from kubesandbox.edits.fieldsets import (
    FieldPath,
    FieldSet,
    compare,
    decode,
    element_name,
    encode,
    fields_of,
    prefixes,
    text,
)
from kubesandbox.edits.shapes import Shape, shape_of
from kubesandbox.resources import Object
from kubesandbox.status import ApiError

APPLY, UPDATE = "Apply", "Update"
_IDENTITY: Final = ("manager", "operation", "apiVersion", "subresource")
BEFORE_FIRST_APPLY: Final = "before-first-apply"


@dataclass(frozen=True, slots=True)
class Manager:
    """A writer: one entry of `managedFields`, with its operation, version and subresource."""

    name: str
    operation: str
    api_version: str
    subresource: str = ""

    def __str__(self) -> str:
        return f'"{self.name}"' + (f' with subresource "{self.subresource}"' if self.subresource else "")


@dataclass(frozen=True, slots=True)
class _Owned:
    fields: FieldSet
    time: str


_Owners = dict[Manager, _Owned]


def server_side_apply(current: Object | None, applied: Object, shape: Shape, manager: Manager, now: str, *, force: bool) -> Object:
    """Return the live object after `applied`, with new `managedFields`. Without a `current` object, create one.

    `now` is an RFC 3339 time. The result shares no container with `current` that it changes. Raises ApiError 409 for a conflict, and
    ValueError if the live object has invalid `managedFields`.
    """
    live = current or {}
    sent = _without_nulls(applied)
    owners = _owners(live) or _owner_before_first_apply(current, shape)
    mine = _owned_here(fields_of(sent, shape), manager.subresource)
    merged: Object = _merge(live, sent, shape)
    written, _ = compare(live, merged, shape)
    _take_over(owners, manager, _owned_here(written, manager.subresource) & prefixes(mine), force)
    _prune(merged, owners, manager, mine, shape)
    _own(owners, manager, mine, now)
    _store(merged, owners)
    return merged


def track_update(old: Object, new: Object, manager: Manager, now: str, schema: Mapping[str, Any] | None = None) -> None:
    """Bring `new["metadata"]["managedFields"]` up to date in place, after a write that is no apply. `old` is empty for a new object."""
    owners = _owners_after(old, new)
    written, removed = compare(old, new, shape_of(str(new.get("kind", "")), schema))
    for other, owned in list(owners.items()):
        _replace(owners, other, owned.fields - removed - written, owned.time)
    before = owners.get(manager)
    # A manager that only removed fields keeps its fields, and gets no entry.
    if written:
        owners[manager] = _Owned((before.fields if before else frozenset()) | written, now)
    _store(new, owners)


def _owned_here(fields: FieldSet, subresource: str) -> FieldSet:
    """Return the fields that this endpoint writes: status and metadata for the subresource `status`, or else all except status."""
    if subresource == "status":
        return frozenset(path for path in fields if path[0] in ("f:status", "f:metadata"))
    return frozenset(path for path in fields if path[0] != "f:status")


def _take_over(owners: _Owners, manager: Manager, changed: FieldSet, force: bool) -> None:
    """Take `changed` from all other managers if forced. Otherwise refuse."""
    contested = {other: changed & owned.fields for other, owned in owners.items() if other != manager and changed & owned.fields}
    if contested and not force:
        raise _conflict(contested, owners)
    for other, fields in contested.items():
        _replace(owners, other, owners[other].fields - fields, owners[other].time)


def _conflict(contested: dict[Manager, FieldSet], owners: _Owners) -> ApiError:
    causes: list[dict[str, str]] = []
    lines: list[str] = []
    for other in sorted(contested, key=str):
        using = f" using {other.api_version} at {owners[other].time}" if other.operation == UPDATE else ""
        fields = [text(path) for path in sorted(contested[other])]
        causes += [{"reason": "FieldManagerConflict", "message": f"conflict with {other}{using}", "field": field} for field in fields]
        lines.append(f"conflicts with {other}{using}:\n" + "\n".join(f"- {field}" for field in fields))
    if len(causes) == 1:
        message = f"Apply failed with 1 conflict: {causes[0]['message']}: {causes[0]['field']}"
    else:
        message = f"Apply failed with {len(causes)} conflicts: " + "\n".join(lines)
    return ApiError(409, "Conflict", message, {"causes": causes})


def _prune(merged: Object, owners: _Owners, manager: Manager, mine: FieldSet, shape: Shape) -> None:
    """Remove the fields that `manager` applied before and does not now, unless another manager owns a part of them."""
    before = owners.get(manager)
    if before is None:
        return
    kept = prefixes(mine).union(*(prefixes(owned.fields) for other, owned in owners.items() if other != manager))
    gone = {next(path[:n] for n in range(1, len(path) + 1) if path[:n] not in kept) for path in before.fields - kept}
    for path in gone:
        _remove(merged, path, shape)


def _remove(value: Any, path: FieldPath, shape: Shape) -> None:
    element = path[0]
    if element.startswith("f:"):
        name = element[2:]
        if not isinstance(value, dict) or name not in value:
            return
        if len(path) == 1:
            del value[name]
        else:
            _remove(value[name], path[1:], shape.child(name))
    elif isinstance(value, list):
        at = next((i for i, item in enumerate(value) if element_name(item, shape) == element), None)
        if at is not None and len(path) == 1:
            del value[at]
        elif at is not None:
            _remove(value[at], path[1:], shape.element)


def _merge(live: Any, sent: Any, shape: Shape) -> Any:
    """Return a new value with all of `sent` and the rest of `live`. It shares no containers with `live`."""
    if isinstance(sent, dict) and not shape.atomic:
        base = live if isinstance(live, dict) else {}
        names = [*base, *(name for name in sent if name not in base)]
        return {n: _merge(base.get(n), sent[n], shape.child(n)) if n in sent else _copy(base[n]) for n in names}
    if isinstance(sent, list) and (shape.keys or shape.is_set):
        return _merge_list(live if isinstance(live, list) else [], sent, shape)
    return _copy(sent)


def _merge_list(live: list[Any], sent: list[Any], shape: Shape) -> list[Any]:
    wanted = {element_name(item, shape): item for item in sent}
    known = {element_name(item, shape) for item in live}
    result: list[Any] = []
    for item in live:
        name = element_name(item, shape)
        result.append(_merge(item, wanted[name], shape.element) if name in wanted else _copy(item))
    return result + [_merge(None, item, shape.element) for name, item in wanted.items() if name not in known]


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(below) for key, below in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(below) for key, below in value.items() if below is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _owner_before_first_apply(current: Object | None, shape: Shape) -> _Owners:
    """Return the owner of an object without records: one manager, with the name that API servers give it."""
    if current is None:
        return {}
    manager = Manager(BEFORE_FIRST_APPLY, UPDATE, str(current.get("apiVersion", "")))
    return {manager: _Owned(fields_of(current, shape), str(current.get("metadata", {}).get("creationTimestamp", "")))}


def _owners_after(old: Object, new: Object) -> _Owners:
    """Return the owners after a write: those in the sent object if they are readable, or else the old ones."""
    if "managedFields" in new.get("metadata", {}):
        with suppress(ValueError):
            return _owners(new)
    return _owners(old)


def _owners(obj: Object) -> _Owners:
    owners: _Owners = {}
    for entry in obj.get("metadata", {}).get("managedFields") or []:
        if entry and isinstance(entry, dict):
            manager = Manager(*(str(entry.get(name) or "") for name in _IDENTITY))
            owners[manager] = _Owned(decode(entry.get("fieldsV1", {})), str(entry.get("time") or ""))
    return owners


def _own(owners: _Owners, manager: Manager, fields: FieldSet, now: str) -> None:
    """Make `fields` all fields of `manager`. The time moves only with a change of them. Older versions of the manager disappear."""
    same = [m for m in owners if (m.name, m.operation, m.subresource) == (manager.name, APPLY, manager.subresource)]
    before = owners.get(manager)
    for earlier in same:
        del owners[earlier]
    owners[manager] = before if before and before.fields == fields else _Owned(fields, now)


def _replace(owners: _Owners, manager: Manager, fields: FieldSet, time: str) -> None:
    if fields:
        owners[manager] = _Owned(fields, time)
    else:
        del owners[manager]


def _store(obj: Object, owners: _Owners) -> None:
    metadata = obj["metadata"] = dict(obj.get("metadata", {}))
    entries = [_entry(manager, owned) for manager, owned in owners.items()]
    entries.sort(key=lambda e: (e["operation"], e["time"], e["manager"], e["apiVersion"], e.get("subresource", "")))
    metadata["managedFields"] = entries
    if not entries:
        del metadata["managedFields"]


def _entry(manager: Manager, owned: _Owned) -> Object:
    entry: Object = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": manager.api_version,
        "time": owned.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": encode(owned.fields),
    }
    if manager.subresource:
        entry["subresource"] = manager.subresource
    return entry
