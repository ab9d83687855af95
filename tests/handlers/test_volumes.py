"""Pods with claims: on a cluster that gives them volumes, and step by step where this test plays the volume controller."""

from __future__ import annotations

import time
from typing import Any

from kubesandbox.storage.writes import WriteOptions

from .stage import Stage, new_stage, operator

Object = dict[str, Any]
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
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

    def node(self, name: str, zone: str = "") -> None:
        amounts = {"cpu": "4", "memory": "16Gi", "pods": "110"}
        labels = {HOST: name, **({ZONE: zone} if zone else {})}
        body = {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": amounts, "capacity": amounts}}
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

    def claim_of_one_pod(self, name: str) -> None:
        """A claim that only one pod may use, with its volume."""
        spec: Object = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOncePod"], "storageClassName": "disks"}
        reference = {"kind": "PersistentVolumeClaim", "name": name, "namespace": "default"}
        source = {"csi": {"driver": "d", "volumeHandle": name}, "claimRef": reference}
        self._sandbox.writes.create(self._volumes, "", {"metadata": {"name": f"of-{name}"}, "spec": {**spec, **source}})
        asked = {key: spec[key] for key in ("accessModes", "storageClassName")} | {"resources": {"requests": {"storage": "1Gi"}}}
        meta = {"name": name, "annotations": {COMPLETED: "yes"}}
        self._sandbox.writes.create(self._claims, "default", {"metadata": meta, "spec": {**asked, "volumeName": f"of-{name}"}})

    def priority_class(self, name: str, value: int) -> None:
        classes = self._sandbox.resource("scheduling.k8s.io", "v1", "priorityclasses")
        self._sandbox.writes.create(classes, "", {"metadata": {"name": name}, "value": value})

    def user_of(self, claim: str, name: str, priority: str) -> None:
        """A pod with this claim, which ends at once when it is told to."""
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]
        containers = [{"name": "main", "image": "i"}]
        spec = {"schedulerName": "placewright", "containers": containers, "volumes": volumes, "priorityClassName": priority}
        body = {"metadata": {"name": name}, "spec": {**spec, "terminationGracePeriodSeconds": 0}}
        self._sandbox.writes.create(self._pods, "default", body)

    def pod_with_ephemeral_volume(self, name: str) -> None:
        asked: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "disks"}
        volumes = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": asked}}}]
        spec = {"schedulerName": "placewright", "containers": [{"name": "main", "image": "i"}], "volumes": volumes}
        self._sandbox.writes.create(self._pods, "default", {"metadata": {"name": name}, "spec": spec})

    def claimed_by(self, volume: str) -> str:
        """The name of the claim that a volume names."""
        reference = self._sandbox.writes.current(self._volumes, "", volume).object["spec"].get("claimRef") or {}
        return str(reference.get("name", ""))

    def selected_node(self, claim: str) -> str:
        meta = self._sandbox.writes.current(self._claims, "default", claim).object["metadata"]
        return str((meta.get("annotations") or {}).get(SELECTED, ""))

    def zone(self, node: str) -> str:
        return str(self._sandbox.writes.current(self._nodes, "", node).object["metadata"]["labels"][ZONE])

    def volume_of(self, claim: str) -> str:
        return str(self._sandbox.writes.current(self._claims, "default", claim).object["spec"].get("volumeName", ""))

    def zone_of_volume(self, claim: str) -> str:
        """The zone from which a claim's volume can be reached."""
        spec = self._sandbox.writes.current(self._volumes, "", self.volume_of(claim)).object["spec"]
        ((requirement,),) = [term["matchExpressions"] for term in spec["nodeAffinity"]["required"]["nodeSelectorTerms"]]
        assert requirement["key"] == ZONE
        return str(requirement["values"][0])

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


async def test_a_volume_is_made_where_the_pod_goes() -> None:
    async with new_stage(volumes=True) as stage:
        storage = Storage(stage.profile())
        for number in range(6):
            storage.node(f"node-{number}", zone=f"zone-{number % 3}")
        storage.storage_class("example.test/maker")
        storage.pod_with_claim("web")
        async with operator(stage):
            await stage.until(lambda: stage.placed("web"))
            node = stage.node_of("web")
            assert storage.selected_node("web") == node
            assert storage.zone_of_volume("web") == storage.zone(node)


async def test_pods_follow_volumes_that_were_made_before_them() -> None:
    async with new_stage(volumes=True) as stage:
        storage = Storage(stage.profile())
        for number in range(6):
            storage.node(f"node-{number}", zone=f"zone-{number % 3}")
        storage.storage_class("example.test/maker", mode="Immediate")
        names = [f"web-{number}" for number in range(6)]
        for name in names:
            storage.pod_with_claim(name)
        async with operator(stage):
            await stage.until(lambda: stage.placed(*names))
            zones = {name: storage.zone_of_volume(name) for name in names}
            assert {name: storage.zone(stage.node_of(name)) for name in names} == zones
            assert len(set(zones.values())) > 1


async def test_a_pod_with_a_volume_for_its_own_lifetime_is_placed_once_its_claim_was_made() -> None:
    async with new_stage(volumes=True) as stage:
        storage = Storage(stage.profile())
        storage.node("left", zone="west")
        storage.storage_class("example.test/maker")
        storage.pod_with_ephemeral_volume("web")
        async with operator(stage):
            await stage.until(lambda: stage.placed("web"))
            assert storage.zone_of_volume("web-scratch") == "west"


async def test_a_hundred_pods_get_the_hundred_volumes_that_there_are() -> None:
    async with new_stage(volumes=True) as stage:
        storage = Storage(stage.profile())
        storage.storage_class("kubernetes.io/no-provisioner")
        for host in ("left", "right"):
            storage.node(host)
            for number in range(50):
                storage.volume(f"{host}-{number}", host)
        names = [f"web-{number}" for number in range(101)]
        for name in names:
            storage.pod_with_claim(name)
        async with operator(stage):
            await stage.until(lambda: len(stage.bindings) == 100 and all(stage.placed(name) or stage.condition(name) for name in names))
            (left_over,) = [name for name in names if not stage.placed(name)]
            assert "didn't find available persistent volumes to bind" in stage.condition(left_over)["message"]
            volumes = {name: storage.volume_of(name) for name in names if name != left_over}
            assert len(set(volumes.values())) == 100
            assert all(volume.startswith(stage.node_of(name)) for name, volume in volumes.items())


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


async def test_a_claim_for_one_pod_goes_from_the_victim_to_its_preemptor_though_others_wait_for_it(stage: Stage) -> None:
    storage = Storage(stage)
    storage.storage_class("kubernetes.io/no-provisioner")
    storage.priority_class("low", 1)
    storage.priority_class("high", 1000)
    rounds = [str(number) for number in range(5)]
    for host in ("left", "right"):
        storage.node(host)
    for number in rounds:
        storage.claim_of_one_pod(f"claim-{number}")
        storage.user_of(f"claim-{number}", f"holder-{number}", "low")
    async with operator(stage):
        await stage.until(lambda: stage.placed(*(f"holder-{number}" for number in rounds)))
        waiters = [f"waiter-{number}-{which}" for number in rounds for which in range(3)]
        for each in waiters:
            storage.user_of(f"claim-{each.split('-')[1]}", each, "low")
        await stage.until(lambda: all(stage.condition(each).get("reason") == "Unschedulable" for each in waiters))
        # The preemptor backs off when its victim ends, and the others do not any more: each of them is tried before it.
        over = time.monotonic() + 1.5
        await stage.until(lambda: time.monotonic() > over, "the backoff of those that wait is over")
        for number in rounds:
            storage.user_of(f"claim-{number}", f"vip-{number}", "high")
        await stage.until(lambda: stage.placed(*(f"vip-{number}" for number in rounds)))
    assert not any(map(stage.node_of, waiters))
    assert not stage.bound_twice()
