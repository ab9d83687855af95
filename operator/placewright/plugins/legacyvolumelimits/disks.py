"""The disks of four clouds, as the in-tree plugins knew them: their names, who made them, and how many a machine takes.

Source: kube-scheduler 1.20 to 1.30 `nodevolumelimits/non_csi.go`, and `pkg/volume/util/attach_limit.go` for the numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from placewright.api.objects import Node, Volume
from placewright.api.storage import PersistentVolumeSpec

#: The label with the type of a machine; where a node has both, the stable one counts (upstream takes either, by chance).
INSTANCE_TYPE: Final = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")

_EBS_NITRO: Final = re.compile("^[cmr]5.*|t3|z1d")
_EBS_ON_NITRO: Final = 25
_EBS: Final = 39


@dataclass(frozen=True, slots=True)
class DiskKind:
    """One cloud's disks.

    Attributes:
        provisioner: of classes whose volumes are such disks, and the name of the in-tree plugin.
        resource: under which a node states how many it takes.
        name_of: how the disk is called that a volume stands for; None for all other volumes.
        usual_limit: how many a node takes where nobody says.
    """

    provisioner: str
    resource: str
    name_of: Callable[[Volume | PersistentVolumeSpec], str | None]
    usual_limit: Callable[[Node], int]


def _ebs_name(source: Volume | PersistentVolumeSpec) -> str | None:
    return source.aws_elastic_block_store.volume_id if source.aws_elastic_block_store is not None else None


def _gce_name(source: Volume | PersistentVolumeSpec) -> str | None:
    return source.gce_persistent_disk.pd_name if source.gce_persistent_disk is not None else None


def _azure_name(source: Volume | PersistentVolumeSpec) -> str | None:
    return source.azure_disk.disk_name if source.azure_disk is not None else None


def _cinder_name(source: Volume | PersistentVolumeSpec) -> str | None:
    return source.cinder.volume_id if source.cinder is not None else None


def _ebs_limit(node: Node) -> int:
    """Machines on Nitro share their slots with network interfaces."""
    labels = node.metadata.labels or {}
    machine = next((labels[key] for key in INSTANCE_TYPE if key in labels), "")
    return _EBS_ON_NITRO if _EBS_NITRO.search(machine) else _EBS


def _always(limit: int) -> Callable[[Node], int]:
    return lambda _node: limit


EBS: Final = DiskKind("kubernetes.io/aws-ebs", "attachable-volumes-aws-ebs", _ebs_name, _ebs_limit)
GCE_PD: Final = DiskKind("kubernetes.io/gce-pd", "attachable-volumes-gce-pd", _gce_name, _always(16))
AZURE_DISK: Final = DiskKind("kubernetes.io/azure-disk", "attachable-volumes-azure-disk", _azure_name, _always(16))
CINDER: Final = DiskKind("kubernetes.io/cinder", "attachable-volumes-cinder", _cinder_name, _always(256))
