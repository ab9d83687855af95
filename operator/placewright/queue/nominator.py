"""Nominations of pods that are not placed yet: nodes on which preemption made room, and nodes that are kept for a group."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from typing import Final

from placewright.api.objects import NodeName
from placewright.api.podgroups import GroupRef
from placewright.api.pods import PodInfo
from placewright.framework.ports import KeptFor, NominationChanges

_NONE: Final[Mapping[str, PodInfo]] = {}


class Nominator:
    """The pods that are nominated to each node. A pod is nominated to at most one node.

    Attributes:
        changes: nodes that gained or lost a nominated pod, in order.
        with_terms: number of nominated pods that have affinity terms of their own.
        making_room_for: uids of pods whose victims are being evicted; they must not be tried before the evictions were sent.
        kept_for: group and end of each node that is kept for a group, by the uid of the member.
        together: groups whose members are tried together now. Members of such a group ignore each other's nominations.
    """

    __slots__ = ("_claimants", "_nodes", "_pods", "changes", "kept_for", "making_room_for", "together", "with_terms")

    def __init__(self) -> None:
        self.making_room_for: set[str] = set()
        self.together: set[GroupRef] = set()
        self.kept_for: dict[str, KeptFor] = {}
        self.changes = NominationChanges()
        self.with_terms = 0
        self._pods: dict[NodeName, dict[str, PodInfo]] = {}
        self._nodes: dict[str, NodeName] = {}
        self._claimants: dict[str, tuple[PodInfo, NodeName]] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def add(self, pod: PodInfo, node: NodeName | None = None, kept_for: KeptFor | None = None) -> None:
        """Nominate a pod to a node, replacing an earlier nomination. A pod that already has a node is not nominated.

        Args:
            pod: a pod without a node.
            node: the node; None takes the node in the pod's status, "" withdraws the nomination.
            kept_for: if the node is kept for the pod's group, that group and until when.
        """
        self.delete(pod.uid)
        target = pod.nominated_node if node is None else node
        if not target or pod.node_name:
            return
        self._nodes[pod.uid] = target
        self._pods.setdefault(target, {})[pod.uid] = pod
        if kept_for is not None:
            self.kept_for[pod.uid] = kept_for
        self.with_terms += bool(pod.pairwise_key.affinity)
        # It has volumes, claims to devices, or extended resources, which devices may serve.
        if pod.volumes or pod.pod.spec.resource_claims or any("/" in name for name in pod.requests):
            self._claimants[pod.uid] = (pod, target)
        self.changes.append(target)

    def update(self, old: PodInfo | None, new: PodInfo) -> None:
        """Replace a pod by its newer version.

        A nomination in neither version's status stays, because it was made here and is still being written.

        Args:
            old: the version before; None when the pod is new.
            new: the version now.
        """
        silent = (old is None or not old.nominated_node) and not new.nominated_node
        kept, kept_for = (self._nodes.get(new.uid), self.kept_for.get(new.uid)) if silent else (None, None)
        if old is not None:
            self.delete(old.uid)
        self.add(new, kept, kept_for)

    def delete(self, uid: str) -> NodeName | None:
        """Withdraw a pod's nomination, if it has one.

        Returns:
            The name of the node; None for a pod without.
        """
        node = self._nodes.pop(uid, None)
        if node is None:
            return None
        self._claimants.pop(uid, None)
        self.kept_for.pop(uid, None)
        pods = self._pods[node]
        self.with_terms -= bool(pods.pop(uid).pairwise_key.affinity)
        self.changes.append(node)
        if not pods:
            del self._pods[node]
        return node

    def pods_on(self, node: NodeName) -> Collection[PodInfo]:
        """Return the pods nominated to a node.

        Returns:
            The pods in order of nomination; a view: copy it before nominating while iterating.
        """
        return self._pods.get(node, _NONE).values()

    def claimants(self) -> Iterable[tuple[PodInfo, NodeName]]:
        """Return the nominated pods that claim more than room on their node, with the node; a view, in order of nomination."""
        return self._claimants.values()

    def node_of(self, uid: str) -> NodeName | None:
        """Find a pod's nomination.

        Returns:
            The name of the node; None for a pod without.
        """
        return self._nodes.get(uid)

    def nodes(self) -> Collection[NodeName]:
        """Return the nodes that have nominated pods; a view."""
        return self._pods.keys()

    def without(self, uids: AbstractSet[str]) -> Nominator:
        """Copy the nominations, except those of some pods.

        Returns:
            A copy, which no later nomination changes.
        """
        made = Nominator()
        made.making_room_for, made.together = self.making_room_for, self.together
        for uid, node in self._nodes.items():
            if uid not in uids:
                made.add(self._pods[node][uid], node, self.kept_for.get(uid))
        return made

    @contextmanager
    def trying(self, refs: Iterable[GroupRef]) -> Iterator[None]:
        """Try the members of a group, or of all groups of a tree, together until the block ends.

        The room of the members' nominations is the group's. Otherwise the nominations of later members would keep earlier members out.
        """
        self.together.update(refs)
        try:
            yield
        finally:
            self.together.difference_update(refs)
