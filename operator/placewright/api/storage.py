"""Volumes, their claims, and the storage.k8s.io group, with the fields that the scheduler reads.

The rules of `api.objects` hold: only fields that placement reads are declared, and everything is frozen.
"""

from __future__ import annotations

from typing import Annotated, Final

from placewright.api.objects import (
    DriverObject,
    InTreeSources,
    KubeObject,
    LabelSelector,
    NodeSelector,
    ObjectMeta,
    OwnerObject,
    RawQuantity,
    ResourceList,
    ResourceRequirements,
    TenantObject,
)
from placewright.api.writers import Writer

#: Annotation of a claim and of a volume: the volume controller has bound them, as opposed to a name set by hand.
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
#: Annotation of a claim with the node for which a volume is being provisioned.
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
#: Annotation of a CSINode with in-tree plugins, separated by commas, whose volumes a CSI driver handles on that node.
MIGRATED_PLUGINS: Final = "storage.alpha.kubernetes.io/migrated-plugins"
#: Annotation with the class, from before `spec.storageClassName` existed. It outranks the field, as in Kubernetes.
BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
#: The provisioner of classes whose volumes an administrator creates by hand.
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"
READ_WRITE_ONCE_POD: Final = "ReadWriteOncePod"


class ObjectReference(KubeObject, frozen=True):
    """A claim as a volume names it. Without a uid it names any claim of that name (pre-bound), with a uid one claim only."""

    kind: str = ""
    api_version: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class VolumeNodeAffinity(KubeObject, frozen=True):
    """The nodes that can reach a volume."""

    required: NodeSelector | None = None


class CsiVolumeSource(KubeObject, frozen=True):
    """A volume of a CSI driver, under the driver's own name for it."""

    driver: str = ""
    volume_handle: str = ""


class PersistentVolumeSpec(InTreeSources, frozen=True):
    """`spec` of a PersistentVolume. In-tree sources are read because CSI drivers have taken over their volumes."""

    capacity: ResourceList | None = None
    access_modes: tuple[str, ...] | None = None
    claim_ref: ObjectReference | None = None
    storage_class_name: str = ""
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    csi: CsiVolumeSource | None = None


class VolumePhase(KubeObject, frozen=True):
    """`status` of a volume or a claim."""

    phase: str = ""


class PersistentVolume(OwnerObject, frozen=True):
    """A volume of the cluster, made by hand or by a provisioner."""

    spec: Annotated[PersistentVolumeSpec, Writer.OWNER] = PersistentVolumeSpec()
    status: Annotated[VolumePhase, Writer.CONTROL_PLANE] = VolumePhase()


class PersistentVolumeClaimSpec(KubeObject, frozen=True):
    """`spec` of a claim. No class (None) and the class "" differ: a claim without a class may still be given the default class."""

    access_modes: tuple[str, ...] | None = None
    selector: LabelSelector | None = None
    resources: ResourceRequirements = ResourceRequirements()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaim(TenantObject, frozen=True):
    """A pod's demand for a volume."""

    spec: Annotated[PersistentVolumeClaimSpec, Writer.TENANT] = PersistentVolumeClaimSpec()
    status: Annotated[VolumePhase, Writer.CONTROL_PLANE] = VolumePhase()


class TopologyRequirement(KubeObject, frozen=True):
    """One label of a node, and the values it may have."""

    key: str = ""
    values: tuple[str, ...] | None = None


class TopologySelectorTerm(KubeObject, frozen=True):
    """Requirements, ANDed."""

    match_label_expressions: tuple[TopologyRequirement, ...] | None = None


class StorageClass(OwnerObject, frozen=True):
    """How and when the volumes of a class are created. Its fields are at the top level, without a `spec`."""

    provisioner: Annotated[str, Writer.OWNER] = ""
    volume_binding_mode: Annotated[str | None, Writer.OWNER] = None
    allowed_topologies: Annotated[tuple[TopologySelectorTerm, ...] | None, Writer.OWNER] = None


class VolumeNodeResources(KubeObject, frozen=True):
    """The number of volumes of a driver that a node takes; None for no limit."""

    count: int | None = None


class CSINodeDriver(KubeObject, frozen=True):
    """A CSI driver as it is installed on a node."""

    name: str = ""
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(KubeObject, frozen=True):
    """`spec` of a CSINode."""

    drivers: tuple[CSINodeDriver, ...] | None = None


class CSINode(DriverObject, frozen=True):
    """The CSI drivers of the node of the same name."""

    spec: Annotated[CSINodeSpec, Writer.DRIVER] = CSINodeSpec()


class CSIDriverSpec(KubeObject, frozen=True):
    """`spec` of a CSIDriver."""

    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(OwnerObject, frozen=True):
    """The abilities of a CSI driver."""

    spec: Annotated[CSIDriverSpec, Writer.OWNER] = CSIDriverSpec()


class VolumeAttachmentSource(KubeObject, frozen=True):
    """The volume to attach: by name, or, for migrated inline volumes, written out."""

    persistent_volume_name: str | None = None
    inline_volume_spec: PersistentVolumeSpec | None = None


class VolumeAttachmentSpec(KubeObject, frozen=True):
    """`spec` of a VolumeAttachment."""

    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachment(KubeObject, frozen=True):
    """A volume that is, or is to be, attached to a node."""

    metadata: Annotated[ObjectMeta, Writer.CONTROL_PLANE] = ObjectMeta()
    spec: Annotated[VolumeAttachmentSpec, Writer.CONTROL_PLANE] = VolumeAttachmentSpec()


class CSIStorageCapacity(DriverObject, frozen=True):
    """How much a driver can still provision for a class, on the nodes that the topology selects (None: no nodes)."""

    node_topology: Annotated[LabelSelector | None, Writer.DRIVER] = None
    storage_class_name: Annotated[str, Writer.DRIVER] = ""
    capacity: Annotated[RawQuantity | None, Writer.DRIVER] = None
    maximum_volume_size: Annotated[RawQuantity | None, Writer.DRIVER] = None
