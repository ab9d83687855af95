"""Custom resource definitions at work: types that come, change and go while the server runs."""

from __future__ import annotations

import pytest

from placewright.sandbox.selectors import selection
from placewright.sandbox.status import ApiError
from placewright.sandbox.versions import presented
from placewright.sandbox.writes import PatchRequest, WriteOptions
from sandbox.makers import Core, Object, definition, version, widget

MERGE = "application/merge-patch+json"


def with_widgets(*versions: Object) -> Core:
    core = Core()
    core.create("customresourcedefinitions", definition(*versions))
    return core


def test_a_definition_is_established_and_its_objects_are_defaulted_and_pruned() -> None:
    core = with_widgets()
    stored = core.get("customresourcedefinitions", "widgets.example.test")
    assert stored is not None
    conditions = {each["type"]: each["status"] for each in stored["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    assert core.create("widgets", widget("a", colour="red", unheard="of"))["spec"] == {"size": 3, "colour": "red"}


def test_an_object_that_breaks_the_schema_is_refused_with_the_path() -> None:
    core = with_widgets()
    with pytest.raises(ApiError) as caught:
        core.create("widgets", widget("a", size=0))
    assert (caught.value.code, caught.value.reason) == (422, "Invalid")
    assert "spec.size" in caught.value.message
    assert core.get("widgets", "a") is None


def test_a_definition_that_is_unsound_is_refused() -> None:
    core = Core()
    bad = definition()
    bad["spec"]["scope"] = "Everywhere"
    with pytest.raises(ApiError) as caught:
        core.create("customresourcedefinitions", bad)
    assert caught.value.code == 422
    assert core.registry.find("example.test", "v1", "widgets") is None


def test_objects_are_shown_in_every_served_version_and_stored_in_one() -> None:
    core = with_widgets(version("v1", storage=False), version("v2"), version("v3", storage=False, served=False))
    older, newer = (core.registry.find("example.test", name, "widgets") for name in ("v1", "v2"))
    assert older is not None
    assert newer is not None
    assert core.registry.find("example.test", "v3", "widgets") is None
    stored = core.writes.create(older, "default", widget("a", colour="red"))
    assert stored.object["apiVersion"] == "example.test/v2"
    assert presented(older, stored.object)["apiVersion"] == "example.test/v1"
    assert presented(newer, stored.object) is stored.object
    patch = PatchRequest({"spec": {"colour": "blue"}}, MERGE)
    assert core.writes.patch(older, "default", "a", patch)[0].object["apiVersion"] == "example.test/v2"


def test_status_is_apart_only_where_the_definition_says_so() -> None:
    plain, split = with_widgets(version("v1")), with_widgets(version("v1", status=True))
    sent = {**widget("a"), "status": {"ok": True}}
    assert plain.create("widgets", dict(sent))["status"] == {"ok": True}
    assert "status" not in split.create("widgets", dict(sent))
    options = WriteOptions(subresource="status")
    patch = PatchRequest({"status": {"ok": True}, "spec": {"size": 9}}, MERGE)
    changed = split.writes.patch(split.type("widgets"), "default", "a", patch, options)[0].object
    assert (changed["status"], changed["spec"]["size"], changed["metadata"]["generation"]) == ({"ok": True}, 3, 1)


def test_a_custom_object_is_not_replaced_without_a_version() -> None:
    core = with_widgets()
    core.create("widgets", widget("a"))
    with pytest.raises(ApiError) as caught:
        core.writes.replace(core.type("widgets"), "default", "a", widget("a", size=5))
    assert caught.value.code == 422


def test_selectable_fields_can_be_selected_by() -> None:
    core = with_widgets()
    resource = core.type("widgets")
    test = selection(resource, "", "spec.colour=red", core.definitions.selectable(resource))
    assert test is not None
    assert test(core.create("widgets", widget("a", colour="red")))
    with pytest.raises(ApiError):
        selection(resource, "", "spec.size=3", core.definitions.selectable(resource))


def test_a_changed_schema_holds_for_the_next_write() -> None:
    core = with_widgets()
    core.create("widgets", widget("a", size=5))
    strict = version("v1")
    strict["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"].update(minimum=10, default=20)
    patch = PatchRequest({"spec": {"versions": [strict]}}, MERGE)
    core.writes.patch(core.type("customresourcedefinitions"), "", "widgets.example.test", patch)
    with pytest.raises(ApiError):
        core.create("widgets", widget("b", size=5))
    assert core.create("widgets", widget("b", size=50))["spec"]["size"] == 50


def test_a_definition_remembers_every_version_that_was_stored_in() -> None:
    core = with_widgets()
    changed = [version("v1", storage=False), version("v2")]
    patch = PatchRequest({"spec": {"versions": changed}}, MERGE)
    core.writes.patch(core.type("customresourcedefinitions"), "", "widgets.example.test", patch)
    stored = core.get("customresourcedefinitions", "widgets.example.test")
    assert stored is not None
    assert stored["status"]["storedVersions"] == ["v1", "v2"]
    assert core.create("widgets", widget("a", "example.test/v1"))["apiVersion"] == "example.test/v2"


def test_a_deleted_definition_takes_its_objects_and_paths_with_it() -> None:
    core = with_widgets()
    core.create("widgets", widget("a"))
    key = core.type("widgets").key
    generation = core.registry.generation
    core.writes.delete(core.type("customresourcedefinitions"), "", "widgets.example.test")
    assert core.registry.find("example.test", "v1", "widgets") is None
    assert core.registry.generation > generation
    assert core.store.listed(key) == []
