"""The default profile: the plugins that are enabled unless a profile changes that, in run order.

The list is kube-scheduler's, complete. A plugin that this build does not have is left out by intersection with the registry. The weights of
these plugins are `Plugin.default_weight`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from placewright.framework.interface import Plugin
from placewright.framework.registry import InstalledPlugins, Registry
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

#: Well-known plugins that are not here, to the plugin that does their work here.
ELSEWHERE: Final[Mapping[str, str]] = {
    "Coscheduling": "GangScheduling, a default plugin, reads the same PodGroups and the same label",
    "TopologyPlacementGenerator": "GangScheduling, a default plugin, keeps the topology of a PodGroup, always",
    "PodGroupPodsCount": "GangScheduling, a default plugin, takes the domain in which a group's members score most",
}

#: The package that has what kube-scheduler had up to 1.22.
LEGACY_PACKAGE: Final = "placewright-legacy-plugins"
#: Plugins that came with Placewright once, and the package that has each now. A profile may switch one of them off, or give
#: arguments to one that it does not run, as before.
PACKAGES: Final[Mapping[str, str]] = dict.fromkeys(
    ("NodeLabel", "NodePreferAvoidPods", "SelectorSpread", "ServiceAffinity"), LEGACY_PACKAGE
)

#: Plugins by name, in the form of the registry.
Catalogue = Mapping[str, type[Plugin]]


def default_plugins(known: Collection[str]) -> tuple[str, ...]:
    """Select the default plugins that exist here."""
    return tuple(name for name in DEFAULT_PLUGINS if name in known)


def known_plugin(name: str, catalogue: Catalogue, on_disk: InstalledPlugins) -> str:
    """Say what is allowed in place of a plugin that does not exist here.

    Args:
        name: the plugin that a profile names.
        catalogue: the plugins that exist here.
        on_disk: the plugins of packages installed now, which can be more than when the process began.

    Returns:
        The allowed part of a `Problem`, with how to get the plugin where that is known.
    """
    if isinstance(catalogue, Registry) and name in catalogue.broken:
        return f"a plugin that works; the installed one {catalogue.broken[name]}"
    if name in DEFAULT_PLUGINS:
        return f"a plugin of this version, which does not have {name} yet"
    if name in ELSEWHERE:
        return f"a known plugin; {ELSEWHERE[name]}"
    if name in on_disk:
        return "a known plugin; one of this name was installed after this process began: restart it to load that"
    if name in PACKAGES:
        package = f"{name} is in the package {PACKAGES[name]}"
        return f"a known plugin; {package}: install it where placewright runs, then restart (docs/upgrade.md)"
    return f"a known plugin{did_you_mean(name, catalogue) or '; is its package installed here?'}"
