"""The devices that a pod has on its node, as the scheduler noted them in the annotation `api.annotations.DEVICES`.

The annotation rides on the Binding and outlives every replica. But each user with the right to write the pod may write the annotation,
before the pod is placed and at any time after. So it is believed once, when the pod comes onto its node:

- A note that the pod brought before devices were chosen for it is ignored.
- The devices that were chosen stay, whichever note the API server shows later.
- A pod that is first seen on its node, as after a restart, has the devices that its note says then.
- A pod of ours that was bound without the note, as an extender binds, has no devices.
"""

from __future__ import annotations

from placewright.api.annotations import DEVICES
from placewright.api.pods import PodInfo


def noted_devices(pod: PodInfo) -> str | None:
    """Read the note on a pod.

    Args:
        pod: any pod.

    Returns:
        The annotation's text; None when there is none.
    """
    annotations = pod.pod.metadata.annotations
    return annotations.get(DEVICES) if annotations else None


def without_brought_devices(pod: PodInfo) -> PodInfo:
    """Remove a note that the pod brought, because no devices have been chosen for it.

    Args:
        pod: about to be assumed.

    Returns:
        `pod`, or a copy without the note.
    """
    annotations = pod.pod.metadata.annotations
    return pod.annotated({DEVICES: None}) if annotations and DEVICES in annotations else pod


def with_noted_devices(pod: PodInfo, known: PodInfo, *, assumed: bool) -> PodInfo:
    """Return the pod as the API server shows it, with the devices that it is known to have on its node.

    Args:
        pod: as the API server shows it.
        known: as it stood on the same node until now.
        assumed: whether the pod was assumed there, so that this is its Binding.

    Returns:
        `pod`, or a copy with the known note.
    """
    noted, shown = noted_devices(known), noted_devices(pod)
    if noted == shown or (assumed and shown is None):
        return pod
    return pod.annotated({DEVICES: noted})
