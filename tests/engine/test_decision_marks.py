"""Marks around decisions, through the deaths of many replicas: what is written, what the next makes of it, and what ordinary pods cost."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placewright.api.decisionmarks import HEAVY_WORK, DecisionMark, MarkedPod, marked
from placewright.api.podgroups import GROUP_LABEL
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.engine.decisionmarks import FORGET_SECONDS, MOST_IN_NAMESPACE, MOST_MARKS, MarkKeeper
from placewright.framework.interface import CycleState, PreFilterPlugin, PreFilterResult, Reads
from placewright.framework.status import SUCCESS
from placewright.kube.decisionmarks import MarkStore
from placewright.kube.errors import CONFLICT, FORBIDDEN, ApiError, RequestError, Unreachable
from placewright.queue.check import check_invariants
from placewright.queue.suspects import FIRST_WAIT, LONG_WAIT, wait_after
from randomcases import cases
from scheduler.makers import PodMaker, World, node, pod
from scheduler.podgroups.makers import group, member

#: Turns of the loop in which all that is active is decided and bound, for as many pods as there are here.
_TURNS = 400


class Died(BaseException):
    """The process is gone, as by SIGKILL: nobody catches this."""


@dataclass
class Shelf:
    """What the API server keeps of marks; outlives replicas. `broken`: what every request ends with; `asked`: what was asked for."""

    marks: dict[str, DecisionMark] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    broken: RequestError | None = None
    versions: int = 0
    now: float = 1_000_000.0


class ShelfStore(MarkStore):
    """One replica's way to the shelf."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    def _ask(self, what: str) -> None:
        self._shelf.asked.append(what)
        if self._shelf.broken is not None:
            raise self._shelf.broken

    def _put(self, mark: DecisionMark) -> DecisionMark:
        self._shelf.versions += 1
        stored = self._shelf.marks[mark.pod.name] = mark._replace(version=str(self._shelf.versions))
        return stored

    async def marks(self) -> list[DecisionMark]:
        self._ask("list")
        return list(self._shelf.marks.values())

    async def open(self, pod: MarkedPod, by: str) -> DecisionMark:
        self._ask("open")
        return self._put(self._shelf.marks.get(pod.name, DecisionMark(pod))._replace(opened_by=by))

    async def count_death(self, mark: DecisionMark, at: float) -> DecisionMark:
        self._ask("count")
        if self._shelf.marks[mark.pod.name].version != mark.version:
            raise ApiError(CONFLICT, "Conflict", "changed")
        return self._put(mark._replace(deaths=mark.deaths + 1, opened_by="", died_at=at))

    async def close(self, mark: DecisionMark) -> None:
        self._ask("close")
        if self._shelf.marks.get(mark.pod.name, mark).version == mark.version:
            self._shelf.marks.pop(mark.pod.name, None)


class Deadly(PreFilterPlugin):
    """Ends the process in the decision about a pod with the label `deadly`; remembers in which order pods were decided."""

    name = "Deadly"
    reads = Reads.CLUSTER  # else pods that look alike are asked about once
    decided: list[str]

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> PreFilterResult:
        self.decided.append(pod.name)
        if "deadly" in pod.labels:
            raise Died
        return PreFilterResult(SUCCESS)


class Replica:
    """A scheduler with its marks; `decided`: pods whose decision began, in order."""

    def __init__(self, shelf: Shelf, name: str = "r-1") -> None:
        self.decided: list[str] = []
        deadly = type("Deadly", (Deadly,), {"decided": self.decided})
        self.world = World(deadly).nodes(node("a").offers(pods="1000", cpu="1000"))
        self.world.now = shelf.now
        self.keeper = MarkKeeper(
            ShelfStore(shelf), name, self.world.queue, self.world.cluster, clock=lambda: self.world.now, now=lambda: shelf.now
        )
        scheduler = self.world.scheduler
        scheduler.loop.precautions = self.keeper
        self._shelf = shelf

    async def begins(self, *makers: PodMaker) -> Replica:
        self.world.pods(*makers)
        await self.keeper.begin_term()
        return self

    async def decides_all(self) -> bool:
        """Everything that is active; False where that was the end of it."""
        running = asyncio.create_task(self.world.scheduler.run())
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        died = running.done()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        if not died:
            await self.world.scheduler.drain(1)
            check_invariants(self.world.queue)
        return not died

    async def waits(self, seconds: float) -> bool:
        """Time passes, a beat comes, and what was let in is decided."""
        self.world.now += seconds
        self._shelf.now += seconds
        await self.keeper.beat(self.world.events, self.world.status)
        return await self.decides_all()


def heavy(name: str, variant: str = "0") -> PodMaker:
    """A pod with many terms, of which one differs between variants."""
    terms = [{"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": f"{variant}-{at}"}}} for at in range(HEAVY_WORK // 10)]
    preferred = [{"weight": 1, "podAffinityTerm": term} for term in terms]
    return pod(name).spec(affinity={"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}})


def deadly(maker: PodMaker) -> PodMaker:
    return maker.labels(deadly="yes")


async def test_ordinary_pods_are_decided_without_a_request() -> None:
    shelf = Shelf()
    replica = await Replica(shelf).begins(*(pod(f"web-{number}") for number in range(50)))
    assert await replica.decides_all()
    assert len(replica.decided) == 50
    assert shelf.asked == ["list"]


async def test_a_heavy_decision_is_marked_before_it_begins_and_the_mark_goes_when_it_has_ended() -> None:
    shelf = Shelf()
    replica = await Replica(shelf).begins(heavy("large"))
    assert await replica.decides_all()
    assert shelf.asked == ["list", "open"]
    await replica.waits(1)
    assert shelf.asked == ["list", "open", "close"]
    assert shelf.marks == {}
    assert replica.keeper.counts.opened == replica.keeper.counts.closed == 1


async def test_a_spec_whose_decision_has_ended_is_not_marked_again() -> None:
    shelf = Shelf()
    replica = await Replica(shelf).begins(*(heavy(f"large-{number}") for number in range(30)))
    assert await replica.decides_all()
    assert len(replica.decided) == 30
    assert shelf.asked.count("open") == 1


async def test_the_mark_of_a_decision_that_ended_the_process_is_left_and_counts_a_death() -> None:
    shelf = Shelf()
    first = await Replica(shelf).begins(deadly(heavy("poison")))
    assert not await first.decides_all()
    (mark,) = shelf.marks.values()
    assert (mark.opened_by, mark.deaths) == ("r-1", 0)
    second = await Replica(shelf, "r-2").begins(deadly(heavy("poison")))
    (mark,) = shelf.marks.values()
    assert (mark.opened_by, mark.deaths) == ("", 1)
    assert second.keeper.counts.death == 1


async def test_an_innocent_pod_is_placed_at_once_and_the_poison_is_tried_last_and_then_rarely() -> None:
    shelf = Shelf()
    first = await Replica(shelf).begins(deadly(heavy("poison").priority(100)), pod("innocent"))
    assert not await first.decides_all()
    assert first.decided == ["poison"]
    for number, deaths in enumerate((1, 2, 3), start=2):
        successor = await Replica(shelf, f"r-{number}").begins(deadly(heavy(f"poison-{number}").uid(f"new-{number}").priority(100)))
        successor.world.pods(pod("innocent"), pod("web"))
        assert await successor.decides_all()
        assert successor.decided == ["innocent", "web"], "none of them waited, and the poison did not come in between"
        assert await successor.waits(wait_after(deaths) - 1)
        assert successor.decided == ["innocent", "web"]
        assert not await successor.waits(1), "it is tried again all the same"


async def test_a_tenant_that_makes_another_poison_after_each_death_ends_few_processes_in_an_hour() -> None:
    """Never the same spec twice, the highest priority, always there before the innocent pod of the same moment."""
    shelf = Shelf()
    until, ended, placed = shelf.now + 3600.0, 0, 0
    for number in range(100):
        replica = await Replica(shelf, f"r-{number}").begins(deadly(heavy(f"poison-{number}", str(number)).priority(100)), pod("web"))
        alive = await replica.decides_all()
        while alive and shelf.now < until:
            alive = await replica.waits(30.0)
        placed += "web" in replica.decided
        if alive:
            break
        ended += 1
    assert ended <= 6
    assert placed >= ended - 1, "from the third on it comes after all others"


async def test_a_group_in_whose_decision_the_process_ends_is_tried_last_as_a_whole() -> None:
    def members(of: str) -> list[PodMaker]:
        ordinary = [member(of, 0, "2"), member(of, 1, "2")]
        return [*ordinary, heavy(f"{of}-2").labels(**{GROUP_LABEL: of, "deadly": "yes"})]

    shelf = Shelf()
    first = Replica(shelf)
    first.world.event_handlers.cluster_object(group("job", 3))
    await first.begins(*members("job"))
    assert not await first.decides_all()
    (mark,) = shelf.marks.values()
    assert mark.pod.subject.endswith("default/job")
    second = Replica(shelf, "r-2")
    second.world.event_handlers.cluster_object(group("job", 3))
    await second.begins(*members("job"), pod("web"))
    assert await second.decides_all()
    assert second.decided == ["web"]
    assert not await second.waits(FIRST_WAIT)
    assert second.decided[1].startswith("job-")


async def test_a_successor_tells_the_pods_owner_why_it_waits() -> None:
    shelf = Shelf()
    assert not await (await Replica(shelf).begins(deadly(heavy("poison")))).decides_all()
    second = await Replica(shelf, "r-2").begins(heavy("poison"))
    await second.waits(1)
    await second.waits(1)
    (event,) = [event for event in second.world.events.recorded if event[0] == "poison"]
    assert "deciding this pod, or one like it, ended the scheduler's process once: it is tried again when no other pod" in str(event)


async def test_success_takes_the_mark_away_and_the_pod_is_like_any_other() -> None:
    shelf = Shelf()
    assert not await (await Replica(shelf).begins(deadly(heavy("poison")))).decides_all()
    second = await Replica(shelf, "r-2").begins(heavy("mended"))
    assert await second.decides_all()
    assert second.decided == []
    assert await second.waits(FIRST_WAIT)
    assert second.decided == ["mended"]
    await second.waits(1)
    assert shelf.marks == {}
    second.world.pods(heavy("next"))
    assert await second.decides_all()
    assert second.decided == ["mended", "next"]


async def test_a_pod_that_hung_unmarked_clears_its_mark_when_it_is_decided() -> None:
    """The watchdog marks an ordinary pod by its whole spec; images count then."""
    shelf = Shelf()
    await ShelfStore(shelf).open(marked(pod("bug").requests(cpu="3").build(), heavy=False), "r-1")
    second = await Replica(shelf, "r-2").begins(pod("bug").requests(cpu="3"), pod("web").requests(cpu="1"))
    assert await second.decides_all()
    assert second.decided == ["web"]
    assert await second.waits(FIRST_WAIT)
    assert second.decided == ["web", "bug"]
    await second.waits(1)
    assert shelf.marks == {}


async def test_a_leader_that_ends_in_order_leaves_no_open_mark() -> None:
    shelf = Shelf()
    replica = await Replica(shelf).begins(heavy("large"))
    queued = replica.world.pop()
    assert await replica.keeper.take(queued) == ""
    await replica.keeper.end_term()
    assert shelf.marks == {}


async def test_an_open_mark_of_this_very_process_is_no_death() -> None:
    shelf = Shelf()
    replica = await Replica(shelf).begins(heavy("large"))
    assert await replica.keeper.take(replica.world.pop()) == ""
    await replica.keeper.begin_term()
    assert not replica.world.queue.suspects
    await replica.waits(1)
    assert shelf.marks == {}


@pytest.mark.parametrize("problem", [Unreachable("no answer"), ApiError(500, "InternalError", "etcd")])
async def test_a_heavy_pod_waits_while_it_cannot_be_marked_and_others_go_on(problem: RequestError) -> None:
    shelf = Shelf()
    replica = await Replica(shelf).begins(heavy("large", "1"), heavy("huge", "2"), pod("web"))
    shelf.broken = problem
    assert await replica.decides_all()
    assert replica.decided == ["web"]
    assert shelf.asked.count("open") <= 2, "the server is spared after the first"
    assert "could not be noted before" in str(replica.world.events.recorded)
    shelf.broken = None
    replica.world.now += 100
    replica.world.queue.flush_backoff()
    assert await replica.decides_all()
    assert sorted(replica.decided) == ["huge", "large", "web"]


async def test_without_the_right_decisions_go_on_without_marks() -> None:
    shelf = Shelf()
    shelf.broken = ApiError(FORBIDDEN, "Forbidden", "no")
    replica = await Replica(shelf).begins(heavy("large"), pod("web"))
    assert await replica.decides_all()
    assert sorted(replica.decided) == ["large", "web"]


async def test_a_pod_that_is_deleted_while_it_is_marked_is_not_decided() -> None:
    shelf = Shelf()
    replica = await Replica(shelf).begins(heavy("large"))
    store = replica.keeper.store
    opened = store.open

    async def meanwhile(whom: MarkedPod, by: str) -> DecisionMark:
        replica.world.event_handlers.pod_gone("uid-large")
        return await opened(whom, by)

    store.open = meanwhile  # type: ignore[method-assign]
    assert await replica.decides_all()
    assert replica.decided == []
    assert len(replica.world.queue.in_flight) == 0
    await replica.waits(1)
    assert shelf.marks == {}


async def test_marks_are_bounded_in_number_and_one_namespace_cannot_push_out_anothers() -> None:
    shelf = Shelf()
    store = ShelfStore(shelf)
    for number in range(2 * MOST_IN_NAMESPACE):
        namespace = "hostile" if number % 2 else f"ns-{number}"
        await store.open(MarkedPod(namespace, "pod", f"spec-{number}"), "dead")
    replica = await Replica(shelf).begins()
    known = list(replica.world.queue.suspects.marks)
    assert sum(mark.pod.namespace == "hostile" for mark in known) <= MOST_IN_NAMESPACE
    assert len(known) <= MOST_MARKS
    await replica.waits(1)
    assert set(shelf.marks) == {mark.pod.name for mark in known}


async def test_a_mark_of_which_nothing_was_heard_for_a_day_goes_in_a_term_that_lasts() -> None:
    shelf = Shelf()
    assert not await (await Replica(shelf).begins(deadly(heavy("poison")))).decides_all()
    second = await Replica(shelf, "r-2").begins()
    await second.waits(FORGET_SECONDS + 1)
    assert shelf.marks == {}
    assert not second.world.queue.suspects


async def test_after_a_handover_a_suspect_waits_on_from_its_death_and_not_from_the_handover() -> None:
    shelf = Shelf()
    for name in ("r-1", "r-2"):
        replica = await Replica(shelf, name).begins(deadly(heavy("poison")))
        await replica.decides_all()
        if name == "r-2":
            assert not await replica.waits(FIRST_WAIT)
    third = await Replica(shelf, "r-3").begins(deadly(heavy("poison")))
    assert await third.waits(LONG_WAIT / 2)
    await third.keeper.end_term()
    fourth = await Replica(shelf, "r-4").begins(deadly(heavy("poison")))
    assert await fourth.waits(LONG_WAIT / 2 - 1)
    assert not await fourth.waits(1)


async def test_of_two_that_count_the_same_death_one_is_refused_and_reads_again() -> None:
    shelf = Shelf()
    assert not await (await Replica(shelf).begins(deadly(heavy("poison")))).decides_all()
    (mark,) = shelf.marks.values()
    late = Replica(shelf, "r-2")
    await Replica(shelf, "r-3").begins()
    with pytest.raises(ApiError):
        await late.keeper._inherited(mark)
    await late.begins()
    assert [mark.deaths for mark in late.world.queue.suspects.marks] == [1]


@settings(max_examples=cases(30))
@given(st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.booleans()), min_size=1, max_size=8))
async def test_over_any_history_deaths_are_counted_exactly_and_ordinary_pods_never_wait(history: list[tuple[int, bool, bool]]) -> None:
    """Each step is a process: it meets a pod of one of three specs, in a namespace each, and dies of it or not; `clean`: ends in order."""
    shelf, model = Shelf(), dict.fromkeys(range(3), 0)
    for number, (spec, dies, clean) in enumerate(history):
        maker = heavy(f"poison-{number}", str(spec)).uid(f"uid-{number}").namespace(f"ns-{spec}")
        replica = await Replica(shelf, f"r-{number}").begins(deadly(maker) if dies else maker, pod("web"))
        counted = {mark.pod.namespace: mark.deaths for mark in replica.world.queue.suspects.marks}
        assert counted == {f"ns-{each}": count for each, count in model.items() if count}
        survived = await replica.decides_all()
        if model[spec]:
            assert replica.decided == ["web"]
            assert survived
            survived = await replica.waits(wait_after(model[spec]))
        assert survived == (not dies)
        model[spec] = model[spec] + 1 if dies else 0
        if survived:
            await replica.waits(1)
            if clean:
                await replica.keeper.end_term()
