"""VolumeBinding: a pod's claims must be bound to volumes that its node reaches, or must be able to be."""
