"""No pod lost, none doubled: random operations against a plain model; and the check itself can fail."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from queue_makers import FakePolicy, FakeTenants, PodMaker, World, pod

from placewright.framework.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    NODE_DELETE,
    WILDCARD,
    Action,
    ClusterEvent,
    EventResource,
    QueueingHint,
    event_with_hint,
)
from placewright.queue.check import InvariantError, check_invariants
from placewright.queue.policy import BackoffPolicy
from placewright.queue.queue import SchedulingQueue
from placewright.queue.queued import QueuedPod, SubQueue
from randomcases import cases

NAMES = st.sampled_from(["a", "b", "c", "d"])
PROFILES = st.sampled_from(["default-scheduler", "gpu"])
PLUGINS = st.sets(st.sampled_from(["Fit", "PodTopologySpread", "InterPodAffinity", "Theirs", "Disabled"]), max_size=2)
EVENTS = st.sampled_from([NODE_ADD, NODE_DELETE, ASSIGNED_POD_ADD, ASSIGNED_POD_DELETE, WILDCARD])
SHAPES: dict[str, Callable[[PodMaker], PodMaker]] = {
    "plain": lambda maker: maker,
    "gated": lambda maker: maker.gates("quota"),
    "important": lambda maker: maker.priority(9),
    "labelled": lambda maker: maker.labels(app="db"),
    "tolerant": lambda maker: maker.tolerates("gpu"),
    "near": lambda maker: maker.pod_affinity("zone", app="db"),
    "nominated": lambda maker: maker.nominated("n1"),
}


def make_policy(*, paused: bool, instant: bool, broken: bool, descending: bool, tenants: FakeTenants | None) -> FakePolicy:
    def hint(rejected: object, old: object, new: object) -> QueueingHint:
        if broken:
            raise RuntimeError("broken hint")
        return QueueingHint.SKIP if paused else QueueingHint.QUEUE

    return FakePolicy(
        interests={
            "Fit": [event_with_hint(EventResource.NODE, Action.ADD), event_with_hint(EventResource.ASSIGNED_POD, Action.DELETE)],
            "PodTopologySpread": [event_with_hint(EventResource.POD, Action.ALL)],
            "InterPodAffinity": [event_with_hint(EventResource.POD, Action.ALL, hint)],
            "SchedulingGates": [event_with_hint(EventResource.POD, Action.UPDATE_POD_GATES_ELIMINATED)],
            "Theirs": None,
        },
        paused=paused,
        backoff=BackoffPolicy(1, 0 if instant else 10),
        descending=descending,
        tenants=tenants,
    )


policies = st.builds(
    make_policy, paused=st.booleans(), instant=st.booleans(), broken=st.booleans(), descending=st.booleans(),
    tenants=st.sampled_from([None, FakeTenants(), FakeTenants(label="app"), FakeTenants(label="app", weights={"db": 3})]),
)  # fmt: skip


class QueueMachine(RuleBasedStateMachine):
    """Random life of a queue; `alive` is all that a plain model needs: which pod has which name."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.queue = self.world.queue
        self.alive: dict[str, str] = {}  # name to uid
        self.trying: list[QueuedPod] = []
        self.made = 0
        #: What a reader knows that looks at noted pods alone.
        self.known: dict[str, tuple[object, ...]] = {}
        self.queue.changed.begin()

    @initialize(policy=policies, slowly=st.booleans())
    def start(self, policy: FakePolicy, slowly: bool) -> None:
        self.world.policies["default-scheduler"] = policy
        if slowly:  # pods move to another order only as `sort_some` is called
            self.queue.sweeps.sort = lambda queue: None  # type: ignore[method-assign]

    @rule()
    def sort_some(self) -> None:
        for queue in self.queue.profile_queues():
            queue.sort_some(1)

    def uid_for(self, name: str, fresh: bool) -> str:
        if fresh or name not in self.alive:
            self.made += 1
            return f"{name}-{self.made}"
        return self.alive[name]

    @rule(name=NAMES, shape=st.sampled_from(sorted(SHAPES)), profile=PROFILES, fresh=st.booleans(), update=st.booleans())
    def add_or_update(self, name: str, shape: str, profile: str, fresh: bool, update: bool) -> None:
        uid = self.uid_for(name, fresh)
        info = SHAPES[shape](pod(name).uid(uid).scheduler(profile)).build()
        (self.queue.update if update else self.queue.add)(info)
        self.alive[name] = uid

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        uid = self.alive.pop(name, "nobody")
        self.queue.delete(uid)

    @rule()
    def pop(self) -> None:
        queued = self.queue.pop()
        if queued is not None:
            assert self.queue.locate(queued.uid) is SubQueue.IN_FLIGHT
            assert queued not in self.trying, "handed out twice"
            self.trying.append(queued)

    @precondition(lambda self: self.trying)
    @rule(which=st.integers(0, 9), unschedulable=PLUGINS, pending=PLUGINS)
    def fail(self, which: int, unschedulable: set[str], pending: set[str]) -> None:
        queued = self.trying.pop(which % len(self.trying))
        place = self.queue.return_unschedulable(queued, unschedulable, pending)
        assert (place is not None) == (self.alive.get(queued.pod.name) == queued.uid)

    @precondition(lambda self: self.trying)
    @rule(which=st.integers(0, 9))
    def succeed(self, which: int) -> None:
        queued = self.trying.pop(which % len(self.trying))
        self.queue.done(queued.uid)
        if self.alive.get(queued.pod.name) == queued.uid:
            del self.alive[queued.pod.name]

    @rule(event=EVENTS)
    def move(self, event: ClusterEvent) -> None:
        assigned = pod("on-node").labels(app="db").on("n1").build()
        self.queue.move(event, assigned if event is ASSIGNED_POD_DELETE else None, assigned if event is ASSIGNED_POD_ADD else None)

    @rule(name=NAMES)
    def activate(self, name: str) -> None:
        self.queue.activate([pod(name).uid(self.alive.get(name, "nobody")).build()])

    @rule(seconds=st.sampled_from([0.3, 1.0, 4.0, 400.0]))
    def time_passes(self, seconds: float) -> None:
        self.world.now += seconds
        due = self.queue.next_backoff_expiry
        assert (self.queue.flush_backoff() > 0) == (due is not None and due <= self.world.now)
        self.queue.flush_unschedulable()

    @rule(profile=PROFILES, policy=st.none() | policies, retry=st.booleans())
    def change_profile(self, profile: str, policy: FakePolicy | None, retry: bool) -> None:
        self.world.policies.pop(profile, None)
        if policy is not None:
            self.world.policies[profile] = policy
        self.queue.reprioritise(profile, None if retry else frozenset())

    @invariant()
    def every_pod_is_in_exactly_one_place(self) -> None:
        check_invariants(self.queue)
        assert set(self.queue.uids()) == set(self.alive.values())
        assert sum(self.queue.sizes()) == len(self.alive)
        in_flight = {queued.uid for queued in self.trying if queued.uid in self.queue.uids()}
        assert {queued.uid for place, queued in self.queue.pods() if place is SubQueue.IN_FLIGHT} == in_flight

    def facts(self, uid: str) -> tuple[object, ...]:
        queued = self.queue.get(uid)
        assert queued is not None
        where = (queued.key, queued.pod.scheduler_name, self.queue.locate(uid), queued.attempts)
        return (*where, queued.rejecting_plugins, queued.given_up_at, queued.gating_plugin if queued.gated else "")

    @invariant()
    def a_reader_of_the_noted_pods_knows_all(self) -> None:
        while noted := self.queue.changed.take(3):
            for uid in noted:
                self.known.pop(uid, None)
                if uid in self.queue.uids():
                    self.known[uid] = self.facts(uid)
        assert self.known == {uid: self.facts(uid) for uid in self.queue.uids()}

    def teardown(self) -> None:
        """However tangled: with profiles back and gates open, every pod can be tried."""
        for profile in ("default-scheduler", "gpu"):
            self.world.policies[profile] = FakePolicy(backoff=BackoffPolicy(1, 0))
            self.queue.reprioritise(profile, None)
        for queued in self.trying:
            self.queue.return_unschedulable(queued)
        self.world.now += 1000
        self.queue.flush_backoff()
        gated = self.queue.sizes().gated
        assert len(self.world.popped_names()) == len(self.alive) - gated


TestNoPodIsLostOrDoubled = QueueMachine.TestCase
TestNoPodIsLostOrDoubled.settings = settings(max_examples=cases(150), stateful_step_count=40)


def sabotaged(spoil: Callable[[SchedulingQueue, QueuedPod], None]) -> World:
    """A queue with one waiting pod, spoiled from inside."""
    world = World(FakePolicy(interests={"Fit": []}))
    spoil(world.queue, world.rejected(pod("web"), "Fit"))
    return world


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda queue, q: next(queue.profile_queues()).move(q, None), "pod uid-web is in no place"),
        (lambda queue, q: next(queue.profile_queues()).active.push(q.uid, (0,), q), "pod uid-web is in 2 places: active, unschedulable"),
        (lambda queue, q: queue._forget(q.uid, q.key), "pod uid-web is in unschedulable but unknown"),
        (lambda queue, q: queue._uids.update({q.key: "other"}), "default/web is indexed as other"),
        (lambda queue, q: next(queue.profile_queues()).unschedulable.put(q, ()), r"not indexed under all of \['Fit'\]"),
        (lambda queue, q: setattr(q, "place", SubQueue.GATED), r"in unschedulable, not where it is looked for \(gated\)"),
    ],
)
def test_the_check_names_what_is_wrong(spoil: Callable[[SchedulingQueue, QueuedPod], None], message: str) -> None:
    with pytest.raises(InvariantError, match=message):
        check_invariants(sabotaged(spoil).queue)
