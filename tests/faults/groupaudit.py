"""The audit of groups: all or none, as the API server's history and the Bindings that arrived at the proxies show it.

The rules, beside those of `audit`:

- **Together.** A Binding of a group of which nobody has a node is one of enough: within `GRACE` seconds its sender has sent Bindings of as
  many members as the group needs, unless it was killed or stood still meanwhile, or lost the lead or its renewals, or members were deleted;
  the time that the API server was away is allowed for twice.
- **All or none.** At the end a group all of whose members are there has as many on nodes as it needs, or none. One that has fewer was left
  so by a Binding that failed or a sender that was stopped; then the members that wait must be accounted for as pods are.
- **Accounted for.** Where nobody of a group has a node, each member says why: that too few are there, with both numbers, or that the group
  is unschedulable, and how many more it needs; and then so many fit nowhere in fact.

All members of a group ask for the same here, so that whether they fit can be counted.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from .audit import GRACE, OURS, SLACK, not_accounted_for, room_for
from .history import Change, History, PodView
from .proxy import BindingRequest

#: Seconds that Bindings of one decision may take with all that is tried again.
_EARLIER: Final = 10.0
_NEEDS: Final = re.compile(r'pod group "(?P<group>[^"]+)" is unschedulable: needs (?P<more>\d+) more members? placed')
_TOO_FEW: Final = re.compile(r"spec\.minMember is (?P<needed>\d+), but there (?:is|are) (?P<found>\d+) pods? of it")


def lapses(renewals: Sequence[float], within: float) -> Iterator[float]:
    """When a leader stopped to act because its last granted renewal was `within` seconds old, though the next one was granted."""
    for last, following in pairwise(renewals):
        if following - last > within - SLACK:
            yield last + within


class GroupAudit:
    """What became of groups.

    Attributes:
        halfway: groups that have fewer members on nodes than they need, for a reason that is known.
    """

    def __init__(self, history: History, requests: Sequence[BindingRequest], needed: Mapping[str, int]) -> None:
        """`needed`: of each group that was declared, how many of its members are placed together."""
        self.halfway: list[str] = []
        self._history = history
        self._requests = requests
        self._needed = needed
        self._group_of = {uid: pod.group for uid, pod in history.last.items() if pod.group in needed}
        self._existing: dict[str, list[PodView]] = {group: [] for group in needed}
        for pod in history.pods.values():
            if pod.group in needed and not pod.leaving:
                self._existing[pod.group].append(pod)

    # --- together ---

    def not_together(self, changes: Iterable[Change], stopped: Collection[tuple[str, float]], away: float = 0.0) -> list[str]:
        """`stopped`: replica and time, of each that was killed, stood still, or lost the lead. `away`: seconds without an API server."""
        patience = GRACE + 2 * away
        began, ended = self._standing(changes)
        by_sender: dict[tuple[str, str], list[BindingRequest]] = defaultdict(list)
        for each in self._requests:
            if each.uid in self._group_of:
                by_sender[each.replica, self._group_of[each.uid]].append(each)
        faults: list[str] = []
        for (replica, group), sent in by_sender.items():
            for each in sent:
                if _stands(began[group], each.at) or any(who == replica and -GRACE < at - each.at < patience for who, at in stopped):
                    continue
                around = {other.uid for other in sent if -_EARLIER < other.at - each.at < patience}
                deleted = {uid for uid, at in ended[group].items() if -_EARLIER < at - each.at < patience}
                if len(around | deleted) < self._needed[group]:
                    all_times = " ".join(f"{other.at - each.at:+.2f}" for other in sent)
                    faults.append(
                        f"{replica} sent a Binding of {each.pod} at {each.at:.2f} s, and of {len(around)} members of {group} in all;"
                        f" it needs {self._needed[group]}, and nobody of it had a node (all that it sent, in s from then: {all_times})"
                    )
        return faults

    def _standing(self, changes: Iterable[Change]) -> tuple[dict[str, list[tuple[float, int]]], dict[str, dict[str, float]]]:
        """By group, how many of it have a node, from when on; and which members were deleted, when."""
        placed: dict[str, set[str]] = defaultdict(set)
        counts: dict[str, list[tuple[float, int]]] = defaultdict(list)
        ended: dict[str, dict[str, float]] = defaultdict(dict)
        for change in changes:
            pod = change.view
            if not isinstance(pod, PodView) or pod.group not in self._needed:
                continue
            if change.gone or pod.leaving:
                ended[pod.group].setdefault(pod.uid, change.at)
            there = pod.node and not change.gone and not pod.leaving
            (placed[pod.group].add if there else placed[pod.group].discard)(pod.uid)
            counts[pod.group].append((change.at, len(placed[pod.group])))
        return counts, ended

    # --- all or none ---

    def split(self) -> list[str]:
        """Groups that are half placed although nothing happened to them; those to which something did are `halfway`."""
        faults: list[str] = []
        for group, needed in self._needed.items():
            members = [pod for pod in self._history.last.values() if pod.group == group]
            placed = sum(bool(pod.node) for pod in self._existing[group])
            if 0 < placed < needed and len(self._existing[group]) == len(members):
                words = f"{placed} of {len(members)} members of {group} have a node, and it needs {needed}"
                (self.halfway if self._interrupted(group) else faults).append(words)
        return faults

    def _interrupted(self, group: str) -> bool:
        """Whether a Binding of a member that waits now came to nothing, or was never sent by a sender that was stopped."""
        waiting = {pod.uid for pod in self._existing[group] if not pod.node}
        failed = {each.uid for each in self._requests if each.code is None or each.code >= 300}
        senders = {each.replica for each in self._requests if self._group_of.get(each.uid) == group}
        return bool(waiting & failed) or len(senders) > 1

    # --- accounted for ---

    def unaccounted(self, counts: Collection[int]) -> dict[str, str]:
        """By uid of a member that waits, what is wrong with that, or nothing; `counts`: how many nodes there were at any time."""
        return {
            pod.uid: self._why(pod, counts)
            for members in self._existing.values() for pod in members
            if pod.scheduler == OURS and not pod.node and not pod.over
        }  # fmt: skip

    def _why(self, pod: PodView, counts: Collection[int]) -> str:
        members, needed = self._existing[pod.group], self._needed[pod.group]
        if any(each.node for each in members):
            return not_accounted_for(pod, self._history, counts)
        status, reason, message = pod.condition
        if (status, reason) != ("False", "Unschedulable"):
            return f"its group {pod.group} is on no node, and nothing says why"
        if len(members) < needed:
            found = _TOO_FEW.search(message)
            true = found is not None and (int(found["needed"]), int(found["found"])) == (needed, len(members))
            return "" if true else f"{len(members)} of {needed} members of {pod.group} are there, and it says {message!r}"
        told = _NEEDS.match(message)
        if told is None or told["group"] != pod.group or not 1 <= int(told["more"]) <= needed:
            return f"does not say what its group {pod.group} lacks: {message!r}"
        room = sum(room_for(self._history, pod.asks).values())
        return f"its group {pod.group} needs {needed} places, and there are {room}" if room >= needed else ""


def _stands(counts: Sequence[tuple[float, int]], at: float) -> bool:
    """Whether somebody of a group had a node at that time, or so shortly before that we may have heard of it late."""
    before = [count for when, count in counts if when <= at]
    return bool(before and before[-1]) or any(count for when, count in counts if abs(when - at) < SLACK and when > at)
