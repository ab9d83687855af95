"""The tape of a shadow: events of the live cluster and decisions of the live profile, in order, until the shadow replays them.

Decisions may get lost, but events may not. When too many decisions wait, further ones are passed over. When too many entries wait, all
are dropped, and the shadow begins anew from the cluster as it is.
"""

from __future__ import annotations

import enum
from collections import deque
from typing import Any, Final, NamedTuple

from placewright.api.boundedcache import counts_bytes
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo, held_bytes
from placewright.framework.runtime.evaluation import PluginScore
from placewright.scheduler.cycle import ScheduleResult

#: Most decisions that wait. Quiet times follow bursts, and at five percent of the time a shadow makes 50 to 300 decisions a second.
MOST_DECISIONS: Final = 5_000
#: Most entries of any kind that wait: some 10 MB, not counting pods that the cache holds anyway.
MOST_ENTRIES: Final = 100_000
#: Most bytes of the objects in them, which the cache may have dropped meanwhile.
MOST_BYTES: Final = 128 * 2**20


class EntryKind(enum.IntEnum):
    """The kinds of entries. A kind of event has the name of the method of `ShadowCluster` that replays it.

    The subject is a node or its name, a pod or its uid, or an object. For a decision it is a tuple of `Decided`, one for each pod.
    """

    NODE_SET = 0
    NODE_REMOVED = 1
    POD_STANDS = 2
    POD_LEFT = 3
    OBJECT_PUT = 4
    OBJECT_REMOVED = 5
    DECISION = 6


class LiveChoice(NamedTuple):
    """The live profile's choice for a pod.

    Attributes:
        node: the chosen node.
        best: the chosen node, followed by the next best nodes; empty if the decision did not record them.
        parts: parts of the totals of `best`, by plugin.
    """

    node: NodeName
    best: tuple[NodeName, ...]
    parts: dict[str, list[PluginScore]]

    def total(self, node: NodeName) -> int | None:
        """Return the live profile's total for a node; None if it is not known.

        If the next best nodes were not recorded, the chosen node's total counts as unknown, too. Figures from agreements alone would show
        no regret.
        """
        if node not in self.best:
            return None
        index = self.best.index(node)
        return sum(scores[index].product for scores in self.parts.values())


_UNTOLD: Final[dict[str, list[PluginScore]]] = {}


def choice_of(result: ScheduleResult) -> LiveChoice:
    """Reduce a decision to the choice. It is small, because thousands may wait, and each part of a score is an object."""
    if len(result.best) > 1:
        return LiveChoice(result.node, result.best, result.parts)
    return LiveChoice(result.node, (), _UNTOLD)


class Decided(NamedTuple):
    """A decision of the live profile.

    Attributes:
        pod: version of the pod that was decided.
        generation: generation of the live profile.
        choice: choice of the live profile; None if no node fits.
    """

    pod: PodInfo
    generation: int
    choice: LiveChoice | None


Entry = tuple[EntryKind, Any, Any]


class Tape:
    """The tape of one shadow.

    Attributes:
        torn: True when entries were dropped. Then none is noted until `mend`.
        passed_over: number of decisions that were not noted, or were dropped, since the shadow last read this figure.
        nbytes: bytes of the objects that entries keep alive.
    """

    def __init__(self, most_entries: int = MOST_ENTRIES, most_decisions: int = MOST_DECISIONS) -> None:
        self.torn = False
        self.passed_over = 0
        self._entries: deque[Entry] = deque()
        self._sizes: deque[int] = deque()
        self.nbytes = 0
        counts_bytes(self)
        self._decisions = 0
        self._most_entries = most_entries
        self._most_decisions = most_decisions

    def __len__(self) -> int:
        return len(self._entries)

    def note(self, kind: EntryKind, subject: Any, where: Any = None) -> None:
        """Note an event of the live cluster.

        Args:
            kind: kind of the entry.
            subject: subject that `EntryKind` states.
            where: node of the pod, for `POD_STANDS`.
        """
        if self.torn:
            return
        held = held_bytes(*[member.pod for member in subject] if kind is EntryKind.DECISION else [subject])
        self._entries.append((kind, subject, where))
        self._sizes.append(held)
        self.nbytes += held
        if len(self._entries) > self._most_entries or self.nbytes > MOST_BYTES:
            self._drop()
            self.torn = True

    def takes_decision(self, pods: int = 1) -> bool:
        """Return whether a decision of so many pods is to be noted. If not, count it as passed over."""
        taken = not self.torn and self._decisions < self._most_decisions
        if not taken:
            self.passed_over += pods
        return taken

    def note_decision(self, decided: tuple[Decided, ...]) -> None:
        """Note a decision: of one pod before it is placed, of members of a group after they were placed."""
        self._decisions += len(decided)
        self.note(EntryKind.DECISION, decided)

    def take(self) -> Entry | None:
        """Take the oldest entry off the tape; None if there is none."""
        if not self._entries:
            return None
        entry = self._entries.popleft()
        self.nbytes -= self._sizes.popleft()
        if entry[0] is EntryKind.DECISION:
            self._decisions -= len(entry[1])
        return entry

    def mend(self) -> None:
        """Drop all entries, and note from now on."""
        self._drop()
        self.torn = False

    def _drop(self) -> None:
        self.passed_over += self._decisions
        self._decisions = 0
        self._entries.clear()
        self._sizes.clear()
        self.nbytes = 0
