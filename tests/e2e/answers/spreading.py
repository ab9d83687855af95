"""PodTopologySpread by plain loops, as it was in 1.20 and as it is in 1.36."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Final

from e2e.answers.randomcluster import HOST, OWNED_BY, ZONE
from e2e.answers.scene import ByNode, Scene
from placewright.api.objects import LabelSelector, TopologySpreadConstraint
from placewright.api.selectors import Selector, compile_label_selector, selector_from_pairs

_HARD: Final = "DoNotSchedule"
_SOFT: Final = "ScheduleAnyway"


@dataclass(frozen=True)
class Version:
    """What changed between 1.20 and 1.36.

    Attributes:
        skips: a pod without soft constraints leaves the score out, instead of giving every node 100.
        rounds: the score is rounded before it is normalised, instead of cut off.
        zone_optional: a node without a zone is scored by the system's default constraints too, instead of getting 0.
        strict: where hard constraints are concerned, pods count only on nodes that the pod could choose and that have every label,
            instead of wherever a domain of such a node reaches.
    """

    skips: bool
    rounds: bool
    zone_optional: bool
    strict: bool


IN_1_20: Final = Version(skips=False, rounds=False, zone_optional=False, strict=False)
IN_1_36: Final = Version(skips=True, rounds=True, zone_optional=True, strict=True)


def soft_scores(scene: Scene, version: Version) -> ByNode:
    """The normalised score of each feasible node."""
    constraints, own = _soft_constraints(scene)
    feasible = sorted(scene.our_feasible)
    if not constraints:
        return dict.fromkeys(feasible, 0 if version.skips else 100)
    every_label = own or not version.zone_optional
    considered = [name for name in feasible if not every_label or _has_all(scene, name, constraints)]
    raw = dict.fromkeys(considered, 0.0)
    for constraint in constraints:
        for name, points in _points(scene, constraint, considered, constraints if every_label else []).items():
            raw[name] += points
    whole = {name: math.floor(score + 0.5) if version.rounds else int(score) for name, score in raw.items()}
    return dict.fromkeys(feasible, 0) | _normalised(whole)


def _points(scene: Scene, constraint: _Constraint, considered: list[str], needed: list[_Constraint]) -> dict[str, float]:
    """What one constraint gives each node: its domain's pods, weighted by the number of domains, and the skew that is allowed anyway."""
    key = constraint.key
    domain = {name: _label(scene, name, key) or "" for name in scene.nodes}
    counts: Counter[str] = Counter()
    for name in scene.nodes:
        if key == HOST or (name in scene.matching and _has_all(scene, name, needed)):
            counts[domain[name]] += constraint.count(scene, name)
    size = len(considered) if key == HOST else len({domain[name] for name in considered})
    weight = math.log(size + 2)
    bearing = (name for name in considered if _label(scene, name, key) is not None)
    return {name: counts[domain[name]] * weight + (constraint.max_skew - 1) for name in bearing}


def _normalised(raw: ByNode) -> ByNode:
    low, high = min(raw.values(), default=0), max(raw.values(), default=0)
    return {name: 100 if high == 0 else 100 * (high + low - score) // high for name, score in raw.items()}


def allowed(scene: Scene, version: Version) -> frozenset[str]:
    """The nodes that the pod's hard constraints allow."""
    constraints = [_compiled(c) for c in scene.spec.topology_spread_constraints or () if c.when_unsatisfiable == _HARD]
    counted = [name for name in scene.nodes if name in scene.matching and _has_all(scene, name, constraints)]
    nodes = set(scene.nodes)
    for constraint in constraints:
        counts = dict.fromkeys((_label(scene, name, constraint.key) for name in counted), 0)
        for name in counted if version.strict else scene.nodes:
            domain = _label(scene, name, constraint.key)
            if domain in counts:
                counts[domain] += constraint.count(scene, name)
        limit = constraint.max_skew + min(counts.values(), default=0) - constraint.selector.matches(scene.pod.labels)
        nodes = {name for name in nodes if (domain := _label(scene, name, constraint.key)) is not None and counts.get(domain, 0) <= limit}
    return frozenset(nodes)


# --- constraints -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Constraint:
    key: str
    max_skew: int
    selector: Selector

    def count(self, scene: Scene, node: str) -> int:
        """The pods there that it means; pods on their way out do not count."""
        return sum(
            pod.namespace == scene.pod.namespace and pod.pod.metadata.deletion_timestamp is None and self.selector.matches(pod.labels)
            for pod in scene.on_nodes[node]
        )


def _soft_constraints(scene: Scene) -> tuple[list[_Constraint], bool]:
    """The constraints, and whether they are the pod's own."""
    own = scene.spec.topology_spread_constraints
    if own:
        return [_compiled(c) for c in own if c.when_unsatisfiable == _SOFT], True
    selector = _default_selector(scene)
    if selector is None:
        return [], False
    return [_Constraint(HOST, 3, selector), _Constraint(ZONE, 5, selector)], False


def _default_selector(scene: Scene) -> Selector | None:
    """What the Services that select the pod, and its ReplicaSet, ask for together; None when there are none."""
    labels = scene.pod.labels
    pairs: dict[str, str] = {}
    for each in scene.decision.objects:
        home = each["metadata"].get("namespace")
        if each["kind"] == "Service" and home == scene.pod.namespace:
            wanted = each["spec"]["selector"]
            if wanted.items() <= dict(labels).items():
                pairs |= wanted
    if OWNED_BY in labels:
        pairs |= {OWNED_BY: labels[OWNED_BY]}
    return selector_from_pairs(pairs) if pairs else None


def _compiled(constraint: TopologySpreadConstraint) -> _Constraint:
    selector = compile_label_selector(constraint.label_selector or LabelSelector())
    return _Constraint(constraint.topology_key, constraint.max_skew, selector)


def _label(scene: Scene, node: str, key: str) -> str | None:
    return (scene.nodes[node].metadata.labels or {}).get(key)


def _has_all(scene: Scene, node: str, constraints: list[_Constraint]) -> bool:
    return all(_label(scene, node, constraint.key) is not None for constraint in constraints)
