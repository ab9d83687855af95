"""How much a pod asks the scheduler to look at, counted once from its spec, and the most of each that is decided.

What a decision costs follows from these counts and the number of nodes, never from one count times another. An API server lets a pod of
1.5 MiB name tens of thousands of each; a pod beyond a limit is refused with a sentence that names the field, the number and the limit
(`PodExtent.excess`). The limits are far above what pods have in practice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, Protocol

import msgspec

from placewright.api.objects import (
    LabelSelector,
    NodeAffinity,
    NodeSelectorTerm,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    TopologySpreadConstraint,
)

#: Up to so many of each are not counted one by one: nearly all pods that have no affinity and no spread constraints.
_FEW: Final = 8
#: Things looked at on each node for any pod: the columns of filters and scores that every pod has.
_COLUMNS_OF_ANY_POD: Final = 16
#: Columns that a spread constraint or a term of pod affinity is looked up in: its label, its pods, its verdict and its points.
_COLUMNS_OF_A_TERM: Final = 8
#: Distinct groups of pods on a node, each of which a requirement on pods' labels may be compared with.
_GROUPS_ON_A_NODE: Final = 4
#: Devices of a node that a claim may be compared with.
_DEVICES_ON_A_NODE: Final = 32
#: Looks at a node that a volume takes: zone, limits, restrictions, reach.
_LOOKS_FOR_A_VOLUME: Final = 4


class PodExtent(msgspec.Struct, frozen=True, gc=False):
    """Counts of what a pod's spec holds.

    Attributes:
        constraints: topology spread constraints.
        pod_terms: terms of pod affinity and anti-affinity, required and preferred.
        pod_requirements, pod_values: what these and the constraints demand of labels (of pods and of namespaces), and the values listed.
        namespaces: named by terms of pod affinity.
        node_terms: terms of node affinity, required and preferred.
        node_requirements, node_values: what these and the node selector demand of nodes, and the values listed.
        tolerations, containers, claims, labels: in number; init containers are containers.
        resources: names of resources that are requested.
        host_ports: ports claimed on the node.
        volumes: those that claims or disks provide.
        excess: a sentence about the first limit that the pod is beyond; empty for a pod within all of them.
    """

    constraints: int = 0
    pod_terms: int = 0
    pod_requirements: int = 0
    pod_values: int = 0
    namespaces: int = 0
    node_terms: int = 0
    node_requirements: int = 0
    node_values: int = 0
    tolerations: int = 0
    containers: int = 0
    claims: int = 0
    labels: int = 0
    resources: int = 0
    host_ports: int = 0
    volumes: int = 0
    excess: str = ""


class ExtentLimit(NamedTuple):
    """The most of one count.

    Attributes:
        counted: the name of the count in `PodExtent`.
        field: where a pod says it.
        things: what is counted, in the plural.
    """

    counted: str
    field: str
    things: str
    most: int


_POD_SELECTORS: Final = "spec.affinity.podAffinity, spec.affinity.podAntiAffinity and spec.topologySpreadConstraints"
_POD_AFFINITY: Final = "spec.affinity.podAffinity and spec.affinity.podAntiAffinity"
_NODE_SELECTORS: Final = "spec.affinity.nodeAffinity and spec.nodeSelector"

#: In the order in which they are looked at.
EXTENT_LIMITS: Final = (
    ExtentLimit("constraints", "spec.topologySpreadConstraints", "constraints", 64),
    ExtentLimit("pod_terms", _POD_AFFINITY, "terms", 64),
    ExtentLimit("pod_requirements", _POD_SELECTORS, "requirements on labels", 512),
    ExtentLimit("pod_values", _POD_SELECTORS, "values of labels", 8_192),
    ExtentLimit("namespaces", _POD_AFFINITY, "namespaces", 2_048),
    ExtentLimit("node_terms", "spec.affinity.nodeAffinity", "terms", 2_048),
    ExtentLimit("node_requirements", _NODE_SELECTORS, "requirements on nodes", 4_096),
    ExtentLimit("node_values", _NODE_SELECTORS, "values", 16_384),
    ExtentLimit("tolerations", "spec.tolerations", "tolerations", 1_024),
    ExtentLimit("containers", "spec.containers and spec.initContainers", "containers", 1_024),
    ExtentLimit("claims", "spec.resourceClaims", "claims", 256),
    ExtentLimit("labels", "metadata.labels", "labels", 2_048),
    ExtentLimit("resources", "resources.requests", "names of resources", 256),
    ExtentLimit("host_ports", "hostPort", "host ports", 2_048),
    ExtentLimit("volumes", "spec.volumes", "volumes from claims or disks", 256),
)

#: Of nearly all pods: nothing that is worth counting.
SMALL: Final = PodExtent(containers=1, resources=2)


class HasExtent(Protocol):
    """A pod whose spec was counted."""

    @property
    def extent(self) -> PodExtent:
        """The counts."""


def estimated_work(pod: HasExtent, nodes: int) -> int:
    """How many things a decision about the pod looks at, about: on each of so many nodes for nearly all pods some 20.

    It counts and never measures, so it is the same on every machine. It is linear in each count and in the number of nodes.
    """
    extent = pod.extent
    if extent is SMALL:
        return nodes * _COLUMNS_OF_ANY_POD
    on_each_node = (
        _COLUMNS_OF_ANY_POD
        + _COLUMNS_OF_A_TERM * (extent.constraints + extent.pod_terms)
        + _GROUPS_ON_A_NODE * extent.pod_requirements
        + extent.node_terms
        + extent.node_requirements
        + extent.resources
        + extent.host_ports
        + _LOOKS_FOR_A_VOLUME * extent.volumes
        + _DEVICES_ON_A_NODE * extent.claims
    )
    once = extent.pod_values + extent.node_values + extent.namespaces + extent.tolerations + extent.containers + extent.labels
    return nodes * on_each_node + once


def extent_of(pod: Pod, resources: int, host_ports: int, volumes: int) -> PodExtent:
    """The counts of a pod that requests so many resources and claims so many host ports and volumes from storage."""
    spec, labels = pod.spec, pod.metadata.labels
    if resources <= _FEW and host_ports <= _FEW and volumes <= _FEW and _is_small(spec) and (labels is None or len(labels) <= _FEW * _FEW):
        return SMALL
    pods, nodes = _Tally(), _Tally()
    pods.count_pods(spec)
    nodes.count_nodes(spec)
    counted = PodExtent(
        constraints=len(spec.topology_spread_constraints or ()),
        pod_terms=pods.terms,
        pod_requirements=pods.requirements,
        pod_values=pods.values,
        namespaces=pods.namespaces,
        node_terms=nodes.terms,
        node_requirements=nodes.requirements,
        node_values=nodes.values,
        tolerations=len(spec.tolerations or ()),
        containers=len(spec.containers or ()) + len(spec.init_containers or ()),
        claims=len(spec.resource_claims or ()),
        labels=len(labels or ()),
        resources=resources,
        host_ports=host_ports,
        volumes=volumes,
    )
    beyond = _beyond(counted)
    return msgspec.structs.replace(counted, excess=beyond) if beyond else counted


def _is_small(spec: PodSpec) -> bool:
    return (
        spec.affinity is None
        and not spec.topology_spread_constraints
        and (spec.tolerations is None or len(spec.tolerations) <= _FEW)
        and (spec.node_selector is None or len(spec.node_selector) <= _FEW)
        and (spec.containers is None or len(spec.containers) <= _FEW)
        and (spec.init_containers is None or len(spec.init_containers) <= _FEW)
        and spec.resource_claims is None
    )


def _beyond(counted: PodExtent) -> str:
    for limit in EXTENT_LIMITS:
        number = getattr(counted, limit.counted)
        if number > limit.most:
            return f"{limit.field}: {number} {limit.things}; this scheduler places pods with at most {limit.most}"
    return ""


class _Tally:
    """Terms, and what they demand, added up."""

    def __init__(self) -> None:
        self.terms = self.requirements = self.values = self.namespaces = 0

    def count_pods(self, spec: PodSpec) -> None:
        """What the pod says of other pods."""
        affinity = spec.affinity
        for term in (*_pod_terms(affinity.pod_affinity), *_pod_terms(affinity.pod_anti_affinity)) if affinity else ():
            self.terms += 1
            self.namespaces += len(term.namespaces or ())
            self._count_selector(term.label_selector)
            self._count_selector(term.namespace_selector)
        for constraint in spec.topology_spread_constraints or ():
            self._count_constraint(constraint)

    def count_nodes(self, spec: PodSpec) -> None:
        """What the pod says of nodes."""
        pairs = len(spec.node_selector or ())
        self.requirements += pairs
        self.values += pairs
        for term in _node_terms(spec.affinity.node_affinity if spec.affinity else None):
            self.terms += 1
            for requirements in (term.match_expressions, term.match_fields):
                self.requirements += len(requirements or ())
                self.values += sum(len(each.values or ()) for each in requirements or ())

    def _count_constraint(self, constraint: TopologySpreadConstraint) -> None:
        self.requirements += len(constraint.match_label_keys or ())
        self._count_selector(constraint.label_selector)

    def _count_selector(self, selector: LabelSelector | None) -> None:
        if selector is None:
            return
        pairs = len(selector.match_labels or ())
        self.requirements += pairs
        self.values += pairs
        if selector.match_expressions:
            self.requirements += len(selector.match_expressions)
            self.values += sum(len(each.values or ()) for each in selector.match_expressions)


def _pod_terms(side: PodAffinity | None) -> Sequence[PodAffinityTerm]:
    if side is None:
        return ()
    preferred = [weighted.pod_affinity_term for weighted in side.preferred_during_scheduling_ignored_during_execution or ()]
    return (*(side.required_during_scheduling_ignored_during_execution or ()), *preferred)


def _node_terms(affinity: NodeAffinity | None) -> Iterator[NodeSelectorTerm]:
    if affinity is None:
        return
    required = affinity.required_during_scheduling_ignored_during_execution
    yield from (required.node_selector_terms or ()) if required else ()
    for weighted in affinity.preferred_during_scheduling_ignored_during_execution or ():
        yield weighted.preference

