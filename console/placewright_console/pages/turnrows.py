"""The turns of tenants as rows of the console's state, for profiles that have fairness.

The section `turns` has a row for each profile and priority at which tenants wait: the tenants whose turns come first, each with its waiting
pods and its weight. A tenant is a namespace, which only readers of its pods may see, or the value of a label. Such a value is a text of the
pod's owner, so only readers of all namespaces see it. Other tenants have no name.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import nsmallest
from typing import Any, Final, NamedTuple

from placewright.queue.profilequeue import ProfileQueue
from placewright.scheduler.policy import BY_NAMESPACE
from placewright.serving.rights import Rights

#: Tenants in a row.
MOST_TENANTS: Final = 20


class WaitingTenants(NamedTuple):
    """The tenants of one profile that wait at one priority.

    Attributes:
        namespaces: whether tenants are namespaces.
        first: name, waiting pods, weight, and whether they wait for a place, of the tenants whose turns come first.
        tenants: number of all tenants.
    """

    profile: str
    priority: int
    namespaces: bool
    first: tuple[tuple[str, int, int, bool], ...]
    tenants: int


def waiting_tenants(queues: Iterable[ProfileQueue]) -> list[WaitingTenants]:
    """Read the turns of all profiles that have fairness. O(tenants).

    Args:
        queues: queues of profiles; only read.

    Returns:
        For each profile, the highest priority first.
    """
    found = []
    for queue in queues:
        for turns in () if queue.fair is None else queue.fair.turns():
            first = nsmallest(MOST_TENANTS, turns.tenants.values(), key=lambda tenant: (tenant.tag, tenant.number))
            told = tuple([(each.name, len(each.lanes), each.weight, not each.lined_up) for each in first])
            namespaces = queue.fair is not None and queue.fair.policy.by == BY_NAMESPACE
            found.append(WaitingTenants(queue.name, turns.priority, namespaces, told, len(turns.tenants)))
    return found


def turn_rows(waiting: Iterable[WaitingTenants], rights: Rights) -> dict[str, Any]:
    """Return the section `turns`.

    Returns:
        Rows `[profile, priority, [[name or None, pods, weight, waits for a place], …], number of tenants]`.
    """
    return {f"{each.profile}/{each.priority}": _row(each, rights) for each in waiting if each.tenants}


def _row(waiting: WaitingTenants, rights: Rights) -> list[Any]:
    seen = rights.may_see if waiting.namespaces else lambda _: rights.namespaces is None
    return [
        waiting.profile, waiting.priority, [[name if seen(name) else None, *known] for name, *known in waiting.first], waiting.tenants
    ]  # fmt: skip
