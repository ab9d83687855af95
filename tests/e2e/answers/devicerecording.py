"""Pods with claims before kube-scheduler 1.36 with alpha gates on: attributes with lists, and devices that take CPU and memory."""

from __future__ import annotations

from typing import ClassVar, Final

from contract.client import Client
from contract.devices import DRIVER, GROUP, a_claim, device_class, request, resource_slice, shared_path
from e2e.answers.comparing import Object, create
from e2e.answers.randomcluster import Dice
from e2e.answers.recording import Recorder

NODES: Final = 8
GPU: Final = "example.com/gpu"
SCORED: Final = [{"name": GPU, "weight": 3}, {"name": "cpu", "weight": 1}]
#: Gates of 1.36 that are off by default.
GATES: Final = ("DRAListTypeAttributes", "DRANodeAllocatableResources")
FIT: Final = {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "LeastAllocated", "resources": SCORED}}}
BALANCED: Final = {"name": "NodeResourcesBalancedAllocation", "args": {"resources": [{**each, "weight": 1} for each in SCORED]}}
CLAIMS: Final = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
_MODELS: Final = ("small", "large")
_ROOTS: Final = ({"strings": ["r0", "r1"]}, {"strings": ["r1", "r2"]}, {"string": "r0"}, {"string": "r2"})
_CAPACITY: Final = f"{DRIVER}/cores"
_EXPRESSIONS: Final = (
    f'device.attributes["{DRIVER}"].root.includes("r0")',
    f'device.attributes["{DRIVER}"].sizes.includes(2)',
    f'device.attributes["{DRIVER}"].model == "small"',
)


class DeviceRecorder(Recorder):
    """The devices and claims around the pods."""

    pods = 120
    profile: ClassVar[Object] = {}
    versions = range(36, 37)
    gates = ",".join(f"{gate}=true" for gate in GATES)

    def __init__(self, client: Client, seed: int) -> None:
        super().__init__(client, seed)
        self._dice = Dice(seed)

    async def furnish(self) -> None:
        """Create nodes, devices, a class, and the claim of each pod."""
        for number in range(NODES):
            name = f"node-{number:02}"
            offer = {"cpu": self._dice.choice(("6", "12", "24")), "memory": "64Gi", "pods": "110"}
            status = {"allocatable": offer, "capacity": offer}
            self.known.add(name)
            self.fixed += await create(
                self.client, "/api/v1/nodes", [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}]
            )
            devices = [self._device(place) for place in range(self._dice.randint(2, 8))]
            made = resource_slice(f"{name}-gpus", *devices, pool={"name": name}, nodeName=name)
            self.fixed += await shown(self.client, "resourceslices", made)
        self.fixed += await shown(self.client, "deviceclasses", device_class("gpus"))
        await create(self.client, CLAIMS, [self._claim(number) for number in range(self.pods)])

    def _device(self, place: int) -> Object:
        dice = self._dice
        attributes = {
            "model": {"string": dice.choice(_MODELS)},
            "root": dice.choice(_ROOTS),
            "sizes": {"ints": dice.choice(([1, 2], [2, 3], [1]))},
        }
        made: Object = {"name": f"gpu-{place}", "attributes": attributes, "capacity": {_CAPACITY: {"value": "8"}}}
        shared = dice.maybe(0.4)
        if shared:
            policy = dice.choice(({}, {"requestPolicy": {"default": "1", "validRange": {"min": "1", "max": "4", "step": "1"}}}))
            made |= {"allowMultipleAllocations": True, "capacity": {_CAPACITY: {"value": "8", **policy}}}
        if dice.maybe(0.6):
            by_device = {"allocationMultiplier": dice.choice(("1", "1500m", "2"))}
            by_cores = {"capacityKey": _CAPACITY, "allocationMultiplier": dice.choice(("500m", "2"))}
            made["nodeAllocatableResourceMappings"] = {"cpu": by_cores if shared else by_device}
            if dice.maybe(0.4):
                made["nodeAllocatableResourceMappings"]["memory"] = {"allocationMultiplier": dice.choice(("1Gi", "20Gi"))}
        return made

    def _claim(self, number: int) -> Object:
        dice = self._dice
        exactly: Object = {"count": dice.choice((1, 1, 2, 3))}
        if dice.maybe(0.5):
            exactly["selectors"] = [{"cel": {"expression": dice.choice(_EXPRESSIONS)}}]
        if dice.maybe(0.3):
            exactly["capacity"] = {"requests": {_CAPACITY: dice.choice(("1", "2", "3", "9"))}}
        # Not of lists: the scheduler of 1.36 does not pass their gate to its allocator, and constraints fail on them.
        alike = [{"matchAttribute": f"{DRIVER}/model"}] if exactly["count"] > 1 and dice.maybe(0.7) else []
        return a_claim(_name(number), request(**exactly), constraints=alike)

    async def objects(self) -> list[Object]:
        """Claims as they have become."""
        return [*self.fixed, *await listed_claims(self.client), *self.placed]

    def pod(self, number: int) -> Object:
        """A pod with its claim, which nearly every time a container uses."""
        dice = self._dice
        uses = {"claims": [{"name": "gpu"}]} if dice.maybe(0.95) else {}
        requests = {"requests": {"cpu": dice.choice(("100m", "1", "3"))}} if dice.maybe(0.7) else {}
        containers = [{"name": "main", "image": "main:1", "resources": {**uses, **requests}}]
        if dice.maybe(0.2):
            containers.append({"name": "too", "image": "too:1", "resources": {"claims": [{"name": "gpu"}]}})
        spec: Object = {"containers": containers, "resourceClaims": [{"name": "gpu", "resourceClaimName": _name(number)}]}
        if dice.maybe(0.1):
            spec["resources"] = {"requests": {"cpu": "4"}}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"pod-{number:03}", "namespace": "default"}, "spec": spec}


def _name(number: int) -> str:
    return f"claim-{number:03}"


class ServedRecorder(Recorder):
    """Pods whose extended resource devices serve, under a profile that scores it."""

    pods = 60
    versions = range(36, 39)
    #: Of the class that serves the resource. kube-scheduler 1.36 crashes where NodeResourcesBalancedAllocation evaluates one.
    expressions: ClassVar[tuple[str, ...]] = ()
    profile: ClassVar[Object] = {"pluginConfig": [FIT, BALANCED]}

    def __init__(self, client: Client, seed: int) -> None:
        super().__init__(client, seed)
        self._dice = Dice(seed)

    async def furnish(self) -> None:
        """Create nodes with devices, and a class that serves the resource. Some nodes offer the resource themselves."""
        for number in range(NODES):
            name, own = f"node-{number:02}", self._dice.maybe(0.25)
            offer = {"cpu": self._dice.choice(("16", "32")), "memory": "64Gi", "pods": "110", **({GPU: "6"} if own else {})}
            node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": offer, "capacity": offer}}
            self.known.add(name)
            self.fixed += await create(self.client, "/api/v1/nodes", [node])
            devices = [_model(place, self._dice.choice(_MODELS)) for place in range(self._dice.randint(2, 9))]
            self.fixed += await shown(
                self.client, "resourceslices", resource_slice(f"{name}-gpus", *devices, pool={"name": name}, nodeName=name)
            )
        serving = device_class("gpus", extendedResourceName=GPU)
        serving["spec"]["selectors"] = [{"cel": {"expression": each}} for each in self.expressions]
        self.fixed += await shown(self.client, "deviceclasses", serving)

    async def objects(self) -> list[Object]:
        """Claims that the scheduler made, too."""
        return [*self.fixed, *await listed_claims(self.client), *self.placed]

    def pod(self, number: int) -> Object:
        """A pod that asks for one or two of the resource."""
        amount = self._dice.choice(("1", "1", "2"))
        requests = {GPU: amount, "cpu": self._dice.choice(("100m", "1", "2"))}
        container = {"name": "main", "image": "main:1", "resources": {"requests": requests, "limits": {GPU: amount}}}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"pod-{number:03}", "namespace": "default"},
            "spec": {"containers": [container]},
        }


class SelectedRecorder(ServedRecorder):
    """The same, and only some of the devices serve."""

    expressions = (f'device.attributes["{DRIVER}"].model == "small"',)
    profile: ClassVar[Object] = {"pluginConfig": [FIT]}


def _model(place: int, model: str) -> Object:
    return {"name": f"gpu-{place}", "attributes": {"model": {"string": model}}}


async def shown(client: Client, plural: str, body: Object) -> list[Object]:
    """Create an object that belongs to no namespace; as the API server shows it."""
    made = await create(client, shared_path(plural), [body])
    return [{"apiVersion": f"{GROUP}/v1", "kind": body["kind"], **each} for each in made]


async def listed_claims(client: Client) -> list[Object]:
    """The claims as they are."""
    items = (await client.get(CLAIMS)).expect(200)["items"]
    return [{"apiVersion": f"{GROUP}/v1", "kind": "ResourceClaim", **each} for each in items]
