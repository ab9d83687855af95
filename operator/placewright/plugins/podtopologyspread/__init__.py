"""PodTopologySpread: spreads pods of a kind evenly over the domains of a node label."""

from placewright.plugins.podtopologyspread.args import PodTopologySpreadArgs
from placewright.plugins.podtopologyspread.plugin import PodTopologySpread

__all__ = ["PodTopologySpread", "PodTopologySpreadArgs"]
