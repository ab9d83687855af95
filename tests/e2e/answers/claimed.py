"""Random devices of nodes, and claims to some of them, for servers that have resource.k8s.io/v1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from contract.client import Client
from contract.devices import DRIVER, GROUP, a_claim, device_class, request, resource_slice, shared_path
from e2e.answers.comparing import Object, create
from e2e.answers.randomcluster import Dice

_MODELS: Final = ("small", "large")
#: Where they are, with version and kind.
COLLECTIONS: Final = {
    shared_path(f"{kind.lower()}{'es' if kind.endswith('s') else 's'}"): (f"{GROUP}/v1", kind)
    for kind in ("DeviceClass", "ResourceSlice", "ResourceClaim")
}


class Devices:
    """Slices on most nodes, and a claim for each pod that may want one."""

    def __init__(self, client: Client, dice: Dice) -> None:
        self._client = client
        self._dice = dice

    async def furnish(self, nodes: Sequence[str], pods: int) -> None:
        """A class, slices, and all claims, so that none comes after its pod."""
        await create(self._client, shared_path("deviceclasses"), [device_class("gpus")])
        slices = [self._slice(node) for node in nodes if self._dice.maybe(0.8)]
        await create(self._client, shared_path("resourceslices"), slices)
        claims = [a_claim(_claim_name(number), self._request()) for number in range(pods)]
        await create(self._client, shared_path("namespaces/default/resourceclaims"), claims)

    def let_claim(self, pod: Object, number: int) -> None:
        """The pod uses its claim; it is one that nobody preempts, for nobody here frees claims of pods that are gone."""
        pod["metadata"]["namespace"] = "default"
        pod["spec"]["priorityClassName"] = "system-node-critical"
        pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": _claim_name(number)}]
        pod["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]

    def _slice(self, node: str) -> Object:
        devices = [self._device(number) for number in range(self._dice.randint(1, 4))]
        return resource_slice(f"{node}-gpus", *devices, pool={"name": node}, nodeName=node)

    def _device(self, number: int) -> Object:
        attributes = {"model": {"string": self._dice.choice(_MODELS)}, "index": {"int": number}}
        capacity = {"memory": {"value": self._dice.choice(("16Gi", "40Gi", "80Gi"))}}
        return {"name": f"gpu-{number}", "attributes": attributes, "capacity": capacity}

    def _request(self) -> Object:
        count = self._dice.choice((1, 1, 1, 2))
        return request(count=count, **({"selectors": [{"cel": {"expression": self._expression()}}]} if self._dice.maybe(0.5) else {}))

    def _expression(self) -> str:
        if self._dice.maybe(0.5):
            return f'device.attributes["{DRIVER}"].model == "{self._dice.choice(_MODELS)}"'
        amount = self._dice.choice(("20Gi", "40Gi"))
        return f'device.capacity["{DRIVER}"].memory.compareTo(quantity("{amount}")) >= 0'


def _claim_name(number: int) -> str:
    return f"claim-{number:03}"
