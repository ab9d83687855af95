"""Default selectors that follow Services and workloads as they come, change and go, against the rule written out."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pairwise_worlds import Body, info, matches

from placewright.api.pods import PodInfo
from placewright.api.workloads import Namespace, ReplicaSet, ReplicationController, Service, StatefulSet
from placewright.cluster import objects as objects_room
from placewright.cluster.objects import ClusterObjects
from placewright.plugins.podtopologyspread.defaultselectors import DefaultSelectors
from randomcases import cases

KINDS: dict[str, Any] = {kind.__name__: kind for kind in (Service, ReplicationController, ReplicaSet, StatefulSet)}
LABELS = st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"), max_size=2)
NAMES, SPACES = st.sampled_from(["p", "q"]), st.sampled_from(["n", "m"])
CHANGE = st.tuples(st.sampled_from([*KINDS, "Namespace"]), SPACES, NAMES, st.one_of(st.none(), LABELS), st.booleans())
CHANGES = st.lists(CHANGE, max_size=14)
PODS = st.lists(st.tuples(SPACES, LABELS, st.one_of(st.none(), st.tuples(st.sampled_from([*KINDS, "Job"]), NAMES))), min_size=1, max_size=4)


def written(kind: str, selector: Body | None) -> Any:
    """A selector as this kind has it."""
    return {"matchLabels": selector} if kind in ("ReplicaSet", "StatefulSet") and selector is not None else selector


def pod_of(namespace: str, labels: Body, owner: tuple[str, str] | None) -> PodInfo:
    meta: Body = {"namespace": namespace, "labels": labels}
    if owner is not None:
        group = {"Job": "batch/v1", "Service": "v1", "ReplicationController": "v1"}.get(owner[0], "apps/v1")
        meta["ownerReferences"] = [{"kind": owner[0], "name": owner[1], "apiVersion": group, "controller": True, "uid": "u"}]
    return info({"metadata": meta, "spec": {}})


Known = dict[tuple[str, str, str], Body | None]


def expected(there: Known, namespace: str, labels: Body, owner: tuple[str, str] | None) -> set[tuple[str, str]]:
    """What Services that select the pod ask for, and what its owner does."""
    asked = set[tuple[str, str]]()
    for (kind, space, _), selector in there.items():
        if kind == "Service" and space == namespace and selector and matches({"matchLabels": selector}, labels):
            asked |= set(selector.items())
    if owner is not None and owner[0] not in ("Service", "Job"):
        asked |= set((there.get((owner[0], namespace, owner[1])) or {}).items())
    return asked


@settings(max_examples=cases(200))
@given(CHANGES, PODS, st.booleans())
def test_selectors_follow_what_comes_changes_and_goes(changes: list[Any], pods: list[Any], forgetful: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if forgetful:
            patch.setattr(objects_room, "_CHANGES", 1)
        objects, selectors, there = ClusterObjects(), DefaultSelectors(), Known()
        for kind, namespace, name, selector, stays in changes:
            body = {"metadata": {"name": name, "namespace": namespace}, "spec": {"selector": written(kind, selector)}}
            if kind == "Namespace":
                objects.put(msgspec.convert({"metadata": {"name": name}}, Namespace))
            elif stays:
                objects.put(msgspec.convert(body, KINDS[kind]))
                there[kind, namespace, name] = selector
            else:
                objects.remove(msgspec.convert(body, KINDS[kind]))
                there.pop((kind, namespace, name), None)
            for space, labels, owner in pods[: len(changes) % 3 + 1]:
                found = selectors.of(pod_of(space, labels, owner), objects)
                assert {(e.key, *e.values) for e in found.expressions} == expected(there, space, labels, owner)
        for space, labels, owner in pods:
            fresh = DefaultSelectors().of(pod_of(space, labels, owner), objects)
            assert selectors.of(pod_of(space, labels, owner), objects) == fresh


@pytest.mark.parametrize("others", [20, 2000])
def test_what_does_not_concern_a_pod_is_not_looked_at_again(others: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rollout elsewhere, and Services of others, cost nothing, however many there are."""
    objects, selectors = ClusterObjects(), DefaultSelectors()
    for number in range(others):
        meta = {"name": f"s{number}", "namespace": "n"}
        objects.put(msgspec.convert({"metadata": meta, "spec": {"selector": {"app": f"a{number}"}}}, Service))
        objects.put(msgspec.convert({"metadata": meta, "spec": {"selector": {"matchLabels": {"app": f"a{number}"}}}}, ReplicaSet))
    pod = pod_of("n", {"app": "a7", "pod-index": "3"}, ("ReplicaSet", "s7"))
    before = selectors.of(pod, objects)
    assert [(e.key, *e.values) for e in before.expressions] == [("app", "a7"), ("app", "a7")]
    looked_at = 0
    items = ClusterObjects.of_kind

    def counted(self: ClusterObjects, kind: Any) -> Any:
        nonlocal looked_at
        looked_at += 1
        return items(self, kind)

    monkeypatch.setattr(ClusterObjects, "of_kind", counted)
    rolled_out = {"metadata": {"name": "new", "namespace": "n"}, "spec": {"selector": {"matchLabels": {"app": "x"}}}}
    objects.put(msgspec.convert(rolled_out, ReplicaSet))
    assert selectors.of(pod_of("n", {"app": "a7", "pod-index": "4"}, ("ReplicaSet", "s7")), objects) is before
    assert looked_at == 1


def test_a_service_that_changes_costs_its_own_keys_and_not_those_of_all_others() -> None:
    class Unwalked(Counter[str]):
        def items(self) -> Any:
            pytest.fail("all keys were walked")

        __iter__ = items

    objects, selectors = ClusterObjects(), DefaultSelectors()

    def show(name: str, *keys: str) -> None:
        spec = {"selector": dict.fromkeys(keys, "v")}
        objects.put(msgspec.convert({"metadata": {"name": name, "namespace": "n"}, "spec": spec}, Service))

    def selected(*labels: str) -> set[str]:
        return {e.key for e in selectors.of(pod_of("n", dict.fromkeys(labels, "v"), None), objects).expressions}

    show("steady", "a", "b")
    show("changing", "b", "c")
    assert selected("a", "b", "c") == {"a", "b", "c"}
    here = selectors._namespaces["n"]
    here.mentioned = Unwalked(here.mentioned)
    show("changing", "c", "d")
    assert selected("a", "b", "c", "d") == {"a", "b", "c", "d"}
    assert dict.copy(here.mentioned) == {"a": 1, "b": 1, "c": 1, "d": 1}
    objects.remove(msgspec.convert({"metadata": {"name": "changing", "namespace": "n"}}, Service))
    assert selected("a", "b", "c", "d") == {"a", "b"}
    assert dict.copy(here.mentioned) == {"a": 1, "b": 1}
