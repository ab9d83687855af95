"""Clusters with devices, drawn at random: classes, slices, claims that have devices and claims that want some, and pods that name them."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from lab.snapshots.anyworld import SECRET, SECRETS

Body = dict[str, Any]
DRIVER: Final = "gpu.example.com"
CLASS: Final = "gpu.example.com"
MODELS: Final = ("A100", "H100")
OPAQUE: Final = [{"requests": ["main"], "opaque": {"driver": DRIVER, "parameters": {"kind": "GpuConfig", "token": SECRET}}}]
#: Expressions name the model, so its values stay; nothing but constraints reads on which board a device is.
BY_MODEL: Final = f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].model.startsWith("A")'


class DeviceWorld:
    """Draws one cluster from a seed."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        self._free: list[Body] = []

    def objects(self) -> list[Body]:
        """Return all of it, in an order that an API server accepts."""
        nodes = [f"host-{letter}" for letter in self.dice.sample("abcdef", self.dice.randint(2, 4))]
        slices = [each for name in nodes for each in self._slices(name)]
        rule = self._rule()
        claims = [self._claim(f"asked-{number}", allocated=False) for number in range(3)]
        claims += [self._claim(f"given-{number}", allocated=True) for number in range(min(2, len(self._free)))]
        running = [self._pod(f"busy-{number}", self.dice.choice(nodes), f"given-{number}") for number in range(len(claims) - 3)]
        waiting = [self._pod(f"idle-{number}", "", self.dice.choice(claims)["metadata"]["name"]) for number in range(3)]
        return [*(self._node(name) for name in nodes), *self._classes(), *slices, rule, *claims, *running, *waiting]

    def _meta(self, name: str, *, namespaced: bool = False) -> Body:
        meta: Body = {"name": name, "uid": f"uid-{name}", "annotations": dict(SECRETS)}
        return meta | ({"namespace": "home"} if namespaced else {})

    def _node(self, name: str) -> Body:
        amounts = {"cpu": "8", "memory": "32Gi", "pods": "20"}
        meta = self._meta(name) | {"labels": {"kubernetes.io/hostname": name}}
        return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": {"allocatable": amounts, "capacity": amounts}}

    def _classes(self) -> list[Body]:
        spec: Body = {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}], "config": OPAQUE}
        if self.dice.random() < 0.5:
            spec["extendedResourceName"] = "example.com/gpu"
        return [{"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": self._meta(CLASS), "spec": spec}]

    def _slices(self, node: str) -> list[Body]:
        """A pool of two: one has the devices, one what they share."""
        devices = [self._device(node, number) for number in range(self.dice.randint(1, 4))]
        spec: Body = {"driver": DRIVER, "pool": {"name": node, "generation": 1, "resourceSliceCount": 2}}
        if self.dice.random() < 0.8:
            spec["nodeName"] = node
        else:
            term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
            spec["nodeSelector"] = {"nodeSelectorTerms": [term]}
        self._free += [{"driver": DRIVER, "pool": node, "device": each["name"]} for each in devices]
        shared = [{"name": "board", "counters": {"memory": {"value": "80Gi"}}}]
        head = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice"}
        parts: list[Body] = [{"devices": devices}, {"sharedCounters": shared}]
        return [head | {"metadata": self._meta(f"{node}-{DRIVER}-{part}"), "spec": spec | held} for part, held in enumerate(parts)]

    def _device(self, node: str, number: int) -> Body:
        dice = self.dice
        attributes = {"model": {"string": dice.choice(MODELS)}, "board": {"string": f"board-{node}-{number // 2}"}}
        made: Body = {"name": f"card-{number}", "attributes": {**attributes, "index": {"int": number}, "firmware": {"version": "1.2.3"}}}
        made["capacity"] = {"memory": {"value": dice.choice(("40Gi", "80Gi"))}}
        made["consumesCounters"] = [{"counterSet": "board", "counters": {"memory": {"value": "20Gi"}}}]
        if dice.random() < 0.2:
            made["taints"] = [{"key": "acme.com/sick", "value": "hot", "effect": "NoSchedule"}]
        return made

    def _rule(self) -> Body:
        taint = {"key": "acme.com/sick", "value": "spare", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}
        chosen = self.dice.choice(self._free)
        meta = self._meta("keep-away")
        spec = {"deviceSelector": chosen, "taint": taint}
        return {"apiVersion": "resource.k8s.io/v1beta2", "kind": "DeviceTaintRule", "metadata": meta, "spec": spec}

    def _claim(self, name: str, *, allocated: bool) -> Body:
        dice = self.dice
        exactly: Body = {"deviceClassName": CLASS, "allocationMode": "ExactCount", "count": dice.choice((1, 1, 2))}
        if dice.random() < 0.4:
            exactly["selectors"] = [{"cel": {"expression": BY_MODEL}}]
        if dice.random() < 0.3:
            exactly["tolerations"] = [{"key": "acme.com/sick", "operator": "Equal", "value": "hot", "effect": "NoSchedule"}]
        several = [{"name": "big", "deviceClassName": CLASS, "count": 3}, {"name": "small", "deviceClassName": CLASS, "count": 1}]
        request: Body = {"name": "main", "firstAvailable": several} if dice.random() < 0.3 else {"name": "main", "exactly": exactly}
        devices: Body = {"requests": [request], "config": OPAQUE}
        if dice.random() < 0.4:
            devices["constraints"] = [{"requests": ["main"], "matchAttribute": f"{DRIVER}/board"}]
        claim: Body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": self._meta(name, namespaced=True)}
        claim |= {"spec": {"devices": devices}, "status": {}}
        if allocated:
            claim["status"] = self._given(request, f"busy-{name[-1]}")
        return claim

    def _given(self, request: Body, pod: str) -> Body:
        got = self._free.pop(self.dice.randrange(len(self._free)))
        ready = {"type": "Ready", "status": "True", "message": SECRET, "lastTransitionTime": "2026-01-01T00:00:00Z"}
        name = "main/small" if "firstAvailable" in request else "main"
        node = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [got["pool"]]}]}]}
        given = {"results": [{"request": name, **got}], "config": [{"source": "FromClaim", **OPAQUE[0]}]}
        return {
            "allocation": {"devices": given, "nodeSelector": node},
            "reservedFor": [{"resource": "pods", "name": pod, "uid": f"uid-{pod}"}],
            "devices": [{**got, "conditions": [ready], "data": {"serial": SECRET}}],
        }

    def _pod(self, name: str, node: str, claim: str) -> Body:
        container = {"name": "main", "image": "web", "resources": {"requests": {"cpu": "1"}, "claims": [{"name": "gpu"}]}}
        entry, status = {"name": "gpu", "resourceClaimName": claim}, {}
        if self.dice.random() < 0.5:
            entry = {"name": "gpu", "resourceClaimTemplateName": "template"}
            status = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": claim}]}
        spec = {"containers": [container], "resourceClaims": [entry]} | ({"nodeName": node} if node else {})
        return {"apiVersion": "v1", "kind": "Pod", "metadata": self._meta(name, namespaced=True), "spec": spec, "status": status}
