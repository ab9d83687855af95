"""A core with the controller of claims at work, and what a scheduler and a kubelet would write, for tests that tell histories."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kubesandbox.controllers.collector import Collector
from kubesandbox.devices.claimcontroller import ClaimController
from kubesandbox.devices.podclaims import FINALIZER
from kubesandbox.status import Object
from kubesandbox.storage.writes import DeleteOptions
from lab.sandbox.makers import Core, a_pod

CLAIMS = "resourceclaims"
TURNS = 20
"""Of the event loop: more than any chain of consequences takes."""


async def settled() -> None:
    """Let the work happen that was put off for "a moment later"."""
    for _ in range(TURNS):
        await asyncio.sleep(0)


def claim_spec(device_class: str = "gpus") -> Object:
    return {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": device_class}}]}}


def pod_with(name: str, *, template: str = "", claim: str = "", node: str = "", entry: str = "gpu") -> Object:
    """Make a pod that names a template, or a claim."""
    body = a_pod(name, node=node)
    named = {"resourceClaimTemplateName": template} if template else {"resourceClaimName": claim}
    body["spec"]["resourceClaims"] = [{"name": entry, **named}]
    return body


class Claims:
    """Pods and claims of one namespace. The controller starts with the cluster unless it comes later."""

    def __init__(self, *, controller: bool = True) -> None:
        self.core = Core()
        Collector(self.core.writes)
        if controller:
            self.start()

    def start(self) -> None:
        """A controller, which knows nothing but what is stored."""
        ClaimController(self.core.writes)

    def template(self, name: str = "gpus", **metadata: object) -> None:
        self.core.create("resourceclaimtemplates", {"metadata": {"name": name}, "spec": {"metadata": metadata, "spec": claim_spec()}})

    def claim(self, name: str = "shared") -> Object:
        return self.core.create(CLAIMS, {"metadata": {"name": name}, "spec": claim_spec()})

    def pod(self, name: str = "web", **fields: str) -> Object:
        return self.core.create("pods", pod_with(name, **fields))

    def allocate(self, name: str, *pods: str) -> None:
        """Set finalizer, allocation and consumers, like a scheduler."""
        result = {"request": "gpu", "driver": "gpu.example.com", "pool": "node-a", "device": "gpu-0"}
        uids = {each: self.show_pod(each)["metadata"]["uid"] for each in pods}

        def allocate(claim: Object) -> None:
            claim["metadata"]["finalizers"] = [FINALIZER]
            users = [{"resource": "pods", "name": each, "uid": uid} for each, uid in uids.items()]
            claim["status"] = {"allocation": {"devices": {"results": [result]}}, **({"reservedFor": users} if users else {})}

        self.edit(CLAIMS, name, allocate)

    def edit(self, plural: str, name: str, change: Callable[[Object], None]) -> None:
        assert self.core.writes.modify(self.core.type(plural), "default", name, change) is not None

    def finish(self, name: str, phase: str = "Succeeded") -> None:
        """End the pod, like a kubelet."""
        self.edit("pods", name, lambda content: content["status"].update(phase=phase))

    def bind(self, name: str, node: str = "node-a") -> None:
        self.edit("pods", name, lambda content: content["spec"].update(nodeName=node))

    def delete(self, plural: str, name: str) -> None:
        self.core.writes.delete(self.core.type(plural), "default", name, DeleteOptions(grace=0))

    # --- what is there ---

    def names(self) -> list[str]:
        return [each.name for each in self.core.store.listed(("resource.k8s.io", CLAIMS))]

    def show(self, name: str) -> Object:
        found = self.core.get(CLAIMS, name)
        assert found is not None, f"there is no claim {name}"
        return found

    def show_pod(self, name: str = "web") -> Object:
        found = self.core.get("pods", name)
        assert found is not None, f"there is no pod {name}"
        return found

    def claim_of(self, name: str = "web", entry: str = "gpu") -> str:
        """Return the claim in the pod's status, empty if there is none."""
        statuses = self.show_pod(name)["status"].get("resourceClaimStatuses") or []
        return next((each["resourceClaimName"] for each in statuses if each["name"] == entry), "")

    def state(self, name: str) -> tuple[bool, list[str], bool]:
        """Return whether the claim is allocated, its consumers, and whether it is protected."""
        claim = self.show(name)
        status = claim.get("status") or {}
        users = [each["name"] for each in status.get("reservedFor") or ()]
        return "allocation" in status, users, FINALIZER in (claim["metadata"].get("finalizers") or ())

    def events(self) -> list[tuple[str, str, int]]:
        """Return reasons, messages and counts of all events."""
        found = [each.object for each in self.core.store.listed(("", "events"))]
        return [(each["reason"], each["message"], each["count"]) for each in found]
