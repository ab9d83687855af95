"""How far a pod on a node has come: by its conditions, its phase and its deletion."""

from __future__ import annotations

from typing import Any

import pytest

from placewright.api.decode import convert
from placewright.api.objects import Pod
from placewright.api.pods import PodInfo
from placewright.api.podstart import MIRROR, bound_at, is_ready, may_be_starting

READY = {"type": "Ready", "status": "True"}


def a_pod(*conditions: dict[str, Any], phase: str = "Running", **meta: Any) -> PodInfo:
    return PodInfo(convert({"metadata": {"name": "p", **meta}, "status": {"phase": phase, "conditions": list(conditions)}}, Pod))


@pytest.mark.parametrize(
    ("pod", "starting"),
    [
        (a_pod(), True),
        (a_pod(READY | {"status": "False"}), True),
        (a_pod(READY), False),
        (a_pod(phase="Succeeded"), False),
        (a_pod(phase="Failed"), False),
        (a_pod(deletionTimestamp="2026-01-01T00:00:00Z"), False),
        (a_pod(annotations={MIRROR: "x"}), False),
        (a_pod(annotations={"other": "x"}), True),
    ],
)
def test_a_pod_is_starting_until_it_is_ready_ended_or_deleted(pod: PodInfo, starting: bool) -> None:
    assert may_be_starting(pod) is starting
    assert is_ready(pod) == (READY["status"] in [each.status for each in pod.pod.status.conditions or ()])


@pytest.mark.parametrize(
    ("condition", "seconds"),
    [
        ({"status": "True", "lastTransitionTime": "1970-01-01T00:01:00Z"}, 60.0),
        ({"status": "False", "lastTransitionTime": "1970-01-01T00:01:00Z"}, None),
        ({"status": "True"}, None),
        ({"status": "True", "lastTransitionTime": "yesterday"}, None),
    ],
)
def test_the_time_of_the_binding_is_read_from_its_condition(condition: dict[str, Any], seconds: float | None) -> None:
    assert bound_at(a_pod(READY, {"type": "PodScheduled", **condition})) == seconds
