"""The values that plugins keep during one attempt to place a pod."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

from placewright.api.objects import NodeAllocatableClaimStatus
from placewright.api.pods import PodInfo
from placewright.framework.steps import Steps

T = TypeVar("T")


@dataclass(slots=True)
class CycleState:
    """The values that plugins keep between the extension points of one attempt; each plugin writes under its own name.

    Every attempt begins with a new state. The framework passes it to every point from PreFilter to PostBind. It lives until the pod is
    bound or back in the queue.

    A local plugin is one with `Reads.NODE` or `Reads.NODE_AND_ITS_PODS`. A value that it writes in PreFilter or PreScore is kept with the
    columns. All pods of the same signature get the same object. So the value may depend on nothing but the signature, and no plugin may
    change it later.

    Attributes:
        data: the values by key; use `read` and `write`.
        skip_filter: names of plugins that answered SKIP in PreFilter; their Filter is not called in this attempt.
        skip_score: names of plugins that answered SKIP in PreScore; their Score is not called in this attempt.
        annotations: annotations that are written on the pod with its Binding, beside the decision. A plugin that must find its choice
            again after a restart adds one in Reserve or PreBind. It takes it back in Unreserve. A name begins with the plugin's own
            domain. An extender that binds instead of a Bind plugin does not write them.
        taken_with_claims: resources of the node that the pod takes with its claims to devices. A plugin sets them in Reserve. The
            scheduler counts them on the node.
        activate: pods by uid that the queue makes active when this pod has passed Permit, and again when it is bound.
        abandoned: True once the pod was deleted while it was being bound. A PreBind plugin that waits for something may stop then.
        steps: duration of each part of the attempt; empty if the time is not taken.
    """

    data: dict[str, Any] = field(default_factory=dict)
    skip_filter: set[str] = field(default_factory=set)
    skip_score: set[str] = field(default_factory=set)
    annotations: dict[str, str] = field(default_factory=dict)
    taken_with_claims: tuple[NodeAllocatableClaimStatus, ...] = ()
    activate: dict[str, PodInfo] = field(default_factory=dict)
    abandoned: bool = False
    steps: Steps = field(default_factory=Steps)

    def read(self, key: str, kind: type[T]) -> T:
        """Return a value that an earlier step of this attempt wrote.

        Args:
            key: the key of the call of `write`.
            kind: the class of the value; the result has this type.

        Returns:
            The value itself, not a copy.

        Raises:
            KeyError: no value was written under `key`, for example because the plugin's PreFilter answered SKIP.
            TypeError: the value is of another class.

        Example:
            demand = state.read("example.com/seats", int)
        """
        # Checked at run time, because two plugins may have chosen the same key.
        value = self.data[key]
        if not isinstance(value, kind):
            raise TypeError(f"cycle state {key!r} holds {type(value).__name__}, not {kind.__name__}")
        return value

    def write(self, key: str, value: object) -> None:
        """Keep a value for a later step of this attempt.

        Args:
            key: begins with the plugin's name, so that no two plugins share a key.
            value: anything; see the class for what a value of a local plugin may depend on.
        """
        self.data[key] = value
