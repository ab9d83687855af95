"""Configurations of scheduler_perf, in the grammar of 1.20 and of later versions; what is not known leaves the workload out by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from placewright.api.bad_input import InputError
from placewright_lab.bench.schedulerperf.configuration import read_configurations
from placewright_lab.bench.schedulerperf.operations import (
    AllocatableStrategy,
    Barrier,
    Churn,
    CreateAny,
    CreateNamespaces,
    CreateNodes,
    CreatePods,
    DeletePods,
    LabelStrategy,
    LeftOutWorkload,
    PerfWorkload,
    SchedulingStage,
    Sleep,
    StartCollectingMetrics,
    StopCollectingMetrics,
    UniqueLabelStrategy,
    UpdateAny,
)

POD = "kind: Pod\napiVersion: v1\n"
#: What every test case needs, so that an operation can be looked at alone.
MEASURED = "  - {opcode: createPods, count: 1, collectMetrics: true}\n"

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a configuration in the form of later versions, beside a template."""
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "pod.yaml").write_text(POD)

    def written(text: str) -> Path:
        (tmp_path / "performance-config.yaml").write_text(text)
        return tmp_path

    return written


def case(operations: str, *, fields: str = "", workload: str = "") -> str:
    return f"- name: Case\n{fields}  workloadTemplate:\n{operations}{MEASURED}  workloads:\n  - name: 5Nodes\n{workload}"


def only(folder: Path) -> PerfWorkload:
    (found,) = read_configurations(folder)
    assert isinstance(found, PerfWorkload), found
    return found


def why(folder: Path) -> str:
    (found,) = read_configurations(folder)
    assert isinstance(found, LeftOutWorkload)
    assert found.name == "Case/5Nodes"
    return found.why


def test_parameters_are_filled_in_for_each_workload(write: Write) -> None:
    folder = write(
        "- name: Basic\n"
        "  workloadTemplate:\n"
        "  - {opcode: createNodes, countParam: $nodes}\n"
        "  - {opcode: createPods, countParam: $init, podTemplatePath: templates/pod.yaml, skipWaitToCompletion: true}\n"
        "  - {opcode: createPods, countParam: $init, namespace: there, collectMetrics: true}\n"
        "  workloads:\n"
        "  - {name: small, params: {nodes: 5, init: 10}}\n"
        "  - {name: large, params: {nodes: 500, init: 20}, threshold: 12.5, labels: [performance]}\n"
    )
    small, large = read_configurations(folder)
    assert isinstance(small, PerfWorkload)
    assert isinstance(large, PerfWorkload)
    assert (small.name, small.nodes, small.pods, small.threshold) == ("Basic/small", 5, 20, 0)
    assert (large.name, large.nodes, large.pods, large.threshold, large.labels) == ("Basic/large", 500, 40, 12.5, ("performance",))
    _, first, second = small.operations
    assert isinstance(first, CreatePods)
    assert isinstance(second, CreatePods)
    assert (first.count, first.skip_wait_to_completion, first.collect_metrics, first.namespace) == (10, True, False, "")
    assert first.template is not None
    assert first.template.text == POD
    assert (second.count, second.skip_wait_to_completion, second.collect_metrics) == (10, False, True)
    assert (second.namespace, second.template) == ("there", None)


def test_paths_of_1_20_begin_above_the_folder_of_the_configuration_and_nodes_have_no_hostname_label(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.mkdir()
    (config / "pod.yaml").write_text(POD)
    text = case("  - {opcode: createPods, count: 1, podTemplatePath: config/pod.yaml}\n")
    (config / "performance-config.yaml").write_text(text)
    old = only(config)
    assert old.name == "Case/5Nodes"
    assert isinstance(old.operations[0], CreatePods)
    assert old.operations[0].template is not None
    assert not old.hostnames


def test_several_configurations_in_folders_below_are_told_apart(tmp_path: Path) -> None:
    for name in ("affinity", "misc"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "performance-config.yaml").write_text(case(""))
    assert [found.name for found in read_configurations(tmp_path)] == ["affinity/Case/5Nodes", "misc/Case/5Nodes"]
    assert only(tmp_path / "misc").hostnames


def test_gates_of_the_workload_go_before_those_of_the_test_case(write: Write) -> None:
    fields = "  featureGates: {One: true, Two: true}\n  labels: [a]\n  defaultPodTemplatePath: templates/pod.yaml\n"
    found = only(write(case("", fields=fields, workload="    featureGates: {Two: false}\n    labels: [b]\n")))
    assert found.gates == {"One": True, "Two": False}
    assert found.labels == ("a", "b")
    assert found.default_pod is not None


def test_strategies_for_nodes(write: Write) -> None:
    found = only(
        write(
            case(
                "  - opcode: createNodes\n    count: 2\n    labelNodePrepareStrategy: {labelKey: zone, labelValues: [a, b]}\n"
                "  - opcode: createNodes\n    count: 2\n    uniqueNodeLabelStrategy: {labelKey: host}\n"
                "  - opcode: createNodes\n    count: 2\n    nodeAllocatableStrategy:\n"
                "      nodeAllocatable: {attachable: '39'}\n      csiNodeAllocatable: {driver: {count: 39}}\n      migratedPlugins: [old]\n"
            )
        )
    )
    allocatable = AllocatableStrategy({"attachable": "39"}, {"driver": {"count": 39}}, ("old",))
    assert found.operations[:3] == [
        CreateNodes(2, labelled=LabelStrategy("zone", ("a", "b"))),
        CreateNodes(2, unique=UniqueLabelStrategy("host")),
        CreateNodes(2, allocatable=allocatable),
    ]


def test_every_other_operation(write: Write) -> None:
    operations = (
        "  - {opcode: createNamespaces, prefix: ns, count: 3}\n"
        "  - {opcode: createAny, templatePath: templates/pod.yaml, namespace: here, countParam: $three}\n"
        "  - {opcode: updateAny, templatePath: templates/pod.yaml, namespace: here, updatePerSecond: 100, subresources: [resize]}\n"
        "  - {opcode: churn, mode: recreate, number: 2, templatePaths: [templates/pod.yaml], intervalMilliseconds: 1000}\n"
        "  - {opcode: churn, mode: create, templatePaths: [templates/pod.yaml]}\n"
        "  - {opcode: deletePods, namespace: here, deletePodsPerSecond: 50, labelSelector: {a: b}, skipWaitToCompletion: true}\n"
        "  - {opcode: sleep, duration: 1m30s}\n"
        "  - {opcode: sleep, durationParam: $short}\n"
        "  - {opcode: barrier, stageRequirement: Attempted, namespaces: [here], labelSelector: {a: b}}\n"
        "  - {opcode: barrier}\n"
    )
    found = only(write(case(operations, workload="    params: {three: 3, short: 250ms}\n")))
    namespaces, some, update, recreate, create, delete, long, short, attempted, scheduled, _ = found.operations
    assert namespaces == CreateNamespaces(3, "ns")
    assert isinstance(some, CreateAny)
    assert (some.count, some.namespace) == (3, "here")
    assert isinstance(update, UpdateAny)
    assert (update.count, update.update_per_second, update.subresources) == (1, 100, ("resize",))
    assert isinstance(recreate, Churn)
    assert (recreate.recreate, recreate.number, recreate.seconds, len(recreate.templates)) == (True, 2, 1.0, 1)
    assert isinstance(create, Churn)
    assert (create.recreate, create.number, create.seconds) == (False, 0, 0.5)
    assert delete == DeletePods("here", {"a": "b"}, 50, skip_wait_to_completion=True)
    assert (long, short) == (Sleep(90.0), Sleep(0.25))
    assert attempted == Barrier(("here",), {"a": "b"}, SchedulingStage.ATTEMPTED)
    assert scheduled == Barrier()


def test_sets_of_pods_become_one_operation_for_each_namespace(write: Write) -> None:
    sets = "  - {opcode: createPodSets, count: 2, namespacePrefix: ns, createPodsOp: {opcode: createPods, countParam: $each}}\n"
    first, second, _ = only(write(case(sets, workload="    params: {each: 4}\n"))).operations
    assert first == CreatePods(4, namespace="ns-0")
    assert second == CreatePods(4, namespace="ns-1")


def test_a_measurement_may_begin_and_end_by_operations_of_its_own(write: Write) -> None:
    text = (
        "- name: Case\n  workloadTemplate:\n"
        "  - {opcode: startCollectingMetrics, name: mine, namespaces: [a], labelSelector: {k: v}}\n"
        "  - {opcode: createPods, count: 1, namespace: a}\n"
        "  - {opcode: stopCollectingMetrics}\n"
        "  workloads:\n  - name: 5Nodes\n"
    )
    start, _, stop = only(write(text)).operations
    assert start == StartCollectingMetrics(("a",), {"k": "v"}, "mine")
    assert stop == StopCollectingMetrics()


@pytest.mark.parametrize(
    ("operation", "said"),
    [
        ("{opcode: allocResourceClaims}", "operation 0: Invalid value 'allocResourceClaims' - at `$.opcode`"),
        ("{count: 3}", "operation 0: Object missing required field `opcode`"),
        ("[1]", "operation 0 is [1], which is no object"),
        ("{opcode: createPods, count: 1, colour: red}", "operation 0: Object contains unknown field `colour`"),
        ("{opcode: createPods, count: 1, steadyState: true, duration: 10s}", "pods in a steady state (steadyState) are not known"),
        ("{opcode: createPods, countParam: $n}", 'operation 0.countParam is "$n", which names no parameter of the workload'),
        ("{opcode: createPods, countParam: n}", 'operation 0.countParam is "n", which names no parameter of the workload'),
        ("{opcode: createPods, count: many}", "operation 0: count: found 'many'; allowed a whole number"),
        ("{opcode: createPods, count: 2000000}", "operation 0: Expected `int` <= 1000000 - at `$.count`"),
        ("{opcode: createPods, count: 1, podTemplatePath: no.yaml}", "operation 0.podTemplatePath names no.yaml, which is not there"),
        ("{opcode: createPods, count: 1, persistentVolumeTemplatePath: templates/pod.yaml}", "a volume without a claim"),
        ("{opcode: churn, mode: shuffle, templatePaths: [templates/pod.yaml]}", "operation 0: Invalid enum value 'shuffle' - at `$.mode`"),
        ("{opcode: churn, mode: recreate, templatePaths: [templates/pod.yaml]}", "churn of mode recreate without a number is not known"),
        ("{opcode: churn, mode: create}", "operation 0: Object missing required field `templatePaths`"),
        ("{opcode: barrier, stageRequirement: Started}", "operation 0: Invalid enum value 'Started' - at `$.stageRequirement`"),
        ("{opcode: sleep, duration: soon}", 'operation 0.duration is "soon", which is no duration'),
        ("{opcode: createPods, count: 1, collectMetrics: true}", "it measures 2 times, which is not once"),
        (
            "{opcode: createNodes, count: 1, uniqueNodeLabelStrategy: {labelKey: a}, labelNodePrepareStrategy: {labelKey: b}}",
            "nodes are prepared by two strategies",
        ),
    ],
)
def test_a_workload_with_something_unknown_is_left_out_by_name(write: Write, operation: str, said: str) -> None:
    assert said in why(write(case(f"  - {operation}\n")))


@pytest.mark.parametrize(
    ("fields", "workload", "said"),
    [
        ("  schedulerConfigPath: config.yaml\n", "", "(schedulerConfigPath)"),
        ("  speed: high\n", "", "the field speed is not known"),
        ("", "    speed: high\n", "the field speed is not known"),
        ("", "    params: {unused: 1}\n", "the parameter unused is not used by any operation"),
        ("  defaultPodTemplatePath: no.yaml\n", "", "defaultPodTemplatePath names no.yaml"),
    ],
)
def test_what_a_test_case_asks_for_beside_its_operations_is_known_or_named(write: Write, fields: str, workload: str, said: str) -> None:
    assert said in why(write(case("", fields=fields, workload=workload)))


def test_a_floor_of_another_measure_than_throughput_is_no_floor(write: Write) -> None:
    other = "    threshold: 20\n    thresholdMetricSelector: {name: scheduling_duration, dataBucket: Perc99}\n"
    assert only(write(case("", workload=other))).threshold == 0
    assert only(write(case("", workload="    threshold: {topic: 5}\n"))).threshold == 0


@pytest.mark.parametrize("text", ["{}", "- just text", "- name: A", "- {name: A, workloads: [{params: {}}]}", "a: [", ""])
def test_a_file_that_is_no_list_of_test_cases_is_refused_with_its_name(write: Write, text: str) -> None:
    with pytest.raises(InputError, match=r"performance-config\.yaml"):
        read_configurations(write(text))


def test_a_folder_without_a_configuration_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"FOLDER: found .*allowed a folder that holds performance-config\.yaml"):
        read_configurations(tmp_path)
