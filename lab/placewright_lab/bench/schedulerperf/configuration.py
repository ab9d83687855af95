"""The reader of scheduler_perf's unchanged `performance-config.yaml`, of 1.20 and of later versions.

A workload becomes a list of operations with every parameter filled in. A workload with something unknown is left out, and names it: an
operation, a field, a file, or a scheduler's configuration. The reader guesses nothing, so we run the same workload as upstream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from placewright.api.bad_input import InputError, bad_field, in_json
from placewright.api.yamldocs import read_documents
from placewright_lab.bench.schedulerperf.operations import (
    Barrier,
    Churn,
    CreateAny,
    CreateNamespaces,
    CreateNodes,
    CreatePods,
    DeletePods,
    LeftOutWorkload,
    NodePreparation,
    NotKnown,
    Operation,
    OpFields,
    Parameters,
    PerfWorkload,
    SchedulingStage,
    Sleep,
    StartCollectingMetrics,
    StopCollectingMetrics,
    TemplateFiles,
    UpdateAny,
)

FILE: Final = "performance-config.yaml"
#: The folder of configurations until 1.32. Their paths began in the folder above, and nodes got no hostname label.
_OLD_FOLDER: Final = "config"
#: Fields of a test case that the reader reads or ignores. Ignored ones name kube-scheduler's own metrics.
_CASE_FIELDS: Final = frozenset({
    "name", "featureGates", "workloadTemplate", "workloads", "labels", "defaultPodTemplatePath", "schedulerConfigPath",
    "metricsCollectorConfig", "defaultThresholdMetricSelector",
})  # fmt: skip
_WORKLOAD_FIELDS: Final = frozenset({"name", "params", "labels", "threshold", "thresholdMetricSelector", "featureGates"})
_THROUGHPUT: Final = "SchedulingThroughput"
_USUAL_CHURN: Final = 500

Found = PerfWorkload | LeftOutWorkload


def read_configurations(folder: Path) -> list[Found]:
    """Return all workloads of the configurations in a folder and below. Raises `InputError`."""
    files = [folder / FILE] if (folder / FILE).is_file() else sorted(folder.rglob(FILE))
    if not files:
        raise bad_field("FOLDER", str(folder), f"a folder that holds {FILE}, itself or in a folder below")
    several = len(files) > 1
    return [found for file in files for found in _read(file, f"{file.parent.relative_to(folder)}/" if several else "")]


def _read(file: Path, prefix: str) -> Iterator[Found]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: {error}") from None
    cases = next((document.value for document in read_documents(text, str(file))), None)
    if not isinstance(cases, list) or not all(_is_case(each) for each in cases):
        raise InputError(f"{file}: found something else; allowed a list of test cases, each with a name and workloads")
    for case in cases:
        for workload in case["workloads"]:
            yield _workload(case, workload, file, f"{prefix}{case['name']}/{workload['name']}")


def _is_case(found: Any) -> bool:
    named = isinstance(found, dict) and isinstance(found.get("name"), str) and isinstance(found.get("workloads"), list)
    return named and all(isinstance(each, dict) and isinstance(each.get("name"), str) for each in found["workloads"])


def _workload(case: Mapping[str, Any], workload: Mapping[str, Any], file: Path, name: str) -> Found:
    try:
        return _known_workload(case, workload, file, name)
    except NotKnown as unknown:
        return LeftOutWorkload(name, str(unknown))


def _known_workload(case: Mapping[str, Any], workload: Mapping[str, Any], file: Path, name: str) -> PerfWorkload:
    for fields, known in ((case, _CASE_FIELDS), (workload, _WORKLOAD_FIELDS)):
        if unknown := sorted(fields.keys() - known):
            raise NotKnown(f"the field {unknown[0]} is not known")
    if case.get("schedulerConfigPath"):
        raise NotKnown("it has a configuration of kube-scheduler's own (schedulerConfigPath)")
    files = TemplateFiles(file.parent)
    parameters = Parameters(workload.get("params") or {})
    steps = case.get("workloadTemplate") or ()
    operations = [each for number, op in enumerate(steps) for each in _operations(op, number, parameters, files)]
    parameters.check()
    default_pod = case.get("defaultPodTemplatePath")
    return PerfWorkload(
        name,
        _measured_once(operations),
        {**(case.get("featureGates") or {}), **(workload.get("featureGates") or {})},
        (*(case.get("labels") or ()), *(workload.get("labels") or ())),
        _threshold(case, workload),
        None if default_pod is None else files.get(default_pod, "defaultPodTemplatePath"),
        hostnames=file.parent.name != _OLD_FOLDER,
    )


def _measured_once(operations: list[Operation]) -> list[Operation]:
    """Keep one measurement of a workload. Upstream may report several, but a row has one."""
    measured = sum(isinstance(each, StartCollectingMetrics) or (isinstance(each, CreatePods) and each.measured) for each in operations)
    if measured != 1:
        raise NotKnown(f"it measures {measured} times, which is not once")
    return operations


def _threshold(case: Mapping[str, Any], workload: Mapping[str, Any]) -> float:
    """Return upstream's floor of the average throughput, or 0 without a floor of this measure."""
    selector = workload.get("thresholdMetricSelector") or case.get("defaultThresholdMetricSelector") or {"name": _THROUGHPUT}
    threshold = workload.get("threshold")
    return float(threshold) if isinstance(threshold, int | float) and selector.get("name") == _THROUGHPUT else 0.0


def _operations(op: object, number: int, parameters: Parameters, files: TemplateFiles) -> list[Operation]:
    """Return one operation, or for `createPodSets` one for each set."""
    fields = OpFields(op, f"operation {number}", parameters, files)
    opcode = fields.text("opcode", "")
    if opcode == "createPodSets":
        return _pod_sets(op, fields, number, parameters, files)
    reader = _READERS.get(opcode)
    if reader is None:
        raise NotKnown(f"the operation {in_json(opcode)} is not known")
    read = reader(fields)
    fields.finish()
    return [read]


def _pod_sets(op: Any, fields: OpFields, number: int, parameters: Parameters, files: TemplateFiles) -> list[Operation]:
    count, prefix = fields.number("count", 0), fields.text("namespacePrefix", "")
    fields.take("createPodsOp")
    fields.finish()
    made: list[Operation] = []
    for each in range(count):
        inner = {**(op.get("createPodsOp") or {}), "namespace": f"{prefix}-{each}"}
        made += _operations({"opcode": "createPods", **inner}, number, parameters, files)
    return made


def _create_nodes(fields: OpFields) -> CreateNodes:
    count, template = fields.number("count", 0), fields.template("nodeTemplatePath")
    labelled, unique = fields.inner("labelNodePrepareStrategy"), fields.inner("uniqueNodeLabelStrategy")
    allocatable = fields.inner("nodeAllocatableStrategy")
    if sum(each is not None for each in (labelled, unique, allocatable)) > 1:
        raise NotKnown("nodes are prepared by two strategies, which is not known")
    preparation = NodePreparation()
    if labelled is not None:
        preparation = NodePreparation(label_key=labelled.text("labelKey"), label_values=labelled.texts("labelValues"))
        labelled.finish()
    if unique is not None:
        preparation = NodePreparation(unique_label_key=unique.text("labelKey"))
        unique.finish()
    if allocatable is not None:
        preparation = NodePreparation(
            allocatable=allocatable.mapping("nodeAllocatable"),
            csi_drivers=allocatable.mapping("csiNodeAllocatable"),
            migrated_plugins=allocatable.texts("migratedPlugins"),
        )
        allocatable.finish()
    return CreateNodes(count, template, preparation)


def _create_pods(fields: OpFields) -> CreatePods:
    steady = fields.flag("steadyState")
    for unneeded in ("duration", "durationParam"):
        fields.take(unneeded)
    if steady:
        raise NotKnown("pods in a steady state (steadyState) are not known")
    volume, claim = fields.template("persistentVolumeTemplatePath"), fields.template("persistentVolumeClaimTemplatePath")
    if (volume is None) != (claim is None):
        raise NotKnown("a volume without a claim, or a claim without a volume, is not known")
    return CreatePods(
        fields.number("count", 0),
        fields.template("podTemplatePath"),
        fields.text("namespace", ""),
        measured=fields.flag("collectMetrics"),
        waits=not fields.flag("skipWaitToCompletion"),
        volume=volume,
        claim=claim,
    )


def _delete_pods(fields: OpFields) -> DeletePods:
    waits = not fields.flag("skipWaitToCompletion")
    return DeletePods(fields.text("namespace"), fields.mapping("labelSelector"), fields.number("deletePodsPerSecond", 0), waits)


def _churn(fields: OpFields) -> Churn:
    mode, number = fields.text("mode"), fields.number("number", 0)
    if mode not in {"create", "recreate"} or (mode == "recreate" and not number):
        raise NotKnown(f"churn of mode {in_json(mode)} with number {number} is not known")
    interval = (fields.number("intervalMilliseconds", 0) or _USUAL_CHURN) / 1000
    return Churn(fields.templates("templatePaths"), mode == "recreate", number, interval, fields.text("namespace", ""))


def _update_any(fields: OpFields) -> UpdateAny:
    return UpdateAny(
        fields.needed_template("templatePath"),
        fields.number("count", 1),
        fields.text("namespace", ""),
        fields.number("updatePerSecond", 0),
        fields.texts("subresources"),
    )


def _barrier(fields: OpFields) -> Barrier:
    stage = fields.text("stageRequirement", SchedulingStage.SCHEDULED)
    if stage not in set(SchedulingStage):
        raise NotKnown(f"a barrier for the stage {in_json(stage)} is not known")
    return Barrier(fields.texts("namespaces"), fields.mapping("labelSelector"), SchedulingStage(stage))


_READERS: Final[Mapping[str, Callable[[OpFields], Operation]]] = {
    "createNodes": _create_nodes,
    "createNamespaces": lambda fields: CreateNamespaces(
        fields.number("count", 0), fields.text("prefix"), fields.template("namespaceTemplatePath")
    ),
    "createPods": _create_pods,
    "deletePods": _delete_pods,
    "churn": _churn,
    "createAny": lambda fields: CreateAny(fields.needed_template("templatePath"), fields.number("count", 1), fields.text("namespace", "")),
    "updateAny": _update_any,
    "barrier": _barrier,
    "sleep": lambda fields: Sleep(fields.duration("duration")),
    "startCollectingMetrics": lambda fields: StartCollectingMetrics(
        fields.texts("namespaces"), fields.mapping("labelSelector"), fields.text("name", "")
    ),
    "stopCollectingMetrics": lambda _: StopCollectingMetrics(),
}
