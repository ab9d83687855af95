"""ServiceAffinity against a plain scalar reading of its rule, and case by case; `make e2e` compares it with kube-scheduler 1.20 itself."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from legacy_worlds import OldDice, labels_of, zone_of
from pairwise import a_node, a_pod, build, load, scores, verdicts
from pairwise_worlds import NODES, Body, Dice, World, happen, info, matches, populate, service_selectors

from framework.makers import Scene
from placewright import testing as kit
from placewright.api.objects import Node
from placewright.api.workloads import Service
from placewright.framework.events import Action, ClusterEvent, EventResource, QueueingHint
from placewright.framework.status import Code
from placewright.profiles.arguments import read_args
from placewright.profiles.problem import ProfileError
from placewright.queue.queued import SubQueue
from placewright.testing.objectmaker import ObjectMaker
from placewright.testing.pods import PodMaker
from placewright_legacy_plugins import ServiceAffinity
from randomcases import cases
from scheduler import makers as scheduling

REASON = "node(s) didn't match service affinity"

# --- the scalar reading -------------------------------------------------------------------------------------------------------


def listed(world: World) -> list[str]:
    """The nodes, one zone after the other in turn."""
    zones: dict[Any, list[str]] = {}
    for each in world.cluster.nodes():
        zones.setdefault(zone_of(world, each.metadata.name), []).append(each.metadata.name)
    longest = max((len(names) for names in zones.values()), default=0)
    return [names[i] for i in range(longest) for names in zones.values() if i < len(names)]


def allowed(world: World, pod: Body, keys: list[str]) -> set[str]:
    wanted = {key: value for key, value in (pod["spec"].get("nodeSelector") or {}).items() if key in keys}
    pods = world.pods_by_node()
    like_it = [name for name in listed(world) for other in pods[name] if alike(pod, other)]
    if service_selectors(world, pod) and like_it:
        first = labels_of(world, like_it[0])
        wanted = {key: first[key] for key in keys if key in first} | wanted
    return {name for name in world.nodes if wanted.items() <= labels_of(world, name).items()}


def alike(pod: Body, other: Body) -> bool:
    mine, theirs = pod["metadata"], other["metadata"]
    return mine["namespace"] == theirs["namespace"] and mine["labels"].items() <= theirs["labels"].items()


def spread(world: World, pod: Body, keys: list[str], feasible: list[str]) -> dict[str, int]:
    selectors = service_selectors(world, pod)
    counts = dict.fromkeys(feasible, 0)
    for name in feasible if selectors else []:
        counts[name] = sum(
            other["metadata"]["namespace"] == pod["metadata"]["namespace"]
            and not other["metadata"]["deletionTimestamp"]
            and matches({"matchLabels": selectors[0]}, other["metadata"]["labels"])
            for other in world.pods_by_node()[name]
        )
    total = sum(counts.values())
    found = dict.fromkeys(feasible, 0.0)
    for key in keys:
        for name in feasible:
            if key in labels_of(world, name):
                value = labels_of(world, name)[key]
                shared = sum(counts[other] for other in feasible if labels_of(world, other).get(key) == value)
                found[name] += (100.0 * ((total - shared) / total) if total else 100.0) / len(keys)
    return {name: int(score) for name, score in found.items()}


def newcomer(dice: Dice) -> Body:
    selector = {"hall": dice.choice(["north", "south"])} if dice.maybe(0.3) else None
    pod = dice.pod("new", {"nodeSelector": selector})
    pod["metadata"]["deletionTimestamp"] = None
    return pod


@settings(max_examples=cases(200))
@given(st.integers(0, 2**32))
def test_it_agrees_with_a_scalar_reading_whatever_happens(seed: int) -> None:
    dice, world = OldDice(seed), World()
    together = dice.sample(["hall", "rack", "disk"], dice.randint(0, 2))
    apart = dice.sample(["hall", "rack", "disk"], dice.randint(0, 3))
    plugin = build(ServiceAffinity, world.cluster, {"affinityLabels": together, "antiAffinityLabelsPreference": apart})
    populate(world, dice, lambda _: {})
    world.put("Service", {"metadata": {"namespace": "home", "name": "s"}, "spec": {"selector": {"app": "a"}}})
    incoming = [newcomer(dice) for _ in range(3)]
    for _ in range(6):
        for new in incoming:
            _compare(world, plugin, new, together)
            feasible = [name for name in world.nodes if dice.maybe(0.8)]
            assert scores(plugin, world.cluster, info(new), feasible) == spread(world, new, apart, feasible)
        name = dice.choice(NODES)
        if name in world.nodes:
            with world.without(name):
                _compare(world, plugin, incoming[0], together)
        happen(world, dice, lambda _: {})


def _compare(world: World, plugin: Any, pod: Body, together: list[str]) -> None:
    said = verdicts(plugin, world.cluster, info(pod))
    assert set(said) == set(world.nodes) - allowed(world, pod, together)
    assert {(status.code, status.message) for status in said.values()} <= {(Code.UNSCHEDULABLE, REASON)}


# --- case by case -------------------------------------------------------------------------------------------------------------

WEB = kit.service("web").namespace("home").selects(app="web")
HALLS = {"affinityLabels": ["hall"]}
NEW = a_pod("new").build()


def rejected(*objects: ObjectMaker[Any], new: PodMaker = a_pod("new"), **args: Any) -> set[str]:  # noqa: B008 - makers do not change
    cluster = load([a_node("n1", hall="north"), a_node("n2", hall="north"), a_node("s", hall="south"), a_node("none"), *objects])
    return set(verdicts(build(ServiceAffinity, cluster, HALLS | args), cluster, new.build()))


def test_the_first_pod_of_a_service_goes_anywhere_and_the_next_where_its_label_is_the_same() -> None:
    assert rejected(WEB) == set()
    assert rejected(WEB, a_pod("p", "n1")) == {"s", "none"}


def test_pods_that_no_service_selects_go_anywhere() -> None:
    assert rejected(a_pod("p", "n1")) == set()


def test_a_pod_on_a_node_without_the_label_leaves_it_open() -> None:
    assert rejected(WEB, a_pod("p", "none")) == set()


def test_what_the_pod_asks_of_the_label_goes_before_what_others_have() -> None:
    assert rejected(WEB, a_pod("p", "n1"), new=a_pod("new", nodeSelector={"hall": "south"})) == {"n1", "n2", "none"}


def test_other_labels_of_its_node_selector_are_not_this_plugins_business() -> None:
    assert rejected(new=a_pod("new", nodeSelector={"disk": "ssd"})) == set()


def test_pods_of_other_labels_or_namespaces_do_not_count() -> None:
    assert rejected(WEB, a_pod("p", "n1", app="db"), a_pod("q", "n1", namespace="away")) == set()


def test_labels_that_the_node_selector_leaves_out_are_filled_in_one_by_one() -> None:
    there = (a_node("a", hall="north", floor="1"), a_node("b", hall="south", floor="1"), a_node("c", hall="south", floor="2"))
    new = a_pod("new", nodeSelector={"hall": "south"})
    cluster = load([*there, WEB, a_pod("p", "a")])
    plugin = build(ServiceAffinity, cluster, {"affinityLabels": ["hall", "floor"]})
    assert set(verdicts(plugin, cluster, new.build())) == {"a", "c"}


def test_spreading_counts_only_the_first_of_several_services_by_name() -> None:
    other = kit.service("all").namespace("home").selects(tier="x")
    both = a_pod("p", "n1").labels(tier="x")
    cluster = load([a_node("n1", hall="north"), a_node("s", hall="south"), WEB, other, both, a_pod("q", "s")])
    plugin = build(ServiceAffinity, cluster, {"antiAffinityLabelsPreference": ["hall"]})
    assert scores(plugin, cluster, a_pod("new").labels(tier="x").build(), ["n1", "s"]) == {"n1": 0, "s": 100}


def test_it_can_score_alone_and_sees_only_the_nodes_that_other_filters_left() -> None:
    spec = {
        "plugins": {"score": {"enabled": [{"name": "ServiceAffinity"}]}},
        "pluginConfig": [{"name": "ServiceAffinity", "args": {"antiAffinityLabelsPreference": ["hall"]}}],
    }
    nodes = [a_node("n1", hall="north"), a_node("n2", hall="north").cordoned(), a_node("s", hall="south")]
    cluster = load([*(each.offers(pods="10") for each in nodes), WEB, a_pod("p", "n2"), a_pod("q", "s")])
    scene = Scene(extra=(ServiceAffinity,), spec=spec, cluster=cluster)
    evaluator = scene.evaluator()
    for _ in range(2):  # the second time with kept columns
        evaluation = evaluator.evaluate(NEW)
        evaluator.score(evaluation)
        found = {name: parts["ServiceAffinity"].normalised for name, parts in scene.parts(evaluator, evaluation).items()}
        assert found == {"n1": 100, "s": 0}


def test_a_label_may_be_called_as_what_the_plugin_remembers_by_itself() -> None:
    cluster = load([a_node("a", walk="1", zones="1"), a_node("b", walk="2", zones="1"), WEB, a_pod("p", "a")])
    plugin = build(ServiceAffinity, cluster, {"affinityLabels": ["walk"], "antiAffinityLabelsPreference": ["walk", "zones"]})
    assert set(verdicts(plugin, cluster, NEW)) == {"b"}
    assert scores(plugin, cluster, NEW, ["a", "b"]) == {"a": 0, "b": 50}


# --- events -------------------------------------------------------------------------------------------------------------------


def node_n(**labels: str) -> Node:
    return a_node("n", **labels).build()


def service(app: str, namespace: str = "home", name: str = "s") -> Service:
    return kit.service(name).namespace(namespace).selects(app=app).build()


NO_PODS = kit.service("s").namespace("home").build()
ADDED = Action.ADD
GONE = Action.DELETE
LABELLED = Action.UPDATE_POD_LABEL
ON_NODES = EventResource.ASSIGNED_POD
PEER, OTHER, WAITING = a_pod("peer", "n1").build(), a_pod("peer", "n1", app="db").build(), a_pod("x").build()


@pytest.mark.parametrize(
    ("resource", "action", "old", "new", "woken"),
    [
        pytest.param(EventResource.NODE, ADDED, None, node_n(), True, id="a node came"),
        pytest.param(EventResource.NODE, GONE, node_n(), None, True, id="a node went, maybe the first pod's"),
        pytest.param(EventResource.NODE, Action.UPDATE_NODE_LABEL, node_n(), node_n(hall="x"), True, id="a node got the label"),
        pytest.param(EventResource.NODE, Action.UPDATE_NODE_LABEL, node_n(), node_n(disk="x"), False, id="a node got another label"),
        pytest.param(EventResource.NODE, Action.UPDATE_NODE_ALLOCATABLE, node_n(), node_n(), False, id="a node grew"),
        pytest.param(ON_NODES, ADDED, None, PEER, True, id="a pod like it came"),
        pytest.param(ON_NODES, ADDED, None, OTHER, False, id="another pod came"),
        pytest.param(ON_NODES, GONE, PEER, None, True, id="a pod like it went"),
        pytest.param(ON_NODES, GONE, OTHER, None, False, id="another pod went"),
        pytest.param(ON_NODES, LABELLED, PEER, OTHER, True, id="a pod is like it no more"),
        pytest.param(ON_NODES, LABELLED, PEER, PEER, False, id="a pod like it still is"),
        pytest.param(ON_NODES, Action.UPDATE_POD_SCALE_DOWN, PEER, PEER, False, id="a pod shrank"),
        pytest.param(EventResource.UNSCHEDULED_POD, LABELLED, NEW, NEW, True, id="its own labels changed"),
        pytest.param(EventResource.UNSCHEDULED_POD, LABELLED, WAITING, WAITING, False, id="those of a waiting pod"),
        pytest.param(EventResource.SERVICE, GONE, service("web"), None, True, id="its Service went"),
        pytest.param(EventResource.SERVICE, Action.UPDATE, service("web"), service("db"), True, id="its Service left it"),
        pytest.param(EventResource.SERVICE, Action.UPDATE, service("db"), service("cache"), False, id="another Service changed"),
        pytest.param(EventResource.SERVICE, ADDED, None, service("web", "away"), False, id="a Service of another namespace"),
        pytest.param(EventResource.SERVICE, ADDED, None, NO_PODS, False, id="a Service that selects nothing"),
    ],
)
def test_what_could_move_the_labels_of_its_service_wakes_a_pod_and_nothing_else(
    resource: EventResource, action: Action, old: Any, new: Any, woken: bool
) -> None:
    happened = ClusterEvent(resource, action)
    interests = build(ServiceAffinity, load([]), HALLS).events()
    assert any(i.hint(NEW, old, new) is QueueingHint.QUEUE for i in interests if happened.concerns(i.event)) is woken


def a_rejected_pod() -> scheduling.World:
    """The only room is in the south, and the pod's Service has its first pod in the north."""
    world = scheduling.World(ServiceAffinity, pluginConfig=[{"name": "ServiceAffinity", "args": HALLS}])
    world.nodes(scheduling.node("full").labels(hall="north").offers(pods="1"), scheduling.node("south").labels(hall="south"))
    world.pods(scheduling.pod("first").labels(app="web").on("full"))
    world.event_handlers.cluster_object(service("web", "default"))
    world.pods(scheduling.pod("second").labels(app="web"))
    assert world.decide() is None
    assert world.place("second") is SubQueue.UNSCHEDULABLE
    return world


def test_a_running_scheduler_tries_again_when_the_service_goes() -> None:
    world = a_rejected_pod()
    world.event_handlers.cluster_object(service("db", "default"))
    assert world.place("second") is not SubQueue.UNSCHEDULABLE


def test_a_running_scheduler_tries_again_when_the_first_pod_leaves_the_service_by_its_labels() -> None:
    world = a_rejected_pod()
    world.pods(scheduling.pod("first").labels(app="db").on("full"))
    assert world.place("second") is not SubQueue.UNSCHEDULABLE


def test_a_running_scheduler_does_not_try_again_for_a_service_of_others() -> None:
    world = a_rejected_pod()
    world.event_handlers.cluster_object(service("db", "default", "other"))
    assert world.place("second") is SubQueue.UNSCHEDULABLE


def test_without_labels_to_share_it_rejects_no_pod_and_waits_for_no_event() -> None:
    assert build(ServiceAffinity, load([]), {"antiAffinityLabelsPreference": ["hall"]}).events() == ()
    assert rejected(WEB, a_pod("p", "n1"), affinityLabels=[]) == set()


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({"affinityLabels": ["a", ""]}, 'affinityLabels[1]: found ""; allowed the key of a node label'),
        ({"labels": ["a"]}, "labels: found an unknown field"),
    ],
)
def test_wrong_arguments_are_refused_by_their_path(args: Any, told: str) -> None:
    with pytest.raises(ProfileError) as refused:
        read_args(ServiceAffinity, args)
    assert told in str(refused.value)
