"""Plugins that several tests tell alike, by the scripts of the framework."""

from __future__ import annotations

from typing import Any

from framework.scripts import Call, Script
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.framework.events import Action, EventResource, event_with_hint
from placewright.framework.interface import PostFilterResult
from placewright.framework.status import SUCCESS, Status


def late(name: str, calls: list[Call] | None = None, *, pre_flight: Status = SUCCESS, **told: Any) -> Script:
    """Reserve, Permit, PreBind and PostBind, as `told` by method, and rejections that end when a pod goes."""
    script = Script(name, calls).reserves().permits().pre_binds().post_binds()
    script.told |= told
    return script.writing(
        events=lambda _plugin: [event_with_hint(EventResource.ASSIGNED_POD, Action.DELETE)],
        pre_bind_pre_flight=lambda _plugin, _state, _pod, _node: pre_flight,
    )


def room_maker(node: str, *victims: PodInfo) -> Script:
    """A PostFilter that makes room on a node by evicting pods."""
    return Script("RoomMaker").post_filters(PostFilterResult(SUCCESS, NodeName(node), victims))
