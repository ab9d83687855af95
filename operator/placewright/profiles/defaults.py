"""The default profile: which plugins are enabled when a profile does not say otherwise, in run order.

The list is kube-scheduler's, whole; a plugin that this build does not have is left out by intersection with the registry. Weights of these
plugins are `Plugin.default_weight`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from placewright.framework.interface import Plugin
from placewright.framework.registry import InstalledPlugins
from placewright.profiles.problem import did_you_mean

DEFAULT_PLUGINS: Final = (
    "SchedulingGates",
    "PrioritySort",
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "DynamicResources",
    "DefaultPreemption",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
    "DefaultBinder",
    "NodeDeclaredFeatures",
    "GangScheduling",
)

#: Well-known plugins that are not here, and what does their work here.
ELSEWHERE: Final[Mapping[str, str]] = {
    "Coscheduling": "GangScheduling, a default plugin, reads the same PodGroups and the same label",
    "TopologyPlacementGenerator": "GangScheduling, a default plugin, keeps the topology of a PodGroup, always",
    "PodGroupPodsCount": "GangScheduling, a default plugin, takes the domain in which a group's members score most",
}

#: The package that has kube-scheduler's plugins for labels of nodes, up to 1.22.
LEGACY_PACKAGE: Final = "placewright-legacy-plugins"
#: Plugins that came with Placewright once, and the package that has each now. A profile that switches one of them off, or gives arguments
#: to one that it does not run, means what it meant.
PACKAGES: Final[Mapping[str, str]] = {"NodeLabel": LEGACY_PACKAGE, "ServiceAffinity": LEGACY_PACKAGE}

#: Plugins by name, as the registry holds them.
Catalogue = Mapping[str, type[Plugin]]


def default_plugins(known: Collection[str]) -> tuple[str, ...]:
    """The default plugins that exist here, in run order."""
    return tuple(name for name in DEFAULT_PLUGINS if name in known)


def known_plugin(name: str, catalogue: Catalogue, on_disk: InstalledPlugins) -> str:
    """What is allowed where a plugin that does not exist here is named."""
    if name in DEFAULT_PLUGINS:
        return f"a plugin of this version, which does not have {name} yet"
    if name in ELSEWHERE:
        return f"a known plugin; {ELSEWHERE[name]}"
    if name in on_disk:
        return "a known plugin; one of this name was installed after this process began: restart it to load that"
    if name in PACKAGES:
        package = f"{name} is in the package {PACKAGES[name]}"
        return f"a known plugin; {package}: install it where placewright runs, then restart (docs/upgrade.md)"
    return f"a known plugin{did_you_mean(name, catalogue)}"
