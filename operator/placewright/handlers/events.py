"""What Kopf watches: unscheduled pods and SchedulingProfiles. Each handler is one call into the engine."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import kopf

from placewright.api.decode import DecodeError, convert
from placewright.api.objects import Pod
from placewright.api.profile import GROUP, PLURAL, VERSION
from placewright.engine.engine import Engine
from placewright.engine.reflectors import readable_pod

_logger = logging.getLogger(__name__)


@kopf.on.event("", "v1", "pods")
async def pod_event(event: Mapping[str, Any], memo: kopf.Memo, **_: Any) -> None:
    """An unscheduled pod came, changed, or left the selection."""
    take_pod_event(memo.engine, event)


def take_pod_event(engine: Engine, event: Mapping[str, Any]) -> None:
    """Tell the engine what an event of Kopf's watch of unscheduled pods says."""
    try:
        pod = readable_pod(convert(event["object"], Pod))
    except DecodeError as problem:
        meta = event["object"].get("metadata", {})
        _logger.warning("pod %s/%s is ignored: %s", meta.get("namespace"), meta.get("name"), problem)
        return
    if pod is None:
        return
    if event["type"] is None:  # out of a list of Kopf's, not out of a watch
        engine.reconcile_loop.pods_listed()
    if event["type"] == "DELETED":
        engine.intake.unscheduled_pod_gone(pod)
        if pod.uid in engine.scheduler.binding.unresolved:
            engine.reconcile_loop.pods_listed()  # bound or deleted: only asking tells
    else:
        engine.intake.unscheduled_pod(pod)


@kopf.on.event(GROUP, VERSION, PLURAL)
async def profile_event(event: Mapping[str, Any], memo: kopf.Memo, **_: Any) -> None:
    """A profile came, changed, or was deleted."""
    memo.engine.profiles.take(event["type"], event["object"])
