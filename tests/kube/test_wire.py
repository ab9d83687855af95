from __future__ import annotations

import json

import pytest
from fake_api import a_node, bookmark, event, listing

from placewright.api.objects import Node, Pod
from placewright.api.workloads import Namespace
from placewright.kube.errors import ApiError
from placewright.kube.listwatch import ChangeType, Event, Malformed, UndecodableObject, Wire, object_key


def test_a_page_is_decoded_into_the_kinds_structs() -> None:
    page = Wire(Node).page(json.dumps(listing(a_node("a"), a_node("b"), version="7", following="more")).encode())
    assert [one.metadata.name for one in page.items] == ["a", "b"]
    assert (page.resource_version, page.following) == ("7", "more")
    assert all(isinstance(one, Node) for one in page.items)


def test_one_bad_object_costs_one_object_of_its_page() -> None:
    body = json.dumps(listing(a_node("a"), a_node("b", spec={"taints": "none"}), a_node("c"))).encode()
    first, second, third = Wire(Node).page(body).items
    assert isinstance(first, Node) and isinstance(third, Node)
    assert isinstance(second, UndecodableObject) and second.metadata.name == "b" and "spec.taints" in second.error


def test_a_list_whose_items_are_null_is_empty() -> None:
    assert Wire(Node).page(b'{"metadata": {"resourceVersion": "1"}, "items": null}').items == []


def test_an_event_is_decoded() -> None:
    found = Wire(Node).event(event("MODIFIED", a_node("a", "5")))
    assert isinstance(found, Event) and found.change is ChangeType.MODIFIED and found.object.metadata.resource_version == "5"


def test_a_bookmark_needs_nothing_but_a_version() -> None:
    found = Wire(Pod).event(bookmark("99"))
    assert isinstance(found, Event) and found.change is ChangeType.BOOKMARK and found.object.metadata.resource_version == "99"


@pytest.mark.parametrize("kind", [Node, Pod, Namespace])
def test_an_error_line_is_a_refusal_whatever_kind_is_watched(kind: type[Node]) -> None:
    status = {"kind": "Status", "metadata": {}, "status": "Failure", "code": 410, "reason": "Expired", "message": "too old"}
    with pytest.raises(ApiError) as refused:
        Wire(kind).event(event("ERROR", status))
    assert (refused.value.status, refused.value.reason, refused.value.message) == (410, "Expired", "too old")


@pytest.mark.parametrize(
    "line",
    [b"", b"nonsense", b'{"type":"ADDED"', b'{"type":"NEW","object":{}}', b'{"type":"ERROR","object":[]}', b"[" * 100_000, b"\xff\xfe"],
)
def test_what_is_no_event_is_malformed(line: bytes) -> None:
    with pytest.raises(Malformed):
        Wire(Node).event(line)


def test_a_bad_object_keeps_the_metadata_that_could_be_read() -> None:
    strange = {"metadata": {"name": "x", "namespace": "n", "uid": "u", "resourceVersion": "3", "labels": "none"}}
    found = Wire(Node).event(event("ADDED", strange))
    assert isinstance(found, Event) and isinstance(found.object, UndecodableObject)
    assert object_key(found.object.metadata) == "n/x" and found.object.metadata.resource_version == "3"


@pytest.mark.parametrize("levels", [200, 1500, 9000])
def test_a_pod_that_nests_deeply_spoils_neither_its_list_nor_its_watch(levels: int) -> None:
    """As a tenant makes one: an API server stores the `managedFields` that come with a pod."""
    deep = b'{"metadata":{"name":"deep","managedFields":[{"fieldsV1":' + b'{"f:a":' * levels + b"{}" + b"}" * levels + b"}]}}"
    page = Wire(Pod).page(b'{"metadata":{"resourceVersion":"7"},"items":[' + deep + b',{"metadata":{"name":"web"}}]}')
    assert [each.metadata.name for each in page.items if isinstance(each, Pod)] == ["deep", "web"]
    event = Wire(Pod).event(b'{"type":"ADDED","object":' + deep + b"}")
    assert isinstance(event, Event)
    assert isinstance(event.object, Pod)
