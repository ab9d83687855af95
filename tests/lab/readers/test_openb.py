"""The openb trace format: what a line becomes, and what is said about a wrong one."""

from __future__ import annotations

import csv
import io
from collections import Counter
from statistics import median

import pytest

from inputs.traces import TRACES, Trace
from placewright.api.bad_input import InputError
from placewright.api.decode import convert
from placewright.api.objects import Node, Pod
from placewright.api.requests import canonical, pod_requests
from placewright_lab.readers.openb import GPU_MILLI, TraceTimes, is_openb, read_nodes, read_pods, read_times

NODES = "sn,cpu_milli,memory_mib,gpu,model\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"


def pod_of(line: str) -> Pod:
    return convert(read_pods(PODS + line, "pods.csv")[0], Pod)


def test_a_node_line_becomes_a_ready_node_with_its_resources_in_kubernetes_units() -> None:
    node = convert(read_nodes(NODES + "openb-node-0000,32000,262144,2,T4\n", "n")[0], Node)
    assert canonical(node.status.allocatable or {}) == {
        "cpu": 32000,
        "memory": 262144 << 20,
        "pods": 110,
        GPU_MILLI: 2000,
    }
    assert (node.metadata.labels or {})["openb/gpu-model"] == "T4"
    assert [(c.type, c.status) for c in node.status.conditions or []] == [("Ready", "True")]


def test_a_node_without_gpus_offers_none_and_has_no_model() -> None:
    node = convert(read_nodes(NODES + "n1,32000,262144,0,\n", "n")[0], Node)
    assert GPU_MILLI not in (node.status.allocatable or {})
    assert "openb/gpu-model" not in (node.metadata.labels or {})


def test_a_share_of_a_gpu_is_asked_for_in_thousandths() -> None:
    assert pod_requests(pod_of("p,6000,12288,1,460,,LS,Running,0,1,0\n").spec) == {
        "cpu": 6000,
        "memory": 12288 << 20,
        GPU_MILLI: 460,
    }


def test_several_gpus_are_multiplied_and_limits_equal_requests_as_extended_resources_need() -> None:
    resources = pod_of("p,6000,12288,8,1000,,LS,Running,0,1,0\n").spec.containers[0].resources  # type: ignore[index]
    assert (resources.requests or {})[GPU_MILLI] == (resources.limits or {})[GPU_MILLI] == "8000"


def test_a_gpu_spec_becomes_required_affinity_to_any_of_the_models_each_once() -> None:
    pod = read_pods(PODS + "p,1,1,1,1000,V100M16|V100M32|V100M32,LS,,,,\n", "f")[0]
    terms = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    expression = {"key": "openb/gpu-model", "operator": "In", "values": ["V100M16", "V100M32"]}
    assert terms == {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}


def test_names_become_dns_safe_and_qos_a_label() -> None:
    pod = pod_of("Team_A/Job 1,1,1,0,0,,BE,,,,\n")
    assert pod.metadata.name == "team-a-job-1"
    assert (pod.metadata.labels or {})["openb/qos"] == "BE"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("p,x,1,0,0,,LS,,,,", "f: line 2, column cpu_milli: found 'x'; allowed a whole number from 0 to 1000000000000"),
        ("p,-1,1,0,0,,LS,,,,", "f: line 2, column cpu_milli: found '-1'; allowed a whole number"),
        ("p,1,1,1,1001,,LS,,,,", "f: line 2, column gpu_milli: found '1001'; allowed a whole number from 1 to 1000"),
        ("p,1,1,1,0,,LS,,,,", "f: line 2, column gpu_milli: found '0'; allowed a whole number from 1 to 1000"),
        ("p,1,1,0,500,,LS,,,,", "f: line 2, column gpu_milli: found '500'; allowed a whole number from 0 to 0"),
        ("p,1,1,1,500,A||B,LS,,,,", "f: line 2, column gpu_spec: found 'A||B'; allowed GPU models with | between"),
        ("p,1,1,1,500,A B,LS,,,,", "f: line 2, column gpu_spec: found 'A B'; allowed at most 63 letters"),
        ("___,1,1,0,0,,LS,,,,", "f: line 2, column name: found '___'; allowed a name of 1 to 63 characters"),
        ("p,1,1,0,0,,\x1b[31m,,,,", "f: line 2, column qos: found '\\x1b[31m'; allowed"),
        ("p,1,1", "f: line 2: found '3 columns'; allowed 11, as in line 1"),
        ('p,"1', "f: line 2: not CSV"),
        ("p,1,1,0,0,,LS,,,,\nP,1,1,0,0,,LS,,,,", "f: line 3, column name: found 'P'; allowed a name used once; line 2"),
        ("", "f: line 2: found nothing; allowed at least one row"),
    ],
)
def test_a_wrong_line_is_refused_with_line_column_what_was_found_and_what_is_allowed(line: str, message: str) -> None:
    with pytest.raises(InputError) as refused:
        read_pods(PODS + line, "f")
    assert str(refused.value).startswith(message)
    assert str(refused.value).isprintable()


def test_a_file_of_pods_given_as_nodes_is_refused_by_its_header() -> None:
    with pytest.raises(InputError, match="line 1, column sn: found 'name,cpu_milli"):
        read_nodes(PODS, "f")


def test_the_header_tells_a_trace_from_a_manifest() -> None:
    assert is_openb(NODES)
    assert is_openb("\ufeff" + PODS)
    assert not is_openb("apiVersion: v1\nkind: Pod\n")
    assert not is_openb('{"apiVersion": "v1", "kind": "Pod"}')
    assert not is_openb("")


# --- whole traces ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=TRACES)
def trace(request: pytest.FixtureRequest) -> Trace:
    made: Trace = request.param()
    return made


def lines(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_the_whole_trace_is_read(trace: Trace) -> None:
    nodes = read_nodes(trace.nodes, "nodes")
    assert len({n["metadata"]["name"] for n in nodes}) == trace.figures.nodes
    asked: Counter[str] = Counter()
    have: Counter[str] = Counter()
    for node in nodes:
        have.update(canonical(convert(node, Node).status.allocatable or {}))
    for manifest in read_pods(trace.pods, "pods"):
        asked.update(pod_requests(convert(manifest, Pod).spec))
        asked["count"] += 1
    assert asked["count"] == trace.figures.pods
    assert tuple(round(100 * asked[r] / have[r]) for r in ("cpu", "memory", GPU_MILLI)) == trace.figures.shares


def test_the_trace_with_models_pins_a_third_of_the_gpu_pods(trace: Trace) -> None:
    pods = read_pods(trace.pinned, "pods")
    assert (len(pods), sum("affinity" in p["spec"] for p in pods)) == (trace.figures.pods, trace.figures.pinned)


def test_the_times_of_the_whole_trace_are_read_and_who_was_never_scheduled_never_ran(trace: Trace) -> None:
    found = read_times(trace.pods, "pods")
    rows = {row["name"]: [int(row[f"{what}_time"] or -1) for what in ("creation", "deletion", "scheduled")] for row in lines(trace.pods)}
    assert found == {
        name: TraceTimes(created, deleted, deleted - scheduled if scheduled >= 0 else None)
        for name, (created, deleted, scheduled) in rows.items()
    }
    assert sum(times.runs is None for times in found.values()) == trace.figures.never_scheduled


def test_the_made_up_trace_has_the_form_of_the_real_one(trace: Trace) -> None:
    """Of both all this is true; where one changes, the other tests prove less than they seem to."""
    nodes, pods, pinned = lines(trace.nodes), lines(trace.pods), lines(trace.pinned)
    assert [",".join(rows[0]) + "\n" for rows in (nodes, pods)] == [NODES, PODS]
    assert [row | {"gpu_spec": ""} for row in pinned] == pods
    assert {row["gpu"] for row in nodes} == {"0", "1", "2", "4", "8"}
    assert all((row["model"] == "") == (row["gpu"] == "0") for row in nodes)
    assert {row["num_gpu"] for row in pods} == {"0", "1", "2", "4", "8"}
    ones = [row["gpu_milli"] for row in pods if row["num_gpu"] == "1"]
    share, whole = (sum((milli == "1000") == full for milli in ones) / len(pods) for full in (False, True))
    assert 0.35 < share < 0.4 < whole < 0.5
    assert {row["qos"] for row in pods} == {"LS", "BE", "Burstable", "Guaranteed"}
    assert {row["pod_phase"] for row in pods} == {"Running", "Failed", "Pending", "Succeeded"}
    assert {row["pod_phase"] for row in pods if not row["scheduled_time"]} == {"Pending"}
    models = [row["gpu_spec"].split("|") for row in pinned]
    assert any(len(each) > len(set(each)) for each in models)
    created = [int(row["creation_time"]) for row in pods]
    assert created == sorted(created)
    assert created[9] > 100 * created[-1] / len(created)
    lives = [int(row["deletion_time"]) - int(row["scheduled_time"]) for row in pods if row["scheduled_time"]]
    assert 500 < median(lives) < 700
    assert max(lives) > 80_000
