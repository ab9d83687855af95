"""DefaultBinder: writes the Binding through the API server. Implements Bind."""

from __future__ import annotations

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.framework.interface import BindError, BindPlugin, CycleState
from placewright.framework.status import SUCCESS, Status, error


class DefaultBinder(BindPlugin):
    """Binds by POST to the pod's binding subresource."""

    name = "DefaultBinder"

    async def bind(self, state: CycleState, pod: PodInfo, node: NodeName, annotations: dict[str, str]) -> Status:
        """Create the Binding: SUCCESS, or an error with the API server's words. Raise `BindError` if the outcome is unknown."""
        try:
            await self.handle.binder.bind(pod, node, annotations)
        except BindError as refusal:
            if refusal.unknown:
                raise
            return error(str(refusal))
        return SUCCESS
