"""The rules of writing, whatever the type."""

from __future__ import annotations

from typing import Any

import pytest

from placewright.sandbox.status import ApiError
from placewright.sandbox.writes import DeleteOptions, PatchRequest, WriteOptions
from sandbox.makers import Core, Object, config_map, pod

MERGE = "application/merge-patch+json"


def refused(core: Core, plural: str, content: object, namespace: str = "default") -> ApiError:
    before = core.store.version
    with pytest.raises(ApiError) as caught:
        core.writes.create(core.type(plural), namespace, content)
    assert core.store.version == before
    return caught.value


def replace(core: Core, plural: str, name: str, content: object, subresource: str = "", **options: Any) -> Object:
    chosen = WriteOptions(subresource=subresource, **options)
    namespace = "default" if core.type(plural).namespaced else ""
    return core.writes.replace(core.type(plural), namespace, name, content, chosen).object


def patch(core: Core, plural: str, name: str, content: object, subresource: str = "") -> Object:
    request = PatchRequest(content, MERGE)
    chosen = WriteOptions(subresource=subresource)
    namespace = "default" if core.type(plural).namespaced else ""
    return core.writes.patch(core.type(plural), namespace, name, request, chosen)[0].object


def test_a_new_object_gets_uid_time_generation_and_version() -> None:
    core = Core()
    sent = pod("a")
    sent["metadata"].update(uid="mine", resourceVersion="", generation=9, creationTimestamp="1999-01-01T00:00:00Z")
    metadata = core.create("pods", sent)["metadata"]
    assert metadata["uid"] != "mine"
    assert metadata["generation"] == 1
    assert metadata["creationTimestamp"] == "2023-11-14T22:13:20Z"
    assert metadata["resourceVersion"] == str(core.store.version)


def test_a_generated_name_begins_as_asked_and_differs() -> None:
    core = Core()
    names = {core.create("configmaps", {"metadata": {"generateName": "job-"}})["metadata"]["name"] for _ in range(20)}
    assert len(names) == 20
    assert all(name.startswith("job-") and len(name) == 9 for name in names)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (None, 400),
        ("text", 400),
        ([], 400),
        ({"metadata": []}, 400),
        ({"metadata": {"name": "a", "labels": ["x"]}}, 400),
        ({"metadata": {"name": "a", "labels": {"x": 1}}}, 400),
        ({"metadata": {"name": "a", "annotations": {"x": [None]}}}, 400),
        ({"metadata": {"name": "a", "finalizers": "x"}}, 400),
        ({"metadata": {"name": "a", "ownerReferences": [1]}}, 400),
        ({"metadata": {"name": "a", "namespace": "other"}}, 400),
        ({"metadata": {"name": "a", "resourceVersion": "7"}}, 500),
        ({"kind": "Secret", "metadata": {"name": "a"}}, 400),
        ({"apiVersion": "v2", "metadata": {"name": "a"}}, 400),
        ({"metadata": {}}, 422),
        ({"metadata": {"name": "Upper"}}, 422),
        ({"metadata": {"name": "a/b"}}, 422),
        ({"metadata": {"name": "a" * 254}}, 422),
        ({"metadata": {"name": 7}}, 400),
    ],
)
def test_what_is_no_config_map_is_refused(content: object, code: int) -> None:
    assert refused(Core(), "configmaps", content).code == code


def test_a_name_is_taken_once() -> None:
    core = Core()
    core.create("configmaps", config_map("a"))
    error = refused(core, "configmaps", config_map("a"))
    assert (error.code, error.reason, error.message) == (409, "AlreadyExists", 'configmaps "a" already exists')


def test_an_object_needs_its_namespace() -> None:
    error = refused(Core(), "pods", pod("a"), "nowhere")
    assert (error.code, error.message) == (404, 'namespaces "nowhere" not found')


def test_a_pod_needs_a_container_with_a_name() -> None:
    core = Core()
    for containers, code in (([], 422), ([{}], 422), (None, 422), (["x"], 400)):
        error = refused(core, "pods", {"metadata": {"name": "a"}, "spec": {"containers": containers}})
        assert (error.code, "spec.containers" in error.message) == (code, True)


def test_an_update_of_an_older_version_is_a_conflict() -> None:
    core = Core()
    old = core.create("configmaps", config_map("a"))
    replace(core, "configmaps", "a", config_map("a", key="1"))
    stale = {**config_map("a", key="2"), "metadata": dict(old["metadata"])}
    with pytest.raises(ApiError) as caught:
        replace(core, "configmaps", "a", stale)
    assert (caught.value.code, caught.value.reason) == (409, "Conflict")
    assert "the object has been modified" in caught.value.message
    found = core.get("configmaps", "a")
    assert found is not None
    assert found["data"] == {"key": "1"}


def test_of_two_updates_of_one_version_exactly_one_succeeds() -> None:
    core = Core()
    read = core.create("configmaps", config_map("a"))
    outcomes = []
    for number in range(2):
        sent = {**config_map("a", key=str(number)), "metadata": dict(read["metadata"])}
        try:
            replace(core, "configmaps", "a", sent)
            outcomes.append("stored")
        except ApiError as error:
            outcomes.append(error.reason)
    assert outcomes == ["stored", "Conflict"]


def test_an_update_of_another_uid_is_a_conflict() -> None:
    core = Core()
    core.create("configmaps", config_map("a"))
    sent = config_map("a")
    sent["metadata"]["uid"] = "another"
    with pytest.raises(ApiError) as caught:
        replace(core, "configmaps", "a", sent)
    assert caught.value.code == 409


def test_an_update_that_changes_nothing_is_not_stored() -> None:
    core = Core()
    core.create("configmaps", config_map("a", key="1"))
    before = core.store.version
    replace(core, "configmaps", "a", config_map("a", key="1"))
    patch(core, "configmaps", "a", {"data": {"key": "1"}})
    assert core.store.version == before


def test_a_lease_is_not_replaced_without_saying_which_version_was_read() -> None:
    core = Core()
    core.create("leases", {"metadata": {"name": "a"}, "spec": {"holderIdentity": "x"}})
    with pytest.raises(ApiError) as caught:
        replace(core, "leases", "a", {"metadata": {"name": "a"}, "spec": {"holderIdentity": "y"}})
    assert (caught.value.code, "resourceVersion" in caught.value.message) == (422, True)


def test_generation_grows_with_the_spec_only() -> None:
    core = Core()
    core.create("deployments", {"metadata": {"name": "a"}, "spec": {"replicas": 1}})
    assert patch(core, "deployments", "a", {"metadata": {"labels": {"x": "y"}}})["metadata"]["generation"] == 1
    assert patch(core, "deployments", "a", {"status": {"replicas": 1}}, "status")["metadata"]["generation"] == 1
    assert patch(core, "deployments", "a", {"spec": {"replicas": 2}})["metadata"]["generation"] == 2


def test_status_and_the_rest_are_written_apart() -> None:
    core = Core()
    core.create("deployments", {"metadata": {"name": "a"}, "spec": {"replicas": 1}, "status": {"replicas": 9}})
    first = core.get("deployments", "a")
    assert first is not None
    assert "status" not in first
    changed = patch(core, "deployments", "a", {"spec": {"replicas": 5}, "status": {"replicas": 1}}, "status")
    assert (changed["spec"]["replicas"], changed["status"]) == (1, {"replicas": 1})
    changed = patch(core, "deployments", "a", {"spec": {"replicas": 5}, "status": {"replicas": 7}})
    assert (changed["spec"]["replicas"], changed["status"]) == (5, {"replicas": 1})


def test_an_object_with_finalizers_stays_until_the_last_one_goes() -> None:
    core = Core()
    held = config_map("a")
    held["metadata"]["finalizers"] = ["example.test/x", "example.test/y"]
    core.create("configmaps", held)
    _, gone = core.writes.delete(core.type("configmaps"), "default", "a")
    assert not gone
    patch(core, "configmaps", "a", {"metadata": {"finalizers": ["example.test/y"]}})
    found = core.get("configmaps", "a")
    assert found is not None
    assert found["metadata"]["deletionTimestamp"]
    with pytest.raises(ApiError):
        patch(core, "configmaps", "a", {"metadata": {"finalizers": ["example.test/y", "example.test/new"]}})
    patch(core, "configmaps", "a", {"metadata": {"finalizers": None}})
    assert core.get("configmaps", "a") is None


def test_what_the_server_owns_in_metadata_cannot_be_written() -> None:
    core = Core()
    created = core.create("configmaps", config_map("a"))
    wanted = {
        "creationTimestamp": "1999-01-01T00:00:00Z",
        "generation": 99,
        "deletionTimestamp": "1999-01-01T00:00:00Z",
    }
    changed = patch(core, "configmaps", "a", {"metadata": {**wanted, "labels": {"x": "y"}}})
    for each in wanted:
        assert changed["metadata"].get(each) == created["metadata"].get(each)


def test_a_deletion_holds_its_preconditions() -> None:
    core = Core()
    created = core.create("configmaps", config_map("a"))["metadata"]
    for options in (DeleteOptions(uid="another"), DeleteOptions(version="1")):
        with pytest.raises(ApiError) as caught:
            core.writes.delete(core.type("configmaps"), "default", "a", options)
        assert caught.value.code == 409
    right = DeleteOptions(uid=created["uid"], version=created["resourceVersion"])
    assert core.writes.delete(core.type("configmaps"), "default", "a", right)[1]


def test_a_running_pod_is_given_time_and_an_unbound_one_goes_at_once() -> None:
    core = Core()
    core.create("pods", pod("bound", node="node-a"))
    core.create("pods", pod("unbound"))
    assert core.writes.delete(core.type("pods"), "default", "unbound")[1]
    marked, gone = core.writes.delete(core.type("pods"), "default", "bound", DeleteOptions(grace=20))
    assert not gone
    assert marked.object["metadata"]["deletionGracePeriodSeconds"] == 20
    assert marked.object["metadata"]["deletionTimestamp"] == "2023-11-14T22:13:40Z"
    before = core.store.version
    core.writes.delete(core.type("pods"), "default", "bound")
    assert core.store.version == before, "asking again does not prolong it"
    assert core.writes.delete(core.type("pods"), "default", "bound", DeleteOptions(grace=0))[1]


def test_dry_runs_store_nothing() -> None:
    core = Core()
    core.create("configmaps", config_map("a", key="1"))
    before = core.store.version
    dry = WriteOptions(dry_run=True)
    resource = core.type("configmaps")
    assert core.writes.create(resource, "default", config_map("b"), dry).object["metadata"]["uid"]
    assert replace(core, "configmaps", "a", config_map("a", key="2"), dry_run=True)["data"] == {"key": "2"}
    core.writes.delete(resource, "default", "a", DeleteOptions(dry_run=True))
    core.writes.patch(resource, "default", "a", PatchRequest({"data": {"key": "3"}}, MERGE), dry)
    assert core.store.version == before
    found = core.get("configmaps", "a")
    assert found is not None
    assert found["data"] == {"key": "1"}


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"nodeName": "node-b"}},
        {"spec": {"schedulerName": "other"}},
        {"spec": {"nodeSelector": {"a": "b"}}},
        {"spec": {"schedulingGates": [{"name": "example.test/new"}]}},
        {"spec": {"priority": 100}},
    ],
)
def test_a_pod_is_not_moved_or_reshaped_by_an_update(change: Object) -> None:
    core = Core()
    core.create("pods", pod("web"))
    with pytest.raises(ApiError) as caught:
        patch(core, "pods", "web", change)
    assert caught.value.code == 422


def test_a_gated_pod_may_lose_gates_and_gain_a_node_selector() -> None:
    core = Core()
    core.create("pods", pod("web", gates=("example.test/a", "example.test/b")))
    change = {"spec": {"schedulingGates": [{"name": "example.test/b"}], "nodeSelector": {"zone": "a"}}}
    changed = patch(core, "pods", "web", change)
    assert changed["spec"]["nodeSelector"] == {"zone": "a"}


def test_priority_comes_from_the_class() -> None:
    core = Core()
    core.create("priorityclasses", {"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"})
    sent = pod("web")
    sent["spec"]["priorityClassName"] = "high"
    created = core.create("pods", sent)
    assert (created["spec"]["priority"], created["spec"]["preemptionPolicy"]) == (1000, "Never")
    sent = pod("other")
    sent["spec"]["priorityClassName"] = "unheard-of"
    assert refused(core, "pods", sent).code == 403


def test_events_are_one_store_under_two_names() -> None:
    core = Core()
    newer = core.registry.find("events.k8s.io", "v1", "events")
    assert newer is not None
    sent: Object = {"metadata": {"name": "e"}, "note": "hello", "regarding": {"kind": "Pod", "name": "web"}}
    said = {"type": "Normal", "reason": "Greeted", "action": "Greeting", "eventTime": "2026-01-01T00:00:00.000000Z"}
    sent |= {**said, "reportingController": "me", "reportingInstance": "me-1"}
    core.writes.create(newer, "default", sent)
    found = core.get("events", "e")
    assert found is not None
    assert (found["apiVersion"], found["message"], found["involvedObject"]["name"]) == ("v1", "hello", "web")


def test_a_failed_write_leaves_the_stored_object_untouched() -> None:
    core = Core()
    core.create("pods", pod("web", labels={"a": "b"}))
    before = core.store.get(("", "pods"), "default", "web")
    assert before is not None
    copy = before.encoded
    for bad in ({"spec": {"nodeName": "x"}}, {"metadata": {"labels": {"a": 1}}}, {"metadata": {"uid": "other"}}):
        with pytest.raises(ApiError):
            patch(core, "pods", "web", bad)
    assert before.encoded == copy
    assert before.object == core.get("pods", "web")
