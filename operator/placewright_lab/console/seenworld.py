"""The cluster of a file, as columns: built from its objects, and changed as its recorder saw it change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any

from placewright.api.objects import Node, NodeName
from placewright.api.pods import PodInfo
from placewright.api.profile import KIND as PROFILE
from placewright.api.profile import default_profile
from placewright.cluster.cluster import Cluster
from placewright.console.decisionrows import LastPlacements, Placed
from placewright.explain.observed import ObservedObjects, oldest_of
from placewright.framework.registry import Registry
from placewright.framework.runtime.evaluation import Evaluator
from placewright.offline.grouptrial import Members
from placewright.offline.world import offline_evaluator, read_object
from placewright.profiles.config import placing
from placewright.profiles.problem import ProfileError
from placewright.profiles.resolve import resolve
from placewright_lab.simulation.scenario import Act
from placewright_lab.snapshots.playback import SeenChange, SeenCluster


class SeenWorld:
    """The cluster at one moment of a file.

    Attributes:
        cluster: nodes, pods on them, and all other objects.
        pending: pods without a node, by uid.
        members: the same pods, by group.
        changes: how many changes were applied.
        profiles: that place pods.
        evaluators: of each schedulerName that a usable profile has.
        placements: the last pods that got their nodes while the changes were applied.
        began: when the file was begun, seconds since 1970.
        now: the moment that is shown, seconds since 1970.
        notes: for the person who opened the file.
    """

    def __init__(self, seen: SeenCluster, registry: Registry) -> None:
        """Build the beginning.

        Args:
            seen: the file. A file without profiles gets kube-scheduler's default profile, as in `simulate`.
            registry: of plugins.

        Raises:
            InputError: an object is not valid.
        """
        self.cluster = Cluster()
        self.pending: dict[str, PodInfo] = {}
        self.members = Members()
        self.changes = 0
        self.placements = LastPlacements()
        self.notes = [*seen.notes, *(f"left out of the file: {each}" for each in seen.header.left_out)]
        self.began = self.now = unix_seconds(seen.header.taken)
        self._source = str(seen.path)
        for manifest in seen.objects:
            self._put(manifest)
        self.profiles = list(placing(seen.profiles)) or [default_profile()]
        self.evaluators = self._evaluators(registry)

    @property
    def scheduler_names(self) -> Sequence[str]:
        """The schedulerNames of all usable profiles, sorted."""
        return sorted(self.evaluators)

    def observed(self) -> ObservedObjects:
        """The objects as `explain` takes them."""
        return ObservedObjects(self.cluster, self.profiles, self.members)

    def pod(self, namespace: str, name: str) -> PodInfo | None:
        """Find a pod by name: without a node, or on one. O(pods)."""
        on_nodes = (placement.pod for placement in self.cluster.placements())
        return next((pod for pod in chain(self.pending.values(), on_nodes) if (pod.namespace, pod.name) == (namespace, name)), None)

    def apply(self, change: SeenChange) -> None:
        """Apply a change. Changes of profiles are passed over: the evaluators are those of the beginning."""
        self.now = self.began + change.at
        self.changes += 1
        manifest = change.manifest
        if manifest.get("kind") == PROFILE:
            return
        if change.act is Act.DELETED:
            self._remove(manifest)
        else:
            self._put(manifest)

    def _put(self, manifest: Mapping[str, Any]) -> None:
        item = read_object(manifest, self._source)
        if isinstance(item, Node):
            self.cluster.set_node(item)
        elif isinstance(item, PodInfo):
            self._put_pod(item)
        elif item is not None:
            self.cluster.objects.put(item)

    def _put_pod(self, pod: PodInfo) -> None:
        if pod.finished:
            self._remove_pod(pod.uid)
        elif not pod.node_name:
            self._wait_no_more(pod.uid)
            self.pending[pod.uid] = pod
            self.members.add(pod)
        else:
            if self._wait_no_more(pod.uid):
                self.placements.add(Placed(pod.uid, pod.namespace, pod.name, pod.node_name, pod.scheduler_name, self.now))
            self.cluster.set_pod(pod)

    def _remove(self, manifest: Mapping[str, Any]) -> None:
        if manifest.get("kind") == "Node":
            self.cluster.remove_node(NodeName(manifest["metadata"]["name"]))
            return
        item = read_object(manifest, self._source)
        if isinstance(item, PodInfo):
            self._remove_pod(item.uid)
        elif item is not None and not isinstance(item, Node):
            self.cluster.objects.remove(item)

    def _remove_pod(self, uid: str) -> None:
        self._wait_no_more(uid)
        self.cluster.remove_pod(uid)

    def _wait_no_more(self, uid: str) -> bool:
        pod = self.pending.pop(uid, None)
        if pod is not None:
            self.members.remove(pod)
        return pod is not None

    def _evaluators(self, registry: Registry) -> dict[str, Evaluator]:
        found: dict[str, Evaluator] = {}
        for name in sorted({each.spec.scheduler_name for each in self.profiles}):
            profile = oldest_of(self.profiles, name)
            assert profile is not None
            try:
                resolved = resolve(profile, registry)
            except ProfileError as problem:
                self.notes.append(f"SchedulingProfile {profile.metadata.name} cannot be used: {problem}")
                continue
            found[name] = offline_evaluator(resolved, registry, self.cluster, self.members)
        return found


def unix_seconds(text: str) -> float:
    """Read a time in RFC 3339.

    Args:
        text: as in an object or in the header of a file.

    Returns:
        Seconds since 1970; 0.0 for a text that is no time.
    """
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0
