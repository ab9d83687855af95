"""Admission of pods: priority, zone and region, tolerations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kubesandbox.fields import Faults, invalid, label_key, label_value, unsupported
from kubesandbox.resources import NODES, PRIORITY_CLASSES, ResourceType
from kubesandbox.status import Object, forbidden
from kubesandbox.storage.store import Store
from placewright.api.tolerations import integer

#: Classes that every cluster has.
SYSTEM_CLASSES: Final[Mapping[str, int]] = MappingProxyType(
    {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
)
PREEMPT_LOWER_PRIORITY: Final = "PreemptLowerPriority"
TOPOLOGY_LABELS: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_WHOLE: Final = re.compile("-?[1-9][0-9]*")
_COMPARISONS: Final = ("Gt", "Lt")


# --- priority ----------------------------------------------------------------------------------------------------------------


def admit_priority(resource: ResourceType, pod: Object, store: Store) -> None:
    """Fill `spec.priorityClassName`, `priority` and `preemptionPolicy` in place from the stored classes.

    A pod without a class gets the default one (`globalDefault`, the lowest if there are several), or priority 0.
    Raises ApiError 403 for an unknown class, and for a number that contradicts the class.
    """
    spec, name = pod.setdefault("spec", {}), pod["metadata"]["name"]
    defaults = [(each.object.get("value", 0), each.name) for each in store.listed(PRIORITY_CLASSES) if each.object.get("globalDefault")]
    if not spec.get("priorityClassName") and defaults:
        spec["priorityClassName"] = min(defaults)[1]
    found = store.content(PRIORITY_CLASSES, "", spec.get("priorityClassName") or "")
    if spec.get("priorityClassName") and not found:
        raise forbidden(resource, name, f"no PriorityClass with name {spec['priorityClassName']} was found")
    for what, part, value in (
        ("integer value of priority", "priority", found.get("value", 0)),
        ("string value of PreemptionPolicy", "preemptionPolicy", found.get("preemptionPolicy") or PREEMPT_LOWER_PRIORITY),
    ):
        if spec.get(part) not in (None, value):
            why = f"the {what} ({spec[part]}) must not be provided in pod spec"
            raise forbidden(resource, name, f"{why}; priority admission controller computed {value} from the given PriorityClass name")
        spec[part] = value


# --- zone and region ---------------------------------------------------------------------------------------------------------
# Since Kubernetes 1.35 a pod on a node has them. They come with a Binding, and with a pod that is created on
# a node. A bound pod keeps its node's values of that time.


def topology_of(store: Store, node: str) -> dict[str, str]:
    """Return the zone and region labels of a node, if it has them, and none for an unknown node."""
    labels = store.content(NODES, "", node).get("metadata", {}).get("labels") or {}
    return {key: labels[key] for key in TOPOLOGY_LABELS if key in labels}


# --- tolerations -------------------------------------------------------------------------------------------------------------
# Gt and Lt are valid, like in an API server with TaintTolerationComparisonOperators.


def check_tolerations(spec: Object) -> Faults:
    """Return the faults of `spec.tolerations` of a pod."""
    for at, toleration in enumerate(spec.get("tolerations") or ()):
        yield from _check_toleration(f"spec.tolerations[{at}]", toleration)


def _check_toleration(path: str, toleration: Object) -> Faults:
    key, operator = toleration.get("key") or "", toleration.get("operator") or ""
    value, effect = toleration.get("value") or "", toleration.get("effect") or ""
    if key:
        yield from label_key(f"{path}.key", key)
    elif operator != "Exists":
        what = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid(f"{path}.operator", operator, what)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        yield invalid(f"{path}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    yield from _check_compared(path, operator, value)
    if effect and effect not in _EFFECTS:
        yield unsupported(f"{path}.effect", effect, _EFFECTS)


def _check_compared(path: str, operator: str, value: str) -> Faults:
    if operator in _COMPARISONS:
        if integer(value) is None:
            too_large = f'strconv.ParseInt: parsing "{value}": value out of range'
            yield invalid(
                f"{path}.value", value, too_large if _WHOLE.fullmatch(value) else "must be a valid decimal integer in canonical form"
            )
    elif operator == "Exists":
        if value:
            yield invalid(f"{path}.operator", value, "value must be empty when `operator` is 'Exists'")
    elif operator in ("", "Equal"):
        yield from label_value(f"{path}.operator", value)
    else:
        yield unsupported(f"{path}.operator", operator, ("Equal", "Exists"))
