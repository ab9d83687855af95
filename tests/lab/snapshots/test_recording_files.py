"""Recordings as they are read: what happened happens again, what the recorded scheduler did is told apart, wrong lines are refused."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from placewright import testing as kit
from placewright.api.bad_input import InputError
from placewright_lab.simulation.scenario import Act
from placewright_lab.snapshots.snapshot import Recording, read_recording

Body = dict[str, Any]
NODE: Body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "uid": "n1"}}
GROUP = "placewright.dev/v1alpha1"
PROFILE: Body = {"apiVersion": GROUP, "kind": "SchedulingProfile", "metadata": {"name": "mine", "uid": "m"}, "spec": {"schedulerName": "x"}}


def a_pod(name: str, node: str = "", phase: str = "", **meta: Any) -> Body:
    made = kit.pod(name, on=node).metadata(**{"namespace": "ns", "uid": f"uid-{name}", **meta})
    return (made.phase(phase) if phase else made).manifest


def change(at: float, act: str, content: Body) -> Body:
    return {"at": at, "act": act, "object": content}


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Recording]:
    def from_lines(beginning: list[Body], *changes: Body, tail: bytes = b"", packed: bool = True, **options: Any) -> Recording:
        counts: dict[str, int] = {}
        for each in beginning:
            counts[each["kind"]] = counts.get(each["kind"], 0) + 1
        header = {"placewright": "recording", "version": 1, "taken": "2026-01-01T00:00:00Z", "server": "Kubernetes 1.36", "counts": counts}
        text = b"".join(json.dumps(each).encode() + b"\n" for each in (header, *beginning, *changes)) + tail
        path = tmp_path / "r.gz"
        path.write_bytes(gzip.compress(text) if packed else text)
        return read_recording(path, **options)

    return from_lines


def test_pods_come_without_the_node_that_the_recorded_scheduler_gave_them(read: Any) -> None:
    found = read([NODE], change(1, "ADDED", a_pod("a")), change(1.5, "MODIFIED", a_pod("a", "n1")))
    assert [(each.at, each.act, each.manifest) for each in found.scenario.happenings] == [(1, Act.ADDED, a_pod("a"))]
    assert found.recorded_nodes == {"uid-a": "n1"}
    assert found.recorded_at == {"uid-a": 1.5}
    assert found.scenario.objects == [NODE]
    assert found.seconds == 1.5


def test_a_pod_that_was_first_seen_on_its_node_comes_without_it_all_the_same(read: Any) -> None:
    found = read([NODE], change(2, "ADDED", a_pod("a", "n1")))
    assert found.scenario.happenings[0].manifest == a_pod("a")
    assert found.recorded_nodes == {"uid-a": "n1"}


def test_a_static_pod_is_its_nodes_own(read: Any) -> None:
    own = a_pod("etcd", "n1", ownerReferences=[{"kind": "Node", "name": "n1"}])
    found = read([NODE], change(2, "ADDED", own))
    assert found.scenario.happenings[0].manifest == own
    assert found.recorded_nodes == {}


def test_pods_of_schedulers_that_are_not_replayed_stand_where_and_when_they_were_put(read: Any) -> None:
    moved = a_pod("b", "n1")
    found = read([NODE, a_pod("a")], change(1, "ADDED", a_pod("b")), change(2, "MODIFIED", moved), schedulers=["mine"])
    assert [(each.at, each.manifest) for each in found.scenario.happenings] == [(1, a_pod("b")), (2, moved)]
    assert found.recorded_nodes == {}
    again = read([NODE, a_pod("a")], change(1, "ADDED", a_pod("b")), change(2, "MODIFIED", moved), schedulers=["default-scheduler"])
    assert again.recorded_nodes == {"uid-b": "n1"}


def test_pods_that_stood_on_nodes_at_the_beginning_stay_there_and_change_as_recorded(read: Any) -> None:
    changed = a_pod("old", "n1", labels={"app": "x"})
    found = read([NODE, a_pod("old", "n1")], change(1, "MODIFIED", changed), change(2, "DELETED", a_pod("old")))
    assert found.scenario.objects == [NODE, a_pod("old", "n1")]
    assert [(each.act, each.manifest) for each in found.scenario.happenings] == [(Act.MODIFIED, changed), (Act.DELETED, a_pod("old"))]
    assert found.recorded_nodes == {}


def test_pods_that_waited_at_the_beginning_wait_again(read: Any) -> None:
    waiting = a_pod("w") | {"status": {"nominatedNodeName": "n1"}}
    found = read([NODE, waiting], change(1, "MODIFIED", a_pod("w", "n1")))
    assert found.scenario.objects == [NODE, a_pod("w")]
    assert found.scenario.happenings == []
    assert found.recorded_nodes == {"uid-w": "n1"}


def test_what_others_change_about_a_pod_happens_again_and_what_its_node_reports_does_not(read: Any) -> None:
    running = a_pod("a", "n1") | {"status": {"startTime": "2026-01-01T00:00:00Z"}}
    labelled = a_pod("a", "n1", labels={"app": "x"})
    found = read([NODE, a_pod("a")], change(1, "MODIFIED", running), change(2, "MODIFIED", labelled))
    assert [(each.at, each.manifest) for each in found.scenario.happenings] == [(2, a_pod("a", labels={"app": "x"}))]


def test_a_pod_that_was_deleted_is_deleted_again_and_one_that_ended_runs_as_long(read: Any) -> None:
    found = read(
        [NODE, a_pod("a"), a_pod("b"), a_pod("c")],
        change(1, "MODIFIED", a_pod("a", "n1")),
        change(2, "MODIFIED", a_pod("b", "n1")),
        change(6, "DELETED", a_pod("a", phase="Succeeded")),
        change(7, "DELETED", a_pod("b")),
        change(8, "DELETED", a_pod("c", phase="Failed")),
    )
    assert found.scenario.durations == {"uid-a": 5}
    gone = [(each.at, each.act, each.manifest["metadata"]["uid"]) for each in found.scenario.happenings]
    assert gone == [(7, Act.DELETED, "uid-b"), (8, Act.DELETED, "uid-c")]


def test_a_pod_of_the_same_name_is_another_pod(read: Any) -> None:
    again = a_pod("a", uid="second")
    found = read([NODE, a_pod("a", "n1")], change(1, "DELETED", a_pod("a")), change(1, "ADDED", again))
    assert [each.manifest["metadata"]["uid"] for each in found.scenario.happenings] == ["uid-a", "second"]


def test_profiles_come_apart_and_their_changes_are_passed_over_aloud(read: Any) -> None:
    found = read([NODE, PROFILE], change(1, "MODIFIED", PROFILE | {"spec": {"paused": True}}))
    assert [one.metadata.name for one in found.profiles] == ["mine"]
    assert found.scenario.happenings == []
    assert "1 changes of SchedulingProfiles are passed over" in found.notes[0]


def test_a_recording_that_was_cut_off_is_read_as_far_as_it_goes_and_says_so(read: Any, tmp_path: Path) -> None:
    found = read([NODE], change(1, "ADDED", a_pod("a")), tail=b'{"at":2,"act":"DELE', packed=False)
    assert len(found.scenario.happenings) == 1
    assert found.notes == [f"{tmp_path / 'r.gz'}: the file ends in the middle of line 4; the lines before it are used"]


def test_everything_up_to_the_last_flush_is_read_wherever_the_file_was_cut(tmp_path: Path) -> None:
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    header = {"placewright": "recording", "version": 1, "taken": "", "counts": {"Node": 1}}
    head = packer.compress(b"".join(json.dumps(each).encode() + b"\n" for each in (header, NODE))) + packer.flush(zlib.Z_SYNC_FLUSH)
    parts = [head]
    for i in range(5):
        line = json.dumps(change(i, "ADDED", a_pod(f"p{i}"))).encode() + b"\n"
        parts.append(packer.compress(line) + packer.flush(zlib.Z_SYNC_FLUSH))
    whole = b"".join(parts)
    ends = [len(b"".join(parts[: i + 1])) for i in range(len(parts))]
    path = tmp_path / "r.gz"
    for cut in range(ends[0], len(whole) + 1):
        path.write_bytes(whole[:cut])
        found = read_recording(path)
        assert len(found.scenario.happenings) >= sum(end <= cut for end in ends[1:])
        assert len(found.notes) == 1
    path.write_bytes(whole + packer.flush(zlib.Z_FINISH))
    assert read_recording(path).notes == []


def test_a_recording_whose_beginning_is_not_whole_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r"
    header = {"placewright": "recording", "version": 1, "taken": "", "counts": {"Node": 2}}
    path.write_text(f"{json.dumps(header)}\n{json.dumps(NODE)}\n")
    with pytest.raises(InputError, match=r"'Node': found '1 objects'; allowed 2, as its header says: it is not whole"):
        read_recording(path)


WRONG: dict[str, tuple[Any, str]] = {
    "no change": (NODE, "line 4: found 'Object missing required field `at`'"),
    "another act": (change(1, "BOOKMARK", a_pod("a")), "line 4: found \"Invalid enum value 'BOOKMARK'"),
    "back in time": (change(0, "ADDED", a_pod("a")), "line 4: at: found 0.0; allowed seconds, 0.5 or more, as the line before says"),
    "no number": (change("x", "ADDED", a_pod("a")), "line 4: found 'Expected `float`, got `str`"),  # type: ignore[arg-type]
    "added twice": (change(1, "ADDED", NODE), "line 4: act: found 'ADDED of the Node n1'; allowed ADDED of what is not there"),
    "unknown": (change(1, "DELETED", a_pod("a")), "line 4: act: found 'DELETED of the Pod ns/a'; allowed"),
    "another uid": (change(1, "MODIFIED", NODE | {"metadata": {"name": "n1", "uid": "x"}}), "line 4: act: found 'MODIFIED of the Node n1'"),
    "no object": ({"at": 1, "act": "ADDED", "object": [3]}, "line 4: found 'Expected `object`, got `array`'"),
    "unknown kind": (change(1, "ADDED", {"kind": "Secret", "metadata": {"name": "s"}}), "line 4: kind: found 'Secret'"),
}


@pytest.mark.parametrize(("wrong", "said"), WRONG.values(), ids=WRONG)
def test_a_wrong_line_is_refused_by_its_number(read: Any, wrong: Body, said: str) -> None:
    first = change(0.5, "ADDED", NODE | {"metadata": {"name": "n2"}})
    with pytest.raises(InputError) as caught:
        read([NODE], first, wrong)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
