"""PodDisruptionBudgets: their pods, and their status like that of the disruption controller.

A pod is healthy if it is running, ready and not being deleted. The wanted number comes from the pods' owners (`spec.replicas`) if they are
stored. Otherwise it is the number of pods that match.
"""

from __future__ import annotations

import asyncio
import math

from kubesandbox.resources import BUDGETS, PODS
from kubesandbox.status import ApiError, Object
from kubesandbox.storage.selectors import LabelTest, label_selector
from kubesandbox.storage.store import Change, Stored
from kubesandbox.storage.writes import Writes


class Disruptions:
    """Keeps `status.disruptionsAllowed` of every budget correct, a moment after each change of pods or budgets."""

    def __init__(self, writes: Writes) -> None:
        self._writes = writes
        self._store = writes.store
        self._budgets = writes.registry.served(BUDGETS)
        self._outdated: set[str] = set()
        self._store.collection(PODS).listeners.append(self._on_change)
        self._store.collection(BUDGETS).listeners.append(self._on_change)

    def covering(self, namespace: str, pod: Object) -> list[Stored]:
        """Return the budgets whose selector matches the pod, with their current status."""
        labels = pod["metadata"].get("labels") or {}
        if namespace in self._outdated:
            self._refresh(namespace)
        return [budget for budget in self._store.listed(BUDGETS, namespace) if _covers(budget.object)(labels)]

    def _on_change(self, change: Change) -> None:
        namespace = (change.current or change.departed).namespace
        if namespace in self._outdated or namespace not in self._store.collection(BUDGETS).namespaces:
            return
        self._outdated.add(namespace)
        asyncio.get_running_loop().call_soon(self._refresh, namespace)

    def _refresh(self, namespace: str) -> None:
        if namespace not in self._outdated:
            return
        pods = self._store.listed(PODS, namespace)
        for budget in self._store.listed(BUDGETS, namespace):
            status = self._status(budget.object, pods)
            name = budget.object["metadata"]["name"]
            self._writes.modify(self._budgets, namespace, name, lambda found, new=status: found.update(status=new))  # type: ignore[misc]
        self._outdated.discard(namespace)

    def _status(self, budget: Object, pods: list[Stored]) -> Object:
        spec = budget.get("spec") or {}
        matches = _covers(budget)
        covered = [each.object for each in pods if matches(each.object["metadata"].get("labels") or {})]
        healthy = sum(map(_is_healthy, covered))
        expected = self._expected(covered)
        if spec.get("maxUnavailable") is not None:
            desired = max(0, expected - _scaled(spec["maxUnavailable"], expected))
        else:
            desired = _scaled(spec.get("minAvailable", 1), expected)
        return {
            "observedGeneration": budget["metadata"].get("generation", 1),
            "disruptionsAllowed": max(0, healthy - desired) if expected else 0,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
        }

    def _expected(self, covered: list[Object]) -> int:
        total, owners = 0, set()
        for pod in covered:
            metadata = pod["metadata"]
            owner: Object = next((each for each in metadata.get("ownerReferences") or () if each.get("controller")), {})
            resource = self._writes.registry.by_kind(str(owner.get("apiVersion")), str(owner.get("kind")))
            found = self._store.get(resource.key, metadata["namespace"], str(owner.get("name"))) if resource else None
            replicas = None if found is None else (found.object.get("spec") or {}).get("replicas")
            if found is None or not isinstance(replicas, int):
                total += 1
            elif found.uid not in owners:
                owners.add(found.uid)
                total += replicas
        return total


def _covers(budget: Object) -> LabelTest:
    """Return the test for a budget's pods. An invalid selector matches none, so that other budgets keep working."""
    try:
        return label_selector((budget.get("spec") or {}).get("selector"))
    except ApiError:
        return label_selector(None)


def _is_healthy(pod: Object) -> bool:
    status = pod.get("status") or {}
    ready = any(each.get("type") == "Ready" and each.get("status") == "True" for each in status.get("conditions") or [])
    return ready and "deletionTimestamp" not in pod["metadata"]


def _scaled(amount: object, total: int) -> int:
    """Return a number of pods, or a percentage of `total` rounded up. Invalid text counts as zero."""
    text = str(amount)
    if text.endswith("%") and text[:-1].isdigit():
        return math.ceil(int(text[:-1]) * total / 100)
    return int(text) if text.isdigit() else 0
