"""Marks of decisions that may end the process, and the pods that a mark is about.

A mark is made before such a decision begins, outlives the process, and is removed when the decision has ended. It holds no uid,
because a controller would make the same pod again under another one (docs/decisions/0034).

The texts in a mark come from pods, so each has a bounded length: digests, and names that the API server has checked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from placewright.api.objects import Container, KubeObject, PodResourceClaim, PodSpec, Volume
from placewright.api.podextent import SMALL, estimated_work
from placewright.api.pods import PodInfo

#: Bytes of a digest, enough that a tenant cannot find two specs with the same one.
_DIGEST_BYTES: Final = 16
_LONGEST_SUBJECT: Final = 400


#: Looks at each node, by `estimated_work`, from which on a decision counts as heavy. A pod with four constraints and four terms needs a
#: fifth of them. Pods are refused at higher limits.
HEAVY_WORK: Final = 512


def heavy_work(pod: PodInfo) -> int:
    """Estimate the work of a decision that has to be marked before it begins.

    The estimate is per node and does not grow with the cluster: kube-scheduler's work per node grows with the pod in the same way.

    Returns:
        Looks at each node; 0 for a decision that needs no mark.
    """
    extent = pod.extent
    if extent is SMALL or extent.excess:
        return 0
    work = estimated_work(pod.extent, 1)
    return work if work >= HEAVY_WORK else 0


class PodKeys(NamedTuple):
    """Digests that two pods of a namespace share when a decision about one tells about the other; empty if a pod lacks the thing.

    Attributes:
        shape: digest of the spec without names and images, which a tenant can vary at no cost.
        spec: digest of the spec without the parts that differ from pod to pod of one controller.
        controller: digest of its controller.
        group: digest of the group that it is placed with.
    """

    shape: str
    spec: str
    controller: str = ""
    group: str = ""


class MarkedPod(KubeObject, frozen=True):
    """The pods that a mark is about. It never changes.

    Attributes:
        namespace: namespace of the pod or group that was to be decided.
        subject: that pod or group, for people.
        heavy: True for a mark made because much work was expected, False for one made because the process hung.
        spec: the shape of a heavy pod. Of a pod whose decision hung the whole spec: the cause is unknown, and many pods share its shape.
        controller, group: see `PodKeys`.
    """

    namespace: str
    subject: str
    spec: str
    controller: str = ""
    group: str = ""
    heavy: bool = True

    @property
    def name(self) -> str:
        """Name of the mark: the same for two replicas, so that they cannot make two marks of one decision."""
        return digest(self.namespace, self.group or self.spec)


class DecisionMark(NamedTuple):
    """A mark as stored.

    Attributes:
        pod: the pods that it is about.
        deaths: number of processes that ended during a decision about them.
        opened_by: identity of the replica that is deciding now; empty if none is.
        died_at: when the last of those deaths was counted, seconds since 1970; 0.0 without one.
        version: the object's resourceVersion.
    """

    pod: MarkedPod
    deaths: int = 0
    opened_by: str = ""
    died_at: float = 0.0
    version: str = ""


def marked(pod: PodInfo, *, heavy: bool = True) -> MarkedPod:
    """Describe the pods that a mark made before this decision is about.

    Args:
        pod: to be decided, by itself or with its group.
        heavy: much work is expected; False: the process hangs.
    """
    keys = keys_of(pod)
    ref = pod.pod_group
    subject = f"pod {pod.key}" if ref is None else str(ref)
    return MarkedPod(
        namespace=pod.namespace,
        subject=subject[:_LONGEST_SUBJECT],
        spec=keys.shape if heavy else keys.spec,
        controller=keys.controller,
        group=keys.group,
        heavy=heavy,
    )


def keys_of(pod: PodInfo) -> PodKeys:
    """Compute the digests of a pod. This encodes the whole spec, so it is not for every pod."""
    controller = next((owner for owner in pod.pod.metadata.owner_references or () if owner.controller), None)
    ref = pod.pod_group
    return PodKeys(
        digest("shape", _shape(pod.pod.spec)),
        digest("spec", _spec(pod.pod.spec)),
        "" if controller is None else digest("controller", controller.kind, controller.name),
        "" if ref is None else digest("group", ref.form.value, ref.namespace, ref.name),
    )


def digest(*parts: str | bytes) -> str:
    """Digest texts, in this order. Their lengths are part of it, so that no two lists of texts look alike."""
    made = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        text = part if isinstance(part, bytes) else part.encode(errors="surrogatepass")
        made.update(len(text).to_bytes(8))
        made.update(text)
    return made.hexdigest()


def _shape(spec: PodSpec) -> bytes:
    unnamed = replace(spec, priority=None, containers=_unnamed(spec.containers), init_containers=_unnamed(spec.init_containers))
    return _spec(unnamed)


def _spec(spec: PodSpec) -> bytes:
    """Encode a spec without the parts that differ between pods of one controller, such as names of claims."""
    alike = replace(
        spec,
        node_name="",
        scheduling_gates=None,
        scheduling_group=None,
        workload_ref=None,
        volumes=tuple(_without_names(each) for each in spec.volumes or ()),
        resource_claims=tuple(_claim_without_names(each) for each in spec.resource_claims or ()),
    )
    return msgspec.json.encode(alike, order="deterministic")


def _unnamed(containers: Iterable[Container] | None) -> tuple[Container, ...]:
    return tuple(replace(each, name="", image="") for each in containers or ())


def _without_names(volume: Volume) -> Volume:
    claim = volume.persistent_volume_claim
    return replace(volume, name="", persistent_volume_claim=None if claim is None else replace(claim, claim_name=""))


def _claim_without_names(claim: PodResourceClaim) -> PodResourceClaim:
    """Remove the name of a claim that was made for one pod; a template is the same for all pods."""
    return replace(claim, name="", resource_claim_name=None if claim.resource_claim_name is None else "")
