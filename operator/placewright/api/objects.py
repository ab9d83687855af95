"""The Kubernetes objects that a scheduler reads, as msgspec structs.

Only the fields that scheduling reads are declared; the decoder skips all others. The structs are frozen, so that queue, cache and records
can share one decoded object. Sequences are tuples, and no field is a free-form map of maps: such objects hold no references that Python's
garbage collector would have to follow. For a hundred thousand pods, following them is a pause of half a second at each collection.
"""

from __future__ import annotations

from typing import Annotated, Final, NewType

import msgspec

from placewright.api.fieldmeanings import counts, means
from placewright.api.quantity import LONGEST_QUANTITY
from placewright.api.writers import Characters, Writer, counted

NodeName = NewType("NodeName", str)
#: `namespace/name`, the key of a pod in every queue structure.
PodKey = NewType("PodKey", str)

#: A quantity as JSON carries it: mostly text, numbers from hand-written YAML.
RawQuantity = Annotated[str | int | float, Characters(LONGEST_QUANTITY)]
ResourceList = dict[str, RawQuantity]
Labels = dict[str, str]
#: Characters of a name; no API server takes a longer one.
LONGEST_NAME: Final = 253


class KubeObject(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False, omit_defaults=True):
    """Base of all structs: camelCase in JSON, not tracked by the garbage collector, because there are no cycles."""


class OwnerReference(KubeObject, frozen=True):
    """The controller that made an object."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    controller: bool | None = None


class ObjectMeta(KubeObject, frozen=True):
    """`metadata`, with the fields that identify, label and own an object.

    Attributes:
        excess: a sentence about a field that was left out because it is beyond its bound (`api.objectbounds`); "" for nearly all objects.
    """

    name: Annotated[str, msgspec.Meta(max_length=LONGEST_NAME)] = ""
    namespace: Annotated[str, msgspec.Meta(max_length=LONGEST_NAME)] = ""
    uid: Annotated[str, Writer.CONTROL_PLANE] = ""
    resource_version: Annotated[str, Writer.CONTROL_PLANE] = ""
    generation: Annotated[int, Writer.CONTROL_PLANE] = 0
    labels: Annotated[Labels | None, counted("labels")] = None
    annotations: Labels | None = None
    owner_references: tuple[OwnerReference, ...] | None = None
    creation_timestamp: Annotated[str | None, Writer.CONTROL_PLANE] = None
    deletion_timestamp: Annotated[str | None, Writer.CONTROL_PLANE] = None
    excess: Annotated[str, Writer.CONTROL_PLANE] = msgspec.field(default="", name="placewright.dev/excess")


class TenantObject(KubeObject, frozen=True):
    """An object whose metadata users write."""

    metadata: Annotated[ObjectMeta, Writer.TENANT] = ObjectMeta()


class OwnerObject(KubeObject, frozen=True):
    """An object whose metadata administrators of the cluster write."""

    metadata: Annotated[ObjectMeta, Writer.OWNER] = ObjectMeta()


class DriverObject(KubeObject, frozen=True):
    """An object whose metadata a driver writes."""

    metadata: Annotated[ObjectMeta, Writer.DRIVER] = ObjectMeta()


# --- selectors ---------------------------------------------------------------------------------------------------------------


class Requirement(KubeObject, frozen=True):
    """One expression of a label or node selector; the operator is checked where it is evaluated."""

    key: str = ""
    operator: str = ""
    values: Annotated[tuple[str, ...] | None, counted("pod_values", "node_values")] = None


class LabelSelector(KubeObject, frozen=True):
    """`matchLabels` AND `matchExpressions`; empty matches everything."""

    match_labels: Annotated[Labels | None, counted("pod_requirements")] = None
    match_expressions: Annotated[tuple[Requirement, ...] | None, counted("pod_requirements")] = None


class NodeSelectorTerm(KubeObject, frozen=True):
    """Expressions over labels and fields of a node, ANDed; an empty term matches nothing."""

    match_expressions: Annotated[tuple[Requirement, ...] | None, counted("node_requirements")] = None
    match_fields: Annotated[tuple[Requirement, ...] | None, counted("node_requirements")] = None


class NodeSelector(KubeObject, frozen=True):
    """Terms, ORed."""

    node_selector_terms: Annotated[tuple[NodeSelectorTerm, ...] | None, counted("node_terms")] = None


class PreferredSchedulingTerm(KubeObject, frozen=True):
    """A node preference with a weight of 1 to 100."""

    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(KubeObject, frozen=True):
    """Required and preferred node selection."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: Annotated[tuple[PreferredSchedulingTerm, ...] | None, counted("node_terms")] = (
        None
    )


class PodAffinityTerm(KubeObject, frozen=True):
    """A selection of pods that attract or repel, and the topology within which they do."""

    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: Annotated[tuple[str, ...] | None, counted("namespaces")] = None
    namespace_selector: LabelSelector | None = None


class WeightedPodAffinityTerm(KubeObject, frozen=True):
    """A preferred affinity term with a weight of 1 to 100."""

    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(KubeObject, frozen=True):
    """Affinity or anti-affinity between pods: both have this shape."""

    required_during_scheduling_ignored_during_execution: Annotated[tuple[PodAffinityTerm, ...] | None, counted("pod_terms")] = None
    preferred_during_scheduling_ignored_during_execution: Annotated[tuple[WeightedPodAffinityTerm, ...] | None, counted("pod_terms")] = None


class Affinity(KubeObject, frozen=True):
    """`spec.affinity`."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(KubeObject, frozen=True):
    """One constraint of `spec.topologySpreadConstraints`."""

    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: Annotated[tuple[str, ...] | None, counted("pod_requirements")] = None


# --- pods --------------------------------------------------------------------------------------------------------------------


class Toleration(KubeObject, frozen=True):
    """One entry of `spec.tolerations`; empty key with Exists tolerates everything."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class ContainerPort(KubeObject, frozen=True):
    """A port a container exposes; only host ports matter here."""

    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = ""


class ResourceRequirements(KubeObject, frozen=True):
    """Requests and limits of a container or a pod."""

    requests: Annotated[ResourceList | None, counted("resources")] = None
    limits: ResourceList | None = None


class ClaimUse(KubeObject, frozen=True):
    """An entry of the pod's `spec.resourceClaims` that a container uses."""

    name: str = ""


class ContainerResources(ResourceRequirements, frozen=True):
    """Requests, limits and claims of a container."""

    claims: tuple[ClaimUse, ...] | None = None


class ContainerRestartRule(KubeObject, frozen=True):
    """A rule for the end of a container. Only the action asks for a feature of the node."""

    action: str = ""


class Container(KubeObject, frozen=True):
    """A container and its requests."""

    name: str = ""
    image: str = ""
    ports: Annotated[tuple[ContainerPort, ...] | None, counted("host_ports")] = None
    resources: ContainerResources = ContainerResources()
    restart_policy: str | None = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] | None = None


class SchedulingGate(KubeObject, frozen=True):
    """A named gate that keeps a pod from being tried."""

    name: str = ""


class ImageVolumeSource(KubeObject, frozen=True):
    """A volume that is an image's content; the image counts for locality."""

    reference: str = ""


class ClaimVolumeSource(KubeObject, frozen=True):
    """A volume that a PersistentVolumeClaim provides."""

    claim_name: str = ""
    read_only: bool = False


class GcePersistentDiskSource(KubeObject, frozen=True):
    """A disk of Google Compute Engine."""

    pd_name: str = ""
    read_only: bool = False


class AwsElasticBlockStoreSource(KubeObject, frozen=True):
    """A volume of Amazon EBS."""

    volume_id: str = msgspec.field(default="", name="volumeID")
    read_only: bool = False


class IscsiSource(KubeObject, frozen=True):
    """A disk that an iSCSI target exports."""

    iqn: str = ""
    read_only: bool = False


class RbdSource(KubeObject, frozen=True):
    """An image of a Ceph cluster."""

    monitors: tuple[str, ...] | None = None
    pool: str = "rbd"
    image: str = ""
    read_only: bool = False


class AzureDiskSource(KubeObject, frozen=True):
    """A disk of Azure."""

    disk_name: str = ""
    disk_uri: str = msgspec.field(default="", name="diskURI")
    kind: str | None = None


class AzureFileSource(KubeObject, frozen=True):
    """A file share of Azure; a pod's lies in the pod's namespace, a PersistentVolume's where `secret_namespace` says."""

    share_name: str = ""
    secret_name: str = ""
    secret_namespace: str | None = None


class CinderSource(KubeObject, frozen=True):
    """A volume of OpenStack."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class VsphereSource(KubeObject, frozen=True):
    """A disk of vSphere."""

    volume_path: str = ""


class PortworxSource(KubeObject, frozen=True):
    """A volume of Portworx."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class InlineCsiSource(KubeObject, frozen=True):
    """A volume that a CSI driver makes for one pod, without a claim."""

    driver: str = ""


class EphemeralSource(KubeObject, frozen=True):
    """A volume whose claim is created for the pod and named after it. The requests are in the claim."""


class InTreeSources(KubeObject, frozen=True):
    """The sources of a volume that CSI drivers have taken over; at most one is set."""

    gce_persistent_disk: GcePersistentDiskSource | None = None
    aws_elastic_block_store: AwsElasticBlockStoreSource | None = None
    azure_disk: AzureDiskSource | None = None
    azure_file: AzureFileSource | None = None
    cinder: CinderSource | None = None
    vsphere_volume: VsphereSource | None = None
    portworx_volume: PortworxSource | None = None


class Volume(InTreeSources, frozen=True):
    """A pod's volume, with the sources that placement reads."""

    name: str = ""
    image: ImageVolumeSource | None = None
    persistent_volume_claim: ClaimVolumeSource | None = None
    ephemeral: EphemeralSource | None = None
    csi: InlineCsiSource | None = None
    iscsi: IscsiSource | None = None
    rbd: RbdSource | None = None


class PodResourceClaim(KubeObject, frozen=True):
    """A claim to devices: one that exists, or one that is made for the pod from a template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGroup(KubeObject, frozen=True):
    """The PodGroup of scheduling.k8s.io that a pod belongs to (from 1.36 on)."""

    pod_group_name: str | None = None


class WorkloadReference(KubeObject, frozen=True):
    """The group of a Workload that a pod belongs to (1.35)."""

    name: str = ""
    pod_group: str = ""
    pod_group_replica_key: str = ""


class PodSpec(KubeObject, frozen=True):
    """`spec` of a pod."""

    node_name: str = ""
    scheduler_name: str = "default-scheduler"
    priority: int | None = None
    preemption_policy: str | None = None
    restart_policy: str | None = None
    active_deadline_seconds: int | None = None
    host_network: bool = False
    host_users: bool | None = None
    containers: Annotated[tuple[Container, ...] | None, counted("containers")] = None
    init_containers: Annotated[tuple[Container, ...] | None, counted("containers")] = None
    overhead: Annotated[ResourceList | None, counted("resources")] = None
    resources: ResourceRequirements | None = None
    node_selector: Annotated[Labels | None, counted("node_requirements")] = None
    affinity: Affinity | None = None
    tolerations: Annotated[tuple[Toleration, ...] | None, counted("tolerations")] = None
    topology_spread_constraints: Annotated[tuple[TopologySpreadConstraint, ...] | None, counted("constraints")] = None
    scheduling_gates: tuple[SchedulingGate, ...] | None = None
    resource_claims: Annotated[tuple[PodResourceClaim, ...] | None, counted("claims")] = None
    volumes: Annotated[tuple[Volume, ...] | None, counted("volumes")] = None
    scheduling_group: PodSchedulingGroup | None = None
    workload_ref: WorkloadReference | None = None


class Condition(KubeObject, frozen=True):
    """A status condition of any object; the annotations describe the conditions of a SchedulingProfile."""

    type: Annotated[str, means("What the condition is about.", required=True, minLength=1, maxLength=316)] = ""
    status: Annotated[str, means("Whether it holds.", required=True, enum=["True", "False", "Unknown"])] = ""
    reason: Annotated[str, means("One word for programs.", required=True, maxLength=1024)] = ""
    message: Annotated[str, means("A sentence for people.", required=True, maxLength=32_768)] = ""
    last_transition_time: Annotated[str | None, means("When the status last changed.", required=True, format="date-time")] = None
    observed_generation: Annotated[int | None, counts("The generation that this is about.")] = None


class ContainerStatus(KubeObject, frozen=True):
    """A kubelet's report on a container: the resources that it runs with, and the resources that the node has allocated for it."""

    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList | None = None


class PodResourceClaimStatus(KubeObject, frozen=True):
    """The claim that was created for an entry of `spec.resourceClaims`; None if none was needed."""

    name: str = ""
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(KubeObject, frozen=True):
    """The request of a claim that serves a container's extended resource."""

    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class PodExtendedResourceClaimStatus(KubeObject, frozen=True):
    """The claim that was created for a pod's extended resources."""

    request_mappings: tuple[ContainerExtendedResourceRequest, ...] | None = None
    resource_claim_name: str = ""


class NodeResourceQuantity(KubeObject, frozen=True):
    """An amount of a resource of the node that a claim's devices take."""

    name: str = ""
    quantity: RawQuantity = "0"


class NodeResourceOverhead(KubeObject, frozen=True):
    """The amounts that a pod takes beside a claim's devices, once and for each container with the claim."""

    name: str = ""
    per_pod: RawQuantity | None = None
    per_container: RawQuantity | None = None


class NodeAllocatableClaimStatus(KubeObject, frozen=True):
    """The resources of its node that a pod takes with a claim. 1.36 writes `resources`, and later versions the other two."""

    resource_claim_name: str = ""
    containers: tuple[str, ...] | None = None
    resources: ResourceList | None = None
    mapping: tuple[NodeResourceQuantity, ...] | None = None
    overhead: tuple[NodeResourceOverhead, ...] | None = None


class PodStatus(KubeObject, frozen=True):
    """`status` of a pod; its resources are those of the pod as a whole."""

    phase: str = ""
    nominated_node_name: str = ""
    start_time: str | None = None
    conditions: tuple[Condition, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList | None = None
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] | None = None
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None
    node_allocatable_resource_claim_statuses: tuple[NodeAllocatableClaimStatus, ...] | None = None


class Pod(KubeObject, frozen=True):
    """A pod as the API server serves it."""

    metadata: Annotated[ObjectMeta, Writer.TENANT, counted("nbytes")] = ObjectMeta()
    spec: Annotated[PodSpec, Writer.TENANT, counted("nbytes")] = PodSpec()
    status: Annotated[PodStatus, Writer.KUBELET] = PodStatus()


# --- nodes -------------------------------------------------------------------------------------------------------------------


class Taint(KubeObject, frozen=True):
    """A taint; frozen, so that sets of taints can be dictionary-encoded."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(KubeObject, frozen=True):
    """`spec` of a node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] | None = None


class ContainerImage(KubeObject, frozen=True):
    """An image present on a node, under all its names."""

    names: tuple[str, ...] | None = None
    size_bytes: int = 0


class NodeStatus(KubeObject, frozen=True):
    """`status` of a node."""

    allocatable: ResourceList | None = None
    capacity: ResourceList | None = None
    images: tuple[ContainerImage, ...] | None = None
    conditions: tuple[Condition, ...] | None = None
    declared_features: tuple[str, ...] | None = None


class Node(KubeObject, frozen=True):
    """A node as the API server serves it."""

    metadata: Annotated[ObjectMeta, Writer.KUBELET] = ObjectMeta()
    spec: Annotated[NodeSpec, Writer.OWNER] = NodeSpec()
    status: Annotated[NodeStatus, Writer.KUBELET] = NodeStatus()
