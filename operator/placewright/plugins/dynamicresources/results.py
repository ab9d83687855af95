"""From the devices that were chosen to the allocation that is written into a claim's status."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from placewright.api.devices import AllocatedDevice, AllocatedDevices, AllocationResult
from placewright.api.objects import NodeSelector, NodeSelectorTerm, Requirement
from placewright.api.selectors import NODE_NAME_FIELD
from placewright.plugins.dynamicresources.allocator import Pick
from placewright.plugins.dynamicresources.demands import ClaimDemand


def allocation_of(claim: ClaimDemand, picks: Sequence[Pick], node: str) -> AllocationResult:
    """The allocation of a claim that gets these devices for a pod on this node."""
    devices = AllocatedDevices(tuple(_result(pick) for pick in picks) or None, _configuration(claim, picks))
    return AllocationResult(devices, _node_selector(picks, node))


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


@dataclass(slots=True)
class _Entry:
    """A configuration. Its text is copied: decoded and encoded again, numbers and escapes of a driver's parameters would be others."""

    source: str
    requests: list[str]
    rest: dict[str, msgspec.Raw]

    def written(self) -> msgspec.Raw:
        """As the allocation has it."""
        named = {"requests": self.requests} if self.requests else {}
        return msgspec.Raw(msgspec.json.encode({"source": self.source, **named, **self.rest}))


_parts: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_names: Final = msgspec.json.Decoder(list[str] | None).decode


def _configuration(claim: ClaimDemand, picks: Sequence[Pick]) -> tuple[msgspec.Raw, ...] | None:
    chosen = {pick.demand.name.partition("/")[0]: pick.demand for pick in picks}
    demands = [chosen[name] for name in (request.name for request in claim.claim.spec.devices.requests or ()) if name in chosen]
    entries: list[_Entry] = []
    for device_class in {demand.device_class.metadata.name: demand.device_class for demand in demands}.values():
        users = [demand.name for demand in demands if demand.device_class is device_class]
        entries += [_Entry("FromClass", users, _parts(raw)) for raw in device_class.spec.config or ()]
    for raw in claim.claim.spec.devices.config or ():
        config = _parts(raw)
        users = _names(config.pop("requests", b"null")) or []
        if not users or any(demand.names & set(users) for demand in demands):
            entries.append(_Entry("FromClaim", users, config))
    for entry in entries:
        if all(demand.names & set(entry.requests) for demand in demands):
            entry.requests = []  # of all requests: said by naming none
    return tuple(entry.written() for entry in entries) or None


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
