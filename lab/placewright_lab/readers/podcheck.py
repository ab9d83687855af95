"""The check that the scheduler can read a pod or a pod template. Errors name the field like kubectl."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeVar

from placewright.api.bad_input import InputError, bad_field, shown
from placewright.api.decode import DecodeError, convert
from placewright.api.objects import LabelSelector, Node, Pod, RawQuantity, ResourceList
from placewright.api.quantity import QuantityError, nano
from placewright.api.selectors import Selector, SelectorError, compile_label_selector

T = TypeVar("T")

_TYPE_ERROR: Final = re.compile(r"(?:\w+: )?Expected (?P<allowed>.+?), got (?P<found>.+?)(?: - at `\$\.?(?P<path>.*)`)?", re.DOTALL)
_TYPES: Final = {"str": "text", "int": "a whole number", "object": "a mapping", "array": "a list", "bool": "true or false",
                 "null": "nothing", "float": "a number"}  # fmt: skip
_STEP: Final = re.compile(r"[^.\[\]]+|\.\.\.")
_LABEL_VALUE: Final = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")
_QUANTITY: Final = "a quantity of at least 0, such as 250m, 2 or 1.5Gi"


def check_pod(body: Mapping[str, Any], where: str, prefix: str = "") -> Pod:
    """Decode a pod and check further rules. `prefix` is the path of a template inside its workload."""
    pod = _decoded(body, Pod, where, prefix)
    if not pod.spec.containers:
        raise bad_field(f"{where}: {prefix}spec.containers", pod.spec.containers, "a list of at least one container")
    for path, found in _resource_lists(pod):
        _check_quantities(found, f"{where}: {prefix}{path}")
    _check_labels(pod.metadata.labels, f"{where}: {prefix}metadata.labels")
    return pod


def check_node(body: Mapping[str, Any], where: str) -> Node:
    """Decode a node and check its quantities and labels."""
    node = _decoded(body, Node, where, "")
    _check_quantities(node.status.allocatable or {}, f"{where}: status.allocatable")
    _check_quantities(node.status.capacity or {}, f"{where}: status.capacity")
    _check_labels(node.metadata.labels, f"{where}: metadata.labels")
    return node


def check_selector(body: object, where: str) -> Selector:
    """Compile a label selector of a workload."""
    if not isinstance(body, Mapping):
        raise bad_field(where, body, "a label selector with matchLabels or matchExpressions")
    try:
        return compile_label_selector(_decoded(body, LabelSelector, where, ""))
    except SelectorError as error:
        raise InputError(f"{where}: {error}") from None


def _decoded(body: Mapping[str, Any], kind: type[T], where: str, prefix: str) -> T:
    try:
        return convert(body, kind)
    except DecodeError as error:
        raise InputError(f"{where}: {type_problem(str(error), prefix, body)}") from None


def type_problem(text: str, prefix: str, body: object) -> str:
    """Return a decoder's error in the words of all other errors: the field, the value found and the values allowed.

    Args:
        text: the decoder's error.
        prefix: path of the decoded object, with a point at its end.
        body: the decoded object.
    """
    match = _TYPE_ERROR.fullmatch(text)
    if match is None:
        return f"{prefix}{text}"
    path = match["path"] or ""
    found = _at(body, path) or _plain(match["found"])
    where = f"{prefix}{path}".rstrip(".")
    return f"{where + ': ' if where else ''}found {found}; allowed {_plain(match['allowed'])}"


def _at(value: object, path: str) -> str:
    """Return the value at a decoder's path for a message, or nothing for an inexact path (`labels[...]`)."""
    for step in _STEP.findall(path):
        if isinstance(value, Mapping) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdigit():
            value = value[int(step)]
        else:
            return ""
    return shown(value)


def _plain(types: str) -> str:
    return " or ".join(_TYPES.get(t.strip(), t.strip()) for t in types.replace("`", "").split("|"))


def _resource_lists(pod: Pod) -> Iterator[tuple[str, ResourceList]]:
    spec = pod.spec
    for field, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for index, container in enumerate(containers or ()):
            yield f"spec.{field}[{index}].resources.requests", container.resources.requests or {}
            yield f"spec.{field}[{index}].resources.limits", container.resources.limits or {}
    yield "spec.overhead", spec.overhead or {}
    if spec.resources is not None:
        yield "spec.resources.requests", spec.resources.requests or {}


def _check_quantities(resources: Mapping[str, RawQuantity], where: str) -> None:
    for name, quantity in resources.items():
        try:
            good = nano(quantity) >= 0
        except QuantityError:
            good = False
        if not good:
            raise bad_field(f"{where}.{name}", quantity, _QUANTITY)


def _check_labels(labels: Mapping[str, str] | None, where: str) -> None:
    for key, value in (labels or {}).items():
        if not _LABEL_VALUE.fullmatch(value):
            raise bad_field(f"{where}[{shown(key)}]", value, "at most 63 letters, digits, '-', '_' and '.'")
