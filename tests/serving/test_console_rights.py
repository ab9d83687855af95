"""What a reader of the console may see: what the API server says, for a bounded while, in a bounded number of questions."""

from __future__ import annotations

import asyncio

import pytest

from placewright.http.routes import Question
from placewright.observability.logs import FEW, Repeats
from placewright.serving import readerrights as module
from placewright.serving.readerrights import ANEW_SECONDS, KEPT_SECONDS, REFUSED_SECONDS, ConsoleRights
from placewright.serving.rights import ALL_NAMESPACES, Rights
from placewright.testing import VirtualTime

from .consolestage import FakeJudge, seen


class Desk:
    def __init__(self, *namespaces: str) -> None:
        self.judge, self.clock, self.namespaces = FakeJudge(), VirtualTime(1000.0), set(namespaces)
        self.rights = ConsoleRights(self.judge, lambda: self.namespaces, self.clock)

    async def sees(self, token: str) -> Rights | int:
        return await seen(self.rights, token)

    def asked(self) -> list[str]:
        found, self.judge.asked = self.judge.asked, []
        return found


async def test_the_right_to_list_all_pods_shows_all_and_no_namespace_is_asked_about() -> None:
    desk = Desk("shop", "bank")
    assert await desk.sees(desk.judge.person("ann", "enter", "everywhere")) == ALL_NAMESPACES
    assert desk.asked() == ["token", "enter", "everywhere"]


async def test_others_see_the_namespaces_in_which_they_may_list_pods() -> None:
    desk = Desk("shop", "bank", "web")
    assert await desk.sees(desk.judge.person("bob", "enter", "shop", "web")) == Rights.of(["shop", "web"])
    assert await desk.sees(desk.judge.person("eve", "enter")) == Rights.of([])


@pytest.mark.parametrize("rights", [(), ("everywhere",), ("shop",)])
async def test_without_the_right_to_enter_nothing_is_seen_whatever_else_is_allowed(rights: tuple[str, ...]) -> None:
    desk = Desk("shop")
    assert await desk.sees(desk.judge.person("mallory", *rights)) == 403
    assert desk.asked() == ["token", "enter"]


async def test_without_a_token_or_with_a_wrong_one_a_token_is_asked_for() -> None:
    desk = Desk("shop")
    assert [await desk.sees(""), await desk.sees("nonsense")] == [401, 401]


async def test_a_cluster_may_let_everybody_in() -> None:
    desk = Desk("shop")
    desk.judge.person("system:anonymous", "enter", "shop")
    assert await desk.sees("") == Rights.of(["shop"])


async def test_answers_hold_for_half_a_minute_and_a_right_that_is_withdrawn_is_gone_then() -> None:
    desk = Desk("shop", "bank")
    token = desk.judge.person("bob", "enter", "shop")
    assert await desk.sees(token) == Rights.of(["shop"])
    desk.asked()
    desk.judge.rights["bob"].discard("shop")
    desk.clock.now += KEPT_SECONDS - 0.1
    assert await desk.sees(token) == Rights.of(["shop"])
    assert desk.asked() == []
    desk.clock.now += 0.2
    assert await desk.sees(token) == Rights.of([])
    assert desk.asked() == ["token", "enter", "everywhere", "shop"], "a refusal for one namespace holds longer"


async def test_a_token_that_has_run_out_is_noticed() -> None:
    desk = Desk("shop")
    token = desk.judge.person("bob", "enter", "shop")
    await desk.sees(token)
    del desk.judge.rights["bob"]
    desk.clock.now += KEPT_SECONDS + 0.1
    assert await desk.sees(token) == 401


async def test_a_namespace_that_is_granted_later_and_a_new_one_are_seen() -> None:
    desk = Desk("shop")
    token = desk.judge.person("bob", "enter")
    assert await desk.sees(token) == Rights.of([])
    desk.judge.rights["bob"] |= {"shop", "new"}
    desk.namespaces.add("new")
    assert await desk.sees(token) == Rights.of(["new"])
    desk.clock.now += REFUSED_SECONDS + 0.1
    assert await desk.sees(token) == Rights.of(["new", "shop"])


async def test_refusals_are_asked_for_again_when_the_page_is_loaded_anew_and_not_often() -> None:
    desk = Desk("shop", "bank")
    question = Question("/console/api/feed", authorization=f"Bearer {desk.judge.person('bob', 'enter')}")
    assert (await desk.rights.of(question, anew=True)).rights == Rights.of([])
    desk.judge.rights["bob"].add("shop")
    desk.asked()
    for _ in range(5):
        assert (await desk.rights.of(question, anew=True)).rights == Rights.of([]), "the page was loaded a moment ago"
    assert not {"shop", "bank"} & set(desk.asked())
    desk.clock.now += ANEW_SECONDS
    assert (await desk.rights.of(question)).rights == Rights.of([]), "a look at the rights of a stream asks nothing anew"
    assert (await desk.rights.of(question, anew=True)).rights == Rights.of(["shop"])
    assert sorted({"shop", "bank"} & set(desk.asked())) == ["bank", "shop"]


async def test_a_namespace_that_is_deleted_is_no_longer_seen_and_not_remembered() -> None:
    desk = Desk("shop", "bank")
    token = desk.judge.person("bob", "enter", "shop")
    await desk.sees(token)
    desk.namespaces.discard("shop")
    assert await desk.sees(token) == Rights.of([])
    (answers,) = desk.rights._answers.values()
    assert [*answers.kept] == ["bank"]


async def test_while_the_api_server_is_away_no_reader_is_let_in_or_asked_for_another_token(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caplog.handler, "filters", [Repeats()])  # as in the log of an operator
    desk = Desk("shop")
    token = desk.judge.person("bob", "enter", "shop")
    await desk.sees(token)
    desk.judge.away = True
    assert await desk.sees(token) == Rights.of(["shop"]), "the answers hold"
    assert [await desk.sees("token-of-another") for _ in range(9)] == [503] * 9
    assert caplog.text.count("the API server does not say what readers of the console may see") == FEW
    desk.clock.now += KEPT_SECONDS + 0.1
    assert await desk.sees(token) == 503


async def test_the_questions_are_bounded_and_the_service_accounts_own_namespace_is_among_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_NAMESPACES", 20)
    desk = Desk(*(f"n{i:03d}" for i in range(100)), "z-own")
    token = desk.judge.person("system:serviceaccount:z-own:bob", "enter", "z-own", "n003", "n050")
    assert await desk.sees(token) == Rights.of(["z-own", "n003"])
    assert len(desk.asked()) == 3 + 20
    assert desk.judge.most_under_way == 8


async def test_what_is_not_answered_in_time_is_not_seen_and_asked_for_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ASKING_SECONDS", 0.05)
    desk = Desk("shop", "bank", "web")
    token = desk.judge.person("bob", "enter", "shop", "bank", "web")
    desk.judge.silent.add("bank")
    assert await desk.sees(token) == Rights.of(["shop", "web"])
    desk.asked()
    desk.judge.silent.clear()
    assert await desk.sees(token) == Rights.of(["shop", "web", "bank"])
    assert desk.asked() == ["bank"]
    assert desk.judge.under_way == 0


async def test_many_tabs_of_one_user_ask_about_each_namespace_once() -> None:
    desk = Desk(*(f"n{i}" for i in range(30)))
    token = desk.judge.person("bob", "enter", "n3")
    found = await asyncio.gather(*(desk.sees(token) for _ in range(20)))
    assert set(found) == {Rights.of(["n3"])}
    assert sorted(each for each in desk.asked() if each.startswith("n")) == sorted(desk.namespaces)


async def test_what_is_remembered_of_many_users_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_ANSWERS", 50)
    desk = Desk(*(f"n{i}" for i in range(20)))
    for number in range(10):
        await desk.sees(desk.judge.person(f"user-{number}", "enter"))
    assert sum(map(len, desk.rights._answers.values())) <= 50
