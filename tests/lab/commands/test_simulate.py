"""`placewright simulate`: a line a profile and why pods are pending, all fates as data, and one line for whatever is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from placewright.cli.main import main
from placewright_lab.snapshots.snapshot import FORMAT_VERSION, SNAPSHOT, Header, write_snapshot

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn-0,4000,8192,1,T4\nn-1,4000,8192,0,\n"
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
    "p-0,3000,1024,1,1000,,LS,Running,0,100,0\n"
    "p-1,3000,1024,1,1000,,LS,Running,50,400,120\n"
    "p-2,9000,1024,0,0,,LS,Pending,60,500,\n"
)
PROFILE = (
    "apiVersion: placewright.dev/v1alpha1\nkind: SchedulingProfile\nmetadata: {name: %s}\nspec: {schedulerName: default-scheduler, %s}\n"
)


@pytest.fixture
def trace(tmp_path: Path) -> list[str]:
    """Return options that name a trace of two nodes and three pods."""
    nodes, pods = tmp_path / "nodes.csv", tmp_path / "pods.csv"
    nodes.write_text(NODES)
    pods.write_text(PODS)
    return ["-f", str(nodes), "-f", str(pods)]


def profile_file(folder: Path, name: str, spec: str = "", file: str = "") -> str:
    path = folder / (file or f"{name}.yaml")
    path.write_text(PROFILE % (name, spec))
    return str(path)


def simulated(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["simulate", "-o", "json", *arguments]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    found: dict[str, Any] = json.loads(out)
    return found


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the one line about wrong input."""
    assert main(["simulate", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    return line.removeprefix("placewright: error: ")


def test_arrivals_and_departures_of_a_trace_are_honoured(capsys: pytest.CaptureFixture[str], trace: list[str]) -> None:
    (one,) = simulated(capsys, *trace)["profiles"]
    times = {fate["pod"]: (fate["created"], fate["node"], fate["bound"], fate["left"]) for fate in one["fates"]}
    assert times == {
        "default/p-0": (0, "n-0", 0, 100),
        "default/p-1": (50, "n-0", 100, 380),  # it ran for 280 seconds
        "default/p-2": (60, None, None, 500),
    }
    assert (one["pods"], one["placed"], one["pending"], one["gone"]) == (3, 2, 0, 1)


def test_at_once_all_pods_are_there_and_stay(capsys: pytest.CaptureFixture[str], trace: list[str]) -> None:
    (one,) = simulated(capsys, *trace, "--at-once")["profiles"]
    assert (one["placed"], one["pending"]) == (1, 2)
    assert {fate["created"] for fate in one["fates"]} == {0}
    assert sorted(reason["what"] for reason in one["reasons"]) == [
        "Insufficient cpu",
        "Insufficient cpu, Insufficient openb/gpu-milli",
    ]


def test_the_table_has_a_line_for_each_profile_and_says_why_pods_wait(
    capsys: pytest.CaptureFixture[str], trace: list[str], tmp_path: Path
) -> None:
    both = [profile_file(tmp_path, "first"), profile_file(tmp_path, "second", "preset: bin-packing")]
    assert main(["simulate", *trace, "--at-once", "--profile", both[0], "--profile", both[1]]) == 0
    out = capsys.readouterr().out
    rows = {line.split()[0]: line.split()[1:6] for line in out.splitlines() if line.strip().startswith(("first", "second"))}
    assert rows == {"first": ["3", "1", "2", "0", "0"], "second": ["3", "1", "2", "0", "0"]}
    assert "pending with first:" in out
    assert "     1  Insufficient cpu\n        such as: 0/2 nodes are available: 2 Insufficient cpu." in out


def test_profiles_of_one_name_are_told_apart_by_their_files(capsys: pytest.CaptureFixture[str], trace: list[str], tmp_path: Path) -> None:
    base, head = profile_file(tmp_path, "web", file="base.yaml"), profile_file(tmp_path, "web", file="head.yaml")
    names = [one["profile"] for one in simulated(capsys, *trace, "--profile", base, "--profile", head)["profiles"]]
    assert names == [f"web ({base})", f"web ({head})"]


def test_more_pods_can_be_added_and_the_seed_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    nodes, pods = tmp_path / "nodes.csv", tmp_path / "pods.csv"
    nodes.write_text(NODES)
    pods.write_text(PODS)
    found = simulated(capsys, "-f", str(nodes), "--pods", str(pods), "--seed", "42")
    assert (found["seed"], found["profiles"][0]["pods"]) == (42, 3)


def test_all_pods_are_placed_anew_when_that_is_asked_for(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    node = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "4", "pods": "9"}}}
    spec = {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}
    running = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p", "namespace": "shop"}, "spec": spec}
    path = tmp_path / "all.json"
    path.write_text("\n---\n".join(map(json.dumps, (node, running))))
    assert simulated(capsys, "-f", str(path))["profiles"][0]["fates"] == []
    (fate,) = simulated(capsys, "-f", str(path), "--all-pods")["profiles"][0]["fates"]
    assert (fate["pod"], fate["node"]) == ("shop/p", "n")


def test_names_cannot_command_the_terminal(capsys: pytest.CaptureFixture[str], trace: list[str], tmp_path: Path) -> None:
    hostile = tmp_path / "hostile.yaml"
    hostile.write_text(PROFILE % (r'"[red]\e[31mx"', ""))
    assert main(["simulate", *trace, "--profile", str(hostile)]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "[red]" in out


def test_extenders_are_not_asked_and_that_is_said(capsys: pytest.CaptureFixture[str], trace: list[str], tmp_path: Path) -> None:
    extended = profile_file(tmp_path, "x", "extenders: [{urlPrefix: 'http://127.0.0.1:1/', filterVerb: filter}]")
    assert main(["simulate", *trace, "--profile", extended]) == 0
    assert "is not asked: simulate calls no extenders" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("3000,1024,1,1000,,LS,Running,50,400,120", "3000,1024,1,1000,,LS,Running,50,40,120"), "line 3, column deletion_time: found '40'"),
        (("50,400,120", "50,400,later"), "line 3, column scheduled_time: found 'later'"),
        (("50,400,120", "50,100,120"), "line 3, column deletion_time: found '100'"),
        (("50,400,120", "-1,400,120"), "line 3, column creation_time: found '-1'"),
    ],
)
def test_a_wrong_time_is_named_with_its_line_and_column(
    capsys: pytest.CaptureFixture[str], trace: list[str], change: tuple[str, str], said: str
) -> None:
    path = Path(trace[3])
    path.write_text(PODS.replace(*change))
    assert said in refused(capsys, *trace)


def test_nothing_to_simulate_a_missing_file_and_no_nodes_are_said_in_a_line(
    capsys: pytest.CaptureFixture[str], trace: list[str], tmp_path: Path
) -> None:
    assert refused(capsys).startswith("nothing to simulate")
    assert refused(capsys, "-f", "nowhere.yaml") == "nowhere.yaml: cannot be read: No such file or directory"
    assert "Nodes: found 'none'" in refused(capsys, *trace[2:])
    assert "Pods: found 'none'" in refused(capsys, *trace[:2])
    assert "nowhere.gz" in refused(capsys, "--snapshot", str(tmp_path / "nowhere.gz"))


def test_a_wrong_profile_is_named_with_its_field(capsys: pytest.CaptureFixture[str], trace: list[str], tmp_path: Path) -> None:
    wrong = profile_file(tmp_path, "x", "weights: {NodeResourcesFit: -1}")
    assert refused(capsys, *trace, "--profile", wrong).startswith(f"{wrong}: spec.weights.NodeResourcesFit: found -1; allowed")
    twice = tmp_path / "twice.yaml"
    twice.write_text("---\n".join([PROFILE % ("a", ""), PROFILE % ("b", "")]))
    assert "schedulerName: found" in refused(capsys, *trace, "--profile", str(twice))


def test_pending_and_all_pods_exclude_each_other(capsys: pytest.CaptureFixture[str], trace: list[str]) -> None:
    assert "not allowed with" in refused(capsys, *trace, "--pending", "--all-pods")


def test_a_snapshot_is_replayed_with_its_own_profiles_and_more_pods(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    amounts = {"cpu": "4", "pods": "9"}
    spec = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}
    body = {"apiVersion": "v1", "kind": "Pod"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "uid": "u-n"}, "status": {"allocatable": amounts}}
    running = {**body, "metadata": {"name": "a", "namespace": "x", "uid": "u-a"}, "spec": {**spec, "nodeName": "n"}}
    waiting = {**body, "metadata": {"name": "b", "namespace": "x", "uid": "u-b"}, "spec": spec}
    own = {
        "apiVersion": "placewright.dev/v1alpha1",
        "kind": "SchedulingProfile",
        "metadata": {"name": "ours", "uid": "u-p"},
        "spec": {"schedulerName": "default-scheduler"},
    }
    path, objects = tmp_path / "cluster.gz", [own, node, running, waiting]
    counts = {"SchedulingProfile": 1, "Node": 1, "Pod": 2}
    header = Header(placewright=SNAPSHOT, version=FORMAT_VERSION, taken="2026-01-01T00:00:00Z", counts=counts)
    write_snapshot(path, header, [json.dumps(each).encode() for each in objects])
    more = tmp_path / "more.json"
    more.write_text(json.dumps({**waiting, "metadata": {"name": "c", "namespace": "x"}}))
    (one,) = simulated(capsys, "--snapshot", str(path), "--pods", str(more))["profiles"]
    assert one["profile"] == "ours"
    assert {fate["pod"]: fate["node"] for fate in one["fates"]} == {"x/b": "n", "x/c": "n"}
