"""The objects that a workload creates. They are the same for every scheduler, and so are their names. Pure.

Upstream lets the API server choose names (`generateName`). Here names have numbers, so that two schedulers get equal clusters. A pod that
one of them leaves unbound can then be found with the other. Upstream adds some fields to nodes, claims and volumes after their creation.
Here they are in the object from the start, if the result is the same and nothing is measured meanwhile.

The part of Go's text/template in scheduler_perf's objects, such as `{{ Mod .Index 25 }}`. Pure.

An action is one expression: `.Index`, `.Count`, a number, or a function of scheduler_perf. The function's arguments are expressions, too,
in parentheses if they are calls. All else (conditions, loops, variables, pipes, trimmed space) is refused by name. A template that is only
half understood would make objects that upstream never measured.
"""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from placewright.api.bad_input import InputError
from placewright.api.yamldocs import read_documents
from placewright.offline.kinds import Manifest
from placewright_lab.bench.schedulerperf.operations import AllocatableStrategy, CreateNodes, CreatePods, NotKnown, Template

Number = int | float

_ACTION: Final = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_TOKEN: Final = re.compile(r"\s*([()]|[^\s()]+)")
_INTEGER: Final = re.compile(r"[+-]?\d+")
_DECIMAL: Final = re.compile(r"[+-]?\d+\.\d+")
#: Between these, Go writes a float like Python. Beyond them, Go has another form of exponents.
_SMALLEST, _LARGEST = 1e-4, 1e15


class TemplateRefused(Exception):
    """An action is unknown here, or cannot be computed. The message is one line."""


def has_actions(text: str) -> bool:
    """Return whether the result of the template depends on the object's number."""
    return "{{" in text


def render(text: str, index: int, count: int) -> str:
    """Render the template for the object number `index` (from 0) of `count`. Raises `TemplateRefused`."""
    if text.count("{{") != len(_ACTION.findall(text)):
        raise TemplateRefused("a template action does not end")
    fields = {".Index": index, ".Count": count}
    return _ACTION.sub(lambda found: _written(_value_of(found[1], fields)), text)


def _value_of(action: str, fields: Mapping[str, int]) -> Number:
    tokens = _TOKEN.findall(action)
    try:
        value, rest = _call(tokens, fields)
    except ZeroDivisionError:
        raise TemplateRefused(f"the template action {{{{{action}}}}} divides by zero") from None
    if rest:
        raise TemplateRefused(f"the template action {{{{{action}}}}} is not known: found {rest[0]!r}")
    return value


def _call(tokens: list[str], fields: Mapping[str, int]) -> tuple[Number, list[str]]:
    """Evaluate an operand, or a function up to the end or a closing parenthesis. Return the tokens after it, too."""
    if not tokens:
        raise TemplateRefused("a template action is empty")
    function = _FUNCTIONS.get(tokens[0])
    if function is None:
        return _operand(tokens, fields)
    arguments: list[Number] = []
    rest = tokens[1:]
    while rest and rest[0] != ")":
        value, rest = _operand(rest, fields)
        arguments.append(value)
    try:
        return function(arguments), rest
    except TypeError:
        raise TemplateRefused(f"the template function {tokens[0]} does not take {len(arguments)} arguments") from None


def _operand(tokens: list[str], fields: Mapping[str, int]) -> tuple[Number, list[str]]:
    first, rest = tokens[0], tokens[1:]
    if first == "(":
        value, rest = _call(rest, fields)
        if rest[:1] != [")"]:
            raise TemplateRefused("a parenthesis in a template action is not closed")
        return value, rest[1:]
    if first in fields:
        return fields[first], rest
    if _INTEGER.fullmatch(first):
        return int(first), rest
    if _DECIMAL.fullmatch(first):
        return float(first), rest
    raise TemplateRefused(f"the template word {first} is not known")


def _divide(first: Number, second: Number) -> float:
    return float(first) / float(second)


def _remainder(first: Number, second: Number) -> int:
    """Return Go's remainder of whole numbers, with the sign of the first."""
    rest = abs(int(first)) % abs(int(second))
    return -rest if first < 0 else rest


def _pair(function: Callable[[Number, Number], Number]) -> Callable[[list[Number]], Number]:
    def of_two(arguments: list[Number]) -> Number:
        if len(arguments) != 2:
            raise TypeError
        return function(*arguments)

    return of_two


#: scheduler_perf's functions. They compute with floats, and functions for integers cut the fraction off.
_FUNCTIONS: Final[Mapping[str, Callable[[list[Number]], Number]]] = {
    "AddFloat": lambda numbers: float(sum(numbers)),
    "AddInt": lambda numbers: int(sum(numbers)),
    "DivideFloat": _pair(_divide),
    "DivideInt": _pair(lambda first, second: int(_divide(first, second))),
    "Mod": _pair(_remainder),
    "MultiplyFloat": lambda numbers: float(math.prod(numbers)),
    "MultiplyInt": lambda numbers: int(math.prod(numbers)),
    "SubtractFloat": _pair(lambda first, second: float(first) - float(second)),
    "SubtractInt": _pair(lambda first, second: int(float(first) - float(second))),
}


def _written(value: Number) -> str:
    """Write a number like Go, so that a whole float has no point."""
    if isinstance(value, int):
        return str(value)
    if value and not _SMALLEST <= abs(value) < _LARGEST:
        raise TemplateRefused(f"the number {value} is written with an exponent, which is not known here")
    return str(int(value)) if value.is_integer() else repr(value)


HOSTNAME: Final = "kubernetes.io/hostname"
MIGRATED: Final = "storage.alpha.kubernetes.io/migrated-plugins"
#: Upstream's node for operations without a template.
_USUAL_CAPACITY: Final = {"pods": "110", "cpu": "4", "memory": "32Gi"}
_USUAL_NODE: Final[Manifest] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"generateName": "node-"},
    "status": {"capacity": _USUAL_CAPACITY, "phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
}
_USUAL_REQUESTS: Final = {"cpu": "100m", "memory": "500Mi"}
#: Upstream's pod for operations without a template.
_USUAL_POD: Final[Manifest] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "pod-"},
    "spec": {
        "containers": [
            {
                "name": "pause",
                "image": "registry.k8s.io/pause:3.10",
                "ports": [{"containerPort": 80}],
                "resources": {"limits": _USUAL_REQUESTS, "requests": _USUAL_REQUESTS},
            }
        ]
    },
}


def rendered(template: Template, index: int, count: int) -> Manifest:
    """Return the template's object for one number. Callers do not change it. Raises `NotKnown`."""
    if not has_actions(template.text):
        return _parsed(template.path, template.text)
    try:
        return _parsed(template.path, render(template.text, index, count))
    except TemplateRefused as refused:
        raise NotKnown(f"{template.path.name}: {refused}") from None


def nodes(operation: CreateNodes, number: int, *, hostnames: bool) -> Iterator[tuple[Manifest, Manifest | None]]:
    """Yield the nodes of the operation with this number, each with its CSINode if it gets one."""
    for index in range(operation.count):
        base = rendered(operation.template, index, operation.count) if operation.template else _USUAL_NODE
        name = _name(base, number, index)
        status = dict(base.get("status") or {})
        if operation.allocatable and operation.allocatable.node_allocatable:
            usual = status.get("allocatable") or status.get("capacity") or {}
            status["allocatable"] = {**usual, **operation.allocatable.node_allocatable}
        labels = {**_labels(base), **({HOSTNAME: name} if hostnames else {}), **_prepared_labels(operation, name, index)}
        yield {**_named(base, name, labels), "status": status}, _csi_node(operation.allocatable, name)


def pods(operation: CreatePods, default: Template | None, number: int, namespace: str) -> Iterator[tuple[Manifest, tuple[Manifest, ...]]]:
    """Make the pods of operation `number`, each with the bound claim and volume that must exist before."""
    template = operation.template or default
    for index in range(operation.count):
        base = rendered(template, index, operation.count) if template else _USUAL_POD
        pod = _named(base, _name(base, number, index), _labels(base))
        if operation.volume is None or operation.claim is None:
            yield pod, ()
            continue
        claim = _claim(rendered(operation.claim, index, operation.count), namespace, index)
        volume = _volume(rendered(operation.volume, index, operation.count), claim, namespace, index)
        mounted = [{"name": "vol", "persistentVolumeClaim": {"claimName": claim["metadata"]["name"]}}]
        yield {**pod, "spec": {**pod["spec"], "volumes": mounted}}, (claim, volume)


def numbered(template: Template, index: int, count: int, number: int) -> Manifest:
    """Return an object of any kind, with its own name or with a number."""
    base = rendered(template, index, count)
    return _named(base, _name(base, number, index), _labels(base))


def namespaces(template: Template | None, prefix: str, count: int) -> Iterator[Manifest]:
    """Yield `count` namespaces, from `prefix-0` on."""
    for index in range(count):
        base = rendered(template, index, count) if template else {"apiVersion": "v1", "kind": "Namespace"}
        yield _named(base, f"{prefix}-{index}", _labels(base))


@lru_cache(maxsize=4096)
def _parsed(path: Path, text: str) -> Manifest:
    try:
        value = next((document.value for document in read_documents(text, path.name)), None)
    except InputError as error:
        raise NotKnown(str(error)) from None
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
        raise NotKnown(f"{path.name} holds no object with a kind")
    return value


def _name(base: Manifest, operation: int, index: int) -> str:
    metadata = base.get("metadata") or {}
    return str(metadata.get("name") or f"{metadata.get('generateName', '')}{operation}-{index:05d}")


def _labels(base: Manifest) -> dict[str, str]:
    return dict((base.get("metadata") or {}).get("labels") or {})


def _named(base: Manifest, name: str, labels: Mapping[str, str]) -> Manifest:
    metadata: dict[str, Any] = {key: value for key, value in (base.get("metadata") or {}).items() if key != "generateName"}
    return {**base, "metadata": {**metadata, "name": name, **({"labels": dict(labels)} if labels else {})}}


def _prepared_labels(operation: CreateNodes, name: str, index: int) -> dict[str, str]:
    if operation.unique:
        return {operation.unique.label_key: str(uuid.uuid5(uuid.NAMESPACE_DNS, name))}
    if operation.labelled and (values := operation.labelled.label_values):
        return {operation.labelled.label_key: values[index % len(values)]}
    return {}


def _csi_node(strategy: AllocatableStrategy | None, name: str) -> Manifest | None:
    if strategy is None:
        return None
    drivers = [{"name": driver, "nodeID": name, "allocatable": room} for driver, room in strategy.csi_node_allocatable.items()]
    metadata = {"name": name, "annotations": {MIGRATED: ",".join(strategy.migrated_plugins)}}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": metadata, "spec": {"drivers": drivers}}


def _claim(base: Manifest, namespace: str, index: int) -> Manifest:
    name = f"pvc-{index}"
    spec = {**base.get("spec", {}), "volumeName": f"{namespace}-vol-{index}"}
    return {**_named(base, name, _labels(base)), "spec": spec, "status": {"phase": "Bound"}}


def _volume(base: Manifest, claim: Manifest, namespace: str, index: int) -> Manifest:
    name = claim["spec"]["volumeName"]
    spec = dict(base.get("spec", {}))
    if "csi" in spec:
        spec["csi"] = {**spec["csi"], "volumeHandle": name}
    elif "awsElasticBlockStore" in spec:
        spec["awsElasticBlockStore"] = {**spec["awsElasticBlockStore"], "volumeID": f"vol-{index}"}
    claimed = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": claim["metadata"]["name"]}
    return {**_named(base, name, _labels(base)), "spec": {**spec, "claimRef": claimed}, "status": {"phase": "Bound"}}
