"""Plugins that look at volumes."""

from __future__ import annotations

from typing import Final

from hints.rows import Rejected, Row
from placewright import testing as kit
from placewright.api.decode import convert
from placewright.api.storage import VolumeAttachment
from placewright.testing import csi_node, node
from placewright.testing import persistent_volume_claim as pvc

READS: Final = {"gcePersistentDisk": {"pdName": "d", "readOnly": True}}
WRITES: Final = {"gcePersistentDisk": {"pdName": "d"}}
CONFIG: Final = {"configMap": {"name": "x"}}
ISCSI: Final = {"iscsi": {"iqn": "i"}}
ZONE: Final = "topology.kubernetes.io/zone"
ME, ELSE, ON_NODE = kit.pod("me"), kit.pod("else"), kit.pod("else", on="n")
ME_C, HAS_C, HAS_D = (made.volume_claims(claim) for made, claim in ((ME, "c"), (ON_NODE, "c"), (ON_NODE, "d")))
AWAY_C: Final = HAS_C.namespace("away")
WRITER: Final = ON_NODE.volume(**WRITES)
NODE, VOLUME, CSI_NODE, CLASS = node("n"), kit.persistent_volume("v"), csi_node("n"), kit.storage_class("s").immediate()
A_ONE, A_TWO = CSI_NODE.driver("a", count=1), CSI_NODE.driver("a", count=2)
MIGRATING_NODE: Final = CSI_NODE.annotations({"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/gce-pd"})
CLASS_A: Final = CLASS.allowed(ZONE, "a")
INLINE: Final = kit.csi_driver("inline.example")
SOME_ROOM, MORE_ROOM = kit.storage_capacity("c", "s", "1Gi"), kit.storage_capacity("c", "s", "2Gi")
ANY_DRIVER, GCE, EBS = (
    convert({"metadata": {"name": "a"}, "spec": {"attacher": attacher}}, VolumeAttachment)
    for attacher in ("any", "pd.csi.storage.gke.io", "ebs.csi.aws.com")
)

_claimant = Rejected("VolumeRestrictions", ME_C)
_reader = Rejected("VolumeRestrictions", ME.volume(**READS))

RESTRICTIONS: Final[tuple[Row, ...]] = (
    _claimant.wakes("a pod that gives up the claim", old=HAS_C),
    _claimant.rests("a pod that gives up another claim", old=HAS_D),
    _claimant.rests("a pod of another namespace that leaves", old=AWAY_C),
    _reader.wakes("a pod that gives up the disk it wrote to", old=WRITER),
    _reader.wakes("a pod of another namespace that gives up the disk it wrote to", old=WRITER.namespace("away")),
    _reader.rests("a pod that read the disk, too", old=ON_NODE.volume(**READS)),
    _reader.rests("a pod without disks that leaves", old=ON_NODE.volume(**CONFIG)),
    _claimant.rests("a pod that appears", new=HAS_C),
    _claimant.rests("a label of a node", "node_label", old=NODE, new=NODE.labels(x="")),
    _claimant.rests("a claim of that name elsewhere", new=pvc("c").namespace("away")),
    _claimant.rests("a change of its claim", old=pvc("c"), new=pvc("c")),
)

_attaching = Rejected("NodeVolumeLimits", ME_C)
_migrating = Rejected("NodeVolumeLimits", ME.volume(**WRITES))

LIMITS: Final[tuple[Row, ...]] = (
    _attaching.wakes("a new node, which takes any number as long as its drivers are unknown", new=NODE),
    _attaching.wakes("the drivers of a new node", new=CSI_NODE),
    _attaching.wakes("a driver that takes more volumes", old=A_ONE, new=A_TWO),
    _attaching.wakes("a driver that is new", old=CSI_NODE, new=A_ONE),
    _attaching.rests("a driver that takes fewer volumes", old=A_TWO.driver("b", count=1), new=A_ONE.driver("b", count=1)),
    _attaching.wakes("a driver whose limit goes with what says so", old=A_ONE),
    _attaching.rests("drivers without limits that go", old=CSI_NODE),
    _attaching.rests("a driver as it was", old=A_ONE, new=A_ONE),
    _attaching.wakes("a pod with a claim that leaves", old=HAS_D),
    _attaching.wakes("a pod with an ephemeral volume that leaves", old=ON_NODE.volume(ephemeral={})),
    _attaching.wakes("a pod with a disk of a migrated kind that leaves", old=WRITER),
    _attaching.rests("a pod with nothing to detach that leaves", old=ON_NODE.volumes(CONFIG, ISCSI)),
    _attaching.rests("a pod with a claim that had no node", old=ELSE.volume_claims("d")),
    _attaching.wakes("a pod that brings its claim to a node", new=HAS_C),
    _attaching.rests("a pod that brings another claim", new=HAS_D),
    _attaching.rests("a pod of another namespace that brings a claim of that name", new=AWAY_C),
    _migrating.wakes("a pod that brings its disk to a node", new=WRITER.namespace("away")),
    Rejected("NodeVolumeLimits", ME.volume(ephemeral={})).wakes("the claim of its ephemeral volume", new=pvc("me-volume-0")),
    _attaching.wakes("a class that goes, and by which claims were counted", old=CLASS),
    _attaching.wakes("a volume that is detached", old=ANY_DRIVER),
    _migrating.wakes("a volume of the same driver that is detached", old=GCE),
    _migrating.rests("a volume of another driver that is detached", old=EBS),
    _attaching.rests("a volume that is attached", new=ANY_DRIVER),
)  # fmt: skip

_binding = Rejected("VolumeBinding", ME_C)
_taken = Rejected("VolumeBinding", ME_C, known=(pvc("unbound"), pvc("bound").bound_to("v")))
_inline = Rejected("VolumeBinding", ME.volume(csi={"driver": INLINE.name}).volume_claims("c"))

BINDING: Final[tuple[Row, ...]] = (
    _binding.wakes("a new class", new=CLASS),
    _binding.wakes("a class that allows other nodes", old=CLASS_A, new=CLASS.allowed(ZONE, "b")),
    _binding.rests("a class that allows the same nodes", old=CLASS_A, new=CLASS_A),
    _binding.wakes("a change of its claim", old=pvc("c"), new=pvc("c")),
    _binding.rests("a change of another claim", old=pvc("d"), new=pvc("d")),
    _binding.rests("a claim that goes", old=pvc("c")),
    _binding.wakes("a new volume", new=VOLUME),
    _binding.wakes("a change of a volume", old=VOLUME, new=VOLUME),
    _binding.rests("a volume that goes", old=VOLUME),
    _binding.wakes("a label of a node", "node_label", old=NODE, new=NODE.labels(x="")),
    _binding.rests("a node that grows", "node_allocatable", old=NODE, new=NODE.offers(cpu="9")),
    _binding.wakes("the drivers of a new node", new=CSI_NODE),
    _binding.wakes("a node whose driver takes over disks", old=CSI_NODE, new=MIGRATING_NODE),
    _binding.rests("a driver that takes more volumes", old=A_ONE, new=A_TWO),
    _inline.wakes("its inline driver that ceases to count capacity", old=INLINE.tells_capacity(), new=INLINE),
    _inline.rests("its inline driver that begins to count capacity", old=INLINE, new=INLINE.tells_capacity()),
    _inline.rests(
        "another driver that ceases to count capacity",
        old=kit.csi_driver("other").tells_capacity(), new=kit.csi_driver("other"),
    ),
    _inline.rests("a new driver", new=INLINE),
    _binding.wakes("room that becomes known", new=SOME_ROOM),
    _binding.wakes("more room", old=SOME_ROOM, new=MORE_ROOM),
    _binding.rests("less room", old=MORE_ROOM, new=SOME_ROOM),
    _binding.rests("room that is known no more", old=SOME_ROOM),
    _binding.rests("a pod that leaves a node", old=HAS_C),
    _taken.wakes("a pod that leaves, and its claim got no volume", old=ON_NODE.volume_claims("bound", "unbound")),
    _taken.rests("a pod that leaves, and its claim has its volume", old=ON_NODE.volume_claims("bound")),
)  # fmt: skip

_zoned = Rejected("VolumeZone", ME_C)

ZONES: Final[tuple[Row, ...]] = (
    _zoned.wakes("a new class whose claims wait for a pod", new=kit.storage_class("s")),
    _zoned.rests("a new class whose claims do not wait", new=CLASS),
    _zoned.wakes("a label of a node", "node_label", old=NODE, new=NODE.zone("a")),
    _zoned.rests("a node that goes", old=NODE),
    _zoned.wakes("a change of its claim", old=pvc("c"), new=pvc("c")),
    _zoned.rests("a change of another claim", old=pvc("d"), new=pvc("d")),
    _zoned.wakes("a new volume", new=VOLUME),
    _zoned.wakes("a volume that moves", old=VOLUME.labels({ZONE: "a"}), new=VOLUME.labels({ZONE: "b"})),
    _zoned.rests("a volume that stays", old=VOLUME.labels({ZONE: "a"}), new=VOLUME.labels({ZONE: "a"})),
    _zoned.rests("another label of a volume", old=VOLUME, new=VOLUME.labels(x="y")),
    _zoned.rests("a pod that leaves a node", old=HAS_C),
)

#: What helps, or does not, the pods of several plugins.
COMMON: Final[tuple[Row, ...]] = (
    *(each.wakes("a new node", new=NODE) for each in (_claimant, _binding, _zoned)),
    *(each.wakes("its claim, once it is there", new=pvc("c")) for each in (_claimant, _attaching, _binding, _zoned)),
    *(each.rests("another claim", new=pvc("d")) for each in (_claimant, _attaching, _binding, _zoned)),
)

ROWS: Final = (*COMMON, *RESTRICTIONS, *LIMITS, *BINDING, *ZONES)
