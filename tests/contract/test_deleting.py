"""Deletion: graceful for running pods, held up by finalizers, and through eviction limited by budgets."""

from __future__ import annotations

from contract.client import JSON_PATCH, MERGE, Answer, Object
from contract.cluster import Cluster
from contract.objects import a_pod, binding, config_map, running


async def run(cluster: Cluster, name: str, **labels: str) -> Object:
    """A pod that a kubelet would report as running and ready."""
    await cluster.create("pods", a_pod(name, labels))
    path = cluster.path("pods", name)
    (await cluster.client.post(f"{path}/binding", binding(name, "contract-node"))).expect(201)
    return (await cluster.client.patch(f"{path}/status", running(), "application/strategic-merge-patch+json")).expect(200)


async def test_a_pod_on_a_node_gets_its_grace_period(cluster: Cluster) -> None:
    await run(cluster, "p")
    path = cluster.path("pods", "p")
    marked = (await cluster.client.delete(path)).expect(200)
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 30
    assert marked["metadata"]["deletionTimestamp"] > marked["metadata"]["creationTimestamp"]
    assert (await cluster.read("pods", "p"))["metadata"]["deletionTimestamp"] == marked["metadata"]["deletionTimestamp"]
    (await cluster.client.delete(path, {"gracePeriodSeconds": 0})).expect(200)
    assert (await cluster.client.get(path)).refused(404, "NotFound")


async def test_the_grace_period_may_be_shortened_and_not_extended(cluster: Cluster) -> None:
    await run(cluster, "p")
    path = cluster.path("pods", "p")
    (await cluster.client.delete(path, {"gracePeriodSeconds": 20})).expect(200)
    shorter = (await cluster.client.delete(path, {"gracePeriodSeconds": 5})).expect(200)
    assert shorter["metadata"]["deletionGracePeriodSeconds"] == 5
    longer = (await cluster.client.delete(path, {"gracePeriodSeconds": 60})).expect(200)
    assert longer == shorter, "nothing is written"


async def test_the_grace_period_of_the_pod_is_the_default(cluster: Cluster) -> None:
    await cluster.create("pods", a_pod("p", terminationGracePeriodSeconds=7))
    path = cluster.path("pods", "p")
    (await cluster.client.post(f"{path}/binding", binding("p", "contract-node"))).expect(201)
    assert (await cluster.client.delete(path)).expect(200)["metadata"]["deletionGracePeriodSeconds"] == 7


async def test_a_pod_without_a_node_goes_at_once(cluster: Cluster) -> None:
    await cluster.create("pods", a_pod("p"))
    gone = (await cluster.client.delete(cluster.path("pods", "p"))).expect(200)
    assert (gone["kind"], gone["metadata"]["deletionGracePeriodSeconds"]) == ("Pod", 0)
    assert (await cluster.client.get(cluster.path("pods", "p"))).refused(404, "NotFound")


async def test_a_finished_pod_goes_at_once(cluster: Cluster) -> None:
    await run(cluster, "p")
    path = cluster.path("pods", "p")
    (await cluster.client.patch(f"{path}/status", {"status": {"phase": "Failed"}}, MERGE)).expect(200)
    (await cluster.client.delete(path)).expect(200)
    assert (await cluster.client.get(path)).refused(404, "NotFound")


async def test_a_negative_grace_period_is_a_short_one(cluster: Cluster) -> None:
    await run(cluster, "p")
    marked = (await cluster.client.delete(cluster.path("pods", "p"), {"gracePeriodSeconds": -1})).expect(200)
    if cluster.minor == 20:  # takes it as it came, and then it is over
        assert marked["metadata"]["deletionGracePeriodSeconds"] == -1
        assert (await cluster.client.get(cluster.path("pods", "p"))).refused(404, "NotFound")
    else:
        assert marked["metadata"]["deletionGracePeriodSeconds"] == 1


async def test_the_answer_to_a_deletion_says_what_is_gone(cluster: Cluster) -> None:
    made = await cluster.create("configmaps", config_map("it"))
    answer = (await cluster.client.delete(cluster.path("configmaps", "it"))).expect(200)
    assert (answer["kind"], answer["status"]) == ("Status", "Success")
    assert answer["details"] == {"name": "it", "kind": "configmaps", "uid": made["metadata"]["uid"]}


async def test_a_deletion_of_an_unknown_policy_is_refused(cluster: Cluster) -> None:
    await cluster.create("configmaps", config_map("it"))
    answer = await cluster.client.delete(cluster.path("configmaps", "it"), {"propagationPolicy": "Somehow"})
    assert "propagationPolicy: Unsupported value" in answer.refused(422, "Invalid")
    await cluster.read("configmaps", "it")


async def test_an_object_with_finalizers_stays_until_the_last_is_gone(cluster: Cluster) -> None:
    await cluster.create("configmaps", config_map("held", finalizers=["example.com/a", "example.com/b"]))
    path = cluster.path("configmaps", "held")
    (await cluster.client.delete(path)).expect(200)
    assert "deletionTimestamp" in (await cluster.read("configmaps", "held"))["metadata"]
    one = [{"op": "remove", "path": "/metadata/finalizers/0"}]
    (await cluster.client.patch(path, one, JSON_PATCH)).expect(200)
    await cluster.read("configmaps", "held")
    (await cluster.client.patch(path, one, JSON_PATCH)).expect(200)
    assert (await cluster.client.get(path)).refused(404, "NotFound")


async def test_no_finalizer_joins_an_object_that_is_being_deleted(cluster: Cluster) -> None:
    await cluster.create("configmaps", config_map("held", finalizers=["example.com/a"]))
    path = cluster.path("configmaps", "held")
    (await cluster.client.delete(path)).expect(200)
    more = {"metadata": {"finalizers": ["example.com/a", "example.com/b"]}}
    assert "metadata.finalizers" in (await cluster.client.patch(path, more, MERGE)).refused(422, "Invalid")
    (await cluster.client.patch(path, {"metadata": {"finalizers": None}}, MERGE)).expect(200)


async def test_a_collection_is_deleted_by_selector(cluster: Cluster) -> None:
    for name, labels in (("a", {"go": "yes"}), ("b", {"go": "yes"}), ("c", {})):
        await cluster.create("configmaps", config_map(name, labels=labels))
    (await cluster.client.delete(cluster.path("configmaps"), labelSelector="go=yes")).expect(200)
    assert (await cluster.client.get(cluster.path("configmaps", "a"))).refused(404, "NotFound")
    await cluster.read("configmaps", "c")


async def test_deleting_what_is_not_there_is_not_found(cluster: Cluster) -> None:
    message = (await cluster.client.delete(cluster.path("configmaps", "nothing"))).refused(404, "NotFound")
    assert message == 'configmaps "nothing" not found'


async def policy_version(cluster: Cluster) -> str:
    """policy/v1 where it is served, v1beta1 before 1.21."""
    group = (await cluster.client.get("/apis/policy")).expect(200)
    return str(group["preferredVersion"]["version"])


async def evict(cluster: Cluster, name: str, **options: object) -> Answer:
    types = (await cluster.client.get("/api/v1")).expect(200)["resources"]
    found = next(each for each in types if each["name"] == "pods/eviction")
    body = {
        "apiVersion": f"{found['group']}/{found['version']}",
        "kind": "Eviction",
        "metadata": {"name": name},
        **({"deleteOptions": options} if options else {}),
    }
    return await cluster.client.post(cluster.path("pods", name, "eviction"), body)


async def budget(cluster: Cluster, minimum: int, healthy: int, name: str = "web") -> None:
    """A budget on app=web, with the status that the disruption controller would give it."""
    version = await policy_version(cluster)
    body = {
        "apiVersion": f"policy/{version}",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"minAvailable": minimum, "selector": {"matchLabels": {"app": "web"}}},
    }
    made = await cluster.create("poddisruptionbudgets", body, group="policy", version=version)
    status = {
        "observedGeneration": made["metadata"]["generation"],
        "currentHealthy": healthy,
        "desiredHealthy": minimum,
        "expectedPods": healthy,
        "disruptionsAllowed": max(0, healthy - minimum),
    }
    path = cluster.path("poddisruptionbudgets", name, "status", group="policy", version=version)
    (await cluster.client.patch(path, {"status": status}, MERGE)).expect(200)


async def test_an_eviction_deletes_a_pod_gracefully(cluster: Cluster) -> None:
    await run(cluster, "p")
    answer = (await evict(cluster, "p")).expect(200, 201)
    assert answer["status"] == "Success"
    assert (await cluster.read("pods", "p"))["metadata"]["deletionGracePeriodSeconds"] == 30


async def test_an_eviction_that_breaks_a_budget_is_to_be_tried_later(cluster: Cluster) -> None:
    for name in ("web-1", "web-2"):
        await run(cluster, name, app="web")
    await budget(cluster, minimum=2, healthy=2)
    answer = await evict(cluster, "web-1")
    message = answer.refused(429, "TooManyRequests")
    assert message == "Cannot evict pod as it would violate the pod's disruption budget."
    [cause] = answer.body["details"]["causes"]
    assert cause == {
        "reason": "DisruptionBudget",
        "message": "The disruption budget web needs 2 healthy pods and has 2 currently",
    }
    assert "deletionTimestamp" not in (await cluster.read("pods", "web-1"))["metadata"]


async def test_a_budget_allows_as_many_evictions_as_it_has_room_for(cluster: Cluster) -> None:
    for name in ("web-1", "web-2"):
        await run(cluster, name, app="web")
    await budget(cluster, minimum=1, healthy=2)
    (await evict(cluster, "web-1")).expect(200, 201)
    assert (await evict(cluster, "web-2")).refused(429, "TooManyRequests")


async def test_a_pod_that_does_not_run_is_evicted_whatever_the_budget(cluster: Cluster) -> None:
    await cluster.create("pods", a_pod("web-1", {"app": "web"}))
    await budget(cluster, minimum=1, healthy=0)
    (await evict(cluster, "web-1")).expect(200, 201)
    assert (await cluster.client.get(cluster.path("pods", "web-1"))).refused(404, "NotFound")


async def test_two_budgets_over_one_pod_are_an_error(cluster: Cluster) -> None:
    await run(cluster, "web-1", app="web")
    for name in ("web", "also"):
        await budget(cluster, minimum=0, healthy=1, name=name)
    assert "more than one PodDisruptionBudget" in (await evict(cluster, "web-1")).refused(500)


async def test_an_eviction_meant_for_a_predecessor_is_refused(cluster: Cluster) -> None:
    await run(cluster, "p")
    answer = await evict(cluster, "p", preconditions={"uid": "00000000-0000-0000-0000-000000000000"})
    assert answer.refused(409, "Conflict")
    assert "deletionTimestamp" not in (await cluster.read("pods", "p"))["metadata"]


async def test_an_eviction_of_another_name_is_refused(cluster: Cluster) -> None:
    await run(cluster, "p")
    types = (await cluster.client.get("/api/v1")).expect(200)["resources"]
    found = next(each for each in types if each["name"] == "pods/eviction")
    body = {"apiVersion": f"{found['group']}/{found['version']}", "kind": "Eviction", "metadata": {"name": "q"}}
    answer = await cluster.client.post(cluster.path("pods", "p", "eviction"), body)
    assert answer.refused(400, "BadRequest") == "name in URL does not match name in Eviction object"


async def test_an_eviction_of_nobody_is_not_found(cluster: Cluster) -> None:
    assert (await evict(cluster, "nobody")).refused(404, "NotFound")
