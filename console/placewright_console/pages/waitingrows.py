"""Waiting pods as rows of the console's state: pods that wait for the same reasons share a row.

The section `queue` has a row for each sub-queue, profile, namespace and set of reasons. A row has the number of pods, and names the oldest.
Namespaces that a reader may not see share the row of no namespace. It has the plugins, and no reasons: texts of plugins quote names, such
as that of a claim.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from heapq import nsmallest
from typing import Any, Final, TypeAlias

import msgspec

from placewright.api.pods import PodInfo
from placewright.plugins.schedulinggates import NAME as SCHEDULING_GATES
from placewright.plugins.schedulinggates import gates_line
from placewright.scheduler.cycle import cut
from placewright.serving.rights import Rights

#: Rows, and pods that a row names. Further rows are summed up in one.
MOST_GROUPS: Final = 1000
MOST_NAMED: Final = 20
#: Groups that a row names, the one with the most of its pods first.
MOST_GANGS: Final = 10
#: Reasons in a row.
_MOST_REASONS: Final = 8
#: The key of the row that sums up the rows beyond `MOST_GROUPS`.
OTHERS: Final = "others"


class WaitReason(msgspec.Struct, frozen=True, gc=False, order=True):
    """Nodes that a plugin rejects for one reason.

    Attributes:
        plugin: its name; empty if none is to blame.
        reason: its text.
        nodes: number of nodes; 0 for a reason that is not about nodes.
    """

    plugin: str
    reason: str
    nodes: int = 0


class PendingPod(msgspec.Struct, frozen=True, gc=False, order=True):
    """A pod without a node. The garbage collector does not look at these many objects, because none refers to another of its kind.

    Attributes:
        profile: profile of its schedulerName; empty if there is none.
        place: the name of its sub-queue; empty if the pod is in none. Suspects and pods that were given up have places of their own.
        rejections: the reasons, the one of the most nodes first.
        since: the time from which it waits, seconds since 1970.
        group: the name of the group that it is placed with; empty for none.
        facts: further facts of a queue: priority, attempts, and the end of its backoff (seconds since 1970, 0.0 for none). Empty
            where no queue is known.
    """

    namespace: str
    name: str
    profile: str
    place: str
    rejections: tuple[WaitReason, ...]
    since: float
    group: str = ""
    facts: tuple[int | float, ...] = ()


def gate_reason(pod: PodInfo, plugin: str, told: str = "") -> WaitReason:
    """Say which gate keeps a pod. Of the pod's own gates the reason is the same live and in a file.

    Args:
        pod: that is gated.
        plugin: that gates it; empty if it is not known.
        told: the plugin's reason; empty if it is not known. Another plugin's reason may be about other objects, so it is not made here.
    """
    own = cut(gates_line(pod))
    return WaitReason(SCHEDULING_GATES, own) if plugin == SCHEDULING_GATES or told == own != "" else WaitReason(plugin, told)


#: Pods whose tuples are equal share a row.
Alike: TypeAlias = tuple[Hashable, ...]


def waiting_rows(pods: Iterable[PendingPod], rights: Rights) -> dict[str, Any]:
    """Group waiting pods.

    Args:
        pods: all of them.
        rights: rights of the readers.

    Returns:
        The section `queue`. The same pods give the same keys at each call.
    """
    groups: dict[Alike, list[PendingPod]] = {}
    for pod in pods:
        groups.setdefault(alike(pod) if rights.may_see(pod.namespace) else alike_hidden(pod), []).append(pod)
    rows = {row_key(each): _row(group, rights) for each, group in groups.items()}
    return bounded(rows)


def bounded(rows: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Keep the `MOST_GROUPS` rows with the oldest pods, and sum up the rest."""
    if len(rows) <= MOST_GROUPS:
        return dict(rows)
    order = sorted(rows, key=lambda key: (rows[key]["oldest"], key))
    kept: dict[str, Any] = {key: rows[key] for key in order[:MOST_GROUPS]}
    left = [rows[key] for key in order[MOST_GROUPS:]]
    count, oldest = sum(row["count"] for row in left), min(row["oldest"] for row in left)
    kept[OTHERS] = {"place": "", "count": count, "oldest": oldest, "namespace": None, "profile": "", "reasons": [], "pods": []}
    return kept


def alike(pod: PendingPod) -> Alike:
    """Return what pods that the reader may see share with the others of their row."""
    return pod.place, pod.profile, pod.namespace, tuple([(each.plugin, each.reason) for each in pod.rejections])


def alike_hidden(pod: PendingPod) -> Alike:
    """Return what hidden pods share with the others of their row: no namespace and no text."""
    return pod.place, pod.profile, None, tuple(dict.fromkeys([each.plugin for each in pod.rejections]))


def row_key(alike: Alike) -> str:
    """Return the key of the row of these pods: the same for the same pods, in every process."""
    return hashlib.blake2s(msgspec.json.encode(alike), digest_size=8).hexdigest()


def hidden_row(alike: Alike, count: int, oldest: float) -> dict[str, Any]:
    """Make the row of hidden pods.

    Args:
        alike: result of `alike_hidden`.
        count: number of pods.
        oldest: the time from which the oldest of them waits.

    Returns:
        The row: plugins, and no reasons.
    """
    place, profile, _, plugins = alike
    assert isinstance(plugins, tuple)
    reasons = [[plugin, "", 0, 0] for plugin in plugins]
    return {"place": place, "profile": profile, "namespace": None, "reasons": reasons, "count": count, "oldest": oldest, "pods": []}


def _row(group: list[PendingPod], rights: Rights) -> dict[str, Any]:
    first, oldest = group[0], min(pod.since for pod in group)
    if not rights.may_see(first.namespace):
        return hidden_row(alike_hidden(first), len(group), oldest)
    numbers = {tuple(each.nodes for each in pod.rejections) for pod in group}
    gangs = Counter(pod.group for pod in group if pod.group)
    return seen_row(first, numbers, len(group), nsmallest(MOST_NAMED, group, key=lambda pod: (pod.since, pod.name)), gangs)


def seen_row(
    like: PendingPod, numbers: Iterable[tuple[int, ...]], count: int, named: Sequence[PendingPod], gangs: Mapping[str, int]
) -> dict[str, Any]:
    """Make the row of pods that the reader may see.

    Args:
        like: any of them.
        numbers: each set of numbers of nodes that their reasons have.
        count: number of pods.
        named: the oldest of them, the oldest first.
        gangs: number of pods by name of the group that they are placed with.
    """
    row = {
        "place": like.place,
        "profile": like.profile,
        "namespace": like.namespace,
        "reasons": _reasons(like.rejections, numbers),
        "count": count,
        "oldest": named[0].since,
        "pods": [[pod.name, pod.since, *pod.facts] for pod in named],
    }
    if gangs:
        row["groups"] = nsmallest(MOST_GANGS, gangs.items(), key=lambda gang: (-gang[1], gang[0]))
    return row


def _reasons(told: Iterable[WaitReason], numbers: Iterable[tuple[int, ...]]) -> list[list[Any]]:
    """Plugin, text, and the fewest and the most nodes that it keeps a pod of the group from."""
    counts = zip(*numbers, strict=True)
    return [[each.plugin, cut(each.reason), min(nodes), max(nodes)] for each, nodes in zip(told, counts, strict=True)][:_MOST_REASONS]
