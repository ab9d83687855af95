"""Waiting pods by reason, kept up to date pod by pod: the same rows as `waiting_rows` makes of all pods, at the cost of what changed.

The groups of pods are one for all readers. A class of rights takes the rows of groups that it may see, and sums up the others. No pod is
looked at again for it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from placewright.serving.rights import Rights
from placewright_console.pages.waitingpage import MOST_PODS, PodsAsked, waiting_page
from placewright_console.pages.waitingrows import (
    MOST_NAMED,
    Alike,
    PendingPod,
    WaitReason,
    alike,
    alike_hidden,
    bounded,
    hidden_row,
    row_key,
    seen_row,
)  # fmt: skip

#: Characters of reasons that are kept. Beyond that, pods that come have their plugins and no texts, which name their owners' objects.
MOST_TEXT: Final = 8 * 2**20

_Counted = TypeVar("_Counted")
#: The order of the pods in a row, and the pod's uid.
_Turn = tuple[float, str, str]


class _Group:
    """Pods that share a row.

    Attributes:
        hidden: key that its pods share for a reader who may not see them.
        row: row that `settle` last made; None before.
    """

    __slots__ = ("gangs", "hidden", "key", "like", "numbers", "row", "text", "turns")

    def __init__(self, like: PendingPod, alike: Alike) -> None:
        self.key = row_key(alike)
        self.like = like
        self.hidden = alike_hidden(like)
        self.text = sum(len(each.reason) for each in like.rejections)
        self.turns: list[_Turn] = []
        self.numbers: Counter[tuple[int, ...]] = Counter()
        self.gangs: Counter[str] = Counter()
        self.row: dict[str, Any] | None = None


class WaitingGroups:
    """Keeps the groups of waiting pods.

    Example:
        groups.put("uid", pod)
        while groups.settle(100):
            ...                     # others have their turn
        groups.rows(rights)
    """

    def __init__(self) -> None:
        """Keep no pods yet."""
        self._pods: dict[str, PendingPod] = {}
        self._groups: dict[Alike, _Group] = {}
        self._dirty: dict[Alike, None] = {}
        self._text = 0

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, uid: str) -> PendingPod | None:
        """Return a pod as it was put; None for an unknown one."""
        return self._pods.get(uid)

    def put(self, uid: str, pod: PendingPod) -> None:
        """Add a pod, or replace what is known of it."""
        known = self._pods.get(uid)
        if known == pod:
            return
        if known is not None:
            self._leave(uid, known)
        kind = alike(pod)
        group = self._groups.get(kind)
        if group is None and self._text > MOST_TEXT:
            pod = replace(pod, rejections=tuple([WaitReason(each.plugin, "", each.nodes) for each in pod.rejections]))
            kind = alike(pod)
            group = self._groups.get(kind)
        if group is None:
            group = self._groups[kind] = _Group(pod, kind)
            self._text += group.text
        self._pods[uid] = pod
        insort(group.turns, (pod.since, pod.name, uid))
        group.numbers[_numbers(pod)] += 1
        if pod.group:
            group.gangs[pod.group] += 1
        self._dirty[kind] = None

    def remove(self, uid: str) -> None:
        """Remove a pod; harmless for an unknown one."""
        pod = self._pods.pop(uid, None)
        if pod is not None:
            self._leave(uid, pod)

    def settle(self, most: int) -> int:
        """Make the rows of groups that have changed.

        Args:
            most: rows at most.

        Returns:
            The number of rows made; less than `most` where all rows are up to date.
        """
        made = 0
        while self._dirty and made < most:
            kind = next(iter(self._dirty))
            del self._dirty[kind]
            group = self._groups.get(kind)
            if group is not None:
                named = [self._pods[uid] for _, _, uid in group.turns[:MOST_NAMED]]
                group.row = seen_row(group.like, group.numbers, len(group.turns), named, group.gangs)
            made += 1
        return made

    def rows(self, rights: Rights) -> dict[str, Any]:
        """Return the section `queue`: the rows of `waiting_rows`, as of the last `settle`. O(groups)."""
        rows: dict[str, dict[str, Any]] = {}
        hidden: dict[Alike, list[tuple[int, float]]] = {}
        for group in self._groups.values():
            row = group.row
            if row is None:
                continue
            if rights.may_see(group.like.namespace):
                rows[group.key] = row
            else:
                hidden.setdefault(group.hidden, []).append((row["count"], row["oldest"]))
        for kind, sums in hidden.items():
            rows[row_key(kind)] = hidden_row(kind, sum(count for count, _ in sums), min(oldest for _, oldest in sums))
        return bounded(rows)

    def page(self, asked: PodsAsked, rights: Rights) -> dict[str, Any]:
        """Return a page of the pods of rows, as `waiting_page` makes it of all pods. O(groups + pods of the page).

        Args:
            asked: the question.
            rights: rights of the reader. Pods of other namespaces are left out.
        """
        return waiting_page(self._candidates(asked, rights), asked.after)

    def _candidates(self, asked: PodsAsked, rights: Rights) -> Iterator[PendingPod]:
        """Iterate over pods of rows that may be on the page: of each row, as many as a page has."""
        for group in self._groups.values():
            if group.key in asked.rows and rights.may_see(group.like.namespace):
                begin = 0 if asked.after is None else bisect_left(group.turns, (*asked.after[:2], ""))
                # The last pod before the page may be among them, and one more tells whether there are more.
                for _, _, uid in group.turns[begin : begin + MOST_PODS + 2]:
                    yield self._pods[uid]

    def _leave(self, uid: str, pod: PendingPod) -> None:
        kind = alike(pod)
        group = self._groups[kind]
        del group.turns[bisect_left(group.turns, (pod.since, pod.name, uid))]
        _count_less(group.numbers, _numbers(pod))
        if pod.group:
            _count_less(group.gangs, pod.group)
        self._dirty[kind] = None
        if not group.turns:
            del self._groups[kind]
            self._text -= group.text


def _count_less(counts: Counter[_Counted], key: _Counted) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]


def _numbers(pod: PendingPod) -> tuple[int, ...]:
    return tuple([each.nodes for each in pod.rejections])
