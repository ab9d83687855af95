"""What a waiting pod would meet on each node: held to `explain` and to a naive judge, small, and made without holding up others."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from placewright.api.objects import NodeName
from placewright.explain.explanation import evaluated
from placewright.http.routes import RequestRefused
from placewright.serving.rights import ALL_NAMESPACES, Rights
from placewright_console.pages.nodeverdicts import MOST_RANKED, Judging, node_verdicts
from placewright_console.pages.verdictdesk import FRESH_SECONDS, MOST_KEPT, MOST_WAITING, VerdictDesk
from placewright_lab.consolefiles.additions import open_file
from placewright_lab.consolefiles.openedfile import FileSource
from randomcases import cases

from .makers import Object, a_node, a_pod, claim_profile, file_of, put, shop


def finished(work: Judging) -> dict[str, Any]:
    """The answer, and nothing between its slices."""
    while True:
        try:
            next(work)
        except StopIteration as ended:
            made: dict[str, Any] = ended.value
            return made


def verdict_of(answer: dict[str, Any], name: str) -> tuple[str, str]:
    """As a page reads it."""
    place = next((int(place) for place, names in answer["named"].items() if name in names), answer["rest"])
    plugin, reason, _ = answer["verdicts"][place]
    return plugin, reason


async def asked(source: FileSource, namespace: str, name: str, rights: Rights = ALL_NAMESPACES) -> Any:
    found = await source.company.verdicts(namespace, name, rights)
    return None if found is None else json.loads(found)


async def test_each_node_has_its_verdict_and_those_that_fit_their_rank(tmp_path: Path) -> None:
    source = open_file(shop(tmp_path / "s"), 2**20)
    answer = await asked(source, "ml", "train-0")
    assert {name: verdict_of(answer, name) for name in ("a-1", "a-2", "b-1", "gpu-1")} == {
        "a-1": ("NodeResourcesFit", "Insufficient example.com/gpu"), "a-2": ("NodeUnschedulable", "node(s) were unschedulable"),
        "b-1": ("NodeResourcesFit", "Insufficient example.com/gpu"), "gpu-1": ("NodeResourcesFit", "Insufficient example.com/gpu"),
    }  # fmt: skip
    assert answer["named"] == {"1": ["a-2"]}, "the nodes of the most frequent verdict are not named"
    page, small = source.pod("shop", "small"), await asked(source, "shop", "small")
    assert page is not None
    assert [[each["node"], each["total"]] for each in page["best"]] == small["best"]
    assert small["verdicts"][0] == ["", "", 2]


@pytest.mark.parametrize("seed", range(cases(40)))
async def test_what_nodes_without_room_lack_is_what_a_naive_judge_finds(seed: int, tmp_path: Path) -> None:
    nodes, waiting = crowd(random.Random(seed))
    waiting["spec"]["nodeSelector"] = {}
    waiting["spec"]["tolerations"] = [{"key": f"example.com/{key}", "operator": "Exists"} for key in "ab"]
    answer = await asked(open_file(file_of(tmp_path / "s", [*nodes, waiting, claim_profile()]), 2**20), "shop", "w")
    requests = waiting["spec"]["containers"][0]["resources"]["requests"]
    wants = {"cpu": int(requests["cpu"].removesuffix("m")), "example.com/gpu": int(requests.get("example.com/gpu", 0))}
    lacks = dict[str, dict[str, int]]()
    levels = dict[str, int]()
    for each in nodes:
        has = each["status"]["allocatable"]
        offers = {"cpu": 1000 * int(has["cpu"]), "example.com/gpu": int(has.get("example.com/gpu", 0))}
        missing = {name: wants[name] - offers[name] for name in wants if wants[name] > offers[name]}
        if missing and not each["spec"].get("unschedulable"):
            name = each["metadata"]["name"]
            lacks[name] = missing
            share = max(missing[resource] / wants[resource] for resource in missing)
            none = any(not offers[resource] for resource in missing)
            levels[name] = 4 if none else sum(share > step for step in (0.1, 0.25, 0.5))
    told = {name: int(level) for level, names in answer["lacking"].items() for name in names}
    most = max(range(len(answer["lacks"])), key=lambda level: answer["lacks"][level]) if lacks else -1
    assert {name: told.get(name, most) for name in lacks} == levels
    assert answer["lacks"] == ([list(levels.values()).count(level) for level in range(5)] if lacks else [])
    near = {name: missing for name, missing in lacks.items() if levels[name] < 4}
    order = sorted(sum(missing[name] / wants[name] for name in missing) for missing in near.values())
    assert [sum(missing[name] / wants[name] for name in missing) for _, missing in answer["nearest"]] == pytest.approx(order[:10])
    assert all(near[name] == missing for name, missing in answer["nearest"])


async def test_a_pod_without_verdicts_says_why(tmp_path: Path) -> None:
    source = open_file(shop(tmp_path / "s"), 2**20)
    held, lost = await asked(source, "shop", "held"), await asked(source, "shop", "lost")
    assert held["told"].startswith("it would not be tried: ") and "example.com/quota" in held["told"]
    assert "did you mean 'default-scheduler'" in lost["told"]
    assert (held["verdicts"], lost["verdicts"]) == ([], [])
    assert await asked(source, "shop", "web-1") is None, "it does not wait"
    assert await asked(source, "shop", "nobody") is None


async def test_verdicts_are_for_readers_of_the_pods_namespace(tmp_path: Path) -> None:
    source = open_file(shop(tmp_path / "s"), 2**20)
    assert await asked(source, "ml", "train-0", Rights.of(["shop"])) is None
    assert await asked(source, "ml", "train-0", Rights.of(["ml"])) is not None


def crowd(draw: random.Random) -> tuple[list[Object], Object]:
    """Nodes that are cordoned, tainted, labelled or full, and a pod that selects, tolerates and asks."""
    taints = ["", "example.com/a", "example.com/b"]
    nodes = [
        a_node(f"n{i}", cpu=draw.randint(1, 8), gpu=draw.randint(0, 1), cordoned=draw.random() < 0.2, taint=draw.choice(taints),
             disk=draw.choice(["ssd", "hdd"]))
        for i in range(draw.randint(1, 30))
    ]  # fmt: skip
    selects = {"nodeSelector": {"disk": "ssd"}} if draw.random() < 0.5 else {}
    tolerates = [{"key": "example.com/a", "operator": "Exists"}] if draw.random() < 0.5 else []
    return nodes, a_pod("w", cpu=draw.randint(1, 8) * 500, gpu=draw.randint(0, 1), tolerations=tolerates, **selects)


def naive(each: Object, waiting: Object) -> str:
    """The first plugin of the default profile that rejects the node."""
    spec, meta = each["spec"], each["metadata"]
    if spec.get("unschedulable"):
        return "NodeUnschedulable"
    tolerated = [toleration["key"] for toleration in waiting["spec"]["tolerations"]]
    if any(taint["key"] not in tolerated for taint in spec.get("taints", ())):
        return "TaintToleration"
    if any(meta["labels"].get(key) != value for key, value in waiting["spec"].get("nodeSelector", {}).items()):
        return "NodeAffinity"
    requests, has = waiting["spec"]["containers"][0]["resources"]["requests"], each["status"]["allocatable"]
    fits = int(requests["cpu"].removesuffix("m")) <= int(has["cpu"]) * 1000
    fits = fits and int(requests.get("example.com/gpu", 0)) <= int(has.get("example.com/gpu", 0))
    return "" if fits else "NodeResourcesFit"


@pytest.mark.parametrize("seed", range(cases(40)))
async def test_of_random_clusters_verdicts_are_those_of_explain_and_of_a_naive_judge(seed: int, tmp_path: Path) -> None:
    nodes, waiting = crowd(random.Random(seed))
    source = open_file(file_of(tmp_path / "s", [*nodes, waiting, claim_profile()]), 2**20)
    answer = await asked(source, "shop", "w")
    assert {each["metadata"]["name"]: verdict_of(answer, each["metadata"]["name"])[0] for each in nodes} == {
        each["metadata"]["name"]: naive(each, waiting) for each in nodes
    }
    world = source.world
    now = evaluated(world.evaluators["default-scheduler"], world.cluster, next(iter(world.pending.values())), top=99)
    assert Counter({(each.plugin, each.reason): each.nodes for each in now.refusals}) == Counter(
        {(plugin, reason): many for plugin, reason, many in answer["verdicts"][1:]}
    )
    assert [[each.node, each.total] for each in now.best] == answer["best"]
    assert (now.feasible, now.nodes) == (answer["verdicts"][0][2], answer["nodes"])


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> FileSource:
    """5,000 nodes: a fifth is closed, a fifth too small, and the others fit."""
    names = [f"ip-10-0-{i // 256}-{i % 256}.eu-west-1.compute.internal" for i in range(5000)]
    nodes = [a_node(name, cpu=1 if i % 5 == 1 else 4, cordoned=i % 5 == 0) for i, name in enumerate(names)]
    return open_file(file_of(tmp_path_factory.mktemp("wide") / "s", [*nodes, a_pod("w", cpu=2000), claim_profile()]), 2**24)


async def test_the_answer_about_5000_nodes_is_small_and_ranks_a_bounded_number(wide: FileSource) -> None:
    found = await wide.company.verdicts("shop", "w", ALL_NAMESPACES)
    assert found is not None
    answer = json.loads(found)
    assert [many for *_, many in answer["verdicts"]] == [3000, 1000, 1000]
    assert len(answer["best"]) == MOST_RANKED
    assert len(found) < 130_000


async def test_others_have_their_turn_while_an_answer_is_made_and_the_cluster_may_change_meanwhile(wide: FileSource) -> None:
    world = wide.world
    work = node_verdicts(world.evaluators["default-scheduler"], world.cluster, next(iter(world.pending.values())))
    next(work)
    put(world.cluster, a_node("late"))
    slices = 1
    while True:
        try:
            next(work)
        except StopIteration as ended:
            answer = ended.value
            break
        slices += 1
    world.cluster.remove_node(NodeName("late"))
    assert slices >= 2
    assert answer["nodes"] == 5000 and "late" not in str(answer)


# --- the desk -----------------------------------------------------------------------------------------------------------------------


class Clock:
    """Time passes as the desk sleeps, and while slices work."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.slept: list[float] = []
        real = asyncio.sleep

        async def sleep(seconds: float) -> None:
            self.slept += [seconds] if seconds else []
            self.now += seconds
            await real(0)

        monkeypatch.setattr("placewright_console.pages.verdictdesk.asyncio.sleep", sleep)

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


class Work:
    """Counts the evaluations, and how many are under way at once."""

    def __init__(self, clock: Clock, seconds: float = 0.1, slices: int = 3) -> None:
        self.clock, self.seconds, self.slices = clock, seconds, slices
        self.made = self.under_way = self.most = 0

    def __call__(self) -> Judging:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        for _ in range(self.slices):
            self.clock.now += self.seconds / self.slices
            yield
        self.under_way -= 1
        self.made += 1
        return {"number": self.made}


async def test_one_question_is_answered_at_a_time_and_equal_ones_share_an_answer(clock: Clock) -> None:
    desk, work = VerdictDesk(clock), Work(clock, seconds=0.01)
    answers = await asyncio.gather(*(desk.answer(who, work) for who in ("a", "b", "a", "b", "a")))
    assert (work.most, work.made) == (1, 2)
    assert answers == [b'{"number":1}', b'{"number":2}'] * 2 + [b'{"number":1}']
    clock.now += FRESH_SECONDS
    assert await desk.answer("a", work) == b'{"number":3}'


async def test_evaluations_take_a_share_of_the_time_that_passes(clock: Clock) -> None:
    desk, work = VerdictDesk(clock, share=0.05), Work(clock, seconds=0.1)
    began = clock.now
    for number in range(20):
        await desk.answer(str(number), work)
    assert work.made * work.seconds <= 0.06 * (clock.now - began)


async def test_the_first_question_does_not_wait(clock: Clock) -> None:
    await VerdictDesk(clock).answer("a", Work(clock))
    assert clock.slept == []


async def test_questions_beyond_the_bound_are_refused_and_a_reader_who_leaves_makes_room(clock: Clock) -> None:
    desk, work = VerdictDesk(clock), Work(clock)
    waiting = [asyncio.create_task(desk.answer(str(number), work)) for number in range(MOST_WAITING)]
    await asyncio.sleep(0)
    with pytest.raises(RequestRefused):
        await desk.answer("late", work)
    waiting[-1].cancel()
    await asyncio.wait([waiting[-1]])
    assert await desk.answer("late", work) is not None
    for task in waiting:
        task.cancel()


async def test_a_pod_that_is_gone_when_its_turn_comes_has_no_answer_and_answers_have_a_bound(clock: Clock) -> None:
    desk, work = VerdictDesk(clock), Work(clock, seconds=0.0)
    assert await desk.answer("gone", lambda: None) is None
    for number in range(3 * MOST_KEPT):
        await desk.answer(str(number), work)
    assert len(desk._kept) == MOST_KEPT
