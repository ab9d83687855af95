"""Which devices a pod is taken to have on its node: those that the scheduler noted, and no others.

The note is an annotation (`api.annotations.DEVICES`), so that it rides on the Binding and outlives every replica. But whoever may write the
pod may write the annotation: before the pod is placed, and at any time after. So it is believed once, when the pod comes onto its node:

- What a pod brought before anybody chose devices for it is nobody's choice.
- What was chosen stands from the moment of the choice, whatever the API server shows later under that name.
- A pod that is first seen on its node, as after a restart, has what it says then.
- A pod of ours that was bound without the note, as an extender binds, has none.
"""

from __future__ import annotations

from placewright.api.annotations import DEVICES
from placewright.api.pods import PodInfo


def noted_devices(pod: PodInfo) -> str | None:
    """What is noted on a pod; None for nothing."""
    annotations = pod.pod.metadata.annotations
    return annotations.get(DEVICES) if annotations else None


def without_brought_devices(pod: PodInfo) -> PodInfo:
    """The pod as it is assumed: nobody has chosen devices for it by now."""
    annotations = pod.pod.metadata.annotations
    return pod.annotated({DEVICES: None}) if annotations and DEVICES in annotations else pod


def with_noted_devices(pod: PodInfo, known: PodInfo, *, assumed: bool) -> PodInfo:
    """The pod as the API server shows it on its node, with the devices that it is known to have there.

    Args:
        pod: as it is shown.
        known: as it stood on the same node until now.
        assumed: whether that was our own assumption, so that this is its Binding.
    """
    noted, shown = noted_devices(known), noted_devices(pod)
    if noted == shown or (assumed and shown is None):
        return pod
    return pod.annotated({DEVICES: noted})
