"""Clusters of all that placement reads, drawn at random, with what it does not read strewn in; fit for an API server too."""

from __future__ import annotations

import json
from functools import cache
from random import Random
from typing import Any, Final

from placewright.framework.registry import Registry
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.offline.world import offline_evaluator, world_from
from placewright.plugins.catalog import in_tree
from placewright.profiles.config import read_profiles
from placewright.profiles.resolve import resolve
from placewright_lab.readers.goldencases import as_expectation
from placewright_lab.simulation.evaluation import evaluate_pod
from placewright_legacy_plugins import NodePreferAvoidPods, SelectorSpread

Body = dict[str, Any]
HOST, ZONE, REGION = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
AVOID = "scheduler.alpha.kubernetes.io/preferAvoidPods"
LIMITS = "placewright.dev/domain-limits"
#: Whatever else a file holds, this must not be in it.
SECRET: Final = "s3cr3t"
SECRETS: Final = {"kubectl.kubernetes.io/last-applied-configuration": f'{{"password":"{SECRET}"}}', "vault/token": SECRET}
ZONES: Final = ("eu-west1-a", "eu-west1-b", "eu-west1-c")
IMAGES: Final = ("web", "web:latest", "registry.internal:5000/web", "db:2", "db@sha256:" + "0" * 64)
SCHEDULERS: Final = ("default-scheduler", "packer", "old")
#: The plugins that `PROFILES` name.
REGISTRY: Final = in_tree().extended([NodePreferAvoidPods, SelectorSpread])
PROFILES: Final = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
- schedulerName: packer
  plugins: {multiPoint: {enabled: [{name: DomainLimit}]}}
  pluginConfig:
  - {name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}
  - {name: InterPodAffinity, args: {hardPodAffinityWeight: 40}}
- schedulerName: old
  plugins:
    multiPoint:
      enabled: [{name: SelectorSpread, weight: 2}, {name: NodePreferAvoidPods, weight: 10}, {name: EBSLimits}, {name: GCEPDLimits}]
"""


class World:
    """Draws one cluster from a seed."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        #: For limits alone: seeds that tests name draw all else as they did before there were limits.
        self._of_limits = Random(f"limits of {seed}")

    def objects(self) -> list[Body]:
        """Return all of it, in an order that an API server accepts."""
        dice = self.dice
        nodes = [f"node-{letter}" for letter in dice.sample("abcdefgh", dice.randint(2, 5))]
        spaces = [self._namespace(name) for name in ("home", "away")]
        volumes = [self._volume(f"pv{i}", nodes) for i in range(4)]
        claims = [self._claim(f"data{i}") for i in range(3)]
        owners = [self._owner("ReplicaSet", "apps/v1", "owner-rs"), self._owner("StatefulSet", "apps/v1", "owner-ss")]
        running = [self._pod(f"run-{i}", node=dice.choice([*nodes, ""] if i % 5 == 4 else nodes)) for i in range(dice.randint(0, 9))]
        waiting = [self._pod(f"wait-{i}", node="") for i in range(dice.randint(1, 4))]
        others = [*self._classes(), *volumes, *claims, *owners, self._service(), self._budget()]
        return [*spaces, *(self._node(name) for name in nodes), *others, *running, *waiting]

    # --- pieces ---------------------------------------------------------------------------------------------------------------

    def _maybe(self, chance: float, value: Body) -> Body:
        return value if self.dice.random() < chance else {}

    def _meta(self, name: str, *, namespaced: bool = True, **more: Any) -> Body:
        return {"name": name, "annotations": dict(SECRETS), **({"namespace": "home"} if namespaced else {}), **more}

    def _namespace(self, name: str) -> Body:
        labels = {"kubernetes.io/metadata.name": name, "team": self.dice.choice(["red", "blue"])}
        return {"apiVersion": "v1", "kind": "Namespace", "metadata": self._meta(name, namespaced=False, labels=labels)}

    def _node(self, name: str) -> Body:
        dice = self.dice
        labels = {HOST: name, ZONE: dice.choice(ZONES), REGION: "eu-west1", "kubernetes.io/os": "linux"}
        labels |= self._maybe(0.6, {"acme.com/cores": dice.choice(["4", "16", "many"])})
        labels |= self._maybe(0.5, {"disk": dice.choice(["ssd", "hdd"])})
        taints = [{"key": "acme.com/team", "value": dice.choice(["red", "blue"]), "effect": "NoSchedule"}] if dice.random() < 0.3 else []
        taints += [{"key": "load", "value": "7", "effect": "PreferNoSchedule"}] if dice.random() < 0.3 else []
        amounts = {"cpu": dice.choice(["1", "2", "4"]), "memory": "8Gi", "pods": dice.choice(["3", "20"])}
        amounts |= self._maybe(0.4, {"nvidia.com/gpu": "2"}) | self._maybe(0.5, {"attachable-volumes-aws-ebs": "1"})
        images = [{"names": [name, "x"], "sizeBytes": 900_000_000} for name in dice.sample(IMAGES, 2)]
        meta = self._meta(name, namespaced=False, labels=labels)
        avoided = {"preferAvoidPods": [{"podSignature": {"podController": {"kind": "ReplicaSet", "uid": "uid-owner-rs", "name": SECRET}}}]}
        meta["annotations"] |= self._maybe(0.4, {AVOID: json.dumps(avoided)})
        status = {"allocatable": amounts, "capacity": amounts, "images": images, "nodeInfo": {"kernelVersion": SECRET}}
        status["conditions"] = [{"type": "Ready", "status": "True", "message": SECRET}]
        spec = {"taints": taints, "providerID": SECRET} | self._maybe(0.1, {"unschedulable": True})
        return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec, "status": status}

    def _labels(self) -> Body:
        return {"app": self.dice.choice(["web", "db"])} | self._maybe(0.5, {"acme.com/tier": self.dice.choice(["front", "back"])})

    def _selector(self) -> Body:
        by_tier = {"key": "acme.com/tier", "operator": self.dice.choice(["Exists", "DoesNotExist"])}
        by_app = {"key": "app", "operator": self.dice.choice(["In", "NotIn"]), "values": ["web"]}
        choices: list[Body] = [{"matchLabels": {"app": "web"}}, {"matchExpressions": [by_tier]}, {"matchExpressions": [by_app]}, {}]
        return self.dice.choice(choices)

    def _pod(self, name: str, node: str) -> Body:
        dice = self.dice
        limits = {"cpu": dice.choice(["100m", "700m", "1"])} | self._maybe(0.2, {"nvidia.com/gpu": "1"})
        container = {"name": "main", "image": dice.choice(IMAGES), "resources": {"requests": limits, "limits": limits}}
        container |= {"env": [{"name": "PASSWORD", "value": SECRET}], "command": ["sh", "-c", SECRET], "args": [SECRET]}
        container |= self._maybe(0.2, {"ports": [{"containerPort": 80, "hostPort": 80, "name": "http"}]})
        spec: Body = {"containers": [container], "priority": dice.choice([0, 0, 10]), "schedulerName": dice.choice(SCHEDULERS)}
        spec |= {"nodeName": node} if node else {}
        spec |= self._maybe(0.2, {"nodeSelector": {"disk": "ssd"}}) | self._maybe(0.3, {"topologySpreadConstraints": self._spread()})
        spec |= {"affinity": self._affinity(), "volumes": self._volumes(), "tolerations": self._tolerations()}
        meta = self._meta(name, uid=f"uid-{name}", labels=self._labels(), creationTimestamp="2026-01-01T00:00:00Z")
        if dice.random() < 0.4:
            kind, owner = dice.choice([("ReplicaSet", "owner-rs"), ("StatefulSet", "owner-ss")])
            meta["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": f"uid-{owner}", "controller": True}]
        if self._of_limits.random() < 0.3:
            meta["annotations"][LIMITS] = self._limit()
        status = {"phase": "Running" if node else "Pending", "startTime": f"2026-01-01T00:00:0{dice.randrange(9)}Z", "message": SECRET}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": status}

    def _limit(self) -> str:
        """At most so many pods like it in a domain, short and in JSON; some do not pick the pod itself."""
        dice = self._of_limits
        key, most = dice.choice([ZONE, HOST, "disk"]), dice.choice([1, 1, 2])
        selector: Body = dice.choice([{"matchLabels": {"app": "web"}}, {"matchExpressions": [{"key": "app", "operator": "Exists"}]}, {}])
        stated = {"selector": selector, "topologyKey": key, "max": most, "mode": dice.choice(["Required", "Preferred"])}
        return dice.choice([f"{most} per {key} of app", json.dumps([stated])])

    def _spread(self) -> list[Body]:
        when = self.dice.choice(["DoNotSchedule", "ScheduleAnyway"])
        key = self.dice.choice([ZONE, HOST, "disk"])
        return [{"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": self._selector()}]

    def _affinity(self) -> Body:
        dice = self.dice
        cores = {"key": "acme.com/cores", "operator": dice.choice(["Gt", "Lt"]), "values": ["8"]}
        hosts = {"key": "metadata.name", "operator": "NotIn", "values": ["node-a"]}
        zones = {"key": ZONE, "operator": "In", "values": list(ZONES[:2])}
        wanted = dice.choice([{"matchExpressions": [cores]}, {"matchFields": [hosts]}, {"matchExpressions": [zones]}])
        node = self._maybe(0.2, {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [wanted]}})
        node |= self._maybe(0.3, {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 9, "preference": wanted}]})
        term = {"topologyKey": dice.choice([ZONE, HOST]), "labelSelector": self._selector()}
        term |= self._maybe(0.3, {"namespaceSelector": {"matchLabels": {"team": "red"}}}) | self._maybe(0.2, {"namespaces": ["home"]})
        pods = self._maybe(0.2, {"requiredDuringSchedulingIgnoredDuringExecution": [term]})
        pods |= self._maybe(0.2, {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 3, "podAffinityTerm": term}]})
        found = {"nodeAffinity": node, dice.choice(["podAffinity", "podAntiAffinity"]): pods}
        return {key: value for key, value in found.items() if value}

    def _tolerations(self) -> list[Body]:
        choices: list[Body] = [
            {"key": "acme.com/team", "operator": "Equal", "value": "red", "effect": "NoSchedule"},
            {"key": "load", "operator": "Exists"},
            {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
        ]
        return self.dice.sample(choices, self.dice.randint(0, 2))

    def _volumes(self) -> list[Body]:
        dice = self.dice
        template = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
        kinds: list[Body] = [
            {"secret": {"secretName": SECRET}},
            {"configMap": {"name": SECRET}},
            {"emptyDir": {}},
            {"persistentVolumeClaim": {"claimName": f"data{dice.randrange(4)}"}},
            {"awsElasticBlockStore": {"volumeID": dice.choice(["vol-1", "aws://eu-west1-a/vol-2"])}},
            {"gcePersistentDisk": {"pdName": "disk-1", "readOnly": dice.random() < 0.5}},
            {"azureFile": {"shareName": "share", "secretName": SECRET}},
            {"ephemeral": {"volumeClaimTemplate": template}},
        ]
        return [{"name": f"vol{i}", **kind} for i, kind in enumerate(dice.sample(kinds, dice.choice([0, 0, 1, 2])))]

    def _classes(self) -> list[Body]:
        made: Body = {"provisioner": "kubernetes.io/aws-ebs", "volumeBindingMode": "WaitForFirstConsumer", "parameters": {"key": SECRET}}
        by_hand = {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}
        head = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass"}
        return [head | {"metadata": self._meta(name, namespaced=False)} | body for name, body in (("made", made), ("by-hand", by_hand))]

    def _volume(self, name: str, nodes: list[str]) -> Body:
        spec: Body = {"capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "by-hand"}
        hosts = {"key": HOST, "operator": "In", "values": self.dice.sample(nodes, 1)}
        spec |= self._maybe(0.5, {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [hosts]}]}}})
        kinds: list[Body] = [
            {"csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1", "nodePublishSecretRef": {"name": SECRET, "namespace": SECRET}}},
            {"gcePersistentDisk": {"pdName": "disk-1"}},
            {"local": {"path": f"/{SECRET}"}},
        ]
        labels = self._maybe(0.4, {ZONE: self.dice.choice(["eu-west1-a", "eu-west1-a__eu-west1-b"])})
        meta = self._meta(name, namespaced=False, labels=labels)
        status = {"phase": "Available"}
        return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": meta, "spec": spec | self.dice.choice(kinds), "status": status}

    def _claim(self, name: str) -> Body:
        spec: Body = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}
        spec["storageClassName"] = self.dice.choice(["made", "by-hand", "by-hand"])
        meta = self._meta(name, uid=f"uid-{name}")
        if self.dice.random() < 0.3:
            spec["volumeName"] = f"pv{self.dice.randrange(4)}"
            meta["annotations"]["pv.kubernetes.io/bind-completed"] = "yes"
        return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec, "status": {"phase": "Pending"}}

    def _owner(self, kind: str, version: str, name: str) -> Body:
        labels = {"app": "web"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "web", "args": [SECRET]}]}}
        spec = {"selector": {"matchLabels": labels}, "template": template} | ({"serviceName": "s"} if kind == "StatefulSet" else {})
        return {"apiVersion": version, "kind": kind, "metadata": self._meta(name, uid=f"uid-{name}"), "spec": spec}

    def _service(self) -> Body:
        spec = {"selector": {"app": self.dice.choice(["web", "db"])}, "ports": [{"port": 80}]}
        return {"apiVersion": "v1", "kind": "Service", "metadata": self._meta("front"), "spec": spec}

    def _budget(self) -> Body:
        spec = {"selector": self._selector(), "minAvailable": 1}
        status = {"disruptionsAllowed": 0, "disruptedPods": {"run-0": "2026-01-01T00:00:00Z"}}
        return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": self._meta("calm"), "spec": spec, "status": status}


@cache
def profiles_by_scheduler() -> dict[str, ResolvedProfile]:
    """By schedulerName."""
    return {str(one.spec.scheduler_name): resolve(one, REGISTRY) for one in read_profiles(PROFILES, "profiles")}


def verdicts(objects: list[Body], registry: Registry) -> dict[str, Any]:
    """Return the verdict about every pending pod, by its key: scores, reasons, messages, preemption."""
    world = world_from(objects, "world")
    wanted = {pod.scheduler_name for pod in world.pending.values()}
    evaluators = {name: offline_evaluator(profiles_by_scheduler()[name], registry, world.cluster) for name in wanted}
    answers = ((key, evaluate_pod(evaluators[pod.scheduler_name], world.cluster, pod)) for key, pod in world.pending.items())
    return {str(key): as_expectation(verdict) for key, verdict in answers}
