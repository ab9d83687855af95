"""The tenants of one profile, by `spec.fairness`: the pods' tenants, their weights, and the charges for handing pods out.

A pod is charged in full each time that it is handed out, also if its attempt fails. An attempt takes the scheduler's time whether
or not it succeeds. If failed pods were cheaper, a tenant could take the turns of others with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from placewright.api.fairness import LABEL, PODS, Fairness
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.queue.policy import WHOLE_CLUSTER

#: The least charge, as a part of the cluster: more than any cluster has places for pods.
_SMALLEST_PART: Final = 10_000_000

#: The kind of tenants that are namespaces.
BY_NAMESPACE: Final = "namespace"


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
