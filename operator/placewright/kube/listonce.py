"""One collection, read once: page by page, and where the server can, as it was at the moment at which another was read."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

from placewright.kube.client import ApiClient
from placewright.kube.errors import GONE, INVALID, ApiError
from placewright.kube.listwatch import Bad, Object, Wire, pages
from placewright.kube.reflector import PAGE_LIMIT, Source
from placewright.kube.retry import RetryBackoff, Sleep, with_retries

T = TypeVar("T", bound=Object)

_ATTEMPTS: Final = 4
_BACKOFF: Final = RetryBackoff(initial=0.2, maximum=2.0)
#: Answers to a version that the server has forgotten, has not reached, or takes no such question about.
_NOT_AT_THAT_VERSION: Final = frozenset({400, GONE, INVALID, 504})


@dataclass(frozen=True, slots=True)
class Listed(Generic[T]):
    """What a collection held.

    Attributes:
        items: the objects, in the server's order.
        bad: what could not be read, one line each.
        version: the resourceVersion at which all of it was read.
        as_wanted: False when that is not the version that was asked for.
    """

    items: list[T]
    bad: list[str]
    version: str
    as_wanted: bool = True


async def list_once(client: ApiClient, source: Source[T], at: str = "", sleep: Sleep = asyncio.sleep) -> Listed[T]:
    """The whole collection at resourceVersion `at`, else as it is now; temporary errors are tried again a few times.

    Raises `ApiError`, `Unreachable`, and `Malformed` for what is no list.
    """
    limit = {"limit": str(PAGE_LIMIT)}
    if at:
        try:
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
            if isinstance(item, Bad):
                listed.bad.append(f"{source.kind.__name__} {item.metadata.namespace}/{item.metadata.name}: {item.error}")
            else:
                listed.items.append(source.upgrade(item) if source.upgrade is not None else item)
        listed = replace(listed, version=page.resource_version)
    return listed
