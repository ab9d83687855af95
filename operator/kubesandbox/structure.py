"""The shape that a body must have before any rule reads it: each field that this server looks at is of its type.

The real server decodes into typed structs and answers 400 for a list where an object belongs. So do these, for the
fields that are read here; all others pass unseen.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import msgspec

from kubesandbox.definitionstructure import DefinitionSpec, DefinitionStatus
from kubesandbox.devices.structure import (
    ClaimSpec,
    ClaimStatus,
    ClassSpec,
    Conditions,
    GroupSpec,
    SliceSpec,
    TaintRuleSpec,
    TemplateSpec,
)
from kubesandbox.status import Object, bad_request
from kubesandbox.zerovalues import fill_null

_Map = dict[str, Any]
_Maps = list[_Map] | None
_Strings = dict[str, str] | None


class _Shape(msgspec.Struct, rename="camel"):
    """Field names as Kubernetes writes them."""


class _Owner(_Shape):
    name: str = ""
    kind: str = ""
    api_version: str = ""
    uid: str = ""
    controller: bool | None = None


class _Metadata(_Shape):
    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    labels: _Strings = None
    annotations: _Strings = None
    finalizers: list[str] | None = None
    owner_references: list[_Owner] | None = None
    managed_fields: _Maps = None


class _Bare(_Shape):
    """Custom objects: their schema says the rest."""

    metadata: _Metadata | None = None


class _Plain(_Bare):
    """Types of which no single field matters here."""

    spec: _Map | None = None
    status: _Map | None = None


class _Requirement(_Shape):
    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class _Selector(_Shape):
    match_labels: _Strings = None
    match_expressions: list[_Requirement] | None = None


class _Resources(_Shape):
    requests: dict[str, str | int | float] | None = None
    limits: dict[str, str | int | float] | None = None
    claims: _Maps = None


class _Container(_Shape):
    name: str = ""
    image: str | None = None
    image_pull_policy: str | None = None
    resources: _Resources | None = None
    ports: _Maps = None


class _PodClaim(_Shape):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class _Gate(_Shape):
    name: str = ""


class _Toleration(_Shape):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    toleration_seconds: int | None = None


class _PodSpec(_Shape):
    containers: list[_Container] | None = None
    init_containers: list[_Container] | None = None
    ephemeral_containers: list[_Container] | None = None
    node_name: str | None = None
    node_selector: _Strings = None
    affinity: _Map | None = None
    scheduler_name: str | None = None
    priority_class_name: str | None = None
    priority: int | None = None
    preemption_policy: str | None = None
    restart_policy: str | None = None
    service_account: str | None = None
    service_account_name: str | None = None
    host_network: bool | None = None
    termination_grace_period_seconds: int | None = None
    scheduling_gates: list[_Gate] | None = None
    tolerations: list[_Toleration] | None = None
    topology_spread_constraints: _Maps = None
    volumes: _Maps = None
    resource_claims: list[_PodClaim] | None = None
    scheduling_group: _Map | None = None
    workload_ref: _Map | None = None


class _Condition(_Shape):
    type: str = ""
    status: str = ""


class _Address(_Shape):
    ip: str | None = None


class _PodStatus(_Shape):
    phase: str | None = None
    conditions: list[_Condition] | None = None
    container_statuses: _Maps = None
    pod_ip: str | None = msgspec.field(default=None, name="podIP")
    pod_ips: list[_Address] | None = msgspec.field(default=None, name="podIPs")
    host_ip: str | None = msgspec.field(default=None, name="hostIP")
    host_ips: list[_Address] | None = msgspec.field(default=None, name="hostIPs")
    nominated_node_name: str | None = None
    resource_claim_statuses: _Maps = None


class _Pod(_Bare):
    spec: _PodSpec | None = None
    status: _PodStatus | None = None


class _Template(_Shape):
    metadata: _Metadata | None = None
    spec: _PodSpec | None = None


class _WorkloadSpec(_Shape):
    replicas: int | None = None
    selector: _Selector | None = None
    template: _Template | None = None
    parallelism: int | None = None
    completions: int | None = None
    strategy: _Map | None = None
    update_strategy: _Map | None = None


class _Workload(_Bare):
    spec: _WorkloadSpec | None = None
    status: _Map | None = None


class _ControllerSpec(_Shape):
    replicas: int | None = None
    selector: _Strings = None
    template: _Template | None = None


class _Controller(_Bare):
    spec: _ControllerSpec | None = None
    status: _Map | None = None


class _JobTemplate(_Shape):
    spec: _WorkloadSpec | None = None


class _CronJobSpec(_Shape):
    job_template: _JobTemplate | None = None


class _CronJob(_Bare):
    spec: _CronJobSpec | None = None
    status: _Map | None = None


class _Taint(_Shape):
    key: str = ""
    value: str | None = None
    effect: str = ""


class _NodeSpec(_Shape):
    taints: list[_Taint] | None = None
    unschedulable: bool | None = None


class _NodeStatus(_Shape):
    capacity: dict[str, str | int | float] | None = None
    allocatable: dict[str, str | int | float] | None = None
    conditions: list[_Condition] | None = None
    images: _Maps = None


class _Node(_Bare):
    spec: _NodeSpec | None = None
    status: _NodeStatus | None = None


class _BudgetSpec(_Shape):
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: _Selector | None = None


class _BudgetStatus(_Shape):
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0


class _Budget(_Bare):
    spec: _BudgetSpec | None = None
    status: _BudgetStatus | None = None


class _PriorityClass(_Bare):
    value: int = 0
    global_default: bool | None = None
    preemption_policy: str | None = None
    description: str | None = None


class _ServiceSpec(_Shape):
    ports: _Maps = None
    selector: _Strings = None
    type: str | None = None


class _Service(_Bare):
    spec: _ServiceSpec | None = None
    status: _Map | None = None


class _Series(_Shape):
    count: int | None = None
    last_observed_time: str | None = None


class _Event(_Bare):
    involved_object: _Map | None = None
    regarding: _Map | None = None
    source: _Map | None = None
    deprecated_source: _Map | None = None
    message: str | None = None
    note: str | None = None
    reason: str | None = None
    type: str | None = None
    count: int | None = None
    series: _Series | None = None


class _Data(_Bare):
    data: _Strings = None
    binary_data: _Strings = None
    string_data: _Strings = None


class _Definition(_Bare):
    spec: DefinitionSpec | None = None
    status: DefinitionStatus | None = None


class _ResourceClaim(_Bare):
    spec: ClaimSpec | None = None
    status: ClaimStatus | None = None


class _ClaimTemplate(_Bare):
    spec: TemplateSpec | None = None


class _DeviceClass(_Bare):
    spec: ClassSpec | None = None


class _ResourceSlice(_Bare):
    spec: SliceSpec | None = None


class _TaintRule(_Bare):
    spec: TaintRuleSpec | None = None
    status: Conditions | None = None


class _PodGroup(_Bare):
    spec: GroupSpec | None = None
    status: Conditions | None = None


_SHAPES = MappingProxyType(
    {
        "Pod": _Pod,
        "Node": _Node,
        "Deployment": _Workload,
        "ReplicaSet": _Workload,
        "StatefulSet": _Workload,
        "DaemonSet": _Workload,
        "Job": _Workload,
        "CronJob": _CronJob,
        "ReplicationController": _Controller,
        "PodDisruptionBudget": _Budget,
        "PriorityClass": _PriorityClass,
        "Service": _Service,
        "Event": _Event,
        "ConfigMap": _Data,
        "Secret": _Data,
        "CustomResourceDefinition": _Definition,
        "ResourceClaim": _ResourceClaim,
        "ResourceClaimTemplate": _ClaimTemplate,
        "DeviceClass": _DeviceClass,
        "ResourceSlice": _ResourceSlice,
        "DeviceTaintRule": _TaintRule,
        "PodGroup": _PodGroup,
    }
)


def check_structure(kind: str, sent: Object, *, custom: bool) -> None:
    """Raises ApiError 400, with the path of the field, unless `sent` has the shape of a `kind`; fills in what is null."""
    shape = _Bare if custom else _SHAPES.get(kind, _Plain)
    while (complaint := _complaint(sent, shape)) and fill_null(sent, complaint):
        pass
    if complaint:
        what, _, path = complaint.partition(" - at ")
        raise bad_request(f"{kind}: {path.strip('`').removeprefix('$.') or 'body'}: {what}")


def _complaint(sent: Object, shape: type) -> str:
    """What does not fit the shape; empty for nothing."""
    try:
        msgspec.convert(sent, type=shape)
    except msgspec.ValidationError as error:
        return str(error)
    return ""
