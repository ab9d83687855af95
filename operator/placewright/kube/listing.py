"""One collection, read once: page by page, and where the server can, as it was at the moment at which another was read."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from placewright.kube.client import ApiClient
from placewright.kube.errors import GONE, INVALID, ApiError
from placewright.kube.reflector import PAGE_LIMIT, Source
from placewright.kube.retry import RetryBackoff, Sleep, with_retries
from placewright.kube.wire import Bad, Object, Page, Wire

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
    lister = _Lister(client, source, sleep)
    if at:
        try:
            return await lister.pages({"limit": str(PAGE_LIMIT), "resourceVersion": at, "resourceVersionMatch": "Exact"})
        except ApiError as error:
            if error.status not in _NOT_AT_THAT_VERSION:
                raise
    try:
        listed = await lister.pages({"limit": str(PAGE_LIMIT)})
    except ApiError as error:
        if error.status != GONE:
            raise
        # The pages took longer than the server remembers; the whole at once cannot expire.
        listed = await lister.pages({})
    return Listed(listed.items, listed.bad, listed.version, as_wanted=at in ("", listed.version))


class _Lister(Generic[T]):
    def __init__(self, client: ApiClient, source: Source[T], sleep: Sleep) -> None:
        self._client = client
        self._source = source
        self._sleep = sleep
        self._wire = Wire(source.kind)

    async def pages(self, first: dict[str, str]) -> Listed[T]:
        items: list[T] = []
        bad: list[str] = []
        params = self._source.selectors | first
        while True:
            page = await self._page(params)
            for item in page.items:
                if isinstance(item, Bad):
                    bad.append(f"{self._source.kind.__name__} {item.metadata.namespace}/{item.metadata.name}: {item.error}")
                else:
                    items.append(self._source.upgrade(item) if self._source.upgrade is not None else item)
            if not page.following:
                return Listed(items, bad, page.resource_version)
            # A continued list stays at the version of its first page, and may not name one.
            params = self._source.selectors | {"limit": str(PAGE_LIMIT), "continue": page.following}

    async def _page(self, params: dict[str, str]) -> Page[T]:
        asked = dict(params)
        body = await with_retries(lambda: self._client.get(self._source.path, asked), _ATTEMPTS, _BACKOFF, self._sleep)
        return self._wire.page(body)
