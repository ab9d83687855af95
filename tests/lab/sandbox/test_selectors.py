"""Selectors that no request has: those of objects, and those that meet objects of wrong shapes. The others are asked in tests/contract."""

from __future__ import annotations

from kubesandbox.storage.selectors import label_selector, selection
from lab.sandbox.makers import Core, Object

WEB = {"app": "web", "tier": "front"}


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


def test_a_field_selector_reads_numbers_as_text() -> None:
    assert fields("jobs", "status.successful=0", {"metadata": {}, "status": {"successful": 0}})


def test_a_field_selector_survives_objects_of_the_wrong_shape() -> None:
    for status in (None, [], "Running", 7):
        assert not fields("pods", "status.phase=Running", {"metadata": {}, "status": status})


def test_no_selector_means_no_test() -> None:
    assert selection(Core().type("pods"), "", "") is None
