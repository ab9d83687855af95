"""VolumeBinding: a pod's claims must be bound, or be able to be bound, to volumes that its node can reach."""

from placewright.plugins.volumebinding.plugin import VolumeBinding

__all__ = ["VolumeBinding"]
