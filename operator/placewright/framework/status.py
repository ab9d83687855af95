"""The verdict of a plugin: a code, reasons that people read, and the plugin that spoke."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import Final


class Code(enum.Enum):
    """What a plugin decided, and what the scheduler then does.

    SUCCESS: go on.
    ERROR: something broke; the pod comes back after its error backoff, no plugin is blamed.
    UNSCHEDULABLE: not now; preemption may help. The pod waits for an event that this plugin registered for.
    UNSCHEDULABLE_AND_UNRESOLVABLE: not now, and no preemption on this node can help.
    WAIT: Permit only; the pod keeps its reservation and waits to be allowed.
    SKIP: this plugin has nothing to say about this pod; its dependent extension points are not called.
    PENDING: like UNSCHEDULABLE, but the plugin's own event brings the pod back at once, without backoff.
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
    """A code with its reasons; `plugin` is filled in by the runtime."""

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @property
    def ok(self) -> bool:
        """True for SUCCESS."""
        return self.code is Code.SUCCESS

    @property
    def rejected(self) -> bool:
        """True when the pod cannot go there now: either kind of unschedulable, or pending."""
        return self.code in _REJECTIONS

    @property
    def message(self) -> str:
        """The reasons, joined as kube-scheduler joins them."""
        return ", ".join(self.reasons)

    def by(self, plugin: str) -> Status:
        """The same verdict with the plugin's name on it."""
        return replace(self, plugin=plugin)


SUCCESS: Final = Status(Code.SUCCESS)
SKIP: Final = Status(Code.SKIP)


def unschedulable(*reasons: str) -> Status:
    """Not now; preemption may help."""
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """Not now, and preemption cannot help."""
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)


def error(reason: str) -> Status:
    """Something broke."""
    return Status(Code.ERROR, (reason,))
