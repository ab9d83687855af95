"""PodTopologySpread against a plain scalar reading of the rules and case by case."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pairwise import Pairwise, a_node, a_pod, build, load, scores, verdicts
from pairwise_worlds import (
    HOST,
    KEYS,
    NODES,
    ZONE,
    Body,
    Dice,
    World,
    empty,
    happen,
    hardly_any_room,
    info,
    matches,
    populate,
    service_selectors,
)

from placewright.cluster.cluster import Cluster
from placewright.framework.events import Action, ClusterEvent, EventResource, QueueingHint
from placewright.framework.interface import CycleState
from placewright.framework.status import Code
from placewright.plugins.podtopologyspread.plugin import PodTopologySpread
from placewright.profiles.arguments import read_args
from placewright.profiles.problem import ProfileError
from placewright.testing import service
from placewright.testing.nodes import NodeMaker
from placewright.testing.pods import PodMaker
from randomcases import cases

SKEW = "node(s) didn't match pod topology spread constraints"
MISSING = f"{SKEW} (missing required label)"


# --- the scalar reading -------------------------------------------------------------------------------------------------------


class Scalar:
    """The rules for one pod, node by node and pod by pod."""

    def __init__(self, world: World, pod: Body, args: Body, empty_counts: bool) -> None:
        self.world, self.pod, self.args, self.empty_counts = world, pod, args, empty_counts
        self.labels = pod["metadata"]["labels"]
        self.pods = world.pods_by_node()

    def constraints(self, action: str) -> list[Body]:
        """Those that apply, each with its selector."""
        own = self.pod["spec"].get("topologySpreadConstraints")
        if own:
            return [c | {"selector": self._merged(c)} for c in own if c["whenUnsatisfiable"] == action]
        defaults = self.args["defaultConstraints"] if self.args else SYSTEM
        selector = self._default_selector()
        return [] if empty(selector) else [c | {"selector": selector} for c in defaults if c["whenUnsatisfiable"] == action]

    def _merged(self, constraint: Body) -> Body | None:
        wanted = {key: self.labels[key] for key in constraint.get("matchLabelKeys") or () if key in self.labels}
        selector = constraint.get("labelSelector")
        if not wanted:
            return selector
        also = [{"key": key, "operator": "In", "values": [value]} for key, value in wanted.items()]
        selector = selector or {}
        return {
            "matchLabels": selector.get("matchLabels", {}),
            "matchExpressions": also + selector.get("matchExpressions", []),
        }

    def _default_selector(self) -> Body:
        namespace = self.pod["metadata"]["namespace"]
        pairs: Body = {}
        for wanted in service_selectors(self.world, self.pod):
            pairs |= wanted
        selector: Body = {"matchLabels": pairs, "matchExpressions": []}
        owned = self.world.find("ReplicaSet", "rs", namespace)
        if self.pod["metadata"].get("ownerReferences") and owned and owned["spec"]["selector"]:
            more = owned["spec"]["selector"]
            as_expressions = [{"key": k, "operator": "In", "values": [v]} for k, v in more.get("matchLabels", {}).items()]
            selector["matchExpressions"] = as_expressions + more.get("matchExpressions", [])
        return selector

    def included(self, constraint: Body, node: Body) -> bool:
        labels = node["metadata"]["labels"]
        wanted = self.pod["spec"].get("nodeSelector") or {}
        if constraint.get("nodeAffinityPolicy") != "Ignore" and not wanted.items() <= labels.items():
            return False
        tolerated = bool(self.pod["spec"].get("tolerations"))
        return constraint.get("nodeTaintsPolicy") != "Honor" or tolerated or not node["spec"]["taints"]

    def count(self, constraint: Body, node: str) -> int:
        selector = constraint["selector"]
        if selector is None or (empty(selector) and not self.empty_counts):
            return 0
        metas = [pod["metadata"] for pod in self.pods[node]]
        peers = [m for m in metas if m["namespace"] == self.pod["metadata"]["namespace"] and not m["deletionTimestamp"]]
        return sum(matches(selector, m["labels"]) for m in peers)

    def verdict(self, name: str) -> str | None:
        hard = self.constraints("DoNotSchedule")
        labels = self.world.nodes[name]["metadata"]["labels"]
        for constraint in hard:
            key = constraint["topologyKey"]
            if key not in labels:
                return MISSING
            domains = self._domains(hard, constraint)
            enough = len(domains) >= (constraint.get("minDomains") or 1)
            least = min(domains.values()) if enough else 0
            itself = matches(constraint["selector"], self.labels)
            if domains.get(labels[key], 0) + itself - least > constraint["maxSkew"]:
                return SKEW
        return None

    def _domains(self, constraints: list[Body], constraint: Body) -> dict[str, int]:
        domains: dict[str, int] = {}
        for name, body in self.world.nodes.items():
            labels = body["metadata"]["labels"]
            if all(c["topologyKey"] in labels for c in constraints) and self.included(constraint, body):
                value = labels[constraint["topologyKey"]]
                domains[value] = domains.get(value, 0) + self.count(constraint, name)
        return domains

    def scores(self, feasible: list[str]) -> dict[str, int]:
        soft = self.constraints("ScheduleAnyway")
        if not soft:
            return {}
        require_all = bool(self.pod["spec"].get("topologySpreadConstraints")) or bool(self.args)
        labels = {name: node["metadata"]["labels"] for name, node in self.world.nodes.items()}
        complete = {name for name in labels if all(c["topologyKey"] in labels[name] for c in soft) or not require_all}
        scored = [name for name in feasible if name in complete]
        raw = dict.fromkeys(scored, 0.0)
        for constraint in soft:
            key = constraint["topologyKey"]
            domains = {labels[name].get(key, ""): 0 for name in scored}
            for name in complete:
                if labels[name].get(key, "") in domains and self.included(constraint, self.world.nodes[name]):
                    domains[labels[name].get(key, "")] += self.count(constraint, name)
            weight = math.log((len(scored) if key == HOST else len(domains)) + 2)
            for name in scored:
                if key in labels[name]:
                    pods_there = self.count(constraint, name) if key == HOST else domains[labels[name][key]]
                    raw[name] += pods_there * weight + constraint["maxSkew"] - 1
        rounded = {name: math.floor(value + 0.5) for name, value in raw.items()}
        high, low = max(rounded.values(), default=0), min(rounded.values(), default=0)
        normal = {name: 100 * (high + low - value) // high if high else 100 for name, value in rounded.items()}
        return {name: normal.get(name, 0) for name in feasible}


SYSTEM = [
    {"topologyKey": HOST, "maxSkew": 3, "whenUnsatisfiable": "ScheduleAnyway"},
    {"topologyKey": ZONE, "maxSkew": 5, "whenUnsatisfiable": "ScheduleAnyway"},
]


def constraint(dice: Dice, *, default: bool = False) -> Body:
    """A constraint of a pod or, without a selector, of the profile."""
    drawn = {
        "topologyKey": dice.choice(KEYS),
        "maxSkew": dice.randint(1, 2),
        "whenUnsatisfiable": dice.choice(["DoNotSchedule", "ScheduleAnyway"]),
        "minDomains": dice.choice([None, None, 1, 2, 3]),
        "nodeAffinityPolicy": dice.choice([None, "Honor", "Ignore"]),
        "nodeTaintsPolicy": dice.choice([None, "Honor", "Ignore"]),
    }
    if default:
        return drawn
    return drawn | {
        "labelSelector": dice.selector(),
        "matchLabelKeys": dice.choice([None, None, ["app"], ["app", "gone"]]),
    }


def newcomer(dice: Dice) -> Body:
    """A pod to place; half of them bring constraints."""
    own = [constraint(dice) for _ in range(dice.randint(1, 2))] if dice.maybe(0.5) else []
    spec = {
        "topologySpreadConstraints": own,
        "nodeSelector": {"disk": "ssd"} if dice.maybe(0.3) else None,
        "tolerations": [{"operator": "Exists"}] if dice.maybe(0.3) else None,
    }
    pod = dice.pod("new", spec)
    pod["metadata"]["deletionTimestamp"] = None
    if dice.maybe(0.5):
        pod["metadata"]["ownerReferences"] = [{"kind": "ReplicaSet", "apiVersion": "apps/v1", "name": "rs", "controller": True}]
    return pod


def arguments(dice: Dice) -> Body:
    """The system's defaults, or a list."""
    if dice.maybe(0.6):
        return {}
    return {
        "defaultingType": "List",
        "defaultConstraints": [constraint(dice, default=True) for _ in range(dice.randint(1, 2))],
    }


@pytest.mark.parametrize(("version", "empty_counts"), [("1.36", False), ("1.38", True)])
@settings(max_examples=cases(100))
@given(seed=st.integers(0, 2**32))
def test_it_agrees_with_a_scalar_reading_whatever_happens(version: str, empty_counts: bool, seed: int) -> None:
    dice = Dice(seed)
    with hardly_any_room(dice):
        world = World()
        args = arguments(dice)
        plugin = build(PodTopologySpread, world.cluster, args, version)
        populate(world, dice, lambda _: {})
        incoming = [newcomer(dice) for _ in range(3)]
        for _ in range(6):
            for one in incoming:
                assert _said(world, plugin, one) == _by_the_rules(world, one, args, empty_counts)
            name = dice.choice(NODES)
            if name in world.nodes:
                with world.without(name):
                    assert _said(world, plugin, incoming[0]) == _by_the_rules(world, incoming[0], args, empty_counts)
            happen(world, dice, lambda _: {})


Answers = tuple[dict[str, str], Any]


def _said(world: World, plugin: Pairwise, pod: Body) -> Answers:
    """By the plugin: why not, by node, and the scores of the others."""
    reasons = {name: status.message for name, status in verdicts(plugin, world.cluster, info(pod)).items()}
    fitting = [name for name in world.nodes if name not in reasons]
    return reasons, scores(plugin, world.cluster, info(pod), fitting) if fitting else None


def _by_the_rules(world: World, pod: Body, args: Body, empty_counts: bool) -> Answers:
    """The same by the scalar reading."""
    scalar = Scalar(world, pod, args, empty_counts)
    reasons = {name: reason for name in world.nodes if (reason := scalar.verdict(name))}
    fitting = [name for name in world.nodes if name not in reasons]
    return reasons, scalar.scores(fitting) if fitting else None


# --- case by case -------------------------------------------------------------------------------------------------------------


def spread(key: str = "zone", when: str = "DoNotSchedule", **more: Any) -> Body:
    constraint = {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    return {"topologySpreadConstraints": [constraint | more]}


def two_zones(*pods_there: PodMaker) -> Cluster:
    return load([a_node("a", zone="1"), a_node("b", zone="2"), a_node("c"), *pods_there])


def test_a_crowded_domain_is_refused_for_now_and_a_node_outside_all_domains_for_good() -> None:
    cluster = two_zones(a_pod("p", on="a"))
    said = verdicts(build(PodTopologySpread, cluster), cluster, info(a_pod("new", **spread())))
    assert {name: (s.code, s.message) for name, s in said.items()} == {
        "a": (Code.UNSCHEDULABLE, SKEW),
        "c": (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, MISSING),
    }


def test_too_few_domains_count_as_if_one_were_empty() -> None:
    cluster = two_zones(a_pod("p", on="a"), a_pod("q", on="b"))
    plugin = build(PodTopologySpread, cluster)
    assert set(verdicts(plugin, cluster, info(a_pod("new", **spread(minDomains=2))))) == {"c"}
    assert set(verdicts(plugin, cluster, info(a_pod("new", **spread(minDomains=3))))) == {"a", "b", "c"}


@pytest.mark.parametrize(("version", "full"), [("1.36", {"c"}), ("1.38", {"a", "c"})])
@pytest.mark.parametrize("keys", [None, ["gone"]])
def test_an_empty_selector_counts_all_pods_of_the_namespace_from_1_38_on(version: str, full: set[str], keys: list[str] | None) -> None:
    cluster = two_zones(a_pod("p", on="a", app="db"), a_pod("q", on="b", namespace="away"))
    every = spread(labelSelector={}, matchLabelKeys=keys)
    plugin = build(PodTopologySpread, cluster, compatibility=version)
    assert set(verdicts(plugin, cluster, info(a_pod("new", **every)))) == full


@pytest.mark.parametrize("version", ["1.36", "1.38"])
def test_a_missing_selector_counts_no_pod_in_any_version(version: str) -> None:
    cluster = two_zones(a_pod("p", on="a"))
    plugin = build(PodTopologySpread, cluster, compatibility=version)
    assert set(verdicts(plugin, cluster, info(a_pod("new", **spread(labelSelector=None))))) == {"c"}


def test_taking_a_peer_away_hypothetically_opens_its_domain_and_only_for_as_long() -> None:
    cluster = two_zones(a_pod("p", on="a"))
    plugin, new = build(PodTopologySpread, cluster), info(a_pod("new", **spread()))
    with cluster.dry_run_on_row(remove=list(cluster.pods_on("a")), row=cluster.row("a")):
        assert set(verdicts(plugin, cluster, new)) == {"c"}
    assert set(verdicts(plugin, cluster, new)) == {"a", "c"}


def test_a_terminating_pod_does_not_count() -> None:
    cluster = two_zones(a_pod("p", on="a").deleting())
    assert set(verdicts(build(PodTopologySpread, cluster), cluster, info(a_pod("new", **spread())))) == {"c"}


def test_a_pod_without_constraints_that_no_service_selects_is_skipped() -> None:
    cluster = two_zones(a_pod("p", on="a"))
    plugin, new = build(PodTopologySpread, cluster), info(a_pod("new"))
    assert plugin.pre_filter(CycleState(), new, cluster).status.code is Code.SKIP
    assert plugin.pre_score(CycleState(), new, cluster, cluster.rows()).code is Code.SKIP


def test_the_pods_of_a_service_are_spread_by_default_even_over_nodes_without_a_zone() -> None:
    web = service("s").namespace("home").selects(app="web")
    hosts = [a_node("a", **{HOST: "a", ZONE: "1"}), a_node("b", **{HOST: "b"})]
    cluster = load([*hosts, web, a_pod("p", on="a")])
    assert scores(build(PodTopologySpread, cluster), cluster, info(a_pod("new")), ["a", "b"]) == {"a": 22, "b": 100}


def test_a_selector_that_does_not_parse_fails_the_cycle_and_names_the_constraints() -> None:
    cluster = two_zones()
    bad = spread(labelSelector={"matchExpressions": [{"key": "app", "operator": "Near"}]})
    status = build(PodTopologySpread, cluster).pre_filter(CycleState(), info(a_pod("new", **bad)), cluster).status
    assert status.code is Code.ERROR
    assert status.message.startswith("get constraints from pod: obtaining pod's hard topology spread constraints: ")


def test_equal_fingerprints_mean_equal_columns_and_a_count_that_changes_nothing_keeps_them() -> None:
    cluster = two_zones(a_pod("p", on="a"))
    plugin, new = build(PodTopologySpread, cluster), info(a_pod("new", **spread()))

    def fingerprint() -> Any:
        state = CycleState()
        plugin.pre_filter(state, new, cluster)
        return plugin.fingerprint(state, cluster)

    before = fingerprint()
    cluster.set_pod(info(a_pod("q", on="a")))
    assert fingerprint() == before
    cluster.set_pod(info(a_pod("r", on="b")))
    cluster.set_pod(info(a_pod("s", on="b")))
    assert fingerprint() != before


@pytest.mark.parametrize(
    ("args", "path"),
    [
        ({"defaultConstraints": [{"topologyKey": "z"}]}, "defaultConstraints"),
        (
            {"defaultingType": "List", "defaultConstraints": [{"maxSkew": 0, "topologyKey": "z"}]},
            "defaultConstraints[0].maxSkew",
        ),
        ({"defaultingType": "List", "defaultConstraints": [{"topologyKey": ""}]}, "defaultConstraints[0].topologyKey"),
        (
            {"defaultingType": "List", "defaultConstraints": [{"topologyKey": "z", "whenUnsatisfiable": "Never"}]},
            "defaultConstraints[0].whenUnsatisfiable",
        ),
        (
            {"defaultingType": "List", "defaultConstraints": [{"topologyKey": "z", "labelSelector": {}}]},
            "defaultConstraints[0].labelSelector",
        ),
        ({"defaultingType": "List", "defaultConstraints": [{"topologyKey": "z"}] * 2}, "defaultConstraints[1]"),
    ],
)
def test_wrong_arguments_are_refused_by_path(args: Body, path: str) -> None:
    with pytest.raises(ProfileError) as refused:
        read_args(PodTopologySpread, args)
    assert [problem.path for problem in refused.value.problems] == [path]


# --- hints --------------------------------------------------------------------------------------------------------------------


def hint(rejected: PodMaker, resource: EventResource, action: Action, old: Any, new: Any) -> QueueingHint:
    plugin = build(PodTopologySpread, Cluster())
    event = ClusterEvent(resource, action)
    [registered] = [i for i in plugin.events() if event.concerns(i.event)]
    return registered.hint(info(rejected), old, new)


WAITING = a_pod("new", **spread())


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, a_pod("p", on="a"), QueueingHint.QUEUE),
        (a_pod("p", on="a"), None, QueueingHint.QUEUE),
        (None, a_pod("p"), QueueingHint.SKIP),
        (None, a_pod("p", on="a", app="db"), QueueingHint.SKIP),
        (a_pod("p", on="a"), a_pod("p", on="a", app="db"), QueueingHint.QUEUE),
        (a_pod("p", on="a", app="x"), a_pod("p", on="a", app="db"), QueueingHint.SKIP),
        (a_pod("new", **spread()), a_pod("new", **spread(), tolerations=[{"operator": "Exists"}]), QueueingHint.SKIP),
    ],
)
def test_only_pods_that_count_are_worth_another_try(old: PodMaker | None, new: PodMaker | None, expected: QueueingHint) -> None:
    before, after = old and info(old), new and info(new)
    assert hint(WAITING, EventResource.POD, Action.UPDATE_POD_LABEL, before, after) is expected


def test_an_own_new_toleration_is_worth_another_try_where_taints_are_honoured() -> None:
    honouring = a_pod("new", **spread(nodeTaintsPolicy="Honor"))
    tolerant = a_pod("new", **spread(nodeTaintsPolicy="Honor"), tolerations=[{"operator": "Exists"}])
    assert hint(honouring, EventResource.POD, Action.UPDATE_POD_TOLERATION, info(honouring), info(tolerant)) is QueueingHint.QUEUE


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, a_node("a", zone="1"), QueueingHint.QUEUE),
        (None, a_node("a"), QueueingHint.SKIP),
        (a_node("a", zone="1"), None, QueueingHint.QUEUE),
        (a_node("a"), None, QueueingHint.SKIP),
        (a_node("a"), a_node("a", zone="1"), QueueingHint.QUEUE),
        (a_node("a", zone="1"), a_node("a", zone="2"), QueueingHint.QUEUE),
        (a_node("a", zone="1"), a_node("a", zone="1", disk="ssd"), QueueingHint.SKIP),
    ],
)
def test_only_nodes_that_join_leave_or_change_a_domain_are_worth_another_try(
    old: NodeMaker | None, new: NodeMaker | None, expected: QueueingHint
) -> None:
    before, after = old and old.build(), new and new.build()
    assert hint(WAITING, EventResource.NODE, Action.UPDATE_NODE_LABEL, before, after) is expected
