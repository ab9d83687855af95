"""NodeVolumeLimits: how many volumes of a CSI driver a node takes."""

from placewright.plugins.nodevolumelimits.plugin import NodeVolumeLimits

__all__ = ["NodeVolumeLimits"]
