"""Random worlds for the plugins of earlier kube-schedulers, and plain readings of what their rules have in common."""

from __future__ import annotations

from pairwise_worlds import ZONE, Body, Dice, World

OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
OLD_REGION = "failure-domain.beta.kubernetes.io/region"


class OldDice(Dice):
    """Nodes with labels of today and of before 1.17."""

    def node(self, name: str) -> Body:
        node = super().node(name)
        also = {OLD_ZONE: ["z1", "z9", ""], REGION: ["r1", "r2"], OLD_REGION: ["r1", ""], "hall": ["north", "south"]}
        node["metadata"]["labels"] |= {key: self.choice(values) for key, values in also.items() if self.maybe(0.4)}
        return node


def labels_of(world: World, name: str) -> Body:
    labels: Body = world.nodes[name]["metadata"]["labels"]
    return labels


def zone_of(world: World, name: str) -> tuple[str, str] | None:
    """Region and zone of a node; None when it has neither."""
    labels = labels_of(world, name)
    region = labels[OLD_REGION] if OLD_REGION in labels else labels.get(REGION, "")
    zone = labels[OLD_ZONE] if OLD_ZONE in labels else labels.get(ZONE, "")
    return (region, zone) if region or zone else None
