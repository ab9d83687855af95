"""Pages of other packages: how they are found, the operator's doorkeeper before them, and the answer where there are none.

A package names its pages in the entry point group `placewright.pages`. It is used in the operator's own version alone. If it is missing, of
another version, or broken, the log and the path say so. Pods are placed all the same: no upgrade may stop scheduling.

The files of pages carry no data and need no token. Everything else is below `api/`: the doorkeeper finds out who asks and what they may see
before the package hears of the question. The token never reaches the package. The replica that places pods answers, because it has the
queue.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from importlib.metadata import entry_points
from typing import Final, Protocol

from placewright import __version__
from placewright.engine.engine import Engine
from placewright.framework.distributions import how_to_install, lacking
from placewright.http.routes import SECURITY_HEADERS, TEXT, Answer, Audience, Endpoint, Question, RequestRefused
from placewright.leadership.election import Alone
from placewright.serving.readerrights import ConsoleRights, Visitor
from placewright.serving.schedulerview import SchedulerView

GROUP: Final = "placewright.pages"
_DATA: Final = "api/"
_FOUND: Final = 302
_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_AWAY: Final = 503
_UNKEPT: Final = {"Cache-Control": "no-store", **SECURITY_HEADERS}


class PageFile(Protocol):
    """A file of pages, which has no data in it."""

    @property
    def body(self) -> bytes:
        """Its bytes."""

    @property
    def content_type(self) -> str:
        """The media type."""


class Pages(Protocol):
    """The open pages of one package.

    Attributes:
        opening: name of the data that a page asks for first. Rights that were refused are asked for again then.
    """

    opening: str

    def file(self, name: str) -> PageFile | None:
        """Find a file.

        Args:
            name: path below the pages' own; empty for the index.

        Returns:
            None for a file that is not there.
        """

    async def answer(self, name: str, question: Question, visitor: Visitor) -> Answer:
        """Answer a question for data.

        Args:
            name: name of the data.
            question: question without its token.
            visitor: the reader.

        Returns:
            The answer. The doorkeeper adds the headers that keep pages of other sites out.

        Raises:
            RequestRefused: there is no such data, or none that the visitor may see.
        """

    def end_all(self) -> None:
        """End the answers that go on, because this replica does not lead any more."""


class PagesPackage(Protocol):
    """The module that an entry point of the group names."""

    def open_pages(self, view: SchedulerView) -> AbstractAsyncContextManager[Pages]:
        """Make the pages, which work for as long as the context is open."""


def find_pages(name: str) -> PagesPackage | str:
    """Load the pages of a package.

    Args:
        name: name of the entry point, and folder of the package in the repository.

    Returns:
        The package; or why it cannot be used and what to install, in one line.
    """
    entry = next(iter(entry_points(group=GROUP, name=name)), None)
    if entry is None:
        return lacking(name) or f"placewright-{name} has no pages: {how_to_install(name)}"
    if entry.dist is not None and entry.dist.version != __version__:
        return f"{entry.dist.name} is {entry.dist.version}, and placewright is {__version__}: {how_to_install(name)}"
    try:
        package: PagesPackage = entry.load()
    except MemoryError:
        raise
    except Exception as broken:  # noqa: BLE001 - a broken package of pages must leave the scheduler at work
        return f"{entry.value} cannot be loaded ({type(broken).__name__}: {broken}): {how_to_install(name)}"
    return package


def no_pages(path: str, why: str) -> Endpoint:
    """Make the endpoint where there are no pages.

    Args:
        path: path of the pages.
        why: the reason, and the package to install; one line.

    Returns:
        An endpoint that says so.
    """

    async def answer(_question: Question) -> Answer:
        raise RequestRefused(_AWAY, why)

    return Endpoint(path, answer, Audience.ITS_OWN, below=True)


class GuardedPages:
    """The pages of one package, behind the doorkeeper."""

    def __init__(self, path: str, pages: Pages, rights: ConsoleRights, elsewhere: Callable[[], str]) -> None:
        """Serve nothing yet; `endpoint` is what serves.

        Args:
            path: path of the pages, such as `/console`.
            pages: pages of the package.
            rights: rights of readers.
            elsewhere: says in a sentence which replica to ask instead; empty if this one places pods.
        """
        self._path = path
        self._pages = pages
        self._rights = rights
        self._elsewhere = elsewhere

    @property
    def endpoint(self) -> Endpoint:
        """The endpoint of the path and of all paths below it."""
        return Endpoint(self._path, self.answer, Audience.ITS_OWN, below=True)

    def lead_changed(self, active: bool) -> None:
        """End the answers that go on where the lead is lost: the state that counts is another replica's."""
        if not active:
            self._pages.end_all()

    async def answer(self, question: Question) -> Answer:
        """Answer a request. A refusal has the headers of the pages, too."""
        try:
            if question.path == self._path:
                # Relative, for proxies that serve it below a path of their own.
                location = f"{self._path.rpartition('/')[2]}/"
                return Answer(b"", status=_FOUND, headers={"Location": location, **SECURITY_HEADERS})
            name = question.path.removeprefix(f"{self._path}/")
            return await self._data(name.removeprefix(_DATA), question) if name.startswith(_DATA) else self._file(name)
        except RequestRefused as refused:
            headers = {**_UNKEPT, **_challenge(question, refused.status)}
            return Answer(f"{refused}\n".encode(), TEXT, refused.status, headers)

    def _file(self, name: str) -> Answer:
        file = self._pages.file(name)
        if file is None:
            raise RequestRefused(_NOT_FOUND, "404 page not found")
        return Answer(file.body, file.content_type, headers={"Cache-Control": "no-cache", **SECURITY_HEADERS})

    async def _data(self, name: str, question: Question) -> Answer:
        if question.site not in ("", "same-origin", "none"):
            raise RequestRefused(_FORBIDDEN, "pages of other sites may not read the console")
        visitor = await self._rights.of(question, anew=name == self._pages.opening)
        if elsewhere := self._elsewhere():
            raise RequestRefused(_AWAY, elsewhere)
        made = await self._pages.answer(name, replace(question, authorization=""), visitor)
        return replace(made, headers={**made.headers, **_UNKEPT})


def active_elsewhere(engine: Engine) -> str:
    """Say which replica places pods, where it is not this one.

    Args:
        engine: engine of this replica.

    Returns:
        A sentence; empty if this one does.
    """
    if engine.ending:
        return "this replica is ending"
    if not engine.started:
        return "this replica is starting: the API server has not answered yet"
    leadership, pod = engine.leading.leadership, engine.leading.replica.identity.partition("/")[0]
    if leadership.active or isinstance(leadership, Alone):
        return ""
    sight = leadership.lease.sight
    holder = "" if sight is None or sight.record.holder == engine.leading.replica.identity else sight.record.holder.partition("/")[0]
    return f"{pod} stands by; {f'the active replica is {holder}' if holder else 'no replica is active now'}"


def _challenge(question: Question, status: int) -> dict[str, str]:
    """Say that another token may help, as RFC 6750, section 3, does. The pages ask for one where they see it."""
    wrong = {_UNAUTHORIZED: "invalid_token", _FORBIDDEN: "insufficient_scope"}.get(status)
    if wrong is None:
        return {}
    return {"WWW-Authenticate": f'Bearer error="{wrong}"' if question.authorization else "Bearer"}
