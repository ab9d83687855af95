"""A kubelet's check before a pod starts: its claims are allocated, and the pod is among their consumers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kubesandbox.devices.podclaims import PodClaim, allocation, is_reserved_for, owner, pod_claims
from kubesandbox.devices.podevents import PodEvents
from kubesandbox.resources import RESOURCE_CLAIMS
from kubesandbox.status import Object
from kubesandbox.storage.store import Change, Key, Stored
from kubesandbox.storage.writes import Writes

REASON: Final = "FailedPrepareDynamicResources"


class Preparation:
    """Tells which pods may start, and tries the others again after a change of their claims."""

    def __init__(self, writes: Writes, start: Callable[[Stored], None]) -> None:
        """Take a function `start` that is called with a waiting pod when its claims have changed."""
        self._store = writes.store
        self._start = start
        self._events = PodEvents(writes, "kubelet")
        #: Pods by uid, each with the claim that it waits for.
        self._waiting: dict[str, tuple[Key, Stored]] = {}
        self._store.collection(RESOURCE_CLAIMS).listeners.append(self._on_claim)

    def is_ready(self, pod: Stored) -> bool:
        """Return whether the pod may start. If not, write an event with the reason, and wait for its claims."""
        for each in pod_claims(pod.object):
            problem = self._problem(pod.object, each)
            if problem:
                self._events.warn(pod.object, REASON, f"Failed to prepare dynamic resources: {problem}")
                self._waiting[pod.uid] = ((pod.namespace, each.claim), pod)
                return False
        return True

    def forget(self, pod: Stored) -> None:
        """Forget a pod that is gone, or that has got its claims."""
        self._waiting.pop(pod.uid, None)

    def _problem(self, pod: Object, wanted: PodClaim) -> str:
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        if not wanted.claim:
            return f'no ResourceClaim was made for claim "{wanted.name}" of pod {namespace}/{name}'
        stored = self._store.get(RESOURCE_CLAIMS, namespace, wanted.claim)
        if stored is None:
            return f'fetch ResourceClaim {wanted.claim}: resourceclaims.resource.k8s.io "{wanted.claim}" not found'
        if wanted.owned and owner(stored.object)[1] != pod["metadata"]["uid"]:
            return f"ResourceClaim {namespace}/{wanted.claim} was not created for pod {namespace}/{name} (pod is not owner)"
        if allocation(stored.object) is None:
            return f"ResourceClaim {wanted.claim} is not allocated"
        if not is_reserved_for(stored.object, pod):
            return f"pod {name} ({pod['metadata']['uid']}) is not allowed to use ResourceClaim {wanted.claim} ({stored.uid})"
        return ""

    def _on_claim(self, change: Change) -> None:
        stored = change.current
        if stored is None:
            return
        # Pods may not know the name of a new claim yet.
        keys = ((stored.namespace, stored.name), (stored.namespace, ""))
        for pod in [pod for key, pod in self._waiting.values() if key in keys]:
            self.forget(pod)
            self._start(pod)
