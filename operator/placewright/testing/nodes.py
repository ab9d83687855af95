"""Nodes in a few words: `node("a").offers(cpu="8").zone("eu-1a").taint("gpu").build()`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Self

from placewright.api.objects import Node
from placewright.testing.objectmaker import HOSTNAME, ZONE, PlainMaker

#: The node's offer unless a test says otherwise: small enough to be filled by a few pods, with the kubelet's default number of pods.
OFFERS: Final[Mapping[str, str]] = {"cpu": "4", "memory": "16Gi", "pods": "110"}


class NodeMaker(PlainMaker[Node]):
    """Builds a node step by step; see `node`."""

    namespaced = False

    def offers(self, amounts: Mapping[str, str] | None = None, /, **more: str) -> Self:
        """Set what the node offers of these resources: `offers(cpu="8")`, `offers({"example.com/gpu": "4"})`."""
        return self.status(allocatable={**self._body.get("status", {}).get("allocatable", {}), **(amounts or {}), **more})

    def zone(self, zone: str) -> Self:
        """Set the label `topology.kubernetes.io/zone`."""
        return self.labels({ZONE: zone})

    def taint(self, key: str, value: str = "", *, effect: str = "NoSchedule") -> Self:
        """Add a taint.

        Args:
            key: the taint's key.
            value: the taint's value; empty: none.
            effect: `NoSchedule`, `PreferNoSchedule` or `NoExecute`.

        Returns:
            A new maker; this one stays as it is.
        """
        return self._append("spec", "taints", {"key": key, "value": value, "effect": effect})

    def cordoned(self) -> Self:
        """Mark the node as unschedulable."""
        return self.spec(unschedulable=True)

    def image(self, *names: str, size: int) -> Self:
        """Add an image.

        Args:
            names: all names by which the node knows it, with tags: `web:latest`.
            size: bytes.

        Returns:
            A new maker; this one stays as it is.
        """
        return self._append("status", "images", {"names": list(names), "sizeBytes": size})

    def condition(self, kind: str, status: str, *, since: str = "") -> Self:
        """Add a condition, such as `condition("Ready", "False")`.

        Args:
            kind: the condition's type.
            status: `True`, `False` or `Unknown`, as text.
            since: its last transition, RFC 3339; empty: not said.

        Returns:
            A new maker; this one stays as it is.
        """
        return self._append("status", "conditions", {"type": kind, "status": status, "lastTransitionTime": since})

    def features(self, *names: str) -> Self:
        """Set the features that the node declares."""
        return self.status(declaredFeatures=list(names))


def node(
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    spec: Mapping[str, Any] | None = None,
    **offers: str,
) -> NodeMaker:
    """Begin a node with 4 CPUs, 16 GiB, room for 110 pods and its hostname as a label.

    Args:
        name: its name.
        labels: further labels.
        annotations: its annotations.
        spec: fields of the spec, as in a manifest.
        offers: other amounts than the above: `node("a", cpu="8")`.

    Returns:
        The node's maker.

    Example:
        node("a").offers(cpu="8").zone("eu-1a").taint("gpu").build()
    """
    made = NodeMaker(name).labels({HOSTNAME: name, **(labels or {})}).offers({**OFFERS, **offers})
    if annotations:
        made = made.annotations(annotations)
    return made.spec(**spec) if spec else made
