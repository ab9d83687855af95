"""The pages of a pod's group and claims, and the verdicts about each node.

The page of a ResourceClaim: its requests and devices, the pods that use it or wait, and why no device fits.

Claims, the pods that use them and the pods that name them are of one namespace. The reasons are those of the oldest waiting pod, as
`placewright explain` tells them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from placewright.api.devices import (
    ALL_DEVICES,
    AllocatedDevice,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
)
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.cluster.devices import DeviceObjects, owner_of_extended
from placewright.explain.explanation import Explanation, claim_fact, evaluated
from placewright.explain.words import claim_line, verdict
from placewright.plugins.dynamicresources.claims import named_claims
from placewright.scheduler.cycle import cut
from placewright.serving.rights import Rights
from placewright_console.pages.devicehomes import home_of
from placewright_console.pages.grouppage import group_page
from placewright_console.pages.nodeverdicts import Judging, node_verdicts, unjudged
from placewright_console.pages.pendingpods import PendingPods
from placewright_console.pages.podpage import filter_order, funnel
from placewright_console.pages.verdictdesk import SHARE, VerdictDesk

#: Waiting pods that a page names, the oldest first.
MOST_WAITING: Final = 100


def claim_page(cluster: Cluster, pending: PendingPods, namespace: str, name: str, rights: Rights) -> dict[str, Any] | None:
    """Make the page of a claim.

    Args:
        cluster: only read.
        pending: the pods without a node.
        namespace: namespace of the claim.
        name: name of the claim.
        rights: rights of the reader.

    Returns:
        None for an unknown claim, and for one that the reader may not see.
    """
    devices = cluster.objects.devices
    claim = devices.claims.get(name, namespace) if rights.may_see(namespace) else None
    if claim is None:
        return None
    waiting = sorted(
        ((pending.standing(pod), pod) for pod in pending.of_namespace(namespace) if _wants(pod, claim)),
        key=lambda each: (each[0].since, each[1].name),
    )
    fact = claim_fact("", claim, "", devices.claims)
    return {
        "namespace": namespace,
        "name": name,
        "line": claim_line(fact).replace(" (for its extended resources)", "", 1),
        "extended": bool(owner_of_extended(claim)),
        "writing": fact.writing,
        "deleting": claim.metadata.deletion_timestamp is not None,
        "requests": [_request(each) for each in claim.spec.devices.requests or ()],
        "constraints": [_constraint(each) for each in msgspec.to_builtins(claim.spec.devices.constraints or ())],
        "devices": _devices(devices, claim),
        "users": _users(cluster, claim),
        "waiting": [[pod.name, standing.place, standing.since] for standing, pod in waiting[:MOST_WAITING]],
        "more": max(len(waiting) - MOST_WAITING, 0),
        "why": _why(cluster, pending, [pod for _, pod in waiting]),
    }


def _wants(pod: PodInfo, claim: ResourceClaim) -> bool:
    return claim.metadata.name in named_claims(pod) or owner_of_extended(claim) == pod.uid


# --- what it asks for ------------------------------------------------------------------------------------------------------------


def _request(request: DeviceRequest) -> dict[str, Any]:
    ways: Iterable[ExactDeviceRequest | DeviceSubRequest] = [request.exactly] if request.exactly else request.first_available or ()
    return {"name": request.name, "ways": [_way(way) for way in ways]}


def _way(way: ExactDeviceRequest | DeviceSubRequest) -> dict[str, Any]:
    capacity = (way.capacity.requests if way.capacity is not None else None) or {}
    return {
        "name": way.name if isinstance(way, DeviceSubRequest) else "",
        "class": way.device_class_name,
        "count": 0 if way.allocation_mode == ALL_DEVICES else way.count,
        "selectors": [text for each in way.selectors or () if (text := _expression(each))],
        "capacity": {key: str(amount) for key, amount in capacity.items()},
        "tolerations": len(way.tolerations or ()),
        "admin": bool(getattr(way, "admin_access", None)),
    }


def _expression(selector: DeviceSelector) -> str:
    return "" if selector.cel is None else cut(selector.cel.expression)


def _constraint(constraint: Mapping[str, Any]) -> str:
    requests = constraint.get("requests") or ()
    of = f"devices of {', '.join(requests)}" if requests else "all devices"
    if attribute := constraint.get("matchAttribute"):
        return f"{of} have the same {attribute}"
    attribute = constraint.get("distinctAttribute")
    return f"{of} differ in {attribute}" if attribute else f"{of} obey a constraint that is not known here"


# --- what it has -----------------------------------------------------------------------------------------------------------------


def _devices(objects: DeviceObjects, claim: ResourceClaim) -> list[dict[str, Any]]:
    allocation = claim.status.allocation
    return [_device(objects, claim, each) for each in (() if allocation is None else allocation.devices.results or ())]


def _device(objects: DeviceObjects, claim: ResourceClaim, result: AllocatedDevice) -> dict[str, Any]:
    home = home_of(objects, result)
    told = [each for each in claim.status.devices or () if _same(each, result)]
    return {
        "request": result.request,
        "driver": result.driver,
        "pool": result.pool,
        "device": result.device,
        "node": home.node,
        "published": home.published,
        "share": result.share_id or "",
        "consumed": {key: [str(amount), home.capacity.get(key, "")] for key, amount in (result.consumed_capacity or {}).items()},
        "admin": bool(result.admin_access),
        "conditions": [f"{each.type} {each.status}: {cut(each.message)}" for status in told for each in status.conditions or ()],
    }


def _same(status: Any, result: AllocatedDevice) -> bool:
    return (status.driver, status.pool, status.device, status.share_id) == (result.driver, result.pool, result.device, result.share_id)


def _users(cluster: Cluster, claim: ResourceClaim) -> list[dict[str, Any]]:
    users = []
    for each in claim.status.reserved_for or ():
        placement = cluster.placement(each.uid)
        pod = each.resource == "pods" and not each.api_group
        users.append({"name": each.name, "kind": "pod" if pod else each.resource, "node": "" if placement is None else placement.node})
    return users


# --- why no device fits ----------------------------------------------------------------------------------------------------------


def _why(cluster: Cluster, pending: PendingPods, waiting: Iterable[PodInfo]) -> dict[str, Any] | None:
    """Return the verdicts about the oldest pod that waits for the claim; None if no pod waits."""
    pod = next(iter(waiting), None)
    if pod is None:
        return None
    evaluator = pending.evaluator(pod)
    if isinstance(evaluator, str):
        return {"pod": pod.name, "verdict": evaluator, "funnel": [], "free": None}
    now = evaluated(evaluator, cluster, pod)
    said = verdict(Explanation(pod.namespace, pod.name), now)
    return {"pod": pod.name, "verdict": said, "funnel": funnel(now, filter_order(evaluator)), "free": msgspec.to_builtins(now.devices)}


class CompanyPages:
    """Answers for one cluster."""

    def __init__(self, cluster: Cluster, pending: PendingPods, clock: Callable[[], float], share: float = SHARE) -> None:
        """Answer nothing yet.

        Args:
            cluster: only read.
            pending: the pods without a node.
            clock: seconds, monotonic.
            share: share of the time that verdicts may take.
        """
        self._cluster = cluster
        self._pending = pending
        self._desk = VerdictDesk(clock, share)

    def group(self, namespace: str, name: str, rights: Rights) -> dict[str, Any] | None:
        """Return the page of a pod group.

        Returns:
            None for an unknown group, and for one that the reader may not see.
        """
        return group_page(self._cluster, self._pending, namespace, name, rights)

    def claim(self, namespace: str, name: str, rights: Rights) -> dict[str, Any] | None:
        """Return the page of a ResourceClaim.

        Returns:
            None for an unknown claim, and for one that the reader may not see.
        """
        return claim_page(self._cluster, self._pending, namespace, name, rights)

    async def verdicts(self, namespace: str, name: str, rights: Rights) -> bytes | None:
        """Return what a waiting pod would meet on each node.

        Returns:
            JSON (`nodeverdicts`); None for a pod that does not wait, and for one that the reader may not see.

        Raises:
            RequestRefused: too many readers wait for an answer (503).
        """
        if not rights.may_see(namespace):
            return None
        return await self._desk.answer(f"{namespace}/{name}", lambda: self._judging(namespace, name))

    def _judging(self, namespace: str, name: str) -> Judging | None:
        pod = self._pending.named(namespace, name)
        if pod is None:
            return None
        evaluator = self._pending.evaluator(pod)
        return unjudged(self._cluster, evaluator) if isinstance(evaluator, str) else node_verdicts(evaluator, self._cluster, pod)
