"""The fake of an extender: a web server's answers without a web server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from placewright.api.extenders import ExtenderSettings, Filtered, NodeVictims
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.testing.ports import FakePort

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
