"""The judge itself: what it must find in an audit log, and what it must let pass."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from placewright_lab.controlplane.audit import Record, records_of

from .judging import (
    LogReader,
    bindings,
    first_binding,
    first_write,
    lease_writes,
    overcommitted,
    reigns,
    without_the_lead,
)

LASTS = 5


class Log:
    """Requests, told one after the other; times in seconds. `a`, `b`: replicas; the empty one is somebody else."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self._versions = 0

    def lease(self, replica: str, at: float, holder: str | None = None, *, code: int = 200, took: float = 0.1, replaced: int = -1) -> Log:
        """By default each replaces the one before, and makes its writer the holder."""
        version = self._versions if replaced < 0 else replaced
        self._versions += replaced < 0
        spec = {"holderIdentity": f"{replica if holder is None else holder}/1/2" if holder != "" else "", "leaseDurationSeconds": LASTS}
        body = {"metadata": {"name": "placewright", "resourceVersion": str(version)}, "spec": spec}
        reference = {"resource": "leases", "apiGroup": "coordination.k8s.io", "name": "placewright"}
        return self._add(replica, at, took, code, "update", reference, body)

    def bind(self, replica: str, at: float, uid: str = "p", node: str = "n", *, code: int = 201) -> Log:
        body = {"metadata": {"name": uid, "uid": uid}, "target": {"name": node}}
        reference = {"resource": "pods", "subresource": "binding", "namespace": "default", "name": uid}
        return self._add(replica, at, 0.1, code, "create", reference, body)

    def _add(self, replica: str, at: float, took: float, code: int, verb: str, reference: Any, body: Any) -> Log:
        record = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "verb": verb,
            "requestURI": "/",
            "user": {"username": "someone", "extra": {"authentication.kubernetes.io/pod-name": [replica]} if replica else {}},
            "objectRef": reference,
            "responseStatus": {"code": code},
            "requestObject": body,
            "requestReceivedTimestamp": stamp(at),
            "stageTimestamp": stamp(at + took),
        }
        self.lines.append(json.dumps(record).encode())
        return self

    @property
    def records(self) -> list[Record]:
        return records_of(self.lines)

    def judged(self) -> list[str]:
        return without_the_lead(lease_writes(self.records), bindings(self.records))


def stamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@pytest.mark.parametrize(
    "log",
    [
        Log().lease("a", 1).bind("a", 2),
        Log().lease("a", 1).bind("a", 2).lease("b", 9).bind("b", 10),
        Log().lease("a", 1).lease("b", 9).lease("a", 20).bind("a", 21),
        Log().lease("a", 1).lease("a", 2, holder="").lease("b", 2.2).bind("b", 3),
        Log().lease("a", 1).bind("", 2).lease("b", 9).bind("", 10),  # somebody else has no lead to lose
        Log().lease("a", 1).lease("b", 3, took=3).bind("a", 4, code=409).bind("b", 5),  # who knows when it came to be
        Log().lease("a", 1).lease("b", 3, code=409, replaced=0).bind("a", 4),  # refused
        Log().lease("a", 1).lease("b", 3, code=500).bind("b", 4),  # it may have come to be
    ],
)
def test_who_has_the_lead_may_bind(log: Log) -> None:
    assert log.judged() == []


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (Log().bind("a", 2), "nobody held the Lease yet"),
        (Log().lease("a", 1).bind("b", 2), "it came 0.900 s after a had taken the Lease"),
        (Log().lease("a", 1).lease("b", 4).bind("a", 5), "it came 0.900 s after b had taken the Lease"),
        (Log().lease("a", 1).lease("b", 4).bind("a", 5, code=409), "it came 0.900 s after b had taken the Lease"),
        (Log().lease("a", 1).lease("a", 4, holder="").bind("a", 5), "it came 0.900 s after a had released the Lease"),
        (Log().lease("a", 1).bind("a", 6.2), "it came 0.100 s after its Lease had run out"),
        (Log().lease("a", 1).lease("b", 3, code=409, replaced=0).bind("b", 4), "after a had taken the Lease"),
        (Log().lease("a", 1).lease("b", 3, code=500, replaced=1).lease("a", 4, replaced=1).bind("b", 5), "after a had taken the Lease"),
        (Log().lease("a", 1).lease("b", 3, holder="a"), "b made a the holder"),
    ],
)
def test_a_binding_without_the_lead_is_found(log: Log, words: str) -> None:
    (found,) = log.judged()
    assert words in found


def test_writes_are_put_in_order_by_what_each_replaced() -> None:
    log = Log().lease("b", 4, replaced=7, took=0.1).lease("a", 3, holder="", replaced=5, took=2)
    assert [(each.replica, each.holder) for each in lease_writes(log.records)] == [("a", ""), ("b", "b")]


def test_reigns_are_told_without_renewals_and_releases() -> None:
    log = Log().lease("a", 1).lease("a", 2).lease("a", 3, holder="").lease("b", 4).lease("a", 9)
    assert reigns(lease_writes(log.records)) == ["a", "b", "a"]


@pytest.mark.parametrize(
    ("log", "faults"),
    [
        (Log().bind("a", 1, "p1").bind("a", 2, "p2"), 0),
        (Log().bind("a", 1, "p1").bind("a", 2, "p2").bind("a", 3, "p3"), 1),
        (Log().bind("a", 1, "p1").bind("a", 2, "p2").bind("a", 3, "p3", code=409), 0),
        (Log().bind("", 1, "p1").bind("", 2, "p2").bind("a", 9, "p3"), 1),  # it could be known
        (Log().bind("", 8, "p1").bind("", 8.5, "p2").bind("a", 9, "p3"), 0),  # it could not
        (Log().bind("a", 1, "p1", node="elsewhere"), 1),
    ],
)
def test_room_that_was_not_there_is_found(log: Log, faults: int) -> None:
    asks = dict.fromkeys(("p1", "p2", "p3"), Fraction(1, 2))
    assert len(overcommitted(bindings(log.records), asks, {"n": Fraction(1)})) == faults


def test_recovery_is_counted_from_the_first_write_to_the_first_binding_of_a_replica() -> None:
    log = Log().bind("a", 1).bind("", 5).bind("a", 6, code=500).lease("a", 7).bind("a", 8).bind("b", 9)
    first, of_b = first_binding(bindings(log.records), 2), first_binding(bindings(log.records), 2, "b")
    assert first is not None
    assert of_b is not None
    assert (first.received, of_b.received) == (8, 9)
    assert first_write(log.records, 2) == pytest.approx(5.1)


def test_a_line_that_is_half_there_is_read_when_it_is_whole(tmp_path: Path) -> None:
    file, (first, second) = tmp_path / "audit.log", Log().bind("a", 1, "p1").bind("a", 2, "p2").lines
    file.write_bytes(b"of an earlier test\n")
    reader = LogReader(file)
    seen = []
    for piece in (first + b"\n" + second[:50], second[50:] + b"\n"):
        with file.open("ab") as log:
            log.write(piece)
        seen.append([each.object_ref.name for each in reader.records()])
    assert seen == [["p1"], ["p1", "p2"]]
