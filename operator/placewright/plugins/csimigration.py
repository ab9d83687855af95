"""In-tree volumes that CSI drivers have taken over: which driver, and under which handle it knows the volume.

After the CSI translation library of Kubernetes. kube-scheduler takes the migration of these plugins as done on every node that has a
CSINode, whatever its annotation says; nodes without one have no limits anyway.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from placewright.api.objects import AwsElasticBlockStoreSource, Labels, Volume
from placewright.api.storage import PersistentVolume, PersistentVolumeSpec

#: Driver by in-tree provisioner; the ones that count towards limits.
DRIVERS: Final[Mapping[str, str]] = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
}
#: Translated too, but without limits.
UNLIMITED: Final[frozenset[str]] = frozenset({"kubernetes.io/azure-file", "kubernetes.io/vsphere-volume"})

_ZONES: Final = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
_UNSPECIFIED: Final = "UNSPECIFIED"
_AWS_ID: Final = re.compile(r"vol-[^/]*")
_PARTS_OF_A_ZONE: Final = 3


class Migrated(NamedTuple):
    """A volume as its CSI driver knows it."""

    driver: str
    handle: str


class TranslationError(ValueError):
    """An in-tree volume that no CSI driver could know; the message names what is wrong with it."""


def is_migratable(volume: Volume) -> bool:
    """True for a volume of a pod that names an in-tree disk or share that a CSI driver serves today."""
    return _has_a_limit(volume) or volume.azure_file is not None or volume.vsphere_volume is not None


def from_pod(volume: Volume) -> Migrated | None:
    """The volume that a pod names itself; None for other volumes. Raises `TranslationError`."""
    return _translated(volume, None) if _has_a_limit(volume) else None


def from_volume(volume: PersistentVolume) -> Migrated | None:
    """An in-tree PersistentVolume; None for other volumes. Raises `TranslationError`."""
    return _translated(volume.spec, volume.metadata.labels or {}) if _has_a_limit(volume.spec) else None


def _has_a_limit(source: Volume | PersistentVolumeSpec) -> bool:
    return bool(
        source.gce_persistent_disk
        or source.aws_elastic_block_store
        or source.azure_disk
        or source.cinder
        or source.portworx_volume
    )


def _translated(source: Volume | PersistentVolumeSpec, labels: Labels | None) -> Migrated | None:
    if source.aws_elastic_block_store is not None:
        return Migrated(DRIVERS["kubernetes.io/aws-ebs"], _ebs_handle(source.aws_elastic_block_store))
    if source.gce_persistent_disk is not None:
        place = _gce_place(labels or {})
        return Migrated(DRIVERS["kubernetes.io/gce-pd"], f"projects/{_UNSPECIFIED}/{place}/disks/{source.gce_persistent_disk.pd_name}")
    if source.azure_disk is not None:
        return Migrated(DRIVERS["kubernetes.io/azure-disk"], source.azure_disk.disk_uri)
    if source.cinder is not None:
        return Migrated(DRIVERS["kubernetes.io/cinder"], source.cinder.volume_id)
    if source.portworx_volume is not None:
        return Migrated(DRIVERS["kubernetes.io/portworx-volume"], source.portworx_volume.volume_id)
    return None


def _ebs_handle(source: AwsElasticBlockStoreSource) -> str:
    """`vol-1`, also when written as `aws://zone/vol-1`."""
    if not source.volume_id.startswith("aws://"):
        return source.volume_id
    handle = source.volume_id.removeprefix("aws://").partition("/")[2].strip("/")
    if not _AWS_ID.fullmatch(handle):
        raise TranslationError(f"invalid format for AWS volume ({source.volume_id})")
    return handle


def _gce_place(labels: Labels) -> str:
    """The zone, or the region of several zones, that the labels of a volume name."""
    zones = next((labels[key] for key in _ZONES if labels.get(key)), _UNSPECIFIED).split("__")
    if len(zones) == 1:
        return f"zones/{zones[0]}"
    parts = [zone.split("-") for zone in zones]
    regions = {"-".join(part[:-1]) for part in parts}
    if len(regions) != 1 or any(len(part) != _PARTS_OF_A_ZONE for part in parts):
        raise TranslationError(f"failed to get region from zones {zones}")
    return f"regions/{regions.pop()}"
