"""The scheduler as pages of other packages may read it: an interface, and the engine's side of it.

A page gets this and no engine, so a package of pages can neither bind a pod nor ask the API server, and the engine's parts may be
rearranged without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Protocol

from placewright.api.objects import PodKey
from placewright.api.podgroups import GroupRef
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.engine.engine import Engine
from placewright.explain.explanation import Explanation
from placewright.explain.groupfacts import kept_nodes
from placewright.explain.records import Records
from placewright.framework.runtime.evaluation import Evaluator
from placewright.observability.metrics.attempts import CountReader
from placewright.profiles.live import Active
from placewright.queue.nominator import Nominator
from placewright.queue.profilequeue import ProfileQueue
from placewright.queue.queued import ChangedPods, QueuedPod, QueuedPodGroups, SubQueue
from placewright.serving.explainpages import explanation, suspect_reason, unrecorded
from placewright.shadow.shadow import Shadow


class ReadableQueue(Protocol):
    """The waiting pods. Readers take what `changed` notes, and change nothing else."""

    @property
    def changed(self) -> ChangedPods:
        """Uids of pods whose standing changed; noted from `begin` to `end`."""

    @property
    def nominator(self) -> Nominator:
        """Pods that are nominated to each node."""

    @property
    def pod_groups(self) -> QueuedPodGroups:
        """Groups that are placed together."""

    def get(self, uid: str) -> QueuedPod | None:
        """Find a waiting pod."""

    def latest(self, uid: str) -> PodInfo | None:
        """Return the newest version of a pod."""

    def uid_of(self, key: PodKey) -> str | None:
        """Find the uid of a pod by its name."""

    def uids(self) -> AbstractSet[str]:
        """Return the uids of all pods."""

    def locate(self, uid: str) -> SubQueue | None:
        """Find the sub-queue of a pod."""

    def profile_queues(self) -> Iterator[ProfileQueue]:
        """Iterate over the queues of profiles."""


class ReadableProfiles(Protocol):
    """The profiles in effect."""

    @property
    def active(self) -> Mapping[str, Active[Evaluator]]:
        """The profiles, by schedulerName. A change of any makes a new mapping."""

    def by_scheduler_name(self, name: str) -> Active[Evaluator] | None:
        """Find the profile that takes the pods of a schedulerName."""


class AttemptCounts(Protocol):
    """The counts of attempts that the metrics keep."""

    tally: CountReader | None

    def settle(self) -> None:
        """Count what was noted, so that `tally` has it."""


class SchedulerView(Protocol):
    """The scheduler of one replica, for reading. Cluster and queue are live: they change whenever the reader awaits."""

    @property
    def cluster(self) -> Cluster:
        """Nodes, pods on them, and all other objects."""

    @property
    def queue(self) -> ReadableQueue:
        """The waiting pods."""

    @property
    def live(self) -> ReadableProfiles:
        """The profiles in effect."""

    @property
    def shadows(self) -> Mapping[str, Shadow]:
        """The shadows at work, by name."""

    @property
    def records(self) -> Records:
        """Records of the last attempts."""

    @property
    def attempts(self) -> AttemptCounts | None:
        """Counts of attempts; None while metrics are off."""

    @property
    def replica(self) -> str:
        """Name of the replica's pod."""

    @property
    def source(self) -> str:
        """Name of the cluster, for people: the kubeconfig's context, or the API server's address."""

    @property
    def server(self) -> str:
        """Address of the API server."""

    @property
    def leads(self) -> bool:
        """Whether this replica places pods."""

    @property
    def away_since(self) -> float | None:
        """Monotonic seconds since which the API server does not answer; None while it does."""

    def explanation(self, namespace: str, name: str) -> Explanation | None:
        """Explain a pod as `placewright explain` does.

        Args:
            namespace: of the pod.
            name: of the pod.

        Returns:
            None for an unknown pod.
        """

    def suspect_reason(self, queued: QueuedPod) -> str:
        """Say why a pod is not evaluated for readers; empty for nearly all pods."""

    def kept_for(self, ref: GroupRef) -> Mapping[str, int]:
        """Count the nodes that are kept for a group."""


class EngineView:
    """An engine as pages see it. Implements `SchedulerView`."""

    def __init__(self, engine: Engine, records: Records, attempts: AttemptCounts | None = None) -> None:
        """View an engine.

        Args:
            engine: only read.
            records: of its attempts.
            attempts: counts of its attempts.
        """
        self._access = engine.access
        self._deciding = deciding = engine.deciding
        self._leadership = engine.leading.leadership
        self._away = engine.writing.client.away
        self.cluster: Cluster = deciding.cluster
        self.queue: ReadableQueue = deciding.queue
        self.live: ReadableProfiles = deciding.live
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
            namespace: of the pod.
            name: of the pod.

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
