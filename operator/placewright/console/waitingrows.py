"""Waiting pods as rows of the console's state: pods that wait for the same reasons share a row.

The section `queue` has a row for each sub-queue, profile, namespace and set of reasons, with the number of pods and the oldest of them by
name. Namespaces that a reader may not see share the row of no namespace. It has the plugins, and no reasons: texts of plugins quote names,
such as that of a claim.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Hashable, Iterable
from heapq import nsmallest
from typing import Any, Final, NamedTuple

import msgspec

from placewright.console.rights import Rights
from placewright.scheduler.decisiondetail import cut

#: Rows, and pods that a row names. Further rows are summed up in one.
MOST_GROUPS: Final = 1000
MOST_NAMED: Final = 20
#: Groups that a row names, the one with the most of its pods first.
MOST_GANGS: Final = 10
#: Reasons in a row.
_MOST_REASONS: Final = 8
#: The key of the row that sums up the rows beyond `MOST_GROUPS`.
OTHERS: Final = "others"


class WaitReason(NamedTuple):
    """Nodes that a plugin rejects for one reason.

    Attributes:
        plugin: its name; empty where none is to blame.
        reason: its text.
        nodes: number of nodes; 0 for a reason that is not about nodes.
    """

    plugin: str
    reason: str
    nodes: int = 0


class PendingPod(NamedTuple):
    """A pod without a node.

    Attributes:
        profile: of its schedulerName; empty where there is none.
        place: the name of its sub-queue; empty where the pod is in none.
        rejections: the reasons, the one of the most nodes first.
        since: the time from which it waits, seconds since 1970.
        group: the name of the group that it is placed with; empty for none.
    """

    namespace: str
    name: str
    profile: str
    place: str
    rejections: tuple[WaitReason, ...]
    since: float
    group: str = ""


def waiting_rows(pods: Iterable[PendingPod], rights: Rights) -> dict[str, Any]:
    """Group waiting pods.

    Args:
        pods: all of them.
        rights: of the readers.

    Returns:
        The section `queue`. The same pods give the same keys at each call.
    """
    groups: dict[Hashable, list[PendingPod]] = {}
    for pod in pods:
        groups.setdefault(_alike(pod, rights), []).append(pod)
    ordered = sorted(groups.values(), key=lambda group: min(pod.since for pod in group))
    rows = {_key(_alike(group[0], rights)): _row(group, rights) for group in ordered[:MOST_GROUPS]}
    left = [pod for group in ordered[MOST_GROUPS:] for pod in group]
    if left:
        rows[OTHERS] = {"place": "", "count": len(left), "oldest": min(pod.since for pod in left), "namespace": None, "profile": "",
                        "reasons": [], "pods": []}  # fmt: skip
    return rows


def _alike(pod: PendingPod, rights: Rights) -> tuple[Hashable, ...]:
    """Pods with an equal result share a row."""
    if not rights.may_see(pod.namespace):
        return pod.place, pod.profile, None, tuple(dict.fromkeys(each.plugin for each in pod.rejections))
    return pod.place, pod.profile, pod.namespace, tuple((each.plugin, each.reason) for each in pod.rejections)


def _key(alike: Hashable) -> str:
    return hashlib.blake2s(msgspec.json.encode(alike), digest_size=8).hexdigest()


def _row(group: list[PendingPod], rights: Rights) -> dict[str, Any]:
    first = group[0]
    seen = rights.may_see(first.namespace)
    named = nsmallest(MOST_NAMED, group, key=lambda pod: (pod.since, pod.name)) if seen else []
    row = {
        "place": first.place,
        "profile": first.profile,
        "namespace": first.namespace if seen else None,
        "reasons": _reasons(group) if seen else [[plugin, "", 0, 0] for plugin in dict.fromkeys(each.plugin for each in first.rejections)],
        "count": len(group),
        "oldest": min(pod.since for pod in group),
        "pods": [[pod.name, pod.since] for pod in named],
    }
    groups = Counter(pod.group for pod in group if seen and pod.group)
    return row | {"groups": groups.most_common(MOST_GANGS)} if groups else row


def _reasons(group: list[PendingPod]) -> list[list[Any]]:
    """Plugin, text, and the fewest and the most nodes that it keeps a pod of the group from."""
    counts = zip(*([each.nodes for each in pod.rejections] for pod in group), strict=True)
    told = zip(group[0].rejections, counts, strict=True)
    return [[each.plugin, cut(each.reason), min(nodes), max(nodes)] for each, nodes in told][:_MOST_REASONS]
