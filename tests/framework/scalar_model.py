"""kube-scheduler's formulas for one pod and one node at a time, over plain dictionaries: what the columns are compared with.

Written from the formulas, with no code of the plugins and no arrays. How a node and a pod look is seen in `worlds.py`, which makes them;
amounts are integers, CPU in milli, memory in bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

Body = Mapping[str, Any]
MIB = 1024 * 1024
UU, U = "UnschedulableAndUnresolvable", "Unschedulable"
ORDER = ("NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit")


class Said(NamedTuple):
    """Why a node was rejected."""

    code: str
    plugin: str
    reasons: tuple[str, ...]


class Part(NamedTuple):
    """One plugin's part in a total."""

    raw: int
    normalised: int
    weight: int


# --- what a pod asks for -------------------------------------------------------------------------------------------------------


def requests(pod: Body, defaults: Mapping[str, int] | None = None) -> dict[str, int]:
    """Containers and sidecars together, or the neediest moment of the start, whichever is more; and the overhead."""
    usual = defaults or {}
    running: dict[str, int] = {}
    started: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in pod["containers"]:
        running = _plus(running, usual | container)
    for container in pod["init"]:
        asks = usual | {name: amount for name, amount in container.items() if name != "sidecar"}
        if container.get("sidecar"):
            running, started = _plus(running, asks), _plus(started, asks)
            need = started
        else:
            need = _plus(asks, started)
        peak = {name: max(peak.get(name, 0), need.get(name, 0)) for name in {*peak, *need}}
    base = {name: max(running.get(name, 0), peak.get(name, 0)) for name in {*running, *peak}}
    return _plus(base, pod["overhead"])


def _plus(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in {*one, *other}}


def scoring_requests(pod: Body) -> dict[str, int]:
    """The same, where a container that names no CPU or memory counts 100m and 200 MiB."""
    return requests(pod, {"cpu": 100, "memory": 200 * MIB})


# --- filters -------------------------------------------------------------------------------------------------------------------


def tolerated(taint: Body, tolerations: Iterable[Body]) -> bool:
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Body, taint: Body) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    value, has = toleration.get("value", ""), taint.get("value", "")
    match toleration.get("operator"):
        case "Exists":
            return True
        case "Gt":
            return _is_number(value) and _is_number(has) and int(has) > int(value)
        case "Lt":
            return _is_number(value) and _is_number(has) and int(has) < int(value)
        case _:
            return bool(value == has)


def _is_number(text: str) -> bool:
    """Written as a whole number is: reading and writing it gives the same text."""
    try:
        return str(int(text)) == text
    except ValueError:
        return False


def expression_holds(expression: Body, labels: Mapping[str, str]) -> bool:
    value, values = labels.get(expression["key"]), expression.get("values", [])
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return _integer(value) and int(str(value)) > int(values[0])
        case _:
            return _integer(value) and int(str(value)) < int(values[0])


def _integer(value: str | None) -> bool:
    return value is not None and value.lstrip("-").isdigit()


def term_matches(term: Body, node: Body) -> bool:
    fields, expressions = term.get("matchFields", []), term.get("matchExpressions", [])
    if not fields and not expressions:
        return False
    return all(expression_holds(e, node["labels"]) for e in expressions) and all(
        (node["name"] in f["values"]) == (f["operator"] == "In") for f in fields
    )


def ports_clash(one: tuple[str, int, str], other: tuple[str, int, str]) -> bool:
    return one[:2] == other[:2] and (one[2] == other[2] or "0.0.0.0" in (one[2], other[2]))


class Profile(NamedTuple):
    """What a profile says: filters that are on, weights of the scores that are on, arguments."""

    filters: frozenset[str]
    weights: Mapping[str, int]
    strategy: str
    shape: Sequence[tuple[int, int]]
    scored: Sequence[tuple[str, int]]
    balanced: Sequence[str]
    ignored: Sequence[str]
    ignored_groups: Sequence[str]
    enforced: Sequence[Body] | None
    added_preferences: Sequence[tuple[int, Body]]


class Model:
    """One pod against nodes and the pods on them."""

    def __init__(self, profile: Profile, nodes: Mapping[str, Body], pods: Iterable[Body], nominated: Mapping[str, Sequence[Body]]) -> None:
        self._profile = profile
        self._nodes = nodes
        self._pods = list(pods)
        self._nominated = nominated

    def _on(self, node: Body) -> list[Body]:
        return [pod for pod in self._pods if pod["node"] == node["name"]]

    # --- which nodes -----------------------------------------------------------------------------------------------------------

    def verdicts(self, pod: Body) -> dict[str, Said | None]:
        """By node: None where the pod fits."""
        named = self._named(pod)
        if named is not None and not named:
            said = Said(UU, "NodeAffinity", ("pod affinity terms conflict",))
            return dict.fromkeys(self._nodes, said)
        return {name: self._verdict(pod, node, named) for name, node in self._nodes.items()}

    def _named(self, pod: Body) -> set[str] | None:
        terms = pod["required"]
        if "NodeAffinity" not in self._profile.filters or not terms:
            return None
        names: set[str] = set()
        for term in terms:
            wanted = [set(f["values"]) for f in term.get("matchFields", []) if f["operator"] == "In"]
            if not wanted:
                return None
            names |= set.intersection(*wanted)
        return names

    def _verdict(self, pod: Body, node: Body, named: set[str] | None) -> Said | None:
        if named is not None and node["name"] not in named:
            return Said(UU, "", ("node(s) didn't satisfy plugin(s) [NodeAffinity]",))
        there = self._on(node)
        others = [p for p in self._nominated.get(node["name"], ()) if p["priority"] >= pod["priority"] and p["uid"] != pod["uid"]]
        return self._filtered(pod, node, [*there, *others]) or self._filtered(pod, node, there)

    def _filtered(self, pod: Body, node: Body, there: list[Body]) -> Said | None:
        for plugin in ORDER:
            if plugin in self._profile.filters:
                said: Said | None = getattr(self, f"_{plugin}")(pod, node, there)
                if said is not None:
                    return said
        return None

    def _NodeUnschedulable(self, pod: Body, node: Body, _there: list[Body]) -> Said | None:  # noqa: N802 - found by the plugin's name
        taint = {"key": "node.kubernetes.io/unschedulable", "value": "", "effect": "NoSchedule"}
        if node["cordoned"] and not tolerated(taint, pod["tolerations"]):
            return Said(UU, "NodeUnschedulable", ("node(s) were unschedulable",))
        return None

    def _NodeName(self, pod: Body, node: Body, _there: list[Body]) -> Said | None:  # noqa: N802
        if pod["wants_node"] and pod["wants_node"] != node["name"]:
            return Said(UU, "NodeName", ("node(s) didn't match the requested node name",))
        return None

    def _TaintToleration(self, pod: Body, node: Body, _there: list[Body]) -> Said | None:  # noqa: N802
        hard = [taint for taint in node["taints"] if taint["effect"] in ("NoSchedule", "NoExecute")]
        if all(tolerated(taint, pod["tolerations"]) for taint in hard):
            return None
        return Said(UU, "TaintToleration", ("node(s) had untolerated taint(s)",))

    def _NodeAffinity(self, pod: Body, node: Body, _there: list[Body]) -> Said | None:  # noqa: N802
        enforced = self._profile.enforced
        if enforced is not None and not any(term_matches(term, node) for term in enforced):
            return Said(UU, "NodeAffinity", ("node(s) didn't match scheduler-enforced node affinity",))
        pairs = all(node["labels"].get(key) == value for key, value in pod["selector"].items())
        if pairs and (pod["required"] is None or any(term_matches(term, node) for term in pod["required"])):
            return None
        return Said(UU, "NodeAffinity", ("node(s) didn't match Pod's node affinity/selector",))

    def _NodePorts(self, pod: Body, _node: Body, there: list[Body]) -> Said | None:  # noqa: N802
        if any(ports_clash(mine, theirs) for mine in pod["ports"] for other in there for theirs in other["ports"]):
            return Said(U, "NodePorts", ("node(s) didn't have free ports for the requested pod ports",))
        return None

    def _NodeResourcesFit(self, pod: Body, node: Body, there: list[Body]) -> Said | None:  # noqa: N802
        offers, reasons, hopeless = node["offers"], [], False
        if len(there) + 1 > offers.get("pods", 0):
            reasons.append("Too many pods")
        for name, amount in requests(pod).items():
            if amount == 0 or self._ignored(name):
                continue
            used = sum(requests(other).get(name, 0) for other in there)
            if amount > offers.get(name, 0) - used:
                reasons.append(f"Insufficient {name}")
                hopeless |= amount > offers.get(name, 0)
        return Said(UU if hopeless else U, "NodeResourcesFit", tuple(sorted(reasons))) if reasons else None

    def _ignored(self, name: str) -> bool:
        profile = self._profile
        extended = "/" in name
        return extended and (name in profile.ignored or name.partition("/")[0] in profile.ignored_groups)

    # --- how good --------------------------------------------------------------------------------------------------------------

    def scores(self, pod: Body, verdicts: Mapping[str, Said | None]) -> dict[str, dict[str, Part]]:
        """By node that fits, by plugin that did not skip."""
        feasible = [self._nodes[name] for name, said in verdicts.items() if said is None]
        result: dict[str, dict[str, Part]] = {node["name"]: {} for node in feasible}
        for plugin, weight in self._profile.weights.items():
            if weight == 0:
                continue
            raw = {node["name"]: getattr(self, f"_score_{plugin}")(pod, node) for node in feasible}
            if None in raw.values():
                continue
            for name, value in raw.items():
                result[name][plugin] = Part(value, _normalised(plugin, value, list(raw.values())), weight)
        return result

    def _score_TaintToleration(self, pod: Body, node: Body) -> int:  # noqa: N802
        soft = [t for t in pod["tolerations"] if t.get("effect", "") in ("", "PreferNoSchedule")]
        return sum(taint["effect"] == "PreferNoSchedule" and not tolerated(taint, soft) for taint in node["taints"])

    def _score_NodeAffinity(self, pod: Body, node: Body) -> int | None:  # noqa: N802
        preferences = [*self._profile.added_preferences, *pod["preferred"]]
        counted = [(w, t) for w, t in preferences if w and (t.get("matchExpressions") or t.get("matchFields"))]
        return sum(weight for weight, term in counted if term_matches(term, node)) if counted else None

    def _score_NodeResourcesFit(self, pod: Body, node: Body) -> int:  # noqa: N802
        there, total, weights = self._on(node), 0, 0
        for name, weight in self._profile.scored:
            count = scoring_requests if name in ("cpu", "memory") else requests
            own, capacity = count(pod).get(name, 0), node["offers"].get(name, 0)
            if capacity == 0 or (own == 0 and _scalar(name)):
                continue
            score = self._strategy(own + sum(count(other).get(name, 0) for other in there), capacity)
            if self._profile.strategy == "RequestedToCapacityRatio" and score == 0:
                continue
            total, weights = total + score * weight, weights + weight
        if weights == 0:
            return 0
        if self._profile.strategy == "RequestedToCapacityRatio":
            return math.floor(total / weights + 0.5)
        return total // weights

    def _strategy(self, used: int, capacity: int) -> int:
        match self._profile.strategy:
            case "LeastAllocated":
                return 0 if used > capacity else (capacity - used) * 100 // capacity
            case "MostAllocated":
                return min(used, capacity) * 100 // capacity
        return _on_shape(self._profile.shape, 100 if used > capacity else used * 100 // capacity)

    def _score_NodeResourcesBalancedAllocation(self, pod: Body, node: Body) -> int | None:  # noqa: N802
        own, there = requests(pod), self._on(node)
        if not any(own.get(name, 0) for name in self._profile.balanced):
            return None
        before, after = [], []
        for name in self._profile.balanced:
            capacity, mine = node["offers"].get(name, 0), own.get(name, 0)
            if capacity and (mine or not _scalar(name)):
                used = sum(requests(other).get(name, 0) for other in there)
                before.append(min(1.0, used / capacity))
                after.append(min(1.0, (used + mine) / capacity))
        return 50 + (50 + _evenness(after) - _evenness(before)) // 2

    def _score_ImageLocality(self, pod: Body, node: Body) -> int:  # noqa: N802
        found, images = 0, pod["images"]
        for name in images:
            holders = [other for other in self._nodes.values() if name in other["images"]]
            if node in holders:
                found += int(node["images"][name] * (len(holders) / len(self._nodes)))
        least, most = 23 * MIB, 1000 * MIB * len(images)
        return 100 * (min(max(found, least), most) - least) // (most - least)


def _scalar(name: str) -> bool:
    return "/" in name or name.startswith("hugepages-")


def _normalised(plugin: str, value: int, everyone: list[int]) -> int:
    if plugin not in ("TaintToleration", "NodeAffinity"):
        return value
    most = max(0, *everyone)
    scaled = 100 * value // most if most else 0
    return 100 - scaled if plugin == "TaintToleration" else scaled


def _on_shape(shape: Sequence[tuple[int, int]], percent: int) -> int:
    """Piecewise linear, the division cut towards zero."""
    if percent <= shape[0][0]:
        return shape[0][1] * 10
    for (x0, y0), (x1, y1) in pairwise(shape):
        if percent <= x1:
            return y0 * 10 + math.trunc((y1 - y0) * 10 * (percent - x0) / (x1 - x0))
    return shape[-1][1] * 10


def _evenness(fractions: list[float]) -> int:
    if len(fractions) < 2:
        return 100
    if len(fractions) == 2:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    else:
        mean = sum(fractions) / len(fractions)
        deviation = math.sqrt(sum((f - mean) * (f - mean) for f in fractions) / len(fractions))
    return int((1 - deviation) * 100)
