"""Plugins that look at volumes."""

from __future__ import annotations

from typing import Any, Final

from hints.rows import (
    ATTACHED,
    CAPACITY_ADDED,
    CAPACITY_CHANGED,
    CAPACITY_DELETED,
    CLAIM_ADDED,
    CLAIM_CHANGED,
    CLAIM_DELETED,
    CLASS_ADDED,
    CLASS_CHANGED,
    CLASS_DELETED,
    CSI_NODE_ADDED,
    CSI_NODE_CHANGED,
    CSI_NODE_DELETED,
    DETACHED,
    DRIVER_ADDED,
    DRIVER_CHANGED,
    NODE_ADDED,
    NODE_DELETED,
    NODE_LABELLED,
    NODE_RESIZED,
    POD_ADDED,
    POD_DELETED,
    VOLUME_ADDED,
    VOLUME_CHANGED,
    VOLUME_DELETED,
    Rejected,
    Row,
)
from placewright import testing as kit
from placewright.api.decode import convert
from placewright.api.pods import PodInfo
from placewright.api.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttachment
from placewright.testing import node

Body = dict[str, Any]
READS: Final = {"gcePersistentDisk": {"pdName": "d", "readOnly": True}}
WRITES: Final = {"gcePersistentDisk": {"pdName": "d"}}
EPHEMERAL: Final = {"ephemeral": {}}
INLINE: Final = {"csi": {"driver": "inline.example"}}
CONFIG: Final = {"configMap": {"name": "x"}}
ISCSI: Final = {"iscsi": {"iqn": "i"}}
GCE_DRIVER, EBS_DRIVER = "pd.csi.storage.gke.io", "ebs.csi.aws.com"
TOPOLOGY: Final = "topology.kubernetes.io/zone"
MIGRATED: Final = "storage.alpha.kubernetes.io/migrated-plugins"


def uses(name: str) -> Body:
    return {"persistentVolumeClaim": {"claimName": name}}


def me(*volumes: Body) -> PodInfo:
    return kit.pod("me").volumes(*volumes).build()


def on(*volumes: Body) -> PodInfo:
    return kit.pod("else", on="n").volumes(*volumes).build()


def away(*volumes: Body) -> PodInfo:
    return kit.pod("else", on="n").volumes(*volumes).namespace("away").build()


def pvc(name: str, namespace: str = "default") -> PersistentVolumeClaim:
    return kit.persistent_volume_claim(name).namespace(namespace).build()


def volume(zone: str = "", **labels: str) -> PersistentVolume:
    return kit.persistent_volume("v").labels({TOPOLOGY: zone} if zone else {}, **labels).build()


def storage_class(zone: str = "") -> StorageClass:
    made = kit.storage_class("s").immediate()
    return (made.allowed(TOPOLOGY, zone) if zone else made).build()


def csi_node(migrated: str = "", **limits: int) -> CSINode:
    made = kit.csi_node("n").annotations({MIGRATED: migrated} if migrated else {})
    for name, count in limits.items():
        made = made.driver(name, count=count)
    return made.build()


COUNTING, NOT_COUNTING = kit.csi_driver("inline.example").tells_capacity().build(), kit.csi_driver("inline.example").build()
SOME_ROOM, MORE_ROOM = (kit.storage_capacity("c", "s", amount).build() for amount in ("1Gi", "2Gi"))


def attachment(attacher: str) -> VolumeAttachment:
    return convert({"metadata": {"name": "a"}, "spec": {"attacher": attacher}}, VolumeAttachment)


_claimant = Rejected("VolumeRestrictions", me(uses("c")))
_reader = Rejected("VolumeRestrictions", me(READS))

RESTRICTIONS: Final[tuple[Row, ...]] = (
    _claimant.wakes("a pod that gives up the claim", POD_DELETED, old=on(uses("c"))),
    _claimant.rests("a pod that gives up another claim", POD_DELETED, old=on(uses("d"))),
    _claimant.rests("a pod of another namespace that leaves", POD_DELETED, old=away(uses("c"))),
    _reader.wakes("a pod that gives up the disk it wrote to", POD_DELETED, old=on(WRITES)),
    _reader.wakes("a pod of another namespace that gives up the disk it wrote to", POD_DELETED, old=away(WRITES)),
    _reader.rests("a pod that read the disk, too", POD_DELETED, old=on(READS)),
    _reader.rests("a pod without disks that leaves", POD_DELETED, old=on(CONFIG)),
    _claimant.rests("a pod that appears", POD_ADDED, new=on(uses("c"))),
    _claimant.wakes("a new node", NODE_ADDED, new=node("n")),
    _claimant.rests("a label of a node", NODE_LABELLED, old=node("n"), new=node("n", labels={"x": ""})),
    _claimant.wakes("its claim, once it is there", CLAIM_ADDED, new=pvc("c")),
    _claimant.rests("another claim", CLAIM_ADDED, new=pvc("d")),
    _claimant.rests("a claim of that name elsewhere", CLAIM_ADDED, new=pvc("c", "away")),
    _claimant.rests("a change of its claim", CLAIM_CHANGED, old=pvc("c"), new=pvc("c")),
)

_attaching = Rejected("NodeVolumeLimits", me(uses("c")))
_migrating = Rejected("NodeVolumeLimits", me(WRITES))

LIMITS: Final[tuple[Row, ...]] = (
    _attaching.wakes("a new node, which takes any number as long as its drivers are unknown", NODE_ADDED, new=node("n")),
    _attaching.wakes("the drivers of a new node", CSI_NODE_ADDED, new=csi_node()),
    _attaching.wakes("a driver that takes more volumes", CSI_NODE_CHANGED, old=csi_node(a=1), new=csi_node(a=2)),
    _attaching.wakes("a driver that is new", CSI_NODE_CHANGED, old=csi_node(), new=csi_node(a=1)),
    _attaching.rests("a driver that takes fewer volumes", CSI_NODE_CHANGED, old=csi_node(a=2, b=1), new=csi_node(a=1, b=1)),
    _attaching.wakes("a driver whose limit goes with what says so", CSI_NODE_DELETED, old=csi_node(a=1)),
    _attaching.rests("drivers without limits that go", CSI_NODE_DELETED, old=csi_node()),
    _attaching.rests("a driver as it was", CSI_NODE_CHANGED, old=csi_node(a=1), new=csi_node(a=1)),
    _attaching.wakes("a pod with a claim that leaves", POD_DELETED, old=on(uses("d"))),
    _attaching.wakes("a pod with an ephemeral volume that leaves", POD_DELETED, old=on(EPHEMERAL)),
    _attaching.wakes("a pod with a disk of a migrated kind that leaves", POD_DELETED, old=on(WRITES)),
    _attaching.rests("a pod with nothing to detach that leaves", POD_DELETED, old=on(CONFIG, ISCSI)),
    _attaching.rests("a pod with a claim that had no node", POD_DELETED, old=kit.pod("else").volume_claims("d")),
    _attaching.wakes("a pod that brings its claim to a node", POD_ADDED, new=on(uses("c"))),
    _attaching.rests("a pod that brings another claim", POD_ADDED, new=on(uses("d"))),
    _attaching.rests("a pod of another namespace that brings a claim of that name", POD_ADDED, new=away(uses("c"))),
    _migrating.wakes("a pod that brings its disk to a node", POD_ADDED, new=away(WRITES)),
    _attaching.wakes("its claim, once it is there", CLAIM_ADDED, new=pvc("c")),
    _attaching.rests("another claim", CLAIM_ADDED, new=pvc("d")),
    Rejected("NodeVolumeLimits", me(EPHEMERAL)).wakes("the claim of its ephemeral volume", CLAIM_ADDED, new=pvc("me-volume-0")),
    _attaching.wakes("a class that goes, and by which claims were counted", CLASS_DELETED, old=storage_class()),
    _attaching.wakes("a volume that is detached", DETACHED, old=attachment("any")),
    _migrating.wakes("a volume of the same driver that is detached", DETACHED, old=attachment(GCE_DRIVER)),
    _migrating.rests("a volume of another driver that is detached", DETACHED, old=attachment(EBS_DRIVER)),
    _attaching.rests("a volume that is attached", ATTACHED, new=attachment("any")),
)  # fmt: skip

_binding = Rejected("VolumeBinding", me(uses("c")))
_taken = Rejected("VolumeBinding", me(uses("c")), known=(pvc("unbound"), kit.persistent_volume_claim("bound").bound_to("v").build()))
_inline = Rejected("VolumeBinding", me(INLINE, uses("c")))

BINDING: Final[tuple[Row, ...]] = (
    _binding.wakes("a new class", CLASS_ADDED, new=storage_class()),
    _binding.wakes("a class that allows other nodes", CLASS_CHANGED, old=storage_class(zone="a"), new=storage_class(zone="b")),
    _binding.rests("a class that allows the same nodes", CLASS_CHANGED, old=storage_class(zone="a"), new=storage_class(zone="a")),
    _binding.wakes("its claim, once it is there", CLAIM_ADDED, new=pvc("c")),
    _binding.wakes("a change of its claim", CLAIM_CHANGED, old=pvc("c"), new=pvc("c")),
    _binding.rests("another claim", CLAIM_ADDED, new=pvc("d")),
    _binding.rests("a change of another claim", CLAIM_CHANGED, old=pvc("d"), new=pvc("d")),
    _binding.rests("a claim that goes", CLAIM_DELETED, old=pvc("c")),
    _binding.wakes("a new volume", VOLUME_ADDED, new=volume()),
    _binding.wakes("a change of a volume", VOLUME_CHANGED, old=volume(), new=volume()),
    _binding.rests("a volume that goes", VOLUME_DELETED, old=volume()),
    _binding.wakes("a new node", NODE_ADDED, new=node("n")),
    _binding.wakes("a label of a node", NODE_LABELLED, old=node("n"), new=node("n", labels={"x": ""})),
    _binding.rests("a node that grows", NODE_RESIZED, old=node("n"), new=node("n", cpu="9")),
    _binding.wakes("the drivers of a new node", CSI_NODE_ADDED, new=csi_node()),
    _binding.wakes("a node whose driver takes over disks", CSI_NODE_CHANGED, old=csi_node(), new=csi_node("kubernetes.io/gce-pd")),
    _binding.rests("a driver that takes more volumes", CSI_NODE_CHANGED, old=csi_node(a=1), new=csi_node(a=2)),
    _inline.wakes("its inline driver that ceases to count capacity", DRIVER_CHANGED, old=COUNTING, new=NOT_COUNTING),
    _inline.rests("its inline driver that begins to count capacity", DRIVER_CHANGED, old=NOT_COUNTING, new=COUNTING),
    _inline.rests(
        "another driver that ceases to count capacity", DRIVER_CHANGED,
        old=kit.csi_driver("other").tells_capacity(), new=kit.csi_driver("other"),
    ),
    _inline.rests("a new driver", DRIVER_ADDED, new=NOT_COUNTING),
    _binding.wakes("room that becomes known", CAPACITY_ADDED, new=SOME_ROOM),
    _binding.wakes("more room", CAPACITY_CHANGED, old=SOME_ROOM, new=MORE_ROOM),
    _binding.rests("less room", CAPACITY_CHANGED, old=MORE_ROOM, new=SOME_ROOM),
    _binding.rests("room that is known no more", CAPACITY_DELETED, old=SOME_ROOM),
    _binding.rests("a pod that leaves a node", POD_DELETED, old=on(uses("c"))),
    _taken.wakes("a pod that leaves, and its claim got no volume", POD_DELETED, old=on(uses("bound"), uses("unbound"))),
    _taken.rests("a pod that leaves, and its claim has its volume", POD_DELETED, old=on(uses("bound"))),
)  # fmt: skip

_zoned = Rejected("VolumeZone", me(uses("c")))

ZONES: Final[tuple[Row, ...]] = (
    _zoned.wakes("a new class whose claims wait for a pod", CLASS_ADDED, new=kit.storage_class("s")),
    _zoned.rests("a new class whose claims do not wait", CLASS_ADDED, new=storage_class()),
    _zoned.wakes("a new node", NODE_ADDED, new=node("n")),
    _zoned.wakes("a label of a node", NODE_LABELLED, old=node("n"), new=node("n", labels={TOPOLOGY: "a"})),
    _zoned.rests("a node that goes", NODE_DELETED, old=node("n")),
    _zoned.wakes("its claim, once it is there", CLAIM_ADDED, new=pvc("c")),
    _zoned.wakes("a change of its claim", CLAIM_CHANGED, old=pvc("c"), new=pvc("c")),
    _zoned.rests("another claim", CLAIM_ADDED, new=pvc("d")),
    _zoned.rests("a change of another claim", CLAIM_CHANGED, old=pvc("d"), new=pvc("d")),
    _zoned.wakes("a new volume", VOLUME_ADDED, new=volume()),
    _zoned.wakes("a volume that moves", VOLUME_CHANGED, old=volume(zone="a"), new=volume(zone="b")),
    _zoned.rests("a volume that stays", VOLUME_CHANGED, old=volume(zone="a"), new=volume(zone="a")),
    _zoned.rests("another label of a volume", VOLUME_CHANGED, old=volume(), new=volume(x="y")),
    _zoned.rests("a pod that leaves a node", POD_DELETED, old=on(uses("c"))),
)

ROWS: Final = (*RESTRICTIONS, *LIMITS, *BINDING, *ZONES)
