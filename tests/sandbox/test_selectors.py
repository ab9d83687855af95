"""Selectors: what they select, and what they refuse."""

from __future__ import annotations

import pytest

from placewright.sandbox.selectors import label_selector, parse_labels, selection
from placewright.sandbox.status import ApiError
from sandbox.makers import Core, Object, pod

WEB = {"app": "web", "tier": "front", "size": "5"}


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("app=web", True),
        ("app==web", True),
        ("app = web , tier=front", True),
        ("app=db", False),
        ("app!=db", True),
        ("missing!=db", True),
        ("app in (db, web)", True),
        ("app in (db)", False),
        ("app notin (db,cache)", True),
        ("app notin (web)", False),
        ("missing notin (web)", True),
        ("missing in (web)", False),
        ("app", True),
        ("missing", False),
        ("!missing", True),
        ("!app", False),
        ("size>4", True),
        ("size<5", False),
        ("app>1", False),
        ("app in (web),tier in (front,back),!missing", True),
        ("example.test/app=", False),
    ],
)
def test_a_label_selector_selects(text: str, selected: bool) -> None:
    assert parse_labels(text)(WEB) is selected


def test_an_empty_value_selects_the_empty_label() -> None:
    assert parse_labels("flag=")({"flag": ""})
    assert not parse_labels("flag=")({})


@pytest.mark.parametrize("text", ["a=b=c", "app in web", "app in (a", "=", ",", "a b", "app=web;rm", "-a=b", "()"])
def test_a_label_selector_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(ApiError) as refused:
        parse_labels(text)
    assert refused.value.code == 400


def test_a_selector_object_selects_by_labels_and_expressions() -> None:
    test = label_selector({"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "Exists"}]})
    assert test(WEB)
    assert not test({"app": "web"})


def test_no_selector_object_selects_nothing_and_an_empty_one_everything() -> None:
    assert not label_selector(None)({})
    assert label_selector({})({})


def fields(plural: str, text: str, found: Object) -> bool:
    test = selection(Core().type(plural), "", text)
    assert test is not None
    return test(found)


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("spec.nodeName=", True),
        ("spec.nodeName==", True),
        ("spec.nodeName!=", False),
        ("spec.nodeName=node-a", False),
        ("metadata.name=web", True),
        ("metadata.name=web,spec.nodeName=node-a", False),
        ("spec.nodeName=,status.phase!=Succeeded,status.phase!=Failed", True),
        ("status.phase=Pending", False),
        ("spec.hostNetwork=false", True),
    ],
)
def test_a_field_selector_selects_pods(text: str, selected: bool) -> None:
    assert fields("pods", text, pod("web")) is selected


def test_a_field_selector_reads_numbers_and_booleans_as_text() -> None:
    assert fields("nodes", "spec.unschedulable=true", {"metadata": {}, "spec": {"unschedulable": True}})
    assert fields("jobs", "status.successful=0", {"metadata": {}, "status": {"successful": 0}})


def test_a_field_selector_survives_objects_of_the_wrong_shape() -> None:
    for status in (None, [], "Running", 7):
        assert not fields("pods", "status.phase=Running", {"metadata": {}, "status": status})


@pytest.mark.parametrize("text", ["spec.containers=x", "metadata.labels=x", "nonsense", "spec.nodeName>3"])
def test_a_field_that_the_type_does_not_select_by_is_refused(text: str) -> None:
    with pytest.raises(ApiError) as refused:
        selection(Core().type("pods"), "", text)
    assert refused.value.code == 400


def test_events_are_selected_by_their_object_in_either_group() -> None:
    core = Core()
    stored = {"metadata": {}, "involvedObject": {"name": "web"}, "reportingComponent": "placewright"}
    for group, text in (
        ("", "involvedObject.name=web,source=placewright"),
        ("events.k8s.io", "regarding.name=web,reportingController=placewright"),
    ):
        resource = core.registry.find(group, "v1", "events")
        assert resource is not None
        test = selection(resource, "", text)
        assert test is not None
        assert test(stored)


def test_a_comma_can_be_escaped_in_a_field_selector() -> None:
    assert fields("secrets", r"type=a\,b", {"metadata": {}, "type": "a,b"})


def test_no_selector_means_no_test() -> None:
    assert selection(Core().type("pods"), "", "") is None
