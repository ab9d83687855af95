"""Writes the texts of events and conditions. They are kube-scheduler's, word for word, because alerts and scripts match them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from placewright.framework.interface import Diagnosis
from placewright.framework.status import NODES_ARE_KEPT, Status

NODE_IS_KEPT: Final = "node is kept"
NO_NODES: Final = "no nodes available to schedule pods"


def fit_error(diagnosis: Diagnosis) -> str:
    """Write the message of a pod that no node can hold: each distinct reason with its number of nodes, sorted as plain text.

    Example:
        0/5 nodes are available: 2 Insufficient cpu, 3 node(s) were unschedulable. preemption: ...
    """
    message = f"0/{diagnosis.node_count} nodes are available:"
    if diagnosis.prefilter_message:
        message += f" {diagnosis.prefilter_message}."
    elif counted := _reasons(diagnosis):
        message += f" {_listed(counted)}."
    if diagnosis.postfilter_message:
        message += f" {diagnosis.postfilter_message}"
    return message


def _reasons(diagnosis: Diagnosis) -> Counter[str]:
    counted: Counter[str] = Counter()
    for rejection in diagnosis.rejections:
        for reason in rejection.status.reasons:
            counted[reason] += len(rejection.rows)
    return counted


def _listed(counted: Mapping[str, int]) -> str:
    # kube-scheduler sorts the finished texts, so `10 node(s)` comes before `2 node(s)`.
    return ", ".join(sorted(f"{count} {_of_one(reason) if count == 1 else reason}" for reason, count in counted.items()))


def _of_one(reason: str) -> str:
    """Return a reason in the singular. Only the reason of reservations, which kube-scheduler does not have, changes."""
    return NODE_IS_KEPT + reason.removeprefix(NODES_ARE_KEPT) if reason.startswith(NODES_ARE_KEPT) else reason


def late_rejection(status: Status) -> str:
    """Write the message of a rejection after a node was chosen (Reserve, Permit), as if the cluster had one node."""
    reasons = _listed(Counter(status.reasons))
    return f"0/1 nodes are available: {reasons}." if reasons else "0/1 nodes are available:"


def permit_timeout(plugin: str, seconds: float) -> str:
    """Write the message of a pod that a Permit plugin kept longer than the `seconds` that it may."""
    return f"rejected due to timeout after waiting {go_duration(seconds)} at plugin {plugin}"


def go_duration(seconds: float) -> str:
    """Write seconds, 0 or more, as Go prints a duration: `1m30s`, `2.5s`, `100ms` or `0s`."""
    if 0 < seconds < 1:
        return f"{seconds * 1000:g}ms"
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    text = f"{rest:g}s"
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if minutes else text
