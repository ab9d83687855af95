"""From the devices that were chosen to the allocation that is written into a claim's status."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from placewright.api.devices import AllocatedDevice, AllocatedDevices, Allocation
from placewright.api.objects import NodeSelector, NodeSelectorTerm, Requirement
from placewright.api.selectors import NODE_NAME_FIELD
from placewright.plugins.dynamicresources.allocator import Pick
from placewright.plugins.dynamicresources.demands import ClaimDemand


def allocation_of(claim: ClaimDemand, picks: Sequence[Pick], node: str) -> Allocation:
    """The allocation of a claim that gets these devices for a pod on this node."""
    devices = AllocatedDevices(tuple(_result(pick) for pick in picks) or None, _configuration(claim, picks))
    return Allocation(devices, _node_selector(picks, node))


def _result(pick: Pick) -> AllocatedDevice:
    offer = pick.offer
    return AllocatedDevice(
        request=pick.demand.name,
        driver=offer.id.driver,
        pool=offer.id.pool,
        device=offer.id.device,
        admin_access=True if pick.demand.admin else None,
        tolerations=pick.demand.wish.tolerations,
        binding_conditions=offer.device.binding_conditions,
        binding_failure_conditions=offer.device.binding_failure_conditions,
        share_id=pick.share_id,
        consumed_capacity={name: amount.text for name, amount in pick.consumed.items()} or None,
    )


# --- configuration: that of classes first, each class once, then that of the claim -------------------------------------------


def _configuration(claim: ClaimDemand, picks: Sequence[Pick]) -> tuple[msgspec.Raw, ...] | None:
    chosen = {pick.demand.name.partition("/")[0]: pick.demand for pick in picks}
    demands = [chosen[name] for name in (request.name for request in claim.claim.spec.devices.requests or ()) if name in chosen]
    entries: list[dict[str, Any]] = []
    for device_class in {demand.device_class.metadata.name: demand.device_class for demand in demands}.values():
        users = [demand.name for demand in demands if demand.device_class is device_class]
        entries += [_entry("FromClass", users, msgspec.json.decode(raw)) for raw in device_class.spec.config or ()]
    for raw in claim.claim.spec.devices.config or ():
        config = msgspec.json.decode(raw)
        users = config.pop("requests", None) or []
        if not users or any(demand.names & set(users) for demand in demands):
            entries.append(_entry("FromClaim", users, config))
    for entry in entries:
        if all(demand.names & set(entry["requests"]) for demand in demands):
            entry["requests"] = []  # of all requests: said by naming none
    return tuple(msgspec.Raw(msgspec.json.encode(_trimmed(entry))) for entry in entries) or None


def _entry(source: str, requests: list[str], config: dict[str, Any]) -> dict[str, Any]:
    return {"source": source, "requests": requests, **config}


def _trimmed(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name != "requests" or value}


# --- from where the devices can be used --------------------------------------------------------------------------------------


def _node_selector(picks: Sequence[Pick], node: str) -> NodeSelector | None:
    """This node alone if any device is local to it or binds to it; else what all devices ask of nodes; None: any node will do."""
    if any(pick.offer.reach.node or pick.offer.device.binds_to_node for pick in picks):
        return NodeSelector((NodeSelectorTerm(match_fields=(Requirement(NODE_NAME_FIELD, "In", (node,)),)),))
    terms = [term for pick in picks if pick.offer.selector is not None for term in pick.offer.selector.node_selector_terms or ()]
    fields = _distinct(each for term in terms for each in term.match_fields or ())
    expressions = _distinct(each for term in terms for each in term.match_expressions or ())
    if not fields and not expressions:
        return None
    return NodeSelector((NodeSelectorTerm(expressions or None, fields or None),))


def _distinct(requirements: Iterable[Requirement]) -> tuple[Requirement, ...]:
    """Each once, in whatever order its values are."""
    first: dict[tuple[str, str, frozenset[str]], Requirement] = {}
    for each in requirements:
        first.setdefault((each.key, each.operator, frozenset(each.values or ())), each)
    return tuple(first.values())
