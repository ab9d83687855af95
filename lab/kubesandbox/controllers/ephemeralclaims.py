"""Claims of pods with generic ephemeral volumes. A pod gets them at its creation, owns them, and takes them away with it."""

from __future__ import annotations

import asyncio
import logging

from kubesandbox.resources import PODS, VOLUME_CLAIMS
from kubesandbox.status import ApiError, Object
from kubesandbox.storage.store import Change, Stored
from kubesandbox.storage.writes import Writes

_logger = logging.getLogger(__name__)


class EphemeralClaims:
    """Listens to pods, and acts a moment later, after the answer to the write."""

    def __init__(self, writes: Writes) -> None:
        self._writes = writes
        self._claims = writes.registry.served(VOLUME_CLAIMS)
        writes.store.collection(PODS).listeners.append(self._on_pod)

    def _on_pod(self, change: Change) -> None:
        pod = change.current
        if change.previous is not None or pod is None:
            return
        for volume in (pod.object.get("spec") or {}).get("volumes") or ():
            if isinstance(volume, dict) and volume.get("ephemeral"):
                asyncio.get_running_loop().call_soon(self._make, pod, volume)

    def _make(self, pod: Stored, volume: Object) -> None:
        try:
            self._writes.create(self._claims, pod.namespace, _claim(pod, volume))
        except (ApiError, AttributeError, TypeError) as problem:
            _logger.warning("no claim for volume %s of pod %s/%s: %r", volume.get("name"), pod.namespace, pod.name, problem)


def _claim(pod: Stored, volume: Object) -> Object:
    template = volume["ephemeral"].get("volumeClaimTemplate") or {}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid, "controller": True, "blockOwnerDeletion": True}
    metadata = {**(template.get("metadata") or {}), "name": f"{pod.name}-{volume.get('name')}", "ownerReferences": [owner]}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": {**(template.get("spec") or {})}}
