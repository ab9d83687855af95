"""The table of the data that pages ask for by name. Both servers, the operator's and the one on this machine, answer what is here.

Only `feed` is not in it, because each server has readers of its own kind.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from placewright.api.decode import DecodeError
from placewright.http.routes import RequestRefused
from placewright.serving.rights import Rights
from placewright_console.pages.source import CompanySource
from placewright_console.pages.waitingpage import LONGEST_AFTER, LONGEST_ROWS, PodsAsked

#: Name of the data that goes on.
FEED: Final = "feed"
#: Characters of a name, or of a namespace and a name. An API server takes 253 and 317; a file may have longer ones.
_LONGEST: Final = 1024
_BAD_REQUEST: Final = 400
_NOT_FOUND: Final = 404

#: Parameters of a request, each name with all of its values.
Query = Mapping[str, Sequence[str]]
_Answering = Callable[[CompanySource, Query, Rights], Awaitable[bytes | None]]


@dataclass(frozen=True, slots=True)
class DataPage:
    """Data of one name.

    Attributes:
        find: makes the data, as JSON, for a reader of these rights; None if there is none that this reader may see.
        missing: the words for None: the same for what is not there and for what the reader may not see.
        in_turn: one is made after the other, because it may take long and nothing else divides the time.
    """

    find: _Answering
    missing: str
    in_turn: bool = True

    async def answer(self, source: CompanySource, query: Query, rights: Rights) -> bytes:
        """Make the data for a reader.

        Args:
            source: the objects that are shown.
            query: parameters of the request.
            rights: rights of the reader.

        Returns:
            JSON.

        Raises:
            RequestRefused: the question is wrong (400), there is no such data (404), or too many ask (503).
        """
        found = await self.find(source, query, rights)
        if found is None:
            raise RequestRefused(_NOT_FOUND, self.missing)
        return found


async def _node(source: CompanySource, query: Query, rights: Rights) -> bytes | None:
    return _json(source.node(_parameter(query, "name"), rights))


def _named(parameter: str, page: Callable[[CompanySource, str, str, Rights], dict[str, Any] | None]) -> _Answering:
    """Make the answer about an object in a namespace that a parameter names."""

    async def answer(source: CompanySource, query: Query, rights: Rights) -> bytes | None:
        namespace, name = _pair(query, parameter)
        return _json(page(source, namespace, name, rights)) if rights.may_see(namespace) else None

    return answer


async def _verdicts(source: CompanySource, query: Query, rights: Rights) -> bytes | None:
    namespace, name = _pair(query, "pod")
    return await source.company.verdicts(namespace, name, rights) if rights.may_see(namespace) else None


async def _waiting(source: CompanySource, query: Query, rights: Rights) -> bytes | None:
    rows, after = [query.get(name, ("",))[-1] for name in ("rows", "after")]
    if len(rows) > LONGEST_ROWS or len(after) > LONGEST_AFTER:
        raise RequestRefused(_BAD_REQUEST, "the question is too long")
    try:
        asked = PodsAsked.of(rows, after)
    except DecodeError as problem:
        raise RequestRefused(_BAD_REQUEST, str(problem)) from None
    return _json(source.waiting(asked, rights))


def _pair(query: Query, name: str) -> tuple[str, str]:
    """Namespace and name out of `NAMESPACE/NAME`; a name may have slashes."""
    namespace, _, named = _parameter(query, name).partition("/")
    return namespace, named


def _parameter(query: Query, name: str) -> str:
    text = query.get(name, ("",))[-1]
    if not text or len(text) > _LONGEST:
        raise RequestRefused(_BAD_REQUEST, f"{name}: found {text[:80]!r}; allowed a name of at most {_LONGEST:,} characters")
    return text


def _json(found: dict[str, Any] | None) -> bytes | None:
    return None if found is None else msgspec.json.encode(found)


_UNSEEN: Final = "it may have gone since, or you may not see it"
#: The data by name, as paths have it.
DATA_PAGES: Final[Mapping[str, DataPage]] = {
    "node": DataPage(_node, f"no such node: {_UNSEEN}"),
    "pod": DataPage(_named("pod", lambda source, *asked: source.pod(*asked)), f"no such pod: {_UNSEEN}"),
    "group": DataPage(_named("group", lambda source, *asked: source.company.group(*asked)), f"no such group: {_UNSEEN}"),
    "claim": DataPage(_named("claim", lambda source, *asked: source.company.claim(*asked)), f"no such claim: {_UNSEEN}"),
    "verdicts": DataPage(_verdicts, f"no such pod is pending: {_UNSEEN}", in_turn=False),
    "waiting": DataPage(_waiting, ""),
}
