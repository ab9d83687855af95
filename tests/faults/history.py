"""What happened in the cluster, in the API server's own order: pods, nodes and events, from watches that go past every proxy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

Object = dict[str, Any]

_SUFFIXES: Final = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
LEASE: Final = "placewright"
GROUP_LABEL: Final = "scheduling.x-k8s.io/pod-group"
_OVER: Final = ("Succeeded", "Failed")


def milli_cpu(text: str) -> int:
    """`250m`, `2` in thousandths of a CPU."""
    return int(text[:-1]) if text.endswith("m") else int(text) * 1000


def amount(text: str) -> int:
    """`64Mi`, `110` as a number."""
    return int(text[:-2]) * _SUFFIXES[text[-2:]] if text[-2:] in _SUFFIXES else int(text)


@dataclass(frozen=True, slots=True)
class Amounts:
    """milli-CPU, bytes, pods."""

    cpu: int = 0
    memory: int = 0
    pods: int = 0

    def __add__(self, other: Amounts) -> Amounts:
        return Amounts(self.cpu + other.cpu, self.memory + other.memory, self.pods + other.pods)

    def within(self, room: Amounts) -> bool:
        return self.cpu <= room.cpu and self.memory <= room.memory and self.pods <= room.pods

    def most(self, other: Amounts) -> Amounts:
        """The larger of each."""
        return Amounts(max(self.cpu, other.cpu), max(self.memory, other.memory), max(self.pods, other.pods))


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
        self.said: dict[str, Said] = {}
        self.holders: list[tuple[float, str]] = []
        self.peers: set[str] = set()
        self.bound = 0
        self._news = news

    def pod_changed(self, kind: str, pod: Object, at: float) -> None:
        """From the watch of pods."""
        view, gone = pod_view(pod), kind == "DELETED"
        known = self.pods.get(view.uid)
        if view != known or gone:
            self._add(pod, gone, view, at)
        self.first.setdefault(view.uid, view)
        self.last[view.uid] = view
        self.bound += bool(view.node and known is not None and not known.node)
        if gone:
            self.pods.pop(view.uid, None)
        else:
            self.pods[view.uid] = view
        self._news()

    def node_changed(self, kind: str, node: Object, at: float) -> None:
        """From the watch of nodes."""
        view, gone = node_view(node), kind == "DELETED"
        if view != self.nodes.get(view.name) or gone:
            self._add(node, gone, view, at)
        if gone:
            self.nodes.pop(view.name, None)
        else:
            self.nodes[view.name] = view
        self._news()

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

    def _add(self, content: Object, gone: bool, view: PodView | NodeView, at: float) -> None:
        self.changes.append(Change(int(content["metadata"]["resourceVersion"]), at, gone, view))


def pod_view(pod: Object) -> PodView:
    """A pod's JSON, seen."""
    metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
    condition = next((one for one in status.get("conditions") or () if one["type"] == "PodScheduled"), {})
    wanted = [one.get("resources", {}).get("requests", {}) for one in spec["containers"]]
    return PodView(
        uid=metadata["uid"],
        key=f"{metadata['namespace']}/{metadata['name']}",
        scheduler=spec.get("schedulerName", ""),
        node=spec.get("nodeName", ""),
        asks=Amounts(sum(milli_cpu(one.get("cpu", "0")) for one in wanted), sum(amount(one.get("memory", "0")) for one in wanted), 1),
        over=status.get("phase") in _OVER,
        leaving=bool(metadata.get("deletionTimestamp")),
        condition=(condition.get("status", ""), condition.get("reason", ""), condition.get("message", "")),
        group=(metadata.get("labels") or {}).get(GROUP_LABEL, ""),
        wants=len(spec.get("resourceClaims") or ()),
        claims=tuple(_claim_names(spec, status)),
    )


def _claim_names(spec: Object, status: Object) -> Iterator[str]:
    made = {each["name"]: each.get("resourceClaimName") for each in status.get("resourceClaimStatuses") or ()}
    for each in spec.get("resourceClaims") or ():
        name = each.get("resourceClaimName") or made.get(each["name"])
        if name:
            yield name


def node_view(node: Object) -> NodeView:
    """A node's JSON, seen."""
    room = node["status"]["allocatable"]
    amounts = Amounts(milli_cpu(room["cpu"]), amount(room["memory"]), amount(room["pods"]))
    return NodeView(node["metadata"]["name"], amounts, bool(node["spec"].get("unschedulable")))
