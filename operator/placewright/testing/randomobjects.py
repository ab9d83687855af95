"""Random pods, nodes and other objects: small numbers of names and amounts, so that what one object says concerns another.

A check with objects of its own builds on the makers: `lambda dice: random_pod_maker(dice).annotations({"example.com/quiet": "true"})`.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

from placewright.api.decode import convert
from placewright.api.objects import Node
from placewright.api.pods import PodInfo
from placewright.api.workloads import Namespace, ReplicaSet, Service
from placewright.cluster.objects import ClusterObject
from placewright.testing.nodes import NodeMaker
from placewright.testing.objectmaker import HOSTNAME, ZONE
from placewright.testing.pods import PodMaker

Body = dict[str, Any]

#: The names that nodes of random clusters have. A pod that names a node names one of these.
NODE_NAMES: Final = tuple(f"n{number}" for number in range(6))
#: Most objects share a namespace, because selectors select within one.
NAMESPACES: Final = ("default", "default", "default", "other")
GPU: Final = "example.com/gpu"
#: Bytes, in the range that ImageLocality looks at: 23 to 1,000 MiB for a container.
IMAGES: Final = {"web": 900 * 2**20, "db": 300 * 2**20, "tool": 40 * 2**20}

_NODE_LABELS: Final = {ZONE: ("a", "b", "c"), "disk": ("ssd", "hdd"), "cores": ("4", "16"), "rack": ("r1", "r2")}
_TAINT_KEYS: Final = ("dedicated", "broken")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "PreferNoSchedule", "NoExecute")
_APPS: Final = ("web", "db")


def maybe(dice: random.Random, chance: float) -> bool:
    """Decide a question at random.

    Args:
        dice: drawn from once.
        chance: 0 to 1.

    Returns:
        True with this chance.
    """
    return dice.random() < chance


def drawn(dice: random.Random, choices: Mapping[str, Sequence[str]], chance: float) -> dict[str, str]:
    """Draw some of these keys, each with one of its values.

    Args:
        dice: drawn from for each key, in order.
        choices: values by key.
        chance: 0 to 1, of each key alone.

    Returns:
        By key, its value: labels, annotations or amounts.
    """
    return {key: dice.choice(values) for key, values in choices.items() if maybe(dice, chance)}


# --- nodes -------------------------------------------------------------------------------------------------------------------


def random_node(dice: random.Random) -> Node:
    """Build a node of `random_node_maker`, without a resourceVersion."""
    return random_node_maker(dice).version("").build()


def random_node_maker(dice: random.Random) -> NodeMaker:
    """Draw a node, as a maker to go on with: it has labels, taints, images and amounts; its name is one of `n0` to `n5`.

    About one in ten is cordoned and one in three is tainted. It offers 1 to 8 CPUs, 1 to 16 GiB and room for 2 to 110 pods.
    """
    name = dice.choice(NODE_NAMES)
    offers = {"cpu": dice.choice("1248"), "memory": dice.choice(("1Gi", "4Gi", "16Gi")), "pods": dice.choice(("2", "5", "110"))}
    offers |= {GPU: dice.choice("14")} if maybe(dice, 0.4) else {}
    taints = [
        {"key": dice.choice(_TAINT_KEYS), "value": dice.choice(("", "team")), "effect": dice.choice(_EFFECTS)}
        for _ in range(dice.choice((0, 0, 1)))
    ]
    images = [{"names": [f"{image}:latest"], "sizeBytes": size} for image, size in IMAGES.items() if maybe(dice, 0.4)]
    made = NodeMaker(name).labels({HOSTNAME: name, **drawn(dice, _NODE_LABELS, 0.7)})
    made = made.spec(unschedulable=maybe(dice, 0.1), taints=taints).offers(offers)
    return made.status(images=images).condition("Ready", "True")


# --- pods --------------------------------------------------------------------------------------------------------------------


def random_pod(dice: random.Random) -> PodInfo:
    """Build a pod of `random_pod_maker`, without a resourceVersion."""
    return random_pod_maker(dice).version("").build()


def random_pod_maker(dice: random.Random) -> PodMaker:
    """Draw a pod that waits, as a maker to go on with: requests, labels, tolerations, affinities, spread constraints and host ports.

    Most pods have two or three of these. The pod stands on no node; its name and uid say nothing.
    """
    made = PodMaker("").image(dice.choice((*IMAGES, "other"))).requests(_requests(dice))
    if maybe(dice, 0.15):
        made = made.host_port(dice.choice((80, 443)), ip=dice.choice(("", "10.0.0.1")))
    spec: Body = {"priority": dice.choice((0, 0, 0, 10)), "tolerations": _tolerations(dice)}
    if maybe(dice, 0.15):
        spec["nodeSelector"] = {"disk": dice.choice(("ssd", "hdd"))}
    affinity = {"nodeAffinity": _node_affinity(dice), "podAffinity": _pod_affinity(dice), "podAntiAffinity": _pod_affinity(dice)}
    spec["affinity"] = {name: part for name, part in affinity.items() if part}
    if maybe(dice, 0.25):
        spec["topologySpreadConstraints"] = [_spread(dice)]
    number = dice.randrange(10**6)
    metadata: Body = {"name": f"p{number}", "uid": f"p{number}"}
    made = made.namespace(dice.choice(NAMESPACES))
    metadata["labels"] = drawn(dice, {"app": _APPS, "tier": ("front", "back")}, 0.7)
    metadata["annotations"] = drawn(dice, {"example.com/note": ("a", "b")}, 0.3)
    metadata["ownerReferences"] = [_owner(dice)] if maybe(dice, 0.3) else []
    return made.metadata(**metadata).spec(**spec)


def _requests(dice: random.Random) -> Body:
    amounts = drawn(dice, {"cpu": ("100m", "1", "3"), "memory": ("128Mi", "1Gi", "6Gi")}, 0.7)
    return amounts | ({GPU: "1"} if maybe(dice, 0.1) else {})


def _tolerations(dice: random.Random) -> list[Body]:
    kinds: list[Body] = [
        {"operator": "Exists"},
        {"key": dice.choice(_TAINT_KEYS), "operator": "Exists"},
        {"key": "dedicated", "operator": "Equal", "value": "team", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"},
    ]
    return dice.sample(kinds, dice.choice((0, 0, 0, 1, 2)))


def _node_affinity(dice: random.Random) -> Body:
    found: Body = {}
    if maybe(dice, 0.15):
        found["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": [_node_term(dice)]}
    if maybe(dice, 0.25):
        found["preferredDuringSchedulingIgnoredDuringExecution"] = [{"weight": dice.choice((1, 50)), "preference": _node_term(dice)}]
    return found


def _node_term(dice: random.Random) -> Body:
    expressions: list[Body] = [
        {"key": ZONE, "operator": dice.choice(("In", "NotIn")), "values": [dice.choice("abc")]},
        {"key": "disk", "operator": dice.choice(("Exists", "DoesNotExist"))},
        {"key": "cores", "operator": dice.choice(("Gt", "Lt")), "values": ["8"]},
    ]
    return {"matchExpressions": dice.sample(expressions, dice.choice((1, 1, 2)))}


def _pod_affinity(dice: random.Random) -> Body:
    found: Body = {}
    if maybe(dice, 0.12):
        found["requiredDuringSchedulingIgnoredDuringExecution"] = [_pod_term(dice)]
    if maybe(dice, 0.12):
        found["preferredDuringSchedulingIgnoredDuringExecution"] = [{"weight": dice.choice((1, 50)), "podAffinityTerm": _pod_term(dice)}]
    return found


def _pod_term(dice: random.Random) -> Body:
    term: Body = {"labelSelector": {"matchLabels": {"app": dice.choice(_APPS)}}}
    term["topologyKey"] = dice.choice((ZONE, HOSTNAME))
    if maybe(dice, 0.2):
        term["namespaces"] = ["other"]
    elif maybe(dice, 0.2):
        term["namespaceSelector"] = {"matchLabels": {"team": "a"}}
    return term


def _spread(dice: random.Random) -> Body:
    return {
        "maxSkew": dice.choice((1, 1, 2)),
        "topologyKey": dice.choice((ZONE, HOSTNAME)),
        "whenUnsatisfiable": dice.choice(("DoNotSchedule", "ScheduleAnyway")),
        "labelSelector": {"matchLabels": {"app": dice.choice(_APPS)}},
    }


def _owner(dice: random.Random) -> Body:
    name = dice.choice(_APPS)
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": name, "controller": True}


# --- other objects -----------------------------------------------------------------------------------------------------------


def random_object(dice: random.Random) -> ClusterObject:
    """Draw a Namespace with labels, or a Service or ReplicaSet that selects pods by `app`."""
    name, namespace = dice.choice(_APPS), dice.choice(NAMESPACES)
    kind = dice.choice((Namespace, Service, ReplicaSet))
    if kind is Namespace:
        return convert({"metadata": {"name": namespace, "labels": drawn(dice, {"team": ("a", "b")}, 0.7)}}, Namespace)
    labels = drawn(dice, {"app": _APPS, "tier": ("front", "back")}, 0.6) or {"app": name}
    metadata = {"name": name, "namespace": namespace, "uid": name}
    if kind is Service:
        return convert({"metadata": metadata, "spec": {"selector": labels}}, Service)
    return convert({"metadata": metadata, "spec": {"selector": {"matchLabels": labels}}}, ReplicaSet)
