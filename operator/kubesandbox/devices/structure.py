"""The shapes of bodies of the resource.k8s.io group and of PodGroups; `structure` holds bodies against them."""

from __future__ import annotations

from typing import Any

import msgspec

Quantity = str | int | float
_Map = dict[str, Any]
_Maps = list[_Map] | None
_Strings = list[str] | None


class _Shape(msgspec.Struct, rename="camel"):
    """Field names as Kubernetes writes them."""


class _NodeRequirement(_Shape):
    key: str | None = None
    operator: str | None = None
    values: list[str] | None = None


class _NodeTerm(_Shape):
    match_expressions: list[_NodeRequirement] | None = None
    match_fields: list[_NodeRequirement] | None = None


class _NodeSelector(_Shape):
    node_selector_terms: list[_NodeTerm] | None = None


class _Cel(_Shape):
    expression: str = ""


class _Selector(_Shape):
    cel: _Cel | None = None


class _Toleration(_Shape):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    toleration_seconds: int | None = None


class _Capacity(_Shape):
    requests: dict[str, Quantity] | None = None


class _Request(_Shape):
    device_class_name: str | None = None
    selectors: list[_Selector] | None = None
    allocation_mode: str | None = None
    count: int | None = None
    admin_access: bool | None = None
    tolerations: list[_Toleration] | None = None
    capacity: _Capacity | None = None


class _SubRequest(_Request):
    name: str | None = None


class _DeviceRequest(_Shape):
    name: str | None = None
    exactly: _Request | None = None
    first_available: list[_SubRequest] | None = None


class _Constraint(_Shape):
    requests: _Strings = None
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class _Opaque(_Shape):
    driver: str | None = None
    parameters: Any = None


class _Configuration(_Shape):
    requests: _Strings = None
    source: str | None = None
    opaque: _Opaque | None = None


class _DeviceClaim(_Shape):
    requests: list[_DeviceRequest] | None = None
    constraints: list[_Constraint] | None = None
    config: list[_Configuration] | None = None


class ClaimSpec(_Shape):
    """`spec` of a claim."""

    devices: _DeviceClaim | None = None


class TemplateSpec(_Shape):
    """`spec` of a template: metadata and spec of a claim."""

    metadata: _Map | None = None
    spec: ClaimSpec | None = None


class _Result(_Shape):
    request: str | None = None
    driver: str | None = None
    pool: str | None = None
    device: str | None = None
    admin_access: bool | None = None
    tolerations: list[_Toleration] | None = None
    binding_conditions: _Strings = None
    binding_failure_conditions: _Strings = None
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: dict[str, Quantity] | None = None


class _Results(_Shape):
    results: list[_Result] | None = None
    config: list[_Configuration] | None = None


class _Allocation(_Shape):
    devices: _Results | None = None
    node_selector: _NodeSelector | None = None
    allocation_timestamp: str | None = None


class _Consumer(_Shape):
    api_group: str | None = None
    resource: str | None = None
    name: str | None = None
    uid: str | None = None


class _Condition(_Shape):
    type: str | None = None
    status: str | None = None
    reason: str | None = None
    message: str | None = None
    observed_generation: int | None = None
    last_transition_time: str | None = None


class _DeviceStatus(_Shape):
    driver: str | None = None
    pool: str | None = None
    device: str | None = None
    share_id: str | None = msgspec.field(default=None, name="shareID")
    conditions: list[_Condition] | None = None
    data: Any = None
    network_data: _Map | None = None


class ClaimStatus(_Shape):
    """`status` of a claim."""

    allocation: _Allocation | None = None
    reserved_for: list[_Consumer] | None = None
    devices: list[_DeviceStatus] | None = None


class ClassSpec(_Shape):
    """`spec` of a DeviceClass."""

    selectors: list[_Selector] | None = None
    config: list[_Configuration] | None = None
    extended_resource_name: str | None = None


class _Attribute(_Shape):
    number: int | None = msgspec.field(default=None, name="int")
    truth: bool | None = msgspec.field(default=None, name="bool")
    string: str | None = None
    version: str | None = None
    ints: list[Any] | None = None
    bools: list[Any] | None = None
    strings: list[Any] | None = None
    versions: list[Any] | None = None


class _Range(_Shape):
    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class _Policy(_Shape):
    default: Quantity | None = None
    valid_values: list[Quantity] | None = None
    valid_range: _Range | None = None


class _DeviceCapacity(_Shape):
    value: Quantity | None = None
    request_policy: _Policy | None = None


class _Counter(_Shape):
    value: Quantity | None = None


class _Consumption(_Shape):
    counter_set: str | None = None
    counters: dict[str, _Counter] | None = None


class _CounterSet(_Shape):
    name: str | None = None
    counters: dict[str, _Counter] | None = None


class _Taint(_Shape):
    key: str | None = None
    value: str | None = None
    effect: str | None = None
    time_added: str | None = None


class _Device(_Shape):
    name: str | None = None
    attributes: dict[str, _Attribute] | None = None
    capacity: dict[str, _DeviceCapacity] | None = None
    consumes_counters: list[_Consumption] | None = None
    node_name: str | None = None
    node_selector: _NodeSelector | None = None
    all_nodes: bool | None = None
    taints: list[_Taint] | None = None
    binds_to_node: bool | None = None
    binding_conditions: _Strings = None
    binding_failure_conditions: _Strings = None
    allow_multiple_allocations: bool | None = None


class _Pool(_Shape):
    name: str | None = None
    generation: int | None = None
    resource_slice_count: int | None = None


class SliceSpec(_Shape):
    """`spec` of a ResourceSlice."""

    driver: str | None = None
    pool: _Pool | None = None
    node_name: str | None = None
    node_selector: _NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: list[_Device] | None = None
    shared_counters: list[_CounterSet] | None = None


class _TaintSelector(_Shape):
    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class TaintRuleSpec(_Shape):
    """`spec` of a DeviceTaintRule."""

    device_selector: _TaintSelector | None = None
    taint: _Taint | None = None


class Conditions(_Shape):
    """A status that is nothing but conditions."""

    conditions: list[_Condition] | None = None


class _Gang(_Shape):
    min_count: int | None = None


class _Policies(_Shape):
    basic: _Map | None = None
    gang: _Gang | None = None


class _TopologyConstraint(_Shape):
    topology_key: str | None = None


class _GroupConstraints(_Shape):
    topology_constraints: list[_TopologyConstraint] | None = None


class GroupSpec(_Shape):
    """`spec` of a scheduling.k8s.io PodGroup."""

    pod_group_template_ref: _Map | None = None
    scheduling_policy: _Policies | None = None
    scheduling_constraints: _GroupConstraints | None = None
