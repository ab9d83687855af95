"""Events about pods, like those of controllers and kubelets. A repeated event is counted."""

from __future__ import annotations

import logging
from hashlib import blake2b
from typing import Final

from kubesandbox.resources import EVENTS
from kubesandbox.status import ApiError, Object
from kubesandbox.storage.writes import Writes

LONGEST_MESSAGE: Final = 1024
_logger = logging.getLogger(__name__)


class PodEvents:
    """Warnings of one component."""

    def __init__(self, writes: Writes, component: str) -> None:
        self._writes = writes
        self._component = component
        self._events = writes.registry.served(EVENTS)

    def warn(self, pod: Object, reason: str, message: str) -> None:
        """Write a warning about a pod. A repeated one is counted."""
        meta, now = pod["metadata"], self._writes.identity.now()
        said = blake2b(f"{meta['uid']} {reason} {message}".encode(), digest_size=8).hexdigest()
        name = f"{meta['name'][:230]}.{said}"

        def again(event: Object) -> None:
            event["count"] = event.get("count", 1) + 1
            event["lastTimestamp"] = now

        if self._writes.modify(self._events, meta["namespace"], name, again) is None:
            self._create(meta, name, reason, message[:LONGEST_MESSAGE], now)

    def _create(self, meta: Object, name: str, reason: str, message: str, now: str) -> None:
        about = {"kind": "Pod", "apiVersion": "v1", **{part: meta[part] for part in ("namespace", "name", "uid")}}
        event = {
            "metadata": {"name": name},
            "involvedObject": about,
            "type": "Warning",
            "reason": reason,
            "message": message,
            "source": {"component": self._component},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        try:
            self._writes.create(self._events, meta["namespace"], event)
        except ApiError as refused:
            _logger.debug("no event for pod %s/%s: %s", meta["namespace"], meta["name"], refused.message)
