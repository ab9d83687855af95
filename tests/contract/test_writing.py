"""Creating and updating: names, dry runs, subresources, defaults and admission."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from contract.client import MERGE, STRATEGIC, Answer, Object
from contract.cluster import Cluster
from contract.objects import a_node, a_pod, binding, config_map, lease, running


async def test_a_name_is_generated_from_a_prefix(cluster: Cluster) -> None:
    body = config_map("")
    body["metadata"] = {"generateName": "made-"}
    names = [(await cluster.create("configmaps", body))["metadata"]["name"] for _ in range(3)]
    assert len(set(names)) == 3
    assert all(name.startswith("made-") and len(name) == 10 for name in names)


@pytest.mark.parametrize("name", ["Upper", "under_score", "-first", "a" * 254, "a..b", "a/b"])
async def test_a_name_that_is_not_allowed_is_refused(cluster: Cluster, name: str) -> None:
    message = (await cluster.client.post(cluster.path("configmaps"), config_map(name))).refused(422, "Invalid")
    assert "metadata.name: Invalid value" in message


async def test_an_object_without_a_name_is_refused(cluster: Cluster) -> None:
    for body in ("null", {"metadata": {}}):
        answer = await cluster.client.post(cluster.path("configmaps"), body)
        assert "name or generateName is required" in answer.refused(422, "Invalid")


@pytest.mark.parametrize(
    "body",
    [
        *("", "{", "{half", "nul", '"text"', "[]", "[" * 100_000),
        {"metadata": []},
        {"metadata": {"name": 7}},
        {"metadata": {"name": "a", "labels": ["x"]}},
        {"metadata": {"name": "a", "labels": {"x": 1}}},
        {"metadata": {"name": "a", "annotations": {"x": [None]}}},
        {"metadata": {"name": "a", "finalizers": "x"}},
        {"metadata": {"name": "a", "ownerReferences": [1]}},
        {"kind": "Secret", "metadata": {"name": "a"}},
        {"apiVersion": "v2", "metadata": {"name": "a"}},
    ],
    ids=range(16),
)
async def test_what_is_no_config_map_is_refused(cluster: Cluster, body: object) -> None:
    assert (await cluster.client.post(cluster.path("configmaps"), body)).refused(400, "BadRequest")


async def test_a_body_of_an_unknown_format_is_refused(cluster: Cluster) -> None:
    answer = await cluster.client.request("POST", cluster.path("configmaps"), config_map("it"), "application/vnd.example")
    assert answer.refused(415, "UnsupportedMediaType")


async def test_a_body_that_is_too_large_is_refused(cluster: Cluster) -> None:
    answer = await cluster.client.post(cluster.path("configmaps"), config_map("it", {"a": "x" * 3 * 2**20}))
    assert answer.refused(413, "RequestEntityTooLarge")


async def test_a_body_may_be_yaml(cluster: Cluster) -> None:
    async def post(text: str) -> Answer:
        return await cluster.client.request("POST", cluster.path("configmaps"), text, "application/yaml")

    (await post("{apiVersion: v1, kind: ConfigMap, metadata: {name: it}}")).expect(201)
    for broken in ("a: [", "!!python/object/apply:os.getcwd []"):
        assert (await post(broken)).refused(400, "BadRequest")


@pytest.mark.parametrize(("containers", "code"), [([], 422), ([{}], 422), (None, 422), (["x"], 400)])
async def test_a_pod_needs_a_container_with_a_name(cluster: Cluster, containers: object, code: int) -> None:
    answer = await cluster.client.post(cluster.path("pods"), a_pod("p", containers=containers))
    assert "containers" in answer.refused(code)


async def test_a_body_for_another_namespace_is_refused(cluster: Cluster) -> None:
    body = config_map("it", namespace="elsewhere")
    answer = await cluster.client.post(cluster.path("configmaps"), body)
    assert "does not match the namespace" in answer.refused(400, "BadRequest")


async def test_nothing_is_created_in_a_namespace_that_is_not_there(cluster: Cluster) -> None:
    name = cluster.unique("nowhere")
    answer = await cluster.client.post(f"/api/v1/namespaces/{name}/configmaps", config_map("it"))
    assert answer.refused(404, "NotFound") == f'namespaces "{name}" not found'


async def test_a_dry_run_answers_and_stores_nothing(cluster: Cluster) -> None:
    path = cluster.path("configmaps")
    made = (await cluster.client.post(path, config_map("it"), dryRun="All")).expect(201)
    assert made["metadata"]["uid"]
    assert (await cluster.client.get(f"{path}/it")).refused(404)
    await cluster.create("configmaps", config_map("it", {"a": "1"}))
    changed = (await cluster.client.patch(f"{path}/it", {"data": {"a": "2"}}, MERGE, dryRun="All")).expect(200)
    assert changed["data"] == {"a": "2"}
    (await cluster.client.delete(f"{path}/it", dryRun="All")).expect(200)
    assert (await cluster.read("configmaps", "it"))["data"] == {"a": "1"}


async def test_a_dry_run_of_another_sort_is_refused(cluster: Cluster) -> None:
    answer = await cluster.client.post(cluster.path("configmaps"), config_map("it"), dryRun="Some")
    assert "dryRun: Unsupported value" in answer.refused(422, "Invalid")


async def test_a_pod_begins_pending_whatever_status_is_sent(cluster: Cluster) -> None:
    made = await cluster.create("pods", {**a_pod("p"), **running()})
    assert made["status"]["phase"] == "Pending"
    assert "containerStatuses" not in made["status"]


async def test_status_is_written_through_its_subresource_only(cluster: Cluster) -> None:
    await cluster.create("pods", a_pod("p"))
    path = cluster.path("pods", "p")
    (await cluster.client.patch(path, running(), MERGE)).expect(200)
    assert (await cluster.read("pods", "p"))["status"]["phase"] == "Pending"
    both = {**running(), "spec": {"activeDeadlineSeconds": 5}}
    (await cluster.client.patch(f"{path}/status", both, MERGE)).expect(200)
    found = await cluster.read("pods", "p")
    assert found["status"]["phase"] == "Running"
    assert "activeDeadlineSeconds" not in found["spec"]


async def test_the_status_of_a_pod_brings_labels_along(cluster: Cluster) -> None:
    """For built-in types the status subresource guards the spec only."""
    await cluster.create("pods", a_pod("p"))
    both = {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}, "status": {"nominatedNodeName": "n"}}
    found = (await cluster.client.patch(cluster.path("pods", "p", "status"), both, STRATEGIC)).expect(200)
    assert found["status"]["nominatedNodeName"] == "n"
    assert (found["metadata"]["labels"], found["metadata"]["annotations"]) == ({"a": "b"}, {"c": "d"})


async def test_a_failed_attempt_to_schedule_is_written_into_the_status(cluster: Cluster) -> None:
    made = await cluster.create("pods", a_pod("p"))
    path = cluster.path("pods", "p")
    failed = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/1 nodes are available",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    patch = {"metadata": {"uid": made["metadata"]["uid"]}, "status": {"conditions": [failed], "nominatedNodeName": "n"}}
    status = (await cluster.client.patch(f"{path}/status", patch, STRATEGIC)).expect(200)["status"]
    assert [each.items() >= failed.items() for each in status["conditions"]] == [True]
    assert status["nominatedNodeName"] == "n"
    cleared = (await cluster.client.patch(f"{path}/status", {"status": {"nominatedNodeName": None}}, STRATEGIC)).expect(200)
    assert "nominatedNodeName" not in cleared["status"]
    (await cluster.client.post(f"{path}/binding", binding("p", "n"))).expect(201)
    [scheduled] = (await cluster.read("pods", "p"))["status"]["conditions"]
    assert (scheduled["type"], scheduled["status"]) == ("PodScheduled", "True")
    assert not {"reason", "message"} & scheduled.keys()


async def test_nothing_is_kept_of_empty_maps_in_metadata(cluster: Cluster) -> None:
    made = await cluster.create("configmaps", config_map("it", labels={}, annotations={}, finalizers=[]))
    assert not {"labels", "annotations", "finalizers"} & made["metadata"].keys()
    path = cluster.path("configmaps", "it")
    (await cluster.client.patch(path, {"metadata": {"labels": {"a": "b"}}}, MERGE)).expect(200)
    emptied = (await cluster.client.patch(path, {"metadata": {"labels": {"a": None}}}, MERGE)).expect(200)
    assert "labels" not in emptied["metadata"]


async def test_generations_are_counted_only_where_somebody_reads_them(cluster: Cluster) -> None:
    assert "generation" not in (await cluster.create("configmaps", config_map("it")))["metadata"]
    lease_made = await cluster.create("leases", lease("it"), group="coordination.k8s.io")
    assert "generation" not in lease_made["metadata"]


async def test_gates_are_dropped_by_a_server_that_does_not_know_them(cluster: Cluster) -> None:
    made = await cluster.create("pods", a_pod("p", schedulingGates=[{"name": "example.com/wait"}]))
    assert ("schedulingGates" in made["spec"]) == (cluster.minor >= 27)


async def test_a_pod_gets_its_defaults(cluster: Cluster) -> None:
    body = a_pod("p", containers=[{"name": "main", "image": "app:1", "resources": {"limits": {"cpu": "1"}}}])
    del body["spec"]["schedulerName"]
    made = (await cluster.client.post(cluster.path("pods"), body, dryRun="All")).expect(201)
    spec = made["spec"]
    assert (spec["schedulerName"], spec["restartPolicy"]) == ("default-scheduler", "Always")
    assert spec["terminationGracePeriodSeconds"] == 30
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "1"}
    assert spec["containers"][0]["imagePullPolicy"] == "IfNotPresent"
    assert made["status"]["qosClass"] == "Burstable"


async def test_a_pod_tolerates_node_problems_for_five_minutes(cluster: Cluster) -> None:
    made = await cluster.create("pods", a_pod("p"))
    tolerated = {each["key"]: each["tolerationSeconds"] for each in made["spec"]["tolerations"]}
    assert tolerated == {"node.kubernetes.io/not-ready": 300, "node.kubernetes.io/unreachable": 300}


@pytest.mark.parametrize("change", [{"schedulerName": "another"}, {"nodeSelector": {"a": "b"}}, {"priority": 100}, {"nodeName": "n"}])
async def test_the_scheduling_of_a_pod_cannot_be_changed_later(cluster: Cluster, change: Object) -> None:
    made = await cluster.create("pods", a_pod("p"))
    path = cluster.path("pods", "p")
    assert (await cluster.client.put(path, {**made, "spec": {**made["spec"], **change}})).refused(422, "Invalid")
    assert (await cluster.client.patch(path, {"spec": change}, MERGE)).refused(422, "Invalid")


def priority_class(name: str, value: int, **more: object) -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **more,
    }


async def test_a_priority_class_becomes_a_number(cluster: Cluster) -> None:
    name, classes = cluster.unique("urgent"), "/apis/scheduling.k8s.io/v1/priorityclasses"
    (await cluster.client.post(classes, priority_class(name, 1234, preemptionPolicy="Never"))).expect(201)
    try:

        async def admitted() -> Object | None:
            answer = await cluster.client.post(cluster.path("pods"), a_pod("p", priorityClassName=name), dryRun="All")
            return answer.body if answer.status == 201 else None

        # A real server looks classes up in a cache that follows a moment later.
        made = await admitted()
        for _ in range(200):
            if made is not None:
                break
            await cluster.client.get(f"{classes}/{name}")
            made = await admitted()
        assert made is not None
        assert (made["spec"]["priority"], made["spec"]["preemptionPolicy"]) == (1234, "Never")
    finally:
        await cluster.client.delete(f"{classes}/{name}")


async def test_a_pod_without_a_class_has_priority_0(cluster: Cluster) -> None:
    assert (await cluster.create("pods", a_pod("p")))["spec"]["priority"] == 0


async def test_a_priority_class_that_is_not_there_is_forbidden(cluster: Cluster) -> None:
    answer = await cluster.client.post(cluster.path("pods"), a_pod("p", priorityClassName="no-such-class"))
    message = answer.refused(403, "Forbidden")
    assert message == 'pods "p" is forbidden: no PriorityClass with name no-such-class was found'


async def test_the_system_classes_are_always_there(cluster: Cluster) -> None:
    body = a_pod("p", priorityClassName="system-cluster-critical")
    answer = await cluster.client.post(cluster.path("pods"), body, dryRun="All")
    assert answer.expect(201)["spec"]["priority"] == 2_000_000_000


async def test_the_status_of_a_node_can_be_set_when_it_is_registered(cluster: Cluster) -> None:
    name = cluster.unique("node")
    body = {**a_node(name), "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}}}
    made = (await cluster.client.post("/api/v1/nodes", body)).expect(201)
    try:
        assert made["status"]["capacity"]["cpu"] == "4"
        assert made["status"]["allocatable"]["cpu"] == "4"
    finally:
        await cluster.client.delete(f"/api/v1/nodes/{name}")


async def test_requests_without_credentials_are_refused(cluster: Cluster) -> None:
    async with cluster.client.session.get(
        f"{cluster.client.server}/api/v1/namespaces", headers={"Authorization": "Bearer wrong"}
    ) as answer:
        assert answer.status == 401


async def test_storage_is_given_its_defaults(cluster: Cluster) -> None:
    """Without a volume binding mode a class would be none that a scheduler can read."""
    name = cluster.unique("slow")
    classes, volumes = "/apis/storage.k8s.io/v1/storageclasses", "/api/v1/persistentvolumes"
    size = {"storage": "1Gi"}
    body = {"metadata": {"name": name}, "spec": {"capacity": size, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/data"}}}
    try:
        made = (await cluster.client.post(classes, {"metadata": {"name": name}, "provisioner": "example.test/disks"})).expect(201)
        assert (made["volumeBindingMode"], made["reclaimPolicy"]) == ("Immediate", "Delete")
        volume = (await cluster.client.post(volumes, body)).expect(201)
        assert (volume["spec"]["volumeMode"], volume["spec"]["persistentVolumeReclaimPolicy"]) == ("Filesystem", "Retain")
        asked = {"accessModes": ["ReadWriteOnce"], "storageClassName": name, "resources": {"requests": size}}
        claim = await cluster.create("persistentvolumeclaims", {"metadata": {"name": "data"}, "spec": asked})
        assert (claim["spec"]["volumeMode"], claim["status"]["phase"]) == ("Filesystem", "Pending")
    finally:
        await cluster.client.delete(f"{classes}/{name}")
        await cluster.client.delete(f"{volumes}/{name}")


async def test_a_claim_that_says_nothing_of_its_class_gets_the_default_one(cluster: Cluster) -> None:
    classes = "/apis/storage.k8s.io/v1/storageclasses"
    name = cluster.unique("default")
    marked = {"name": name, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
    asked: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    (await cluster.client.post(classes, {"metadata": marked, "provisioner": "example.test/disks"})).expect(201)
    try:
        await eventually_defaulted(cluster, asked, name)
        without = {"metadata": {"name": "without"}, "spec": {**asked, "storageClassName": ""}}
        claim = await cluster.create("persistentvolumeclaims", without)
        assert claim["spec"]["storageClassName"] == ""
    finally:
        await cluster.client.delete(f"{classes}/{name}")


async def eventually_defaulted(cluster: Cluster, asked: Object, wanted: str) -> None:
    """The real server looks at its own watch of classes, which may lag behind the class just made."""
    async with asyncio.timeout(10):
        for number in itertools.count():
            claim = await cluster.create("persistentvolumeclaims", {"metadata": {"name": f"with-{number}"}, "spec": asked})
            if claim["spec"].get("storageClassName") == wanted:
                return
            await asyncio.sleep(0.1)
