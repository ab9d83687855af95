"""The handlers of what Kopf watches: unscheduled pods and SchedulingProfiles. Each is one call into the engine."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import kopf
import msgspec

from placewright.api.decode import DecodeError, convert
from placewright.api.objects import NodeName, Pod
from placewright.api.profile import GROUP, PLURAL, VERSION
from placewright.engine.discovery import readable_pod
from placewright.engine.outofmemory import reported
from placewright.engine.readingpart import ReadingPart
from placewright.handlers.directdelivery import delivered_directly

_logger = logging.getLogger(__name__)


class _DepartedMeta(msgspec.Struct, frozen=True):
    uid: str = ""


class _DepartedSpec(msgspec.Struct, rename="camel", frozen=True):
    node_name: str = ""


class _DepartedPod(msgspec.Struct, frozen=True):
    """A pod that left the selection of unscheduled pods.

    Two fields are decoded, because nearly every such pod was bound: the watch of assigned pods shows the rest of it.
    """

    metadata: _DepartedMeta
    spec: _DepartedSpec = _DepartedSpec()

    @property
    def uid(self) -> str:
        """The pod's uid."""
        return self.metadata.uid

    @property
    def node_name(self) -> NodeName:
        """The node that the pod was bound to; empty if the pod was deleted or finished without a node."""
        return NodeName(self.spec.node_name)


@kopf.on.event("", "v1", "pods")
@delivered_directly
async def pod_event(event: Mapping[str, Any], memo: kopf.Memo, **_: Any) -> None:
    """Pass an event of an unscheduled pod on to the engine: the pod came, changed, or left the selection.

    Under `placewright run` the call comes from `DirectDelivery`, which reads Kopf's watch: one event at a time, in the order of the
    watch, on the event loop. Under `kopf run -m placewright.handlers`, or with a Kopf that has changed inside, Kopf's worker of that pod
    calls. Either way this function is found in Kopf's registry.

    Args:
        event: the event with `type` (`ADDED`, `MODIFIED`, `DELETED`; None out of a list) and `object`, a v1 Pod. A pod that is bound leaves
            the selection, and comes as `DELETED` with its node.
        memo: has the engine. Directly delivered it is the operator's, else Kopf's copy for this pod.
    """
    take_pod_event(memo.engine.reading, event)


def take_pod_event(reading: ReadingPart, event: Mapping[str, Any]) -> None:
    """Tell the engine that an unscheduled pod came, changed, or left the selection.

    A pod that cannot be decoded is logged and left alone: the scheduler must not place a pod when it can read only a part of it.

    Args:
        reading: its event handlers take the pod.
        event: the event, as for `pod_event`.
    """
    try:
        if event["type"] == "DELETED":
            reading.unscheduled_pod_gone(convert(event["object"], _DepartedPod))
            return
        pod = readable_pod(convert(event["object"], Pod))
    except DecodeError as problem:
        meta = event["object"].get("metadata", {})
        _logger.warning("pod %s/%s is ignored: %s", meta.get("namespace"), meta.get("name"), problem)
        return
    if pod is None:
        return
    if event["type"] is None:  # out of a list: Kopf tells of no pod that vanished before it, so the reconciler compares
        reading.reconcile_loop.pods_listed()
    reading.event_handlers.unscheduled_pod(pod)


@kopf.on.event(GROUP, VERSION, PLURAL)
async def profile_event(event: Mapping[str, Any], memo: kopf.Memo, **_: Any) -> None:
    """Pass an event of a SchedulingProfile on to the engine: it came, changed, or was deleted.

    Kopf's worker of that profile calls this: profiles are few, and one that is slow to check holds up no other.

    Args:
        event: the event, as the API server sent it, with `type` and `object`.
        memo: Kopf's copy for this profile; has the engine.
    """
    with reported():
        memo.engine.deciding.profiles.take(event["type"], event["object"])
