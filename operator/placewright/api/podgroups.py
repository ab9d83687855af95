"""Groups of pods that are placed all or none: the four ways to declare one, and their common meaning (`PodGroup`).

PodGroups of `scheduling.k8s.io` may be the leaves of a tree of CompositePodGroups (KEP-6012), which are groups of groups.

The four are: `scheduling.x-k8s.io/v1alpha1` PodGroup (scheduler-plugins; a label names it), `scheduling.k8s.io` PodGroup (v1alpha2 of
Kubernetes 1.36, v1alpha3 and v1beta1 of 1.37; `spec.schedulingGroup` names it), `scheduling.k8s.io/v1alpha1` Workload (1.35;
`spec.workloadRef` names one of its groups), and `scheduling.volcano.sh/v1beta1` PodGroup (an annotation names it). The rules of
`api.objects` hold.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import Annotated, Final, NamedTuple

from placewright.api.bad_input import shown
from placewright.api.objects import LONGEST_NAME, Condition, KubeObject, Labels, Pod, PodResourceClaim, ResourceList, TenantObject
from placewright.api.writers import Writer

COSCHEDULING_GROUP: Final = "scheduling.x-k8s.io"
NATIVE_GROUP: Final = "scheduling.k8s.io"
VOLCANO_GROUP: Final = "scheduling.volcano.sh"
KIND: Final = "PodGroup"
#: Label of members with the name of their group.
GROUP_LABEL: Final = "scheduling.x-k8s.io/pod-group"
VOLCANO_GROUP_ANNOTATION: Final = "scheduling.k8s.io/group-name"
#: Annotations of groups without a field for it. All members go into one domain of this node label, which they require or prefer.
TOPOLOGY_KEY: Final = "placewright.dev/topology-key"
TOPOLOGY_MODE: Final = "placewright.dev/topology-mode"
REQUIRED: Final = "required"
PREFERRED: Final = "preferred"


class Form(enum.StrEnum):
    """The way in which a group is declared; the value is the kind as messages name it."""

    COSCHEDULING = "PodGroup.scheduling.x-k8s.io"
    NATIVE = "PodGroup.scheduling.k8s.io"
    WORKLOAD = "Workload.scheduling.k8s.io"
    VOLCANO = "PodGroup.scheduling.volcano.sh"
    #: A group of groups, which no pod names.
    COMPOSITE = "CompositePodGroup.scheduling.k8s.io"


class GroupRef(NamedTuple):
    """A group as its members name it. Of a Workload the name is `workload/group` or `workload/group/replica`."""

    form: Form
    namespace: str
    name: str

    @property
    def object_name(self) -> str:
        """Name of the object that declares the group."""
        return self.name.split("/", 1)[0] if self.form is Form.WORKLOAD else self.name

    @property
    def object_in_words(self) -> str:
        """The object, for people. An annotation may hold any text, so the name is escaped if it is no name."""
        return f"{self.form} {self.namespace}/{_in_words(self.object_name)}"

    @property
    def name_in_words(self) -> str:
        """The group's namespace and name, for people."""
        return f"{self.namespace}/{_in_words(self.name)}"

    def __str__(self) -> str:
        return f"{self.form} {self.name_in_words}"


def _in_words(name: str) -> str:
    return name if name.isprintable() and len(name) <= LONGEST_NAME else shown(name)


class Disruption(enum.StrEnum):
    """The part of a group that may be evicted at a time; the values are those of `spec.disruptionMode` of Kubernetes 1.36."""

    POD = "Pod"
    POD_GROUP = "PodGroup"


@dataclass(frozen=True, slots=True)
class PodGroup:
    """The demands of a group, in whichever form it was declared.

    Attributes:
        ref: the group as its members name it.
        uid, resource_version: identity and version of the object that declares it.
        min_member: members that are placed together, or none is; below 1 the object is wrong (`cluster.podgrouprules` reports it).
            The members of a composite group are its child groups.
        timeout_seconds: seconds that its members may wait for each other; None if the object sets none.
        topology_key: node label; all members go into one of its domains. Empty for none.
        topology_required: True when they wait for such a domain, False when they only prefer it.
        created: creation time of the object, RFC 3339 in UTC, to the second.
        basic: its members belong together, but are placed one by one (the native form's policy `basic`).
        disruption: the part that may be evicted at a time; None if the object sets none.
        claims: claims to devices that are reserved for the group. Members name them in the same way.
        priority: the group's priority, which precedes its members' when groups and pods are evicted for each other; None if it has none.
        placement_scored: True when kube-scheduler's placement scores choose the domain, False when the members' node scores do.
        preemption_policy: `Never` or `PreemptLowerPriority`, which precedes its members'; empty if the object sets none.
        parent: the composite group that it is a child of; None for a group at the root of its tree, as nearly all are.
    """

    ref: GroupRef
    uid: str = ""
    min_member: int = 1
    timeout_seconds: int | None = None
    topology_key: str = ""
    topology_required: bool = True
    created: str = ""
    resource_version: str = ""
    basic: bool = False
    disruption: Disruption | None = None
    priority: int | None = None
    placement_scored: bool = False
    preemption_policy: str = ""
    claims: tuple[PodResourceClaim, ...] = ()
    parent: GroupRef | None = None

    @property
    def goes_apart(self) -> bool:
        """True when its members may be evicted one by one, however few remain."""
        if self.disruption is None:
            return self.basic or self.min_member <= 1
        return self.disruption is Disruption.POD


# --- scheduling.x-k8s.io -------------------------------------------------------------------------------------------------------


class CoschedulingSpec(KubeObject, frozen=True):
    """`spec` of scheduler-plugins' PodGroup."""

    min_member: int = 0
    schedule_timeout_seconds: int | None = None
    min_resources: ResourceList | None = None


class CoschedulingStatus(KubeObject, frozen=True):
    """`status` of scheduler-plugins' PodGroup; times are RFC 3339, or empty."""

    phase: str = ""
    occupied_by: str = ""
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    schedule_start_time: str | None = None


class CoschedulingPodGroup(TenantObject, frozen=True):
    """A PodGroup of scheduler-plugins."""

    spec: Annotated[CoschedulingSpec, Writer.TENANT] = CoschedulingSpec()
    status: Annotated[CoschedulingStatus, Writer.CONTROL_PLANE] = CoschedulingStatus()


# --- scheduling.k8s.io ---------------------------------------------------------------------------------------------------------


class BasicPolicy(KubeObject, frozen=True):
    """Pods that belong together and are placed one by one."""


class GangPolicy(KubeObject, frozen=True):
    """Pods that are placed together, as many as `min_count` or none."""

    min_count: int = 0


class GroupPolicy(KubeObject, frozen=True):
    """The policy of a group; exactly one field is set."""

    basic: BasicPolicy | None = None
    gang: GangPolicy | None = None


class TopologyConstraint(KubeObject, frozen=True):
    """One domain of a node label for all members. `topology_key` is the spelling of 1.36 before its release."""

    key: str = ""
    topology_key: str = ""


class GroupConstraints(KubeObject, frozen=True):
    """At most one topology. `topology_constraints` is the spelling of 1.36 before its release."""

    topology: tuple[TopologyConstraint, ...] | None = None
    topology_constraints: tuple[TopologyConstraint, ...] | None = None


class DisruptionMode(KubeObject, frozen=True):
    """The part of a group that may be evicted at a time, as v1alpha3 and later write it; exactly one field is set."""

    single: dict[str, object] | None = None
    all: dict[str, object] | None = None


class NativeSpec(KubeObject, frozen=True):
    """`spec` of Kubernetes' own PodGroup; `disruption_mode` is a word in v1alpha2."""

    scheduling_policy: GroupPolicy = GroupPolicy()
    scheduling_constraints: GroupConstraints | None = None
    disruption_mode: str | DisruptionMode | None = None
    priority: int | None = None
    preemption_policy: str | None = None
    resource_claims: tuple[PodResourceClaim, ...] | None = None
    parent_composite_pod_group_name: str | None = None


class NativeStatus(KubeObject, frozen=True):
    """`status` of Kubernetes' own PodGroup."""

    conditions: tuple[Condition, ...] | None = None


class NativePodGroup(TenantObject, frozen=True):
    """A PodGroup of Kubernetes itself."""

    spec: Annotated[NativeSpec, Writer.TENANT] = NativeSpec()
    status: Annotated[NativeStatus, Writer.CONTROL_PLANE] = NativeStatus()


class CompositeGangPolicy(KubeObject, frozen=True):
    """Child groups that are placed together, as many as `min_group_count` or none."""

    min_group_count: int = 0


class CompositePolicy(KubeObject, frozen=True):
    """The policy of a composite group; exactly one field is set."""

    basic: BasicPolicy | None = None
    gang: CompositeGangPolicy | None = None


class CompositeSpec(KubeObject, frozen=True):
    """`spec` of a CompositePodGroup."""

    scheduling_policy: CompositePolicy = CompositePolicy()
    scheduling_constraints: GroupConstraints | None = None
    disruption_mode: DisruptionMode | None = None
    priority: int | None = None
    preemption_policy: str | None = None
    parent_composite_pod_group_name: str | None = None


class CompositePodGroup(TenantObject, frozen=True):
    """A group of PodGroups and of further composite groups, from Kubernetes 1.37 on."""

    spec: Annotated[CompositeSpec, Writer.TENANT] = CompositeSpec()
    status: Annotated[NativeStatus, Writer.CONTROL_PLANE] = NativeStatus()


class WorkloadPodGroup(KubeObject, frozen=True):
    """One group of a Workload of 1.35."""

    name: str = ""
    policy: GroupPolicy = GroupPolicy()


class WorkloadSpec(KubeObject, frozen=True):
    """`spec` of a Workload of 1.35."""

    pod_groups: tuple[WorkloadPodGroup, ...] | None = None


class Workload(TenantObject, frozen=True):
    """A Workload of 1.35, which holds its groups. Workloads of later versions only hold templates of PodGroups, and are not read."""

    spec: Annotated[WorkloadSpec, Writer.TENANT] = WorkloadSpec()


# --- scheduling.volcano.sh -----------------------------------------------------------------------------------------------------


class VolcanoSpec(KubeObject, frozen=True):
    """`spec` of Volcano's PodGroup."""

    min_member: int = 0


class VolcanoPodGroup(TenantObject, frozen=True):
    """A PodGroup of Volcano."""

    spec: Annotated[VolcanoSpec, Writer.TENANT] = VolcanoSpec()


# --- their common meaning ------------------------------------------------------------------------------------------------------

_NOTHING: Final[Labels] = {}
GroupObject = CoschedulingPodGroup | NativePodGroup | Workload | VolcanoPodGroup | CompositePodGroup
#: The kinds called PodGroup, by API group. The others are missing: each is the only kind of its name.
POD_GROUPS: Final[dict[str, type[GroupObject]]] = {
    COSCHEDULING_GROUP: CoschedulingPodGroup,
    NATIVE_GROUP: NativePodGroup,
    VOLCANO_GROUP: VolcanoPodGroup,
}
FORM_OF: Final[dict[type[GroupObject], Form]] = {
    CoschedulingPodGroup: Form.COSCHEDULING,
    NativePodGroup: Form.NATIVE,
    Workload: Form.WORKLOAD,
    VolcanoPodGroup: Form.VOLCANO,
    CompositePodGroup: Form.COMPOSITE,
}


def group_of(pod: Pod) -> GroupRef | None:
    """Find the group that a pod names. Kubernetes' own field precedes the label, and the label precedes the annotation.

    Returns:
        The group; None for a pod without one.
    """
    meta, spec = pod.metadata, pod.spec
    if spec.scheduling_group is not None and spec.scheduling_group.pod_group_name:
        return GroupRef(Form.NATIVE, meta.namespace, spec.scheduling_group.pod_group_name)
    if spec.workload_ref is not None:
        ref = spec.workload_ref
        return GroupRef(Form.WORKLOAD, meta.namespace, "/".join(filter(None, (ref.name, ref.pod_group, ref.pod_group_replica_key))))
    if name := (meta.labels or _NOTHING).get(GROUP_LABEL):
        return GroupRef(Form.COSCHEDULING, meta.namespace, name)
    if name := (meta.annotations or _NOTHING).get(VOLCANO_GROUP_ANNOTATION):
        return GroupRef(Form.VOLCANO, meta.namespace, name)
    return None


def parent_of(item: NativePodGroup | CompositePodGroup) -> GroupRef | None:
    """Find the composite group that a group is a child of.

    Returns:
        The parent, whether it exists or not; None for the root of a tree.
    """
    name = item.spec.parent_composite_pod_group_name
    return GroupRef(Form.COMPOSITE, item.metadata.namespace, name) if name else None


def declares(item: GroupObject, ref: GroupRef) -> bool:
    """Return whether an object declares a group. Hints ask this about events of group objects."""
    meta = item.metadata
    return FORM_OF[type(item)] is ref.form and meta.name == ref.object_name and meta.namespace == ref.namespace


def pod_group_of(item: GroupObject, ref: GroupRef) -> PodGroup | None:
    """Read the demands of a group from its object.

    Returns:
        The group; None when a Workload has no group of that name.
    """
    meta = item.metadata
    annotations = meta.annotations or _NOTHING
    plain = PodGroup(
        ref, meta.uid, topology_key=annotations.get(TOPOLOGY_KEY, ""), topology_required=annotations.get(TOPOLOGY_MODE) != PREFERRED,
        created=meta.creation_timestamp or "", resource_version=meta.resource_version,
    )  # fmt: skip
    match item:
        case CoschedulingPodGroup(spec=spec):
            return replace(plain, min_member=spec.min_member, timeout_seconds=spec.schedule_timeout_seconds)
        case VolcanoPodGroup(spec=spec):
            return replace(plain, min_member=spec.min_member)
        case NativePodGroup(spec=spec):
            told = replace(plain, disruption=_disruption(spec.disruption_mode), priority=spec.priority, parent=parent_of(item))
            told = replace(told, preemption_policy=spec.preemption_policy or "", claims=spec.resource_claims or ())
            return _constrained(_by_policy(told, spec.scheduling_policy), spec.scheduling_constraints)
        case CompositePodGroup(spec=spec):
            told = replace(plain, disruption=_disruption(spec.disruption_mode), priority=spec.priority, parent=parent_of(item))
            gang, basic = spec.scheduling_policy.gang, spec.scheduling_policy.basic is not None
            least = int(basic) if gang is None else gang.min_group_count
            return _constrained(replace(told, min_member=least, basic=basic and gang is None), spec.scheduling_constraints)
        case Workload(spec=spec):
            name = ref.name.split("/")[1:2]
            policies = [group.policy for group in spec.pod_groups or () if [group.name] == name]
            return _by_policy(plain, policies[0]) if policies else None


def _by_policy(pod_group: PodGroup, policy: GroupPolicy) -> PodGroup:
    if policy.gang is not None:
        return replace(pod_group, min_member=policy.gang.min_count)
    return replace(pod_group, min_member=0 if policy.basic is None else 1, basic=policy.basic is not None)


def _disruption(mode: str | DisruptionMode | None) -> Disruption | None:
    if isinstance(mode, DisruptionMode):
        if mode.all is not None:
            return Disruption.POD_GROUP
        return None if mode.single is None else Disruption.POD
    return Disruption(mode) if mode in tuple(Disruption) else None


def _constrained(pod_group: PodGroup, constraints: GroupConstraints | None) -> PodGroup:
    """Apply Kubernetes' own constraint. It is always required, and precedes our annotation.

    The members of a basic group choose a domain together. So such a group is decided like a gang of one.
    """
    asked = constraints and (constraints.topology or constraints.topology_constraints)
    if not asked:
        return pod_group
    key = asked[0].key or asked[0].topology_key
    return replace(pod_group, topology_key=key, topology_required=True, placement_scored=True, basic=False)
