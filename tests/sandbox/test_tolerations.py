"""What the sandbox takes and refuses among a pod's tolerations, as 1.36 does with TaintTolerationComparisonOperators switched on."""

from __future__ import annotations

from typing import Any

import pytest

from placewright.sandbox.status import ApiError
from placewright.sandbox.writes import WriteOptions
from sandbox.makers import Core, Object, pod


def tolerating(**toleration: Any) -> Object:
    made = pod("web")
    made["spec"]["tolerations"] = [toleration]
    return made


@pytest.mark.parametrize(
    "toleration",
    [
        {"key": "sla", "operator": "Gt", "value": "950"},
        {"key": "sla", "operator": "Lt", "value": "-1", "effect": "NoSchedule"},
        {"key": "sla", "operator": "Gt", "value": "0", "effect": "NoExecute", "tolerationSeconds": 3},
        {"key": "sla", "value": "gold"},
        {"operator": "Exists"},
        {"key": "sla", "operator": "Exists", "effect": "PreferNoSchedule"},
    ],
)
def test_a_toleration_that_is_right_is_taken(toleration: Object) -> None:
    core = Core()
    created = core.create("pods", tolerating(**toleration))
    assert toleration in created["spec"]["tolerations"]


@pytest.mark.parametrize(
    ("toleration", "field", "why"),
    [
        ({"key": "sla", "operator": "Gt", "value": "0950"}, "value", "must be a valid decimal integer in canonical form"),
        ({"key": "sla", "operator": "Lt", "value": "many"}, "value", "must be a valid decimal integer in canonical form"),
        ({"key": "sla", "operator": "Lt"}, "value", "must be"),
        ({"key": "sla", "operator": "Gt", "value": "9223372036854775808"}, "value", "decimal integer"),
        ({"key": "sla", "operator": "Ge", "value": "1"}, "operator", 'supported values: "Equal", "Exists"'),
        ({"operator": "Gt", "value": "1"}, "operator", "operator must be Exists when `key` is empty"),
        ({"key": "sla", "operator": "Exists", "value": "1"}, "operator", "value must be empty"),
        ({"key": "sla", "value": "a b"}, "operator", "a valid label must be"),
        ({"key": "sla", "operator": "Exists", "effect": "Never"}, "effect", '"NoSchedule", "PreferNoSchedule", "NoExecute"'),
        ({"key": "sla", "operator": "Exists", "tolerationSeconds": 3}, "effect", "effect must be 'NoExecute'"),
        ({"key": "a b", "operator": "Exists"}, "key", "name part must consist"),
    ],
)
def test_a_toleration_that_is_wrong_is_refused_at_creation_and_at_change(toleration: Object, field: str, why: str) -> None:
    core = Core()
    with pytest.raises(ApiError) as refused:
        core.create("pods", tolerating(**toleration))
    assert refused.value.code == 422
    assert f"spec.tolerations[0].{field}: " in str(refused.value)
    assert why in str(refused.value)
    stored = core.create("pods", pod("web"))
    stored["spec"]["tolerations"] = [*stored["spec"]["tolerations"], toleration]
    with pytest.raises(ApiError) as changed:
        core.writes.replace(core.type("pods"), "default", "web", stored, WriteOptions())
    assert why in str(changed.value)
