"""Answers the queue's questions to a profile and its tenants.

The queue may not import plugins, and asks them through `ProfilePolicy`. `ProfileTenants` has the tenants by `spec.fairness`: the pods'
tenants, their weights, and the charges for handing pods out.

A pod is charged in full each time that it is handed out, also if its attempt fails. An attempt takes the scheduler's time whether
or not it succeeds. If failed pods were cheaper, a tenant could take the turns of others with them.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Final

from placewright.api.fairness import LABEL, PODS, Fairness
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.events import ClusterEventWithHint
from placewright.framework.runtime.guard import Call, why
from placewright.framework.runtime.profileruntime import POD_LIMITS, ProfileRuntime
from placewright.framework.status import Status, error
from placewright.queue.policy import WHOLE_CLUSTER, BackoffPolicy, SortKey

#: The least charge, as a part of the cluster: more than any cluster has places for pods.
_SMALLEST_PART: Final = 10_000_000

#: The kind of tenants that are namespaces.
BY_NAMESPACE: Final = "namespace"


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


class ProfileTenants:
    """Implements `queue.policy.TenantPolicy` on the settings of a profile.

    Args:
        fairness: settings of a profile whose tenants take turns.
        cluster: cluster whose resources the pods share.
    """

    def __init__(self, fairness: Fairness, cluster: Cluster) -> None:
        self._label: Final = (fairness.label or "") if fairness.by == LABEL else None
        self._weights: Final[Mapping[str, int]] = fairness.weights or {}
        self._by_pods: Final = fairness.share == PODS
        self._cluster: Final = cluster
        self._totals: dict[str, int] = {}
        self._places = 0
        self._counted_at = -1

    @property
    def by(self) -> str:
        """The kind of tenant: namespaces, or the label's key after a mark that no key begins with."""
        return BY_NAMESPACE if self._label is None else f"={self._label}"

    def tenant_of(self, pod: PodInfo) -> str:
        """Return the pod's namespace, or the value of the label; "" for a pod without the label, or with an empty value."""
        return pod.namespace if self._label is None else (pod.pod.metadata.labels or {}).get(self._label, "")

    def weight(self, tenant: str) -> int:
        """Return the weight of a tenant: 1 if the profile states no other."""
        return self._weights.get(tenant, 1)

    def charge(self, pod: PodInfo) -> int:
        """Compute the pod's dominant share of the cluster, after Dominant Resource Fairness (Ghodsi et al., 2011).

        The shares are those of its requests, and of one place among the pods that the nodes can hold. So a pod without requests
        costs a place. A resource that no node offers does not count. If the profile charges by pods, each pod costs the same.

        Args:
            pod: a pod that is about to be tried.

        Returns:
            A part of `WHOLE_CLUSTER`, the whole at most.
        """
        if self._by_pods:
            return WHOLE_CLUSTER // _SMALLEST_PART
        position = self._cluster.node_journal.position
        if position != self._counted_at:
            self._count(position)
        totals = self._totals
        parts = [amount * WHOLE_CLUSTER // totals[name] for name, amount in pod.requests.items() if name in totals]
        return min(max(*parts, self._places, WHOLE_CLUSTER // _SMALLEST_PART), WHOLE_CLUSTER)

    def _count(self, position: int) -> None:
        """Add up what all nodes can allocate, after a node changed."""
        resources = self._cluster.resources
        self._totals = {name: int(resources.column(name).allocatable.sum()) for name in resources.names()}
        places = int(self._cluster.pod_limit.sum())
        self._places = WHOLE_CLUSTER // places if places else 0
        self._counted_at = position
