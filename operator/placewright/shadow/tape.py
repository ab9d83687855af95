"""What happens, in the order in which it happens, until a shadow gets to it.

News must not get lost, decisions may: when too many of these wait, further ones are passed over, and when too much news does, all of it is
dropped, and the shadow begins anew from the cluster as it is.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo, held_bytes
from placewright.framework.runtime.evaluation import PluginScore
from placewright.scheduler.cycle import ScheduleResult

#: Decisions that may wait, as bursts are followed by quiet times; at five percent of the time a shadow makes 50 to 300 a second.
MOST_DECISIONS: Final = 5_000
#: Entries of any kind that may wait: some 10 MB, with pods that stand on nodes anyway.
MOST_ENTRIES: Final = 100_000
#: Bytes of the objects in them, which may be gone elsewhere.
MOST_BYTES: Final = 128 * 2**20


class EntryKind(enum.IntEnum):
    """Kinds of entries, each with what it is about: objects of our own, several of them for a group, an uid, or a name."""

    NODE_SET = 0
    NODE_REMOVED = 1
    POD_STANDS = 2
    POD_LEFT = 3
    OBJECT_PUT = 4
    OBJECT_REMOVED = 5
    DECISION = 6
    GROUP = 7


class LiveChoice(NamedTuple):
    """The live profile's choice for a pod.

    Attributes:
        best: the node, and after it the next best ones; empty where these were not told.
        parts: by plugin, its part in the totals of `best`.
    """

    node: NodeName
    best: tuple[NodeName, ...]
    parts: dict[str, list[PluginScore]]

    def total(self, node: NodeName) -> int | None:
        """What the live profile gave a node; None where that is not known.

        Nor is it known of its own node where the others were not told: of agreements alone there would be no regret.
        """
        if node not in self.best:
            return None
        index = self.best.index(node)
        return sum(scores[index].product for scores in self.parts.values())


_UNTOLD: Final[dict[str, list[PluginScore]]] = {}


def choice_of(placement: ScheduleResult) -> LiveChoice:
    """What is to be kept of a placement: little, as thousands wait, and each part of a score is an object."""
    if len(placement.best) > 1:
        return LiveChoice(placement.node, placement.best, placement.parts)
    return LiveChoice(placement.node, (), _UNTOLD)


class Decided(NamedTuple):
    """The live profile decided a pod; `choice` None: no node fits."""

    pod: PodInfo
    generation: int
    choice: LiveChoice | None


Entry = tuple[EntryKind, Any, Any]


def _objects(subject: Any) -> Iterator[object]:
    """What an entry keeps."""
    if isinstance(subject, Decided):
        yield subject.pod
    elif isinstance(subject, tuple):
        for member in subject:
            yield from _objects(member)
    else:
        yield subject


class Tape:
    """One shadow's.

    Attributes:
        torn: news was dropped; nothing is noted until `mend`.
        passed_over: decisions that were not noted, or were dropped, since somebody took this figure.
    """

    def __init__(self, most_entries: int = MOST_ENTRIES, most_decisions: int = MOST_DECISIONS) -> None:
        self.torn = False
        self.passed_over = 0
        self._entries: deque[Entry] = deque()
        self._sizes: deque[int] = deque()
        self._bytes = 0
        self._decisions = 0
        self._most_entries = most_entries
        self._most_decisions = most_decisions

    def __len__(self) -> int:
        return len(self._entries)

    def note(self, kind: EntryKind, subject: Any, where: Any = None) -> None:
        """Something happened."""
        if self.torn:
            return
        held = held_bytes(*_objects(subject))
        self._entries.append((kind, subject, where))
        self._sizes.append(held)
        self._bytes += held
        if len(self._entries) > self._most_entries or self._bytes > MOST_BYTES:
            self._drop()
            self.torn = True

    def takes_decision(self, pods: int = 1) -> bool:
        """Whether the decision that was made just now, of so many pods, is to be noted; if not, it is counted as passed over."""
        taken = not self.torn and self._decisions < self._most_decisions
        if not taken:
            self.passed_over += pods
        return taken

    def note_decision(self, decided: Decided) -> None:
        """The live profile decided a pod, which is about to stand where it chose."""
        self._decisions += 1
        self.note(EntryKind.DECISION, decided)

    def note_group(self, members: tuple[Decided, ...]) -> None:
        """The live profile decided members of a group together; those with a choice stand there by now."""
        self._decisions += len(members)
        self.note(EntryKind.GROUP, members)

    def take(self) -> Entry | None:
        """The oldest entry; None where there is none."""
        if not self._entries:
            return None
        entry = self._entries.popleft()
        self._bytes -= self._sizes.popleft()
        if entry[0] is EntryKind.DECISION:
            self._decisions -= 1
        elif entry[0] is EntryKind.GROUP:
            self._decisions -= len(entry[1])
        return entry

    def mend(self) -> None:
        """Everything from now on is noted, and nothing from before."""
        self._drop()
        self.torn = False

    def _drop(self) -> None:
        self.passed_over += self._decisions
        self._decisions = 0
        self._entries.clear()
        self._sizes.clear()
        self._bytes = 0
