"""Lists the unscheduled pods for the reconciler: after every list of Kopf's, and at a slow beat."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from placewright.api.objects import Pod
from placewright.api.pods import PodInfo
from placewright.handlers.sinks import readable_pod
from placewright.kube.client import ApiClient
from placewright.kube.errors import RequestError
from placewright.kube.wire import Bad, Wire
from placewright.scheduler.reconcile import Reconciler

_logger = logging.getLogger(__name__)

PODS_PATH: Final = "/api/v1/pods"
UNSCHEDULED_PODS: Final = "spec.nodeName=,status.phase!=Succeeded,status.phase!=Failed"
_PAGE: Final = 500
#: Kopf's own list comes as one event a pod; the comparison waits until they have gone quiet for this long, in seconds.
_QUIET_SECONDS: Final = 2.0


class UnscheduledPodLister:
    """Runs the reconciler."""

    def __init__(self, client: ApiClient, reconciler: Reconciler, beat_seconds: float) -> None:
        self.reconciler = reconciler
        self._client = client
        self._beat = beat_seconds
        self._wire = Wire(Pod)
        self._relisted = asyncio.Event()

    def kopf_lists(self) -> None:
        """Kopf shows a pod out of a list of its own: compare when it is done."""
        self._relisted.set()

    async def run(self) -> None:
        """Compare whenever it is due, until cancelled."""
        while True:
            await self._due()
            try:
                await self.compare()
            except RequestError as problem:
                _logger.info("reconciler: the comparison is put off: %s", problem)

    async def compare(self) -> None:
        """One comparison, with its repairs logged; raises `RequestError`."""
        known = self.reconciler.before_list()
        listed = await self._list()
        repairs = self.reconciler.after_list(known, listed)
        if repairs.total:
            _logger.warning(
                "reconciler: %d pods were missed, %d had vanished, %d bindings did not exist; repaired",
                repairs.missed, repairs.vanished, repairs.unbound,
            )  # fmt: skip

    async def _due(self) -> None:
        try:
            await asyncio.wait_for(self._relisted.wait(), self._beat)
        except TimeoutError:
            return
        while self._relisted.is_set():
            self._relisted.clear()
            await asyncio.sleep(_QUIET_SECONDS)

    async def _list(self) -> list[PodInfo]:
        pods: list[PodInfo] = []
        params = {"fieldSelector": UNSCHEDULED_PODS, "limit": str(_PAGE)}
        while True:
            page = self._wire.page(await self._client.get(PODS_PATH, params))
            readable = (readable_pod(item) for item in page.items if not isinstance(item, Bad))
            pods.extend(pod for pod in readable if pod is not None)
            if not page.following:
                return pods
            params["continue"] = page.following
