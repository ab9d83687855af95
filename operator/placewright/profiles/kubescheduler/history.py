"""Plugins and defaults of earlier kube-schedulers: plugins that are gone, and default weights that have changed.

Sources: `pkg/scheduler/apis/config/v1beta1/default_plugins.go` and `.../v1beta2/default_plugins.go` of Kubernetes 1.22 and 1.25, and the
release notes of the configuration's versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

#: Versions of the configuration besides v1, oldest first.
BETAS: Final = ("v1beta1", "v1beta2", "v1beta3")

AVOID: Final = "NodePreferAvoidPods"
AVOID_WEIGHT: Final = 10000

#: Plugins of ours that kube-scheduler has dropped; a configuration v1 cannot name them.
GONE: Final = frozenset(
    {AVOID, "SelectorSpread", "NodeLabel", "ServiceAffinity", "EBSLimits", "GCEPDLimits", "AzureDiskLimits", "CinderLimits"}
)

#: Weights of default plugins that were lower until v1beta3.
_EVEN_WEIGHTS: Final[Mapping[str, int]] = MappingProxyType({"TaintToleration": 1, "NodeAffinity": 1, "InterPodAffinity": 1})
DEFAULT_WEIGHTS: Final[Mapping[str, Mapping[str, int]]] = MappingProxyType(
    {"v1beta1": _EVEN_WEIGHTS, "v1beta2": _EVEN_WEIGHTS, "v1beta3": MappingProxyType({})}
)


class FormerDefault(NamedTuple):
    """A plugin that used to be on by default: its name, its only point (a field of `Plugins`), its weight."""

    name: str
    point: str
    weight: int | None = None


_DISK_LIMITS: Final = tuple(FormerDefault(name, "filter") for name in ("EBSLimits", "GCEPDLimits", "AzureDiskLimits"))
FORMER_DEFAULTS: Final[Mapping[str, tuple[FormerDefault, ...]]] = MappingProxyType(
    {"v1beta1": (*_DISK_LIMITS, FormerDefault(AVOID, "score", AVOID_WEIGHT)), "v1beta2": _DISK_LIMITS, "v1beta3": _DISK_LIMITS}
)
