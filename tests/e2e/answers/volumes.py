"""Random nodes, volumes, claims and pods, of all sorts that kube-scheduler 1.20 and 1.36 both know.

Left out: ReadWriteOncePod, ephemeral volumes and storage capacity, which 1.20 does not have; and the annotation by which a node says that
CSI drivers have taken over from in-tree plugins, which 1.20 passes over unless its feature gates are on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from e2e.answers.comparing import Object
from e2e.answers.randomcluster import HOST, Dice
from placewright.api.compatibility import Rule

NODES: Final = 12
NAMESPACE: Final = "default"
#: What KUBE_MAX_PD_VOLS says, and our plugins' argument: small, so that it is met.
MOST_DISKS: Final = 4
GA: Final = "topology.kubernetes.io/zone"
BETA: Final = "failure-domain.beta.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
BETA_REGION: Final = "failure-domain.beta.kubernetes.io/region"
#: Rules that 1.36 has behind feature gates, and 1.37 by default.
LATER: Final = (Rule.STORAGE_CAPACITY_SCORING, Rule.VOLUME_LIMIT_SCALING)
COMPLETED: Final = "pv.kubernetes.io/bind-completed"
SELECTED: Final = "volume.kubernetes.io/selected-node"
EBS: Final = "kubernetes.io/aws-ebs"

_ZONES: Final = ("us-east1-a", "us-east1-b", "us-west1-a")
_ATTACHABLE: Final = tuple(f"attachable-volumes-{kind}" for kind in ("aws-ebs", "gce-pd", "azure-disk", "cinder"))
_DRIVERS: Final = ("a.example.com", "b.example.com", "ebs.csi.aws.com", "pd.csi.storage.gke.io", "disk.csi.azure.com")
_WAITS: Final = "WaitForFirstConsumer"
_IN_A: Final = [{"matchLabelExpressions": [{"key": GA, "values": ["us-east1-a", "us-west1-a"]}]}]
CLASSES: Final[tuple[Object, ...]] = (
    {"metadata": {"name": "static"}, "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": _WAITS},
    {"metadata": {"name": "made"}, "provisioner": "a.example.com", "volumeBindingMode": _WAITS},
    {"metadata": {"name": "zonal"}, "provisioner": "b.example.com", "volumeBindingMode": _WAITS, "allowedTopologies": _IN_A},
    {"metadata": {"name": "ebs"}, "provisioner": EBS, "volumeBindingMode": _WAITS},
    {"metadata": {"name": "now"}, "provisioner": "a.example.com", "volumeBindingMode": "Immediate"},
)


@dataclass
class Storage:
    """What is there before the first pod.

    Attributes:
        bound: claims, each with its volume.
        waiting: claims that wait for their first consumer, or for something that never comes.
        doomed: claims that are deleted, but stay.
        free: volumes for whoever fits, and with the phase in which they are; not all of them are available.
    """

    bound: list[tuple[Object, Object]] = field(default_factory=list)
    waiting: list[Object] = field(default_factory=list)
    doomed: list[Object] = field(default_factory=list)
    free: list[Object] = field(default_factory=list)

    def names(self) -> list[str]:
        """Of all claims; and one that nobody made."""
        claims = [*(claim for claim, _ in self.bound), *self.waiting, *self.doomed]
        return [*(claim["metadata"]["name"] for claim in claims), "nobody-made-it"]


class VolumeDice(Dice):
    """Chance, for volumes."""

    def zoned(self) -> dict[str, str]:
        """Zone labels as nodes of several ages have them: old, new, both, or none."""
        zone, keys = self.choice(_ZONES), self.choice(((GA,), (GA,), (BETA,), (GA, BETA), (GA, BETA), ()))
        labels = dict.fromkeys(keys, zone)
        if self.maybe(0.3):
            labels |= {(REGION if key == GA else BETA_REGION): zone.rpartition("-")[0] for key in keys}
        return labels

    def storage_node(self, number: int) -> Object:
        """A node; some say how many disks they take, some run on Nitro."""
        name = f"node-{number:02}"
        machine = {"node.kubernetes.io/instance-type": "m5.large"} if self.maybe(0.3) else {}
        taken = {resource: str(self.randint(0, 3)) for resource in _ATTACHABLE if self.maybe(0.35)}
        resources = {"cpu": "64", "memory": "64Gi", "pods": "110", **taken}
        metadata = {"name": name, "labels": {HOST: name, **self.zoned(), **machine}}
        return {"metadata": metadata, "status": {"allocatable": resources, "capacity": resources}}

    def csi_node(self, name: str) -> Object:
        """The node's CSI drivers, most of them with a limit."""
        drivers = [
            {"name": driver, "nodeID": name, "topologyKeys": None}
            | ({"allocatable": {"count": self.randint(1, 3)}} if self.maybe(0.8) else {})
            for driver in _DRIVERS
            if self.maybe(0.7)
        ]
        return {"metadata": {"name": name}, "spec": {"drivers": drivers}}

    def drivers(self) -> list[Object]:
        """CSI drivers; some must be installed where their volumes are used, some report their capacity."""
        return [
            {
                "metadata": {"name": name},
                "spec": {"storageCapacity": name in _DRIVERS[:2], "preventPodSchedulingIfMissing": self.maybe(0.7)},
            }
            for name in _DRIVERS[:4]
        ]

    def capacities(self) -> list[Object]:
        """At most one for a class and a node: kube-scheduler takes any of several."""
        found = []
        for storage_class in ("made", "zonal"):
            for number in range(NODES):
                largest = {"maximumVolumeSize": f"{self.randint(3, 9)}Gi"} if self.maybe(0.3) else {}
                body = {"storageClassName": storage_class, "capacity": f"{self.randint(1, 20)}Gi", **largest}
                topology = {"nodeTopology": {"matchLabels": {HOST: f"node-{number:02}"}}}
                if self.maybe(0.8):
                    found.append({"metadata": {"name": f"{storage_class}-{number:02}", "namespace": NAMESPACE}, **body, **topology})
        return found

    def storage(self, made: int) -> Storage:
        """Claims, so many of them to be provisioned, and volumes."""
        found = Storage()
        for number in range(22):
            claim = _claim(f"bound-{number:02}", volumeName=f"pv-bound-{number:02}", storageClassName="static")
            claim["metadata"]["annotations"] = {COMPLETED: "yes"}
            found.bound.append((claim, self.volume(f"pv-bound-{number:02}")))
        found.waiting += [self._waiting(f"static-{number:02}", "static") for number in range(18)]
        found.waiting += [self._waiting(f"made-{number:02}", self.choice(("made", "zonal", "ebs"))) for number in range(made)]
        gone = _claim("gone", volumeName="pv-gone", storageClassName=self.choice(("static", "ebs")))
        gone["metadata"]["annotations"] = {COMPLETED: "yes"}
        stuck = _claim("stuck", storageClassName="made")
        stuck["metadata"]["annotations"] = {SELECTED: "node-99"}
        found.waiting += [gone, stuck, _claim("now", storageClassName="now"), _claim("pre", volumeName="pv-9", storageClassName="static")]
        found.doomed += [_claim("doomed", storageClassName="made")]
        found.free += [self._free(f"pv-free-{number:02}") for number in range(14)]
        return found

    def _waiting(self, name: str, storage_class: str) -> Object:
        claim = _claim(name, storageClassName=storage_class)
        claim["spec"]["resources"] = {"requests": {"storage": f"{self.randint(1, 6)}Gi"}}
        if storage_class == "static" and self.maybe(0.25):
            claim["spec"]["selector"] = {"matchLabels": {"disk": "ssd"}}
        if storage_class == "static" and self.maybe(0.3):
            claim["spec"]["volumeMode"] = "Block"
        return claim

    def volume(self, name: str) -> Object:
        """A volume with any source, reached from anywhere, or from where its labels or its affinity say."""
        labels: dict[str, str] = {}
        if self.maybe(0.5):
            zone = self.choice((*_ZONES, *_ZONES, "us-east1-a__us-east1-b", "us-east1-b__us-west1-a", "us-east1-a____us-east1-b"))
            labels = dict.fromkeys(self.choice(((GA,), (BETA,), (BETA,), (GA, BETA))), zone)
        spec: Object = {"capacity": {"storage": f"{self.randint(1, 8)}Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "static"}
        spec |= self._source()
        if self.maybe(0.4):
            spec["nodeAffinity"] = self._affinity()
        return {"metadata": {"name": name, "labels": labels}, "spec": spec}

    def _free(self, name: str) -> Object:
        volume = self.volume(name)
        volume["metadata"]["labels"] = {"disk": self.choice(("ssd", "hdd"))}
        volume["spec"]["volumeMode"] = "Block" if self.maybe(0.35) else "Filesystem"
        volume["spec"]["accessModes"] = self.choice((["ReadWriteOnce"], ["ReadWriteOnce", "ReadOnlyMany"], ["ReadOnlyMany"]))
        volume["spec"]["nodeAffinity"] = self._affinity()
        volume["status"] = {"phase": self.choice(("Available", "Available", "Released"))}
        return volume

    def _affinity(self) -> Object:
        hosts = [f"node-{number:02}" for number in self.sample(range(NODES), 5)]
        choices = (
            {"key": HOST, "operator": "In", "values": hosts},
            {"key": HOST, "operator": "NotIn", "values": hosts},
            {"key": GA, "operator": "In", "values": self.some(_ZONES, 2)},
            {"key": BETA, "operator": "Exists"},
        )
        terms = [{"matchExpressions": [each]} for each in self.some(choices, 2)]
        return {"required": {"nodeSelectorTerms": terms}}

    def _source(self) -> Object:
        csi = {"csi": {"driver": self.choice(_DRIVERS[:2]), "volumeHandle": f"handle-{self.randint(1, 9)}"}}
        shared = {"csi": {"driver": "ebs.csi.aws.com", "volumeHandle": f"vol-{self.randint(1, 12)}"}}
        own = self._disk()
        return self.choice((csi, csi, shared, own, own, {"hostPath": {"path": "/data"}}))

    def _disk(self) -> Object:
        number = self.randint(1, 6)
        managed = {"diskName": f"az-{number}", "diskURI": f"/subscriptions/s/az-{number}", "kind": "Managed"}
        ebs = {"awsElasticBlockStore": {"volumeID": f"vol-{self.randint(1, 12)}"}}
        return self.choice(
            (
                ebs,
                ebs,
                {"gcePersistentDisk": {"pdName": f"disk-{number}"}},
                {"azureDisk": managed},
                {"cinder": {"volumeID": f"cinder-{number}"}},
            )
        )

    def pod_with_volumes(self, name: str, claims: list[str]) -> Object:
        """A pod that asks for nothing but volumes; no claim twice, whose node 1.20 would write twice, the second time in vain."""
        left = self.sample(claims, len(claims))
        volumes = [{"name": f"v{i}", **self._use(left)} for i in range(self.choice((1, 1, 2, 3)))]
        containers = [{"name": "c", "image": "registry.example/tiny:1"}]
        return {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": {"containers": containers, "volumes": volumes}}

    def _use(self, claims: list[str]) -> Object:
        if self.maybe(0.5):
            return {"persistentVolumeClaim": {"claimName": claims.pop()}}
        read_only = {"readOnly": self.maybe(0.6)}
        iscsi = {"targetPortal": "10.0.0.1:3260", "iqn": f"iqn.2001-04.com.example:disk{self.randint(1, 3)}", "lun": 0}
        rbd = {"monitors": self.sample(("10.0.0.1", "10.0.0.2", "10.0.0.3"), 2), "pool": "p", "image": f"i{self.randint(1, 3)}"}
        disk = self._disk()
        for kind in disk.keys() & {"gcePersistentDisk"}:
            disk = {kind: disk[kind] | read_only}
        return self.choice((disk, disk, disk, {"iscsi": iscsi | read_only}, {"rbd": rbd | read_only}, {"emptyDir": {}}))


def _claim(name: str, **spec: Any) -> Object:
    body = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    return {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": body}
