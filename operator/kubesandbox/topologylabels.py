"""The labels that a pod takes over from its node: since Kubernetes 1.35 it knows its zone and region from the moment it has a node.

They come with a Binding to a node and with a pod that is created on one. A pod that is bound keeps what its node said then.
"""

from __future__ import annotations

from kubesandbox.resources import GroupResource
from kubesandbox.store import Store

TOPOLOGY_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
_NODES: GroupResource = ("", "nodes")


def topology_of(store: Store, node: str) -> dict[str, str]:
    """The zone and region labels of a node, as far as it has them; none for a node that is not there."""
    found = store.get(_NODES, "", node)
    labels = (found.object["metadata"].get("labels") or {}) if found is not None else {}
    return {key: labels[key] for key in TOPOLOGY_LABELS if key in labels}
