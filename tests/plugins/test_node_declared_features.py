"""NodeDeclaredFeatures: which features a pod needs, which nodes have them, and which changes bring a rejected pod back."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import numpy as np
import pytest

from framework.makers import Scene, names
from placewright.api.decode import convert
from placewright.api.objects import Node, PodSpec
from placewright.api.pods import PodInfo
from placewright.framework.events import Action, ClusterEvent, EventResource, QueueingHint
from placewright.framework.runtime.resolvedprofile import ExtensionPoint
from placewright.framework.status import Code
from placewright.plugins.catalog import in_tree
from placewright.plugins.nodedeclaredfeatures import NodeDeclaredFeatures, required_features
from placewright.profiles.resolve import resolve
from placewright.testing import node, pod
from profiles.makers import a_profile

RESTARTS: Final = "RestartAllContainersOnContainerExits"
USERS: Final = "UserNamespacesHostNetworkSupport"
REASON: Final = "node(s) didn't match Pod's required features"

WHEN: Final = {"exitCodes": {"operator": "In", "values": [1]}}
RULE: Final = {"restartPolicyRules": [{"action": "Restart", **WHEN}, {"action": "RestartAllContainers", **WHEN}]}
NEEDS_RESTARTS: Final = {"containers": [{"name": "main", **RULE}]}
NEEDS_USERS: Final = {"hostNetwork": True, "hostUsers": False}
NEEDS_BOTH: Final = NEEDS_RESTARTS | NEEDS_USERS
UPDATED: Final = ClusterEvent(EventResource.NODE, Action.UPDATE_NODE_DECLARED_FEATURE)
ADDED: Final = ClusterEvent(EventResource.NODE, Action.ADD)
LABELLED: Final = ClusterEvent(EventResource.NODE, Action.UPDATE_NODE_LABEL)
POD_CHANGED: Final = ClusterEvent(EventResource.UNSCHEDULED_POD, Action.UPDATE_OTHER)
POD_GONE: Final = ClusterEvent(EventResource.ASSIGNED_POD, Action.DELETE)


def declaring(name: str, *features: str) -> Node:
    bare = node(name).build()
    return msgspec.structs.replace(bare, status=msgspec.structs.replace(bare.status, declared_features=features))


@pytest.mark.parametrize(
    ("spec", "needed"),
    [
        pytest.param({"containers": [{"name": "main"}]}, set(), id="an ordinary pod needs nothing"),
        pytest.param(NEEDS_RESTARTS, {RESTARTS}, id="a container that restarts all"),
        pytest.param({"initContainers": [{"name": "i", **RULE}]}, {RESTARTS}, id="an init container that restarts all"),
        pytest.param({"containers": [{"restartPolicyRules": [{"action": "Restart"}]}]}, set(), id="restarting itself is nothing new"),
        pytest.param(NEEDS_USERS, {USERS}, id="own users on the host's network"),
        pytest.param({"hostUsers": False}, set(), id="own users alone"),
        pytest.param({"hostNetwork": True}, set(), id="the host's network alone"),
        pytest.param({"hostNetwork": True, "hostUsers": True}, set(), id="the host's users on its network"),
        pytest.param({"hostNetwork": False, "hostUsers": False}, set(), id="own users off the host's network"),
        pytest.param({"resources": {"requests": {"cpu": "1"}}}, set(), id="pod-level resources matter to updates only"),
        pytest.param(NEEDS_BOTH, {RESTARTS, USERS}, id="both"),
    ],
)
def test_what_a_pod_needs_follows_from_its_spec(spec: dict[str, Any], needed: set[str]) -> None:
    assert required_features(convert(spec, PodSpec)) == needed


def test_only_nodes_that_declare_everything_are_left_and_the_others_say_why() -> None:
    scene = Scene().with_nodes(
        node("none"),
        declaring("one", RESTARTS),
        declaring("both", USERS, RESTARTS),
        declaring("more", RESTARTS, "Other", USERS),
        declaring("other", "Other"),
    )
    evaluator = scene.evaluator()
    evaluation = evaluator.evaluate(pod("p", **NEEDS_BOTH).build())
    assert names(scene.cluster, evaluation.feasible) == {"both", "more"}
    [rejection] = evaluator.diagnose(evaluation).rejections
    assert (rejection.status.code, rejection.status.reasons) == (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (REASON,))
    assert names(scene.cluster, rejection.rows) == {"none", "one", "other"}


def test_an_ordinary_pod_fits_nodes_that_declare_nothing() -> None:
    scene = Scene().with_nodes(node("none"), declaring("one", RESTARTS))
    assert names(scene.cluster, scene.evaluator().evaluate(pod("p").build()).feasible) == {"none", "one"}


def test_the_column_follows_a_node_that_gains_or_loses_a_feature_or_goes() -> None:
    scene = Scene().with_nodes(declaring("a"), declaring("b", USERS))
    evaluator, asks = scene.evaluator(), pod("p", **NEEDS_USERS).build()
    assert names(scene.cluster, evaluator.evaluate(asks).feasible) == {"b"}
    scene.with_nodes(declaring("a", USERS), declaring("b"))
    assert names(scene.cluster, evaluator.evaluate(asks).feasible) == {"a"}
    scene.cluster.remove_node("a")  # type: ignore[arg-type]
    scene.with_nodes(node("c"))  # takes the row of the one that went
    assert names(scene.cluster, evaluator.evaluate(asks).feasible) == set()


def test_many_nodes_keep_what_each_declares() -> None:
    scene = Scene().with_nodes(*(declaring(f"n{i}", *([USERS] if i % 3 == 0 else [])) for i in range(200)))
    found = scene.evaluator().evaluate(pod("p", **NEEDS_USERS).build()).feasible
    assert names(scene.cluster, found) == {f"n{i}" for i in range(0, 200, 3)}
    assert int(np.count_nonzero(found)) == 67


def test_the_default_profile_has_it_as_its_last_filter() -> None:
    """The gate is on by default in 1.36, where it comes after all other plugins of this build."""
    resolved = resolve(a_profile(), in_tree())
    assert resolved.at(ExtensionPoint.FILTER)[-1] == NodeDeclaredFeatures.name
    assert {point.value for point in ExtensionPoint if point.implemented_by(NodeDeclaredFeatures)} == {"preFilter", "filter"}


ASKS: Final = pod("me", **NEEDS_USERS).build()


@pytest.mark.parametrize(
    ("event", "old", "new", "wakes"),
    [
        pytest.param(ADDED, None, declaring("n", USERS), True, id="a new node has it"),
        pytest.param(ADDED, None, declaring("n", RESTARTS), False, id="a new node has another"),
        pytest.param(ADDED, None, node("n").build(), False, id="a new node has none"),
        pytest.param(UPDATED, node("n").build(), declaring("n", RESTARTS, USERS), True, id="a node gained it"),
        pytest.param(UPDATED, declaring("n", USERS), declaring("n"), False, id="a node lost it"),
        pytest.param(UPDATED, node("n").build(), declaring("n", RESTARTS), False, id="a node gained another"),
        pytest.param(UPDATED, declaring("n", USERS), declaring("n", USERS, RESTARTS), False, id="a node had it before"),
        pytest.param(LABELLED, node("n").build(), declaring("n", USERS), False, id="another change of a node"),
        pytest.param(POD_CHANGED, pod("me").build(), pod("me", **NEEDS_USERS).build(), True, id="the pod needs more"),
        pytest.param(POD_CHANGED, pod("me", **NEEDS_USERS).build(), pod("me").build(), True, id="the pod needs less"),
        pytest.param(POD_CHANGED, ASKS, pod("me", labels={"a": "b"}, **NEEDS_USERS).build(), False, id="the pod needs the same"),
        pytest.param(POD_CHANGED, pod("else", **NEEDS_USERS).build(), pod("else").build(), False, id="another pod needs less"),
        pytest.param(POD_GONE, pod("else", on="n").build(), None, False, id="a pod went"),
    ],
)
def test_an_event_wakes_the_pods_that_it_could_help_and_no_others(event: ClusterEvent, old: Any, new: Any, wakes: bool) -> None:
    interests = NodeDeclaredFeatures(None, Scene().handle()).events()
    asked = [one for one in interests if event.concerns(one.event)]
    assert any(one.hint(ASKS, old, new) is QueueingHint.QUEUE for one in asked) is wakes


def test_pods_share_columns_when_they_need_the_same() -> None:
    plugin = NodeDeclaredFeatures(None, Scene().handle())
    plain: list[PodInfo] = [pod("a").build(), pod("b", cpu="1", hostNetwork=True).build()]
    assert plugin.sign(plain[0]) == plugin.sign(plain[1]) != plugin.sign(ASKS)
