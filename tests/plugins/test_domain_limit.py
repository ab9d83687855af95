"""DomainLimit against a plain scalar reading of its rules, and in a whole scheduler."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pairwise import Pairwise, build, scores, verdicts
from pairwise_worlds import HOST, KEYS, NODES, ZONE, Body, Dice, World, happen, hardly_any_room, info, matches, populate

from placewright import testing as kit
from placewright.api.annotations import DOMAIN_LIMITS
from placewright.cluster.cluster import Cluster
from placewright.framework.events import EventResource, QueueingHint
from placewright.framework.interface import CycleState
from placewright.framework.status import Code
from placewright.plugins.domainlimit.args import LONGEST_TEXT, MOST_LIMITS
from placewright.plugins.domainlimit.plugin import DomainLimit
from placewright.profiles.arguments import read_args
from placewright.profiles.problem import ProfileError
from placewright.testing import (
    PluginCase,
    assert_bound,
    assert_evicted,
    assert_placed,
    assert_waiting,
    node,
    pod,
    pod_group,
    profile,
)
from placewright.testing.pods import PodMaker
from randomcases import cases

PROBLEM: Final = f"annotation {DOMAIN_LIMITS}: "
ALLOWED: Final = 'a JSON list of limits, or as in "2 per kubernetes.io/hostname of app"'
WEB: Final = {"matchLabels": {"app": "web"}}
EACH_APP: Final = {"selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}, "matchLabelKeys": ["app"]}


def full(most: int, key: str) -> str:
    return f"node(s) would exceed the limit of {most} pod{'s' if most > 1 else ''} per {key}"


def lacks(key: str) -> str:
    return f"node(s) didn't have the label {key}, by which pods are limited"


# --- the scalar reading -------------------------------------------------------------------------------------------------------


class Scalar:
    """The rules for one pod, node by node and pod by pod."""

    def __init__(self, world: World, pod: Body, args: Body) -> None:
        self.world, self.args = world, args
        self.meta = pod["metadata"]
        self.pods = world.pods_by_node()

    def limits(self, mode: str) -> list[Body]:
        """The profile's limits that pick the pod, then the pod's own, each with the namespaces where it counts."""
        home = [self.meta["namespace"]]
        stated = [limit | {"namespaces": limit.get("namespaces") or home} for limit in self.args.get("limits", ())]
        own = [limit | {"namespaces": home} for limit in json.loads((self.meta.get("annotations") or {}).get(DOMAIN_LIMITS, "[]"))]
        return [limit for limit in [*stated, *own] if limit.get("mode", "Required") == mode and self.picks(limit, self.meta)]

    def mistaken(self) -> bool:
        """True where a limit of the pod's own does not pick it."""
        own = json.loads((self.meta.get("annotations") or {}).get(DOMAIN_LIMITS, "[]"))
        return not all(self.picks(limit | {"namespaces": [self.meta["namespace"]]}, self.meta) for limit in own)

    def picks(self, limit: Body, meta: Body) -> bool:
        if meta["namespace"] not in limit["namespaces"] or not matches(limit["selector"], meta["labels"]):
            return False
        own = self.meta["labels"]
        return all(meta["labels"].get(key) == own[key] for key in limit.get("matchLabelKeys", ()) if key in own)

    def count(self, limit: Body, value: str) -> int:
        """Pods in a domain; those that are being deleted count."""
        inside = [name for name, each in self.world.nodes.items() if each["metadata"]["labels"].get(limit["topologyKey"]) == value]
        return sum(self.picks(limit, each["metadata"]) for name in inside for each in self.pods[name])

    def verdict(self, name: str) -> str | None:
        labels = self.world.nodes[name]["metadata"]["labels"]
        for limit in self.limits("Required"):
            key = limit["topologyKey"]
            if key not in labels:
                return lacks(key)
            if self.count(limit, labels[key]) + 1 > limit["max"]:
                return full(limit["max"], key)
        return None

    def scores(self, feasible: list[str]) -> dict[str, int]:
        preferred = self.limits("Preferred")
        beyond: dict[str, int | None] = {}
        for name in feasible:
            labels = self.world.nodes[name]["metadata"]["labels"]
            lacking = any(limit["topologyKey"] not in labels for limit in preferred)
            by = [max(self.count(limit, labels[limit["topologyKey"]]) + 1 - limit["max"], 0) for limit in preferred if not lacking]
            beyond[name] = None if lacking else sum(by)
        most = max((by for by in beyond.values() if by), default=0)
        return {name: 0 if by is None else 100 - (100 * by // most if most else 0) for name, by in beyond.items()}


def limit(dice: Dice) -> Body:
    """A limit of a profile or of a pod."""
    drawn: Body = {"selector": dice.selector() or {}, "topologyKey": dice.choice(KEYS), "max": dice.choice((1, 1, 2, 3))}
    drawn |= {"mode": dice.choice(("Required", "Preferred"))} if dice.maybe(0.7) else {}
    return drawn | ({"matchLabelKeys": dice.choice((["app"], ["tier"], ["app", "gone"]))} if dice.maybe(0.3) else {})


def arguments(dice: Dice) -> Body:
    """Of a profile: none, or a limit or two."""
    chosen = [limit(dice) | {"namespaces": dice.choice(([], [], ["home"], ["home", "away"]))} for _ in range(dice.choice((0, 1, 2)))]
    return {"limits": chosen}


def newcomer(dice: Dice) -> Body:
    """A pod to place; half of them bring limits."""
    new = dice.pod("new", {})
    new["metadata"]["deletionTimestamp"] = None
    own = [limit(dice) for _ in range(dice.choice((0, 0, 1, 2)))]
    new["metadata"]["annotations"] = {DOMAIN_LIMITS: json.dumps(own)} if own else None
    return new


@settings(max_examples=cases(200))
@given(st.integers(0, 2**32))
def test_it_agrees_with_a_scalar_reading_after_each_change(seed: int) -> None:
    dice = Dice(seed)
    with hardly_any_room(dice):
        world = World()
        args = arguments(dice)
        plugin = build(DomainLimit, world.cluster, args)
        populate(world, dice, lambda _: {})
        incoming = [newcomer(dice) for _ in range(3)]
        for _ in range(6):
            for one in incoming:
                assert _said(world, plugin, one) == _by_the_rules(world, one, args)
            name = dice.choice(NODES)
            if name in world.nodes:
                with world.without(name):
                    assert _said(world, plugin, incoming[0]) == _by_the_rules(world, incoming[0], args)
            happen(world, dice, lambda _: {})


Answers = tuple[dict[str, str], dict[str, int]]


def _said(world: World, plugin: Pairwise, pod: Body) -> Answers:
    """By the plugin: why not, by node, and the scores of the others; a pod that it does not score likes all alike."""
    reasons = {name: status.message for name, status in verdicts(plugin, world.cluster, info(pod)).items()}
    fitting = [name for name in world.nodes if name not in reasons]
    return reasons, (scores(plugin, world.cluster, info(pod), fitting) or dict.fromkeys(fitting, 100)) if fitting else {}


def _by_the_rules(world: World, pod: Body, args: Body) -> Answers:
    """The same by the scalar reading."""
    scalar = Scalar(world, pod, args)
    if scalar.mistaken():
        own = json.loads(pod["metadata"]["annotations"][DOMAIN_LIMITS])
        home = {"namespaces": [pod["metadata"]["namespace"]]}
        first = next(i for i, each in enumerate(own) if not scalar.picks(each | home, pod["metadata"]))
        return dict.fromkeys(world.nodes, f"{PROBLEM}[{first}]: the selector does not pick the pod itself"), {}
    reasons = {name: reason for name in world.nodes if (reason := scalar.verdict(name))}
    fitting = [name for name in world.nodes if name not in reasons]
    return reasons, scalar.scores(fitting)


# --- which pods count ---------------------------------------------------------------------------------------------------------


def limited(name: str, text: str, **labels: str) -> PodMaker:
    """A pod that states limits itself."""
    return pod(name).labels(labels or {"app": "web"}).annotations({DOMAIN_LIMITS: text})


def web(name: str) -> PodMaker:
    return pod(name).labels(app="web")


def zones(*names: str) -> list[Any]:
    """A node in each of these zones: `a-0`, `a-1`, `b-2`."""
    return [node(f"{zone}-{number}").zone(zone) for number, zone in enumerate(names)]


def rejections(new: PodMaker, *placed: PodMaker, nodes: list[Any] | None = None, **args: Any) -> dict[str, str]:
    case = PluginCase(DomainLimit, args=args, nodes=nodes or zones("a", "b"), pods=placed)
    return dict(case.rejections(new))


def test_pods_that_are_being_deleted_count_until_they_are_gone() -> None:
    leaving = web("x").on("a-0").deleting()
    assert rejections(limited("new", f"1 per {HOST} of app"), leaving) == {"a-0": full(1, HOST)}


def test_every_pod_that_the_selector_picks_counts_and_need_not_carry_a_limit_itself() -> None:
    assert rejections(limited("new", f"1 per {HOST} of app"), web("x").on("a-0")) == {"a-0": full(1, HOST)}


def test_a_pod_without_a_limit_goes_where_a_limit_of_another_pod_is_used_up() -> None:
    assert rejections(web("new"), limited("x", f"1 per {HOST} of app").on("a-0")) == {}


def test_a_limit_of_the_profile_holds_for_the_pods_that_it_picks_and_for_no_others() -> None:
    limits = [{"selector": WEB, "topologyKey": ZONE, "max": 1}]
    assert rejections(web("new"), web("x").on("a-0"), limits=limits) == {"a-0": full(1, ZONE)}
    assert rejections(pod("new").labels(app="db"), web("x").on("a-0"), limits=limits) == {}


def test_each_application_counts_by_itself_where_the_limit_matches_the_value_of_a_label() -> None:
    limits = [EACH_APP | {"topologyKey": HOST, "max": 1}]
    assert rejections(web("new"), pod("x").labels(app="db").on("a-0"), limits=limits) == {}
    assert rejections(web("new"), web("x").on("a-0"), limits=limits) == {"a-0": full(1, HOST)}
    assert rejections(pod("new"), pod("x").on("a-0"), limits=limits) == {}, "pods of no application are not limited"


def test_namespaces_count_apart_and_together_where_the_profile_names_them() -> None:
    limits = [{"selector": WEB, "topologyKey": ZONE, "max": 1}]
    elsewhere = web("x").namespace("away").on("a-0")
    assert rejections(web("new"), elsewhere, limits=limits) == {}
    together = [limits[0] | {"namespaces": ["default", "away"]}]
    assert rejections(web("new"), elsewhere, limits=together) == {"a-0": full(1, ZONE)}
    assert rejections(web("new").namespace("third"), elsewhere, limits=together) == {}


def test_a_node_without_the_label_is_left_out_because_its_domain_may_be_full() -> None:
    nodes = [*zones("a"), node("lost")]
    case = PluginCase(DomainLimit, nodes=nodes)
    assert case.rejections(limited("new", f"1 per {ZONE} of app")) == {"lost": lacks(ZONE)}
    assert case.scores(limited("new", f"1 per {ZONE} of app preferred")) == {"a-0": 100, "lost": 0}


def test_the_pods_own_limits_and_the_profiles_all_hold() -> None:
    limits = [{"selector": WEB, "topologyKey": ZONE, "max": 2}]
    placed = [web(name).on(on) for name, on in (("x", "a-0"), ("y", "a-1"), ("z", "b-2"))]
    found = rejections(limited("new", f"1 per {HOST} of app"), *placed, nodes=zones("a", "a", "b", "b"), limits=limits)
    assert found == {"a-0": full(2, ZONE), "a-1": full(2, ZONE), "b-2": full(1, HOST)}


def test_a_preferred_limit_puts_domains_first_that_are_less_beyond_it() -> None:
    placed = [web(f"a{i}").on("a-0") for i in range(5)] + [web(f"b{i}").on("b-1") for i in range(3)] + [web("c").on("c-2")]
    case = PluginCase(DomainLimit, nodes=zones("a", "b", "c", "d"), pods=placed)
    # Beyond two pods a zone: four, two, none and none.
    assert case.scores(limited("new", f"2 per {ZONE} of app preferred")) == {"a-0": 0, "b-1": 50, "c-2": 100, "d-3": 100}
    assert case.rejections(limited("new", f"2 per {ZONE} of app preferred")) == {}


# --- the annotation -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("two per host", f'found "two per host"; allowed {ALLOWED}'),
        ("", f'found ""; allowed {ALLOWED}'),
        (f"1 per {HOST} of app,", f'found ""; allowed {ALLOWED}'),
        (f"1 per {HOST}", f'found "1 per {HOST}"; allowed {ALLOWED}'),
        (f"0 per {HOST} of app", "[0].max: found 0; allowed 1 to 1000000"),
        (f"1 per {HOST} of app, 1 per {HOST} of tier", "[1]: the selector does not pick the pod itself"),
        ("1 per -x of app", '[0].topologyKey: found "-x"; allowed the key of a label'),
        ("[]", f"found 0 limits; allowed 1 to {MOST_LIMITS}"),
        ("{}", f"Expected `array`, got `object`; allowed {ALLOWED}"),
        ("[", f"Input data was truncated; allowed {ALLOWED}"),
        ('[{"topologyKey": "z", "max": 1}]', f"Object missing required field `selector` - at `$[0]`; allowed {ALLOWED}"),
        ('[{"selector": {"labels": {}}, "topologyKey": "z", "max": 1}]', "Object contains unknown field `labels` - at `$[0].selector`"),
        ('[{"selector": {}, "topologyKey": "z", "max": 1, "mode": "Maybe"}]', "Invalid enum value 'Maybe' - at `$[0].mode`"),
        ('[{"selector": {}, "topologyKey": "z", "max": 1, "namespaces": ["b"]}]', "Object contains unknown field `namespaces`"),
        ('[{"selector": {"matchLabels": {"app": "db"}}, "topologyKey": "z", "max": 1}]', "[0]: the selector does not pick the pod itself"),
        (
            '[{"selector": {"matchExpressions": [{"key": "app", "operator": "Is"}]}, "topologyKey": "z", "max": 1}]',
            '[0].selector: found "Is" is not a valid label selector operator; allowed a label selector, as in a Deployment',
        ),
        (", ".join([f"1 per {HOST} of app"] * (MOST_LIMITS + 1)), f"found {MOST_LIMITS + 1} limits; allowed 1 to {MOST_LIMITS}"),
        ("x" * (LONGEST_TEXT + 1), f"found {LONGEST_TEXT + 1} characters; allowed at most {LONGEST_TEXT}"),
        ("\x1b[2J" * 900, 'found "\\u001b[2J'),
    ],
)
def test_a_wrong_annotation_refuses_the_pod_with_one_line(text: str, problem: str) -> None:
    plugin, cluster = build(DomainLimit, Cluster()), Cluster()
    status = plugin.pre_filter(CycleState(), limited("new", text).build(), cluster).status
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.message.startswith(PROBLEM + problem)
    assert status.message.isprintable()
    assert len(status.message) < 300
    assert plugin.pre_score(CycleState(), limited("new", text).build(), cluster, cluster.rows()).code is Code.SKIP


_PIECES: Final = st.sampled_from([
    "1", "0", " per ", " of ", ",", "app", ZONE, " preferred", "[", "]", "{", "}", '"selector"', ":", "{}", '"max"', "\ud800", "\n", "é",
])  # fmt: skip


@given(st.one_of(st.text(), st.lists(_PIECES).map("".join)))
def test_any_text_is_read_or_refused_with_one_printable_line(text: str) -> None:
    plugin, cluster = build(DomainLimit, Cluster()), Cluster()
    status = plugin.pre_filter(CycleState(), web("new").build().annotated({DOMAIN_LIMITS: text}), cluster).status
    assert status.code in (Code.SUCCESS, Code.SKIP, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
    assert status.ok or status.code is Code.SKIP or (status.message.startswith(PROBLEM) and status.message.isprintable())


def test_the_short_form_says_the_same_as_the_long_one() -> None:
    placed = [pod(f"x{i}").labels(app="web", tier="front").on("a-0") for i in range(2)]
    labels = {"app": "web", "tier": "front"}
    for mode in ("", " preferred"):
        stated = {"selector": {}, "matchLabelKeys": ["app", "tier"], "topologyKey": ZONE, "max": 2}
        stated |= {"mode": "Preferred"} if mode else {}
        case = PluginCase(DomainLimit, nodes=zones("a", "b"), pods=placed)
        short, long = (limited("new", text, **labels) for text in (f" 2 per {ZONE} of app+tier{mode} ", json.dumps([stated])))
        assert case.rejections(short) == case.rejections(long)
        assert case.scores(short) == case.scores(long)


def test_a_wrong_annotation_keeps_no_other_pod_from_its_node_and_the_pod_is_tried_again_once_it_is_mended() -> None:
    world = kit.World(nodes=zones("a"), profile=profile().enable(DomainLimit))
    world.add(limited("wrong", "none"), limited("right", f"1 per {HOST} of app"), pod("plain"))
    assert_waiting(world, "wrong", because=PROBLEM, plugin="DomainLimit")
    assert_bound(world, "right")
    assert_bound(world, "plain")
    world.add(limited("wrong", f"2 per {HOST} of app"))
    assert_bound(world, "wrong")


# --- arguments ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"max": 0}, "limits[0].max"),
        ({"max": 10**9}, "limits[0].max"),
        ({"topologyKey": ""}, "limits[0].topologyKey"),
        ({"topologyKey": "a b"}, "limits[0].topologyKey"),
        ({"matchLabelKeys": ["app", "-"]}, "limits[0].matchLabelKeys[1]"),
        ({"mode": "Maybe"}, "limits[0].mode"),
        ({"selector": {"matchLabel": {}}}, "limits[0].selector.matchLabel"),
        ({"selector": {"matchExpressions": [{"key": "app", "operator": "Is"}]}}, "limits[0].selector"),
        ({"namespaces": [f"n{i}" for i in range(300)]}, "limits[0].namespaces"),
    ],
)
def test_a_wrong_argument_is_named(change: Body, path: str) -> None:
    with pytest.raises(ProfileError) as problem:
        read_args(DomainLimit, {"limits": [{"selector": WEB, "topologyKey": ZONE, "max": 1} | change]})
    assert [each.path for each in problem.value.problems] == [path]


def test_a_selector_must_be_written_and_limits_have_a_bound() -> None:
    with pytest.raises(ProfileError, match="selector"):
        read_args(DomainLimit, {"limits": [{"topologyKey": ZONE, "max": 1}]})
    with pytest.raises(ProfileError, match="at most 32"):
        read_args(DomainLimit, {"limits": [{"selector": {}, "topologyKey": ZONE, "max": 1}] * 33})


# --- in a scheduler -----------------------------------------------------------------------------------------------------------


def limiting(most: int = 1, key: str = ZONE, **more: Any) -> Any:
    """A profile that limits pods of the app web."""
    return profile().enable(DomainLimit).args(DomainLimit, limits=[{"selector": WEB, "topologyKey": key, "max": most} | more])


def test_pods_go_on_as_long_as_domains_have_room_and_the_next_waits_until_one_is_gone() -> None:
    world = kit.World(nodes=zones("a", "a", "b"), profile=limiting(2))
    world.add(*(web(f"w{i}") for i in range(4)))
    assert sorted(str(world.node_of(f"w{i}"))[0] for i in range(4)) == ["a", "a", "b", "b"]
    world.add(web("last"))
    assert_waiting(world, "last", because=full(2, ZONE), plugin="DomainLimit")
    world.add(web("w0").on(str(world.node_of("w0"))).deleting())
    assert_waiting(world, "last", because=full(2, ZONE))
    where = str(world.node_of("w0"))
    world.remove("w0").advance(10)
    assert str(world.node_of("last"))[0] == where[0]


def test_a_pod_that_is_relabelled_and_a_node_that_moves_make_room() -> None:
    world = kit.World(nodes=zones("a"), profile=limiting())
    world.add(web("first"), web("second"))
    assert_waiting(world, "second", because=full(1, ZONE))
    world.add(pod("first").labels(app="db").on("a-0")).advance(10)
    assert_bound(world, "second", on="a-0")
    world.add(web("third"))
    assert_waiting(world, "third", because=full(1, ZONE))
    world.add(node("b-9").zone("b")).advance(10)
    assert_bound(world, "third", on="b-9")


def test_an_important_pod_displaces_as_many_pods_as_the_limit_needs_and_no_more() -> None:
    world = kit.World(nodes=zones("a", "a"), profile=limiting(2))
    world.add(web("x"), web("y"), pod("other"))
    world.add(web("important").priority(100))
    gone = [name for name in ("x", "y") if world.node_of(name) is None]
    assert len(gone) == 1
    assert_evicted(world, gone[0])
    assert_placed(world, "important")
    assert_placed(world, "other")


def test_no_pod_is_displaced_where_none_of_them_counts() -> None:
    world = kit.World(nodes=zones("a"), profile=limiting())
    world.add(web("x").priority(100), pod("other"))
    world.add(web("late").priority(100))
    assert_waiting(world, "late", because=full(1, ZONE))
    assert world.evictor.evicted == []


def test_a_pod_that_is_nominated_to_a_domain_counts_there_for_pods_that_are_not_more_important() -> None:
    world = kit.World(nodes=zones("a", "b"), profile=limiting(), watches=False)
    world.add(pod("big").requests(cpu="4").on("a-0"), pod("huge").requests(cpu="4").on("b-1"))
    world.add(web("first").requests(cpu="4").priority(10))
    nominated = world.evictor.evicted
    assert len(nominated) == 1, "room is made in one zone, and not there yet"
    world.add(web("second").requests(cpu="100m").priority(10))
    assert world.node_of("second") is None


def test_a_group_is_placed_whole_or_not_at_all_as_the_limit_has_it() -> None:
    members = [web(f"m{i}").in_group("g") for i in range(3)]
    world = kit.World(nodes=zones("a", "a", "b"), objects=[pod_group("g", 3)], profile=limiting())
    world.add(*members)
    assert [world.node_of(f"m{i}") for i in range(3)] == [None] * 3
    world.add(node("c-3").zone("c")).advance(30)
    assert sorted(str(world.node_of(f"m{i}"))[0] for i in range(3)) == ["a", "b", "c"]


def test_what_would_have_to_change_names_the_domain_and_its_pods() -> None:
    placed = [web(name).on("a-0") for name in "xyz"]
    case = PluginCase(DomainLimit, args={"limits": [{"selector": WEB, "topologyKey": ZONE, "max": 3}]}, nodes=zones("a"), pods=placed)
    assert _remedy(case, web("new")) == (
        f"1 pod fewer in {ZONE}=a, which has 3 of at most 3 pods: default/x, default/y, default/z",
        ("default/x",),
    )
    more = [web(f"p{i}").on("a-0") for i in range(9)]
    case = PluginCase(DomainLimit, args={"limits": [{"selector": WEB, "topologyKey": ZONE, "max": 8}]}, nodes=zones("a"), pods=more)
    text, pods = _remedy(case, web("new"))
    assert text.startswith(f"2 pods fewer in {ZONE}=a, which has 9 of at most 8 pods: default/p")
    assert text.endswith(" and 4 more")
    assert len(pods) == 2
    far_beyond = [{"selector": WEB, "topologyKey": ZONE, "max": 1}]
    assert _remedy(PluginCase(DomainLimit, args={"limits": far_beyond}, nodes=zones("a"), pods=more), web("new"))[1] == ()
    lost = PluginCase(DomainLimit, args={"limits": far_beyond}, nodes=[node("lost")])
    assert _remedy(lost, web("new"), "lost") == (f"label {ZONE}, by whose values pods are limited", ())


def _remedy(case: PluginCase[Any], new: PodMaker, on: str = "a-0") -> tuple[str, tuple[str, ...]]:
    state, cluster, built = CycleState(), case.cluster, new.build()
    case.plugin.pre_filter(state, built, cluster)
    row = cluster.row(on)
    assert row is not None
    [found] = case.plugin.remedies(state, built, cluster, row)
    return found.text, found.pods


def test_a_profile_that_changes_its_limit_decides_by_the_new_one_at_once() -> None:
    world = kit.World(nodes=zones("a"), profile=limiting())
    world.add(web("x"), web("y"))
    assert_waiting(world, "y", because=full(1, ZONE))
    world.use(limiting(2).generation(2))
    world.settle()
    assert_bound(world, "y")


# --- hints --------------------------------------------------------------------------------------------------------------------


def hint(resource: EventResource, rejected: PodMaker, old: Any, new: Any, **args: Any) -> bool:
    """Whether the plugin's hint for this kind of object has the rejected pod tried again; its keys must find the pod then."""
    plugin = build(DomainLimit, Cluster(), args)
    [each] = [each for each in plugin.events() if each.event.resource is resource]
    waiting, before, after = (maker and maker.build() for maker in (rejected, old, new))
    wakes = each.hint(waiting, before, after) is QueueingHint.QUEUE
    if each.keys is not None and wakes:
        assert set(each.keys.of_pod(waiting)) & set(each.keys.of_event(before, after))
    return bool(wakes)


MINE: Final = limited("me", f"1 per {ZONE} of app, 1 per rack of app preferred")
Z1, Z2 = node("n").labels({ZONE: "1"}), node("n").labels({ZONE: "2"})


@pytest.mark.parametrize(
    ("old", "new", "wakes"),
    [
        (web("x").on("n"), None, True),
        (web("x").on("n").deleting(), None, True),
        (web("x").nominated("n"), None, True),
        (web("x"), None, False),
        (pod("x").labels(app="db").on("n"), None, False),
        (web("x").namespace("away").on("n"), None, False),
        (web("x").on("n"), pod("x").labels(app="db").on("n"), True),
        (pod("x").labels(app="db").on("n"), web("x").on("n"), False),
        (web("x").on("n"), pod("x").labels(app="web", tier="front").on("n"), False),
    ],
)
def test_a_pod_that_counts_no_more_wakes_and_no_other_does(old: PodMaker, new: PodMaker | None, wakes: bool) -> None:
    assert hint(EventResource.POD, MINE, old, new) is wakes


def test_a_pod_of_a_namespace_that_counts_with_others_wakes() -> None:
    limits = [{"selector": WEB, "namespaces": ["default", "away"], "topologyKey": ZONE, "max": 1}]
    assert hint(EventResource.POD, web("me"), web("x").namespace("away").on("n"), None, limits=limits)
    assert not hint(EventResource.POD, web("me"), web("x").namespace("third").on("n"), None, limits=limits)


@pytest.mark.parametrize(
    ("old", "new", "wakes"),
    [
        (None, Z1, True),
        (None, node("n"), False),
        (Z1, None, True),
        (node("n"), None, False),
        (Z1, Z2, True),
        (Z1, node("n"), True),
        (node("n"), Z1, True),
        (Z1, Z1.labels({ZONE: "1", "rack": "r"}), False),
    ],
)
def test_a_node_that_comes_goes_or_moves_between_domains_wakes(old: Any, new: Any, wakes: bool) -> None:
    assert hint(EventResource.NODE, MINE, old, new) is wakes
    assert not hint(EventResource.NODE, limited("me", "wrong"), old, new), "its annotation has to change"


@pytest.mark.parametrize(
    ("new", "wakes"),
    [
        (limited("me", f"2 per {ZONE} of app, 1 per rack of app preferred"), True),
        (web("me"), True),
        (limited("me", "wrong"), True),
        (limited("me", f"1 per {ZONE} of app, 1 per rack of app preferred", app="db"), True),
        (limited("me", f"1 per {ZONE} of app, 1 per rack of app preferred", app="web", tier="front"), False),
        (MINE.tolerates("x"), False),
        (MINE.uid("other"), False),
    ],
)
def test_a_pod_whose_own_limits_change_is_tried_again(new: PodMaker, wakes: bool) -> None:
    assert hint(EventResource.UNSCHEDULED_POD, MINE, MINE, new) is wakes


# --- what it keeps ------------------------------------------------------------------------------------------------------------


def test_limits_are_worked_out_once_for_pods_that_agree_in_the_labels_that_they_read() -> None:
    plugin = build(DomainLimit, Cluster(), {"limits": [EACH_APP | {"topologyKey": ZONE, "max": 1}]})
    of = plugin._limits.of
    assert of(pod("a").labels(app="web", index="0").build()) is of(pod("b").labels(app="web", index="1").build())
    assert of(web("a").build()) is not of(pod("b").labels(app="db").build())
    text = f"1 per {HOST} of tier"
    assert of(limited("a", text, tier="x", index="0").build()) is of(limited("b", text, tier="x", index="1").build())


def test_an_annotation_that_is_too_long_is_not_kept() -> None:
    plugin = build(DomainLimit, Cluster())
    for number in range(100):
        assert plugin._limits.of(limited("a", f"{number}" * (LONGEST_TEXT + 1)).build()).problem
    assert plugin._limits._known.nbytes + plugin._limits._stated.nbytes == 0
