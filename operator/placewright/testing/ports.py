"""Fakes of the scheduler's ports: they record each call, and fail, take long or answer late when a test says so.

What the scheduler writes to an API server goes through ports (`placewright.scheduler.ports`, `placewright.framework.ports`). A fake
without instructions answers at once, and well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from placewright.api.annotations import Decision, read_decision
from placewright.api.errors import BindError
from placewright.api.extenders import ExtenderError, ExtenderSettings, Filtered, NodeVictims
from placewright.api.objects import Condition, NodeName
from placewright.api.podgroups import PodGroup
from placewright.api.pods import PodInfo
from placewright.framework.ports import Seconds
from placewright.scheduler.ports import EventType

#: Seconds of the clock between two looks. The real writers look more often; by virtual time that would only cost turns of the loop.
_LOOK_SECONDS: Final = 1.0


class HeldAnswer:
    """An answer that a fake keeps back until a test gives it. Awaiting it waits for that."""

    def __init__(self) -> None:
        self._given = asyncio.Event()
        self._problem: Exception | None = None

    def give(self, problem: Exception | None = None) -> None:
        """Let the call end: well, or with this exception."""
        self._problem = problem
        self._given.set()

    def __await__(self) -> Generator[Any, None, None]:
        yield from self._given.wait().__await__()
        if self._problem is not None:
            raise self._problem


class FakePort:
    """The base of fakes whose calls are awaited.

    Attributes:
        answers: answer to the next call about an object, by the object's name or uid; used once. An exception is raised, an awaitable is
            awaited.
        failing: exception that each other call about an object raises, by name.
        broken: the exception that every other call raises; None: none.
        seconds: duration of each call.

    Example:
        world.binder.fail(BindError("refused"), "web")   # the next Binding of web
        world.binder.fail(BindError("away"))             # every Binding, until `recover`
        late = world.binder.hold("web")                  # web's next Binding waits for late.give()
        world.binder.seconds = 2.0                       # each Binding takes two seconds of the world's clock
        world.binder.pause()                             # no Binding is answered until `resume`
    """

    def __init__(self) -> None:
        self.answers: dict[str, Exception | Awaitable[object]] = {}
        self.failing: dict[str, Exception] = {}
        self.broken: Exception | None = None
        self.seconds = 0.0
        self._answering = asyncio.Event()
        self._answering.set()

    def fail(self, problem: Exception, *names: str, always: bool = False) -> None:
        """Let calls raise an exception.

        Args:
            problem: raised.
            names: names of the objects that the calls are about; without names all calls fail, until `recover`.
            always: fail every call about these names until `recover`, not only the next one of each.
        """
        if not names:
            self.broken = problem
        elif always:
            self.failing |= dict.fromkeys(names, problem)
        else:
            self.answers |= dict.fromkeys(names, problem)

    def recover(self) -> None:
        """Let calls succeed again, and forget all answers that were prepared."""
        self.broken = None
        self.failing.clear()
        self.answers.clear()

    def hold(self, name: str) -> HeldAnswer:
        """Keep back the answer to the next call about this object."""
        held = self.answers[name] = HeldAnswer()
        return held

    def pause(self) -> None:
        """Answer no call from now on, as a server that hangs."""
        self._answering.clear()

    def resume(self) -> None:
        """Answer the calls that wait, and later ones."""
        self._answering.set()

    async def _answer(self, *names: str) -> None:
        await self._delay()
        await self._end(*names)

    async def _delay(self) -> None:
        if self.seconds:
            await asyncio.sleep(self.seconds)
        await self._answering.wait()

    async def _end(self, *names: str) -> None:
        # The answer to one call goes before the answers to all calls, and is used up.
        once = next((name for name in names if name in self.answers), None)
        answer = self.broken if once is None else self.answers.pop(once)
        if once is None:
            answer = next((self.failing[name] for name in names if name in self.failing), answer)
        if isinstance(answer, Exception):
            raise answer.with_traceback(None)  # raised again, it would keep the frames of all earlier calls
        if answer is not None:
            await answer


class WatchingPort(FakePort):
    """The base of fakes that also wait for a change of the cluster: one of their pod's volumes, or of its devices."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self._clock = clock

    async def until(self, done: Callable[[], bool], seconds: Seconds) -> bool:
        """Look once a second of the clock whether a predicate holds.

        Args:
            done: called at least once; its exceptions pass through.
            seconds: longest time to look, by the clock.

        Returns:
            False if it did not hold in time.
        """
        deadline = self._clock() + seconds
        while not done():
            if self._clock() >= deadline:
                return False
            await asyncio.sleep(_LOOK_SECONDS)
        return True


class BoundPod(NamedTuple):
    """A Binding as it was asked for, with any answer."""

    pod: str
    uid: str
    node: str
    decision: Decision | None


class FakeBinder(FakePort):
    """Records Bindings. Implements the framework's `Binder`.

    Attributes:
        bound: each Binding that was asked for, in order, also if the answer was an error.
        shows: called with the pod as it is once it is bound, after a call that ends well.
    """

    def __init__(self, shows: Callable[[PodInfo], object] = lambda _pod: None) -> None:
        super().__init__()
        self.bound: list[BoundPod] = []
        self.shows = shows

    async def bind(self, pod: PodInfo, node: NodeName, annotations: dict[str, str]) -> None:
        """Record the Binding, answer as told, and then show the bound pod. Implements `Binder.bind`."""
        # Recorded before the answer: a Binding that is refused was asked for, too.
        self.bound.append(BoundPod(pod.name, pod.uid, node, read_decision(annotations)))
        await self._answer(pod.name, pod.uid)
        self.shows(pod.annotated(annotations).on(node))

    async def bind_by(self, pod: PodInfo, node: NodeName, send: Callable[[], Awaitable[None]]) -> None:
        """Let the extender bind the pod. The Binding is the extender's, so that `bound` does not have it. Implements `Binder.bind_by`.

        Raises:
            BindError: the extender raised `ExtenderError`; with its message, as the real binder gives it.
        """
        try:
            await send()
        except ExtenderError as problem:
            raise BindError(str(problem)) from problem
        self.shows(pod.on(node))

    def nodes_of(self, name: str) -> list[str]:
        """Return the nodes that a pod was to be bound to, in order."""
        return [bound.node for bound in self.bound if bound.pod == name]


class PatchedObject(NamedTuple):
    """A merge patch that a plugin sent."""

    path: str
    body: Mapping[str, Any]


class FakeObjectPatcher(FakePort):
    """Records the patches of plugins. Implements the framework's `ObjectPatcher`; `answers` go by the path.

    Attributes:
        patched: all patches, in order.
    """

    def __init__(self) -> None:
        super().__init__()
        self.patched: list[PatchedObject] = []

    async def patch(self, path: str, body: Mapping[str, Any], namespace: str) -> None:
        """Record a merge patch.

        Args:
            path: the object's path.
            body: the merge patch.
            namespace: the object's namespace.

        Raises:
            Exception: the test told this fake to fail.
        """
        await self._answer(path)
        self.patched.append(PatchedObject(path, body))


class RecordedEvent(NamedTuple):
    """A Kubernetes event about a pod."""

    pod: str
    type: EventType
    reason: str
    action: str
    note: str


class FakeEvents:
    """Records events. Implements the scheduler's `EventRecorder`.

    Attributes:
        recorded: all events, in order.
    """

    def __init__(self) -> None:
        self.recorded: list[RecordedEvent] = []

    def record(self, pod: PodInfo, kind: EventType, reason: str, action: str, note: str) -> None:
        """Keep the event in `recorded`, with the whole note. Implements `EventRecorder.record`."""
        self.recorded.append(RecordedEvent(pod.name, kind, reason, action, note))

    def announce(self, pod: PodInfo, reason: str, action: str, message: str, warning: bool) -> None:
        """Record an event of a plugin; the profile's handle calls this for `Handle.announce`.

        Args:
            pod: the event is about it.
            reason: a word in CamelCase.
            action: the action that was taken.
            message: the event's note.
            warning: the event is a Warning.
        """
        self.record(pod, EventType.WARNING if warning else EventType.NORMAL, reason, action, message)

    def about(self, name: str) -> list[RecordedEvent]:
        """Return the events about a pod, in order."""
        return [event for event in self.recorded if event.pod == name]

    def reasons(self, name: str) -> list[str]:
        """Return the reasons of a pod's events, in order."""
        return [event.reason for event in self.about(name)]


class WrittenStatus(NamedTuple):
    """A condition PodScheduled=False; `nominated_node` None leaves the nomination, "" clears it."""

    pod: str
    reason: str
    message: str
    nominated_node: str | None


class FakeStatus:
    """Records conditions of pods. Implements the scheduler's `StatusWriter`.

    Attributes:
        written: conditions PodScheduled, in order.
        others: (name of the pod, condition) of all other conditions, in order.
        nominated: (name of the pod, node) of all nominations without a condition, in order; "" ended one.
    """

    def __init__(self) -> None:
        self.written: list[WrittenStatus] = []
        self.nominated: list[tuple[str, NodeName]] = []
        self.others: list[tuple[str, Condition]] = []

    def pod_unscheduled(self, pod: PodInfo, reason: str, message: str, nominated_node: NodeName | None) -> None:
        """Keep the condition in `written`. Implements `StatusWriter.pod_unscheduled`."""
        self.written.append(WrittenStatus(pod.name, reason, message, nominated_node))

    def pod_nominated(self, pod: PodInfo, node: NodeName) -> None:
        """Keep the nomination in `nominated`. Implements `StatusWriter.pod_nominated`."""
        self.nominated.append((pod.name, node))

    def pod_condition(self, pod: PodInfo, condition: Condition) -> None:
        """Keep the condition in `others`, with the pod's name. Implements `StatusWriter.pod_condition`."""
        self.others.append((pod.name, condition))

    def last_of(self, name: str) -> WrittenStatus | None:
        """Return a pod's last condition; None: none was written."""
        return next((status for status in reversed(self.written) if status.pod == name), None)


class WaitingGroup(NamedTuple):
    """A PodGroup that was said to wait for `missing` more members."""

    group: str
    placed: int
    missing: int
    message: str
    error: bool


class FakeGroupStatus:
    """Records what PodGroups are told. Implements the scheduler's `GroupStatusWriter`.

    Attributes:
        waits: groups that wait, in order.
        placed: (group, members) of groups that have what they need, in order.
        given_up: (group, condition) of groups that are given up or no longer are, in order.
    """

    def __init__(self) -> None:
        self.waits: list[WaitingGroup] = []
        self.placed: list[tuple[str, int]] = []
        self.given_up: list[tuple[str, Condition]] = []

    def group_waits(self, pod_group: PodGroup, placed: int, missing: int, message: str, *, error: bool = False) -> None:
        """Keep the message in `waits`. Implements `GroupStatusWriter.group_waits`."""
        self.waits.append(WaitingGroup(pod_group.ref.name, placed, missing, message, error))

    def group_placed(self, pod_group: PodGroup, placed: int) -> None:
        """Keep the number of members in `placed`. Implements `GroupStatusWriter.group_placed`."""
        self.placed.append((pod_group.ref.name, placed))

    def group_given_up(self, pod_group: PodGroup, condition: Condition) -> None:
        """Keep the condition in `given_up`. Implements `GroupStatusWriter.group_given_up`."""
        self.given_up.append((pod_group.ref.name, condition))


class EvictedPod(NamedTuple):
    """A victim of preemption that was told to leave a node."""

    victim: str
    preemptor: str
    node: str


class FakeEvictor(FakePort):
    """Records evictions. Implements the scheduler's `Evictor`; `answers` go by the victim.

    Attributes:
        evicted: each eviction that was asked for, in order.
        shows: called with a victim that has left, after a call that ends well.
    """

    def __init__(self, shows: Callable[[PodInfo], object] = lambda _pod: None) -> None:
        super().__init__()
        self.evicted: list[EvictedPod] = []
        self.shows = shows

    async def evict(self, victim: PodInfo, preemptor: PodInfo, node: NodeName) -> None:
        """Record the eviction, answer as told, and then show that the victim has left. Implements `Evictor.evict`."""
        self.evicted.append(EvictedPod(victim.name, preemptor.name, node))
        await self._answer(victim.name, victim.uid)
        self.shows(victim)


#: All verbs but `bind`.
_VERBS: Final[Mapping[str, Any]] = {"filter_verb": "filter", "prioritize_verb": "prioritize", "preempt_verb": "preempt", "weight": 1}


class ExtenderCall(NamedTuple):
    """A question to an extender: the verb, the pod's name, and the nodes that it is about."""

    verb: str
    pod: str
    nodes: tuple[str, ...]


class FakeExtender(FakePort):
    """Keeps every node, scores 0, agrees to every preemption and binds, unless told otherwise. Implements the framework's `Extender`.

    `answers` go by verb: `extender.fail(ExtenderError("away"), "filter")`.

    Attributes:
        settings: the profile's settings of this extender.
        failed, unresolvable: reasons with which `filter` drops nodes, by node.
        dropped: nodes that `filter` leaves out without a word.
        scores: answer of `prioritize`, by node.
        spares: names of pods that must not be evicted; a node that would lose one is not agreed to.
        meanwhile: called with the verb in the middle of each call, before it is answered.
        asked: each call, in order.
        is_open: whether a profile with this extender is in effect.

    Example:
        quota = FakeExtender("http://quota")
        quota.failed["a"] = "over quota"
        world = World(nodes=[node("a"), node("b")], extenders=[quota])
    """

    def __init__(self, url: str = "http://extender", **settings: Any) -> None:
        """Make an extender that has all verbs but `bind`.

        Args:
            url: its address in the profile; no request is sent there.
            settings: other fields of `ExtenderSettings`, such as `bind_verb="bind"`, `weight=2`, `ignorable=True`.
        """
        super().__init__()
        self.settings = ExtenderSettings(url_prefix=url, **{**_VERBS, **settings})
        self.failed: dict[str, str] = {}
        self.unresolvable: dict[str, str] = {}
        self.dropped: set[str] = set()
        self.scores: dict[str, int] = {}
        self.spares: set[str] = set()
        self.meanwhile: Callable[[str], None] = lambda _verb: None
        self.asked: list[ExtenderCall] = []
        self.is_open = False

    @property
    def verbs(self) -> list[str]:
        """The verb of each call, in order."""
        return [call.verb for call in self.asked]

    async def filter(self, pod: PodInfo, nodes: Sequence[NodeName]) -> Filtered:
        """Keep the nodes that neither `failed`, `unresolvable` nor `dropped` names. Implements `Extender.filter`."""
        await self._asked("filter", pod, nodes)
        refused = self.failed.keys() | self.unresolvable.keys() | self.dropped
        return Filtered(
            tuple(name for name in nodes if name not in refused),
            {name: self.failed[name] for name in nodes if name in self.failed},
            {name: self.unresolvable[name] for name in nodes if name in self.unresolvable},
        )

    async def prioritize(self, pod: PodInfo, nodes: Sequence[NodeName]) -> dict[NodeName, int]:
        """Answer with `scores`, without nodes that have none. Implements `Extender.prioritize`."""
        await self._asked("prioritize", pod, nodes)
        return {name: self.scores[name] for name in nodes if name in self.scores}

    async def preempt(
        self,
        pod: PodInfo,
        victims: Mapping[NodeName, NodeVictims],
        pods_on: Callable[[NodeName], Iterable[PodInfo]] | None = None,
    ) -> dict[NodeName, NodeVictims]:
        """Agree to the nodes that lose none of `spares`. Implements `Extender.preempt`."""
        await self._asked("preempt", pod, tuple(victims))
        return {node: who for node, who in victims.items() if self.spares.isdisjoint(victim.name for victim in who.pods)}

    async def bind(self, pod: PodInfo, node: NodeName) -> None:
        """Record the call. On return the pod counts as bound. Implements `Extender.bind`."""
        await self._asked("bind", pod, (node,))

    def open(self) -> None:
        """Note that a profile with this extender takes effect."""
        self.is_open = True

    async def close(self) -> None:
        """Note that no profile has this extender any more."""
        self.is_open = False

    async def _asked(self, verb: str, pod: PodInfo, nodes: Sequence[str]) -> None:
        self.asked.append(ExtenderCall(verb, pod.name, tuple(nodes)))
        await self._delay()
        # Between question and answer, so that a test can change the cluster while the call is under way.
        self.meanwhile(verb)
        await self._end(verb)
