"""kube-scheduler's table of queueing hints, row by row, on the real queue under the default profile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pytest

from framework.makers import Scene
from hints import device_rows, gang_rows, node_rows, pairwise_rows, volume_rows
from hints.rows import Rejected, Row
from hints.waiting_room import WaitingRoom
from placewright.framework.events import Action, ClusterEvent, ClusterEventWithHint, EventResource, always
from placewright.framework.runtime.profileruntime import ALLOWED_NAMESPACES
from placewright.plugins.catalog import in_tree
from placewright.queue.queued import SubQueue
from placewright.testing import node, pod

#: Who waits for new nodes also hears of taints that change, although its hint for nodes might not be asked: upstream issue 109437.
HEAR_OF_TAINTS: Final = (
    "NodeName", "NodePorts", "NodeResourcesFit", "NodeAffinity", "VolumeRestrictions", "VolumeBinding", "VolumeZone",
    "InterPodAffinity", "NodeDeclaredFeatures", "DynamicResources", "NodeVolumeLimits",
)  # fmt: skip
TAINT_ROWS: Final = tuple(
    Rejected(plugin, pod("me")).wakes("any change of a node's taints", "node_taint", old=node("n"), new=node("n"))
    for plugin in HEAR_OF_TAINTS
)
ROWS: Final[tuple[Row, ...]] = (*node_rows.ROWS, *pairwise_rows.ROWS, *volume_rows.ROWS, *device_rows.ROWS, *gang_rows.ROWS, *TAINT_ROWS)

#: What kube-scheduler 1.36 registers, from its sources.
_POD, _NODE = EventResource.POD, EventResource.NODE
_CLAIM, _VOLUME, _CLASS = EventResource.PERSISTENT_VOLUME_CLAIM, EventResource.PERSISTENT_VOLUME, EventResource.STORAGE_CLASS
_ADD, _DELETE, _CHANGE = Action.ADD, Action.DELETE, Action.ADD | Action.UPDATE
_NODE_LABEL, _TAINT, _POD_LABEL = Action.UPDATE_NODE_LABEL, Action.UPDATE_NODE_TAINT, Action.UPDATE_POD_LABEL
_TOLERATION = Action.UPDATE_POD_TOLERATION
UPSTREAM: Final[dict[str, dict[EventResource, Action]]] = {
    "SchedulingGates": {_POD: Action.UPDATE_POD_GATES_ELIMINATED},
    "NodeUnschedulable": {_NODE: _ADD | _TAINT, _POD: _TOLERATION},
    "NodeName": {_NODE: _ADD},
    "TaintToleration": {_NODE: _ADD | _TAINT, _POD: _TOLERATION},
    "NodeAffinity": {_NODE: _ADD | _NODE_LABEL},
    "NodePorts": {_POD: _DELETE, _NODE: _ADD},
    "NodeResourcesFit": {
        _POD: _DELETE | Action.UPDATE_POD_SCALE_DOWN,
        _NODE: _ADD | Action.UPDATE_NODE_ALLOCATABLE,
        EventResource.DEVICE_CLASS: _CHANGE,
    },
    "VolumeRestrictions": {_POD: _DELETE, _NODE: _ADD, _CLAIM: _ADD},
    "NodeVolumeLimits": {
        _NODE: _ADD,  # upstream: not at all, although a node has no limits before its CSINode is there
        EventResource.ASSIGNED_POD: _ADD,  # upstream: not at all, although a volume that is there already is free
        EventResource.CSI_NODE: _CHANGE | _DELETE,  # upstream: not when one goes, and with it limits
        _POD: _DELETE,
        _CLAIM: _ADD,
        EventResource.VOLUME_ATTACHMENT: _DELETE,
        _CLASS: _DELETE,  # upstream: not when one goes by which claims are counted
    },
    "VolumeBinding": {
        _CLASS: _CHANGE,
        _CLAIM: _CHANGE,
        _VOLUME: _CHANGE,
        _NODE: _ADD | _NODE_LABEL,
        EventResource.CSI_NODE: _CHANGE,
        EventResource.CSI_DRIVER: Action.UPDATE,
        EventResource.CSI_STORAGE_CAPACITY: _CHANGE,
        EventResource.ASSIGNED_POD: _DELETE,  # upstream: not when what was taken for a pod is given back unwritten
    },
    "VolumeZone": {_CLASS: _ADD, _NODE: _ADD | _NODE_LABEL, _CLAIM: _CHANGE, _VOLUME: _CHANGE},
    "PodTopologySpread": {
        _POD: _ADD | _POD_LABEL | _TOLERATION | _DELETE | Action.UPDATE_POD_TERMINATING,  # upstream: when it is gone, not when it leaves
        _NODE: _ADD | _DELETE | _NODE_LABEL | _TAINT,
    },
    "InterPodAffinity": {
        _POD: _ADD | _POD_LABEL | _DELETE,
        _NODE: _ADD | _NODE_LABEL | _DELETE,  # upstream: not when one goes, and with it pods that kept others away
        EventResource.NAMESPACE: Action.ADD | Action.UPDATE | Action.DELETE,  # upstream: not at all
    },
    "NodeDeclaredFeatures": {_NODE: _ADD | Action.UPDATE_NODE_DECLARED_FEATURE, _POD: Action.UPDATE},
    "DynamicResources": {
        _NODE: _ADD | _NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE,
        EventResource.RESOURCE_CLAIM: Action.ALL,  # upstream: not when one is gone
        _POD: Action.UPDATE_POD_GENERATED_CLAIM,
        EventResource.ASSIGNED_POD: _DELETE,  # upstream: not when what was taken for a pod is given back unwritten
        EventResource.DEVICE_CLASS: _CHANGE,
        EventResource.RESOURCE_SLICE: _CHANGE,
        EventResource.DEVICE_TAINT_RULE: Action.ALL,  # upstream: slices change with the rules that taint their devices
    },
    "DefaultPreemption": {_POD: _DELETE},
    # Upstream also asks about new pods, knows no topology, and has no groups that leave room to others of their tree; here a member that
    # comes takes the others along, without an event.
    "GangScheduling": {EventResource.POD_GROUP: Action.ALL, _NODE: _NODE_LABEL},
}
#: No event wakes a pod for these: the scheduler itself activates it.
NEVER: Final = frozenset({"DefaultPreemption"})

#: Objects that help by being there at all, although the plugin looks at how they change later.
NEW_ONES_HELP: Final = frozenset(
    {("VolumeBinding", _CLASS), ("VolumeBinding", EventResource.CSI_NODE), ("VolumeBinding", EventResource.CSI_STORAGE_CAPACITY)}
    | {("VolumeZone", _VOLUME)}
)

#: The rule on namespaces is the framework's own, and has its own tests (`tests/scheduler/test_allowed_namespaces.py`).
INTERESTS: Final = {plugin: events for plugin, events in WaitingRoom().runtime.interests.items() if plugin != ALLOWED_NAMESPACES}


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_waiting_pod_is_tried_again_only_after_what_could_help_it(row: Row) -> None:
    room = WaitingRoom(row.of)
    room.reject(row.rejected, row.plugin)
    assert not room.tried_again(row.rejected)
    room.happens(row)
    assert room.tried_again(row.rejected) is row.wakes


@pytest.mark.parametrize("row", [row for row in ROWS if row.plugin != "SchedulingGates" and not row.of.gated], ids=str)
def test_the_same_holds_for_what_happens_while_the_pod_is_being_tried(row: Row) -> None:
    room = WaitingRoom(row.of)
    room.queue.add(row.rejected)
    attempt = room.queue.pop()
    assert attempt is not None
    room.happens(row)
    room.queue.return_unschedulable(attempt, {row.plugin})
    assert room.tried_again(row.rejected) is row.wakes


@pytest.mark.parametrize("row", [row for row in ROWS if row.wakes and not row.own and not row.of.gated], ids=str)
def test_a_pod_that_another_plugin_rejected_is_left_alone(row: Row) -> None:
    """DefaultPreemption stands for a plugin whose pods no event helps."""
    room = WaitingRoom(row.of)
    room.reject(row.rejected, "DefaultPreemption")
    room.happens(row)
    assert not room.tried_again(row.rejected)


# --- the table is complete -----------------------------------------------------------------------------------------------------


def named(plugin: str) -> Sequence[ClusterEventWithHint]:
    return INTERESTS[plugin] or ()


def registered_by(plugin: str) -> Sequence[ClusterEventWithHint]:
    """What the plugin itself says, before the framework adds to it."""
    kind = in_tree()[plugin]
    found: Sequence[ClusterEventWithHint] | None = kind(kind.Args(), Scene().handle()).events()
    return found or ()


def kinds(event: ClusterEvent) -> Iterator[ClusterEvent]:
    """Each kind of event by itself; "any update" is one kind."""
    rest = event.action
    if rest & Action.UPDATE == Action.UPDATE:
        yield ClusterEvent(event.resource, Action.UPDATE)
        rest &= ~Action.UPDATE
    for action in rest:
        yield ClusterEvent(event.resource, action)


def possible(plugin: str, each: ClusterEventWithHint, kind: ClusterEvent) -> set[bool]:
    """The answers that the plugin can give to this event."""
    if plugin in NEVER:
        return {False}
    new_one = kind.action is Action.ADD and (plugin, kind.resource) in NEW_ONES_HELP
    return {True} if each.hint is always or new_one else {True, False}


REGISTERED: Final = [
    pytest.param(plugin, kind, possible(plugin, each, kind), id=f"{plugin}: {kind.resource} {kind.action.name}")
    for plugin in INTERESTS
    for each in named(plugin)
    for kind in kinds(each.event)
]


@pytest.mark.parametrize(("plugin", "kind", "answers"), REGISTERED)
def test_every_registered_event_has_rows_for_each_answer(plugin: str, kind: ClusterEvent, answers: set[bool]) -> None:
    assert {row.wakes for row in ROWS if row.plugin == plugin and row.event.concerns(kind)} == answers


def test_plugins_register_what_kube_scheduler_registers() -> None:
    ours: dict[str, dict[EventResource, Action]] = {}
    for plugin in UPSTREAM:
        for each in registered_by(plugin):
            actions = ours.setdefault(plugin, {})
            actions[each.event.resource] = actions.get(each.event.resource, Action(0)) | each.event.action
    assert {plugin: ours.get(plugin, {}) for plugin in UPSTREAM} == UPSTREAM


def test_who_names_its_events_is_in_the_table_and_who_waits_for_nodes_also_hears_of_taints() -> None:
    assert {plugin for plugin, events in INTERESTS.items() if events is not None} == UPSTREAM.keys()
    extra = {plugin for plugin in UPSTREAM if len(named(plugin)) > len(registered_by(plugin))}
    assert extra == set(HEAR_OF_TAINTS)


def test_rows_say_different_things() -> None:
    assert len({str(row) for row in ROWS}) == len(ROWS)


def test_a_gated_pod_is_not_looked_at_for_its_gate_while_it_is_tried() -> None:
    """The one row above that has no attempt: a gate holds a pod back before it is tried."""
    room = WaitingRoom()
    room.queue.add(node_rows.GATED)
    assert room.queue.locate("uid-me") is SubQueue.GATED
    assert room.queue.pop() is None
