"""Random small worlds and what happens to them, kept twice: as plain dictionaries for the scalar model, and as the cluster's columns."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from framework.scalar_model import MIB, ORDER, Profile
from placewright import testing as kit
from placewright.api.objects import Node, NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.cluster.journal import Journal
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.queue.nominator import Nominator
from placewright.testing.nodes import NodeMaker

Body = dict[str, Any]
NODES: Final = tuple(f"n{i}" for i in range(5))
UIDS: Final = tuple("abcdefgh")
GPU, HUGE = "vendor.com/gpu", "hugepages-2Mi"
IMAGES: Final = {"web:latest": 900 * MIB, "db:1": 300 * MIB, "host:5000/tool:latest": 40 * MIB, "tiny:latest": MIB}
KEYS: Final = ("zone", "disk", "cores", "rack")
SCORED: Final = ("cpu", "memory", "ephemeral-storage", GPU, HUGE)
SCORES: Final = ("TaintToleration", "NodeAffinity", "NodeResourcesFit", "NodeResourcesBalancedAllocation", "ImageLocality")
DEFAULT_WEIGHTS: Final = {"TaintToleration": 3, "NodeAffinity": 2}


class Dice(random.Random):
    """Chance, from a seed that hypothesis chooses."""

    def maybe(self, chance: float) -> bool:
        """True this often."""
        return self.random() < chance

    def amounts(self, **choices: tuple[int, ...]) -> Body:
        """Some of these, each with one of its values."""
        return {name: self.choice(values) for name, values in choices.items() if self.maybe(0.6)}

    # --- nodes ---------------------------------------------------------------------------------------------------------------

    def node(self, name: str) -> Body:
        """A node of the model."""
        offers = {"cpu": self.choice((0, 2000, 3000, 4000, 4000, 8000)), "memory": self.choice((0, 4096, 8000, 9000, 16384)) * MIB}
        offers |= {"pods": self.choice((1, 3, 5, 9)), "ephemeral-storage": self.choice((0, 200, 1000, 1000))}
        offers |= {GPU: self.choice((1, 3))} if self.maybe(0.5) else {}
        offers |= {HUGE: self.choice((2, 8)) * MIB} if self.maybe(0.3) else {}
        return {
            "name": name,
            "labels": self.labels(),
            "taints": self.taints(),
            "cordoned": self.maybe(0.07),
            "offers": offers,
            "images": self.images(),
        }

    def labels(self) -> Body:
        """Labels of a node: text, numbers, and absent."""
        choices = {"zone": ("a", "b"), "disk": ("ssd", "hdd", ""), "cores": ("4", "16", "2", "many"), "rack": ("r1",)}
        return {key: self.choice(values) for key, values in choices.items() if self.maybe(0.7)}

    def taints(self) -> list[Body]:
        """None for most nodes."""
        effects = ("NoSchedule", *(["PreferNoSchedule"] * 4), "NoExecute")
        count = self.choice((0, 0, 0, 0, 1, 2))
        values = ("", "v", "5", "-2", "07")
        return [{"key": self.choice("kg"), "value": self.choice(values), "effect": self.choice(effects)} for _ in range(count)]

    def images(self) -> Body:
        """Images and their sizes."""
        return {name: size for name, size in IMAGES.items() if self.maybe(0.4)}

    # --- pods ----------------------------------------------------------------------------------------------------------------

    def pod(self, uid: str) -> Body:
        """A pod of the model, on no node."""
        return {
            "uid": uid,
            "node": "",
            "priority": self.choice((0, 0, 5)),
            "containers": [self.asks() for _ in range(self.choice((1, 1, 2)))],
            "init": [self.asks() | {"sidecar": self.maybe(0.5)} for _ in range(self.choice((0, 0, 1, 2)))],
            "overhead": {"cpu": 50} if self.maybe(0.1) else {},
            "ports": [self.port() for _ in range(self.choice((0, 0, 0, 1, 2)))],
            "images": [],
            "wants_node": self.choice(NODES) if self.maybe(0.05) else "",
            "tolerations": self.tolerations(),
            "selector": {self.choice(KEYS): self.choice(("a", "ssd", "4"))} if self.maybe(0.07) else {},
            "required": [self.term() for _ in range(self.choice((0, 1, 2)))] if self.maybe(0.15) else None,
            "preferred": [(self.choice((0, 1, 7)), self.term()) for _ in range(self.choice((0, 0, 1, 3)))],
        }

    def asks(self) -> Body:
        """Requests of one container."""
        return self.amounts(cpu=(0, 100, 500, 1001), memory=(0, MIB, 1000 * MIB), **{"ephemeral-storage": (0, 60)}) | (
            self.amounts(**{GPU: (0, 1, 2), HUGE: (2 * MIB,)}) if self.maybe(0.15) else {}
        )

    def port(self) -> tuple[str, int, str]:
        """A host port."""
        return (self.choice(("TCP", "UDP")), self.choice((80, 443)), self.choice(("0.0.0.0", "10.0.0.1", "10.0.0.2")))

    def tolerations(self) -> list[Body]:
        """Of all kinds."""
        kinds: tuple[Body, ...] = (
            {"operator": "Exists"},
            {"key": "k", "operator": "Exists"},
            {"key": "k", "operator": "Equal", "value": "v"},
            {"key": "g", "value": "v", "effect": "NoSchedule"},
            {"key": "k", "operator": "Gt", "value": self.choice(("4", "5", "-3", "06"))},
            {"key": "g", "operator": "Lt", "value": self.choice(("6", "5", "0", "many"))},
            {"key": "g", "operator": "Exists", "effect": "PreferNoSchedule"},
            {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"},
        )
        return self.sample(kinds, self.choice((0, 0, 1, 2)))

    def term(self) -> Body:
        """A node selector term; now and then an empty one, or one about names."""
        term: Body = {}
        if self.maybe(0.85):
            term["matchExpressions"] = [self.expression() for _ in range(self.choice((1, 1, 2)))]
        if self.maybe(0.2):
            names = [self.choice((*NODES, "gone"))]
            term["matchFields"] = [{"key": "metadata.name", "operator": self.choice(("In", "NotIn")), "values": names}]
        return term

    def expression(self) -> Body:
        """One requirement."""
        operator = self.choice(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
        if operator in ("Gt", "Lt"):
            return {"key": "cores", "operator": operator, "values": [self.choice(("3", "4", "1"))]}
        values = self.sample(("a", "b", "ssd", "", "4", "r1"), 3) if operator in ("In", "NotIn") else []
        return {"key": self.choice(KEYS), "operator": operator, "values": values}

    # --- profiles ------------------------------------------------------------------------------------------------------------

    def profile(self) -> Profile:
        """Filters off, weights changed, arguments of every kind."""
        off = set(self.sample((*ORDER, *SCORES), self.choice((0, 0, 1, 3))))
        weights = {name: self.choice((0, 1, 4)) if self.maybe(0.4) else DEFAULT_WEIGHTS.get(name, 1) for name in SCORES if name not in off}
        shapes = (((0, 0), (100, 10)), ((0, 10), (100, 0)), ((20, 3), (50, 9), (80, 2)), ((0, 0),))
        return Profile(
            filters=frozenset(ORDER) - off,
            weights=weights,
            strategy=self.choice(("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")),
            shape=self.choice(shapes),
            scored=[(name, self.choice((1, 3))) for name in self.sample(SCORED, self.choice((1, 2, 4)))],
            balanced=self.sample(SCORED, self.choice((1, 2, 3, 4))),
            ignored=[GPU] if self.maybe(0.2) else [],
            ignored_groups=["vendor.com"] if self.maybe(0.2) else [],
            enforced=[self.term(), self.term()] if self.maybe(0.1) else None,
            added_preferences=[(3, self.term())] if self.maybe(0.2) else [],
        )


# --- as manifests --------------------------------------------------------------------------------------------------------------


def _quantities(amounts: Mapping[str, int]) -> Body:
    return {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in amounts.items() if name != "sidecar"}


def node_object(node: Body) -> Node:
    """The node as the API server shows it."""
    images = [{"names": [f"{name}@digest", name], "sizeBytes": size} for name, size in node["images"].items()]
    made = NodeMaker(node["name"]).labels(node["labels"]).spec(unschedulable=node["cordoned"], taints=node["taints"])
    return made.offers(_quantities(node["offers"])).status(images=images).build()


def pod_object(pod: Body) -> PodInfo:
    """The pod as the API server shows it; while it is on no node, `spec.nodeName` says where it wants to be."""
    containers = [{"resources": {"requests": _quantities(asks)}} for asks in pod["containers"]]
    init = [
        {"resources": {"requests": _quantities(asks)}} | ({"restartPolicy": "Always"} if asks["sidecar"] else {}) for asks in pod["init"]
    ]
    for container, image in zip([*init, *containers], pod["images"], strict=True):
        container["image"] = image.removesuffix(":latest")
    containers[0]["ports"] = [
        {"protocol": protocol if protocol != "TCP" else "", "hostPort": port, "hostIP": address if address != "0.0.0.0" else ""}
        for protocol, port, address in pod["ports"]
    ]
    spec = {
        "priority": pod["priority"],
        "containers": containers,
        "initContainers": init,
        "overhead": _quantities(pod["overhead"]) or None,
        "nodeSelector": pod["selector"],
        "tolerations": pod["tolerations"],
        "affinity": {"nodeAffinity": _node_affinity(pod["required"], pod["preferred"])},
    }
    return kit.pod(pod["uid"], on=pod["node"] or pod["wants_node"], **spec).uid(pod["uid"]).build()


def profile_object(said: Profile, *, pairwise: bool = False) -> ResolvedProfile:
    """The profile as people write it; without the plugins that the model does not know, unless `pairwise`."""
    off = [name for name in (*ORDER, *SCORES) if name not in said.filters and name not in said.weights]
    off += [name for name in ORDER if name in SCORES and name not in said.filters and name not in off]
    off += [] if pairwise else ["PodTopologySpread", "InterPodAffinity", "DynamicResources", "DefaultPreemption"]
    strategy: Body = {"type": said.strategy, "resources": [{"name": name, "weight": weight} for name, weight in said.scored]}
    if said.strategy == "RequestedToCapacityRatio":
        strategy["requestedToCapacityRatio"] = {"shape": [{"utilization": x, "score": y} for x, y in said.shape]}
    added = _node_affinity(said.enforced, said.added_preferences)
    args: Body = {
        "NodeResourcesFit": {
            "scoringStrategy": strategy,
            "ignoredResources": said.ignored,
            "ignoredResourceGroups": said.ignored_groups,
        },
        "NodeResourcesBalancedAllocation": {"resources": [{"name": name, "weight": 1} for name in said.balanced]},
        "NodeAffinity": {"addedAffinity": added} if added else {},
    }
    made = kit.profile("p").disable(*off).weights(**{name: weight for name, weight in said.weights.items() if name not in off})
    for name, arguments in args.items():
        made = made if name in off else made.args(name, **arguments)
    return made.resolved()


def _node_affinity(required: Sequence[Body] | None, preferred: Sequence[tuple[int, Body]]) -> Body:
    weighted = [{"weight": weight, "preference": term} for weight, term in preferred]
    found = {} if required is None else {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": required}}
    return found | ({"preferredDuringSchedulingIgnoredDuringExecution": weighted} if weighted else {})


# --- what happens --------------------------------------------------------------------------------------------------------------


class TwinWorld:
    """One cluster, kept by the model and by the columns; every event reaches both."""

    def __init__(self) -> None:
        self.nodes: dict[str, Body] = {}
        self.pods: dict[str, Body] = {}
        self.nominated: dict[str, Body] = {}
        self.nominator = Nominator()
        self.cluster = Cluster()
        # Short memories, so that readers also fall behind.
        self.cluster.node_journal, self.cluster.pod_journal = Journal(keep=4), Journal(keep=6)
        self._assumed: set[str] = set()
        self.seen: list[Body] = [self.new_pod(Dice(0), "pending")]

    # --- nodes ---------------------------------------------------------------------------------------------------------------

    def node_appears_or_changes(self, dice: Dice) -> None:
        """All of it at once."""
        self._show(dice.node(dice.choice(NODES)))

    def node_changes_a_little(self, dice: Dice) -> None:
        """Cordoned, tainted, relabelled, resized, or with other images."""
        if self.nodes:
            node = dict(self.nodes[dice.choice(sorted(self.nodes))])
            field = dice.choice(("labels", "taints", "cordoned", "offers", "images"))
            self._show(node | {field: dice.node("any")[field]})

    def _show(self, node: Body) -> None:
        self.nodes[node["name"]] = node
        self.cluster.set_node(node_object(node))

    def node_goes(self, dice: Dice) -> None:
        """Its pods stay where they are until somebody deletes them."""
        if self.nodes:
            name = dice.choice(sorted(self.nodes))
            del self.nodes[name]
            self.cluster.remove_node(NodeName(name))

    # --- pods ----------------------------------------------------------------------------------------------------------------

    def new_pod(self, dice: Dice, uid: str) -> Body:
        """A pod, with an image for every container."""
        pod = dice.pod(uid)
        pod["images"] = [dice.choice((*IMAGES, "unknown:latest")) for _ in (*pod["init"], *pod["containers"])]
        return pod

    def pod_is_assumed(self, dice: Dice) -> None:
        """We decided; nobody has confirmed."""
        uid = dice.choice(UIDS)
        if uid not in self.pods:
            pod = self.new_pod(dice, uid) if dice.maybe(0.5) else dice.choice(self.seen) | {"uid": uid}
            node = dice.choice(NODES)
            self.cluster.assume(pod_object(pod), NodeName(node))
            self.pods[uid] = pod | {"node": node}
            self._assumed.add(uid)

    def pod_is_confirmed_or_seen(self, dice: Dice) -> None:
        """The API server shows a pod on a node: ours, somebody else's, the same or another node, the same spec or another."""
        uid = dice.choice(UIDS)
        pod = dict(self.pods.get(uid) or self.new_pod(dice, uid))
        if not pod["node"] or dice.maybe(0.2):
            pod["node"] = dice.choice(NODES)
        if dice.maybe(0.2):
            pod = self.new_pod(dice, uid) | {"node": pod["node"]}
        self.pods[uid] = pod
        self._assumed.discard(uid)
        self.cluster.set_pod(pod_object(pod))

    def pod_is_forgotten(self, dice: Dice) -> None:
        """A binding failed."""
        if self._assumed:
            uid = dice.choice(sorted(self._assumed))
            self._assumed.discard(uid)
            pod = self.pods.pop(uid)
            self.cluster.forget(pod_object(pod), NodeName(pod["node"]))

    def pod_goes(self, dice: Dice) -> None:
        """Deleted or finished; perhaps one that nobody knew."""
        uid = dice.choice(UIDS)
        self.pods.pop(uid, None)
        self._assumed.discard(uid)
        self.cluster.remove_pod(uid)

    def nomination(self, dice: Dice) -> None:
        """Preemption makes room on a node for a pod, or a nomination ends."""
        if self.nominated and dice.maybe(0.4):
            for node in tuple(self.nominated):
                self._withdraw(node)
        else:
            node = dice.choice(NODES)
            pod = self.new_pod(dice, f"nominee-{node}") | {"wants_node": "", "priority": dice.choice((0, 5, 9))}
            self._withdraw(node)
            self.nominated[node] = pod
            self.nominator.add(pod_object(pod), NodeName(node))

    def _withdraw(self, node: str) -> None:
        """The node's nomination ends, if there is one."""
        if self.nominated.pop(node, None) is not None:
            for pod in tuple(self.nominator.pods_on(NodeName(node))):
                self.nominator.delete(pod.uid)

    # --- the question --------------------------------------------------------------------------------------------------------

    def pending(self, dice: Dice) -> Body:
        """A pod to evaluate: often like an earlier one, whole or in all but one field; sometimes the nominated one itself."""
        if self.nominated and dice.maybe(0.1):
            return next(iter(self.nominated.values()))
        new = self.new_pod(dice, "pending")
        kind = dice.choice(("new", "like another", "same", "same", "same"))
        if kind == "new":
            self.seen.append(new)
        elif kind == "like another":
            field = dice.choice(("tolerations", "selector", "required", "preferred", "ports", "wants_node", "overhead"))
            self.seen.append(dice.choice(self.seen) | {field: new[field]})
        del self.seen[:-4]
        return dice.choice(self.seen) | {"uid": f"pending-{dice.randrange(3)}"}


Event = Callable[[TwinWorld, Dice], None]
#: What can happen, and how often.
EVENTS: Final[Mapping[Event, int]] = {
    TwinWorld.node_appears_or_changes: 2,
    TwinWorld.node_changes_a_little: 3,
    TwinWorld.node_goes: 1,
    TwinWorld.pod_is_assumed: 6,
    TwinWorld.pod_is_confirmed_or_seen: 3,
    TwinWorld.pod_is_forgotten: 1,
    TwinWorld.pod_goes: 3,
    TwinWorld.nomination: 3,
}
