"""Random devices of nodes, and claims to some of them, for servers that have resource.k8s.io/v1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from contract.client import Client
from e2e.answers.randomcluster import Dice, Object

#: The first minor version with that API.
CLAIMS: Final = 34
DRIVER: Final = "gpu.example.com"
ROOT: Final = "/apis/resource.k8s.io/v1"
_VERSION: Final = "resource.k8s.io/v1"
_MODELS: Final = ("small", "large")
_CLASS: Final = "gpu"


class Devices:
    """Slices on most nodes, and a claim for each pod that may want one."""

    def __init__(self, client: Client, dice: Dice) -> None:
        self._client = client
        self._dice = dice
        #: Where they are, with version and kind.
        self.collections: dict[str, tuple[str, str]] = {
            f"{ROOT}/deviceclasses": (_VERSION, "DeviceClass"),
            f"{ROOT}/resourceslices": (_VERSION, "ResourceSlice"),
            f"{ROOT}/resourceclaims": (_VERSION, "ResourceClaim"),
        }

    async def furnish(self, nodes: Sequence[str], pods: int) -> None:
        """A class, slices, and all claims, so that none comes after its pod."""
        selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
        await self._create("deviceclasses", {"metadata": {"name": _CLASS}, "spec": {"selectors": [selector]}})
        for node in nodes:
            if self._dice.maybe(0.8):
                await self._create("resourceslices", self._slice(node))
        for number in range(pods):
            await self._create("namespaces/default/resourceclaims", self._claim(number))

    def let_claim(self, pod: Object, number: int) -> None:
        """The pod uses its claim; it is one that nobody preempts, for nobody here frees claims of pods that are gone."""
        pod["metadata"]["namespace"] = "default"
        pod["spec"]["priorityClassName"] = "system-node-critical"
        pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": _claim_name(number)}]
        pod["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]

    def _slice(self, node: str) -> Object:
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        devices = [self._device(number) for number in range(self._dice.randint(1, 4))]
        return {"metadata": {"name": f"{node}-gpus"}, "spec": {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices}}

    def _device(self, number: int) -> Object:
        attributes = {"model": {"string": self._dice.choice(_MODELS)}, "index": {"int": number}}
        capacity = {"memory": {"value": self._dice.choice(("16Gi", "40Gi", "80Gi"))}}
        return {"name": f"gpu-{number}", "attributes": attributes, "capacity": capacity}

    def _claim(self, number: int) -> Object:
        request: Object = {"deviceClassName": _CLASS, "count": self._dice.choice((1, 1, 1, 2))}
        if self._dice.maybe(0.5):
            request["selectors"] = [{"cel": {"expression": self._expression()}}]
        return {"metadata": {"name": _claim_name(number)}, "spec": {"devices": {"requests": [{"name": "gpu", "exactly": request}]}}}

    def _expression(self) -> str:
        if self._dice.maybe(0.5):
            return f'device.attributes["{DRIVER}"].model == "{self._dice.choice(_MODELS)}"'
        amount = self._dice.choice(("20Gi", "40Gi"))
        return f'device.capacity["{DRIVER}"].memory.compareTo(quantity("{amount}")) >= 0'

    async def _create(self, plural: str, body: Object) -> None:
        (await self._client.post(f"{ROOT}/{plural}", body)).expect(201)


def _claim_name(number: int) -> str:
    return f"claim-{number:03}"
