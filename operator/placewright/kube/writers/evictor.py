"""Evicts the victims of preemption: a condition on the pod gives the reason, then the pod is deleted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar, Final

from placewright.api.errors import EvictError
from placewright.api.objects import Condition, NodeName
from placewright.api.pods import PodInfo
from placewright.kube.errors import ApiError, RequestError
from placewright.kube.writers.places import RequestOwner
from placewright.kube.writers.podstatus import condition_json, dated, find_condition, patch_pod_status
from placewright.kube.writers.writer import RoomWriter, pod_path

DISRUPTION_TARGET: Final = "DisruptionTarget"
PREEMPTION_BY_SCHEDULER: Final = "PreemptionByScheduler"


class HttpEvictor(RoomWriter):
    """Deletes victims with their default grace period; implements the scheduler's port `Evictor`."""

    ERROR: ClassVar[type[Exception]] = EvictError

    async def evict(self, victim: PodInfo, preemptor: PodInfo, node: NodeName) -> None:
        """Mark a victim and delete it. A victim that is gone already is no error.

        Args:
            victim: the pod of this uid.
            preemptor: the pod that needs its room.
            node: that the victim leaves to the preemptor.

        Raises:
            EvictError: the server refused or did not answer, or this replica is not the active one.
        """
        # Deleted, not evicted through the Eviction API: as in kube-scheduler, a budget may be violated as the last resort.
        marked = self._condition(victim, preemptor)
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": victim.uid}}
        # A victim that is gone or replaced fails the first request without harm: the second one decides by uid. When the lead is lost
        # between the two, the mark stays; Kubernetes' disruption controller removes it from a pod that lives on after two minutes.
        whose = RequestOwner(victim.namespace, preemptor.scheduler_name, preemptor.priority)
        await self._request(victim, whose, lambda: patch_pod_status(self.client, victim, {"conditions": [marked]}, self._guarded))
        await self._request(victim, whose, lambda: self.client.delete(pod_path(victim), self._guarded(options)))

    async def _request(self, victim: PodInfo, whose: RequestOwner, request: Callable[[], Awaitable[object]]) -> None:
        """Send a request, again while the server is busy. Returns also when the victim is gone or replaced."""
        try:
            await self._send(request, about=f"evicting {victim.key}: ", whose=whose)
        except RequestError as error:
            if not isinstance(error, ApiError) or not error.gone_or_replaced:
                raise EvictError(f"evicting {victim.key}: {error}") from error

    def _condition(self, victim: PodInfo, preemptor: PodInfo) -> dict[str, object]:
        existing = find_condition(victim.pod, DISRUPTION_TARGET)
        message = f"{preemptor.scheduler_name}: preempting to accommodate a higher priority {_kind_of(preemptor)}"
        wanted = Condition(type=DISRUPTION_TARGET, status="True", reason=PREEMPTION_BY_SCHEDULER, message=message)
        return condition_json(dated(wanted, existing, victim.pod.metadata.generation, self.utc_now()))


def _kind_of(preemptor: PodInfo) -> str:
    """Return the preemptor's kind in kube-scheduler's words."""
    return "podgroup" if preemptor.pod_group else "pod"
