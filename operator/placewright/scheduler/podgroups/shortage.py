"""Writes the shortage of a group in one line: `needs 3 more members placed: 2 lack example.com/gpu, 1 lacks memory`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from placewright.cluster.podgrouptrees import Counts, GroupTree
from placewright.framework.interface import Diagnosis
from placewright.framework.status import Code
from placewright.scheduler.cycle import FitError
from placewright.scheduler.podgroups.group import UnplacedMember

_INSUFFICIENT: Final = "Insufficient "
_TOO_MANY_PODS: Final = "Too many pods"
#: Most child groups whose shortage is written.
_MOST_CHILDREN: Final = 3
_NO_REASON: Final = "node(s) out of reach"


def lacking(needed: int, placed: int, absent: int, unplaced: Sequence[FitError], untried: int = 0) -> str:
    """Write the shortage of a group in one line.

    Args:
        needed: fewest members that have to be placed.
        placed: number of members that found a node.
        absent: number of members that are not in the queue.
        unplaced: failures of members that found no node.
        untried: number of members that were not tried.
    """
    more = needed - placed
    told = [_told(count, reason) for reason, count in Counter(_reason(member) for member in unplaced).most_common()]
    if absent > 0:
        told.append(f"{absent} {'is' if absent == 1 else 'are'} not there to be tried")
    if untried > 0:
        told.append(f"{untried} more {'was' if untried == 1 else 'were'} not tried")
    reasons = f": {', '.join(told)}" if told else ""
    return f"needs {more} more member{'' if more == 1 else 's'} placed{reasons}"


def lacking_in(tree: GroupTree, possible: Counts, unplaced: Sequence[UnplacedMember]) -> str:
    """Write the shortage of a tree: the highest group that cannot stand, and what its child groups lack.

    Args:
        tree: a tree that does not stand.
        possible: members that have a node or may get one, by group.
        unplaced: members that found no node.
    """
    group = tree.group
    if tree.is_leaf:
        failures = [member.failure for member in unplaced if member.attempt.pod.pod_group == group.ref]
        placed = possible.get(group.ref, 0)
        return lacking(group.min_member, placed, group.min_member - placed - len(failures), failures)
    fallen = [child for child in tree.children if not child.stands(possible)]
    told = [f"{child.group.ref.name} {lacking_in(child, possible, unplaced)}" for child in fallen[:_MOST_CHILDREN]]
    others = [f"{len(fallen) - len(told)} more"] if len(fallen) > len(told) else []
    found = len(tree.children) - len(fallen)
    return f"needs {group.min_member} child groups placed, {found} can be{''.join(f'; {each}' for each in (*told, *others))}"


def _told(count: int, reason: tuple[str, ...]) -> str:
    resources = [text.removeprefix(_INSUFFICIENT) if text.startswith(_INSUFFICIENT) else "room for another pod" for text in reason]
    if all(text.startswith(_INSUFFICIENT) or text == _TOO_MANY_PODS for text in reason):
        return f"{count} lack{'s' if count == 1 else ''} {' and '.join(resources)}"
    return f"{count} find{'s' if count == 1 else ''} no node ({', '.join(reason)})"


def _reason(member: FitError) -> tuple[str, ...]:
    """Return the reason that rejected most nodes. If evictions could help on some nodes, count only those."""
    diagnosis = member.diagnosis
    if diagnosis is None:
        return (member.message,)
    if diagnosis.prefilter_message:
        return (diagnosis.prefilter_message,)
    counted = _counted(diagnosis, resolvable=True) or _counted(diagnosis, resolvable=False)
    return max(sorted(counted), key=lambda reasons: counted[reasons], default=(_NO_REASON,))


def _counted(diagnosis: Diagnosis, *, resolvable: bool) -> Counter[tuple[str, ...]]:
    counted: Counter[tuple[str, ...]] = Counter()
    for status, rows in diagnosis.rejections:
        if status.reasons and (status.code is Code.UNSCHEDULABLE or not resolvable):
            counted[tuple(status.reasons)] += len(rows)
    return counted
