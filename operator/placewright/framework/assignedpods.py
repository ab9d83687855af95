"""Cheap tests that a plugin gives with an event (`ClusterEventWithHint.narrow`): can this pod on a node help that rejected pod at all?

Every successful binding is an event, so with thousands of waiting pods their hints cannot all be asked each time. A pod that appears or
changes on a node frees nothing. So the plugins in the tree ask only for some waiting pods: pods that count others in their namespace, or
whose required affinity selects the pod. That is kube-scheduler's rule (`getUnschedulablePodsWithCrossTopologyTerm`). It holds for
extenders, too, and for plugins that the profile runs no longer. Deletions and scale-downs free resources and are not narrowed.
"""

from __future__ import annotations

from placewright.api.pods import PodInfo
from placewright.cluster.affinityterms import terms_of


def is_itself(rejected: PodInfo, _old: PodInfo | None, new: PodInfo) -> bool:
    """Pass changes of the rejected pod itself, for hints that look at nothing else."""
    return isinstance(new, PodInfo) and new.uid == rejected.uid


def in_its_namespace(rejected: PodInfo, _old: PodInfo | None, new: PodInfo) -> bool:
    """Pass pods of the rejected pod's namespace, for plugins that count pods there."""
    return isinstance(new, PodInfo) and new.namespace == rejected.namespace


def wanted_nearby(rejected: PodInfo, _old: PodInfo | None, new: PodInfo) -> bool:
    """Pass pods that the rejected pod's required affinity may mean, for plugins that look at affinity.

    Returns:
        False only if none of the rejected pod's terms can mean the other pod. Labels of namespaces are not looked at, so a term with a
        namespace selector may mean any.
    """
    return any(term.may_match(new) for term in terms_of(rejected).terms.affinity)
