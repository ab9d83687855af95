"""Which events bring back a pod that VolumeRestrictions, NodeVolumeLimits or VolumeZone rejected, and which do not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from pairwise import build
from pairwise_worlds import Body
from storage_worlds import BETA, EBS, GA, GCE
from test_node_volume_limits import drivers

from placewright.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttachment
from placewright.cluster.cluster import Cluster
from placewright.framework.events import Action, ClusterEvent, EventResource, QueueingHint
from placewright.plugins.nodevolumelimits.plugin import NodeVolumeLimits
from placewright.plugins.volumerestrictions import VolumeRestrictions
from placewright.plugins.volumezone import VolumeZone
from placewright.testing import csi_driver, node, persistent_volume, persistent_volume_claim, pod, storage_class

GONE = ClusterEvent(EventResource.ASSIGNED_POD, Action.DELETE)
POD_ADDED = ClusterEvent(EventResource.ASSIGNED_POD, Action.ADD)
NODE_ADDED = ClusterEvent(EventResource.NODE, Action.ADD)
NODE_GONE = ClusterEvent(EventResource.NODE, Action.DELETE)
LABELLED = ClusterEvent(EventResource.NODE, Action.UPDATE_NODE_LABEL)
CLAIM_ADDED = ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, Action.ADD)
CLAIM_CHANGED = ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, Action.UPDATE)
VOLUME_ADDED = ClusterEvent(EventResource.PERSISTENT_VOLUME, Action.ADD)
VOLUME_CHANGED = ClusterEvent(EventResource.PERSISTENT_VOLUME, Action.UPDATE)
CLASS_ADDED = ClusterEvent(EventResource.STORAGE_CLASS, Action.ADD)
CSI_ADDED = ClusterEvent(EventResource.CSI_NODE, Action.ADD)
CSI_CHANGED = ClusterEvent(EventResource.CSI_NODE, Action.UPDATE)
CSI_GONE = ClusterEvent(EventResource.CSI_NODE, Action.DELETE)
DRIVER_CHANGED = ClusterEvent(EventResource.CSI_DRIVER, Action.UPDATE)
DRIVER_GONE = ClusterEvent(EventResource.CSI_DRIVER, Action.DELETE)
ATTACHED = ClusterEvent(EventResource.VOLUME_ATTACHMENT, Action.ADD)
DETACHED = ClusterEvent(EventResource.VOLUME_ATTACHMENT, Action.DELETE)

READS = {"gcePersistentDisk": {"pdName": "d", "readOnly": True}}
WRITES = {"gcePersistentDisk": {"pdName": "d"}}
EBS_DISK = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
PLAIN = {"configMap": {"name": "x"}}
EPHEMERAL: Body = {"ephemeral": {}}
NODE = node("n").build()


def uses(claim: str) -> Body:
    return {"persistentVolumeClaim": {"claimName": claim}}


def p(*volumes: Body, on: str = "n", namespace: str = "default") -> Any:
    return pod("other", on=on).volumes(*volumes).namespace(namespace).build()


def me(*volumes: Body) -> Any:
    return pod("me").volumes(*volumes).build()


def a_claim(name: str, namespace: str = "default") -> PersistentVolumeClaim:
    return persistent_volume_claim(name).namespace(namespace).build()


def a_volume(**labels: str) -> PersistentVolume:
    return persistent_volume("v").labels(labels).build()


def a_class(mode: str | None) -> StorageClass:
    return msgspec.structs.replace(storage_class("s").build(), volume_binding_mode=mode)


def an_attachment(attacher: str) -> VolumeAttachment:
    return msgspec.convert({"metadata": {"name": "at"}, "spec": {"attacher": attacher}}, VolumeAttachment)


CASES: Sequence[Any] = [
    # (plugin, event, rejected pod, object before, object after, wakes)
    (VolumeRestrictions, GONE, me(uses("c")), p(uses("c")), None, True),
    (VolumeRestrictions, GONE, me(uses("c")), p(uses("d")), None, False),
    (VolumeRestrictions, GONE, me(uses("c")), p(uses("c"), namespace="away"), None, False),
    (VolumeRestrictions, GONE, me(READS), p(WRITES), None, True),
    (VolumeRestrictions, GONE, me(READS), p(READS), None, False),
    (VolumeRestrictions, GONE, me(READS), p(PLAIN), None, False),
    (VolumeRestrictions, POD_ADDED, me(WRITES), None, p(WRITES), False),
    (VolumeRestrictions, NODE_ADDED, me(uses("c")), None, NODE, True),
    (VolumeRestrictions, LABELLED, me(uses("c")), NODE, NODE, False),
    (VolumeRestrictions, CLAIM_ADDED, me(uses("c")), None, a_claim("c"), True),
    (VolumeRestrictions, CLAIM_ADDED, me(uses("c")), None, a_claim("d"), False),
    (VolumeRestrictions, CLAIM_ADDED, me(uses("c")), None, a_claim("c", "away"), False),
    (VolumeRestrictions, CLAIM_CHANGED, me(uses("c")), a_claim("c"), a_claim("c"), False),
    (NodeVolumeLimits, CSI_ADDED, me(uses("c")), None, drivers("n").build(), True),
    (NodeVolumeLimits, CSI_CHANGED, me(uses("c")), drivers("n", a=1).build(), drivers("n", a=2).build(), True),
    (NodeVolumeLimits, CSI_CHANGED, me(uses("c")), drivers("n", a=1).build(), drivers("n", a=None).build(), True),
    (NodeVolumeLimits, CSI_CHANGED, me(uses("c")), drivers("n").build(), drivers("n", a=1).build(), True),
    (NodeVolumeLimits, CSI_CHANGED, me(uses("c")), drivers("n", a=2, b=1).build(), drivers("n", a=1, b=1).build(), False),
    (NodeVolumeLimits, GONE, me(uses("c")), p(uses("d")), None, True),
    (NodeVolumeLimits, GONE, me(uses("c")), p(EPHEMERAL), None, True),
    (NodeVolumeLimits, GONE, me(uses("c")), p(EBS_DISK), None, True),
    (NodeVolumeLimits, GONE, me(uses("c")), p(uses("d"), on=""), None, False),
    (NodeVolumeLimits, GONE, me(uses("c")), p(PLAIN, {"iscsi": {"iqn": "i"}}), None, False),
    (NodeVolumeLimits, NODE_ADDED, me(uses("c")), None, NODE, True),  # until its CSINode comes, it takes any number
    (NodeVolumeLimits, POD_ADDED, me(uses("c")), None, p(uses("c")), True),
    (NodeVolumeLimits, POD_ADDED, me(uses("c")), None, p(uses("d")), False),
    (VolumeRestrictions, GONE, me(READS), p(WRITES, namespace="away"), None, True),
    (NodeVolumeLimits, CLAIM_ADDED, me(uses("c")), None, a_claim("c"), True),
    (NodeVolumeLimits, CLAIM_ADDED, me(EPHEMERAL), None, a_claim("me-volume-0"), True),
    (NodeVolumeLimits, CLAIM_ADDED, me(EPHEMERAL), None, a_claim("you-volume-0"), False),
    (NodeVolumeLimits, DETACHED, me(uses("c")), an_attachment("a"), None, True),
    (NodeVolumeLimits, DETACHED, me(EBS_DISK), an_attachment(EBS), None, True),
    (NodeVolumeLimits, DETACHED, me(EBS_DISK), an_attachment(GCE), None, False),
    (NodeVolumeLimits, DETACHED, me(PLAIN), an_attachment(EBS), None, False),
    (NodeVolumeLimits, ATTACHED, me(uses("c")), None, an_attachment("a"), False),
    (VolumeZone, CLASS_ADDED, me(uses("c")), None, a_class("WaitForFirstConsumer"), True),
    (VolumeZone, CLASS_ADDED, me(uses("c")), None, a_class("Immediate"), False),
    (VolumeZone, CLASS_ADDED, me(uses("c")), None, a_class(None), False),
    (VolumeZone, NODE_ADDED, me(uses("c")), None, NODE, True),
    (VolumeZone, LABELLED, me(uses("c")), NODE, NODE, True),
    (VolumeZone, NODE_GONE, me(uses("c")), NODE, None, False),
    (VolumeZone, CLAIM_ADDED, me(uses("c")), None, a_claim("c"), True),
    (VolumeZone, CLAIM_CHANGED, me(uses("c")), a_claim("c"), a_claim("c"), True),
    (VolumeZone, CLAIM_CHANGED, me(uses("c")), a_claim("d"), a_claim("d"), False),
    (VolumeZone, VOLUME_ADDED, me(uses("c")), None, a_volume(), True),
    (VolumeZone, VOLUME_CHANGED, me(uses("c")), a_volume(**{GA: "z1"}), a_volume(**{GA: "z2"}), True),
    (VolumeZone, VOLUME_CHANGED, me(uses("c")), a_volume(**{GA: "z1__z2"}), a_volume(**{GA: "z2__z1"}), False),
    (VolumeZone, VOLUME_CHANGED, me(uses("c")), a_volume(**{BETA: "z"}), a_volume(**{BETA: "z", "x": "y"}), False),
    (VolumeZone, GONE, me(uses("c")), p(uses("c")), None, False),
]


@pytest.mark.parametrize(("plugin", "event", "rejected", "old", "new", "wakes"), CASES)
def test_an_event_wakes_the_pods_that_it_could_help_and_no_others(
    plugin: type[Any], event: ClusterEvent, rejected: Any, old: Any, new: Any, wakes: bool
) -> None:
    asked = [known for known in build(plugin, Cluster()).events() if event.concerns(known.event)]
    assert any(known.hint(rejected, old, new) is QueueingHint.QUEUE for known in asked) is wakes


@pytest.mark.parametrize("plugin", [VolumeRestrictions, NodeVolumeLimits, VolumeZone])
def test_an_object_of_another_kind_helps_nobody(plugin: type[Any]) -> None:
    hints = [known.hint for known in build(plugin, Cluster()).events() if known.event.resource is not EventResource.NODE]
    conditional = [hint for hint in hints if hint.__name__ != "always"]
    assert conditional
    assert all(hint(me(uses("c")), object(), object()) is QueueingHint.SKIP for hint in conditional)


#: Kinds of events that help under the rule VolumeLimitScaling alone: (event, object before, object after, wakes).
NEEDED, OPTIONAL = csi_driver("a").spec(preventPodSchedulingIfMissing=True).build(), csi_driver("a").build()
SCALING: Sequence[Any] = [
    (CSI_CHANGED, drivers("n").build(), drivers("n", a=None).build(), True),
    (CSI_CHANGED, drivers("n", a=None).build(), drivers("n", a=None).build(), False),
    (CSI_CHANGED, drivers("n", a=None).build(), drivers("n").build(), False),
    (CSI_GONE, drivers("n").build(), None, True),  # in-tree volumes need no driver on a node without a CSINode
    (DRIVER_CHANGED, NEEDED, OPTIONAL, True),
    (DRIVER_CHANGED, OPTIONAL, NEEDED, False),
    (DRIVER_CHANGED, NEEDED, NEEDED, False),
    (DRIVER_GONE, NEEDED, None, True),
    (DRIVER_GONE, OPTIONAL, None, False),
    (CLAIM_CHANGED, a_claim("c"), a_claim("c"), True),  # it may be bound to a volume of another driver now
    (CLAIM_CHANGED, a_claim("d"), a_claim("d"), False),
]


@pytest.mark.parametrize(("event", "old", "new", "wakes"), SCALING)
def test_under_the_rules_of_1_37_drivers_that_are_installed_or_no_longer_needed_help(
    event: ClusterEvent, old: Any, new: Any, wakes: bool
) -> None:
    answers = {}
    for version in ("1.36", "1.37"):
        asked = [known for known in build(NodeVolumeLimits, Cluster(), compatibility=version).events() if event.concerns(known.event)]
        answers[version] = any(known.hint(me(uses("c")), old, new) is QueueingHint.QUEUE for known in asked)
    assert answers == {"1.36": False, "1.37": wakes}
