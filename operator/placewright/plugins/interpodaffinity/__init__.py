"""InterPodAffinity: pods attract and repel each other by label."""

from placewright.plugins.interpodaffinity.args import InterPodAffinityArgs
from placewright.plugins.interpodaffinity.plugin import InterPodAffinity

__all__ = ["InterPodAffinity", "InterPodAffinityArgs"]
