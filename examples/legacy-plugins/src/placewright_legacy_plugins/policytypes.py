"""The legacy Policy file (kind Policy, apiVersion v1; kube-scheduler up to 1.22), as decoded."""

from __future__ import annotations

from typing import Any

import msgspec

from placewright.api.extenders import ExtenderTLS, ManagedResource
from placewright.api.objects import KubeObject


class LabelsArgument(KubeObject, frozen=True):
    """Labels whose values the pods of a Service share."""

    labels: list[str]


class LabelsPresenceArgument(KubeObject, frozen=True):
    """Labels that nodes must have, or must not have."""

    labels: list[str]
    presence: bool = False


class PredicateArgument(KubeObject, frozen=True):
    """The argument of a user's own predicate; exactly one field is set."""

    service_affinity: LabelsArgument | None = None
    labels_presence: LabelsPresenceArgument | None = None


class PredicatePolicy(KubeObject, frozen=True):
    """A predicate; with an argument the name is the user's own."""

    name: str
    argument: PredicateArgument | None = None


class LabelArgument(KubeObject, frozen=True):
    """A label over whose values the pods of a Service are spread."""

    label: str


class LabelPreferenceArgument(KubeObject, frozen=True):
    """A label that nodes should have, or should not have."""

    label: str
    presence: bool = False


class CapacityRatioArguments(KubeObject, frozen=True):
    """Shape and resources of RequestedToCapacityRatio."""

    shape: list[dict[str, Any]]
    resources: list[dict[str, Any]] | None = None


class PriorityArgument(KubeObject, frozen=True):
    """The argument of a user's own priority; exactly one field is set."""

    service_anti_affinity: LabelArgument | None = None
    label_preference: LabelPreferenceArgument | None = None
    requested_to_capacity_ratio_arguments: CapacityRatioArguments | None = None


class PriorityPolicy(KubeObject, frozen=True):
    """A priority and its weight."""

    name: str
    weight: int = 0
    argument: PriorityArgument | None = None


class LegacyExtender(KubeObject, frozen=True):
    """An extender. `http_timeout` is a whole number of nanoseconds, and `enableHttps` has another spelling than today."""

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: int = 0
    bind_verb: str = ""
    enable_https: bool = msgspec.field(default=False, name="enableHttps")
    tls_config: ExtenderTLS | None = None
    http_timeout: int | str = 0
    node_cache_capable: bool = False
    managed_resources: list[ManagedResource] | None = None
    ignorable: bool = False


class Policy(KubeObject, frozen=True):
    """The file. An absent list means the default set, an empty one means none."""

    kind: str
    api_version: str = "v1"
    metadata: dict[str, Any] | None = None
    predicates: list[PredicatePolicy] | None = None
    priorities: list[PriorityPolicy] | None = None
    extenders: list[LegacyExtender] | None = None
    hard_pod_affinity_symmetric_weight: int | None = None
    always_check_all_predicates: bool | None = None
