"""Answers the queue's questions to a profile. The queue may not import plugins, and asks them through `ProfilePolicy`."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Final

from placewright.api.pods import PodInfo
from placewright.framework.events import ClusterEventWithHint
from placewright.framework.runtime.guard import Call, why
from placewright.framework.runtime.profileruntime import POD_LIMITS, ProfileRuntime
from placewright.framework.status import Status, error
from placewright.queue.policy import BackoffPolicy, SortKey
from placewright.scheduler.tenants import ProfileTenants


class _AfterAll:
    """The last part of a sort key: it comes after all other parts."""

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return other is not self


_LAST: Final = _AfterAll()


class SortOrder:
    """The QueueSort plugin with its arguments, and the extenders. If the next generation has an equal order, pods keep their keys.

    If the plugin has failed, pods have no key of it. Then the order equals no other generation's, so that the next one asks again.

    Args:
        runtime: runtime of one generation of the profile.
    """

    def __init__(self, runtime: ProfileRuntime) -> None:
        name, profile = runtime.queue_sort.name, runtime.profile
        self._asked = Call(name, "QueueSort")
        self._settings = (name, profile.args[name], profile.extenders)
        self._failures = runtime.failures

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SortOrder):
            return NotImplemented
        failed = self._asked in self._failures.counts or other._asked in other._failures.counts
        return self._failures is other._failures or (self._settings == other._settings and not failed)

    def __hash__(self) -> int:
        return hash(self._asked)


class ProfilePolicy:
    """Implements `queue.policy.QueuePolicy` on a profile's runtime.

    Args:
        runtime: runtime of one generation of the profile.

    Attributes:
        backoff: the profile's backoff.
        paused: True while the profile hands out no pods.
        give_up_after: seconds that a pod waits before it is given up; None if the profile gives up no pod.
        tenants: tenants that take turns; None without `spec.fairness`.
    """

    def __init__(self, runtime: ProfileRuntime) -> None:
        self._runtime = runtime
        backoff = runtime.profile.settings.backoff
        self.backoff: Final = BackoffPolicy(backoff.initial_seconds, backoff.max_seconds)
        self.paused: Final = runtime.profile.settings.paused
        self.give_up_after: Final = runtime.profile.settings.give_up_after_seconds
        fairness = runtime.profile.settings.fairness
        self.tenants: Final = None if fairness is None else ProfileTenants(fairness, runtime.cluster)

    @property
    def interests(self) -> Mapping[str, Sequence[ClusterEventWithHint] | None]:
        """The plugins' events, and no event for `POD_LIMITS`, because none helps a pod that is beyond a limit."""
        return {**self._runtime.interests, POD_LIMITS: ()}

    @property
    def order(self) -> Hashable:
        """The sort order, which the queue compares with the next generation's."""
        return SortOrder(self._runtime)

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Run PreEnqueue. A plugin that raises gates the pod until any event that could help any pod."""
        try:
            return self._runtime.run_pre_enqueue(pod)
        except MemoryError:
            raise
        except Exception as problem:  # noqa: BLE001 - a plugin may raise anything, and the queue must not break
            message = why(problem)
            self._runtime.failures.kept_out(pod, message)
            return error(message)

    def binding_extender(self, pod: PodInfo) -> str:
        """Return the name of the first extender that is interested in the pod and binds; "" when there is none."""
        runtime = self._runtime
        if not runtime.extenders:
            return ""
        return next((each.settings.name for each in runtime.extenders_for(pod) if each.settings.bind_verb), "")

    def sort_key(self, pod: PodInfo, timestamp: float) -> SortKey:
        """Return the sort key of the profile's QueueSort plugin.

        Args:
            pod: a waiting pod.
            timestamp: time at which the pod entered the queue or came back; seconds on the queue's clock.

        Returns:
            The key, lowest first. A pod whose plugin fails comes after all others.
        """
        try:
            return self._runtime.queue_sort.sort_key(pod, timestamp)
        except MemoryError:
            raise
        except Exception as problem:  # noqa: BLE001 - as for PreEnqueue
            why(problem)  # counts it
            return (_LAST, timestamp)
