"""What is taken and refused among a pod's tolerations."""

from __future__ import annotations

import pytest

from contract.client import MERGE, Object
from contract.cluster import Cluster
from contract.objects import a_pod
from programs import not_on_this_server

TAKEN = [
    {"key": "sla", "value": "gold"},
    {"operator": "Exists"},
    {"key": "sla", "operator": "Exists", "effect": "PreferNoSchedule"},
    {"key": "sla", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3},
]
COMPARED = [
    {"key": "sla", "operator": "Gt", "value": "950"},
    {"key": "sla", "operator": "Lt", "value": "-1", "effect": "NoSchedule"},
    {"key": "sla", "operator": "Gt", "value": "0", "effect": "NoExecute", "tolerationSeconds": 3},
]
REFUSED: list[tuple[Object, str, str]] = [
    ({"key": "sla", "operator": "Ge", "value": "1"}, "operator", 'supported values: "Equal", "Exists"'),
    ({"operator": "Gt", "value": "1"}, "operator", "operator must be Exists when `key` is empty"),
    ({"key": "sla", "operator": "Exists", "value": "1"}, "operator", "value must be empty"),
    ({"key": "sla", "value": "a b"}, "operator", "a valid label must be"),
    ({"key": "sla", "operator": "Exists", "effect": "Never"}, "effect", '"NoSchedule", "PreferNoSchedule", "NoExecute"'),
    ({"key": "sla", "operator": "Exists", "tolerationSeconds": 3}, "effect", "effect must be 'NoExecute'"),
    ({"key": "a b", "operator": "Exists"}, "key", "name part must consist"),
]
NO_NUMBERS: list[tuple[Object, str, str]] = [
    ({"key": "sla", "operator": "Gt", "value": "0950"}, "value", "must be a valid decimal integer in canonical form"),
    ({"key": "sla", "operator": "Lt", "value": "many"}, "value", "must be a valid decimal integer in canonical form"),
    ({"key": "sla", "operator": "Lt"}, "value", "must be"),
    ({"key": "sla", "operator": "Gt", "value": "9223372036854775808"}, "value", "value out of range"),
]


async def comparing(gated: Cluster) -> None:
    """Skips where values are not compared: the feature is behind a gate."""
    answer = await gated.client.post(gated.path("pods"), a_pod("probe", tolerations=COMPARED), dryRun="All")
    if gated.real and answer.status == 422:
        not_on_this_server("TaintTolerationComparisonOperators is off")


@pytest.mark.parametrize("tolerations", [TAKEN, COMPARED], ids=["plain", "compared"])
async def test_tolerations_that_are_right_are_taken(gated: Cluster, tolerations: list[Object]) -> None:
    if tolerations is COMPARED:
        await comparing(gated)
    made = await gated.create("pods", a_pod("it", tolerations=tolerations))
    found = [{key: value for key, value in each.items() if (key, value) != ("operator", "Equal")} for each in made["spec"]["tolerations"]]
    assert [each for each in tolerations if each not in found] == []


@pytest.mark.parametrize(("toleration", "field", "why"), [*REFUSED, *NO_NUMBERS])
async def test_a_toleration_that_is_wrong_is_refused_at_creation_and_at_change(
    gated: Cluster, toleration: Object, field: str, why: str
) -> None:
    if (toleration, field, why) in NO_NUMBERS:
        await comparing(gated)
    message = (await gated.client.post(gated.path("pods"), a_pod("it", tolerations=[toleration]))).refused(422, "Invalid")
    assert f"spec.tolerations[0].{field}: " in message
    assert why in message
    stored = await gated.create("pods", a_pod("it"))
    change = {"spec": {"tolerations": [*stored["spec"]["tolerations"], toleration]}}
    assert why in (await gated.client.patch(gated.path("pods", "it"), change, MERGE)).refused(422, "Invalid")
