"""Random worlds of pods with volumes, kept as plain dictionaries and as the cluster's columns, where anything may change at any time."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any

import numpy as np
from pairwise import build, rejections
from pairwise_worlds import Body, Dice, World, info

from placewright.api.compatibility import AUTO
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import CycleState
from placewright.framework.status import Code, Status

NODES = ("n0", "n1", "n2")
UIDS = "12345"
GA, BETA = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
REGION, BETA_REGION = "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"
EBS, GCE = "ebs.csi.aws.com", "pd.csi.storage.gke.io"
ZONES = ("z1", "z2", "z1__z2", "z2__", "us-east-a", "us-east-a__us-east-b", "us-east-a__eu-west-b")
MADE_BY = {
    "wait": "a",
    "now": "a",
    "aws": "kubernetes.io/aws-ebs",
    "files": "kubernetes.io/azure-file",
    "odd": "a",
}
SOURCES: tuple[Body, ...] = (
    {"csi": {"driver": "a", "volumeHandle": "h0"}},
    {"csi": {"driver": "a", "volumeHandle": "h1"}},
    {"csi": {"driver": EBS, "volumeHandle": "vol-1"}},
    {"csi": {"driver": GCE, "volumeHandle": "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d1"}},
    {"awsElasticBlockStore": {"volumeID": "vol-1"}},
    {"awsElasticBlockStore": {"volumeID": "aws://z1/vol-1"}},
    {"awsElasticBlockStore": {"volumeID": "aws://z1/disk"}},
    {"gcePersistentDisk": {"pdName": "d1"}},
    {"azureFile": {"shareName": "s", "secretName": "k"}},
    {"hostPath": {"path": "/tmp"}},
)


class StorageDice(Dice):
    """Chance, for volumes; few names, so that things meet."""

    def storage(self) -> tuple[str, Body]:
        """Any storage object: its kind and its body."""
        kinds = [self.claim, self.claim, self.volume, self.volume, self.csi_node, self.storage_class, self.attachment]
        return self.choice(kinds)()

    def claim(self) -> tuple[str, Body]:
        pod = self.choice(UIDS)
        owners = [{"kind": "Pod", "name": f"p{pod}", "uid": self.choice([pod, pod, "9"]), "controller": True}]
        spec: Body = {"accessModes": [self.choice(["ReadWriteOnce", "ReadWriteOnce", "ReadWriteOncePod"])]}
        if self.maybe(0.6):
            spec["volumeName"] = self.choice(["v0", "v1", "v2", "v3", "v4"])
        if self.maybe(0.8):
            spec["storageClassName"] = self.choice(list(MADE_BY))
        name = self.choice(["c0", "c1", "c2", "c3", f"p{pod}-eph", "p0-eph"])
        meta = {"name": name, "namespace": self.choice(["home", "home", "away"]), "ownerReferences": owners}
        return "PersistentVolumeClaim", {"metadata": meta, "spec": spec}

    def volume(self) -> tuple[str, Body]:
        zone = self.choice(ZONES)
        labels = {key: zone for key in (GA, BETA) if self.maybe(0.3)}
        if self.maybe(0.2):
            labels[self.choice([REGION, BETA_REGION])] = self.choice(["r1", "r2"])
        meta = {"name": self.choice(["v0", "v1", "v2", "v3"]), "labels": labels}
        return "PersistentVolume", {"metadata": meta, "spec": self.choice(SOURCES)}

    def csi_node(self) -> tuple[str, Body]:
        drivers = [
            {"name": name} | ({"allocatable": {"count": self.randint(0, 3)}} if self.maybe(0.8) else {})
            for name in ("a", EBS, GCE)
            if self.maybe(0.8)
        ]
        return "CSINode", {"metadata": {"name": self.choice(NODES)}, "spec": {"drivers": drivers}}

    def storage_class(self) -> tuple[str, Body]:
        name = self.choice(list(MADE_BY))
        mode = {"now": "Immediate", "odd": None}.get(name, "WaitForFirstConsumer")
        return "StorageClass", {"metadata": {"name": name}, "provisioner": MADE_BY[name], "volumeBindingMode": mode}

    def attachment(self) -> tuple[str, Body]:
        named = {"persistentVolumeName": self.choice(["v0", "v1", "v2", "v4"])}
        source = named if self.maybe(0.8) else {"inlineVolumeSpec": {}}
        spec = {"attacher": self.choice(["a", EBS]), "nodeName": self.choice(NODES), "source": source}
        return "VolumeAttachment", {"metadata": {"name": self.choice(["at0", "at1", "at2"])}, "spec": spec}

    def pod_with_volumes(self, uid: str) -> Body:
        """A pod with a volume or two."""
        volumes = [self.pod_volume() | {"name": self.choice(["eph", "other"])} for _ in range(self.randint(1, 2))]
        meta = {"uid": uid, "name": f"p{uid}", "namespace": self.choice(["home", "home", "home", "away"])}
        return {"metadata": meta, "spec": {"volumes": volumes}}

    def pod_volume(self) -> Body:
        read_only = {"readOnly": self.maybe(0.5)}
        claim = {"persistentVolumeClaim": {"claimName": self.choice(["c0", "c1", "c2", "c3"])}}
        others = [
            {"ephemeral": {"volumeClaimTemplate": {}}},
            {"configMap": {"name": "x"}},
            {"gcePersistentDisk": {"pdName": self.choice(["d1", "d2"])} | read_only},
            {"awsElasticBlockStore": {"volumeID": self.choice(["vol-1", "vol-2", "aws://z1/vol-1"])} | read_only},
            {"iscsi": {"iqn": self.choice(["i1", "i2"])} | read_only},
            {"rbd": {"monitors": self.sample("mno", 2), "pool": self.choice("st"), "image": "i"} | read_only},
            {"azureFile": {"shareName": "s", "secretName": "k"}},
        ]
        return claim if self.maybe(0.3) else self.choice(others)

    def zoned_node(self, name: str) -> Body:
        """A node with any of the zone labels."""
        places = {GA: ["z1", "z2"], BETA: ["z1", "z2", "us-east-a"], REGION: ["r1"], BETA_REGION: ["r1", "r2"]}
        labels = {key: self.choice(values) for key, values in places.items() if self.maybe(0.4)}
        return {"metadata": {"name": name, "labels": labels}}


def populate(world: World, dice: StorageDice) -> None:
    """Everything, in any order."""
    for _ in range(dice.randint(5, 30)):
        world.put(*dice.storage())
    for name in NODES:
        world.set_node(dice.zoned_node(name))
    for uid in UIDS:
        world.place(dice.pod_with_volumes(uid), dice.choice(NODES))


def happen(world: World, dice: StorageDice) -> None:
    """Change one thing."""
    match dice.randrange(8):
        case 0 | 1 | 2:
            world.put(*dice.storage())
        case 3:
            world.drop(*dice.storage())
        case 4:
            world.remove_pod(dice.choice(UIDS))
        case 5:
            world.remove_node(dice.choice(NODES))
        case 6:
            world.set_node(dice.zoned_node(dice.choice(NODES)))
        case _:
            world.place(dice.pod_with_volumes(dice.choice(UIDS)), dice.choice(NODES))


#: What a plugin said: of the pod as a whole, before any node, and by node.
Said = tuple[Status, dict[str, Status]]


def said(plugin: Any, cluster: Cluster, pod: PodInfo) -> Said:
    """The PreFilter's status, and why the plugin rejects a node, by name. Holds Filter and explain together."""
    state, rows = CycleState(), cluster.rows()
    status = plugin.pre_filter(state, pod, cluster).status
    if not status.ok:
        return status, {}
    by_node = rejections(plugin, state, cluster, pod)
    for row in rows:  # alone, a row is answered as it is among the others
        [alone] = plugin.filter(state, pod, cluster, np.array([row], np.intp))
        assert alone != (str(cluster.names[row]) in by_node)
    return status, by_node


#: Why the pod is refused as a whole (or ""), and by node; None where the plugin has nothing to say.
Reading = Callable[[World, Body], tuple[str, dict[str, str]] | None]


def differences(
    kind: type[Any],
    reading: Reading,
    seed: int,
    steps: int = 25,
    chance: type[StorageDice] = StorageDice,
    args: Body | None = None,
    compatibility: str = AUTO,
) -> list[str]:
    """Let things happen to a world; where the plugin does not say what the scalar reading says, or breaks what its fingerprint promises."""
    dice, world = chance(seed), World()
    plugin = build(kind, world.cluster, args, compatibility)
    columns: dict[Hashable, list[bool]] = {}
    found: list[str] = []

    def compare(pod: Body) -> None:
        found.extend(_differences(plugin, reading, world, pod))
        found.extend(_broken_promises(plugin, world.cluster, info(pod), columns))

    populate(world, dice)
    for _ in range(steps):
        happen(world, dice)
        pod = dice.pod_with_volumes("0")
        compare(pod)
        node = dice.choice(NODES)
        if node in world.nodes:
            with world.without(node, dice.sample(UIDS, dice.randint(1, 4))):
                compare(pod)
            compare(pod)
    return found


def _differences(plugin: Any, reading: Reading, world: World, pod: Body) -> Iterator[str]:
    expected = reading(world, pod)
    status, by_node = said(plugin, world.cluster, info(pod))
    answer = status.message, {name: verdict.message for name, verdict in by_node.items()}
    if expected is None:
        if not (status.code is Code.SKIP or (status.ok and not by_node)):
            yield f"{answer}, and the rules have nothing to say"
    elif answer != expected:
        yield f"{answer}, and by the rules {expected}"


def _broken_promises(plugin: Any, cluster: Cluster, pod: PodInfo, columns: dict[Hashable, list[bool]]) -> Iterator[str]:
    """Equal fingerprints promise equal columns, whatever happened in between."""
    state = CycleState()
    if plugin.pre_filter(state, pod, cluster).status.ok:
        column = plugin.filter(state, pod, cluster, np.arange(cluster.size)).tolist()
        before = columns.setdefault(plugin.fingerprint(state, cluster), column)
        if before != column:
            yield f"one fingerprint for {before} and for {column}"
