"""The texts that people read in events and conditions, word for word kube-scheduler's."""

from __future__ import annotations

from collections import Counter
from typing import Final

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.framework.interface import Diagnosis
from placewright.framework.status import Status

NO_NODES: Final = "no nodes available to schedule pods"


def fit_error(diagnosis: Diagnosis) -> str:
    """`0/5 nodes are available: 2 Insufficient cpu, 3 node(s) were unschedulable. preemption: ...`.

    Each distinct reason with its number of nodes, ordered as plain text.
    """
    message = f"0/{diagnosis.node_count} nodes are available:"
    if diagnosis.prefilter_message:
        message += f" {diagnosis.prefilter_message}."
    elif counted := _reasons(diagnosis):
        message += f" {', '.join(sorted(f'{count} {reason}' for reason, count in counted.items()))}."
    if diagnosis.postfilter_message:
        message += f" {diagnosis.postfilter_message}"
    return message


def _reasons(diagnosis: Diagnosis) -> Counter[str]:
    counted: Counter[str] = Counter()
    for rejection in diagnosis.rejections:
        for reason in rejection.status.reasons:
            counted[reason] += len(rejection.rows)
    return counted


def late_rejection(status: Status) -> str:
    """A rejection after a node was chosen (Reserve, Permit): the text of a cluster of one node."""
    return f"0/1 nodes are available: 1 {status.message}."


def assigned(pod: PodInfo, node: NodeName) -> str:
    """The note of the Scheduled event."""
    return f"Successfully assigned {pod.key} to {node}"


def skip_deleting(pod: PodInfo) -> str:
    """The note for a pod that is being deleted while it waits."""
    return f"skip schedule deleting pod: {pod.key}"
