"""120 pods with claims, placed by a real kube-scheduler 1.36 with alpha gates of devices: nodes, messages, devices, statuses are ours.

The seed is fixed; another one is tried as well when SAME_ANSWERS_SEED names it.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final, NamedTuple

import msgspec
import pytest

from e2e.answers.comparing import evaluator_of, judged, listed
from e2e.answers.devicerecording import DeviceRecorder
from e2e.answers.recording import Decision, record, seeds
from e2e.answers.volumerules import fitting
from placewright.api.objects import NodeName
from placewright.api.quantity import nano
from placewright_lab.simulation.evaluation import Verdict

_STATUSES: Final = "nodeAllocatableResourceClaimStatuses"


class Scene(NamedTuple):
    """A decision, what we say of it, and what became of the pod and its claim."""

    decision: Decision
    ours: Verdict
    pod: dict[str, Any]
    claim: dict[str, Any]


@pytest.fixture(scope="module", params=seeds(), ids="seed {}".format)
def scenes(request: pytest.FixtureRequest) -> list[Scene]:
    decisions = record(DeviceRecorder, request.param)
    last = {(each["kind"], each["metadata"]["name"]): each for each in decisions[-1].objects}
    claims = [each.pod["spec"]["resourceClaims"][0]["resourceClaimName"] for each in decisions]
    return [
        Scene(each, judged(each.objects, each.pod, {}), last.get(("Pod", each.pod["metadata"]["name"]), {}), last["ResourceClaim", claim])
        for each, claim in zip(decisions, claims, strict=True)
    ]


def test_the_same_nodes_can_hold_the_pod(scenes: list[Scene]) -> None:
    problems = [
        f"{decision.key}: kube-scheduler found {sorted(decision.feasible)}, we {sorted(fitting(ours))}; {decision.message}"
        for decision, ours, *_ in scenes
        if decision.node and (decision.feasible != fitting(ours) if decision.scores else decision.node not in fitting(ours))
    ]
    assert not problems, listed(problems)


def test_a_pod_that_fits_nowhere_is_told_so_in_the_same_words(scenes: list[Scene]) -> None:
    problems = [
        f"{decision.key}: {decision.message!r}, ours {ours.message!r}" for decision, ours, *_ in scenes if decision.message != ours.message
    ]
    assert not problems, listed(problems)


def test_on_the_same_node_the_claim_gets_the_same_devices_and_the_pod_the_same_status(scenes: list[Scene]) -> None:
    problems = []
    for decision, _, pod, claim in scenes:
        if decision.node and pod:
            devices, statuses = placed(decision)
            theirs = [(each["device"], plain(each.get("consumedCapacity"))) for each in claim["status"]["allocation"]["devices"]["results"]]
            if devices != theirs:
                problems.append(f"{decision.key}: {theirs}, ours {devices}")
            if statuses != in_nanos(pod["status"].get(_STATUSES, [])):
                problems.append(f"{decision.key}: {pod['status'].get(_STATUSES)}, ours {statuses}")
    assert not problems, listed(problems)


def test_the_pods_were_worth_comparing(scenes: list[Scene]) -> None:
    reasons = Counter(reason for scene in scenes for each in scene.ours.nodes for reason in each.reasons)
    by_devices = Counter(
        reason for scene in scenes for each in scene.ours.nodes if each.plugin == "DynamicResources" for reason in each.reasons
    )
    assert by_devices["Insufficient cpu"] >= 10, reasons
    assert by_devices["cannot allocate all claims"] >= 20, reasons
    assert sum(bool(scene.decision.node) for scene in scenes) >= 40
    assert sum(bool(scene.pod.get("status", {}).get(_STATUSES)) for scene in scenes) >= 20


def placed(decision: Decision) -> tuple[list[Any], list[Any]]:
    """The devices and the status of the pod if we place it on the node of this decision."""
    world, evaluator = evaluator_of([*decision.objects, decision.pod], {})
    pod, node = world.pending[decision.key], NodeName(decision.node)
    evaluation = evaluator.evaluate(pod)
    world.cluster.assume(pod, node)
    assert evaluator.runtime.run_reserve(evaluation.state, pod, node).ok
    name = decision.pod["spec"]["resourceClaims"][0]["resourceClaimName"]
    claim = world.cluster.objects.devices.claims.get(name, "default")
    assert claim is not None
    assert claim.status.allocation is not None
    devices = [(each.device, plain(each.consumed_capacity)) for each in claim.status.allocation.devices.results or ()]
    return devices, in_nanos(msgspec.json.decode(msgspec.json.encode(evaluation.state.taken_with_claims)))


def plain(amounts: Any) -> dict[str, int]:
    return {name: nano(amount) for name, amount in (amounts or {}).items()}


def in_nanos(statuses: list[dict[str, Any]]) -> list[Any]:
    return [(each["resourceClaimName"], each.get("containers"), plain(each.get("resources"))) for each in statuses]
