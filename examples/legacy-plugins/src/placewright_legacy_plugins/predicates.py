"""Predicates of the legacy Policy: the plugins that filter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from placewright.profiles.kubescheduler.findings import ConversionFindings
from placewright.profiles.problem import Problem, ProfileError, did_you_mean
from placewright_legacy_plugins.policytypes import PredicateArgument, PredicatePolicy
from placewright_legacy_plugins.strategies import FIT

SPREAD: Final = "PodTopologySpread"

#: Predicate to plugins; kube-scheduler 1.22, `pkg/scheduler/framework/plugins/legacy_registry.go`.
PREDICATES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "CheckNodeUnschedulable": ("NodeUnschedulable",),
        "GeneralPredicates": (FIT, "NodeName", "NodePorts", "NodeAffinity"),
        "HostName": ("NodeName",),
        "PodFitsHostPorts": ("NodePorts",),
        "PodFitsPorts": ("NodePorts",),
        "MatchNodeSelector": ("NodeAffinity",),
        "PodFitsResources": (FIT,),
        "NoDiskConflict": ("VolumeRestrictions",),
        "PodToleratesNodeTaints": ("TaintToleration",),
        "CheckNodeLabelPresence": ("NodeLabel",),
        "CheckServiceAffinity": ("ServiceAffinity",),
        "MaxEBSVolumeCount": ("EBSLimits",),
        "MaxGCEPDVolumeCount": ("GCEPDLimits",),
        "MaxCSIVolumeCountPred": ("NodeVolumeLimits",),
        "MaxAzureDiskVolumeCount": ("AzureDiskLimits",),
        "MaxCinderVolumeCount": ("CinderLimits",),
        "CheckVolumeBinding": ("VolumeBinding",),
        "NoVolumeZoneConflict": ("VolumeZone",),
        "EvenPodsSpread": (SPREAD,),
        "MatchInterPodAffinity": ("InterPodAffinity",),
    }
)
DEFAULT_PREDICATES: Final = (
    "NoVolumeZoneConflict", "MaxEBSVolumeCount", "MaxGCEPDVolumeCount", "MaxAzureDiskVolumeCount", "MaxCSIVolumeCountPred",
    "MatchInterPodAffinity", "NoDiskConflict", "GeneralPredicates", "PodToleratesNodeTaints", "CheckVolumeBinding",
    "CheckNodeUnschedulable", "EvenPodsSpread",
)  # fmt: skip
MANDATORY_PREDICATES: Final = ("PodToleratesNodeTaints", "CheckNodeUnschedulable")

_AS_TAINT: Final = "the state of a node is a taint today, which TaintToleration reads, always on"
#: Predicates that were dropped before 1.22, to the plugins that do their work, and a note.
_REPLACED: Final[Mapping[str, tuple[tuple[str, ...], str]]] = MappingProxyType(
    {
        "CheckNodeCondition": ((), _AS_TAINT),
        "CheckNodeMemoryPressure": ((), _AS_TAINT),
        "CheckNodeDiskPressure": ((), _AS_TAINT),
        "CheckNodePIDPressure": ((), _AS_TAINT),
        "PodToleratesNodeNoExecuteTaints": ((), "TaintToleration, always on, reads these taints too"),
        "NoVolumeNodeConflict": (("VolumeBinding",), "VolumeBinding does its work"),
        "MaxCSIVolumeCount": (("NodeVolumeLimits",), "NodeVolumeLimits does its work"),
    }
)


@dataclass(slots=True)
class Filters:
    """The result of the predicates: plugins that filter, and labels for the two that take some."""

    plugins: set[str] = field(default_factory=set)
    affinity_labels: list[str] = field(default_factory=list)
    present_labels: list[str] = field(default_factory=list)
    absent_labels: list[str] = field(default_factory=list)


def read_predicates(predicates: Sequence[PredicatePolicy] | None, findings: ConversionFindings) -> Filters:
    """Read the predicates of a policy. An unknown name is a finding.

    Args:
        predicates: None for the default ones.
        findings: takes differences.

    Returns:
        The filters.

    Raises:
        ProfileError: arguments contradict each other.
    """
    filters = Filters()
    chosen = [PredicatePolicy(name=name) for name in DEFAULT_PREDICATES] if predicates is None else predicates
    for i, predicate in enumerate(chosen):
        _read(predicate, f"predicates[{i}]", filters, findings)
    for name in MANDATORY_PREDICATES:
        filters.plugins.update(PREDICATES[name])
    return filters


def _read(predicate: PredicatePolicy, path: str, filters: Filters, findings: ConversionFindings) -> None:
    name, argument = predicate.name, predicate.argument or PredicateArgument()
    if argument.service_affinity and argument.labels_presence:
        raise ProfileError([Problem(f"{path}.argument", "serviceAffinity and labelsPresence", "one of them")])
    if name in PREDICATES:
        filters.plugins.update(PREDICATES[name])
    elif name in _REPLACED:
        plugins, text = _REPLACED[name]
        filters.plugins.update(plugins)
        findings.note(path, f"{name}: {text}")
    elif argument.service_affinity is not None:
        filters.plugins.add("ServiceAffinity")
        filters.affinity_labels += argument.service_affinity.labels
    elif argument.labels_presence is not None:
        filters.plugins.add("NodeLabel")
        labels = filters.present_labels if argument.labels_presence.presence else filters.absent_labels
        labels += argument.labels_presence.labels
    else:
        findings.placement(path, f"{name}: no predicate of this name is known{did_you_mean(name, PREDICATES)}; it is left out")
