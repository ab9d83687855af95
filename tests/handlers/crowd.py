"""A cluster with something of everything, and crowds of pods that ask for anything: what the checker of placements is let loose on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from manifest import Object, manifest

Demand = Callable[[str, Object, Object], None]
"""Takes the name of an application, the spec of its pods, and their container."""
HOST, ZONE, REGION = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
NAMESPACES = ("shop", "bank")
#: Nodes by region; the third zone is alone in its region.
ZONES = {"zone-a": "us-west-2", "zone-b": "us-west-2", "zone-c": "us-east-1"}
#: How pods come by their volumes: by class, by one claim for all pods of an application, by one disk for all of them.
STORAGE = ("standard", "at-once", "limited", "local", "shared", "disk")
#: A driver that puts one volume on a node and no more.
LIMITED = "limited.test/disks"


def cluster() -> list[Object]:
    """Twelve nodes over three zones: tainted, with GPUs, cordoned, small; a class for every way to get a volume; local volumes."""
    nodes = [_node(number, zone, region) for number, (zone, region) in enumerate(sorted(ZONES.items()) * 4)]
    classes = [
        _class("standard", "example.test/disks", waits=True, default=True),
        _class("at-once", "example.test/disks", waits=False),
        _class("limited", LIMITED, waits=True),
        _class("local", "kubernetes.io/no-provisioner", waits=True),
    ]
    drivers = [{"name": LIMITED, "nodeID": "n", "topologyKeys": [HOST], "allocatable": {"count": 1}}]
    limits = [manifest("storage.k8s.io/v1", "CSINode", node["metadata"]["name"], spec={"drivers": drivers}) for node in nodes]
    priorities = [manifest("scheduling.k8s.io/v1", "PriorityClass", "harmless", value=0, preemptionPolicy="Never")]
    spaces = [manifest("v1", "Namespace", name, {"labels": {"team": name}}) for name in NAMESPACES]
    return [*spaces, *priorities, *nodes, *classes, *limits, *(_local_volume(f"local-{n}", n % 4) for n in range(10))]


def _node(number: int, zone: str, region: str) -> Object:
    """Number 0 to 2 are tainted, 3 and 4 have GPUs that want to be asked for, 5 is cordoned, 6 is small, 7 knows no zone."""
    labels = {HOST: f"n{number}", "kubernetes.io/os": "linux", "generation": str(number), "region": region, REGION: region}
    if number != 7:
        labels[ZONE] = zone
    amounts = {"cpu": "2" if number == 6 else "8", "memory": "32Gi", "pods": "20"}
    spec: Object = {}
    if number < 3:
        spec["taints"] = [{"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}]
    elif number < 5:
        amounts["nvidia.com/gpu"] = "8"
        spec["taints"] = [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]
    elif number == 5:
        spec["unschedulable"] = True
    return manifest("v1", "Node", f"n{number}", {"labels": labels}, spec=spec, status={"capacity": amounts, "allocatable": amounts})


def _class(name: str, provisioner: str, *, waits: bool, default: bool = False) -> Object:
    mode = "WaitForFirstConsumer" if waits else "Immediate"
    meta = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}} if default else {}
    return manifest("storage.k8s.io/v1", "StorageClass", name, meta, provisioner=provisioner, volumeBindingMode=mode)


def _local_volume(name: str, number: int) -> Object:
    terms = [{"matchExpressions": [{"key": HOST, "operator": "In", "values": [f"n{8 + number}"]}]}]
    spec = {"capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local"}
    affinity = {"required": {"nodeSelectorTerms": terms}}
    return manifest("v1", "PersistentVolume", name, spec={**spec, "local": {"path": "/disk"}, "nodeAffinity": affinity})


class Crowd:
    """Random applications. The pods of one are alike, so that what spreads them holds at the end if it held at every step.

    The first ones ask for nothing but a volume, one of each kind, for seven pods: more than there are nodes for pods that ask for nothing
    special, so that what must not share a node, or a claim, would be bound to.

    Attributes:
        objects: claims.
        pods: every pod, shuffled.
    """

    def __init__(self, seed: int, applications: int = 30) -> None:
        self._random = Random(seed)
        self.objects: list[Object] = []
        self.pods: list[Object] = []
        for number, storage in enumerate(STORAGE):
            self._application(f"plain-{number}", storage, 7, [])
        for number in range(applications - len(STORAGE)):
            storage = self._random.choice(["", "", "", *STORAGE])
            demands = self._random.sample(self._demands(), self._random.choice([0, 1, 1, 2, 2, 3]))
            self._application(f"app-{number}", storage, self._random.choice([1, 2, 4, 7]), demands)
        self._random.shuffle(self.pods)

    def _demands(self) -> list[Demand]:
        return [self._place, self._tolerate, self._gpus, self._port, self._apart, self._together, self._spread]

    def _application(self, name: str, storage: str, replicas: int, demands: Sequence[Demand]) -> None:
        namespace = self._random.choice(NAMESPACES)
        spec: Object = {"priorityClassName": "harmless", "tolerations": [], "affinity": {}, "volumes": []}
        requests = {"cpu": self._random.choice(["100m", "500m", "1500m"]) if demands else "50m", "memory": "256Mi"}
        container: Object = {"name": "main", "image": "example.test/main", "resources": {"requests": requests}}
        for demand in demands:
            demand(name, spec, container)
        for number in range(replicas):
            pod = f"{name}-{number}"
            volumes = self._volume(name, pod, namespace, storage)
            meta = {"labels": {"app": name}, "namespace": namespace}
            self.pods.append(manifest("v1", "Pod", pod, meta, spec={**spec, "containers": [container], "volumes": volumes}))

    def _place(self, _: str, spec: Object, __: Object) -> None:
        terms = [
            {"matchExpressions": [{"key": "generation", "operator": "Gt", "values": ["8"]}]},
            {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["zone-a", "zone-c"]}]},
            {"matchExpressions": [{"key": ZONE, "operator": "DoesNotExist"}, {"key": HOST, "operator": "Exists"}]},
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n11"]}]},
            {"matchExpressions": [{"key": ZONE, "operator": "NotIn", "values": ["zone-b"]}, {"key": ZONE, "operator": "Exists"}]},
        ]
        chosen = self._random.sample(terms, self._random.choice([1, 1, 2]))
        spec["affinity"]["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": chosen}}
        if self._random.random() < 0.3:
            spec["nodeSelector"] = {REGION: "us-west-2"}

    def _tolerate(self, _: str, spec: Object, __: Object) -> None:
        several = [
            {"key": "kwok.x-k8s.io/node", "operator": "Exists", "effect": "NoSchedule"},
            {"key": "kwok.x-k8s.io/node", "operator": "Equal", "value": "real", "effect": "NoSchedule"},
            {"operator": "Exists"},
        ]
        spec["tolerations"].append(self._random.choice(several))

    def _gpus(self, _: str, spec: Object, container: Object) -> None:
        amount = self._random.choice(["1", "1", "3"])
        container["resources"] = {**container["resources"], "limits": {"nvidia.com/gpu": amount}}
        container["resources"]["requests"]["nvidia.com/gpu"] = amount
        spec["tolerations"].append({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"})

    def _port(self, _: str, __: Object, container: Object) -> None:
        container["ports"] = [{"containerPort": 80, "hostPort": self._random.choice([80, 443])}]

    def _other(self, name: str) -> str:
        """Itself, more often than another."""
        return self._random.choice([name, name, "app-0", "app-1"])

    def _term(self, app: str) -> Object:
        key = self._random.choice([HOST, HOST, ZONE])
        term: Object = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}
        by_team = {"namespaceSelector": {"matchLabels": {"team": "bank"}}}
        return {**term, **self._random.choice([{}, {}, {"namespaceSelector": {}}, {"namespaces": [NAMESPACES[0]]}, by_team])}

    def _apart(self, name: str, spec: Object, _: Object) -> None:
        spec["affinity"]["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [self._term(self._other(name))]}

    def _together(self, name: str, spec: Object, _: Object) -> None:
        spec["affinity"]["podAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [self._term(self._other(name))]}

    def _spread(self, name: str, spec: Object, _: Object) -> None:
        constraint = {
            "topologyKey": self._random.choice([ZONE, HOST]),
            "maxSkew": self._random.choice([1, 2]),
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": name}},
        }
        more: list[Object] = [{}, {}, {"minDomains": 4}, {"nodeTaintsPolicy": "Honor"}, {"nodeAffinityPolicy": "Ignore"}]
        spec["topologySpreadConstraints"] = [{**constraint, **self._random.choice(more)}]

    def _volume(self, app: str, pod: str, namespace: str, storage: str) -> list[Object]:
        if not storage:
            return []
        if storage == "disk":
            return [{"name": "data", "gcePersistentDisk": {"pdName": app}}]
        name = app if storage == "shared" else pod
        if all(claim["metadata"]["name"] != name for claim in self.objects):
            modes = ["ReadWriteOncePod" if storage == "shared" else "ReadWriteOnce"]
            spec = {"accessModes": modes, "resources": {"requests": {"storage": "1Gi"}}}
            named = {} if storage in ("standard", "shared") else {"storageClassName": storage}
            self.objects.append(manifest("v1", "PersistentVolumeClaim", name, {"namespace": namespace}, spec={**spec, **named}))
        return [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
