"""The reader of scheduler_perf's unchanged `performance-config.yaml`, of 1.20 and of later versions.

A workload becomes a list of operations with every parameter filled in. A workload with something unknown is left out, and names it: an
operation, a field, a file, or a scheduler's configuration. The reader guesses nothing, so we run the same workload as upstream.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from placewright.api.bad_input import InputError, bad_field, in_json
from placewright.api.durations import seconds
from placewright.api.yamldocs import read_documents
from placewright_lab.bench.schedulerperf.operations import (
    CreatePods,
    CreatePodSets,
    LeftOutWorkload,
    NotKnown,
    Operation,
    PerfWorkload,
    StartCollectingMetrics,
    Template,
)
from placewright_lab.readers.podcheck import type_problem

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
#: Ending of a field that names a parameter of the workload instead of a value.
_PARAMETER: Final = "Param"

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
    for given, known in ((case, _CASE_FIELDS), (workload, _WORKLOAD_FIELDS)):
        if unknown := sorted(given.keys() - known):
            raise NotKnown(f"the field {unknown[0]} is not known")
    if case.get("schedulerConfigPath"):
        raise NotKnown("it has a configuration of kube-scheduler's own (schedulerConfigPath)")
    fields = _Fields(file.parent, workload.get("params") or {})
    operations = [each for number, op in enumerate(case.get("workloadTemplate") or ()) for each in fields.operations(op, number)]
    fields.check()
    default_pod = case.get("defaultPodTemplatePath")
    return PerfWorkload(
        name,
        _measured_once(operations),
        {**(case.get("featureGates") or {}), **(workload.get("featureGates") or {})},
        (*(case.get("labels") or ()), *(workload.get("labels") or ())),
        _threshold(case, workload),
        None if default_pod is None else fields.template(default_pod, "defaultPodTemplatePath"),
        hostnames=file.parent.name != _OLD_FOLDER,
    )


def _measured_once(operations: list[Operation]) -> list[Operation]:
    """Keep one measurement of a workload. Upstream may report several, but a row has one."""
    measured = sum(
        isinstance(each, StartCollectingMetrics) or (isinstance(each, CreatePods) and each.collect_metrics) for each in operations
    )
    if measured != 1:
        raise NotKnown(f"it measures {measured} times, which is not once")
    return operations


def _threshold(case: Mapping[str, Any], workload: Mapping[str, Any]) -> float:
    """Return upstream's floor of the average throughput, or 0 without a floor of this measure."""
    selector = workload.get("thresholdMetricSelector") or case.get("defaultThresholdMetricSelector") or {"name": _THROUGHPUT}
    threshold = workload.get("threshold")
    return float(threshold) if isinstance(threshold, int | float) and selector.get("name") == _THROUGHPUT else 0.0


class _Fields:
    """Fills in the fields of operations. Their names say how: `…Param` is a workload's parameter, `…Path` and `…Paths` are templates.

    A parameter that no operation reads is an error, like upstream. Paths of templates begin in the configuration's folder or, until 1.32,
    in the folder above.
    """

    def __init__(self, folder: Path, parameters: Mapping[str, Any]) -> None:
        self._folder = folder
        self._parameters = parameters
        self._used: set[str] = set()

    def operations(self, op: object, number: int) -> list[Operation]:
        """Return one operation, or for `createPodSets` one for each set."""
        filled = self._filled(op, f"operation {number}")
        try:
            made = msgspec.convert(filled, Operation)
        except msgspec.ValidationError as error:
            raise NotKnown(f"operation {number}: {type_problem(str(error), '', filled)}") from None
        if not isinstance(made, CreatePodSets):
            return [made]
        sets = ({"opcode": "createPods", **made.create_pods_op, "namespace": f"{made.namespace_prefix}-{i}"} for i in range(made.count))
        return [each for one in sets for each in self.operations(one, number)]

    def template(self, path: object, where: str) -> Template:
        """Return the template at this path."""
        if not isinstance(path, str):
            raise NotKnown(f"{where} is {in_json(path)}, which is no path")
        for folder in (self._folder, self._folder.parent):
            if (file := folder / path).is_file():
                return Template(file, file.read_text(encoding="utf-8"))
        raise NotKnown(f"{where} names {path}, which is not there")

    def check(self) -> None:
        """Raise `NotKnown` for parameters that nothing has read."""
        if unused := sorted(self._parameters.keys() - self._used):
            raise NotKnown(f"the parameter {unused[0]} is not used by any operation")

    def _filled(self, op: object, where: str) -> dict[str, Any]:
        if not isinstance(op, dict):
            raise NotKnown(f"{where} is {in_json(op)}, which is no object")
        given = {name: value for name, value in op.items() if value is not None}
        named = {name: given.pop(name) for name in list(given) if name.endswith(_PARAMETER)}
        given |= {name.removesuffix(_PARAMETER): self._parameter(value, f"{where}.{name}") for name, value in named.items()}
        return {name: self._value(name, value, f"{where}.{name}") for name, value in given.items()}

    def _parameter(self, reference: object, where: str) -> object:
        name = reference.removeprefix("$") if isinstance(reference, str) else ""
        if not isinstance(reference, str) or not reference.startswith("$") or name not in self._parameters:
            raise NotKnown(f"{where} is {in_json(reference)}, which names no parameter of the workload")
        self._used.add(name)
        return self._parameters[name]

    def _value(self, name: str, value: Any, where: str) -> object:
        if name.endswith("Path"):
            return self.template(value, where)
        if name.endswith("Paths") and isinstance(value, list):
            return [self.template(each, where) for each in value]
        if name == "duration":
            read = seconds(value) if isinstance(value, str) else None
            if read is None:
                raise NotKnown(f"{where} is {in_json(value)}, which is no duration")
            return read
        return int(value) if isinstance(value, float) and value.is_integer() else value
