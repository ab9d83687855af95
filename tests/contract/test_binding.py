"""Binding: how a scheduler commits a decision, and every way in which the server refuses one."""

from __future__ import annotations

from contract.client import MERGE, Answer, Object
from contract.cluster import Cluster
from contract.objects import a_pod, binding
from programs import not_on_this_server


async def bind(cluster: Cluster, name: str, body: Object, **query: str) -> Answer:
    return await cluster.client.post(cluster.path("pods", name, "binding"), body, **query)


async def test_a_bound_pod_has_its_node_and_is_scheduled(cluster: Cluster) -> None:
    made = await cluster.create("pods", a_pod("p"))
    assert "nodeName" not in made["spec"]
    answer = (await bind(cluster, "p", binding("p", "some-node"))).expect(201)
    assert (answer["kind"], answer["status"]) == ("Status", "Success")
    bound = await cluster.read("pods", "p")
    assert bound["spec"]["nodeName"] == "some-node"
    scheduled = next(each for each in bound["status"]["conditions"] if each["type"] == "PodScheduled")
    assert scheduled["status"] == "True"
    assert int(bound["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])


async def test_the_annotations_of_a_binding_become_the_pods(cluster: Cluster) -> None:
    made = a_pod("p")
    made["metadata"]["annotations"] = {"kept": "yes", "changed": "old"}
    await cluster.create("pods", made)
    body = binding("p", "some-node", annotations={"changed": "new", "decision": "42"})
    (await bind(cluster, "p", body)).expect(201)
    annotations = (await cluster.read("pods", "p"))["metadata"]["annotations"]
    assert annotations == {"kept": "yes", "changed": "new", "decision": "42"}


async def test_a_pod_is_bound_once(cluster: Cluster) -> None:
    await cluster.create("pods", a_pod("p"))
    (await bind(cluster, "p", binding("p", "first"))).expect(201)
    answer = await bind(cluster, "p", binding("p", "second"))
    why = 'pod p is already assigned to node "first"'
    assert answer.refused(409, "Conflict") == f'Operation cannot be fulfilled on pods/binding "p": {why}'
    assert answer.body["details"] == {"name": "p", "kind": "pods/binding"}
    assert (await bind(cluster, "p", binding("p", "first"))).refused(409, "Conflict")
    assert (await cluster.read("pods", "p"))["spec"]["nodeName"] == "first"


async def test_a_pod_that_is_being_deleted_is_not_bound(cluster: Cluster) -> None:
    made = a_pod("p")
    made["metadata"]["finalizers"] = ["example.com/hold"]
    await cluster.create("pods", made)
    (await cluster.client.delete(cluster.path("pods", "p"))).expect(200)
    message = (await bind(cluster, "p", binding("p", "some-node"))).refused(409, "Conflict")
    assert "is being deleted, cannot be assigned to a host" in message
    release = [{"op": "remove", "path": "/metadata/finalizers"}]
    await cluster.client.patch(cluster.path("pods", "p"), release, "application/json-patch+json")


async def test_a_gated_pod_is_not_bound(cluster: Cluster) -> None:
    cluster.needs(27, "scheduling gates by default")
    await cluster.create("pods", a_pod("p", schedulingGates=[{"name": "example.com/wait"}]))
    message = (await bind(cluster, "p", binding("p", "some-node"))).refused(409, "Conflict")
    assert "has non-empty .spec.schedulingGates" in message


async def test_a_gated_pod_says_so_in_its_condition(cluster: Cluster) -> None:
    cluster.needs(27, "scheduling gates by default")
    made = await cluster.create("pods", a_pod("p", schedulingGates=[{"name": "example.com/wait"}]))
    condition = next(each for each in made["status"]["conditions"] if each["type"] == "PodScheduled")
    assert (condition["status"], condition["reason"]) == ("False", "SchedulingGated")


async def test_gates_may_go_and_not_come(cluster: Cluster) -> None:
    cluster.needs(27, "scheduling gates by default")
    await cluster.create("pods", a_pod("p", schedulingGates=[{"name": "example.com/wait"}]))
    path, merge = cluster.path("pods", "p"), "application/merge-patch+json"
    more = {"spec": {"schedulingGates": [{"name": "example.com/wait"}, {"name": "example.com/more"}]}}
    assert "schedulingGates" in (await cluster.client.patch(path, more, merge)).refused(422, "Invalid")
    narrower = {"spec": {"schedulingGates": None, "nodeSelector": {"zone": "a"}}}
    assert (await cluster.client.patch(path, narrower, merge)).expect(200)["spec"]["nodeSelector"] == {"zone": "a"}
    (await bind(cluster, "p", binding("p", "some-node"))).expect(201)


async def test_a_binding_for_a_predecessor_of_the_same_name_is_refused(cluster: Cluster) -> None:
    if cluster.minor in (25, 26):
        not_on_this_server("1.25 lost the preconditions of bindings, which 1.27 and some late patch releases have again")
    first = await cluster.create("pods", a_pod("p"))
    (await cluster.client.delete(cluster.path("pods", "p"), {"gracePeriodSeconds": 0})).expect(200)
    second = await cluster.create("pods", a_pod("p"))
    stale = binding("p", "some-node", uid=first["metadata"]["uid"])
    if cluster.minor < 23:  # bindings know no preconditions: the namesake is bound
        (await bind(cluster, "p", stale)).expect(201)
        assert (await cluster.read("pods", "p"))["spec"]["nodeName"] == "some-node"
        return
    message = (await bind(cluster, "p", stale)).refused(409, "Conflict")
    assert f"UID in precondition: {first['metadata']['uid']}" in message
    assert "nodeName" not in (await cluster.read("pods", "p"))["spec"]
    (await bind(cluster, "p", binding("p", "some-node", uid=second["metadata"]["uid"]))).expect(201)


async def test_a_binding_for_an_older_version_of_the_pod_is_refused(cluster: Cluster) -> None:
    if cluster.minor in (25, 26):
        not_on_this_server("1.25 lost the preconditions of bindings, which 1.27 and some late patch releases have again")
    made = await cluster.create("pods", a_pod("p"))
    (await cluster.client.patch(cluster.path("pods", "p"), {"metadata": {"labels": {"a": "b"}}}, MERGE)).expect(200)
    stale = await bind(cluster, "p", binding("p", "some-node", resourceVersion=made["metadata"]["resourceVersion"]))
    if cluster.minor < 23:  # bindings know no preconditions
        stale.expect(201)
    else:
        stale.refused(409, "Conflict")
        assert "nodeName" not in (await cluster.read("pods", "p"))["spec"]


async def test_a_pod_that_is_not_there_is_not_bound(cluster: Cluster) -> None:
    message = (await bind(cluster, "nobody", binding("nobody", "some-node"))).refused(404, "NotFound")
    assert message == 'pods "nobody" not found'


async def test_a_binding_of_another_name_is_refused(cluster: Cluster) -> None:
    await cluster.create("pods", a_pod("p"))
    message = (await bind(cluster, "p", binding("q", "some-node"))).refused(400, "BadRequest")
    assert message == "name in URL does not match name in Binding object"


async def test_a_binding_without_a_node_is_refused(cluster: Cluster) -> None:
    await cluster.create("pods", a_pod("p"))
    # Real servers never gave this check a status of its own: it comes out as an error of theirs, without a reason.
    for target in ({"kind": "Node"}, {"name": ""}, None):
        answer = await bind(cluster, "p", {**binding("p", ""), "target": target})
        assert answer.refused(500) == "target.name: Required value"
        assert "reason" not in answer.body


async def test_a_binding_to_something_else_than_a_node_is_refused(cluster: Cluster) -> None:
    await cluster.create("pods", a_pod("p"))
    other = {**binding("p", "x"), "target": {"kind": "Pod", "name": "x"}}
    assert (await bind(cluster, "p", other)).refused(500).startswith('target.kind: Unsupported value: "Pod"')
    assert "nodeName" not in (await cluster.read("pods", "p"))["spec"]


async def test_what_is_no_binding_is_refused(cluster: Cluster) -> None:
    await cluster.create("pods", a_pod("p"))
    other: tuple[object, ...] = (
        *("{half", "null", "[]"),
        *({**binding("p", "x"), **wrong} for wrong in ({"kind": "Pod"}, {"apiVersion": "v9"}, {"metadata": ["p"]})),
        *({**binding("p", "x"), "target": target} for target in ("x", {"name": ["x"]})),
        *(binding("p", "x", annotations=annotations) for annotations in ({"a": 1}, ["a"])),
    )
    for body in other:
        answer = await cluster.client.post(cluster.path("pods", "p", "binding"), body)
        assert answer.refused(400, "BadRequest"), body
    assert "nodeName" not in (await cluster.read("pods", "p"))["spec"]


async def test_a_binding_of_another_namespace_is_refused(cluster: Cluster) -> None:
    await cluster.create("pods", a_pod("p"))
    answer = await bind(cluster, "p", binding("p", "x", namespace="default"))
    if cluster.minor == 20:  # looks at the path only
        answer.expect(201)
    else:
        assert "does not match the namespace" in answer.refused(400, "BadRequest")


async def test_a_node_that_does_not_exist_is_bound_to_all_the_same(cluster: Cluster) -> None:
    await cluster.create("pods", a_pod("p"))
    node = cluster.unique("no-such-node")
    (await bind(cluster, "p", binding("p", node))).expect(201)
    assert (await cluster.read("pods", "p"))["spec"]["nodeName"] == node


async def test_a_binding_posted_to_the_bindings_of_a_namespace_works_too(cluster: Cluster) -> None:
    await cluster.create("pods", a_pod("p"))
    (await cluster.client.post(cluster.path("bindings"), binding("p", "some-node"))).expect(201)
    assert (await cluster.read("pods", "p"))["spec"]["nodeName"] == "some-node"
    assert (await cluster.client.post(cluster.path("bindings"), binding("p", "other"))).refused(409, "Conflict")
    nameless = {"apiVersion": "v1", "kind": "Binding", "target": {"kind": "Node", "name": "x"}}
    assert (await cluster.client.post(cluster.path("bindings"), nameless)).status in (400, 404, 422, 500)


async def test_a_dry_run_binds_nothing(cluster: Cluster) -> None:
    await cluster.create("pods", a_pod("p"))
    (await bind(cluster, "p", binding("p", "some-node"), dryRun="All")).expect(201)
    assert "nodeName" not in (await cluster.read("pods", "p"))["spec"]
    (await bind(cluster, "p", binding("p", "some-node"))).expect(201)
    assert (await bind(cluster, "p", binding("p", "other"), dryRun="All")).refused(409, "Conflict")


async def test_the_node_cannot_be_set_by_an_update(cluster: Cluster) -> None:
    made = await cluster.create("pods", a_pod("p"))
    made["spec"]["nodeName"] = "some-node"
    assert (await cluster.client.put(cluster.path("pods", "p"), made)).refused(422, "Invalid")
    assert "nodeName" not in (await cluster.read("pods", "p"))["spec"]
