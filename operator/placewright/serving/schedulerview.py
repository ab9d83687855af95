"""The scheduler as pages of other packages may read it.

A page gets this and no engine, so the engine's parts may be rearranged without it. No page binds a pod or asks the API server.
"""

from __future__ import annotations

from collections.abc import Mapping

from placewright.api.podgroups import GroupRef
from placewright.engine.engine import Engine
from placewright.explain.explanation import Explanation
from placewright.explain.groupfacts import kept_nodes
from placewright.explain.records import Records
from placewright.observability.metrics.attempts import AttemptSeries
from placewright.queue.queued import QueuedPod
from placewright.serving.explainpages import explanation, suspect_reason, unrecorded
from placewright.shadow.shadow import Shadow


class SchedulerView:
    """The scheduler of one replica, for reading. Cluster and queue are live: they change whenever the reader awaits.

    Attributes:
        cluster: nodes, pods on them, and all other objects.
        queue: the waiting pods. Readers take the pods that `changed` notes, and change nothing else.
        live: the profiles in effect. A change of any makes a new mapping `active`.
        records: records of the last attempts.
        attempts: counts of attempts, whose `tally` a reader may set; None while metrics are off.
        replica: name of the replica's pod.
        server: address of the API server.
    """

    def __init__(self, engine: Engine, records: Records, attempts: AttemptSeries | None = None) -> None:
        """View an engine.

        Args:
            engine: the engine; only read.
            records: records of its attempts.
            attempts: counts of its attempts.
        """
        self._access = engine.access
        self._deciding = deciding = engine.deciding
        self._leadership = engine.leading.leadership
        self._away = engine.writing.client.away
        self.cluster, self.queue, self.live = deciding.cluster, deciding.queue, deciding.live
        self.records = records
        self.attempts = attempts
        self.replica = deciding.replica.partition("/")[0]
        self.server: str = engine.access.server

    @property
    def source(self) -> str:
        """Name of the cluster, for people: the kubeconfig's context, or the API server's address."""
        # A cluster has no name of its own; in a pod there is no context, and the API server's address is all that tells clusters apart.
        return self._access.context or self.server

    @property
    def shadows(self) -> Mapping[str, Shadow]:
        """The shadows at work, by name."""
        return self._deciding.shadows.by_name

    @property
    def leads(self) -> bool:
        """Whether this replica places pods."""
        return self._leadership.active

    @property
    def away_since(self) -> float | None:
        """Monotonic seconds since which the API server does not answer; None while it does."""
        return self._away.away_since

    def explanation(self, namespace: str, name: str) -> Explanation | None:
        """Explain a pod as `placewright explain` does.

        Args:
            namespace: namespace of the pod.
            name: name of the pod.

        Returns:
            None for an unknown pod.
        """
        found = explanation(self._deciding, self.records, namespace, name)
        if found is None or not (found.node or found.queue):
            # Records may be of an earlier pod of this name.
            found = unrecorded(self._deciding, namespace, name) or found
        return found

    def suspect_reason(self, queued: QueuedPod) -> str:
        """Say why a pod is not evaluated for readers; empty for nearly all pods."""
        return suspect_reason(self._deciding, queued)

    def kept_for(self, ref: GroupRef) -> Mapping[str, int]:
        """Count the nodes that are kept for a group."""
        plan = self._deciding.scheduler.pod_groups.reservations.plan_of(ref)
        return {} if plan is None else kept_nodes(plan.nodes.values())
