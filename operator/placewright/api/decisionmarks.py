"""What is remembered of a decision that may end the process, and which pods it speaks for.

A mark is made before such a decision begins, outlives the process, and goes when the decision has ended. It names no uid: whoever has a
controller make the same pod again, or makes it by hand under another name, has made the pod that the mark speaks for.

What is written to a mark comes from pods, so all of it is of a bounded length: digests, and names that the API server has checked.
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

#: Bytes of a digest: two specs of one namespace that have the same are not found by trying.
_DIGEST_BYTES: Final = 16
_LONGEST_SUBJECT: Final = 400


#: Looks at each node, by `estimated_work`, from which on a decision counts as heavy: five times those for a pod with four constraints and
#: four terms, and below what is refused.
HEAVY_WORK: Final = 512


def heavy_work(pod: PodInfo) -> int:
    """How much is looked at for each node to decide this pod, where it is so much that the decision is marked before; else 0.

    It does not grow with the cluster: what a decision takes for each node more is what kube-scheduler's takes too.
    """
    extent = pod.extent
    if extent is SMALL or extent.excess:
        return 0
    work = estimated_work(pod, 1)
    return work if work >= HEAVY_WORK else 0


class PodKeys(NamedTuple):
    """What two pods of a namespace have in common where a decision about one tells of the other; digests, empty for what a pod lacks.

    Attributes:
        shape: what makes its decision heavy: the spec without names and images, which are varied at no cost.
        spec: what it asks for, without what differs from pod to pod of one controller.
        controller: who made it.
        group: the group that it is placed with.
    """

    shape: str
    spec: str
    controller: str = ""
    group: str = ""


class MarkedPod(KubeObject, frozen=True):
    """Whom a mark speaks for; never changes.

    Attributes:
        namespace: of the pod or group that was to be decided.
        subject: that pod or group, for people.
        heavy: whether the mark was made because much work was expected, and not because the process hung.
        spec: of a heavy pod its shape; of another its spec: what it was that hung nobody knows, and many pods have a shape like its.
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
        """Names the mark: two replicas cannot make two for the same."""
        return digest(self.namespace, self.group or self.spec)


class DecisionMark(NamedTuple):
    """A mark as it stands.

    Attributes:
        pod: whom it speaks for.
        deaths: of how many processes a decision about it was the last.
        opened_by: identity of the replica that is deciding it now; empty where none is.
        died_at: when the last of those deaths was counted, seconds since 1970; 0.0 where there is none.
        version: the object's resourceVersion.
    """

    pod: MarkedPod
    deaths: int = 0
    opened_by: str = ""
    died_at: float = 0.0
    version: str = ""


def marked(pod: PodInfo, *, heavy: bool = True) -> MarkedPod:
    """Whom a mark made before the decision about this pod, or its group, speaks for."""
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
    """The digests of a pod. Costs as much as writing its spec out: nothing for every pod."""
    controller = next((owner for owner in pod.pod.metadata.owner_references or () if owner.controller), None)
    ref = pod.pod_group
    return PodKeys(
        digest("shape", _shape(pod.pod.spec)),
        digest("spec", _spec(pod.pod.spec)),
        "" if controller is None else digest("controller", controller.kind, controller.name),
        "" if ref is None else digest("group", ref.form.value, ref.namespace, ref.name),
    )


def digest(*parts: str | bytes) -> str:
    """Of these texts, in this order."""
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
    """A spec without what differs between pods of one controller, such as the claims of a StatefulSet's members."""
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
    """A claim that was made for one pod has a name of its own; a template is the same for all."""
    return replace(claim, name="", resource_claim_name=None if claim.resource_claim_name is None else "")
