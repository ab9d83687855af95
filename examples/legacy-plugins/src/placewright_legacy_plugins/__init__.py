"""Plugins of kube-scheduler 1.20 to 1.22, and the readers of its Policy and of its configuration v1beta1."""

from placewright_legacy_plugins.nodelabel import NodeLabel
from placewright_legacy_plugins.nodepreferavoidpods import NodePreferAvoidPods
from placewright_legacy_plugins.selectorspread import SelectorSpread
from placewright_legacy_plugins.serviceaffinity import ServiceAffinity

__all__ = ["NodeLabel", "NodePreferAvoidPods", "SelectorSpread", "ServiceAffinity"]
