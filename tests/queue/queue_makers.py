"""The queue's tests: pods of the public kit, a profile as the queue sees it, and a queue that checks its promise after every call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from placewright.api.pods import PodInfo
from placewright.framework.events import ClusterEventWithHint
from placewright.framework.status import SUCCESS, Status, unschedulable
from placewright.queue.check import check_invariants
from placewright.queue.policy import BackoffPolicy, SortKey, TenantPolicy
from placewright.queue.queue import SchedulingQueue
from placewright.queue.queued import QueuedPod, SubQueue
from placewright.testing import pod
from placewright.testing.pods import PodMaker

__all__ = ["CheckedQueue", "FakePolicy", "PodMaker", "World", "affinity_term", "near", "pod"]

Body = dict[str, Any]


def affinity_term(**labels: str) -> Body:
    """A required affinity term for pods with these labels, in the pod's own namespace."""
    return {"topologyKey": "zone", "labelSelector": {"matchLabels": labels}}


def near(maker: PodMaker, *terms: Body) -> PodMaker:
    """The pod with these required affinity terms, and no others."""
    return maker.spec(affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}})


@dataclass
class FakePolicy:
    """A profile: PrioritySort, gates by scheduling gate, and the interests a test names.

    `closed` holds uids that the plugin `Door` gates, `extenders` who binds pods, by uid.
    """

    interests: Mapping[str, Sequence[ClusterEventWithHint] | None] = field(default_factory=dict)
    backoff: BackoffPolicy = field(default_factory=BackoffPolicy)
    paused: bool = False
    give_up_after: float | None = None
    closed: set[str] = field(default_factory=set)
    descending: bool = True
    extenders: dict[str, str] = field(default_factory=dict)
    gate_checks: int = 0
    tenants: TenantPolicy | None = None

    @property
    def order(self) -> tuple[object, ...]:
        return (self.descending, *sorted(self.extenders.items()))

    def pre_enqueue(self, pod: PodInfo) -> Status:
        self.gate_checks += 1
        if pod.pod.spec.scheduling_gates:
            return unschedulable("waiting for scheduling gates").by("SchedulingGates")
        return unschedulable("the door is closed").by("Door") if pod.uid in self.closed else SUCCESS

    def binding_extender(self, pod: PodInfo) -> str:
        return self.extenders.get(pod.uid, "")

    def sort_key(self, pod: PodInfo, timestamp: float) -> SortKey:
        return (-pod.priority if self.descending else pod.priority, timestamp)


@dataclass(frozen=True)
class FakeTenants:
    """Tenants by namespace, or by a label; a pod costs its milli-CPU, at least 1 of them."""

    label: str = ""
    weights: Mapping[str, int] = field(default_factory=dict)
    unit: int = 10**6

    @property
    def by(self) -> str:
        return self.label

    def tenant_of(self, pod: PodInfo) -> str:
        return (pod.pod.metadata.labels or {}).get(self.label, "") if self.label else pod.namespace

    def weight(self, tenant: str) -> int:
        return self.weights.get(tenant, 1)

    def charge(self, pod: PodInfo) -> int:
        return max(1, pod.requests.get("cpu", 0)) * self.unit


class CheckedQueue(SchedulingQueue):
    """The queue under test: every call that changes it is followed by a check of its invariants."""


def _checked(name: str) -> Callable[..., Any]:
    def call(self: CheckedQueue, *args: Any, **kwargs: Any) -> Any:
        result = getattr(SchedulingQueue, name)(self, *args, **kwargs)
        check_invariants(self)
        return result

    return call


for _name in (
    "add", "update", "delete", "pop", "done", "return_unschedulable", "move", "activate", "flush_backoff", "flush_unschedulable",
    "reprioritise",
):  # fmt: skip
    setattr(CheckedQueue, _name, _checked(_name))


class World:
    """A queue with a clock that stands still until told, and profiles by scheduler name."""

    def __init__(self, policy: FakePolicy | None = None, slices: int | None = None) -> None:
        self.now = 100.0
        self.policy = policy or FakePolicy()
        self.policies: dict[str, FakePolicy] = {"default-scheduler": self.policy}
        self.incoming: list[tuple[str, str]] = []
        self.queue = CheckedQueue(
            self.policies.get, lambda: self.now, lambda queue, event: self.incoming.append((queue, event)), slices=slices
        )

    def add(self, *makers: PodMaker) -> None:
        """Add pods at the present time."""
        for maker in makers:
            self.queue.add(maker.build())

    def pop(self) -> QueuedPod:
        """Pop a pod that must be there."""
        queued = self.queue.pop()
        assert queued is not None
        return queued

    def popped_names(self) -> list[str]:
        """The names of all pods that can be popped now, in order."""
        names = []
        while (queued := self.queue.pop()) is not None:
            names.append(queued.pod.name)
        return names

    def rejected(self, maker: PodMaker, *plugins: str, pending: Iterable[str] = ()) -> QueuedPod:
        """A pod that was added, tried and rejected by these plugins at the present time; no plugins: an error."""
        self.add(maker)
        queued = self.pop()
        assert queued.uid == maker.build().uid, "another pod was first"
        self.queue.return_unschedulable(queued, set(plugins), set(pending))
        return queued

    def place(self, name: str) -> SubQueue | None:
        """Where the pod of this name is."""
        return self.queue.locate(f"uid-{name}")
