"""No pod lost, none bound twice, no node overfilled: a whole scheduler against a model of the API server, in any order of events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.engine.reconcile.reconciler import UnscheduledComparison
from placewright.framework.interface import PermitResult
from placewright.framework.status import SUCCESS, Code, Status, unschedulable
from placewright.queue.check import check_invariants
from placewright.queue.queued import SubQueue
from randomcases import cases

from .makers import CONFLICT, REFUSED, UNKNOWN, World, node, pod
from .scripted import late

PODS = st.sampled_from(["p0", "p1", "p2", "p3"])
NODES = st.sampled_from(["n0", "n1"])
CPUS = st.sampled_from(["1", "2"])
WHICH = st.integers(0, 9)


@dataclass
class Truth:
    """A pod as the API server has it."""

    name: str
    uid: str
    cpu: str
    gated: bool
    version: int
    node: str = ""

    def build(self) -> PodInfo:
        maker = pod(self.name).uid(self.uid).requests(cpu=self.cpu).version(str(self.version)).created(f"{self.version:09}")
        if self.gated:
            maker = maker.gates("quota")
        return maker.on(self.node).build() if self.node else maker.build()


@dataclass
class Request:
    """A Binding on its way."""

    uid: str
    node: str
    task: asyncio.Task[bool | None]
    answer: asyncio.Future[None]


class SchedulerMachine(RuleBasedStateMachine):
    """The API server's pods are `truth`; what the scheduler hears of them comes when the machine says so, or never."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.made = 0
        self.truth: dict[str, Truth] = {}
        #: What the watches have not told yet, by watch and pod: each in order, but not together.
        self.untold: dict[tuple[str, str], list[Callable[[], None]]] = {}
        self.nodes: dict[str, int] = {}
        self.requests: list[Request] = []
        self.bindings: dict[str, list[str]] = {}
        #: A comparison that has begun, with its list as it was then, and what ends it.
        self.comparing: tuple[UnscheduledComparison, list[PodInfo], ExitStack] | None = None
        #: True once something happened that only the reconciler can mend.
        self.gap = False
        self.verdict = PermitResult(SUCCESS)
        self.world = World(late("Door", permit=lambda *_: self.verdict).kind)

    @initialize()
    def start(self) -> None:
        for name in ("n0", "n1"):
            self.set_node(name, "3", cordoned=False)

    def run(self, work: Coroutine[Any, Any, Any] | None = None) -> None:
        """Let everything run that can."""

        async def turns() -> None:
            for _ in range(8):
                await asyncio.sleep(0)

        self.loop.run_until_complete(work or turns())

    # --- the API server ------------------------------------------------------------------------------------------------------------

    @rule(name=PODS, cpu=CPUS, gated=st.sampled_from([False, False, True]), heard=st.booleans())
    def create_or_recreate(self, name: str, cpu: str, *, gated: bool, heard: bool) -> None:
        if name in self.truth:
            self.delete(name)
        self.made += 1
        self.truth[name] = Truth(name, f"{name}-{self.made}", cpu, gated, self.made)
        self.tell("unscheduled", self.truth[name])
        if heard:
            self.hear_all_about(name)

    def hear_all_about(self, name: str) -> None:
        for watch in ("unscheduled", "assigned"):
            for news in self.untold.pop((watch, name), ()):
                news()
        self.run()

    @rule(name=PODS)
    def update(self, name: str) -> None:
        if (found := self.truth.get(name)) is not None:
            self.made += 1
            found.version = self.made
            found.gated = False
            self.tell("assigned" if found.node else "unscheduled", found)

    @rule(name=PODS)
    def delete(self, name: str) -> None:
        found = self.truth.pop(name, None)
        if found is None:
            return
        info = found.build()
        if found.node:
            self.later("assigned", name, lambda: self.world.event_handlers.assigned_pod_gone(info.uid))
        else:
            self.later("unscheduled", name, lambda: self.world.event_handlers.unscheduled_pod_gone(info))

    @rule(name=PODS, on=NODES)
    def somebody_else_binds(self, name: str, on: str) -> None:
        found = self.truth.get(name)
        if found is not None and not found.node and self.fits(found, on):
            self.write_binding(found, on)

    def write_binding(self, found: Truth, on: str) -> None:
        assert not found.node, "bound twice"
        before = found.build()  # what the watch of unscheduled pods shows of a pod that leaves it: the object as it was
        found.node = on
        self.made += 1
        found.version = self.made
        self.bindings.setdefault(found.uid, []).append(on)
        self.later("unscheduled", found.name, lambda: self.world.event_handlers.unscheduled_pod_gone(before))
        self.tell("assigned", found)

    def fits(self, wanted: Truth, on: str) -> bool:
        """Others look before they bind; they do not see what we only assume."""
        used = sum(int(one.cpu) for one in self.truth.values() if one.node == on)
        assumed = sum(p.requests["cpu"] // 1000 for p in self.world.cluster.pods_on(NodeName(on)) if p.uid not in self.bindings)
        return used + assumed + int(wanted.cpu) <= self.nodes.get(on, 0)

    @rule(name=NODES, cpu=st.sampled_from(["1", "3", "4"]), cordoned=st.booleans())
    def set_node(self, name: str, cpu: str, *, cordoned: bool) -> None:
        maker = node(name).offers(cpu=cpu)
        self.nodes[name] = int(cpu)
        self.world.nodes(maker.cordoned() if cordoned else maker)

    @rule(name=NODES)
    def remove_node(self, name: str) -> None:
        self.nodes.pop(name, None)
        self.world.event_handlers.node_gone(NodeName(name))

    # --- the watches -----------------------------------------------------------------------------------------------------------------

    def tell(self, watch: str, found: Truth) -> None:
        info = found.build()
        known = self.world.event_handlers.assigned_pod if watch == "assigned" else self.world.event_handlers.unscheduled_pod
        self.later(watch, found.name, lambda: known(info))

    def later(self, watch: str, name: str, news: Callable[[], None]) -> None:
        self.untold.setdefault((watch, name), []).append(news)

    @precondition(lambda self: self.untold)
    @rule(which=WHICH, twice=st.booleans())
    def hear(self, which: int, *, twice: bool) -> None:
        key = list(self.untold)[which % len(self.untold)]
        news = self.untold[key].pop(0)
        if not self.untold[key]:
            del self.untold[key]
        news()
        if twice:
            news()
        self.run()

    @precondition(lambda self: any(watch == "unscheduled" for watch, _ in self.untold))
    @rule()
    def the_unscheduled_watch_breaks_and_lists_again(self) -> None:
        """As Kopf does: what is there is said, what is gone is not."""
        self.gap = True
        self.untold = {key: news for key, news in self.untold.items() if key[0] != "unscheduled"}
        for found in self.truth.values():
            if not found.node:
                self.world.event_handlers.unscheduled_pod(found.build())

    @precondition(lambda self: self.comparing is None)
    @rule()
    def the_reconciler_asks_for_a_list(self) -> None:
        comparing = ExitStack()
        comparing.enter_context(self.world.reconciler.watching())
        listed = [found.build() for found in self.truth.values() if not found.node]
        self.comparing = (self.world.reconciler.unscheduled(), listed, comparing)

    @precondition(lambda self: self.comparing is not None)
    @rule()
    def the_reconciler_gets_its_list(self) -> None:
        assert self.comparing is not None
        comparison, listed, comparing = self.comparing
        self.comparing = None
        for info in listed:
            comparison.shown(info.pod)
        comparison.listed()
        exists = {found.uid: found.build().pod for found in self.truth.values()}
        for _ in range(3):
            for uid in list(comparison.suspects):
                comparison.looked(uid, exists.get(uid))
        comparing.close()
        for asked in self.world.reconciler.doubtful():
            found = self.truth.get(asked.name)
            self.world.reconciler.looked(asked, None if found is None else found.build())
        self.run()

    # --- the scheduler ---------------------------------------------------------------------------------------------------------------

    @rule(pods=st.integers(1, 3))
    def schedule(self, pods: int) -> None:
        for _ in range(pods):
            self.schedule_one()

    def schedule_one(self) -> None:
        queued = self.world.queue.pop()
        if queued is None:
            return
        binding = self.world.schedule(queued)
        if binding is None:
            return
        placement = self.world.cluster.placement(queued.uid)
        assert placement is not None
        answer = self.world.binder.answers[queued.uid] = self.loop.create_future()
        self.requests.append(Request(queued.uid, placement.node, self.loop.create_task(binding), answer))
        self.run()

    @rule(kind=st.sampled_from(["allow", "wait", "refuse"]))
    def the_door(self, kind: str) -> None:
        """What the Permit plugin says from now on; pods that wait are decided at once."""
        verdicts = {"allow": SUCCESS, "wait": Status(Code.WAIT), "refuse": unschedulable("shut")}
        self.verdict = PermitResult(verdicts[kind], 60)
        for waiting in self.world.scheduler.waiting:
            if kind == "allow":
                waiting.allow("Door")
            elif kind == "refuse":
                waiting.reject("Door", "shut")
        self.run()

    def asked(self) -> list[Request]:
        """Requests that have reached the API server."""
        return [request for request in self.requests if request.uid not in self.world.binder.answers]

    def bound_by(self, request: Request) -> Truth | None:
        """The pod that a Binding would bind, if it is free."""
        return next((one for one in self.truth.values() if one.uid == request.uid), None)

    @precondition(lambda self: self.asked())
    @rule(which=WHICH, outcome=st.sampled_from(["ok", "ok", "ok", "error", "lost after", "lost before"]))
    def a_binding_is_answered(self, which: int, outcome: str) -> None:
        request = self.asked()[which % len(self.asked())]
        self.requests.remove(request)
        found = self.bound_by(request)
        may = found is not None and not found.node
        if outcome in ("ok", "lost after") and may:
            assert found is not None
            self.write_binding(found, request.node)
        self.gap |= outcome.startswith("lost")
        answers: dict[str, Exception | None] = {"ok": None if may else CONFLICT, "error": REFUSED}
        answer = answers.get(outcome, UNKNOWN)
        if answer is None:
            request.answer.set_result(None)
        else:
            request.answer.set_exception(answer)
        self.run(asyncio.wait_for(request.task, 5))

    @rule(seconds=st.sampled_from([1.0, 11.0, 400.0]))
    def time_passes(self, seconds: float) -> None:
        self.world.now += seconds
        self.world.queue.flush_backoff()
        self.world.queue.flush_unschedulable()

    @rule(weight=st.integers(1, 3))
    def the_profile_changes(self, weight: int) -> None:
        self.world.use_profile(generation=weight, weights={"NodeResourcesFit": weight})

    @rule()
    def the_profile_goes_and_comes_back(self) -> None:
        self.world.profiles.clear()
        self.world.queue.reprioritise("default-scheduler")
        self.schedule_one()
        self.world.use_profile()

    # --- what must hold --------------------------------------------------------------------------------------------------------------

    @invariant()
    def the_queue_is_whole(self) -> None:
        check_invariants(self.world.queue)

    @invariant()
    def every_attempt_is_somewhere(self) -> None:
        """In flight means: a binding is under way, or nobody knows yet; so every pod of the queue is in exactly one place."""
        self.requests = [request for request in self.requests if not request.task.done()]
        under_way = {request.uid for request in self.requests} | self.world.binding.unresolved.keys()
        in_flight = {queued.uid for place, queued in self.world.queue.pods() if place is SubQueue.IN_FLIGHT}
        assert in_flight <= under_way, f"in flight, but nobody is at it: {in_flight - under_way}"
        assumed = {one.pod.uid for one in self.world.cluster.placements() if one.assumed}
        waiting = {queued.uid for place, queued in self.world.queue.pods() if place is not SubQueue.IN_FLIGHT}
        assert not assumed & waiting, f"holds room and waits at once: {assumed & waiting}"

    @invariant()
    def no_pod_is_bound_twice(self) -> None:
        twice = {uid: nodes for uid, nodes in self.bindings.items() if len(nodes) > 1}
        assert not twice

    def teardown(self) -> None:
        """Once every request is answered and all news is in, every pod is where the API server says, or waits."""
        try:
            self.verdict = PermitResult(SUCCESS)
            self.the_door("allow")
            while self.asked():
                self.a_binding_is_answered(0, "ok")
            while self.untold:
                self.hear(0, twice=False)
            if self.comparing is not None:
                self.the_reconciler_gets_its_list()
            for _ in range(2 if self.gap else 0):
                self.the_reconciler_asks_for_a_list()
                self.the_reconciler_gets_its_list()
            self.agrees_with_the_api_server()
        finally:
            for task in asyncio.all_tasks(self.loop):
                task.cancel()
            self.run()
            self.loop.close()

    def agrees_with_the_api_server(self) -> None:
        unscheduled = {one.uid for one in self.truth.values() if not one.node}
        assert set(self.world.queue.uids()) == unscheduled
        assert {one.pod.uid: one.node for one in self.world.cluster.placements()} == {
            one.uid: one.node for one in self.truth.values() if one.node
        }
        assert not self.world.binding.unresolved
        assert not len(self.world.scheduler.waiting)


class NoOverfilling(SchedulerMachine):
    """Nodes never shrink here and every Binding is ours, so that a node can only be overfilled by our own decisions."""

    @rule(name=NODES, cpu=st.sampled_from(["4"]), cordoned=st.booleans())
    def set_node(self, name: str, cpu: str, *, cordoned: bool) -> None:
        super().set_node(name, cpu, cordoned=cordoned)

    @invariant()
    def no_node_is_overfilled(self) -> None:
        for name in ("n0", "n1"):
            used = sum(int(one.cpu) for one in self.truth.values() if one.node == name)
            assert used <= 4, f"{name} holds {used} CPUs of 4"


class OldApiServer(SchedulerMachine):
    """Before Kubernetes 1.23: a Binding binds whoever has the name, and says that all is well."""

    def bound_by(self, request: Request) -> Truth | None:
        return self.truth.get(request.uid.rpartition("-")[0])


TestNoPodIsLostOrDoubled = SchedulerMachine.TestCase
# The two machines below do and check all that this one does, too.
TestNoPodIsLostOrDoubled.settings = settings(max_examples=cases(120), stateful_step_count=50)
TestNoNodeIsOverfilled = NoOverfilling.TestCase
TestNoNodeIsOverfilled.settings = settings(max_examples=cases(80), stateful_step_count=50)
TestNamesakesAreSortedOut = OldApiServer.TestCase
TestNamesakesAreSortedOut.settings = settings(max_examples=cases(80), stateful_step_count=50)
