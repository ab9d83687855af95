"""Lists the unscheduled pods for the reconciler: after every list of Kopf's, and at a slow beat."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Final

from placewright.api.decode import DecodeError
from placewright.api.objects import Pod
from placewright.api.pods import PodInfo
from placewright.handlers.profilekeeper import ProfileKeeper
from placewright.handlers.sinks import readable_pod
from placewright.kube.client import ApiClient
from placewright.kube.errors import NOT_FOUND, ApiError, RequestError
from placewright.kube.retry import Backoff
from placewright.kube.wire import Bad, Wire
from placewright.scheduler.ports import Lead
from placewright.scheduler.reconcile import Reconciler

_logger = logging.getLogger(__name__)

PODS_PATH: Final = "/api/v1/pods"
UNSCHEDULED_PODS: Final = "spec.nodeName=,status.phase!=Succeeded,status.phase!=Failed"
_PAGE: Final = 500
#: Kopf's own list comes as one event a pod; the comparison waits until they have gone quiet for this long, in seconds.
_QUIET_SECONDS: Final = 2.0


class UnscheduledPodLister:
    """Runs the reconciler."""

    def __init__(self, client: ApiClient, reconciler: Reconciler, beat_seconds: float, lead: Lead, profiles: ProfileKeeper) -> None:
        self.reconciler = reconciler
        self._client = client
        self._beat = beat_seconds
        self._lead = lead
        self._profiles = profiles
        self._wire = Wire(Pod)
        self._relisted = asyncio.Event()

    def pods_listed(self) -> None:
        """A watch was begun anew, Kopf's or our own: compare when it has gone quiet."""
        self._relisted.set()

    async def run(self) -> None:
        """Compare whenever it is due, until cancelled."""
        backoff, failures = Backoff(initial=_QUIET_SECONDS), 0
        while True:
            await self._due()
            # A replica that stands by hears nothing of Kopf, and needs no repair before it hears again.
            await self._lead.wait_active()
            try:
                await self.compare()
                await self._profiles.compare()
            except (RequestError, DecodeError) as problem:
                _logger.info("reconciler: the comparison is put off: %s", problem)
                await asyncio.sleep(backoff.delay(failures))
                failures += 1
                self._relisted.set()
            else:
                failures = 0

    async def compare(self) -> None:
        """One comparison, with its repairs logged; raises `RequestError` or `DecodeError`."""
        before = replace(self.reconciler.repairs)
        known = self.reconciler.before_list()
        self.reconciler.after_list(known, await self._list())
        for pod in self.reconciler.doubtful():
            self.reconciler.looked(pod, await self._read(pod))
        repairs = self.reconciler.repairs
        before.replaced = repairs.replaced  # said when it was found
        if repairs != before:
            _logger.warning(
                "reconciler: %d pods were missed, %d had vanished, %d bindings did not exist, %d pods on nodes were gone; repaired",
                repairs.missed - before.missed, repairs.vanished - before.vanished,
                repairs.unbound - before.unbound, repairs.forgotten - before.forgotten,
            )  # fmt: skip

    async def _read(self, pod: PodInfo) -> PodInfo | None:
        try:
            found = await self._client.get_as(f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}", Pod)
        except ApiError as problem:
            if problem.status == NOT_FOUND:
                return None
            raise
        return readable_pod(found) or pod

    async def _due(self) -> None:
        try:
            async with asyncio.timeout(self._beat):
                await self._relisted.wait()
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
