"""What happened in the cluster, in the API server's own order, from watches that go past every proxy.

Pods, nodes, claims, slices of devices, and what is said and held: every version of each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, TypeVar

from handlers.placement_checker import amount, requests

Object = dict[str, Any]
#: By resource, in thousandths.
Amounts = Counter[str]
View = TypeVar("View")

LEASE: Final = "placewright"
GROUP_LABEL: Final = "scheduling.x-k8s.io/pod-group"
_OVER: Final = ("Succeeded", "Failed")
#: Pool and name.
Device = tuple[str, str]


@dataclass(frozen=True, slots=True)
class PodView:
    """What the audit wants to know of a pod.

    Attributes:
        condition: status, reason and message of PodScheduled.
        group: of which it is a member; empty for none.
        wants: how many claims its spec has.
        claims: names of the claims that it uses, as far as they are made.
    """

    uid: str
    key: str
    scheduler: str
    node: str
    asks: Amounts
    over: bool
    leaving: bool
    condition: tuple[str, str, str]
    group: str = ""
    wants: int = 0
    claims: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeView:
    """What the audit wants to know of a node."""

    name: str
    room: Amounts
    cordoned: bool


@dataclass(frozen=True, slots=True)
class ClaimView:
    """What the audit wants to know of a ResourceClaim.

    Attributes:
        owner: uid of the pod that owns the claim; empty without an owner.
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


@dataclass(frozen=True, slots=True)
class Change:
    """One write. `gone`: it was deleted. `at`: when it was heard of, monotonic seconds."""

    version: int
    at: float
    gone: bool
    view: Any


@dataclass(frozen=True, slots=True)
class Said:
    """An event about a pod."""

    reason: str
    uid: str
    note: str
    reporter: str


class History:
    """Fed by watches; `changes` are in the API server's order once sorted by version.

    Attributes:
        pods: by uid, those that exist.
        first: by uid, each pod as it was first seen.
        last: by uid, each pod as it was last seen.
        claims: by uid, those that exist.
        slices: by name, those that exist.
        made: how many claims there ever were.
        holders: of the Lease, when they were heard of: (monotonic seconds, identity); empty for nobody.
        peers: identities in the peering object.
        bound: how many pods got a node so far that had none at first.
    """

    def __init__(self, news: Callable[[], None]) -> None:
        self.changes: list[Change] = []
        self.pods: dict[str, PodView] = {}
        self.nodes: dict[str, NodeView] = {}
        self.first: dict[str, PodView] = {}
        self.last: dict[str, PodView] = {}
        self.claims: dict[str, ClaimView] = {}
        self.slices: dict[str, SliceView] = {}
        self.made = 0
        self.said: dict[str, Said] = {}
        self.holders: list[tuple[float, str]] = []
        self.peers: set[str] = set()
        self.bound = 0
        self._news = news

    def pod_changed(self, kind: str, pod: Object, at: float) -> None:
        """From the watch of pods."""
        view = pod_view(pod)
        before = self._keep(self.pods, view.uid, view, Change(_version(pod), at, kind == "DELETED", view))
        self.first.setdefault(view.uid, view)
        self.last[view.uid] = view
        self.bound += bool(view.node and before is not None and not before.node)

    def node_changed(self, kind: str, node: Object, at: float) -> None:
        """From the watch of nodes."""
        view = node_view(node)
        self._keep(self.nodes, view.name, view, Change(_version(node), at, kind == "DELETED", view))

    def claim_changed(self, kind: str, claim: Object, at: float) -> None:
        """From the watch of claims."""
        view = claim_view(claim)
        before = self._keep(self.claims, view.uid, view, Change(_version(claim), at, kind == "DELETED", view))
        self.made += before is None and kind != "DELETED"

    def slice_changed(self, kind: str, found: Object, at: float) -> None:
        """From the watch of slices."""
        view = slice_view(found)
        self._keep(self.slices, view.name, view, Change(_version(found), at, kind == "DELETED", view))

    def _keep(self, known: dict[str, View], key: str, view: View, change: Change) -> View | None:
        """What was known before."""
        before = known.pop(key, None)
        if view != before or change.gone:
            self.changes.append(change)
        if not change.gone:
            known[key] = view
        self._news()
        return before

    def published(self) -> dict[str, set[Device]]:
        """By node, the devices that there are now."""
        found: dict[str, set[Device]] = {}
        for each in self.slices.values():
            found.setdefault(each.node, set()).update(each.devices)
        return found

    def event_changed(self, kind: str, event: Object, at: float) -> None:
        """From the watch of events."""
        about = event.get("regarding") or event.get("involvedObject") or {}
        if kind != "DELETED" and about.get("kind") == "Pod":
            note = event.get("note") or event.get("message") or ""
            reporter = event.get("reportingInstance", "")
            self.said[event["metadata"]["uid"]] = Said(event["reason"], about.get("uid", ""), note, reporter)
            self._news()

    def lease_changed(self, kind: str, lease: Object, at: float) -> None:
        """From the watch of leases."""
        if lease["metadata"]["name"] != LEASE:
            return
        holder = (lease.get("spec") or {}).get("holderIdentity") or "" if kind != "DELETED" else ""
        if not self.holders or self.holders[-1][1] != holder:
            self.holders.append((at, holder))
            self._news()

    def peering_changed(self, kind: str, peering: Object, at: float) -> None:
        """From the watch of Kopf's peerings."""
        self.peers = set(peering.get("status") or ())
        self._news()


def _version(content: Object) -> int:
    return int(content["metadata"]["resourceVersion"])


def pod_view(pod: Object) -> PodView:
    """A pod's JSON, seen."""
    metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
    condition = next((one for one in status.get("conditions") or () if one["type"] == "PodScheduled"), {})
    return PodView(
        uid=metadata["uid"],
        key=f"{metadata['namespace']}/{metadata['name']}",
        scheduler=spec.get("schedulerName", ""),
        node=spec.get("nodeName", ""),
        asks=amounts(requests(pod)),
        over=status.get("phase") in _OVER,
        leaving=bool(metadata.get("deletionTimestamp")),
        condition=(condition.get("status", ""), condition.get("reason", ""), condition.get("message", "")),
        group=(metadata.get("labels") or {}).get(GROUP_LABEL, ""),
        wants=len(spec.get("resourceClaims") or ()),
        claims=tuple(_claim_names(spec, status)),
    )


def amounts(told: Mapping[str, Fraction]) -> Amounts:
    """Whole numbers, which can be added and compared."""
    return Counter({name: int(value * 1000) for name, value in sorted(told.items())})


def _claim_names(spec: Object, status: Object) -> Iterator[str]:
    made = {each["name"]: each.get("resourceClaimName") for each in status.get("resourceClaimStatuses") or ()}
    for each in spec.get("resourceClaims") or ():
        name = each.get("resourceClaimName") or made.get(each["name"])
        if name:
            yield name


def node_view(node: Object) -> NodeView:
    """A node's JSON, seen."""
    room = {name: amount(text) for name, text in node["status"]["allocatable"].items()}
    return NodeView(node["metadata"]["name"], amounts(room), bool(node["spec"].get("unschedulable")))


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
