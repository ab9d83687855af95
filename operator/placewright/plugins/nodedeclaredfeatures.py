"""NodeDeclaredFeatures: the kubelet must have the features that the pod needs. Implements PreFilter, Filter.

A node declares in `status.declaredFeatures` which newer features its kubelet has. The features that a pod needs follow from its spec. The
rules are those of Kubernetes 1.36 (component-helpers `nodedeclaredfeatures`). Kubernetes has further features that matter only to updates
of running pods; placing a pod never needs them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from placewright.api.objects import Node, PodSpec
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.events import Action, ClusterEventWithHint, EventResource, event_with_hint
from placewright.framework.filters import NOTHING_TO_CHECK, ConstantReasonFilter
from placewright.framework.interface import BoolColumn, CycleState, PreFilterPlugin, PreFilterResult, Reads, Rows
from placewright.framework.status import unresolvable
from placewright.plugins.shared.hints import came_to_suit, own_change

#: The end of a container may restart all containers of its pod.
RESTART_ALL_CONTAINERS: Final = "RestartAllContainersOnContainerExits"
#: The pod has its own user namespace on the host's network.
USER_NAMESPACE_ON_HOST_NETWORK: Final = "UserNamespacesHostNetworkSupport"

_NOTHING: Final[frozenset[str]] = frozenset()


class NodeDeclaredFeatures(ConstantReasonFilter, PreFilterPlugin):
    """Rejects nodes that do not declare every feature that the pod needs."""

    name = "NodeDeclaredFeatures"
    reads = Reads.NODE
    rejection = unresolvable("node(s) didn't match Pod's required features")

    def sign(self, pod: PodInfo) -> Hashable:
        """Sign the pod by the features that it needs."""
        return required_features(pod.pod.spec)

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> PreFilterResult:
        """Skip pods that need none, which are nearly all."""
        return PreFilterResult() if required_features(pod.pod.spec) else NOTHING_TO_CHECK

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        """Allow rows whose nodes declare all of them."""
        return cluster.declared_features.where(rows, required_features(pod.pod.spec).issubset)

    def events(self) -> Sequence[ClusterEventWithHint]:
        """Declare nodes that now have what the pod needs, and changes of the pod's own need."""
        return (
            event_with_hint(EventResource.NODE, Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE, came_to_suit(Node, _is_able)),
            own_change(Action.UPDATE, _needs_others),
        )


def required_features(spec: PodSpec) -> frozenset[str]:
    """Return the features that a kubelet must have to run such a pod."""
    restarts_all = _restarts_all(spec)
    own_users = spec.host_network and spec.host_users is False
    if not (restarts_all or own_users):
        return _NOTHING
    found = ((RESTART_ALL_CONTAINERS, restarts_all), (USER_NAMESPACE_ON_HOST_NETWORK, own_users))
    return frozenset(feature for feature, needed in found if needed)


def _restarts_all(spec: PodSpec) -> bool:
    for containers in (spec.containers, spec.init_containers):
        for container in containers or ():
            rules = container.restart_policy_rules
            if rules and any(rule.action == "RestartAllContainers" for rule in rules):
                return True
    return False


def _is_able(pod: PodInfo, node: Node) -> bool:
    return required_features(pod.pod.spec).issubset(node.status.declared_features or ())


def _needs_others(old: PodInfo | None, new: PodInfo) -> bool:
    return old is not None and required_features(old.pod.spec) != required_features(new.pod.spec)
