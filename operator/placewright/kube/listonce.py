"""Reads one collection once, page by page, at a given resourceVersion if the server still has it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

from placewright.kube.client import ApiClient
from placewright.kube.errors import GONE, INVALID, ApiError, RetryBackoff, Sleep, with_retries
from placewright.kube.listwatch import Object, UndecodableObject, Wire, pages
from placewright.kube.reflector import PAGE_LIMIT, Source

T = TypeVar("T", bound=Object)

_ATTEMPTS: Final = 4
_BACKOFF: Final = RetryBackoff(initial=0.2, maximum=2.0)
#: Statuses of a version that the server has forgotten or not reached, or of a server without such questions.
_NOT_AT_THAT_VERSION: Final = frozenset({400, GONE, INVALID, 504})


@dataclass(frozen=True, slots=True)
class Listed(Generic[T]):
    """The content of a collection.

    Attributes:
        items: the objects, in the server's order.
        bad: objects that could not be decoded, one line each.
        version: the resourceVersion at which all of it was read.
        as_wanted: False when that is not the version that the caller asked for.
    """

    items: list[T]
    bad: list[str]
    version: str
    as_wanted: bool = True


async def list_once(client: ApiClient, source: Source[T], at: str = "", sleep: Sleep = asyncio.sleep) -> Listed[T]:
    """Read the whole collection. Temporary errors are retried a few times.

    Args:
        client: the API server's client.
        source: the collection.
        at: resourceVersion to read at, so that two collections can be compared at one moment; empty for now. A server that cannot do that
            gives the current content.
        sleep: waits between attempts.

    Returns:
        The objects and the version they were read at.

    Raises:
        ApiError: the server refused.
        Unreachable: the server did not answer.
        Malformed: an answer is no list.
    """
    limit = {"limit": str(PAGE_LIMIT)}
    if at:
        try:
            # Without the match a server may answer with a newer state, and a comparison would find differences that are none.
            return await _read(client, source, limit | {"resourceVersion": at, "resourceVersionMatch": "Exact"}, sleep)
        except ApiError as error:
            if error.status not in _NOT_AT_THAT_VERSION:
                raise
    try:
        listed = await _read(client, source, limit, sleep)
    except ApiError as error:
        if error.status != GONE:
            raise
        # The pages took longer than the server remembers; the whole at once cannot expire.
        listed = await _read(client, source, {}, sleep)
    return replace(listed, as_wanted=at in ("", listed.version))


async def _read(client: ApiClient, source: Source[T], first: dict[str, str], sleep: Sleep) -> Listed[T]:
    listed: Listed[T] = Listed([], [], "")

    async def get(params: Mapping[str, str]) -> bytes:
        return await with_retries(lambda: client.get(source.path, params), _ATTEMPTS, _BACKOFF, sleep)

    async for page in pages(get, Wire(source.kind).page, source.selectors | first):
        for item in page.items:
            if isinstance(item, UndecodableObject):
                listed.bad.append(f"{source.kind.__name__} {item.metadata.namespace}/{item.metadata.name}: {item.error}")
            else:
                listed.items.append(source.upgrade(item) if source.upgrade is not None else item)
        listed = replace(listed, version=page.resource_version)
    return listed
