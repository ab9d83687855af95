"""Random nodes and pods that use every feature which kube-scheduler 1.20 and 1.36 both know."""

from __future__ import annotations

import random
from typing import Any, Final

from e2e.answers.comparing import Object

HOST: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
RACK: Final = "example.com/rack"
GPU: Final = "example.com/gpu"
NAMESPACES: Final = ("default", "blue", "green")
APPS: Final = ("web", "db", "cache", "batch")
#: The label that ReplicaSets select; only pods that they own have it (1.20 goes by the label, 1.36 by the owner).
OWNED_BY: Final = "owned-by"
#: No class preempts, so that placing one pod never removes another.
PRIORITIES: Final = {"low": 10, "middle": 1000, "high": 100_000}

_MIB: Final = 2**20
_IMAGES: Final = {
    "registry.example/tiny:1": 12 * _MIB,
    "registry.example/web:2.1": 190 * _MIB,
    "registry.example:5000/db": 640 * _MIB,
    "registry.example/cache:latest": 95 * _MIB,
    "registry.example/model:7": 2900 * _MIB,
    "registry.example/batch:3": 1234 * _MIB,
}
_TAINTS: Final = (
    {"key": "dedicated", "value": "blue", "effect": "NoSchedule"},
    {"key": "retiring", "effect": "NoExecute"},
    {"key": "spot", "value": "yes", "effect": "PreferNoSchedule"},
    {"key": "shared", "value": "no", "effect": "PreferNoSchedule"},
    {"key": "old", "effect": "PreferNoSchedule"},
    {"key": "slow", "value": "disk", "effect": "PreferNoSchedule"},
)
_TOLERATIONS: Final = (
    {"key": "dedicated", "operator": "Equal", "value": "blue", "effect": "NoSchedule"},
    {"key": "dedicated", "operator": "Exists"},
    {"key": "retiring", "operator": "Exists", "effect": "NoExecute"},
    {"key": "spot", "operator": "Equal", "value": "yes", "effect": "PreferNoSchedule"},
    {"key": "spot", "operator": "Exists"},
    {"key": "old", "operator": "Exists", "effect": "PreferNoSchedule"},
    {"key": "old", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"},
    {"operator": "Exists", "effect": "PreferNoSchedule"},
    {"operator": "Exists"},
)
_EXPRESSIONS: Final = (
    {"key": "disk", "operator": "In", "values": ["ssd"]},
    {"key": "disk", "operator": "NotIn", "values": ["ssd", "nvme"]},
    {"key": ZONE, "operator": "In", "values": ["z1", "z3"]},
    {"key": ZONE, "operator": "NotIn", "values": ["z2"]},
    {"key": RACK, "operator": "Exists"},
    {"key": RACK, "operator": "DoesNotExist"},
    {"key": "generation", "operator": "Gt", "values": ["4"]},
    {"key": "generation", "operator": "Lt", "values": ["6"]},
)


class Dice(random.Random):
    """Chance, from a seed."""

    def maybe(self, chance: float) -> bool:
        """True this often."""
        return self.random() < chance

    def some(self, choices: tuple[Any, ...], most: int) -> list[Any]:
        """One to `most` of them."""
        return self.sample(choices, self.randint(1, most))

    def node(self, number: int) -> Object:
        """A node; some lack labels that others have."""
        name = f"node-{number:02}"
        labels = {HOST: name, "disk": self.choice(("ssd", "hdd", "nvme")), "generation": str(self.randint(1, 9))}
        if self.maybe(0.88):
            labels[ZONE] = self.choice(("z1", "z1", "z2", "z3", "z4"))
        if self.maybe(0.8):
            labels[RACK] = f"r{self.randint(1, 6)}"
        spec: Object = {"taints": self._taints()}
        if self.maybe(0.06):
            spec["unschedulable"] = True
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": spec,
            "status": self._status(),
        }

    def _taints(self) -> list[Object]:
        taints = [taint for taint in _TAINTS[2:] if self.maybe(0.25)]
        return taints + [taint for taint in _TAINTS[:2] if self.maybe(0.09)]

    def _status(self) -> Object:
        resources = {
            "cpu": self.choice(("2", "4", "7500m", "8", "16")),
            "memory": self.choice(("3Gi", "8Gi", "15934724Ki", "32Gi", "64000000000")),
            "ephemeral-storage": self.choice(("20Gi", "100Gi")),
            "pods": self.choice(("4", "8", "110", "110")),
        }
        if self.maybe(0.2):
            resources[GPU] = self.choice(("1", "4"))
        images = [{"names": [name, name + "-alias"], "sizeBytes": size} for name, size in _IMAGES.items() if self.maybe(0.4)]
        return {"allocatable": resources, "capacity": resources, "images": _tagged(images)}

    def pod(self, name: str) -> Object:
        """A pod that wants a few things at once."""
        labels = {"app": self.choice(APPS), **({"tier": self.choice(("front", "back"))} if self.maybe(0.5) else {})}
        spec: Object = {"containers": [self._container(f"c{i}") for i in range(self.choice((1, 1, 1, 2)))]}
        if self.maybe(0.25):
            spec["initContainers"] = [self._container(f"i{i}") for i in range(self.randint(1, 2))]
        if self.maybe(0.15):
            spec["containers"][0]["ports"] = [self._port()]
        if self.maybe(0.5):
            spec["tolerations"] = self.some(_TOLERATIONS, 3)
        if self.maybe(0.15):
            spec["nodeSelector"] = {"disk": self.choice(("ssd", "hdd"))}
        if self.maybe(0.2):
            spec["priorityClassName"] = self.choice(tuple(PRIORITIES))
        if self.maybe(0.35):
            spec["topologySpreadConstraints"] = self._constraints()
        if affinity := self._affinity():
            spec["affinity"] = affinity
        metadata = {"name": name, "namespace": self.choice(NAMESPACES), "labels": labels}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    def _container(self, name: str) -> Object:
        requests: Object = {}
        if self.maybe(0.7):
            requests["cpu"] = self.choice(("0", "50m", "100m", "333m", "1", "2500m"))
        if self.maybe(0.7):
            requests["memory"] = self.choice(("0", "64Mi", "200Mi", "333000000", "1Gi", "5Gi"))
        if self.maybe(0.1):
            requests["ephemeral-storage"] = self.choice(("1Gi", "9Gi"))
        resources: Object = {"requests": requests}
        if self.maybe(0.06):
            requests[GPU] = "1"
            resources["limits"] = {GPU: "1"}
        image = self.choice((*_IMAGES, "registry.example/nobody-has-it:1"))
        return {"name": name, "image": image, "resources": resources}

    def _port(self) -> Object:
        port = {"containerPort": 80, "hostPort": self.choice((8080, 8080, 9090)), "protocol": self.choice(("TCP", "UDP"))}
        return port | ({"hostIP": self.choice(("127.0.0.1", "10.0.0.7"))} if self.maybe(0.5) else {})

    # --- what pods say of nodes, and of each other ---------------------------------------------------------------------------

    def _affinity(self) -> Object:
        found = {
            "nodeAffinity": self._node_affinity(),
            "podAffinity": self._pod_terms(required=0.07, preferred=0.25),
            "podAntiAffinity": self._pod_terms(required=0.12, preferred=0.25),
        }
        return {kind: terms for kind, terms in found.items() if terms}

    def _node_affinity(self) -> Object:
        affinity: Object = {}
        if self.maybe(0.12):
            terms = [{"matchExpressions": self.some(_EXPRESSIONS, 2)} for _ in range(self.randint(1, 2))]
            affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
        elif self.maybe(0.05):
            field = {"key": "metadata.name", "operator": "In", "values": [f"node-{self.randrange(50):02}"]}
            affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        if self.maybe(0.3):
            affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": self.randint(1, 100), "preference": {"matchExpressions": self.some(_EXPRESSIONS, 2)}}
                for _ in range(self.randint(1, 3))
            ]
        return affinity

    def _pod_terms(self, required: float, preferred: float) -> Object:
        terms: Object = {}
        if self.maybe(required):
            terms["requiredDuringSchedulingIgnoredDuringExecution"] = [self._pod_term()]
        if self.maybe(preferred):
            terms["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": self.randint(1, 100), "podAffinityTerm": self._pod_term()} for _ in range(self.randint(1, 2))
            ]
        return terms

    def _pod_term(self) -> Object:
        term: Object = {"topologyKey": self.choice((HOST, HOST, ZONE, RACK)), "labelSelector": self._selector()}
        return term | ({"namespaces": self.some(NAMESPACES, 2)} if self.maybe(0.4) else {})

    def _selector(self) -> Object:
        if self.maybe(0.6):
            return {"matchLabels": {"app": self.choice(APPS)}}
        expressions = (
            {"key": "app", "operator": "In", "values": self.some(APPS, 2)},
            {"key": "app", "operator": "NotIn", "values": self.some(APPS, 3)},
            {"key": "tier", "operator": "Exists"},
            {"key": "tier", "operator": "DoesNotExist"},
        )
        return {"matchExpressions": [self.choice(expressions)]}

    def _constraints(self) -> list[Object]:
        keys = self.sample((HOST, ZONE, RACK), self.choice((1, 1, 2)))
        return [
            {
                "maxSkew": self.choice((1, 1, 2, 4)),
                "topologyKey": key,
                "whenUnsatisfiable": self.choice(("DoNotSchedule", "ScheduleAnyway")),
                "labelSelector": self._selector(),
            }
            for key in keys
        ]


def _tagged(images: list[Object]) -> list[Object]:
    """Nodes list images with their tags, whatever pods leave out."""
    for image in images:
        image["names"] = [n if ":" in n.rpartition("/")[2] else f"{n}:latest" for n in image["names"]]
    return images


def services() -> list[Object]:
    """In each namespace, for two of the apps; spread by default over hosts and zones."""
    return [_service(namespace, app) for namespace in NAMESPACES for app in APPS[:2]]


def _service(namespace: str, app: str) -> Object:
    spec = {"selector": {"app": app}, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": app, "namespace": namespace}, "spec": spec}


def replica_sets() -> list[Object]:
    """One in each namespace, with no pods of its own making: there is no controller."""
    return [_replica_set(namespace) for namespace in NAMESPACES]


def _replica_set(namespace: str) -> Object:
    labels = {OWNED_BY: "set"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "registry.example/tiny:1"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "set", "namespace": namespace}, "spec": spec}


def owned(pod: Object, replica_set: Object) -> Object:
    """The pod, as if this ReplicaSet had made it."""
    metadata = pod["metadata"]
    reference = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": replica_set["metadata"]["name"],
        "uid": replica_set["metadata"]["uid"],
        "controller": True,
    }
    labels = metadata["labels"] | {OWNED_BY: "set"}
    return pod | {"metadata": metadata | {"labels": labels, "ownerReferences": [reference]}}
