"""The audit itself: it must find what it is there for."""

from __future__ import annotations

from typing import Any

import pytest

from .audit import Findings, audit
from .history import History
from .proxy import BindingRequest

Object = dict[str, Any]


class Told:
    """A history told change by change, a second apart."""

    def __init__(self) -> None:
        self.history = History(lambda: None)
        self.requests: list[BindingRequest] = []
        self.created: list[str] = []
        self._version = 0
        self.lease("replica-0/1/a")

    def node(self, name: str = "n1", *, cpu: str = "1", cordoned: bool = False, gone: bool = False) -> Told:
        content = {"metadata": self._metadata(name), "spec": {"unschedulable": cordoned}}
        room = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
        self.history.node_changed("DELETED" if gone else "MODIFIED", content | {"status": {"allocatable": room}}, float(self._version))
        return self

    def pod(self, uid: str, node: str = "", *, cpu: str = "600m", condition: Object | None = None, gone: bool = False) -> Told:
        said = condition or {"type": "PodScheduled", "status": "True" if node else "Unknown"}
        containers = [{"resources": {"requests": {"cpu": cpu, "memory": "1Mi"}}}]
        spec = {"schedulerName": "placewright", "nodeName": node, "containers": containers}
        metadata = self._metadata(uid) | {"namespace": "default", "uid": uid}
        content = {"metadata": metadata, "spec": spec, "status": {"conditions": [said]}}
        self.history.pod_changed("DELETED" if gone else "MODIFIED", content, float(self._version))
        return self

    def placed(self, uid: str, node: str = "n1", *, code: int | None = 201, **wanted: Any) -> Told:
        """Created, then bound by a Binding of ours."""
        self.pod(uid, **wanted)
        self.requests.append(BindingRequest("replica-0", uid, f"default/{uid}", node, 0.0, 0.0, code))
        return self.pod(uid, node, **wanted)

    def said(self, uid: str, note: str) -> Told:
        about = {"kind": "Pod", "uid": uid}
        event = {"metadata": self._metadata(note) | {"uid": note}, "reason": "Scheduled", "regarding": about, "note": note}
        self.history.event_changed("ADDED", event, float(self._version))
        return self

    def lease(self, holder: str, *, at: float = 0.0) -> Told:
        content = {"metadata": self._metadata("placewright"), "spec": {"holderIdentity": holder}}
        self.history.lease_changed("MODIFIED", content, at)
        return self

    def found(self) -> Findings:
        return audit(self.history, self.requests, self.created)

    def _metadata(self, name: str) -> Object:
        self._version += 1
        return {"name": name, "resourceVersion": str(self._version)}


def refusal(message: str) -> Object:
    return {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}


FULL = "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."


def test_a_run_without_faults_has_none() -> None:
    told = Told().node().placed("a").said("a", "Successfully assigned default/a to n1").pod("b").pod("b", condition=refusal(FULL))
    found = told.found()
    assert (found.faults, found.untold, found.pods, found.bound) == ([], [], 2, 1)


def test_room_that_was_freed_may_be_used_again() -> None:
    assert Told().node().placed("a").pod("a", "n1", gone=True).placed("b").found().overcommitted == []


@pytest.mark.parametrize(
    ("told", "kind", "words"),
    [
        (Told().node(cpu="4").placed("a").pod("a", "n2"), "doubly_bound", "went from n1 to n2"),
        (Told().node(cpu="4").placed("a").placed("a"), "doubly_bound", "2 Bindings succeeded"),
        (Told().node().pod("a").pod("a", "n1"), "doubly_bound", "which no Binding that passed explains"),
        (Told().node().placed("a", code=409), "doubly_bound", "which no Binding that passed explains"),
        (Told().node().placed("a").placed("b"), "overcommitted", "came to n1: {'cpu': 1200"),
        (Told().node(cpu="2").placed("a").node().node().node().placed("b"), "overcommitted", "came to n1: {'cpu': 1200"),
        (Told().node(cordoned=True).node("n2").node("n2", cpu="2").placed("a"), "overcommitted", "which was cordoned"),
        (Told().node().node(gone=True).node("n2").node("n2", cpu="2").placed("a"), "overcommitted", "which was gone"),
        (Told().lease("replica-1/2/b", at=-0.6).node().placed("a"), "unled", "without the lead"),
        (Told().lease("", at=-0.6).node().placed("a"), "unled", "without the lead"),
        (Told().node().pod("a"), "lost", "nothing says why"),
        (Told().node().pod("a", condition=refusal(FULL)), "lost", "has no node, and fits n1"),
        (Told().node().placed("b").pod("a", condition=refusal(FULL.replace("0/1", "0/7"))), "lost", "never were so many"),
        (Told().node().node("n2").pod("a", cpu="9", condition=refusal(FULL.replace("0/1", "0/2"))), "lost", "tells of 1 nodes"),
        (Told().node().placed("b").pod("a", condition=refusal("")), "lost", "does not say how many nodes"),
        (Told().node().placed("a").said("a", "Successfully assigned default/a to n2"), "untrue", "which is on n1"),
        (Told().node().pod("a").said("a", "Successfully assigned default/a to n1"), "untrue", "which is on no node"),
        (Told().node().placed("a", condition=refusal(FULL)), "untrue", "its condition PodScheduled is"),
    ],
)
def test_the_audit_finds(told: Told, kind: str, words: str) -> None:
    faults = getattr(told.found(), kind)
    assert len(faults) >= 1
    assert any(words in fault for fault in faults), faults


def test_a_binding_just_before_its_term_was_heard_of_is_no_fault() -> None:
    told = Told().lease("", at=-9.0).lease("replica-0/1/a", at=0.4).node().placed("a")
    assert told.found().unled == []


def test_a_pod_that_was_created_and_never_seen_is_lost() -> None:
    told = Told().node()
    told.created.append("a")
    assert told.found().lost == ["a was created and never seen"]
