"""In-tree volumes that have migrated to CSI drivers: the driver, its handle of the volume, and the nodes that reach it.

It follows the CSI translation library of Kubernetes. NodeVolumeLimits assumes that these plugins have migrated on every node with a
CSINode, with any annotation. On nodes without a CSINode, in-tree volumes count for no driver. VolumeBinding reads the annotation: if it
does not name the plugin, a volume's node affinity is taken as written. kube-scheduler does both the same way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from placewright.api.objects import (
    AwsElasticBlockStoreSource,
    AzureDiskSource,
    CinderSource,
    GcePersistentDiskSource,
    Labels,
    NodeSelector,
    NodeSelectorTerm,
    PortworxSource,
    Requirement,
    Volume,
)
from placewright.api.storage import MIGRATED_PLUGINS, CSINode, PersistentVolume, PersistentVolumeSpec

#: Provisioners that are translated, too, but have no limits.
UNLIMITED: Final[frozenset[str]] = frozenset({"kubernetes.io/azure-file", "kubernetes.io/vsphere-volume"})

_ZONE: Final = "topology.kubernetes.io/zone"
_BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
_REGION: Final = "topology.kubernetes.io/region"
_BETA_REGION: Final = "failure-domain.beta.kubernetes.io/region"
_SEPARATOR: Final = "__"
_UNSPECIFIED: Final = "UNSPECIFIED"
_AWS_ID: Final = re.compile(r"vol-[^/]*")
_PARTS_OF_A_ZONE: Final = 3


_Terms = tuple[NodeSelectorTerm, ...]


class Migrated(NamedTuple):
    """A volume as its CSI driver knows it."""

    driver: str
    handle: str


class TranslationError(ValueError):
    """No CSI driver can know this in-tree volume; the message says why."""


def is_migratable(volume: Volume) -> bool:
    """Return whether a pod's volume names an in-tree disk or share that a CSI driver serves today."""
    return in_tree_plugin(volume) is not None or volume.azure_file is not None or volume.vsphere_volume is not None


def from_pod(volume: Volume) -> Migrated | None:
    """Translate a volume that a pod names itself; None for other volumes. Raise `TranslationError`."""
    return _translated(volume, None)


def from_volume(volume: PersistentVolume) -> Migrated | None:
    """Translate an in-tree PersistentVolume; None for other volumes. Raise `TranslationError`."""
    return _translated(volume.spec, volume.metadata.labels)


def in_tree_plugin(source: Volume | PersistentVolumeSpec) -> str | None:
    """Return the in-tree plugin of a volume if volumes of its driver have limits; None for all others."""
    return next((plugin for plugin, disk in _DISKS.items() if getattr(source, disk.field) is not None), None)


def migrated_plugins(csi_node: object) -> frozenset[str]:
    """Return the in-tree plugins that have migrated to CSI drivers on a node; none if the object is no CSINode."""
    named = (csi_node.metadata.annotations or {}).get(MIGRATED_PLUGINS, "") if isinstance(csi_node, CSINode) else ""
    return frozenset(named.split(",")) if named else frozenset()


def _translated(source: Volume | PersistentVolumeSpec, labels: Labels | None) -> Migrated | None:
    plugin = in_tree_plugin(source)
    if plugin is None:
        return None
    disk = _DISKS[plugin]
    return Migrated(disk.driver, disk.handle(getattr(source, disk.field), labels or {}))


def _volume_id(source: CinderSource | PortworxSource, _labels: Labels) -> str:
    return source.volume_id


def _azure_handle(source: AzureDiskSource, _labels: Labels) -> str:
    if source.kind is not None and source.kind.lower() != "managed":
        raise TranslationError(f"kind({source.kind}) is not supported in csi migration")
    return source.disk_uri


def _ebs_handle(source: AwsElasticBlockStoreSource, _labels: Labels) -> str:
    """Return `vol-1`, also if it is written as `aws://zone/vol-1`."""
    if not source.volume_id.startswith("aws://"):
        return source.volume_id
    handle = source.volume_id.removeprefix("aws://").partition("/")[2].strip("/")
    if not _AWS_ID.fullmatch(handle):
        raise TranslationError(f"invalid format for AWS volume ({source.volume_id})")
    return handle


def _gce_place(labels: Labels) -> str:
    """Return the zone, or the region of several zones, that the labels of a volume name."""
    zones = next((labels[key] for key in (_BETA_ZONE, _ZONE) if labels.get(key)), _UNSPECIFIED).split(_SEPARATOR)
    if len(zones) == 1:
        return f"zones/{zones[0]}"
    parts = [zone.split("-") for zone in zones]
    regions = {"-".join(part[:-1]) for part in parts}
    if len(regions) != 1 or any(len(part) != _PARTS_OF_A_ZONE for part in parts):
        raise TranslationError(f"failed to get region from zones {zones}")
    return f"regions/{regions.pop()}"


def _gce_handle(source: GcePersistentDiskSource, labels: Labels) -> str:
    return f"projects/{_UNSPECIFIED}/{_gce_place(labels)}/disks/{source.pd_name}"


class _Disk(NamedTuple):
    """An in-tree volume and its CSI driver.

    Attributes:
        field: the volume's field that names such a disk.
        driver: CSI driver that counts towards limits.
        handle: returns the driver's name of a disk, from the field's value and the labels of its PersistentVolume.
        zone: label that the driver puts on nodes instead of the zone's; empty if its volumes keep their node affinity.
    """

    field: str
    driver: str
    handle: Callable[[Any, Labels], str]
    zone: str = ""


#: Disks by in-tree provisioner.
_DISKS: Final[Mapping[str, _Disk]] = {
    "kubernetes.io/aws-ebs": _Disk("aws_elastic_block_store", "ebs.csi.aws.com", _ebs_handle, "topology.ebs.csi.aws.com/zone"),
    "kubernetes.io/gce-pd": _Disk("gce_persistent_disk", "pd.csi.storage.gke.io", _gce_handle, "topology.gke.io/zone"),
    "kubernetes.io/azure-disk": _Disk("azure_disk", "disk.csi.azure.com", _azure_handle),
    "kubernetes.io/cinder": _Disk("cinder", "cinder.csi.openstack.org", _volume_id, "topology.cinder.csi.openstack.org/zone"),
    "kubernetes.io/portworx-volume": _Disk("portworx_volume", "pxd.portworx.com", _volume_id),
}
#: Drivers that count towards limits, by in-tree provisioner.
DRIVERS: Final[Mapping[str, str]] = {plugin: disk.driver for plugin, disk in _DISKS.items()}


# --- nodes that reach a volume -------------------------------------------------------------------------------------------------


def driver_affinity(volume: PersistentVolume) -> NodeSelector | None:
    """Return the node affinity of an in-tree volume on nodes where it has migrated; None for any node.

    The zone, from the affinity or otherwise from the volume's labels, becomes the driver's own label. Raise `TranslationError`.
    """
    from_volume(volume)
    required = volume.spec.node_affinity.required if volume.spec.node_affinity is not None else None
    plugin = in_tree_plugin(volume.spec)
    own_zone = _DISKS[plugin].zone if plugin is not None else ""
    if not own_zone:
        return required
    written = (required.node_selector_terms or ()) if required is not None else ()
    terms = _in_words_of_driver(written, volume.metadata.labels or {}, own_zone)
    return NodeSelector(terms) if terms or required is not None else None


def _in_words_of_driver(terms: _Terms, labels: Labels, own_zone: str) -> _Terms:
    zone = _zone_label(terms, labels)
    if _names_values(terms, zone):
        terms = _renamed(terms, zone, own_zone)
    elif zones := {part.strip() for part in labels.get(zone, "").split(_SEPARATOR)} - {""}:
        wanted = Requirement(key=own_zone, operator="In", values=tuple(sorted(zones)))
        terms = tuple(replace(term, match_expressions=(*(term.match_expressions or ()), wanted)) for term in terms or (NodeSelectorTerm(),))
    if zone == _BETA_ZONE and _names_values(terms, _BETA_REGION):
        terms = _renamed(terms, _BETA_REGION, _REGION)
    return terms


def _zone_label(terms: _Terms, labels: Labels) -> str:
    """Return the label by which the volume names its zone: from its affinity first, then from its own labels."""
    keys = {each.key for term in terms for each in term.match_expressions or ()}
    return next((key for known in (keys, labels) for key in (_ZONE, _BETA_ZONE) if key in known), _ZONE)


def _names_values(terms: _Terms, key: str) -> bool:
    return any(each.key == key and each.values for term in terms for each in term.match_expressions or ())


def _renamed(terms: _Terms, old: str, new: str) -> _Terms:
    return tuple(
        replace(term, match_expressions=tuple(replace(each, key=new) if each.key == old else each for each in term.match_expressions or ()))
        for term in terms
    )
