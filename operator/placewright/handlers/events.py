"""What Kopf watches: unscheduled pods and SchedulingProfiles. Each handler is one call into the engine."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import kopf
import msgspec

from placewright.api.decode import DecodeError, convert
from placewright.api.objects import NodeName, Pod
from placewright.api.profile import GROUP, PLURAL, VERSION
from placewright.engine.engine import Engine
from placewright.engine.reflectors import readable_pod

_logger = logging.getLogger(__name__)


class _DepartedMeta(msgspec.Struct, frozen=True):
    uid: str = ""


class _DepartedSpec(msgspec.Struct, rename="camel", frozen=True):
    node_name: str = ""


class _DepartedPod(msgspec.Struct, frozen=True):
    """A pod that left the watch: nearly each of them is bound, and the watch of assigned pods shows the rest of it."""

    metadata: _DepartedMeta
    spec: _DepartedSpec = _DepartedSpec()

    @property
    def uid(self) -> str:
        """The pod's."""
        return self.metadata.uid

    @property
    def node_name(self) -> NodeName:
        """Where it stands; empty for one that was deleted, or finished, without a node."""
        return NodeName(self.spec.node_name)


@kopf.on.event("", "v1", "pods")
async def pod_event(event: Mapping[str, Any], memo: kopf.Memo, **_: Any) -> None:
    """An unscheduled pod came, changed, or left the selection."""
    take_pod_event(memo.engine, event)


def take_pod_event(engine: Engine, event: Mapping[str, Any]) -> None:
    """Tell the engine what an event of Kopf's watch of unscheduled pods says."""
    try:
        if event["type"] == "DELETED":
            _take_departure(engine, convert(event["object"], _DepartedPod))
            return
        pod = readable_pod(convert(event["object"], Pod))
    except DecodeError as problem:
        meta = event["object"].get("metadata", {})
        _logger.warning("pod %s/%s is ignored: %s", meta.get("namespace"), meta.get("name"), problem)
        return
    if pod is None:
        return
    if event["type"] is None:  # out of a list of Kopf's, not out of a watch
        engine.reconcile_loop.pods_listed()
    engine.intake.unscheduled_pod(pod)


def _take_departure(engine: Engine, pod: _DepartedPod) -> None:
    engine.intake.unscheduled_pod_gone(pod)
    if pod.uid in engine.scheduler.binding.unresolved:
        engine.reconcile_loop.pods_listed()  # bound or deleted: only asking tells


@kopf.on.event(GROUP, VERSION, PLURAL)
async def profile_event(event: Mapping[str, Any], memo: kopf.Memo, **_: Any) -> None:
    """A profile came, changed, or was deleted."""
    memo.engine.profiles.take(event["type"], event["object"])
