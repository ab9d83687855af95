"""Pods with volumes before kube-scheduler 1.20, and meanwhile what the volume controller and provisioners do."""

from __future__ import annotations

from typing import ClassVar, Final

from contract.client import MERGE, Client
from e2e.answers.comparing import Object, create, key_of, post
from e2e.answers.recording import Recorder
from e2e.answers.volumes import CLASSES, COMPLETED, EBS, GA, LATER, MOST_DISKS, NAMESPACE, NODES, SELECTED, VolumeDice

_CLAIMS: Final = f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims"
_VOLUMES: Final = "/api/v1/persistentvolumes"
_ASSIGNED: Final = 24


class VolumeRecorder(Recorder):
    """The objects around the pods, and those who look after volumes."""

    pods = 150
    #: Claims whose volumes are to be provisioned.
    provisioned: ClassVar[int] = 10
    #: CinderLimits is the only one of the four that 1.20 has not on by default.
    profile = {"plugins": {"filter": {"enabled": [{"name": "CinderLimits"}]}}}  # noqa: RUF012
    environment = {"KUBE_MAX_PD_VOLS": str(MOST_DISKS)}  # noqa: RUF012

    def __init__(self, client: Client, seed: int) -> None:
        super().__init__(client, seed)
        self._dice = VolumeDice(seed)
        self._claims: list[str] = []

    async def furnish(self) -> None:
        """Create nodes, classes, volumes, claims, and pods that the test binds itself."""
        for number in range(NODES):
            node = self._dice.storage_node(number)
            self.known.add(node["metadata"]["name"])
            self.fixed += await create(self.client, "/api/v1/nodes", [node])
            if self._dice.maybe(0.85):
                csi_node = self._dice.csi_node(node["metadata"]["name"])
                self.fixed += await create(self.client, "/apis/storage.k8s.io/v1/csinodes", [csi_node])
        self.fixed += await create(self.client, "/apis/storage.k8s.io/v1/storageclasses", CLASSES)
        await self._furnish_storage()
        for number in range(_ASSIGNED):
            pod = self._dice.pod_with_volumes(f"there-{number:02}", [name for name in self._claims if name.startswith("bound")])
            pod["spec"]["nodeName"] = f"node-{self._dice.randrange(NODES):02}"
            self.placed.append(await post(self.client, pod))
            self.known.add(key_of(pod))

    async def _furnish_storage(self) -> None:
        storage = self._dice.storage(self.provisioned)
        self._claims = storage.names()
        for claim, volume in storage.bound:
            (made,) = await create(self.client, _CLAIMS, [claim])
            await self._volume(volume, made, "Bound")
        await create(self.client, _CLAIMS, (*storage.waiting, *storage.doomed))
        for claim in storage.doomed:
            (await self.client.delete(f"{_CLAIMS}/{claim['metadata']['name']}")).expect(200)
        for volume in storage.free:
            await self._volume(volume, None, volume["status"]["phase"])

    async def _volume(self, volume: Object, claim: Object | None, phase: str) -> None:
        """Creates a volume, of a claim or of nobody."""
        if claim is not None:
            meta = claim["metadata"]
            reference = {"uid": meta["uid"], "name": meta["name"], "namespace": NAMESPACE}
            volume["spec"]["claimRef"] = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", **reference}
        await create(self.client, _VOLUMES, [volume])
        await self._phase(_VOLUMES, volume["metadata"]["name"], phase)

    async def _phase(self, path: str, name: str, phase: str) -> None:
        (await self.client.patch(f"{path}/{name}/status", {"status": {"phase": phase}}, MERGE)).expect(200)

    async def objects(self) -> list[Object]:
        """Claims and volumes as they have become."""
        kinds = (("PersistentVolumeClaim", await self._all(_CLAIMS)), ("PersistentVolume", await self._all(_VOLUMES)))
        changing = [{"kind": kind, **each} for kind, items in kinds for each in items]
        return [*self.fixed, *changing, *self.placed]

    def pod(self, number: int) -> Object:
        """A pod with volumes of any sort."""
        return self._dice.pod_with_volumes(f"pod-{number:03}", self._claims)

    async def _all(self, path: str) -> list[Object]:
        items: list[Object] = (await self.client.get(path)).expect(200)["items"]
        return items

    async def meanwhile(self) -> None:
        """Bind claims to the volumes that name them; make volumes for claims whose node was chosen."""
        claims = {claim["metadata"]["uid"]: claim for claim in await self._all(_CLAIMS)}
        for volume in await self._all(_VOLUMES):
            claim = claims.get(volume["spec"].get("claimRef", {}).get("uid", ""))
            if claim is not None and not claim["spec"].get("volumeName"):
                await self._phase(_VOLUMES, volume["metadata"]["name"], "Bound")
                await self._bind(claim, volume["metadata"]["name"])
                del claims[claim["metadata"]["uid"]]
        nodes = {each["metadata"]["name"]: each for each in self.fixed if each["kind"] == "Node"}
        for claim in claims.values():
            node = nodes.get((claim["metadata"].get("annotations") or {}).get(SELECTED, ""))
            if node is not None and not claim["spec"].get("volumeName"):
                volume = _made(claim, node)
                await self._volume(volume, claim, "Bound")
                await self._bind(claim, volume["metadata"]["name"])

    async def _bind(self, claim: Object, volume: str) -> None:
        name = claim["metadata"]["name"]
        body = {"metadata": {"annotations": {COMPLETED: "yes"}}, "spec": {"volumeName": volume}}
        (await self.client.patch(f"{_CLAIMS}/{name}", body, MERGE)).expect(200)
        await self._phase(_CLAIMS, name, "Bound")


class LaterVolumeRecorder(VolumeRecorder):
    """The same pods with volumes before kube-scheduler 1.36 with the rules on that 1.37 has; drivers report their capacity."""

    profile = {}  # noqa: RUF012
    environment = {}  # noqa: RUF012
    versions = range(36, 39)
    provisioned = 80
    gates = ",".join(f"{rule}=true" for rule in LATER)

    async def furnish(self) -> None:
        """Create drivers and their capacities, too."""
        drivers, capacities = self._dice.drivers(), self._dice.capacities()
        self.fixed += await create(self.client, "/apis/storage.k8s.io/v1/csidrivers", drivers)
        self.fixed += await create(self.client, "/apis/storage.k8s.io/v1/namespaces/{}/csistoragecapacities", capacities)
        await super().furnish()


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
