"""The real queue under the default profile, with one pod in it that a plugin rejected."""

from __future__ import annotations

from typing import Any

from framework.makers import Scene
from hints.rows import Rejected, Row
from placewright.api.pods import PodInfo
from placewright.cluster.devices import DEVICE_KINDS
from placewright.framework.events import ClusterEvent
from placewright.framework.podchanges import pod_update_events
from placewright.queue.check import check_invariants
from placewright.queue.queue import SchedulingQueue
from placewright.queue.queued import SubQueue
from placewright.scheduler.policy import ProfilePolicy
from placewright.testing import built, node, pod

TRIED_AGAIN = (SubQueue.ACTIVE, SubQueue.BACKOFF)


class WaitingRoom:
    """A queue whose profile is the default one, with arguments for one plugin; its cluster has one node, n."""

    def __init__(self, of: Rejected | None = None) -> None:
        of = of or Rejected("", pod("nobody"))
        scene = Scene(spec={"pluginConfig": [{"name": of.plugin, "args": dict(of.args)}]} if of.args else {})
        scene.with_nodes(node("n", labels={"zone": "1"}))
        for standing in of.placed:
            scene.cluster.set_pod(built(standing))
        self.objects = scene.cluster.objects
        for item in of.known:
            self.objects.put(built(item))
        self.runtime = scene.evaluator().runtime
        policy = ProfilePolicy(self.runtime)
        self.queue = SchedulingQueue(lambda _name: policy, lambda: 100.0)

    def reject(self, pod: PodInfo, *plugins: str) -> None:
        """Try this pod, and let these plugins reject it; a gate keeps it from being tried at all."""
        self.queue.add(pod)
        queued = self.queue.pop()
        if queued is not None:
            self.queue.return_unschedulable(queued, set(plugins))

    def happens(self, row: Row) -> None:
        """Tell the queue: the rejected pod's own update as an update, all else as a move."""
        if isinstance(row.new, DEVICE_KINDS):
            self.objects.put(row.new)
        if row.own:
            [(resource, action)] = [(e.resource, e.action) for e in pod_update_events(row.old, row.new)]
            assert (resource, action) == (row.event.resource, row.event.action), "the row names another kind of change"
            self.queue.update(row.new)
        else:
            self.move(row.event, row.old, row.new)
        check_invariants(self.queue)

    def move(self, event: ClusterEvent, old: Any = None, new: Any = None) -> int:
        """Something happened."""
        return self.queue.move(event, old, new)

    def tried_again(self, pod: PodInfo) -> bool:
        """True when the pod will be tried without another event; False while it waits for one."""
        place = self.queue.locate(pod.uid)
        assert place in (*TRIED_AGAIN, SubQueue.UNSCHEDULABLE, SubQueue.GATED)
        return place in TRIED_AGAIN
