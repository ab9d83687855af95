"""InterPodAffinity against a plain scalar reading of the rules and case by case."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pairwise
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pairwise import Pairwise, a_node, build, load, scores, verdicts
from pairwise_worlds import KEYS, NAMESPACES, NODES, Body, Dice, World, happen, hardly_any_room, info, matches, populate

from placewright.cluster.cluster import Cluster
from placewright.framework.events import Action, ClusterEvent, EventResource, QueueingHint
from placewright.framework.interface import CycleState
from placewright.framework.status import Code
from placewright.plugins.interpodaffinity.plugin import InterPodAffinity
from placewright.profiles.arguments import read_args
from placewright.profiles.problem import ProfileError
from placewright.testing import namespace
from placewright.testing.nodes import NodeMaker
from placewright.testing.objectmaker import ObjectMaker
from placewright.testing.pods import PodMaker
from randomcases import cases

UNMATCHED = "node(s) didn't match pod affinity rules"
UNWANTED = "node(s) didn't match pod anti-affinity rules"
BANNED = "node(s) didn't satisfy existing pods anti-affinity rules"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


# --- the scalar reading -------------------------------------------------------------------------------------------------------


def required(pod: Body, side: str) -> list[Body]:
    return list((pod["spec"].get("affinity") or {}).get(side, {}).get(REQUIRED, []))


def preferred(pod: Body) -> Iterator[tuple[int, Body]]:
    for side, sign in (("podAffinity", 1), ("podAntiAffinity", -1)):
        for weighted in (pod["spec"].get("affinity") or {}).get(side, {}).get(PREFERRED, []):
            yield sign * weighted["weight"], weighted["podAffinityTerm"]


class Scalar:
    """The rules for one pod, node by node and pod by pod."""

    def __init__(self, world: World, pod: Body, args: Body) -> None:
        self.world, self.pod = world, pod
        self.hard_weight = args.get("hardPodAffinityWeight", 1)
        self.ignores = args.get("ignorePreferredTermsOfExistingPods", False)
        self.labels = {name: node["metadata"]["labels"] for name, node in world.nodes.items()}
        self.placed = [(name, other) for name, there in world.pods_by_node().items() for other in there]

    def means(self, owner: Body, term: Body, other: Body) -> bool:
        """Does this term of `owner`, which is coming, mean `other`?"""
        reach = set(self._named(owner, term))
        selector = term.get("namespaceSelector")
        reach |= {each["metadata"]["name"] for each in self.world.every("Namespace") if matches(selector, each["metadata"]["labels"])}
        everywhere = matches(selector, {})  # kube-scheduler asks the selector about no labels, too
        meta = other["metadata"]
        return (everywhere or meta["namespace"] in reach) and matches(term.get("labelSelector"), meta["labels"])

    def faces(self, owner: Body, term: Body) -> bool:
        """Does this term of `owner`, which is placed, mean the pod?"""
        meta = self.pod["metadata"]
        own = self.world.find("Namespace", meta["namespace"]) or {"metadata": {"labels": {}}}
        inside = meta["namespace"] in self._named(owner, term) or matches(term.get("namespaceSelector"), own["metadata"]["labels"])
        return inside and matches(term.get("labelSelector"), meta["labels"])

    @staticmethod
    def _named(owner: Body, term: Body) -> list[str]:
        named = term.get("namespaces") or []
        return named or ([owner["metadata"]["namespace"]] if term.get("namespaceSelector") is None else [])

    def together(self, one: str, other: str, key: str) -> bool:
        a, b = self.labels[one], self.labels[other]
        return key in a and key in b and a[key] == b[key]

    def verdict(self, name: str) -> str | None:
        if not self._attracted(name):
            return UNMATCHED
        for other_node, other in self.placed:
            for term in required(self.pod, "podAntiAffinity"):
                if self.together(name, other_node, term["topologyKey"]) and self.means(self.pod, term, other):
                    return UNWANTED
        for other_node, other in self.placed:
            for term in required(other, "podAntiAffinity"):
                if self.together(name, other_node, term["topologyKey"]) and self.faces(other, term):
                    return BANNED
        return None

    def _attracted(self, name: str) -> bool:
        terms = required(self.pod, "podAffinity")
        if any(term["topologyKey"] not in self.labels[name] for term in terms):
            return False
        wanted = [on for on, other in self.placed if all(self.means(self.pod, term, other) for term in terms)]
        if all(any(self.together(name, on, term["topologyKey"]) for on in wanted) for term in terms):
            return True
        anywhere = any(term["topologyKey"] in self.labels[on] for on in wanted for term in terms)
        return not anywhere and all(self.means(self.pod, term, self.pod) for term in terms)

    def scores(self, feasible: list[str]) -> dict[str, int] | None:
        """None where the plugin would skip."""
        if self.ignores and not list(preferred(self.pod)):
            return None
        gains = [gain for on, other in self.placed for gain in self._gains(on, other)]
        if not gains:
            return None
        raw = {name: sum(w for key, value, w in gains if self.labels[name].get(key) == value) for name in feasible}
        low, high = min(raw.values()), max(raw.values())
        return {name: int(100.0 * ((value - low) / (high - low))) if high > low else 0 for name, value in raw.items()}

    def _gains(self, on: str, other: Body) -> Iterator[tuple[str, str, int]]:
        terms = [(w, term) for w, term in preferred(self.pod) if self.means(self.pod, term, other)]
        terms += [(w, term) for w, term in preferred(other) if self.faces(other, term)]
        if self.hard_weight:
            terms += [(self.hard_weight, term) for term in required(other, "podAffinity") if self.faces(other, term)]
        for weight, term in terms:
            if term["topologyKey"] in self.labels[on]:
                yield term["topologyKey"], self.labels[on][term["topologyKey"]], weight


NAMESPACE_SELECTORS: tuple[Body, ...] = (
    {},
    {"matchLabels": {"env": "prod"}},
    {"matchLabels": {"env": "prod"}},
    {"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["prod"]}]},
    {"matchExpressions": [{"key": "env", "operator": "DoesNotExist"}]},
)


def any_term(dice: Dice) -> Body:
    """A term; it may look into other namespaces."""
    drawn = {"topologyKey": dice.choice(KEYS), "labelSelector": dice.selector()}
    if dice.maybe(0.2):
        drawn["namespaces"] = [dice.choice(NAMESPACES)]
    if dice.maybe(0.3):
        drawn["namespaceSelector"] = dice.choice(NAMESPACE_SELECTORS)
    return drawn


def any_side(dice: Dice, hard: float) -> Body:
    """Affinity or anti-affinity; required with this chance."""
    soft = [{"weight": dice.randint(1, 100), "podAffinityTerm": any_term(dice)} for _ in range(dice.randint(0, 2))]
    return {REQUIRED: [any_term(dice) for _ in range(dice.randint(1, 2))] if dice.maybe(hard) else [], PREFERRED: soft}


def any_spec(dice: Dice) -> Body:
    """Half of the pods have terms; seldom required anti-affinity, which would fill the world with bans."""
    if dice.maybe(0.5):
        return {}
    return {"affinity": {"podAffinity": any_side(dice, 0.5), "podAntiAffinity": any_side(dice, 0.2)}}


def newcomer(dice: Dice) -> Body:
    """A pod to place."""
    drawn = dice.pod("new", any_spec(dice))
    drawn["metadata"]["deletionTimestamp"] = None
    return drawn


@settings(max_examples=cases(200))
@given(st.integers(0, 2**32))
@example(5367)  # a pod's terms of opposite weights cancel out
@example(2717552120)
def test_it_agrees_with_a_scalar_reading_whatever_happens(seed: int) -> None:
    dice = Dice(seed)
    with hardly_any_room(dice):
        world = World()
        args = {"hardPodAffinityWeight": dice.choice([0, 1, 30]), "ignorePreferredTermsOfExistingPods": dice.maybe(0.3)}
        plugin = build(InterPodAffinity, world.cluster, args)
        populate(world, dice, any_spec)
        incoming = [newcomer(dice) for _ in range(3)]
        for _ in range(6):
            for one in incoming:
                assert _said(world, plugin, one) == _by_the_rules(world, one, args)
            name = dice.choice(NODES)
            if name in world.nodes:
                with world.without(name):
                    assert _said(world, plugin, incoming[0]) == _by_the_rules(world, incoming[0], args)
            happen(world, dice, any_spec)


Answers = tuple[dict[str, str], Any]


def _said(world: World, plugin: Pairwise, pod: Body) -> Answers:
    """By the plugin: why not, by node, and the scores of the others."""
    reasons = {name: status.message for name, status in verdicts(plugin, world.cluster, info(pod)).items()}
    fitting = [name for name in world.nodes if name not in reasons]
    return reasons, scores(plugin, world.cluster, info(pod), fitting) if fitting else None


def _by_the_rules(world: World, pod: Body, args: Body) -> Answers:
    """The same by the scalar reading."""
    scalar = Scalar(world, pod, args)
    reasons = {name: reason for name in world.nodes if (reason := scalar.verdict(name))}
    fitting = [name for name in world.nodes if name not in reasons]
    return reasons, (scalar.scores(fitting) or {}) if fitting else None


# --- case by case -------------------------------------------------------------------------------------------------------------


def a_pod(name: str, on: str = "", app: str = "web", namespace: str = "home", **affinity: Any) -> PodMaker:
    return pairwise.a_pod(name, on, app, namespace, affinity=affinity or None)


def term(app: str = "web", key: str = "zone", **more: Any) -> Body:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}} | more


def near(*wanted: Body) -> Body:
    return {"podAffinity": {REQUIRED: list(wanted)}}


def apart(*unwanted: Body) -> Body:
    return {"podAntiAffinity": {REQUIRED: list(unwanted)}}


def two_zones(*objects: ObjectMaker[Any]) -> Cluster:
    return load([a_node("a", zone="1"), a_node("b", zone="2"), a_node("c"), *objects])


def said_of(cluster: Cluster, pending: PodMaker) -> dict[str, tuple[Code, str]]:
    found = verdicts(build(InterPodAffinity, cluster), cluster, info(pending))
    return {name: (status.code, status.message) for name, status in found.items()}


def test_affinity_refuses_for_good_every_node_that_is_not_near_a_wanted_pod() -> None:
    cluster = two_zones(a_pod("p", on="a"))
    for_good = (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, UNMATCHED)
    assert said_of(cluster, a_pod("new", app="other", **near(term()))) == {"b": for_good, "c": for_good}


def test_the_first_of_pods_that_want_each_other_may_go_to_any_node_with_the_label() -> None:
    assert set(said_of(two_zones(), a_pod("new", **near(term())))) == {"c"}
    assert set(said_of(two_zones(), a_pod("new", app="other", **near(term())))) == {"a", "b", "c"}


def test_a_wanted_pod_anywhere_ends_the_first_pods_privilege() -> None:
    assert set(said_of(two_zones(a_pod("p", on="a")), a_pod("new", **near(term())))) == {"b", "c"}


def test_a_wanted_pod_that_only_one_term_can_see_ends_the_privilege_too() -> None:
    cluster = load([a_node("a", zone="1", rack="1"), a_node("b", zone="2"), a_pod("p", on="b")])
    assert set(said_of(cluster, a_pod("new", **near(term(), term(key="rack"))))) == {"a", "b"}


def test_anti_affinity_refuses_for_now_and_from_either_side() -> None:
    placed = two_zones(a_pod("p", on="a"))
    assert said_of(placed, a_pod("new", app="other", **apart(term()))) == {"a": (Code.UNSCHEDULABLE, UNWANTED)}
    wary = two_zones(a_pod("p", on="a", app="other", **apart(term())))
    assert said_of(wary, a_pod("new")) == {"a": (Code.UNSCHEDULABLE, BANNED)}


def test_a_terminating_pod_still_counts() -> None:
    leaving = a_pod("p", on="a").deleting()
    assert set(said_of(two_zones(leaving), a_pod("new", app="other", **apart(term())))) == {"a"}


def test_a_namespace_selector_that_matches_no_labels_reaches_every_namespace() -> None:
    named = namespace("away").labels(env="prod")
    cluster = two_zones(named, a_pod("p", on="a", namespace="away"))
    outside_prod = {"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["prod"]}]}
    only_dev = {"matchLabels": {"env": "dev"}}
    assert set(said_of(cluster, a_pod("new", **apart(term(namespaceSelector=outside_prod))))) == {"a"}
    assert set(said_of(cluster, a_pod("new", **apart(term(namespaceSelector=only_dev))))) == set()


def test_taking_a_pod_away_hypothetically_lifts_its_ban_and_only_for_as_long() -> None:
    cluster = two_zones(a_pod("p", on="a", **apart(term())))
    with cluster.dry_run_on_row(remove=list(cluster.pods_on("a")), row=cluster.row("a")):
        assert said_of(cluster, a_pod("new")) == {}
    assert set(said_of(cluster, a_pod("new"))) == {"a"}


def test_a_pod_that_nobody_means_and_that_means_nobody_is_skipped() -> None:
    cluster = two_zones(a_pod("p", on="a", **apart(term("db"))))
    plugin, new = build(InterPodAffinity, cluster), info(a_pod("new"))
    assert plugin.pre_filter(CycleState(), new, cluster).status.code is Code.SKIP
    assert plugin.pre_score(CycleState(), new, cluster, cluster.rows()).code is Code.SKIP


def test_scores_are_cut_off_after_a_division_in_floats() -> None:
    cluster = two_zones(a_pod("p", on="a", app="db"), a_pod("q", on="b", app="cache"))
    liked = [{"weight": 100, "podAffinityTerm": term("db")}, {"weight": 29, "podAffinityTerm": term("cache")}]
    fond = a_pod("new", podAffinity={PREFERRED: liked})
    # 100·(29/100) is 28.999… in floats.
    assert scores(build(InterPodAffinity, cluster), cluster, info(fond), ["a", "b", "c"]) == {"a": 100, "b": 28, "c": 0}


def test_terms_that_do_not_parse_refuse_an_incoming_pod_and_are_ignored_on_a_placed_one() -> None:
    broken = term(labelSelector={"matchExpressions": [{"key": "app", "operator": "Near"}]})
    cluster = two_zones(a_pod("p", on="a", **apart(broken)))
    assert said_of(cluster, a_pod("new")) == {}
    status = build(InterPodAffinity, cluster).pre_filter(CycleState(), info(a_pod("new", **apart(broken))), cluster).status
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.message.startswith("parsing pod: requiredAntiAffinityTerms: ")


def test_equal_fingerprints_mean_equal_columns() -> None:
    cluster = two_zones(a_pod("p", on="a"))
    plugin, new = build(InterPodAffinity, cluster), info(a_pod("new", app="other", **near(term())))

    def fingerprint() -> Any:
        state = CycleState()
        plugin.pre_filter(state, new, cluster)
        return plugin.fingerprint(state, cluster)

    before = fingerprint()
    cluster.set_pod(info(a_pod("q", on="a")))
    assert fingerprint() == before
    cluster.set_pod(info(a_pod("r", on="b")))
    assert fingerprint() != before


@pytest.mark.parametrize("weight", [-1, 101])
def test_a_weight_out_of_range_is_refused_by_path(weight: int) -> None:
    with pytest.raises(ProfileError) as refused:
        read_args(InterPodAffinity, {"hardPodAffinityWeight": weight})
    assert refused.value.problems == (("hardPodAffinityWeight", str(weight), "0 to 100"),)


# --- hints --------------------------------------------------------------------------------------------------------------------


def hint(rejected: PodMaker, resource: EventResource, action: Action, old: Any, new: Any, *placed: ObjectMaker[Any]) -> QueueingHint:
    plugin = build(InterPodAffinity, load(list(placed)))
    event = ClusterEvent(resource, action)
    [registered] = [i for i in plugin.events() if event.concerns(i.event)]
    return registered.hint(info(rejected), old, new)


ATTRACTED = a_pod("new", **near(term("db")))
REPELLED = a_pod("new", **apart(term("db")))


@pytest.mark.parametrize(
    ("rejected", "old", "new", "expected"),
    [
        (ATTRACTED, None, a_pod("p", on="a", app="db"), QueueingHint.QUEUE),
        (ATTRACTED, None, a_pod("p", app="db"), QueueingHint.SKIP),
        (ATTRACTED, None, a_pod("p", on="a"), QueueingHint.SKIP),
        (ATTRACTED, a_pod("p", on="a"), a_pod("p", on="a", app="db"), QueueingHint.QUEUE),
        (ATTRACTED, a_pod("p", on="a", app="db"), None, QueueingHint.SKIP),
        (ATTRACTED, ATTRACTED, a_pod("new", app="x", **near(term("db"))), QueueingHint.QUEUE),
        (REPELLED, a_pod("p", on="a", app="db"), None, QueueingHint.QUEUE),
        (REPELLED, a_pod("p", on="a", app="db"), a_pod("p", on="a"), QueueingHint.QUEUE),
        (REPELLED, a_pod("p", on="a"), None, QueueingHint.SKIP),
        (a_pod("new"), a_pod("p", on="a", app="db", **apart(term())), None, QueueingHint.QUEUE),
        (a_pod("new"), a_pod("p", on="a", app="db", **apart(term("cache"))), None, QueueingHint.SKIP),
    ],
)
def test_only_pods_that_a_term_means_are_worth_another_try(
    rejected: PodMaker, old: PodMaker | None, new: PodMaker | None, expected: QueueingHint
) -> None:
    before, after = old and info(old), new and info(new)
    assert hint(rejected, EventResource.POD, Action.UPDATE_POD_LABEL, before, after) is expected


@pytest.mark.parametrize(
    ("rejected", "old", "new", "expected"),
    [
        (ATTRACTED, None, a_node("a", zone="1"), QueueingHint.QUEUE),
        (ATTRACTED, None, a_node("a"), QueueingHint.SKIP),
        (ATTRACTED, a_node("a"), a_node("a", zone="1"), QueueingHint.QUEUE),
        (ATTRACTED, a_node("a", zone="1"), a_node("a", zone="2"), QueueingHint.QUEUE),
        (ATTRACTED, a_node("a", zone="1"), a_node("a"), QueueingHint.SKIP),
        (REPELLED, None, a_node("a"), QueueingHint.QUEUE),
        (REPELLED, a_node("a", zone="1"), a_node("a"), QueueingHint.QUEUE),
        (REPELLED, a_node("a"), a_node("a", zone="1"), QueueingHint.SKIP),
        (REPELLED, a_node("a", zone="1"), a_node("a", zone="1", disk="ssd"), QueueingHint.SKIP),
    ],
)
def test_only_nodes_that_come_into_reach_are_worth_another_try(
    rejected: PodMaker, old: NodeMaker | None, new: NodeMaker, expected: QueueingHint
) -> None:
    before, after = old and old.build(), new.build()
    assert hint(rejected, EventResource.NODE, Action.UPDATE_NODE_LABEL, before, after) is expected


def test_a_node_that_leaves_the_domain_of_a_wary_pod_is_worth_another_try() -> None:
    wary = a_pod("p", on="a", **apart(term()))
    before, after = (a_node("b", zone=zone).build() for zone in "12")
    assert (
        hint(a_pod("new"), EventResource.NODE, Action.UPDATE_NODE_LABEL, before, after, wary, a_node("a", zone="1")) is QueueingHint.QUEUE
    )
    assert hint(a_pod("new"), EventResource.NODE, Action.UPDATE_NODE_LABEL, before, after) is QueueingHint.SKIP
