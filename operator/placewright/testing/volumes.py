"""Volumes in a few words: PersistentVolumes, their claims, storage classes, and what CSI drivers say of nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Self

from placewright.api.storage import (
    BIND_COMPLETED,
    NO_PROVISIONER,
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from placewright.testing.objectmaker import DEFAULT_NAMESPACE, HOSTNAME, PlainMaker, T, requirement, uid_of

#: The class of volumes and claims that name none: an admission controller would give them the cluster's default class.
DEFAULT_CLASS: Final = "standard"
_STORAGE_API: Final = "storage.k8s.io/v1"


class StorageMaker(PlainMaker[T]):
    """Builds volumes, and claims to them."""

    def storage_class(self, name: str) -> Self:
        """Put the volume into this class, or ask for a volume of it."""
        return self.spec(storageClassName=name)

    def access_modes(self, *modes: str) -> Self:
        """Set the access modes; `ReadWriteOnce` without this."""
        return self.spec(accessModes=list(modes))


class VolumeMaker(StorageMaker[PersistentVolume]):
    """Builds a PersistentVolume step by step; see `persistent_volume`."""

    namespaced = False

    def capacity(self, storage: str) -> Self:
        """Set how large it is, such as `5Gi`."""
        return self.spec(capacity={"storage": storage})

    def on(self, *nodes: str) -> Self:
        """Make the volume reachable from these nodes alone, by their hostname."""
        return self.reachable(HOSTNAME, *nodes)

    def reachable(self, key: str, *values: str) -> Self:
        """Make the volume reachable from nodes whose label has one of these values.

        Args:
            key: the node label's.
            values: the label has one of them; none: the label is there.

        Returns:
            A new maker; this one stays as it is. A second call replaces the first.
        """
        return self.spec(nodeAffinity={"required": {"nodeSelectorTerms": [{"matchExpressions": [requirement(key, values)]}]}})

    def csi(self, driver: str, handle: str = "") -> Self:
        """Make it a volume of a CSI driver.

        Args:
            driver: the driver's name.
            handle: the driver's own name of the volume; empty: the volume's name. Volumes with one handle are attached to a node once.

        Returns:
            A new maker; this one stays as it is.
        """
        return self.spec(csi={"driver": driver, "volumeHandle": handle or self.name})

    def bound_to(self, claim: str, *, namespace: str = DEFAULT_NAMESPACE, uid: str = "") -> Self:
        """Bind the volume to a claim; the claim's side is `VolumeClaimMaker.bound_to`.

        Args:
            claim: the claim's name.
            namespace: the claim's.
            uid: the claim's; empty: the one that makers give it.

        Returns:
            A new maker; this one stays as it is.
        """
        reference = {"namespace": namespace, "name": claim, "uid": uid or uid_of(claim, namespace)}
        return self.spec(claimRef=reference).status(phase="Bound")


def persistent_volume(name: str, capacity: str = "1Gi") -> VolumeMaker:
    """Begin a PersistentVolume of the class `standard`: available, ReadWriteOnce, reachable from every node.

    Args:
        name: the volume's.
        capacity: a quantity of bytes, such as `5Gi`.

    Returns:
        The volume's maker.

    Example:
        persistent_volume("disk-1", "5Gi").storage_class("local").on("a").build()
    """
    made = VolumeMaker(name).capacity(capacity).storage_class(DEFAULT_CLASS).access_modes("ReadWriteOnce")
    return made.status(phase="Available")


class VolumeClaimMaker(StorageMaker[PersistentVolumeClaim]):
    """Builds a PersistentVolumeClaim step by step; see `persistent_volume_claim`."""

    def selector(self, labels: Mapping[str, str] | None = None, /, **more: str) -> Self:
        """Ask for a volume with these labels."""
        return self.spec(selector={"matchLabels": {**(labels or {}), **more}})

    def bound_to(self, volume: str) -> Self:
        """Bind the claim to a volume; the volume's side is `VolumeMaker.bound_to`."""
        # VolumeBinding takes a claim for bound only with this annotation, which the volume controller writes.
        return self.spec(volumeName=volume).annotations({BIND_COMPLETED: "yes"}).status(phase="Bound")

    def selected(self, node: str) -> Self:
        """Say that a volume is being made for this node."""
        return self.annotations({SELECTED_NODE: node})


def persistent_volume_claim(name: str, storage: str = "1Gi") -> VolumeClaimMaker:
    """Begin a PersistentVolumeClaim of the class `standard` in the namespace `default`: without a volume, ReadWriteOnce.

    Args:
        name: the claim's.
        storage: that it asks for, a quantity of bytes, such as `5Gi`.

    Returns:
        The claim's maker.

    Example:
        persistent_volume_claim("data", "5Gi").storage_class("local").build()
    """
    made = VolumeClaimMaker(name).spec(resources={"requests": {"storage": storage}}).storage_class(DEFAULT_CLASS)
    return made.access_modes("ReadWriteOnce").status(phase="Pending")


class StorageClassMaker(PlainMaker[StorageClass]):
    """Builds a StorageClass step by step; see `storage_class`."""

    api_version = _STORAGE_API
    namespaced = False

    def provisioner(self, name: str) -> Self:
        """Let this provisioner make the volumes of the class."""
        return self._top(provisioner=name)

    def immediate(self) -> Self:
        """Bind claims as soon as they are there, before any pod uses them."""
        return self._top(volumeBindingMode="Immediate")

    def wait_for_first_consumer(self) -> Self:
        """Bind a claim when the first pod that uses it gets a node: the default of `storage_class`."""
        return self._top(volumeBindingMode=WAIT_FOR_FIRST_CONSUMER)

    def allowed(self, key: str, *values: str) -> Self:
        """Make volumes only on nodes whose label has one of these values."""
        return self._top(allowedTopologies=[{"matchLabelExpressions": [{"key": key, "values": list(values)}]}])


def storage_class(name: str = DEFAULT_CLASS) -> StorageClassMaker:
    """Begin a StorageClass whose volumes are made by hand, and whose claims wait for their first pod.

    Example:
        storage_class("fast").provisioner("csi.example.com").allowed("zone", "a").build()
    """
    return StorageClassMaker(name).provisioner(NO_PROVISIONER).wait_for_first_consumer()


class CSINodeMaker(PlainMaker[CSINode]):
    """Builds a CSINode step by step; see `csi_node`."""

    api_version = _STORAGE_API
    namespaced = False

    def driver(self, name: str, *, count: int | None = None) -> Self:
        """Install a driver on the node.

        Args:
            name: the driver's.
            count: volumes of this driver that the node can attach; None: no limit.

        Returns:
            A new maker; this one stays as it is.
        """
        allocatable = {} if count is None else {"allocatable": {"count": count}}
        return self._append("spec", "drivers", {"name": name, "nodeID": self.name, **allocatable})


def csi_node(node: str) -> CSINodeMaker:
    """Begin the CSINode of a node, without drivers."""
    return CSINodeMaker(node).spec(drivers=[])


class CSIDriverMaker(PlainMaker[CSIDriver]):
    """Builds a CSIDriver step by step; see `csi_driver`."""

    api_version = _STORAGE_API
    namespaced = False

    def tells_capacity(self) -> Self:
        """Let the driver say in CSIStorageCapacity objects how much it can provision."""
        return self.spec(storageCapacity=True)


def csi_driver(name: str) -> CSIDriverMaker:
    """Begin a CSIDriver that says nothing of its capacity."""
    return CSIDriverMaker(name).spec()


class StorageCapacityMaker(PlainMaker[CSIStorageCapacity]):
    """Builds a CSIStorageCapacity step by step; see `storage_capacity`."""

    api_version = _STORAGE_API

    def storage_class(self, name: str) -> Self:
        """Set the class of the volumes that can be provisioned."""
        return self._top(storageClassName=name)

    def capacity(self, storage: str) -> Self:
        """Set how much can still be provisioned, such as `50Gi`."""
        return self._top(capacity=storage)

    def nodes(self, labels: Mapping[str, str] | None = None, /, **more: str) -> Self:
        """Let the capacity be that of nodes with these labels."""
        return self._top(nodeTopology={"matchLabels": {**(labels or {}), **more}})


def storage_capacity(name: str, storage_class: str, capacity: str) -> StorageCapacityMaker:
    """Begin a CSIStorageCapacity: so much can still be provisioned for a class, on no node until `nodes` says where.

    Args:
        name: the object's.
        storage_class: the class's name.
        capacity: a quantity of bytes, such as `50Gi`.

    Returns:
        The object's maker.

    Example:
        storage_capacity("in-zone-a", "fast", "50Gi").nodes(zone="a").build()
    """
    return StorageCapacityMaker(name).storage_class(storage_class).capacity(capacity)
