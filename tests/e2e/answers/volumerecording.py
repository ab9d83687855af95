"""Has kube-scheduler place pods with volumes one at a time, and does meanwhile what the volume controller and provisioners do."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from contract.client import MERGE, Client
from contract.cluster import client_from
from e2e.answers.comparing import heard_of
from e2e.answers.scorelog import Scores, scores_in
from e2e.answers.volumes import CLASSES, COMPLETED, EBS, GA, MOST_DISKS, NAMESPACE, NODES, SELECTED, Object, VolumeDice
from placewright_lab.controlplane.kubescheduler import KubeScheduler
from placewright_lab.controlplane.server import ControlPlane

PODS: Final = 150
_ASSIGNED: Final = 24
_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.02
_ALL_NODES: Final = {"percentageOfNodesToScore": 100}
_VARIABLE: Final = "KUBE_MAX_PD_VOLS"
_CLAIMS: Final = f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims"
_VOLUMES: Final = "/api/v1/persistentvolumes"
_PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
#: CinderLimits is the only one of the four that 1.20 has not on by default.
_PROFILE: Final = {"plugins": {"filter": {"enabled": [{"name": "CinderLimits"}]}}}


@dataclass(frozen=True)
class VolumeDecision:
    """One pod, what was in the cluster, and what kube-scheduler made of it: where it went, or why nowhere, and the scores it gave."""

    pod: Object
    objects: tuple[Object, ...]
    node: str = ""
    message: str = ""
    scores: Scores = field(default_factory=dict)

    @property
    def key(self) -> str:
        """namespace/name."""
        return f"{NAMESPACE}/{self.pod['metadata']['name']}"

    @property
    def feasible(self) -> frozenset[str]:
        """The nodes that it found; where one alone is left it is chosen unscored."""
        return next((frozenset(scores) for scores in self.scores.values()), frozenset({self.node} if self.node else ()))


def record_volumes(plane: ControlPlane, seed: int) -> list[VolumeDecision]:
    """Fills the control plane and has its own kube-scheduler place `PODS` pods."""
    assert plane.assets.kube_scheduler is not None, "whoever calls has looked"
    return asyncio.run(_record(plane, plane.assets.kube_scheduler, VolumeDice(seed)))


async def _record(plane: ControlPlane, program: Path, dice: VolumeDice) -> list[VolumeDecision]:
    async with client_from(plane.kubeconfig) as client:
        setting = _Setting(client, dice)
        await setting.furnish()
        given = (program, plane.assets.minor, plane.kubeconfig, plane.folder)
        with _limit_in_environment(), KubeScheduler(*given, flags=["--v=10"], profile=_PROFILE, settings=_ALL_NODES) as scheduler:
            await heard_of(setting.known, scheduler)
            decisions = [await setting.decide(number) for number in range(PODS)]
        logged = scores_in(scheduler.log)
    return [replace(decision, scores=logged.get(decision.key, {})) for decision in decisions]


@contextmanager
def _limit_in_environment() -> Iterator[None]:
    before = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = str(MOST_DISKS)
    try:
        yield
    finally:
        del os.environ[_VARIABLE]
        if before is not None:
            os.environ[_VARIABLE] = before


class _Setting:
    """The objects around the pods, and those who look after volumes."""

    def __init__(self, client: Client, dice: VolumeDice) -> None:
        self._client = client
        self._dice = dice
        self._fixed: list[Object] = []
        self._placed: list[Object] = []
        self._claims: list[str] = []
        self.known: set[str] = set()

    async def furnish(self) -> None:
        """Nodes, classes, volumes, claims, and pods that somebody else put on nodes."""
        for number in range(NODES):
            node = await self._keep("Node", "/api/v1/nodes", self._dice.storage_node(number))
            self.known.add(node["metadata"]["name"])
            if self._dice.maybe(0.85):
                await self._keep("CSINode", "/apis/storage.k8s.io/v1/csinodes", self._dice.csi_node(node["metadata"]["name"]))
        for storage_class in CLASSES:
            await self._keep("StorageClass", "/apis/storage.k8s.io/v1/storageclasses", storage_class)
        await self._furnish_storage()
        for number in range(_ASSIGNED):
            pod = self._dice.pod_with_volumes(f"there-{number:02}", [name for name in self._claims if name.startswith("bound")])
            pod["spec"]["nodeName"] = f"node-{self._dice.randrange(NODES):02}"
            self._placed.append((await self._client.post(_PODS, pod)).expect(201))
            self.known.add(f"{NAMESPACE}/there-{number:02}")

    async def _furnish_storage(self) -> None:
        storage = self._dice.storage()
        self._claims = storage.names()
        for claim, volume in storage.bound:
            made = (await self._client.post(_CLAIMS, claim)).expect(201)
            await self._volume(volume, made, "Bound")
        for claim in (*storage.waiting, *storage.doomed):
            (await self._client.post(_CLAIMS, claim)).expect(201)
        for claim in storage.doomed:
            (await self._client.delete(f"{_CLAIMS}/{claim['metadata']['name']}")).expect(200)
        for volume in storage.free:
            await self._volume(volume, None, volume["status"]["phase"])

    async def _keep(self, kind: str, path: str, body: Object) -> Object:
        created = (await self._client.post(path, body)).expect(201)
        self._fixed.append({"kind": kind, **created})
        return created

    async def _volume(self, volume: Object, claim: Object | None, phase: str) -> None:
        """Creates a volume, of a claim or of nobody."""
        if claim is not None:
            meta = claim["metadata"]
            reference = {"uid": meta["uid"], "name": meta["name"], "namespace": NAMESPACE}
            volume["spec"]["claimRef"] = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", **reference}
        created = (await self._client.post(_VOLUMES, volume)).expect(201)
        await self._phase(_VOLUMES, created["metadata"]["name"], phase)

    async def _phase(self, path: str, name: str, phase: str) -> None:
        (await self._client.patch(f"{path}/{name}/status", {"status": {"phase": phase}}, MERGE)).expect(200)

    # --- one pod after the other ------------------------------------------------------------------------------------------------

    async def decide(self, number: int) -> VolumeDecision:
        """Post a pod and wait until it is on a node or known to fit nowhere."""
        claims, volumes = await self._all(_CLAIMS), await self._all(_VOLUMES)
        kinds = (("PersistentVolumeClaim", claims), ("PersistentVolume", volumes), ("Pod", self._placed))
        objects = [*self._fixed, *({"kind": kind, **each} for kind, items in kinds for each in items)]
        body = self._dice.pod_with_volumes(f"pod-{number:03}", self._claims)
        pod = (await self._client.post(_PODS, body)).expect(201)
        path = f"{_PODS}/{pod['metadata']['name']}"
        async with asyncio.timeout(_SECONDS):
            while not (_node(seen := (await self._client.get(path)).expect(200)) or _message(seen)):
                await self._look_after_volumes()
                await asyncio.sleep(_LOOK_SECONDS)
        if _node(seen):
            self._placed.append(seen)
        else:  # or it would be tried again beside the next ones
            (await self._client.delete(path, {"gracePeriodSeconds": 0})).expect(200)
        return VolumeDecision({"kind": "Pod", **pod}, tuple(objects), _node(seen), _message(seen))

    async def _all(self, path: str) -> list[Object]:
        items: list[Object] = (await self._client.get(path)).expect(200)["items"]
        return items

    async def _look_after_volumes(self) -> None:
        """Bind claims to the volumes that name them; make volumes for claims whose node was chosen."""
        claims = {claim["metadata"]["uid"]: claim for claim in await self._all(_CLAIMS)}
        for volume in await self._all(_VOLUMES):
            claim = claims.get(volume["spec"].get("claimRef", {}).get("uid", ""))
            if claim is not None and not claim["spec"].get("volumeName"):
                await self._phase(_VOLUMES, volume["metadata"]["name"], "Bound")
                await self._bind(claim, volume["metadata"]["name"])
                del claims[claim["metadata"]["uid"]]
        nodes = {each["metadata"]["name"]: each for each in self._fixed if each["kind"] == "Node"}
        for claim in claims.values():
            node = nodes.get((claim["metadata"].get("annotations") or {}).get(SELECTED, ""))
            if node is not None and not claim["spec"].get("volumeName"):
                volume = _made(claim, node)
                await self._volume(volume, claim, "Bound")
                await self._bind(claim, volume["metadata"]["name"])

    async def _bind(self, claim: Object, volume: str) -> None:
        name = claim["metadata"]["name"]
        body = {"metadata": {"annotations": {COMPLETED: "yes"}}, "spec": {"volumeName": volume}}
        (await self._client.patch(f"{_CLAIMS}/{name}", body, MERGE)).expect(200)
        await self._phase(_CLAIMS, name, "Bound")


def _made(claim: Object, node: Object) -> Object:
    """What a provisioner makes: a volume of its zone."""
    name, labels = claim["metadata"]["name"], node["metadata"]["labels"]
    storage_class = claim["spec"]["storageClassName"]
    spec: Object = {"capacity": claim["spec"]["resources"]["requests"], "accessModes": ["ReadWriteOnce"], "storageClassName": storage_class}
    provisioner = next(each["provisioner"] for each in CLASSES if each["metadata"]["name"] == storage_class)
    if provisioner == EBS:
        spec["awsElasticBlockStore"] = {"volumeID": f"vol-{name}"}
    else:
        spec["csi"] = {"driver": provisioner, "volumeHandle": name}
    if GA in labels:
        expression = {"key": GA, "operator": "In", "values": [labels[GA]]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    return {"metadata": {"name": f"pv-{name}"}, "spec": spec}


def _node(pod: Object) -> str:
    return str(pod["spec"].get("nodeName", ""))


def _message(pod: Object) -> str:
    conditions = pod.get("status", {}).get("conditions") or ()
    return next((each.get("message", "") for each in conditions if each["type"] == "PodScheduled" and each["status"] == "False"), "")
