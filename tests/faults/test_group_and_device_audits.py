"""The audits of groups and of devices themselves: they must find what they are there for."""

from __future__ import annotations

from typing import Any

import pytest

from .deviceaudit import ClaimReplay, leaks, unaccounted
from .groupaudit import GroupAudit, lapses
from .history import GROUP_LABEL, History
from .proxy import BindingRequest

Object = dict[str, Any]
#: Seconds between what is told, so that nothing is recent.
APART = 20.0


class Told:
    """A history told change by change, of one node with eight CPUs and the group "g" that needs two."""

    def __init__(self) -> None:
        self.history = History(lambda: None)
        self.requests: list[BindingRequest] = []
        self._version = 0
        room = {"cpu": "8", "memory": "16Gi", "pods": "110"}
        node = {"metadata": self._metadata("n1"), "spec": {}, "status": {"allocatable": room}}
        self.history.node_changed("ADDED", node, self._now())

    # --- groups ---

    def pod(
        self, uid: str, node: str = "", *, says: str = "", gone: bool = False, cpu: str = "1", wants: int = 0, group: str = "g"
    ) -> Told:
        condition = {"type": "PodScheduled", "status": "True"}
        if not node:
            condition |= {"status": "False", "reason": "Unschedulable", "message": says}
        containers = [{"resources": {"requests": {"cpu": cpu, "memory": "1Mi"}}}]
        claims = [{"name": f"c{number}", "resourceClaimName": f"{uid}-{number}"} for number in range(wants)]
        spec = {"schedulerName": "placewright", "nodeName": node, "containers": containers, "resourceClaims": claims}
        metadata = self._metadata(uid) | {"namespace": "default", "uid": uid, "labels": {GROUP_LABEL: group} if group else {}}
        content = {"metadata": metadata, "spec": spec, "status": {"conditions": [condition]}}
        self.history.pod_changed("DELETED" if gone else "MODIFIED", content, self._now())
        return self

    def members(self, *uids: str, **wanted: Any) -> Told:
        for uid in uids:
            self.pod(uid, **wanted)
        return self

    def sent(self, *uids: str, replica: str = "replica-0", code: int | None = 201) -> Told:
        """Bindings, at once; those that succeed are heard of."""
        at = self._now()
        for uid in uids:
            self.requests.append(BindingRequest(replica, uid, f"default/{uid}", "n1", at, at, code))
        for uid in uids if code == 201 else ():
            self.pod(uid, "n1")
        return self

    def groups(self, *, stopped: tuple[tuple[str, float], ...] = ()) -> tuple[list[str], list[str], list[str], list[str]]:
        """Not together, split, halfway, unaccounted for."""
        audit = GroupAudit(self.history, self.requests, {"g": 2})
        apart, split = audit.not_together(self.history.changes, stopped), audit.split()
        return apart, split, audit.halfway, [why for why in audit.unaccounted({1}).values() if why]

    # --- devices ---

    def slice(self, *names: str, gone: bool = False) -> Told:
        spec = {"nodeName": "n1", "pool": {"name": "n1"}, "devices": [{"name": name} for name in names]}
        content = {"metadata": self._metadata("slice"), "spec": spec}
        self.history.slice_changed("DELETED" if gone else "MODIFIED", content, self._now())
        return self

    def claim(
        self, owner: str, *names: str, reserved: str | None = None, node: str = "n1", gone: bool = False, empty: bool = False
    ) -> Told:
        """The first claim of a pod; `empty`: it is reserved and has no allocation."""
        results = [{"driver": "d", "pool": "n1", "device": name, "request": "r"} for name in names]
        field = {"key": "metadata.name", "operator": "In", "values": [node]}
        allocation = {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]}}
        status: Object = {"allocation": allocation, "reservedFor": [{"uid": owner if reserved is None else reserved}]} if names else {}
        if empty:
            status = {"reservedFor": [{"uid": owner}]}
        metadata = self._metadata(f"{owner}-0") | {"namespace": "default", "uid": f"claim of {owner}"}
        metadata["ownerReferences"] = [{"kind": "Pod", "uid": owner}]
        self.history.claim_changed("DELETED" if gone else "MODIFIED", {"metadata": metadata, "status": status}, self._now())
        return self

    def astray(self) -> list[str]:
        changes = sorted(self.history.changes, key=lambda change: change.version)
        return ClaimReplay().run(changes)

    def _metadata(self, name: str) -> Object:
        self._version += 1
        return {"name": name, "resourceVersion": str(self._version)}

    def _now(self) -> float:
        return self._version * APART


def bound(*uids: str) -> Told:
    """Two devices are published, and each pod has a claim with one of them, and is bound."""
    told = Told().slice("gpu-0", "gpu-1")
    for number, uid in enumerate(uids):
        told.pod(uid, wants=1, group="").claim(uid).claim(uid, f"gpu-{number}").pod(uid, "n1", wants=1, group="")
    return told


LACKS = 'pod group "g" is unschedulable: needs 2 more members placed: 1 lacks cpu'
FULL = "0/1 nodes are available: 1 Insufficient cpu."
FEW = "waiting: PodGroup.scheduling.x-k8s.io default/g: spec.minMember is 2, but there are 1 pods of it"


@pytest.mark.parametrize(
    "told",
    [
        Told().members("a", "b").sent("a", "b"),
        Told().members("a", "b").sent("a", code=409).members("a", "b", says=LACKS, cpu="5"),
        Told().members("a", "b", "c").sent("a", "b").sent("c"),
        Told().members("a", "b").pod("b", gone=True).pod("a", says=FEW),
    ],
    ids=["both", "neither", "one more later", "too few"],
)
def test_groups_without_faults_have_none(told: Told) -> None:
    _, split, halfway, unaccounted_for = told.groups()
    assert (split, halfway, unaccounted_for) == ([], [], [])


def test_members_bound_at_once_are_together() -> None:
    assert Told().members("a", "b").sent("a", "b").groups()[0] == []


def test_one_member_bound_alone_is_not() -> None:
    apart, split, halfway, _ = Told().members("a", "b").sent("a").groups()
    assert "sent a Binding of default/a" in apart[0]
    assert split == ["1 of 2 members of g have a node, and it needs 2"]
    assert halfway == []


def test_a_sender_whose_renewals_lapsed_meanwhile_is_excused_and_one_that_renewed_in_time_is_not() -> None:
    told = Told().members("a", "b").sent("a")
    at = told.requests[0].at
    for renewals, excused in (((at - 2.0, at - 1.5, at + 4.0), True), ((at - 2.0, at, at + 1.0, at + 2.0), False), ((at - 1.0,), False)):
        stopped = tuple(("replica-0", lapse) for lapse in lapses(renewals, within=2.5))
        apart, _, _, _ = told.groups(stopped=stopped)
        assert (apart == []) is excused


def test_a_sender_that_was_killed_meanwhile_is_excused_and_the_rest_has_to_say_why_it_waits() -> None:
    told = Told().members("a", "b").sent("a").sent("b", replica="replica-1", code=500)
    at = told.requests[0].at
    apart, split, halfway, waits = told.groups(stopped=(("replica-0", at + 1.0),))
    assert (apart, split) == ([], [])
    assert halfway == ["1 of 2 members of g have a node, and it needs 2"]
    assert "does not say how many nodes" in waits[0]


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (Told().members("a", "b", says=LACKS), "needs 2 places, and there are 8"),
        (Told().members("a", "b", says=FULL, cpu="9"), "does not say what its group g lacks"),
        (Told().members("a", "b", says=LACKS.replace('"g"', '"h"'), cpu="9"), "does not say what its group g lacks"),
        (Told().members("a", "b", says=LACKS.replace("needs 2", "needs 3"), cpu="9"), "does not say what its group g lacks"),
        (Told().pod("a", says=FEW.replace("are 1", "are 3")), "1 of 2 members of g are there, and it says"),
        (Told().members("a", "b", "c").sent("a", "b").pod("c", says=FULL), "has no node, and fits n1"),
    ],
)
def test_the_audit_of_groups_finds_who_waits_wrongly(told: Told, words: str) -> None:
    waits = told.groups()[3]
    assert len(waits) >= 1
    assert words in waits[0]


def test_devices_without_faults_have_none() -> None:
    told = bound("a", "b").claim("a", gone=True).pod("a", gone=True, group="", wants=1)
    assert bound("a", "b").astray() == []
    assert leaks(told.history) == []


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (bound("a").pod("b", group="").claim("b").claim("b", "gpu-0"), "n1/gpu-0 is in default/b-0 and in default/a-0"),
        (bound("a").pod("b", group="").claim("b").claim("b", "gpu-7"), "where no slice lists them"),
        (bound("a").slice().pod("b", group="").slice().claim("b").claim("b", "gpu-1"), "where no slice lists them"),
        (bound("a").pod("b", group="").claim("b", "gpu-1", node="n2"), "on n2, where no slice lists them"),
        (Told().pod("a", group="").claim("a", empty=True), "is reserved and has no allocation"),
        (bound("a").pod("b", group="").claim("b", "gpu-1", reserved="x"), "for somebody that it was not made for"),
        (bound("a").claim("a", "gpu-1"), "its claim default/a-0 is no longer as it was"),
        (bound("a").claim("a", "gpu-0", reserved="b"), "its claim default/a-0 is no longer as it was"),
        (bound("a").claim("a", gone=True), "its claim default/a-0 is no longer as it was"),
        (Told().pod("a", group="", wants=1).pod("a", "n1", group="", wants=1), "its claim a-0 is not there"),
        (Told().pod("a", group="", wants=1).claim("a").pod("a", "n1", group="", wants=1), "is not allocated and reserved for it"),
        (
            bound().pod("a", group="", wants=1).claim("a", "gpu-0", reserved="").pod("a", "n1", group="", wants=1),
            "is not allocated and reserved for it",
        ),
        (bound().pod("a", group="", wants=1).claim("a", "gpu-0").pod("a", "n2", group="", wants=1), "its claim a-0 is allocated on n1"),
    ],
)
def test_the_audit_of_devices_finds(told: Told, words: str) -> None:
    faults = told.astray()
    assert any(words in fault for fault in faults), faults


def test_a_claim_with_devices_that_nobody_uses_is_a_leak() -> None:
    told = Told().slice("gpu-0").pod("a", group="", wants=1).claim("a", "gpu-0")
    assert leaks(told.history) == ["default/a-0 has (('n1', 'gpu-0'),), and no pod on a node uses it"]


def test_a_pod_that_waits_although_devices_are_free_is_found_and_one_without_is_not() -> None:
    told = Told().slice("gpu-0").pod("a", group="", wants=1, says="0/1 nodes are available: 1 cannot allocate all claims.")
    fits = unaccounted(told.history, {"a": 1}, {1})
    assert fits == {"a": "has no node, and fits n1"}
    assert unaccounted(told.history, {"a": 2}, {1}) == {"a": ""}
