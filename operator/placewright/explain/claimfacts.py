"""The facts about a pod's claims: their requests and devices, and the nodes with free devices for the pod."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
import numpy as np

from placewright.api.devices import ALL_DEVICES, DeviceRequest, DeviceSubRequest, ExactDeviceRequest, ResourceClaim
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.cluster.devices import ClaimTable
from placewright.framework.interface import Diagnosis
from placewright.framework.runtime.evaluation import Evaluation, Evaluator
from placewright.plugins.dynamicresources.claims import called, each_claim
from placewright.plugins.dynamicresources.plugin import DynamicResources
from placewright.scheduler.decisiondetail import MOST_EXAMPLES, cut

#: Groups of nodes in an explanation.
_MOST_GROUPS: Final = 10
#: Count if a number of free devices does not answer the claims: with constraints, alternatives, or requests of several kinds, for example.
#: A CEL selector alone can be counted.
UNCOUNTED: Final = -1


class DeviceFact(msgspec.Struct, frozen=True, omit_defaults=True):
    """A device that is allocated to a claim, with the request that it serves."""

    request: str
    driver: str
    pool: str
    device: str


class ClaimFact(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One claim of the pod.

    Attributes:
        entry: the pod's name for it; empty for the claim that serves its extended resources.
        claim: `namespace/name`; empty if there is no object yet.
        asks: its requests, in words.
        devices: allocated to it.
        writing: its devices are chosen, and the API server does not show them yet.
        users: the number of pods that use it.
        problem: the reason why the pod cannot use it.
    """

    entry: str
    claim: str = ""
    asks: tuple[str, ...] = ()
    devices: tuple[DeviceFact, ...] = ()
    writing: bool = False
    users: int = 0
    problem: str = ""


class FreeGroup(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Nodes with equally many free devices, and with the same reason of another plugin to reject the pod.

    Attributes:
        nodes: their number.
        free: free devices of the class on each of them; `UNCOUNTED` if no number answers the claims.
        enough: whether the devices could serve the pod's claims.
        reason: message of another plugin that rejects the nodes first.
        examples: names of some of them.
    """

    nodes: int
    free: int
    enough: bool
    reason: str = ""
    examples: tuple[NodeName, ...] = ()


class FreeDevices(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The nodes with devices for the pod's claims. `device_class` and `wanted` are set if the claims want one class only."""

    groups: tuple[FreeGroup, ...]
    device_class: str = ""
    wanted: int = 0


def claim_facts(pod: PodInfo, table: ClaimTable) -> tuple[ClaimFact, ...]:
    """Collect the facts about a pod's claims.

    Returns:
        The claims in the pod's order; the claim for its extended resources comes last.
    """
    named = [claim_fact(entry, claim, problem, table) for entry, claim, problem in each_claim(pod, table)]
    return (*named, *(claim_fact("", claim, "", table) for claim in table.where(pod.uid) if claim.metadata.namespace == pod.namespace))


def claim_fact(entry: str, claim: ResourceClaim | None, problem: str, table: ClaimTable) -> ClaimFact:
    """Collect the facts about one claim.

    Args:
        entry: a pod's name for it; empty for none.
        claim: None if there is no object.
        problem: the reason why the pod cannot use it; empty for none.
        table: table of all claims.
    """
    if claim is None:
        return ClaimFact(entry, problem=cut(problem))
    allocation = claim.status.allocation
    results = () if allocation is None else allocation.devices.results or ()
    pending = table.pending(claim)
    return ClaimFact(
        entry,
        called(claim),
        tuple(_asked(request) for request in claim.spec.devices.requests or ()),
        tuple(DeviceFact(each.request, each.driver, each.pool, each.device) for each in results),
        writing=pending is not None and not pending.written,
        users=len(claim.status.reserved_for or ()),
    )


def _asked(request: DeviceRequest) -> str:
    wishes: Iterable[ExactDeviceRequest | DeviceSubRequest] = [request.exactly] if request.exactly else request.first_available or ()
    return f"{request.name}: {' or '.join(map(_wish, wishes))}"


def _wish(wish: ExactDeviceRequest | DeviceSubRequest) -> str:
    count = "all" if wish.allocation_mode == ALL_DEVICES else str(wish.count)
    return f"{count} of class {wish.device_class_name}"


def free_devices(evaluator: Evaluator, cluster: Cluster, evaluation: Evaluation, diagnosis: Diagnosis) -> FreeDevices | None:
    """Find the nodes with devices for a pod.

    Args:
        evaluator: evaluator of the pod's profile.
        cluster: cluster with the nodes.
        evaluation: evaluation of the pod.
        diagnosis: diagnosis of the evaluation, with the reasons of all plugins.

    Returns:
        None for a pod whose claims want no devices, or cannot be served at all.
    """
    plugin = next((each for each in evaluator.runtime.filter if isinstance(each, DynamicResources)), None)
    if plugin is None or evaluation.refusal is not None or not plugin.wants_devices(evaluation.state):
        return None
    rows, simple = cluster.rows(), plugin.free(evaluation.state, cluster)
    enough = plugin.filter(evaluation.state, evaluation.pod, cluster, rows)
    free = np.full(len(rows), UNCOUNTED) if simple is None else simple[2][rows]
    reasons = dict(_reasons(diagnosis, plugin.name))
    found: dict[tuple[bool, int, str], list[int]] = {}
    for row, fits, count in zip(rows.tolist(), enough.tolist(), free.tolist(), strict=True):
        found.setdefault((fits, count, reasons.get(row, "")), []).append(row)
    ordered = sorted(found.items(), key=lambda group: (not group[0][0], -group[0][1], -len(group[1]), group[0][2]))
    groups = [FreeGroup(len(alike), count, fits, reason, _names(cluster, alike)) for (fits, count, reason), alike in ordered]
    return FreeDevices(tuple(groups[:_MOST_GROUPS]), *(() if simple is None else simple[:2]))


def _reasons(diagnosis: Diagnosis, devices: str) -> Iterator[tuple[int, str]]:
    """Yield the reason of another plugin for each row that it rejected first."""
    for status, rows in diagnosis.rejections:
        if status.plugin != devices:
            yield from ((row, cut(status.message)) for row in rows.tolist())


def _names(cluster: Cluster, rows: list[int]) -> tuple[NodeName, ...]:
    return tuple([name for row in rows[:MOST_EXAMPLES] if (name := cluster.names[row]) is not None])
