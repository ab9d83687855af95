"""PriorityClass admission: the number that a pod's class stands for is written into the pod as it is created."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from kubesandbox.shapes import Object

SYSTEM_CLASSES: Mapping[str, int] = MappingProxyType(
    {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
)
"""Classes that every cluster has, whether or not objects for them exist."""

PREEMPT_LOWER_PRIORITY = "PreemptLowerPriority"


class PriorityRefused(Exception):
    """The pod may not be created as it is (403 in a real API server); the message is the reason."""


def admit_priority(pod: Object, priority_classes: Mapping[str, Mapping[str, Any]]) -> None:
    """Fills `spec.priorityClassName`, `priority` and `preemptionPolicy` in place from classes by name.

    A pod without a class gets the default one (`globalDefault`, the lowest if there are several), or priority 0.
    Raises `PriorityRefused` for an unknown class, and for a number that contradicts the class.
    """
    spec = pod.setdefault("spec", {})
    name = spec.get("priorityClassName") or _default_class(priority_classes)
    value, policy = 0, PREEMPT_LOWER_PRIORITY
    if name:
        value, policy = _resolve(name, priority_classes)
        spec["priorityClassName"] = name
    if spec.get("priority") not in (None, value):
        raise PriorityRefused(
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
            f"priority admission controller computed {value} from the given PriorityClass name"
        )
    if spec.get("preemptionPolicy") not in (None, policy):
        raise PriorityRefused(
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in pod spec; "
            f"priority admission controller computed {policy} from the given PriorityClass name"
        )
    spec["priority"], spec["preemptionPolicy"] = value, policy


def _default_class(priority_classes: Mapping[str, Mapping[str, Any]]) -> str:
    defaults = [(c.get("value", 0), name) for name, c in priority_classes.items() if c.get("globalDefault")]
    return min(defaults)[1] if defaults else ""


def _resolve(name: str, priority_classes: Mapping[str, Mapping[str, Any]]) -> tuple[int, str]:
    if name in priority_classes:
        found = priority_classes[name]
        return int(found.get("value", 0)), found.get("preemptionPolicy") or PREEMPT_LOWER_PRIORITY
    if name in SYSTEM_CLASSES:
        return SYSTEM_CLASSES[name], PREEMPT_LOWER_PRIORITY
    raise PriorityRefused(f"no PriorityClass with name {name} was found")
