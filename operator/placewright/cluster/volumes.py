"""Volumes that pods use, by row: disks that pods name directly, claims, and the pods that have any of either.

Most pods use none and never come here. The volume behind a claim may change after its pod was placed. So pods are kept, and
not the volumes of their claims.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from placewright.api.counts import add_count, take_out
from placewright.api.objects import Volume
from placewright.api.pods import PodInfo
from placewright.cluster.journal import Journal


class Disk(NamedTuple):
    """A disk that a node mounts for one pod only, or for several pods that all read it.

    Attributes:
        identity: place of the disk. A Ceph image is one disk for each of its monitors: two images that share a monitor are the same.
        read_only: whether the pod only reads it.
    """

    identity: tuple[str, ...]
    read_only: bool


def disks_of(volume: Volume) -> Iterator[Disk]:
    """Find the disks that a volume of a pod names.

    An EBS volume is never shared, whether it is read-only or not. Source: kube-scheduler's `VolumeRestrictions`.

    Returns:
        The disks; none for claims and other sources.
    """
    if volume.gce_persistent_disk is not None:
        yield Disk(("gce", volume.gce_persistent_disk.pd_name), volume.gce_persistent_disk.read_only)
    if volume.aws_elastic_block_store is not None:
        yield Disk(("ebs", volume.aws_elastic_block_store.volume_id), read_only=False)
    if volume.iscsi is not None:
        yield Disk(("iscsi", volume.iscsi.iqn), volume.iscsi.read_only)
    if volume.rbd is not None:
        for monitor in volume.rbd.monitors or ():
            yield Disk(("rbd", monitor, volume.rbd.pool, volume.rbd.image), volume.rbd.read_only)


class VolumeUse:
    """Volumes in use, by row.

    Attributes:
        journal: rows whose pods with volumes changed, in order; changes of dry runs and their undoing included.
    """

    def __init__(self) -> None:
        self.journal = Journal()
        #: Number of volumes that write to a disk, and of volumes that only read it, by disk and row.
        self._disks: dict[tuple[str, ...], dict[int, list[int]]] = {}
        self._claims: dict[str, int] = {}
        #: Pods by row and uid, each with how often it was added: a dry run may add a pod that is there, or remove one.
        self._pods: dict[int, dict[str, tuple[PodInfo, int]]] = {}

    # --- reading -----------------------------------------------------------------------------------------------------------

    def pods(self, row: int) -> Iterator[PodInfo]:
        """Return the pods with volumes on a row.

        Returns:
            The pods, with the changes of dry runs.
        """
        return (pod for pod, count in self._pods.get(row, {}).values() if count > 0)

    def claimed(self, namespace: str, claim: str) -> int:
        """Return how many volumes of pods on nodes have this claim as their source.

        Returns:
            The number, 0 for an unused claim.
        """
        return self._claims.get(f"{namespace}/{claim}", 0)

    def taken(self, disks: Collection[Disk]) -> frozenset[int]:
        """Find the rows where a disk cannot be mounted once more.

        Returns:
            Rows where one of the disks is in use in a way that excludes another user.
        """
        rows: set[int] = set()
        for identity, read_only in disks:
            users = self._disks.get(identity, {})
            rows.update([row for row, on_row in users.items() if on_row[False] or not read_only])
        return frozenset(rows)

    # --- writing -----------------------------------------------------------------------------------------------------------

    def add(self, pod: PodInfo, row: int, delta: int) -> None:
        """Count a pod with volumes onto a row or off it.

        Args:
            pod: has volumes.
            row: the pod's.
            delta: 1 to add the pod, -1 to remove it.
        """
        for volume in pod.volumes:
            if volume.persistent_volume_claim is not None:
                add_count(self._claims, f"{pod.namespace}/{volume.persistent_volume_claim.claim_name}", delta)
            for disk in disks_of(volume):
                self._use(disk, row, delta)
        self._enter(pod, row, delta)
        self.journal.append(row)

    def _use(self, disk: Disk, row: int, delta: int) -> None:
        rows = self._disks.setdefault(disk.identity, {})
        users = rows.setdefault(row, [0, 0])
        users[disk.read_only] += delta
        if not any(users):
            take_out(self._disks, disk.identity, row)

    def _enter(self, pod: PodInfo, row: int, delta: int) -> None:
        pods = self._pods.setdefault(row, {})
        # Counted, because dry runs within dry runs may add and remove the same pod.
        count = pods.pop(pod.uid, (pod, 0))[1] + delta
        if count:
            pods[pod.uid] = (pod, count)
        if not pods:
            del self._pods[row]
