"""A profile as the queue sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from placewright.api.pods import PodInfo
from placewright.framework.events import ClusterEventWithHint
from placewright.framework.runtime.guard import why
from placewright.framework.runtime.profileruntime import POD_LIMITS, ProfileRuntime
from placewright.framework.status import Status, error
from placewright.queue.policy import BackoffPolicy, SortKey


class ProfilePolicy:
    """Implements `queue.policy.QueuePolicy` on a profile's runtime."""

    def __init__(self, runtime: ProfileRuntime) -> None:
        self._runtime = runtime
        self._backoff = BackoffPolicy(runtime.profile.backoff_initial, runtime.profile.backoff_max)

    @property
    def backoff(self) -> BackoffPolicy:
        """As the profile says."""
        return self._backoff

    @property
    def paused(self) -> bool:
        """True while the profile takes no pods."""
        return self._runtime.profile.paused

    @property
    def interests(self) -> Mapping[str, Sequence[ClusterEventWithHint] | None]:
        """Events by plugin, and that none helps a pod that is beyond a limit."""
        return {**self._runtime.interests, POD_LIMITS: ()}

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """The profile's verdict; a plugin that raises gates the pod, until anything happens that could help anybody."""
        try:
            return self._runtime.run_pre_enqueue(pod)
        except Exception as problem:  # noqa: BLE001 - a plugin is anybody's code, and the queue must not break
            message = why(problem)
            self._runtime.failures.kept_out(pod, message)
            return error(message)

    def binding_extender(self, pod: PodInfo) -> str:
        """The first extender that wants the pod and binds."""
        runtime = self._runtime
        if not runtime.extenders:
            return ""
        return next((each.settings.name for each in runtime.extenders_for(pod) if each.settings.bind_verb), "")

    def sort_key(self, pod: PodInfo, timestamp: float) -> SortKey:
        """By the profile's QueueSort plugin."""
        return self._runtime.queue_sort.sort_key(pod, timestamp)
