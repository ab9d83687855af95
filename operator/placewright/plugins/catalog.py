"""Every plugin this package ships. kube-scheduler's order of plugins is a profile's business, not this list's.

NodeLabel, NodePreferAvoidPods, SelectorSpread and ServiceAffinity of earlier kube-schedulers are a package of their own,
`examples/legacy-plugins`.
"""

from __future__ import annotations

from placewright.framework.registry import Registry
from placewright.plugins.defaultbinder import DefaultBinder
from placewright.plugins.defaultpreemption.plugin import DefaultPreemption
from placewright.plugins.devicefragmentation.plugin import DeviceFragmentation
from placewright.plugins.domainlimit.plugin import DomainLimit
from placewright.plugins.dynamicresources.plugin import DynamicResources
from placewright.plugins.gangscheduling import GangScheduling
from placewright.plugins.imagelocality import ImageLocality
from placewright.plugins.interpodaffinity.plugin import InterPodAffinity
from placewright.plugins.legacyvolumelimits import AzureDiskLimits, CinderLimits, EBSLimits, GCEPDLimits
from placewright.plugins.nodeaffinity import NodeAffinity
from placewright.plugins.nodedeclaredfeatures import NodeDeclaredFeatures
from placewright.plugins.nodename import NodeName
from placewright.plugins.nodeports import NodePorts
from placewright.plugins.noderejections import NodeRejections
from placewright.plugins.noderesources.balanced import NodeResourcesBalancedAllocation
from placewright.plugins.noderesources.fit import NodeResourcesFit
from placewright.plugins.nodestartrate import NodeStartRate
from placewright.plugins.nodeunschedulable import NodeUnschedulable
from placewright.plugins.nodevolumelimits.plugin import NodeVolumeLimits
from placewright.plugins.podtopologyspread.plugin import PodTopologySpread
from placewright.plugins.prioritysort import PrioritySort
from placewright.plugins.schedulinggates import SchedulingGates
from placewright.plugins.tainttoleration import TaintToleration
from placewright.plugins.volumebinding.plugin import VolumeBinding
from placewright.plugins.volumerestrictions import VolumeRestrictions
from placewright.plugins.volumezone import VolumeZone


def in_tree() -> Registry:
    """Return a registry of the plugins in this package."""
    return Registry(
        (
            SchedulingGates,
            PrioritySort,
            NodeUnschedulable,
            NodeName,
            TaintToleration,
            NodeAffinity,
            NodePorts,
            NodeResourcesFit,
            VolumeRestrictions,
            NodeVolumeLimits,
            VolumeBinding,
            VolumeZone,
            PodTopologySpread,
            InterPodAffinity,
            DynamicResources,
            DefaultPreemption,
            NodeResourcesBalancedAllocation,
            ImageLocality,
            DefaultBinder,
            NodeDeclaredFeatures,
            # Ours; in no profile that does not name it.
            DeviceFragmentation,
            GangScheduling,
            DomainLimit,
            NodeRejections,
            NodeStartRate,
            # Of earlier kube-schedulers; in no profile that does not name them.
            EBSLimits,
            GCEPDLimits,
            AzureDiskLimits,
            CinderLimits,
        )
    )
