"""The volumes that a pod attaches to its node, as drivers know them, resolved through claims and volumes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from placewright.api.objects import Volume
from placewright.api.pods import PodInfo
from placewright.api.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from placewright.cluster.cluster import Cluster
from placewright.cluster.storage import Table, claim_class
from placewright.plugins.shared import csimigration, podclaims


class Attachable(NamedTuple):
    """A volume, equal for all pods that use it.

    `driver` is the CSI driver, or another class of volumes that are counted together. If there is no volume yet, `claim` is set instead of
    `handle`: each such claim will get a volume of its own.
    """

    driver: str
    handle: str
    claim: str = ""


class Lookup(NamedTuple):
    """An object that was looked up, whether it exists or not: its kind and its key."""

    kind: str
    key: str


CLAIM: Final = "claim"
VOLUME: Final = "volume"
CLASS: Final = "class"
ATTACHMENT: Final = "attachment"
#: Kinds of objects that the count of a row reads, in the order of `AttachedVolumes._logs`.
KINDS: Final = (CLAIM, VOLUME, CLASS, ATTACHMENT)


class NoSuchClaimError(LookupError):
    """The pod has no such claim: it does not exist, or it was made for another object."""


class UnusableVolumeError(ValueError):
    """A volume of the pod can never be attached as it is; the message says why."""


def unnoted(_lookup: Lookup) -> None:
    """Ignore a lookup."""


class Resolver(ABC):
    """Resolves the volumes that count through the storage objects, and calls `noted` for every object on the way."""

    def __init__(self, cluster: Cluster, noted: Callable[[Lookup], None] = unnoted) -> None:
        self._cluster = cluster
        self._storage = cluster.objects.storage
        self._noted = noted

    @abstractmethod
    def limits(self, row: int) -> Mapping[str, int]:
        """Return the limits of the row's node by driver; absent for no limit. Read the node and its CSINode."""

    @abstractmethod
    def inline(self, volume: Volume) -> Attachable | None:
        """Return the disk that a pod's volume names itself; None if it is not counted. Raise `UnusableVolumeError`."""

    @abstractmethod
    def existing(self, volume: PersistentVolume) -> Attachable | None:
        """Return the volume of a claim; None if it is not counted."""

    @abstractmethod
    def awaited(self, claim: PersistentVolumeClaim) -> Attachable | None:
        """Return the future volume of a claim without a volume, or with one that does not exist; None if not counted."""

    def of_new_pod(self, pod: PodInfo) -> frozenset[Attachable]:
        """Return the volumes that a pod would need. Raise `NoSuchClaimError` or `UnusableVolumeError`."""
        return frozenset(found for volume in pod.volumes if (found := self._resolve(pod, volume)) is not None)

    def of_placed_pod(self, pod: PodInfo) -> Iterator[Attachable]:
        """Iterate over the volumes of a pod on a node. Volumes that do not resolve are not counted."""
        for volume in pod.volumes:
            try:
                found = self._resolve(pod, volume)
            except (NoSuchClaimError, UnusableVolumeError):
                continue
            if found is not None:
                yield found

    def attached(self, node: str) -> Iterator[Attachable]:
        """Iterate over other volumes that are attached to a node."""
        return iter(())

    def _look_up(self, kind: str, table: Table[Any], name: str, namespace: str = "") -> Any:
        self._noted(Lookup(kind, f"{namespace}/{name}" if namespace else name))
        return table.get(name, namespace)

    def _class(self, name: str) -> StorageClass | None:
        found: StorageClass | None = self._look_up(CLASS, self._storage.classes, name) if name else None
        return found

    def _resolve(self, pod: PodInfo, volume: Volume) -> Attachable | None:
        name = podclaims.claim_name(pod, volume)
        if name is None:
            return self.inline(volume)
        if not name:
            raise UnusableVolumeError("PersistentVolumeClaim had no name")
        claim = self._look_up(CLAIM, self._storage.claims, name, pod.namespace)
        if claim is None:
            raise NoSuchClaimError(f"looking up PVC {pod.namespace}/{name}: {podclaims.not_found(name)}")
        if volume.ephemeral is not None and not podclaims.belongs_to(claim, pod):
            raise NoSuchClaimError(f"PVC {pod.namespace}/{name} was not created for pod {pod.key} (pod is not owner)")
        return self._of_claim(claim)

    def _of_claim(self, claim: PersistentVolumeClaim) -> Attachable | None:
        name = claim.spec.volume_name
        volume = self._look_up(VOLUME, self._storage.volumes, name) if name else None
        return self.awaited(claim) if volume is None else self.existing(volume)


def limits_of(csi_node: CSINode | None) -> dict[str, int]:
    """Return the volume limits of a node by driver; drivers without a limit are absent."""
    drivers = (csi_node.spec.drivers or ()) if csi_node is not None else ()
    return {d.name: d.allocatable.count for d in drivers if d.allocatable is not None and d.allocatable.count is not None}


class CsiResolver(Resolver):
    """Resolves volumes as CSI drivers know them, also in-tree volumes that have migrated to a driver."""

    def __init__(self, cluster: Cluster, noted: Callable[[Lookup], None] = unnoted, *, migrated: bool = True) -> None:
        """Take `migrated`: False leaves in-tree volumes out, as on a node without a CSINode."""
        super().__init__(cluster, noted)
        self._migrated = migrated

    def limits(self, row: int) -> Mapping[str, int]:
        """Return the limits that the CSINode states."""
        return limits_of(self._storage.csi_nodes.get(self._cluster.names[row] or ""))

    def attached(self, node: str) -> Iterator[Attachable]:
        """Iterate over the volumes that VolumeAttachments show on a node. Only volumes of CSI drivers are counted."""
        for attachment in self._storage.attachments.where(node):
            self._noted(Lookup(ATTACHMENT, attachment.metadata.name))
            name = attachment.spec.source.persistent_volume_name
            volume = self._look_up(VOLUME, self._storage.volumes, name) if name else None
            if volume is not None and volume.spec.csi is not None and attachment.spec.attacher:
                yield Attachable(attachment.spec.attacher, volume.spec.csi.volume_handle)

    def inline(self, volume: Volume) -> Attachable | None:
        """Return a disk that a CSI driver serves today."""
        if not self._migrated:
            return None
        try:
            migrated = csimigration.from_pod(volume)
        except csimigration.TranslationError as problem:
            raise UnusableVolumeError(f"converting volume({volume.name}) from inline to csi: {problem}") from None
        return None if migrated is None else Attachable(*migrated)

    def existing(self, volume: PersistentVolume) -> Attachable | None:
        """Return the volume by its driver's handle."""
        if volume.spec.csi is not None:
            return _complete(Attachable(volume.spec.csi.driver, volume.spec.csi.volume_handle))
        if not self._migrated:
            return None
        try:
            migrated = csimigration.from_volume(volume)
        except csimigration.TranslationError:
            return None
        return None if migrated is None else _complete(Attachable(*migrated))

    def awaited(self, claim: PersistentVolumeClaim) -> Attachable | None:
        """Return a volume of the driver that will create it."""
        storage_class = self._class(claim_class(claim))
        if storage_class is None or storage_class.provisioner in csimigration.UNLIMITED or not storage_class.provisioner:
            return None
        if not self._migrated and storage_class.provisioner in csimigration.DRIVERS:
            return None
        driver = csimigration.DRIVERS.get(storage_class.provisioner, storage_class.provisioner)
        return Attachable(driver, "", f"{claim.metadata.namespace}/{claim.metadata.name}")


def _complete(found: Attachable) -> Attachable | None:
    return found if found.driver and found.handle else None
