"""An extender that does what a test tells it, and remembers what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from placewright.api.extenders import ExtenderError, ExtenderSettings, Filtered, NodeVictims
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo

ALL_VERBS: dict[str, Any] = {"filter_verb": "filter", "prioritize_verb": "prioritize", "preempt_verb": "preempt", "weight": 1}


@dataclass(eq=False)
class ScriptedExtender:
    """Keeps every node, scores 0, agrees to every preemption and binds, unless told otherwise.

    Attributes:
        failed, unresolvable: reasons by node.
        dropped: nodes left out without a word.
        scores: by node.
        spares: names of pods that must not be evicted; a node of which nobody is left to evict is not agreed to.
        broken: verbs that fail, with the message.
        meanwhile: called in the middle of a verb, before it answers.
        hold: while clear, nothing is answered.
        asked: (verb, pod name, nodes) of each call.
    """

    settings: ExtenderSettings
    failed: dict[str, str] = field(default_factory=dict)
    unresolvable: dict[str, str] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)
    scores: dict[str, int] = field(default_factory=dict)
    spares: set[str] = field(default_factory=set)
    broken: dict[str, str] = field(default_factory=dict)
    meanwhile: Callable[[str], None] = lambda _verb: None
    hold: asyncio.Event = field(default_factory=asyncio.Event)
    asked: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)
    is_open: bool = False

    def __post_init__(self) -> None:
        self.hold.set()

    async def filter(self, pod: PodInfo, nodes: Sequence[NodeName]) -> Filtered:
        await self._answer("filter", pod, nodes)
        refused = self.failed.keys() | self.unresolvable.keys() | self.dropped
        return Filtered(
            tuple(name for name in nodes if name not in refused),
            {name: self.failed[name] for name in nodes if name in self.failed},
            {name: self.unresolvable[name] for name in nodes if name in self.unresolvable},
        )

    async def prioritize(self, pod: PodInfo, nodes: Sequence[NodeName]) -> dict[NodeName, int]:
        await self._answer("prioritize", pod, nodes)
        return {name: self.scores[name] for name in nodes if name in self.scores}

    async def preempt(
        self,
        pod: PodInfo,
        victims: Mapping[NodeName, NodeVictims],
        pods_on: Callable[[NodeName], Iterable[PodInfo]] | None = None,
    ) -> dict[NodeName, NodeVictims]:
        await self._answer("preempt", pod, tuple(victims))
        return {node: who for node, who in victims.items() if self.spares.isdisjoint(victim.name for victim in who.pods)}

    async def bind(self, pod: PodInfo, node: NodeName) -> None:
        await self._answer("bind", pod, (node,))

    def open(self) -> None:
        self.is_open = True

    async def close(self) -> None:
        self.is_open = False

    async def _answer(self, verb: str, pod: PodInfo, nodes: Sequence[str]) -> None:
        self.asked.append((verb, pod.name, tuple(nodes)))
        await self.hold.wait()
        self.meanwhile(verb)
        if verb in self.broken:
            raise ExtenderError(self.broken[verb])

    @property
    def verbs(self) -> list[str]:
        return [verb for verb, _, _ in self.asked]


def extender(name: str = "http://extender", **settings: Any) -> ScriptedExtender:
    """An extender with all verbs but bind; fields of its settings may be given."""
    return ScriptedExtender(ExtenderSettings(url_prefix=name, **ALL_VERBS | settings))
