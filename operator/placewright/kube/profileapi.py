"""SchedulingProfiles for people's tools: read, and written in the name of `placewright-cli`; and who wrote what, by `managedFields`.

The operator itself never writes a `spec`: what it writes is in `placewright.kube.profiles`.
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
from placewright.kube.profiles import PROFILES_PATH, profile_path

FIELD_MANAGER: Final = "placewright-cli"
_APPLY_PATCH: Final = "application/apply-patch+yaml"
_LIST_PAGE: Final = 250

Object = dict[str, Any]
T = TypeVar("T")


class _ListMeta(msgspec.Struct, frozen=True):
    following: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct, frozen=True):
    metadata: _ListMeta = _ListMeta()
    items: list[Object] | None = None

    @property
    def following(self) -> str:
        """The token of the next page."""
        return self.metadata.following


class Author(NamedTuple):
    """Who wrote last, and when (RFC 3339); empty where nobody tells."""

    manager: str
    time: str


async def list_profiles(client: ApiClient) -> list[Object]:
    """Every profile as the API server shows it, by name. Raises `RequestError`."""
    found: list[Object] = []
    async for page in pages(partial(client.get, PROFILES_PATH), _page, {"limit": str(_LIST_PAGE)}):
        found += map(_named, page.items or ())
    return sorted(found, key=lambda each: str(each["metadata"]["name"]))


async def read_profile(client: ApiClient, name: str) -> Object:
    """One profile as the API server shows it. Raises `RequestError`."""
    return _profile(await client.get(profile_path(name)))


async def apply_profile(client: ApiClient, body: Mapping[str, Any], *, force: bool, dry_run: bool) -> Object:
    """Server-side apply; the profile as it is then. Raises `RequestError`: 409 where other managers hold a field and `force` is false."""
    params = {"fieldManager": FIELD_MANAGER, "force": "true" if force else "false"} | _dry(dry_run)
    return _profile(await client.patch(profile_path(body["metadata"]["name"]), msgspec.json.encode(body), params, _APPLY_PATCH))


async def merge_profile(client: ApiClient, name: str, body: Mapping[str, Any], *, dry_run: bool) -> Object:
    """Merge patch; the profile as it is then. Raises `RequestError`: 409 where `body` has a resourceVersion that is not the latest."""
    params = {"fieldManager": FIELD_MANAGER} | _dry(dry_run)
    return _profile(await client.patch(profile_path(name), msgspec.json.encode(body), params, MERGE_PATCH))


def _page(answer: bytes) -> _Page:
    return _answered(answer, _Page)


def _profile(answer: bytes) -> Object:
    return _named(_answered(answer, Object))


def _named(profile: Object) -> Object:
    metadata = profile.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        raise Unreachable("an answer that is no profile: it has no name")
    return profile


def _answered(answer: bytes, kind: type[T]) -> T:
    """What a server said; one that says something else is none that we know. Unlike Python's reader, this one takes no half surrogates."""
    try:
        return msgspec.json.decode(answer, type=kind)
    except DECODE_ERRORS as error:
        raise Unreachable(f"an answer that is no profile: {error}") from None


def _dry(dry_run: bool) -> dict[str, str]:
    return {"dryRun": "All"} if dry_run else {}


def manifest_of(name: str, spec: Mapping[str, Any], uid: str = "") -> Object:
    """What is applied; with a uid, to that object and to no namesake."""
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": KIND, "metadata": {"name": name} | ({"uid": uid} if uid else {}), "spec": spec}


# --- who wrote what ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SpecChange:
    """What is known of a change besides the entries of managers.

    Attributes:
        before, after: `spec` of both generations.
        quick: the one came within moments of the other. Times of entries have whole seconds: whoever changes the same fields twice within
            one leaves the same entry.
    """

    before: Mapping[str, Any]
    after: Mapping[str, Any]
    quick: bool


def last_author(
    managed: Sequence[Mapping[str, Any]], before: Iterable[Mapping[str, Any]] = (), change: SpecChange | None = None
) -> Author:
    """Who changed `spec` last: of the managers whose entry is not one of `before`, the latest.

    Where no entry is new, a quick `change` is that of the latest manager who owns what changed. Else nobody tells: who only takes away
    what others own leaves no entry.
    """
    known = list(before)
    of_spec = [each for each in managed if not each.get("subresource") and "f:spec" in (each.get("fieldsV1") or {})]
    candidates = [each for each in of_spec if each not in known]
    if not candidates and change is not None and change.quick:
        candidates = [each for each in of_spec if _owns(each["fieldsV1"]["f:spec"], change.before, change.after)]
    latest = max(candidates, key=lambda each: str(each.get("time") or ""), default=None)
    return Author("", "") if latest is None else Author(str(latest.get("manager") or ""), str(latest.get("time") or ""))


def _owns(fields: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether a tree of FieldsV1 names anything that differs; a leaf stands for the whole of it."""
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
    """The part of `spec` that a manager applied: to be sent again with the next apply, which gives up whatever it leaves out."""
    owned: Object = {}
    for entry in profile["metadata"].get("managedFields") or ():
        if entry.get("manager") == manager and entry.get("operation") == "Apply" and not entry.get("subresource"):
            owned = _part(profile.get("spec") or {}, (entry.get("fieldsV1") or {}).get("f:spec") or {})
    return owned


def _part(value: Any, fields: Mapping[str, Any]) -> Any:
    """What a tree of FieldsV1 names in a value; a leaf stands for the whole of it."""
    inner = {name: each for name, each in fields.items() if name != "."}
    if not inner:
        return value
    if isinstance(value, Mapping):
        return {key: _part(each, inner[f"f:{key}"]) for key, each in value.items() if f"f:{key}" in inner}
    return list(_items(value, inner)) if isinstance(value, list) else value


def _items(items: Sequence[Any], fields: Mapping[str, Any]) -> Iterator[Any]:
    """Items of a list whose elements have keys, or are their own."""
    keyed = [(json.loads(name[2:]), each) for name, each in fields.items() if name.startswith("k:")]
    values = [json.loads(name[2:]) for name in fields if name.startswith("v:")]
    for item in items:
        if item in values:
            yield item
        for key, each in keyed:
            if isinstance(item, Mapping) and all(item.get(field) == wanted for field, wanted in key.items()):
                yield {**key, **_part(item, each)}
