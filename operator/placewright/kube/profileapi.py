"""Reads SchedulingProfiles and writes them as `placewright-cli`, for people's commands; finds the author of a change in `managedFields`.

The operator itself never writes a `spec`; its own writes are in `placewright.kube.profiles`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from placewright.api.decode import DECODE_ERRORS
from placewright.api.profile import GROUP, KIND, VERSION
from placewright.kube.client import MERGE_PATCH, ApiClient
from placewright.kube.errors import Unreachable
from placewright.kube.listwatch import pages
from placewright.kube.profiles import APPLY_PATCH, PROFILES_PATH, profile_path

FIELD_MANAGER: Final = "placewright-cli"
_LIST_PAGE: Final = 250

Object = dict[str, Any]
T = TypeVar("T")


class _Page(msgspec.Struct, frozen=True):
    metadata: dict[str, Any] = {}
    items: list[Object] | None = None

    @property
    def following(self) -> str:
        """The token of the next page."""
        return str(self.metadata.get("continue") or "")


class Author(NamedTuple):
    """The manager that wrote last, and when (RFC 3339); both empty when `managedFields` does not tell."""

    manager: str
    time: str


async def list_profiles(client: ApiClient) -> list[Object]:
    """List every profile.

    Returns:
        The profiles as the API server shows them, by name.

    Raises:
        RequestError: the server refused, did not answer, or sent no list of profiles.
    """
    found: list[Object] = []
    async for page in pages(partial(client.get, PROFILES_PATH), partial(_answered, kind=_Page), {"limit": str(_LIST_PAGE)}):
        found += map(_named, page.items or ())
    return sorted(found, key=lambda each: str(each["metadata"]["name"]))


async def read_profile(client: ApiClient, name: str) -> Object:
    """Read one profile.

    Returns:
        The profile as the API server shows it.

    Raises:
        RequestError: the server refused (404 if no profile has the name), did not answer, or sent no profile.
    """
    return _profile(await client.get(profile_path(name)))


async def apply_profile(client: ApiClient, body: Mapping[str, Any], *, force: bool, dry_run: bool) -> Object:
    """Apply a profile server-side.

    Args:
        client: the API server's client.
        body: the manifest; `manifest_of` builds one.
        force: take over fields that other managers hold.
        dry_run: have the server check everything and store nothing.

    Returns:
        The profile as it is after the write.

    Raises:
        RequestError: the server refused, or did not answer; 409 when another manager holds a field and `force` is False.
    """
    params = {"fieldManager": FIELD_MANAGER, "force": "true" if force else "false"} | _dry(dry_run)
    return _profile(await client.patch(profile_path(body["metadata"]["name"]), msgspec.json.encode(body), params, APPLY_PATCH))


async def merge_profile(client: ApiClient, name: str, body: Mapping[str, Any], *, dry_run: bool) -> Object:
    """Change a profile by merge patch.

    Args:
        client: the API server's client.
        name: name of the profile.
        body: the patch; with `metadata.resourceVersion` only that version is changed.
        dry_run: have the server check everything and store nothing.

    Returns:
        The profile as it is after the write.

    Raises:
        RequestError: the server refused, or did not answer; 409 when the resourceVersion is not the latest.
    """
    params = {"fieldManager": FIELD_MANAGER} | _dry(dry_run)
    return _profile(await client.patch(profile_path(name), msgspec.json.encode(body), params, MERGE_PATCH))


def _profile(answer: bytes) -> Object:
    return _named(_answered(answer, Object))


def _named(profile: Object) -> Object:
    metadata = profile.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        raise Unreachable("an answer that is no profile: it has no name")
    return profile


def _answered(answer: bytes, kind: type[T]) -> T:
    """Decode an answer. Unlike Python's reader, msgspec refuses half surrogates, which could not be written to a terminal."""
    try:
        return msgspec.json.decode(answer, type=kind)
    except DECODE_ERRORS as error:
        raise Unreachable(f"an answer that is no profile: {error}") from None


def _dry(dry_run: bool) -> dict[str, str]:
    # `All` is the only value that the API knows.
    return {"dryRun": "All"} if dry_run else {}


def manifest_of(name: str, spec: Mapping[str, Any], uid: str = "") -> Object:
    """Build the manifest of a profile.

    Args:
        name: name of the profile.
        spec: its spec.
        uid: the profile that is meant; with it a new profile of the same name is refused.
    """
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": KIND, "metadata": {"name": name} | ({"uid": uid} if uid else {}), "spec": spec}


# --- who wrote what ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SpecChange:
    """Facts about a change of `spec` beside the entries of managers.

    Attributes:
        before, after: `spec` of both generations.
        quick: the second generation came within moments of the first. Entries have whole seconds, so a manager that changes the same fields
            twice within one second leaves the same entry.
    """

    before: Mapping[str, Any]
    after: Mapping[str, Any]
    quick: bool


def last_author(managed: Sequence[Mapping[str, Any]], before: Iterable[Mapping[str, Any]] = (), change: SpecChange | None = None) -> Author:
    """Find the manager that changed `spec` last: of the managers with a new entry, the latest.

    A quick `change` without a new entry is attributed to the latest manager that owns a changed field. Any other change without a new entry
    has no known author: a manager that only removes fields of others leaves no entry.

    Args:
        managed: `managedFields` after the change.
        before: `managedFields` before it.
        change: both specs; None when they are not known.

    Returns:
        The author; empty when it is unknown.
    """
    known = list(before)
    of_spec = [each for each in managed if not each.get("subresource") and "f:spec" in (each.get("fieldsV1") or {})]
    candidates = [each for each in of_spec if each not in known]
    if not candidates and change is not None and change.quick:
        candidates = [each for each in of_spec if _owns(each["fieldsV1"]["f:spec"], change.before, change.after)]
    latest = max(candidates, key=lambda each: str(each.get("time") or ""), default=None)
    return Author("", "") if latest is None else Author(str(latest.get("manager") or ""), str(latest.get("time") or ""))


def _owns(fields: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether a tree of FieldsV1 names a field that differs; a leaf stands for its whole subtree."""
    if all(name == "." for name in fields):
        return before != after
    for key in {*before, *after}:
        one, other, inner = before.get(key), after.get(key), fields.get(f"f:{key}")
        if one == other or inner is None:
            continue
        deeper = isinstance(one, Mapping) and isinstance(other, Mapping) and any(name != "." for name in inner)
        if not deeper or _owns(inner, one or {}, other or {}):
            return True
    return False


def owned_spec(profile: Mapping[str, Any], manager: str = FIELD_MANAGER) -> Object:
    """Select the fields of `spec` that a manager applied.

    The next server-side apply has to send them again, because a manager gives up the fields that it leaves out.

    Returns:
        The part of `spec`; empty when the manager applied nothing.
    """
    owned: Object = {}
    for entry in profile["metadata"].get("managedFields") or ():
        if entry.get("manager") == manager and entry.get("operation") == "Apply" and not entry.get("subresource"):
            owned = _part(profile.get("spec") or {}, (entry.get("fieldsV1") or {}).get("f:spec") or {})
    return owned


def _part(value: Any, fields: Mapping[str, Any]) -> Any:
    """Select the fields of a value that a tree of FieldsV1 names; a leaf stands for its whole subtree."""
    inner = {name: each for name, each in fields.items() if name != "."}
    if not inner:
        return value
    if isinstance(value, Mapping):
        return {key: _part(each, inner[f"f:{key}"]) for key, each in value.items() if f"f:{key}" in inner}
    return list(_items(value, inner)) if isinstance(value, list) else value


def _items(items: Sequence[Any], fields: Mapping[str, Any]) -> Iterator[Any]:
    """Select items of a list: by key for a list of objects, by value for a set."""
    keyed = [(json.loads(name[2:]), each) for name, each in fields.items() if name.startswith("k:")]
    values = [json.loads(name[2:]) for name in fields if name.startswith("v:")]
    for item in items:
        if item in values:
            yield item
        for key, each in keyed:
            if isinstance(item, Mapping) and all(item.get(field) == wanted for field, wanted in key.items()):
                yield {**key, **_part(item, each)}
