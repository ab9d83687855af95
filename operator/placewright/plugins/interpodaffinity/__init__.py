"""InterPodAffinity: pods attract and repel each other by label."""

from placewright.plugins.interpodaffinity.plugin import InterPodAffinity, InterPodAffinityArgs

__all__ = ["InterPodAffinity", "InterPodAffinityArgs"]
