"""The audit of devices: every version of every claim that the API server ever stored, beside pods and slices in the same order.

The rules, beside those of `audit`:

- **Once.** No device is in two claims at the same time.
- **Published.** When a claim gets devices, a slice of one node lists them all, or did less than `GRACE` seconds before; it is the node
  that the claim names.
- **Reserved.** A claim is reserved for somebody only while it has an allocation, and only for the pod that it was made for.
- **Held.** When a pod of ours gets its node, all its claims are there, allocated on that node and reserved for it; and so they stay until
  the pod is gone or over.
- **Nothing leaks.** Once all is settled, only claims of pods with nodes have devices.
- **Accounted for.** A pod that waits says so, counting the nodes rightly, and there is no node that has room and enough free devices.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from .audit import GRACE, OURS, not_accounted_for, room_for
from .history import Change, ClaimView, Device, History, PodView, SliceView


class ClaimReplay:
    """The history of claims once more."""

    def __init__(self, foreign: Collection[str] = ()) -> None:
        """`foreign`: uids of pods that somebody else bound."""
        self.faults: list[str] = []
        self._foreign = foreign
        self._claims: dict[str, ClaimView] = {}
        self._holders: dict[Device, ClaimView] = {}
        self._pods: dict[str, PodView] = {}
        #: By name, what each slice listed, with the times from when to when.
        self._listed: dict[str, tuple[float, SliceView]] = {}
        self._unlisted: list[tuple[float, SliceView]] = []

    def run(self, changes: Iterable[Change]) -> list[str]:
        """Changes in order; a line for each that must not be."""
        for change in changes:
            if isinstance(change.view, ClaimView):
                self._claim(change.view, change)
            elif isinstance(change.view, SliceView):
                self._slice(change.view, change)
            elif isinstance(change.view, PodView):
                self._pod(change.view, change)
        return self.faults

    def _slice(self, found: SliceView, change: Change) -> None:
        if found.name in self._listed:
            self._unlisted.append((change.at, self._listed.pop(found.name)[1]))
        if not change.gone:
            self._listed[found.name] = (change.at, found)

    def _claim(self, claim: ClaimView, change: Change) -> None:
        before = self._claims.pop(claim.uid, None)
        for device in before.devices if before is not None else ():
            if self._holders.get(device) is not None and self._holders[device].uid == claim.uid:
                del self._holders[device]
        if not change.gone:
            self._claims[claim.uid] = claim
            self._take(claim, change.at, new=before is None or before.devices != claim.devices)
            self._check_reserved(claim)
        owner = self._pods.get(claim.owner)
        if owner is not None and before is not None and before.allocated and (why := self._not_held(owner, before, claim, change)):
            self.faults.append(why)

    def _take(self, claim: ClaimView, at: float, *, new: bool) -> None:
        for device in claim.devices:
            other = self._holders.get(device)
            if other is not None:
                self.faults.append(f"{'/'.join(device)} is in {claim.key} and in {other.key}")
            self._holders[device] = claim
        if new and claim.devices and not self._published(claim, at):
            self.faults.append(f"{claim.key} got {claim.devices} on {claim.node or 'any node'}, where no slice lists them")

    def _published(self, claim: ClaimView, at: float) -> bool:
        lately = [each for ended, each in self._unlisted if ended >= at - GRACE]
        listed: dict[str, set[Device]] = defaultdict(set)
        for each in (*(view for _, view in self._listed.values()), *lately):
            listed[each.node].update(each.devices)
        return any(set(claim.devices) <= devices for node, devices in listed.items() if claim.node in ("", node))

    def _check_reserved(self, claim: ClaimView) -> None:
        if claim.reserved and not claim.allocated:
            self.faults.append(f"{claim.key} is reserved and has no allocation")
        if claim.owner and set(claim.reserved) - {claim.owner}:
            self.faults.append(f"{claim.key} is reserved for somebody that it was not made for")

    def _not_held(self, pod: PodView, before: ClaimView, claim: ClaimView, change: Change) -> str:
        """What a pod on a node lost by this change of a claim."""
        if not pod.node or pod.over or pod.leaving:
            return ""
        kept = not change.gone and claim.devices == before.devices and pod.uid in claim.reserved
        return "" if kept else f"{pod.key} is on {pod.node}, and its claim {claim.key} is no longer as it was"

    def _pod(self, pod: PodView, change: Change) -> None:
        before = self._pods.pop(pod.uid, None)
        if change.gone:
            return
        self._pods[pod.uid] = pod
        if pod.node and before is not None and not before.node and pod.wants and pod.uid not in self._foreign:
            self.faults += [f"{pod.key} came to {pod.node}: {why}" for why in self._missing(pod)]

    def _missing(self, pod: PodView) -> Iterable[str]:
        if len(pod.claims) < pod.wants:
            yield f"{len(pod.claims)} of its {pod.wants} claims are made"
        namespace = pod.key.partition("/")[0]
        by_key = {claim.key: claim for claim in self._claims.values()}
        for name in pod.claims:
            claim = by_key.get(f"{namespace}/{name}")
            if claim is None or claim.owner not in ("", pod.uid):
                yield f"its claim {name} is not there"
            elif not claim.allocated or pod.uid not in claim.reserved:
                yield f"its claim {name} is not allocated and reserved for it"
            elif claim.node not in ("", pod.node):
                yield f"its claim {name} is allocated on {claim.node}"


def leaks(history: History) -> list[str]:
    """Once all is settled: claims with devices, or reserved, that no pod on a node uses."""
    using = {uid for uid, pod in history.pods.items() if pod.node and not pod.over}
    return [
        f"{claim.key} has {claim.devices}, and no pod on a node uses it"
        for claim in history.claims.values() if claim.allocated and claim.owner not in using
    ]  # fmt: skip


def unaccounted(history: History, wanted: Mapping[str, int], counts: Collection[int]) -> dict[str, str]:
    """By uid of a pod with claims that waits, what is wrong with that, or nothing.

    `wanted`: by uid, how many devices all its claims ask for, which may be any of a node. `counts`: how many nodes there were at any time.
    """
    taken = {device for claim in history.claims.values() for device in claim.devices}
    free = {node: len(found - taken) for node, found in history.published().items()}
    found: dict[str, str] = {}
    for pod in history.pods.values():
        if pod.scheduler == OURS and pod.wants and not (pod.node or pod.over or pod.leaving) and not pod.group:
            why = not_accounted_for(pod, history, counts)
            fits = [node for node, room in room_for(history, pod.asks).items() if room and free.get(node, 0) >= wanted[pod.uid]]
            if why.startswith("has no node, and fits "):
                why = f"has no node, and fits {', '.join(fits[:3])}" if fits else ""
            found[pod.uid] = why
    return found
