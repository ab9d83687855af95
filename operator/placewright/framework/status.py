"""The verdict of a plugin: a code, reasons that people read, and the plugin that spoke."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import Final


class Code(enum.Enum):
    """The verdict of a plugin. The docstring of `interface` has the table with the queue's answer to each code, point by point.

    SUCCESS: go on.
    ERROR: something broke. The pod comes back after its error backoff; no plugin is blamed.
    UNSCHEDULABLE: not now; evicting pods may help. The pod waits for an event that this plugin registered, then backs off, then is tried.
    UNSCHEDULABLE_AND_UNRESOLVABLE: not now, and evicting pods from this node cannot help. The pod waits likewise.
    WAIT: Permit only. The pod keeps its room and its reservations until it is allowed, rejected or its time is over.
    SKIP: this plugin has nothing to say about this pod; the extension points that depend on this one are not called.
    PENDING: like UNSCHEDULABLE_AND_UNRESOLVABLE, but this plugin's event makes the pod active at once, without backoff.
    """

    SUCCESS = "Success"
    ERROR = "Error"
    UNSCHEDULABLE = "Unschedulable"
    UNSCHEDULABLE_AND_UNRESOLVABLE = "UnschedulableAndUnresolvable"
    WAIT = "Wait"
    SKIP = "Skip"
    PENDING = "Pending"


_REJECTIONS: Final = frozenset({Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING})


@dataclass(frozen=True, slots=True)
class Status:
    """A code with its reasons.

    Attributes:
        code: the decision.
        reasons: texts for people, in the pod's event and condition. Nodes are counted by them, so they name no node.
        plugin: name of the plugin that decided; the framework fills it in.
    """

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @property
    def ok(self) -> bool:
        """True for SUCCESS."""
        return self.code is Code.SUCCESS

    @property
    def rejected(self) -> bool:
        """True when the pod cannot go there now: UNSCHEDULABLE, UNSCHEDULABLE_AND_UNRESOLVABLE or PENDING."""
        return self.code in _REJECTIONS

    @property
    def message(self) -> str:
        """The reasons, joined as kube-scheduler joins them."""
        return ", ".join(self.reasons)

    def by(self, plugin: str) -> Status:
        """Return the same verdict with a plugin's name on it.

        Args:
            plugin: its name.
        """
        return replace(self, plugin=plugin)


#: Beginning of the reason of nodes that a reservation for a group keeps from the pod; their number goes before it.
NODES_ARE_KEPT: Final = "nodes are kept"

SUCCESS: Final = Status(Code.SUCCESS)
SKIP: Final = Status(Code.SKIP)


def unschedulable(*reasons: str) -> Status:
    """Reject: not now, but evicting pods may help.

    Args:
        reasons: texts for people, in kube-scheduler's manner: "node(s) had no free seat".

    Returns:
        A status with UNSCHEDULABLE.
    """
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """Reject: not now, and evicting pods cannot help.

    Args:
        reasons: texts for people, as for `unschedulable`.

    Returns:
        A status with UNSCHEDULABLE_AND_UNRESOLVABLE.
    """
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)


def error(reason: str) -> Status:
    """Say that something broke.

    Args:
        reason: the failure; the framework puts plugin and point before it.

    Returns:
        A status with ERROR.
    """
    return Status(Code.ERROR, (reason,))
