"""What happened to claims and to the devices that are published, in the API server's own order; every version of every claim is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .history import Change

Object = dict[str, Any]
#: Pool and name.
Device = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ClaimView:
    """What the audit wants to know of a ResourceClaim.

    Attributes:
        owner: uid of the pod that it was made for; empty for nobody's.
        allocated: whether it says so; it may have no devices and yet do so.
        node: where its devices are; empty for anywhere.
        reserved: uids of whom it is reserved for.
    """

    uid: str
    key: str
    owner: str
    allocated: bool
    devices: tuple[Device, ...]
    node: str
    reserved: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SliceView:
    """What the audit wants to know of a ResourceSlice."""

    name: str
    node: str
    devices: tuple[Device, ...]


class DeviceHistory:
    """Fed by watches of claims and slices.

    Attributes:
        changes: as heard; in the API server's order once sorted by version.
        claims: by uid, those that exist.
        slices: by name, those that exist, as JSON.
        made: how many claims there ever were.
    """

    def __init__(self, news: Callable[[], None]) -> None:
        self.changes: list[Change] = []
        self.claims: dict[str, ClaimView] = {}
        self.slices: dict[str, Object] = {}
        self.made = 0
        self._news = news

    def claim_changed(self, kind: str, claim: Object, at: float) -> None:
        """From the watch of claims."""
        view, gone = claim_view(claim), kind == "DELETED"
        self.changes.append(Change(int(claim["metadata"]["resourceVersion"]), at, gone, view))
        self.made += view.uid not in self.claims and not gone
        if gone:
            self.claims.pop(view.uid, None)
        else:
            self.claims[view.uid] = view
        self._news()

    def slice_changed(self, kind: str, found: Object, at: float) -> None:
        """From the watch of slices."""
        view, gone = slice_view(found), kind == "DELETED"
        self.changes.append(Change(int(found["metadata"]["resourceVersion"]), at, gone, view))
        if gone:
            self.slices.pop(view.name, None)
        else:
            self.slices[view.name] = found
        self._news()

    def published(self) -> dict[str, set[Device]]:
        """By node, the devices that there are now."""
        found: dict[str, set[Device]] = {}
        for each in map(slice_view, self.slices.values()):
            found.setdefault(each.node, set()).update(each.devices)
        return found


def claim_view(claim: Object) -> ClaimView:
    """A claim's JSON, seen."""
    metadata, status = claim["metadata"], claim.get("status") or {}
    allocation = status.get("allocation")
    results = ((allocation or {}).get("devices") or {}).get("results") or ()
    owners = [each["uid"] for each in metadata.get("ownerReferences") or () if each["kind"] == "Pod"]
    return ClaimView(
        uid=metadata["uid"],
        key=f"{metadata['namespace']}/{metadata['name']}",
        owner=owners[0] if owners else "",
        allocated=allocation is not None,
        devices=tuple((each["pool"], each["device"]) for each in results),
        node=_node_of(allocation or {}),
        reserved=tuple(each["uid"] for each in status.get("reservedFor") or ()),
    )


def _node_of(allocation: Object) -> str:
    terms = (allocation.get("nodeSelector") or {}).get("nodeSelectorTerms") or ()
    names = [field["values"][0] for term in terms for field in term.get("matchFields") or () if field["key"] == "metadata.name"]
    return names[0] if names else ""


def slice_view(found: Object) -> SliceView:
    """A slice's JSON, seen."""
    spec = found["spec"]
    devices = tuple((spec["pool"]["name"], each["name"]) for each in spec.get("devices") or ())
    return SliceView(found["metadata"]["name"], spec.get("nodeName", ""), devices)
