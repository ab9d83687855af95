"""The HTTP client of one extender."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from placewright.api.extenders import ExtenderError, ExtenderSettings, Filtered, NodeVictims
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.kube.fullobjects import FullObjects


class HttpExtender:
    """Calls one extender; implements the scheduler's `Extender`. Made inside a running event loop, and closed.

    Raises `InputError` when the TLS files that the profile names cannot be used; the message begins with the path of the field.
    """

    def __init__(self, settings: ExtenderSettings, objects: FullObjects) -> None:
        self.settings = settings
        self._objects = objects

    async def filter(self, pod: PodInfo, nodes: Sequence[NodeName]) -> Filtered:
        """Which of the nodes can hold the pod."""
        raise ExtenderError(f"{self.settings.name}: not called yet")

    async def prioritize(self, pod: PodInfo, nodes: Sequence[NodeName]) -> dict[NodeName, int]:
        """Its scores."""
        raise ExtenderError(f"{self.settings.name}: not called yet")

    async def preempt(
        self,
        pod: PodInfo,
        victims: Mapping[NodeName, NodeVictims],
        pods_on: Callable[[NodeName], Iterable[PodInfo]] | None = None,
    ) -> dict[NodeName, NodeVictims]:
        """The candidates that it agrees to."""
        raise ExtenderError(f"{self.settings.name}: not called yet")

    async def bind(self, pod: PodInfo, node: NodeName) -> None:
        """Bind the pod."""
        raise ExtenderError(f"{self.settings.name}: not called yet")

    async def close(self) -> None:
        """End its connections."""
