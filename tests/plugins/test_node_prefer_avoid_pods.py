"""NodePreferAvoidPods case by case; `make e2e` compares it with kube-scheduler 1.20 itself."""

from __future__ import annotations

import json
import random
from typing import Any

import msgspec
import pytest

from framework.makers import Scene
from placewright.api.avoidedpods import ANNOTATION
from placewright.api.objects import Node, NodeName
from placewright.api.pods import PodInfo
from placewright.testing import node, pod
from placewright_legacy_plugins import NodePreferAvoidPods

SPEC = {"plugins": {"multiPoint": {"enabled": [{"name": "NodePreferAvoidPods", "weight": 10_000}]}}}


def owned(kind: str = "ReplicaSet", uid: str = "u1", *, controller: bool = True) -> PodInfo:
    bare = pod(f"{kind}-{uid}").build()
    reference = {"kind": kind, "uid": uid, "name": "r", "apiVersion": "apps/v1", "controller": controller}
    meta = msgspec.to_builtins(bare.pod.metadata) | {"ownerReferences": [reference]}
    return PodInfo(msgspec.structs.replace(bare.pod, metadata=msgspec.convert(meta, type(bare.pod.metadata))))


def entry(kind: str = "ReplicaSet", uid: str = "u1", **more: Any) -> dict[str, Any]:
    controller = {"apiVersion": "apps/v1", "kind": kind, "name": "r", "uid": uid, "controller": True}
    return {"podSignature": {"podController": controller}, "evictionTime": "2016-08-10T10:00:00Z", "reason": "r", **more}


def avoiding(name: str, *entries: dict[str, Any], text: str | None = None) -> Node:
    found = json.dumps({"preferAvoidPods": entries}) if text is None else text
    plain = node(name).build()
    return msgspec.structs.replace(plain, metadata=msgspec.structs.replace(plain.metadata, annotations={ANNOTATION: found}))


def scores(scene: Scene, evaluator: Any, one: PodInfo) -> dict[str, int]:
    evaluation = evaluator.evaluate(one)
    evaluator.score(evaluation)
    return {name: parts["NodePreferAvoidPods"].normalised for name, parts in scene.parts(evaluator, evaluation).items()}


def scored(one: PodInfo, *nodes: Node) -> dict[str, int]:
    scene = Scene(spec=SPEC, extra=(NodePreferAvoidPods,)).with_nodes(*nodes)
    return scores(scene, scene.evaluator(), one)


def test_a_node_that_names_the_pods_controller_scores_nothing_and_all_others_everything() -> None:
    nodes = (avoiding("named", entry(uid="u0"), entry()), avoiding("other", entry(uid="u2")), node("plain").build())
    assert scored(owned(), *nodes) == {"named": 0, "other": 100, "plain": 100}


@pytest.mark.parametrize(
    "one",
    [pod("nobody's").build(), owned("StatefulSet"), owned("ReplicationController"), owned(uid="u2"), owned(controller=False)],
    ids=["no owner", "owned by another kind", "the named uid is of another kind", "another uid", "owned, but not controlled"],
)
def test_a_pod_of_anybody_else_is_welcome(one: PodInfo) -> None:
    assert scored(one, avoiding("a", entry(), entry("StatefulSet"))) == {"a": 100}


def test_the_pods_of_a_replication_controller_can_be_avoided_too() -> None:
    assert scored(owned("ReplicationController"), avoiding("a", entry("ReplicationController"))) == {"a": 0}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "[" * 100_000,
        '{"unknown": ' + "[" * 100_000,
        "null",
        json.dumps({"preferAvoidPods": None}),
        json.dumps({"preferAvoidPods": [{}]}),
        json.dumps({"preferAvoidPods": [{"podSignature": {}}]}),
        json.dumps({"preferAvoidPods": [entry(), {"podSignature": 7}]}),
        json.dumps({"preferAvoidPods": [entry(evictionTime="yesterday")]}),
    ],
)
def test_an_annotation_that_cannot_be_read_or_names_nobody_avoids_nobody(text: str) -> None:
    assert scored(owned(), avoiding("a", text=text)) == {"a": 100}


def test_fields_that_nobody_knows_do_not_matter() -> None:
    assert scored(owned(), avoiding("a", entry(somethingNew=1))) == {"a": 0}


def test_pods_share_their_columns_unless_a_node_avoids_them() -> None:
    scene = Scene(spec=SPEC, extra=(NodePreferAvoidPods,)).with_nodes(avoiding("a", entry()), node("b"))
    runtime = scene.evaluator().runtime
    assert runtime.sign(owned(uid="u5")) == runtime.sign(owned(uid="u6")) == runtime.sign(pod("x").build())
    assert runtime.sign(owned()) != runtime.sign(pod("x").build())


def test_kept_columns_follow_annotations_that_come_and_go() -> None:
    dice, scene = random.Random(7), Scene(spec=SPEC, extra=(NodePreferAvoidPods,))
    evaluator = scene.evaluator()
    avoided: dict[str, set[str]] = {}
    for _ in range(200):
        name = f"n{dice.randrange(4)}"
        if dice.random() < 0.2:
            scene.cluster.remove_node(NodeName(name))
            avoided.pop(name, None)
        else:
            avoided[name] = {uid for uid in ("u1", "u2") if dice.random() < 0.4}
            scene.with_nodes(avoiding(name, *(entry(uid=uid) for uid in sorted(avoided[name]))))
        for uid in ("u1", "u2", "u3"):
            expected = {each: 0 if uid in uids else 100 for each, uids in avoided.items()}
            if expected:
                assert scores(scene, evaluator, owned(uid=uid)) == expected
