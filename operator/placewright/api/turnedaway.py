"""Pods that a kubelet turned away: the reasons that it writes into their status, and the owner that will create the next one.

A kubelet checks a pod once more before it starts it. If the node cannot take the pod, the kubelet ends it with the phase `Failed`. The
scheduler sees such a pod only if it asks for failed pods. It reads no more of it than this module declares.
"""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple

from placewright.api.objects import KubeObject, ObjectMeta, TenantObject
from placewright.api.writers import Writer

#: Reasons with which kubelets of Kubernetes 1.20 to 1.36 turn pods away, and who in the kubelet gives them. Not here: `Evicted`,
#: `Terminated` and `Preempting`, which pods that ran have as well; a node under pressure or in shutdown has a taint for that.
REASONS: Final = {
    # pkg/kubelet/lifecycle/predicate.go; `OutOf` with any other resource is RESOURCE_PREFIX
    "OutOfcpu": "room on the node",
    "OutOfmemory": "room on the node",
    "OutOfephemeral-storage": "room on the node",
    "OutOfpods": "room on the node",
    "NodeAffinity": "the filters that kubelet and scheduler share",
    "NodeName": "the filters that kubelet and scheduler share",
    "NodePorts": "the filters that kubelet and scheduler share",
    "PodOSSelectorNodeLabelDoesNotMatch": "the operating system",
    "PodOSNotSupported": "the operating system",
    "InitContainerRestartPolicyForbidden": "features of the node",
    "SupplementalGroupsPolicyNotSupported": "features of the node",
    "PodLevelResourcesNotSupported": "features of the node",
    "PodFeatureUnsupported": "features of the node",
    "InvalidNodeInfo": "errors of the kubelet",
    "UnexpectedAdmissionError": "device plugins and the managers of CPUs and memory, among others",
    "UnexpectedPredicateFailureType": "errors of the kubelet",
    "UnknownReason": "errors of the kubelet",
    # pkg/kubelet/cm/topologymanager, cm/cpumanager
    "TopologyAffinityError": "the topology manager",
    "SMTAlignmentError": "the CPU manager",
    # pkg/kubelet/sysctl, pkg/security/apparmor, pkg/kubelet/nodeshutdown, pkg/kubelet/volumemanager
    "SysctlForbidden": "the list of allowed sysctls",
    "AppArmor": "AppArmor",
    "NodeShutdown": "the node's shutdown",
    "VolumeAttachmentLimitExceeded": "the limit of attached volumes",
}
#: Followed by the name of a resource, such as `OutOfnvidia.com/gpu`.
RESOURCE_PREFIX: Final = "OutOf"
#: A resource's name has at most 316 characters; a status that says more was not written by a kubelet.
_LONGEST_REASON: Final = 400


class Owner(NamedTuple):
    """The owner of pods, as it is the same for the next pod: its controller, or a pod without one itself.

    Its name identifies it, and no uid. So a Job that is deleted and created anew is the same owner.
    """

    namespace: str
    kind: str
    name: str


class RunsOn(KubeObject, frozen=True):
    """`spec` of such a pod."""

    node_name: str = ""


class Ended(KubeObject, frozen=True):
    """`status` of such a pod."""

    phase: str = ""
    reason: str = ""


class FailedPod(TenantObject, frozen=True):
    """A pod that has failed, with the fields that say whether a kubelet turned it away."""

    spec: Annotated[RunsOn, Writer.TENANT] = RunsOn()
    status: Annotated[Ended, Writer.KUBELET] = Ended()

    @property
    def turned_away(self) -> bool:
        """Whether a kubelet ended this pod before it ran."""
        reason = self.status.reason
        known = reason in REASONS or (reason.startswith(RESOURCE_PREFIX) and len(reason) <= _LONGEST_REASON)
        return known and self.status.phase == "Failed" and bool(self.spec.node_name)


def owner_of(meta: ObjectMeta) -> Owner:
    """Return the owner of a pod.

    Returns:
        Its controller; for a pod without one, the pod itself by its name.
    """
    for reference in meta.owner_references or ():
        if reference.controller:
            return Owner(meta.namespace, reference.kind, reference.name)
    return Owner(meta.namespace, "Pod", meta.name)
