"""A cluster with devices under the default profile, a writer of claims that keeps them like an API server, and the steps of a pod in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from msgspec.structs import replace

from placewright import testing as kit
from placewright.api.decode import convert
from placewright.api.devices import DeviceStatus, ResourceClaim, ResourceClaimStatus
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.runtime.evaluation import Evaluation
from placewright.framework.runtime.handle import ProfileHandle
from placewright.framework.status import Status
from placewright.plugins.catalog import in_tree
from placewright.testing.claimport import FakeClaimWriter
from placewright.testing.objectmaker import next_version

Body = dict[str, Any]


class Server(FakeClaimWriter):
    """Keeps claims in `claims`, and shows the cluster none of them. Work beside everything else waits for `catch_up`.

    Attributes:
        says: by claim, what its driver says of its devices.
        before_looking: called before each look at what a pod waits for.
    """

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster, lambda: 0.0, hides=lambda claim: self.claims.pop(claim.metadata.name))
        self.claims: dict[str, ResourceClaim] = {}
        self.says: dict[str, tuple[DeviceStatus, ...] | None] = {}
        self.before_looking: Callable[[], None] = lambda: None
        self.late: list[Coroutine[Any, Any, None]] = []

    def keep(self, claim: ResourceClaim) -> ResourceClaim:
        """Store a claim with a new version."""
        kept = replace(claim, metadata=replace(claim.metadata, resource_version=next_version()))
        self.claims[kept.metadata.name] = replace(kept, status=replace(kept.status, devices=self.says.get(kept.metadata.name)))
        return self.claims[kept.metadata.name]

    def _shown(self, claim: ResourceClaim) -> ResourceClaim | None:
        return self.claims.get(claim.metadata.name)

    def _show(self, claim: ResourceClaim) -> ResourceClaim:
        return self.keep(claim)

    async def until(self, done: Callable[[], bool], seconds: float) -> bool:
        self.before_looking()
        return done()

    def beside(self, work: Coroutine[Any, Any, None]) -> None:
        self.late.append(work)

    def catch_up(self) -> None:
        """What was begun beside everything else is done now."""
        late, self.late = self.late, []
        for work in late:
            asyncio.run(work)


class Claiming:
    """Nodes n0, n1, ... with so many devices each; every pod and claim is in the namespace `default`."""

    def __init__(self, *devices: int, resource: str = "") -> None:
        self.cluster = Cluster()
        self.server = Server(self.cluster)
        for number, count in enumerate(devices):
            self._node(f"n{number}", count)
        gpu = kit.device_class("gpu")
        self.cluster.objects.put((gpu.serves(resource) if resource else gpu).build())
        handle = ProfileHandle(self.cluster, claims=self.server)
        self.evaluator = handle.evaluator(kit.profile().resolved(), in_tree())
        self.table = self.cluster.objects.devices.claims

    def with_conditions(self, node: str, *conditions: str) -> None:
        """The node's first device has to be made ready for who gets it; `broken` says that it never will be."""
        made = kit.resource_slice(node, driver="d").pool(node, generation=2)
        self.cluster.objects.put(made.device("d0", bindingConditions=list(conditions), bindingFailureConditions=["broken"]).build())

    def says(self, claim: str, **conditions: str) -> None:
        """The driver says so of the device that the claim has, whenever somebody looks."""
        told = [{"type": kind, "status": status} for kind, status in conditions.items()]
        devices = [{"driver": "d", "pool": "n0", "device": "d0", "conditions": told}]
        self.server.says[claim] = convert({"devices": devices}, ResourceClaimStatus).devices

    def _node(self, name: str, count: int) -> None:
        self.cluster.set_node(kit.node(name, cpu="64", memory="64Gi").build())
        self.cluster.objects.put(kit.resource_slice(name, driver="d").devices(*(f"d{number}" for number in range(count))).build())

    def claim(self, name: str, count: int = 1, **meta: Any) -> ResourceClaim:
        """A claim that there is."""
        made = kit.resource_claim(name).uid(f"u-{name}").request("gpu", count=count, name="r").metadata(**meta)
        kept = self.server.keep(made.build())
        self.show(name)
        return kept

    def show(self, name: str) -> None:
        """The watch shows what was written of a claim."""
        if name in self.server.claims:
            self.cluster.objects.put(self.server.claims[name])

    def pod(self, name: str, *claims: str, labels: Body | None = None, **container: Any) -> PodInfo:
        named = [{"name": f"c{number}", "resourceClaimName": each} for number, each in enumerate(claims)]
        spec = {"resourceClaims": named, "containers": [{"name": "main", **container}], "initContainers": container.pop("init", [])}
        return kit.pod(name, labels=labels, **spec).uid(f"p-{name}").build()

    def fits(self, pod: PodInfo) -> list[str]:
        """Where it could go."""
        found = self.evaluator.evaluate(pod)
        return [str(name) for name, fits in zip(self.cluster.names, found.feasible, strict=True) if fits]

    def why(self, pod: PodInfo) -> set[str]:
        """Why it can go nowhere."""
        diagnosis = self.evaluator.diagnose(self.evaluator.evaluate(pod))
        return {diagnosis.prefilter_message} - {""} or {rejection.status.message for rejection in diagnosis.rejections}

    def reserve(self, pod: PodInfo, node: str) -> Evaluation:
        """Decided for a node."""
        evaluation = self.evaluator.evaluate(pod)
        assert node in [str(name) for name, fits in zip(self.cluster.names, evaluation.feasible, strict=True) if fits]
        self.cluster.assume(pod, NodeName(node))
        status = self.evaluator.runtime.run_reserve(evaluation.state, pod, NodeName(node))
        assert status.ok, status
        self.cluster.take_with_claims(pod.uid, evaluation.state.taken_with_claims)
        return evaluation

    def pre_bind(self, evaluation: Evaluation, node: str) -> Status:
        return asyncio.run(self.evaluator.runtime.run_pre_bind(evaluation.state, evaluation.pod, NodeName(node)))

    def unreserve(self, evaluation: Evaluation, node: str) -> None:
        """Everything is taken back, now and beside."""
        self.evaluator.runtime.run_unreserve(evaluation.state, evaluation.pod, NodeName(node))
        self.cluster.forget(evaluation.pod, NodeName(node))

    def pre_enqueue(self, pod: PodInfo) -> str:
        return self.evaluator.runtime.run_pre_enqueue(pod).message

    def post_filter(self, pod: PodInfo) -> str:
        evaluation = self.evaluator.evaluate(pod)
        diagnosis = self.evaluator.diagnose(evaluation)
        return self.evaluator.runtime.run_post_filter(evaluation.state, pod, diagnosis).status.reasons[0]

    def taken(self) -> list[tuple[str, str]]:
        """Devices that some claim has, as the scheduler sees it."""
        found = [claim.status.allocation for claim in self.table.values() if claim.status.allocation is not None]
        return sorted((result.pool, result.device) for each in found for result in each.devices.results or ())
