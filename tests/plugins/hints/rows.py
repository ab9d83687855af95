"""One row of the table: a pod that one plugin rejected, something that happens, and whether the pod is tried again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from placewright.api.pods import PodInfo
from placewright.cluster.objects import GROUP_KINDS
from placewright.framework.events import Action, ClusterEvent, EventResource
from placewright.testing import built
from placewright.testing.plugincase import AnyObject, AnyPod


@dataclass(frozen=True)
class Rejected:
    """A plugin and a pod that it rejected: makes rows.

    Attributes:
        args: the plugin's arguments in the profile.
        placed: pods that stand on nodes, so that the plugin sees them in the columns.
        known: other objects that are there.
        gated: whether the plugin keeps the pod from being tried at all.
    """

    plugin: str
    pod: AnyPod
    args: Mapping[str, Any] = field(default_factory=dict)
    placed: tuple[AnyPod, ...] = ()
    known: tuple[AnyObject, ...] = ()
    gated: bool = False

    def wakes(self, says: str, changed: str = "", *, old: Any = None, new: Any = None) -> Row:
        """The pod must be tried again; `changed` is the part of a pod or a node that an update changed, as `Action` calls it."""
        return Row(self, built(self.pod), says, True, changed, built(old), built(new))

    def rests(self, says: str, changed: str = "", *, old: Any = None, new: Any = None) -> Row:
        """The pod must be left where it is."""
        return Row(self, built(self.pod), says, False, changed, built(old), built(new))


@dataclass(frozen=True)
class Row:
    """What happens, and whether it wakes the pod.

    Attributes:
        says: what happens, in words; with plugin and outcome it names the test.
        old, new: the object before and after; None where it was not there yet, or is no more.
    """

    of: Rejected
    rejected: PodInfo
    says: str
    wakes: bool
    changed: str
    old: Any
    new: Any

    def __str__(self) -> str:
        return f"{self.plugin}: {self.says} {'wakes' if self.wakes else 'does not wake'} the pod"

    @property
    def plugin(self) -> str:
        return self.of.plugin

    @property
    def own(self) -> bool:
        """True when what happens is an update of the rejected pod itself."""
        return isinstance(self.new, PodInfo) and self.new.uid == self.rejected.uid

    @property
    def event(self) -> ClusterEvent:
        """The event as event handlers tell it of these objects; they tell of pods that are gone as if all had stood on nodes."""
        shown = self.old if self.new is None else self.new
        if isinstance(shown, PodInfo):
            resource = EventResource.ASSIGNED_POD if shown.node_name or self.new is None else EventResource.UNSCHEDULED_POD
        else:
            resource = EventResource.POD_GROUP if isinstance(shown, GROUP_KINDS) else EventResource(type(shown).__name__)
        if self.changed:
            action = Action[f"UPDATE_{self.changed}".upper()]
        else:
            action = Action.ADD if self.old is None else Action.DELETE if self.new is None else Action.UPDATE
        return ClusterEvent(resource, action, f"{resource}{action.name}")
