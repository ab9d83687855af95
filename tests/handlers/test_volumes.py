"""Pods with claims on a cluster where this test plays the volume controller and the provisioner."""

from __future__ import annotations

from typing import Any

from placewright.sandbox.writes import WriteOptions

from .stage import Stage, operator

Object = dict[str, Any]
HOST = "kubernetes.io/hostname"
SELECTED, COMPLETED = "volume.kubernetes.io/selected-node", "pv.kubernetes.io/bind-completed"


class Storage:
    """Volumes, claims and classes on a stage."""

    def __init__(self, stage: Stage) -> None:
        self._sandbox = stage.sandbox
        self._pods = stage.sandbox.resource("", "v1", "pods")
        self._nodes = stage.sandbox.resource("", "v1", "nodes")
        self._volumes = stage.sandbox.resource("", "v1", "persistentvolumes")
        self._claims = stage.sandbox.resource("", "v1", "persistentvolumeclaims")
        self._classes = stage.sandbox.resource("storage.k8s.io", "v1", "storageclasses")

    def node(self, name: str) -> None:
        amounts = {"cpu": "4", "memory": "16Gi", "pods": "110"}
        body = {"metadata": {"name": name, "labels": {HOST: name}}, "status": {"allocatable": amounts, "capacity": amounts}}
        self._sandbox.writes.create(self._nodes, "", body)

    def storage_class(self, provisioner: str, mode: str = "WaitForFirstConsumer") -> None:
        body = {"metadata": {"name": "disks"}, "provisioner": provisioner, "volumeBindingMode": mode}
        self._sandbox.writes.create(self._classes, "", body)

    def volume(self, name: str, host: str = "") -> None:
        terms = [{"matchExpressions": [{"key": HOST, "operator": "In", "values": [host]}]}]
        spec: Object = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "disks"}
        if host:
            spec |= {"local": {"path": "/"}, "nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}
        self._sandbox.writes.create(self._volumes, "", {"metadata": {"name": name}, "spec": spec})

    def pod_with_claim(self, name: str) -> None:
        """A pod with a claim of the same name."""
        asked: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "disks"}
        self._sandbox.writes.create(self._claims, "default", {"metadata": {"name": name}, "spec": asked})
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]
        spec = {"schedulerName": "placewright", "containers": [{"name": "main", "image": "i"}], "volumes": volumes}
        self._sandbox.writes.create(self._pods, "default", {"metadata": {"name": name}, "spec": spec})

    def claimed_by(self, volume: str) -> str:
        """The name of the claim that a volume names."""
        reference = self._sandbox.writes.current(self._volumes, "", volume).object["spec"].get("claimRef") or {}
        return str(reference.get("name", ""))

    def selected_node(self, claim: str) -> str:
        meta = self._sandbox.writes.current(self._claims, "default", claim).object["metadata"]
        return str((meta.get("annotations") or {}).get(SELECTED, ""))

    def bind(self, claim: str, volume: str) -> None:
        """What the volume controller does at the end."""
        content = self._sandbox.writes.current(self._claims, "default", claim).object
        meta = content["metadata"]
        marked = {**meta, "annotations": {**(meta.get("annotations") or {}), COMPLETED: "yes"}}
        changed = {**content, "metadata": marked, "spec": {**content["spec"], "volumeName": volume}}
        self._sandbox.writes.replace(self._claims, "default", claim, changed, WriteOptions())


async def test_two_pods_get_the_two_volumes_that_there_are_and_go_where_they_are(stage: Stage) -> None:
    storage = Storage(stage)
    storage.storage_class("kubernetes.io/no-provisioner")
    for host in ("left", "right"):
        storage.node(host)
        storage.volume(f"disk-{host}", host)
    for name in ("one", "two", "three"):
        storage.pod_with_claim(name)
    async with operator(stage):
        await stage.until(lambda: storage.claimed_by("disk-left") and storage.claimed_by("disk-right"))
        assert not stage.bindings, "a pod went on before its claim was bound"
        owners = {host: storage.claimed_by(f"disk-{host}") for host in ("left", "right")}
        (third,) = {"one", "two", "three"} - set(owners.values())
        await stage.until(lambda: stage.condition(third))
        assert "didn't find available persistent volumes to bind" in stage.condition(third)["message"]
        for host, owner in owners.items():
            storage.bind(owner, f"disk-{host}")
        await stage.until(lambda: stage.placed(*owners.values()))
        assert {host: stage.node_of(owner) for host, owner in owners.items()} == {"left": "left", "right": "right"}
        storage.node("late")
        storage.volume("disk-late", "late")
        await stage.until(lambda: storage.claimed_by("disk-late") == third)
        storage.bind(third, "disk-late")
        await stage.until(lambda: stage.node_of(third) == "late")


async def test_a_volume_is_made_where_the_pod_goes(stage: Stage) -> None:
    storage = Storage(stage)
    storage.storage_class("example.test/maker")
    storage.pod_with_claim("web")
    async with operator(stage):
        await stage.until(lambda: storage.selected_node("web"))
        node = storage.selected_node("web")
        assert not stage.bindings
        storage.volume("fresh")
        storage.bind("web", "fresh")
        await stage.until(lambda: stage.placed("web"))
        assert stage.node_of("web") == node


async def test_a_pod_whose_claim_is_bound_by_others_waits_until_it_is(stage: Stage) -> None:
    storage = Storage(stage)
    storage.storage_class("example.test/maker", mode="Immediate")
    storage.node("left")
    storage.pod_with_claim("web")
    async with operator(stage):
        await stage.until(lambda: stage.condition("web"))
        assert "pod has unbound immediate PersistentVolumeClaims" in stage.condition("web")["message"]
        storage.volume("disk", "left")
        storage.bind("web", "disk")
        await stage.until(lambda: stage.node_of("web") == "left")
