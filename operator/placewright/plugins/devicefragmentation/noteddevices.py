"""The devices that each pod has on its node, as the scheduler noted them in the annotation `api.annotations.DEVICES`.

The annotation rides on the Binding and outlives every replica. But each user with the right to write the pod may write the annotation at
any time. So the note of a pod is believed once:

- A note that the pod brought before devices were chosen for it is ignored.
- The devices that were chosen stay, whichever note the API server shows later.
- A pod may be first seen on its node, as after a restart. It has the devices that its note says then.
- A pod of ours that was bound without the note has no devices. An extender binds so.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary, ref

from placewright.api.annotations import DEVICES
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.cluster.podfollowers import PodFollower


class NotedDevices(PodFollower):
    """The notes of one cluster's pods.

    Args:
        cluster: followed from now on. Devices have been chosen for none of its assumed pods yet.
    """

    follows_readiness = False

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = ref(cluster)
        #: Text of the believed note, by uid.
        self._notes: dict[str, str] = {}
        for standing in cluster.placements():
            self.pod_enters(standing.pod, None)
        cluster.pod_followers.add(self)

    def of(self, pod: PodInfo) -> str | None:
        """Return the believed note of `pod`; None for a pod without."""
        return self._notes.get(pod.uid)

    def choose(self, pod: PodInfo, note: str) -> None:
        """Note the devices that were chosen for an assumed pod."""
        self._notes[pod.uid] = note

    def withdraw(self, pod: PodInfo) -> None:
        """Forget the devices that were chosen for an assumed pod."""
        self._notes.pop(pod.uid, None)

    def pod_enters(self, pod: PodInfo, row: int | None) -> None:
        """Believe the note of a pod that is shown on its node, and no note of an assumed one."""
        note = (pod.pod.metadata.annotations or {}).get(DEVICES)
        if note is not None and not self._is_assumed(pod):
            self._notes[pod.uid] = note

    def pod_confirmed(self, pod: PodInfo, row: int | None) -> None:
        """Drop the note of a pod whose Binding did not carry it."""
        if pod.uid in self._notes and DEVICES not in (pod.pod.metadata.annotations or ()):
            del self._notes[pod.uid]
            if row is not None and (cluster := self._cluster()) is not None:
                cluster.pod_journal.append(row)

    def pod_leaves(self, pod: PodInfo, row: int | None) -> None:
        """Forget the note of a pod that left its node."""
        self._notes.pop(pod.uid, None)

    def _is_assumed(self, pod: PodInfo) -> bool:
        cluster = self._cluster()
        standing = None if cluster is None else cluster.placement(pod.uid)
        return standing is not None and standing.assumed


def noted_devices(cluster: Cluster) -> NotedDevices:
    """Return the notes of a cluster's pods; they outlive a plugin's generation.

    A shadow's cluster shares the extensions of the live one, but its pods are elsewhere. So each cluster has notes of its own.
    """
    by_cluster: WeakKeyDictionary[Cluster, NotedDevices] = cluster.extension(NotedDevices, WeakKeyDictionary)
    notes = by_cluster.get(cluster)
    if notes is None:
        notes = by_cluster[cluster] = NotedDevices(cluster)
    return notes
