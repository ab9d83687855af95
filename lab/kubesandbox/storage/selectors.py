"""Label and field selectors, from the text of a query to a predicate over objects.

Label selectors have equality (`a=b`, `a==b`, `a!=b`), sets (`a in (x,y)`, `a notin (x)`) and existence (`a`, `!a`). Field selectors have
`=`, `==` and `!=` on the fields that the real server knows for the type. All other text is refused with 400.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from kubesandbox.resources import ResourceType
from kubesandbox.status import Object, bad_request
from placewright.api.decode import DecodeError, convert
from placewright.api.objects import LabelSelector
from placewright.api.selectors import CompiledRequirement, Selector, SelectorError, compile_label_selector

Predicate = Callable[[Object], bool]
LabelTest = Callable[[Mapping[str, str]], bool]

_KEY: Final = r"[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9])?"
_SET: Final = re.compile(rf"({_KEY})\s+(in|notin)\s*\(([^()]*)\)")
_EQUAL: Final = re.compile(rf"({_KEY})\s*(==|=|!=)\s*([A-Za-z0-9]?[A-Za-z0-9._-]*)")
_COMPARE: Final = re.compile(rf"({_KEY})\s*([<>])\s*(-?[0-9]+)")
_EXISTS: Final = re.compile(rf"(!?)\s*({_KEY})")
_OUTSIDE_PARENTHESES: Final = re.compile(r",(?![^()]*\))")

_POD_FIELDS: Final = (
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
)
_EVENT_FIELDS: Final = (
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
)
_FIELDS: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("", "pods"): _POD_FIELDS,
    ("", "events"): _EVENT_FIELDS,
    ("", "nodes"): ("spec.unschedulable",),
    ("", "namespaces"): ("status.phase",),
    ("", "secrets"): ("type",),
    ("", "replicationcontrollers"): ("status.replicas",),
    ("apps", "replicasets"): ("status.replicas",),
    ("batch", "jobs"): ("status.successful",),
    ("resource.k8s.io", "resourceslices"): ("spec.nodeName", "spec.driver"),
}
#: Booleans that compare as "false" if they are absent. Other absent fields compare as empty text.
_FALSE_WHEN_ABSENT: Final = frozenset({"spec.hostNetwork", "spec.unschedulable"})


def selection(resource: ResourceType, labels: str, fields: str, extra_fields: tuple[str, ...] = ()) -> Predicate | None:
    """Return the predicate for a request's labelSelector and fieldSelector, or None if everything is selected.

    `extra_fields` are the selectable fields of a custom resource. Raises ApiError 400.
    """
    # None saves lists and watches without selectors a call for each object.
    tests: list[Predicate] = []
    if labels.strip():
        tests.append(_on_labels(parse_labels(labels)))
    if fields.strip():
        tests.extend(_parse_fields(resource, fields, extra_fields))
    if not tests:
        return None
    if len(tests) == 1:
        return tests[0]
    return lambda found: all(test(found) for test in tests)


def parse_labels(text: str) -> LabelTest:
    """Return the test of a label selector in its text form. Raises ApiError 400."""
    return Selector(tuple(_requirement(part.strip(), text) for part in _OUTSIDE_PARENTHESES.split(text))).matches


def label_selector(selector: Object | None) -> LabelTest:
    """Return the test of a LabelSelector object. None selects nothing, and {} selects everything. Raises ApiError 400."""
    if selector is None:
        return lambda _labels: False
    try:
        return compile_label_selector(convert(selector, LabelSelector)).matches
    except (DecodeError, SelectorError) as error:
        raise bad_request(str(error)) from error


def _on_labels(test: LabelTest) -> Predicate:
    return lambda found: test(found["metadata"].get("labels") or {})


def _requirement(part: str, whole: str) -> CompiledRequirement:
    if match := _SET.fullmatch(part):
        values = frozenset(value.strip() for value in match[3].split(","))
        return CompiledRequirement(match[1], "In" if match[2] == "in" else "NotIn", values)
    if match := _EQUAL.fullmatch(part):
        return CompiledRequirement(match[1], "NotIn" if match[2] == "!=" else "In", frozenset({match[3]}))
    if match := _COMPARE.fullmatch(part):
        return CompiledRequirement(match[1], "Gt" if match[2] == ">" else "Lt", frozenset(), int(match[3]))
    if match := _EXISTS.fullmatch(part):
        return CompiledRequirement(match[2], "DoesNotExist" if match[1] else "Exists", frozenset())
    message = f"unable to parse requirement: {part!r} in label selector {whole!r}: allowed are k=v, k!=v, k in (v,w), k notin (v), k, !k"
    raise bad_request(message)


def _parse_fields(resource: ResourceType, text: str, extra: tuple[str, ...]) -> list[Predicate]:
    # A backslash escapes a comma in a value.
    return [_field_requirement(resource, part, extra) for part in re.split(r"(?<!\\),", text) if part]


def _field_requirement(resource: ResourceType, part: str, extra: tuple[str, ...]) -> Predicate:
    match = re.fullmatch(r"([^=!]+?)(==|!=|=)(.*)", part)
    if match is None:
        raise bad_request(f"invalid field selector {part!r}: allowed are field=value, field==value, field!=value")
    field, operator = match[1].strip(), match[2]
    value = re.sub(r"\\(.)", r"\1", match[3])
    read = _reader(resource, field, extra)
    if operator == "!=":
        return lambda found: read(found) != value
    return lambda found: read(found) == value


def _reader(resource: ResourceType, field: str, extra: tuple[str, ...]) -> Callable[[Object], str]:
    known = ("metadata.name", "metadata.namespace", *_FIELDS.get(resource.key, ()), *extra)
    stored_field = _stored_field(resource, field)
    if stored_field not in known:
        raise bad_request(f"field label not supported: {field}: allowed for {resource.kind} are {', '.join(known)}")
    if stored_field == "source":
        return _event_source
    absent = "false" if stored_field in _FALSE_WHEN_ABSENT else ""
    path = stored_field.lstrip(".").split(".")
    return _path_reader(path, absent)


def _stored_field(resource: ResourceType, field: str) -> str:
    """Return the field of the stored core event. The group events.k8s.io has other names for some fields."""
    if resource.group != "events.k8s.io":
        return field
    renamed = re.sub(r"^regarding\.", "involvedObject.", field)
    return {"reportingController": "reportingComponent"}.get(renamed, renamed)


def _path_reader(path: list[str], absent: str) -> Callable[[Object], str]:
    def read(found: Object) -> str:
        value: object = found
        for part in path:
            value = value.get(part) if isinstance(value, dict) else None
            if value is None:
                return absent
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value)

    return read


def _event_source(found: Object) -> str:
    return str((found.get("source") or {}).get("component") or found.get("reportingComponent") or "")
