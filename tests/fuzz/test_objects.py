"""Objects of an API server, or of somebody in its place: a struct or one clear error, and the scheduler's columns hold what was read."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from fuzz.effort import bounded, fuzz, outcome
from fuzz.mutants import ANY_JSON, Document, as_json, mutants, torn
from fuzz.seeds import DOCUMENTS, GROUPS, KINDS, MEMBERS, NODE, POD, PROFILE
from placewright.api.annotations import DECISION, read_decision
from placewright.api.avoidedpods import ANNOTATION, avoided_by
from placewright.api.decode import DecodeError, convert, decode
from placewright.api.objects import KubeObject, Node, Pod
from placewright.api.pods import PodInfo
from placewright.api.profile import SchedulingProfile
from placewright.api.quantity import QuantityError
from placewright.api.requests import canonical
from placewright.cluster.cluster import Cluster
from placewright.cluster.podgrouprules import declaration_complaint

_INT64 = range(-(2**63), 2**63)
STRUCTS = tuple(kind for _, kind in KINDS)


def test_the_seeds_are_valid() -> None:
    for document, kind in KINDS:
        assert isinstance(decode(as_json(document), kind), kind)
    assert PodInfo(decode(as_json(POD), Pod)).requests["cpu"] == 110
    assert decode(as_json(PROFILE), SchedulingProfile).metadata.name == "p"


@fuzz(100, value=ANY_JSON)
def test_any_json_becomes_each_kind_or_an_error_that_names_it(value: Any) -> None:
    raw = as_json(value)
    with bounded(len(raw)):
        for kind in STRUCTS:
            found = outcome(lambda kind=kind: decode(raw, kind), DecodeError)  # type: ignore[misc]
            assert isinstance(found, kind) or str(found).startswith(f"{kind.__name__}: ")


@fuzz(120, document=mutants(DOCUMENTS))
def test_a_changed_object_becomes_the_same_from_bytes_and_from_a_mapping(document: Document) -> None:
    raw = as_json(document)
    for kind in STRUCTS:
        from_bytes = outcome(lambda kind=kind: decode(raw, kind), DecodeError)  # type: ignore[misc]
        from_mapping = outcome(lambda kind=kind: convert(document, kind), DecodeError)  # type: ignore[misc]
        assert isinstance(from_bytes, kind) == isinstance(from_mapping, kind)
        assert not isinstance(from_bytes, kind) or from_bytes == from_mapping


@fuzz(120, raw=torn(DOCUMENTS))
def test_torn_text_is_an_object_or_an_error(raw: bytes) -> None:
    with bounded(len(raw)):
        for kind in STRUCTS:
            found = outcome(lambda kind=kind: decode(raw, kind), DecodeError)  # type: ignore[misc]
            assert isinstance(found, kind | DecodeError)


@fuzz(100, document=mutants((POD,)))
def test_what_follows_from_a_pod_fits_the_columns(document: Document) -> None:
    found = outcome(lambda: PodInfo(convert(document, Pod)), DecodeError, QuantityError)
    if isinstance(found, PodInfo):
        assert all(-(2**53) <= amount <= 2**53 for amount in found.requests.values())
        cluster = Cluster()
        cluster.set_node(decode(as_json(NODE), Node))
        cluster.set_pod(found)
        cluster.remove_pod(found.uid)
        assert cluster.pod_count_total == 0
    else:
        assert str(found)


@fuzz(100, document=mutants((NODE,)))
def test_a_changed_node_comes_into_the_columns_and_leaves_them(document: Document) -> None:
    def added() -> Node:
        node = convert(document, Node)
        canonical(node.status.allocatable or {})
        return node

    node = outcome(added, DecodeError, QuantityError)
    if isinstance(node, Node):
        cluster = Cluster()
        cluster.set_node(node)
        assert cluster.node_count == 1
        cluster.remove_node(node.metadata.name)  # type: ignore[arg-type]
        assert cluster.node_count == 0
    else:
        assert str(node)


@fuzz(150, item=mutants(tuple(document for document, _ in GROUPS)), member=mutants(MEMBERS))
def test_any_group_and_any_member_are_a_group_or_none_or_a_complaint_in_one_line(item: Document, member: Document) -> None:
    pod = outcome(lambda: PodInfo(convert(member, Pod)), DecodeError, QuantityError)
    if not isinstance(pod, PodInfo) or pod.pod_group is None:
        assert isinstance(pod, PodInfo) or str(pod)
        return
    cluster = Cluster()
    for _, kind in GROUPS:
        declared = outcome(lambda kind=kind: convert(item, kind), DecodeError)  # type: ignore[misc]
        if isinstance(declared, kind):
            cluster.objects.put(declared)
    said, found = declaration_complaint(cluster.pod_groups, pod.pod_group), cluster.pod_groups.get(pod.pod_group)
    assert said or (found is not None and found.min_member >= 1)
    assert said.isprintable() or not pod.pod_group.namespace.isprintable()
    cluster.set_pod(pod)
    assert cluster.pod_groups.placed(pod.pod_group) == {pod.uid}
    cluster.remove_pod(pod.uid)
    assert not cluster.pod_groups.placed(pod.pod_group)


def test_the_seeds_of_groups_are_declared_and_named() -> None:
    cluster = Cluster()
    for document, kind in GROUPS:
        cluster.objects.put(convert(document, kind))
    refs = [PodInfo(convert(member, Pod)).pod_group for member in MEMBERS]
    assert len(set(refs)) == len(MEMBERS)
    assert [declaration_complaint(cluster.pod_groups, ref) for ref in refs if ref is not None] == [""] * len(MEMBERS)


@fuzz(100, text=torn(({"profile": "p", "generation": 1, "score": 5, "plugins": {"a": 1}},)))
def test_annotations_that_anybody_may_write_are_read_or_passed_over(text: bytes) -> None:
    written = text.decode("utf-8", "replace")
    decision = read_decision({DECISION: written})
    assert decision is None or isinstance(decision.profile, str)
    node = Node(metadata=msgspec.structs.replace(Node().metadata, annotations={ANNOTATION: written}))
    assert isinstance(avoided_by(node), frozenset)


LABELS = 40_000
#: As much as an API server stores in one object: etcd takes 1.5 MiB.
LARGEST = as_json({"metadata": {"name": "x", "labels": {f"label-{i}": "v" * 20 for i in range(LABELS)}}})


@pytest.mark.parametrize("kind", STRUCTS)
def test_the_largest_object_costs_in_proportion(kind: type[KubeObject]) -> None:
    with bounded(len(LARGEST)):
        found: Any = decode(LARGEST, kind)
    assert len(found.metadata.labels) == LABELS
