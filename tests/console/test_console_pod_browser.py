"""The pages of a pod and of a group in a real browser: what is told first, what is told once, and what is a link."""

from __future__ import annotations

from pathlib import Path

from placewright.api.annotations import DECISION
from programs import needs

from .companymakers import group, member
from .makers import Object, a_node, a_pod, claim_profile, file_of
from .sights import shadow
from .visits import console

pytestmark = needs("chromium")
TEXT = "document.querySelector({!r})?.innerText ?? ''"


def described(name: str) -> Object:
    made = a_pod(name, cpu=97_500, priority=1200, created="2026-11-23T10:00:00Z")
    made["metadata"] |= {"labels": {"app": "web", "tier": "front"}, "ownerReferences": [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7f", "uid": "u", "controller": True}]}  # fmt: skip
    return made


async def test_a_waiting_pod_says_what_it_asks_for_and_first_that_no_node_is_large_enough(chromium: int, tmp_path: Path) -> None:
    path = file_of(tmp_path / "s", [a_node("a", cpu=4), a_node("b", cpu=16), described("large"), claim_profile()])
    async with console(chromium, path) as (page, _):
        await page.run("void (location.hash = '#/pod/shop/large')")
        await page.until("document.getElementById('changes')")
        asks = await page.run(TEXT.format("#asks"))
        for told in ("97.5 cpu", "1,200", "2 h", "ReplicaSet web-7f", "app=web", "tier=front"):
            assert told in asks
        assert await page.run(TEXT.format("#beyond")) == "It asks for more cpu than any node has (the largest has 16000m)."
        assert "no node is that large" not in await page.run("document.body.innerText")
        before = "document.getElementById('beyond').compareDocumentPosition(document.getElementById('changes'))"
        assert await page.run(f"{before} & Node.DOCUMENT_POSITION_FOLLOWING")


async def test_nodes_that_tie_are_counted_and_equal_scores_are_told_once(chromium: int, tmp_path: Path) -> None:
    alike = [a_node(f"n{i:02d}", cpu=8) for i in range(14)]
    path = file_of(tmp_path / "s", [*alike, a_node("small", cpu=2), a_pod("web", cpu=1000), claim_profile()])
    async with console(chromium, path) as (page, _):
        await page.run("void (location.hash = '#/pod/shop/web')")
        await page.until("document.getElementById('scores')")
        assert (await page.run(TEXT.format("#ties"))).startswith("14 nodes tie at ")
        assert "TaintToleration 300" in await page.run(TEXT.format("#same"))
        assert await page.run("document.querySelectorAll('#scores .lane i').length") == 0
        assert await page.run("document.querySelectorAll('#scores .scores a').length") == 10


async def test_bars_have_the_parts_that_differ(chromium: int, tmp_path: Path) -> None:
    path = file_of(tmp_path / "s", [a_node("a", cpu=8), a_node("b", cpu=2), a_pod("web", cpu=1000), claim_profile()])
    async with console(chromium, path) as (page, _):
        await page.run("void (location.hash = '#/pod/shop/web')")
        await page.until("document.getElementById('scores')")
        assert "TaintToleration 300" in await page.run(TEXT.format("#same"))
        assert "TaintToleration" not in await page.run(TEXT.format("#scores .legend"))
        assert "NodeResourcesFit" in await page.run(TEXT.format("#scores .legend"))
        assert await page.run(TEXT.format("#ties")) == ""


async def test_a_placed_pod_says_why_it_has_its_node_and_what_is_not_kept(chromium: int, tmp_path: Path) -> None:
    decided = a_pod("web", "a")
    made = '{"profile": "default", "score": 457, "runnerUp": 450, "plugins": {"NodeResourcesFit": 157, "TaintToleration": 300}}'
    decided["metadata"]["annotations"] = {DECISION: made}
    async with console(chromium, file_of(tmp_path / "s", [a_node("a"), a_node("b"), decided, claim_profile()])) as (page, _):
        await page.run("void (location.hash = '#/pod/shop/web')")
        await page.until("document.getElementById('decision')")
        told = await page.run(TEXT.format("#decision"))
        assert "Score 457; the best other node had 450, 7 less." in told
        assert "Names and scores of the other nodes are not kept." in told
        assert await page.run("document.querySelector('#pod .lines a').getAttribute('href')") == "#/cluster?node=a"


async def test_the_page_without_a_pod_lists_the_waiting_ones_by_namespace(chromium: int, tmp_path: Path) -> None:
    waits = [a_pod(f"web-{i}", namespace="shop", cpu=99_000) for i in range(25)] + [a_pod("job", namespace="ml", cpu=99_000)]
    async with console(chromium, file_of(tmp_path / "s", [a_node("a"), *waits, claim_profile()])) as (page, _):
        await page.run("void (location.hash = '#/pod')")
        await page.until("document.querySelectorAll('#waiting-pods > section').length === 2")
        heads = await page.run("[...document.querySelectorAll('#waiting-pods h2')].map((each) => each.textContent)")
        assert heads == ["ml 1 pod waits", "shop 25 pods wait"]
        assert await page.run("document.querySelector('#waiting-pods a').getAttribute('href')") == "#/pod/ml/job"
        assert await page.run("document.querySelectorAll('#waiting-pods > section:last-child a').length") == 20


async def test_a_group_has_a_headline_and_its_members_in_the_order_of_their_numbers(chromium: int, tmp_path: Path) -> None:
    nodes = [a_node(f"{pool}-{i}", cpu=8, pool=pool) for pool in ("web", "gpu") for i in range(2 if pool == "web" else 8)]
    members = [member("llm", f"llm-{i}", cpu=6000) for i in range(12)]
    for most, told in ((8, "It would go to pool gpu, which has room for all 8 members."),
                       (12, "It waits: no pool has room for all 12 members: gpu has room for 8.")):  # fmt: skip
        path = file_of(tmp_path / f"s{most}", [*nodes, group("llm", most, topology="pool"), *members[:most], claim_profile()])
        async with console(chromium, path) as (page, _):
            await page.run("void (location.hash = '#/group/ml/llm')")
            await page.until("document.getElementById('members')")
            assert await page.run(TEXT.format("#headline")) == told
            names = await page.run("[...document.querySelectorAll('#members tbody a')].map((each) => each.textContent)")
            assert names == [f"ml/llm-{i}" for i in range(most)]


async def test_what_is_not_known_of_a_shadow_is_not_zero(chromium: int, tmp_path: Path) -> None:
    path = file_of(tmp_path / "s", [a_node("a"), claim_profile(), shadow("greener", "default")])
    async with console(chromium, path) as (page, _):
        await page.run("void (location.hash = '#/shadows')")
        await page.until("document.querySelector('#shadows table')")
        told = await page.run(TEXT.format("#shadows"))
        assert "50 ± 10 %\tnot known" in told
        assert "empty nodes\t0\tnot known" in told
        assert "0 ± 0 %" not in told
