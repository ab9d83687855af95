"""Pages of other packages: without the package, with one of another version, and with a broken one the operator says so and goes on."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import PackageNotFoundError
from types import SimpleNamespace
from typing import Any

import pytest

from console.makers import HOSTILE
from handlers.stage import Stage, new_stage
from placewright import __version__
from placewright.serving import pages
from placewright.serving.pages import find_pages
from placewright_console.pages.datapages import DATA_PAGES, FEED
from placewright_console.pages.staticpages import static_pages

from .consolestage import Site, site
from .desk import desk

HOW = f"in a clone of Placewright {__version__}, run pip install . ./console"


def offered(version: str = __version__, load: Any = lambda: "the package") -> Any:
    entry = SimpleNamespace(
        name="console", value="their.module", dist=SimpleNamespace(name="placewright-console", version=version), load=load
    )
    return lambda *, group, name: [entry] if (group, name) == ("placewright.pages", "console") else []


def broken() -> object:
    raise ImportError("their own fault")


def missing(name: str) -> str:
    raise PackageNotFoundError(name)


CASES = {
    "missing": (lambda *, group, name: (), f"placewright-console is not installed: {HOW}"),
    "older": (offered("0.0.9"), f"placewright-console is 0.0.9, and placewright is {__version__}: {HOW}"),
    "newer": (offered("99.0"), f"placewright-console is 99.0, and placewright is {__version__}: {HOW}"),
    "broken": (offered(load=broken), f"their.module cannot be loaded (ImportError: their own fault): {HOW}"),
}


def test_the_console_is_found_by_its_entry_point() -> None:
    assert not isinstance(find_pages("console"), str)


def test_a_package_of_the_operators_version_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "entry_points", offered())
    assert find_pages("console") == "the package"


@pytest.mark.parametrize("case", CASES)
async def test_without_a_package_that_fits_the_path_says_what_to_install_and_pods_are_placed(
    case: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    offers, said = CASES[case]
    monkeypatch.setattr(pages, "entry_points", offers)
    monkeypatch.setattr("placewright.framework.distributions.version", missing)
    async with at_work() as stage, desk(stage, console=True) as asked:
        assert [record.levelno for record in caplog.records if said in record.getMessage()] == [logging.WARNING]
        for path in ("/console", "/console/", "/console/app.js", "/console/api/feed"):
            answer = await asked.get(path)
            assert (answer.status, answer.text) == (503, f"{said}\n"), path
        names = stage.pods(3)
        await stage.until(lambda: stage.placed(*names))


async def test_a_package_whose_pages_do_not_open_is_told_and_pods_are_placed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def open_pages(_view: object) -> object:
        raise AttributeError("the scheduler has no such part")

    monkeypatch.setattr(pages, "entry_points", offered(load=lambda: SimpleNamespace(open_pages=open_pages)))
    async with at_work() as stage, desk(stage, console=True) as asked:
        assert "the scheduler has no such part" in caplog.text
        answer = await asked.get("/console/")
        assert (answer.status, answer.text) == (503, "the package of the console's pages is broken; the log of this replica says how\n")
        names = stage.pods(3)
        await stage.until(lambda: stage.placed(*names))


@asynccontextmanager
async def at_work() -> AsyncIterator[Stage]:
    async with new_stage() as stage:
        yield stage.profile().nodes(2)


# --- the doorkeeper ------------------------------------------------------------------------------------------------------------------


@pytest.fixture
async def here() -> AsyncIterator[Site]:
    async with site() as made:
        yield made


async def test_no_question_reaches_a_package_before_the_doorkeeper_lets_it_in(here: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    reached: list[str] = []

    async def noted(name: str, *_: object) -> object:
        reached.append(name)
        raise AssertionError

    monkeypatch.setattr(here.console, "answer", noted)
    stranger = here.judge.person(HOSTILE, "everywhere")
    for name in (FEED, *DATA_PAGES, "anything", ""):
        for token in ("", "nonsense", stranger):
            assert (await here.read(f"/console/api/{name}?pod=shop/web&name=n1", token))[0] in (401, 403)
    assert reached == []


async def test_a_package_never_sees_a_token(here: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Any] = []
    answer = here.console.answer

    async def noted(name: str, question: Any, visitor: Any) -> Any:
        heard.append((question, visitor))
        return await answer(name, question, visitor)

    monkeypatch.setattr(here.console, "answer", noted)
    token = here.judge.person("ann", "enter", "everywhere")
    assert (await here.read("/console/api/node?name=n1", token))[0] == 200
    assert len(heard) == 1
    assert token not in repr(heard[0])
    assert heard[0][0].authorization == ""


async def test_what_is_open_to_all_is_files_of_the_package_alone(here: Site) -> None:
    for name in (*DATA_PAGES, FEED):
        assert name not in static_pages()
        assert (await here.read(f"/console/{name}"))[0] == 404
