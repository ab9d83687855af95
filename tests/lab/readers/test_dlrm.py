"""Alibaba's DLRM trace as pods: a few made-up rows in its columns, read, simulated with and without limits, and refused where wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from lab.simulation.scenarios import a_profile
from placewright.api.annotations import DOMAIN_LIMITS
from placewright.api.bad_input import InputError
from placewright.api.decode import convert
from placewright.api.objects import Pod
from placewright.api.requests import pod_requests
from placewright.plugins.catalog import in_tree
from placewright_lab.readers.dlrm import GPU, RDMA, ROLE_LABEL, is_dlrm, read_pods, read_times
from placewright_lab.readers.inputs import read_scenario
from placewright_lab.readers.openb import TraceTimes
from placewright_lab.simulation.outcome import Outcome
from placewright_lab.simulation.simulation import simulate

HOST: Final = "kubernetes.io/hostname"
HEADER: Final = (
    "instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,rdma_request,rdma_limit,memory_request,memory_limit,"
    "disk_request,disk_limit,max_instance_per_node,creation_time,scheduled_time,deletion_time\n"
)
ROWS: Final = (
    "instance_1,HN,app_0,8,8,1,1,25,25,40.0,40.0,85.0,100.0,2,,,\n"
    "instance_2,HN,app_0,8,8,1,1,25,25,40.0,40.0,85.0,100.0,2,10.0,12.0,\n"
    "instance_3,HN,app_0,8,8,1,1,25,25,40.0,40.0,85.0,100.0,2,20.0,21.0,90.0000000000005\n"
    "instance_4,CN,app_0,64,64,0,0,1,1,937.5,937.5,255.0,300.0,-1,,,75.0\n"
)
TRACE: Final = HEADER + ROWS


def wrong(**cells: str) -> str:
    """Return the trace with other cells in its third row."""
    names, values = HEADER.strip().split(","), ROWS.splitlines()[2].split(",")
    return HEADER + ",".join(cells.get(name, value) for name, value in zip(names, values, strict=True)) + "\n"


def test_the_header_tells_the_trace_from_others_and_from_manifests() -> None:
    assert is_dlrm(TRACE)
    assert is_dlrm("\ufeff" + TRACE)
    assert not is_dlrm("name,cpu_milli,memory_mib\n")
    assert not is_dlrm("apiVersion: v1\nkind: Pod\n")
    assert not is_dlrm("")


def test_an_instance_becomes_a_pod_with_its_requests_its_role_and_its_limit() -> None:
    one, *_, last = read_pods(TRACE, "f")
    assert one["metadata"] == {
        "name": "instance-1", "namespace": "default", "labels": {"app": "app_0", "dlrm/role": "HN"},
        "annotations": {DOMAIN_LIMITS: f"2 per {HOST} of app"},
    }  # fmt: skip
    assert one["spec"]["nodeSelector"] == {ROLE_LABEL: "HN"}
    assert pod_requests(convert(one, Pod).spec) == {
        "cpu": 8000, "memory": 40 * 2**30, "ephemeral-storage": 85 * 2**30, GPU: 1, RDMA: 25,
    }  # fmt: skip
    assert pod_requests(convert(last, Pod).spec) == {"cpu": 64_000, "memory": 960_000 * 2**20, "ephemeral-storage": 255 * 2**30, RDMA: 1}
    assert "annotations" not in last["metadata"], "-1 is no limit"


def test_an_instance_without_a_time_was_there_before_or_is_there_after_the_trace() -> None:
    assert read_times(TRACE, "f") == {
        "instance-1": TraceTimes(0, None, None),
        "instance-2": TraceTimes(10, None, None),
        "instance-3": TraceTimes(20, 90, 69),
        "instance-4": TraceTimes(0, 75, 75),
    }
    without = TRACE.replace(",creation_time", ",began")
    assert read_times(without, "f") == {}


@pytest.mark.parametrize(
    ("cells", "problem"),
    [
        ({"role": "GN"}, "f: line 2, column role: found 'GN'; allowed CN or HN"),
        ({"app_name": "a b"}, "f: line 2, column app_name: found 'a b'"),
        ({"cpu_request": "-1"}, "f: line 2, column cpu_request: found '-1'; allowed a number such as 120 or 937.5"),
        ({"memory_request": ""}, "f: line 2, column memory_request: found ''; allowed a number such as 120 or 937.5"),
        ({"gpu_request": "0.5"}, "f: line 2, column gpu_request: found '0.5'"),
        ({"max_instance_per_node": "0"}, "f: line 2, column max_instance_per_node: found '0'"),
        ({"instance_sn": ""}, "f: line 2, column instance_sn: found ''"),
    ],
)
def test_a_wrong_cell_is_named(cells: dict[str, str], problem: str) -> None:
    with pytest.raises(InputError) as found:
        read_pods(wrong(**cells), "f")
    assert str(found.value).startswith(problem)


def test_wrong_times_and_missing_columns_are_named() -> None:
    with pytest.raises(InputError, match="line 2, column deletion_time: found '20'; allowed a time not before the scheduled_time 21"):
        read_times(wrong(deletion_time="20"), "f")
    with pytest.raises(InputError, match="line 2, column creation_time"):
        read_times(wrong(creation_time="soon"), "f")
    with pytest.raises(InputError, match="line 1, column role"):
        read_pods(TRACE.replace(",role", ",part"), "f")


# --- simulated ----------------------------------------------------------------------------------------------------------------


def nodes_text() -> str:
    """Return two GPU nodes and a CPU node, in a List of manifests."""

    def node(name: str, role: str) -> dict[str, Any]:
        amounts = {"cpu": "128", "memory": "1Ti", "ephemeral-storage": "4Ti", "pods": "110", GPU: "8", RDMA: "400"}
        labels = {HOST: name, ROLE_LABEL: role}
        return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": {"allocatable": amounts}}

    items = [node("h0", "HN"), node("h1", "HN"), node("c0", "CN")]
    return msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items}).decode()


def run(folder: Path, trace: str, *plugins: str) -> Outcome:
    """Pack the trace onto these nodes, with a profile that prefers full ones."""
    (folder / "nodes.json").write_text(nodes_text())
    (folder / "trace.csv").write_text(trace)
    packing = {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}}
    spec = {
        "plugins": {"multiPoint": {"enabled": [{"name": name} for name in plugins]}},
        "pluginConfig": [{"name": "NodeResourcesFit", "args": packing}, {"name": "PodTopologySpread", "args": {"defaultingType": "List"}}],
        "weights": {"NodeResourcesFit": 10, "NodeResourcesBalancedAllocation": 0},
    }
    return simulate(read_scenario([folder / "nodes.json", folder / "trace.csv"]), a_profile(**spec), in_tree(), seed=1)


def most_on_a_node(outcome: Outcome) -> int:
    """Return the largest number of pods of role HN on one node."""
    placed = [place.node for place in outcome.cluster.placements() if place.pod.labels[ROLE_LABEL] == "HN"]
    return max(placed.count(node) for node in set(placed))


def test_the_limit_of_an_instance_holds_where_the_profile_has_the_plugin(tmp_path: Path) -> None:
    staying = TRACE.replace("90.0000000000005", "")
    without, limited = run(tmp_path, staying), run(tmp_path, staying, "DomainLimit")
    assert (most_on_a_node(without), most_on_a_node(limited)) == (3, 2)
    assert not any(fate.pending for outcome in (without, limited) for fate in outcome.fates.values())


def test_instances_come_and_go_as_in_the_trace(tmp_path: Path) -> None:
    outcome = run(tmp_path, TRACE)
    stay = {place.pod.name for place in outcome.cluster.placements()}
    assert stay == {"instance-1", "instance-2"}
