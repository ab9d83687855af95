"""Counts the parts of a pod's spec that a decision reads, and holds the most of each that is decided.

The cost of a decision follows from these counts and the number of nodes. It never grows with the product of two counts. An API server
accepts a pod of 1.5 MiB with tens of thousands of each. A pod beyond a limit is refused. A sentence names the field, the number and the
limit (`PodExtent.excess`). The limits are far above the counts of real pods.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from placewright.api.objects import (
    Affinity,
    NodeAffinity,
    NodeSelectorTerm,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    Requirement,
)

#: Number of each part that is not counted. It covers nearly all pods without affinity and spread constraints.
_FEW: Final = 8
#: Bytes of metadata and spec that are not counted; pods with long annotations or many volumes have more.
_FEW_BYTES: Final = 16_384
#: Bytes of a pod that take as long as a look: they are encoded a few times, and never compared.
_BYTES_OF_A_LOOK: Final = 1_024
#: Looks at each node for any pod: the columns of filters and scores that every pod has.
_COLUMNS_OF_ANY_POD: Final = 16
#: Looks at each node for a spread constraint or a term of pod affinity: the columns of its label, pods, verdict and points.
_COLUMNS_OF_A_TERM: Final = 8
#: Distinct groups of pods on a node; a requirement on pods' labels may be compared with each.
_GROUPS_ON_A_NODE: Final = 4
#: Devices of a node; a claim may be compared with each.
_DEVICES_ON_A_NODE: Final = 32
#: Looks at each node for a volume: zone, limits, restrictions, reach.
_LOOKS_FOR_A_VOLUME: Final = 4


class PodExtent(msgspec.Struct, frozen=True, gc=False):
    """Counts of the parts of a pod's spec.

    Attributes:
        constraints: topology spread constraints.
        pod_terms: terms of pod affinity and anti-affinity, required and preferred.
        pod_requirements, pod_values: requirements on labels of pods and namespaces in these terms and constraints, and their values.
        namespaces: named by terms of pod affinity.
        node_terms: terms of node affinity, required and preferred.
        node_requirements, node_values: requirements on nodes in these terms and the node selector, and their values.
        tolerations, containers, claims, labels: numbers of each; init containers are containers.
        resources: names of resources that are requested.
        host_ports: ports claimed on the node.
        volumes: provided by claims or disks.
        nbytes: bytes of the JSON of metadata and spec, without fields that the scheduler does not read.
        excess: a sentence about the first limit that the pod exceeds; empty for a pod within all limits.
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
    nbytes: int = 0
    excess: str = ""


class ExtentLimit(NamedTuple):
    """The largest count of one part.

    Attributes:
        counted: name of the count in `PodExtent`.
        field: path in the pod.
        things: the parts, in the plural.
        most: the limit.
        looks: looks at each node for one of them; 0 if one look is enough for all nodes.
    """

    counted: str
    field: str
    things: str
    most: int
    looks: int = 0

    def complaint(self, number: int) -> str:
        """Say that a count is beyond the limit.

        Returns:
            A sentence; "" for a count within the limit.
        """
        if number <= self.most:
            return ""
        return f"{self.field}: {number} {self.things}; this scheduler places pods with at most {self.most}"


_POD_SELECTORS: Final = "spec.affinity.podAffinity, spec.affinity.podAntiAffinity and spec.topologySpreadConstraints"
_POD_AFFINITY: Final = "spec.affinity.podAffinity and spec.affinity.podAntiAffinity"
_NODE_SELECTORS: Final = "spec.affinity.nodeAffinity and spec.nodeSelector"

_PARTS: Final = (
    ExtentLimit("constraints", "spec.topologySpreadConstraints", "constraints", 64, _COLUMNS_OF_A_TERM),
    ExtentLimit("pod_terms", _POD_AFFINITY, "terms", 64, _COLUMNS_OF_A_TERM),
    ExtentLimit("pod_requirements", _POD_SELECTORS, "requirements on labels", 512, _GROUPS_ON_A_NODE),
    ExtentLimit("pod_values", _POD_SELECTORS, "values of labels", 8_192),
    ExtentLimit("namespaces", _POD_AFFINITY, "namespaces", 2_048),
    ExtentLimit("node_terms", "spec.affinity.nodeAffinity", "terms", 2_048, 1),
    ExtentLimit("node_requirements", _NODE_SELECTORS, "requirements on nodes", 4_096, 1),
    ExtentLimit("node_values", _NODE_SELECTORS, "values", 16_384),
    ExtentLimit("tolerations", "spec.tolerations", "tolerations", 1_024),
    ExtentLimit("containers", "spec.containers and spec.initContainers", "containers", 1_024),
    ExtentLimit("claims", "spec.resourceClaims", "claims", 256, _DEVICES_ON_A_NODE),
    ExtentLimit("labels", "metadata.labels", "labels", 2_048),
    ExtentLimit("resources", "resources.requests", "names of resources", 256, 1),
    ExtentLimit("host_ports", "hostPort", "host ports", 2_048, 1),
    ExtentLimit("volumes", "spec.volumes", "volumes from claims or disks", 256, _LOOKS_FOR_A_VOLUME),
)
#: Limits, in the order in which they are checked.
EXTENT_LIMITS: Final = (*_PARTS, ExtentLimit("nbytes", "metadata and spec", "bytes of JSON", 524_288))
#: The selectors of the claims are not in the pod; VolumeBinding counts those of claims without a volume.
CLAIM_SELECTORS: Final = ExtentLimit("", "spec.volumes", "requirements on labels in the selectors of its claims", 512)
CLAIM_VALUES: Final = ExtentLimit("", "spec.volumes", "values of labels in the selectors of its claims", 8_192)

_encode: Final = msgspec.json.Encoder().encode

#: The extent of nearly all pods, in which nothing is worth counting.
SMALL: Final = PodExtent(containers=1, resources=2)


def estimated_work(extent: PodExtent, nodes: int) -> int:
    """Estimate the number of looks that a decision takes; about 20 a node for nearly all pods.

    It counts and never measures, so it is the same on every machine. It is linear in each count and in the number of nodes.

    Args:
        extent: counts of the pod that is to be decided.
        nodes: number of nodes.
    """
    if extent is SMALL:
        return nodes * _COLUMNS_OF_ANY_POD
    counts: list[tuple[int, int]] = [(getattr(extent, part.counted), part.looks) for part in _PARTS]
    on_each_node = _COLUMNS_OF_ANY_POD + sum(number * looks for number, looks in counts)
    once = extent.nbytes // _BYTES_OF_A_LOOK + sum(number for number, looks in counts if not looks)
    return nodes * on_each_node + once


def extent_of(pod: Pod, resources: int, host_ports: int, volumes: int) -> PodExtent:
    """Count the parts of a pod.

    Returns:
        The counts; `SMALL` for nearly all pods.
    """
    spec, labels = pod.spec, pod.metadata.labels
    nbytes = len(_encode(pod.metadata)) + len(_encode(spec))
    if (
        nbytes <= _FEW_BYTES
        and resources <= _FEW
        and host_ports <= _FEW
        and volumes <= _FEW
        and _is_small(spec)
        and (labels is None or len(labels) <= _FEW * _FEW)
    ):
        return SMALL
    affinity, constraints = spec.affinity or Affinity(), spec.topology_spread_constraints or ()
    pod_terms = [*_pod_terms(affinity.pod_affinity), *_pod_terms(affinity.pod_anti_affinity)]
    selected_by = [each for term in pod_terms for each in (term.label_selector, term.namespace_selector)]
    selectors = [each for each in (*selected_by, *(constraint.label_selector for constraint in constraints)) if each is not None]
    on_pods = [each for selector in selectors for each in selector.match_expressions or ()]
    pod_pairs = sum(len(selector.match_labels or ()) for selector in selectors)
    node_terms = list(_node_terms(affinity.node_affinity))
    on_nodes = [each for term in node_terms for each in (*(term.match_expressions or ()), *(term.match_fields or ()))]
    node_pairs = len(spec.node_selector or ())
    counted = PodExtent(
        constraints=len(constraints),
        pod_terms=len(pod_terms),
        pod_requirements=pod_pairs + len(on_pods) + sum(len(each.match_label_keys or ()) for each in constraints),
        pod_values=pod_pairs + _values(on_pods),
        namespaces=sum(len(term.namespaces or ()) for term in pod_terms),
        node_terms=len(node_terms),
        node_requirements=node_pairs + len(on_nodes),
        node_values=node_pairs + _values(on_nodes),
        tolerations=len(spec.tolerations or ()),
        containers=len(spec.containers or ()) + len(spec.init_containers or ()),
        claims=len(spec.resource_claims or ()),
        labels=len(labels or ()),
        resources=resources,
        host_ports=host_ports,
        volumes=volumes,
        nbytes=nbytes,
    )
    beyond = next(filter(None, (limit.complaint(getattr(counted, limit.counted)) for limit in EXTENT_LIMITS)), "")
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


def _values(requirements: Sequence[Requirement]) -> int:
    return sum(len(each.values or ()) for each in requirements)


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
