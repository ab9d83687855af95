"""Claims come and go with pods, whatever the order in which things happen, and whenever the controller starts."""

from __future__ import annotations

import random

import pytest

from kubesandbox.devices.podclaims import LONGEST_BASE, POD_CLAIM_NAME, PodClaim, generated_claim
from kubesandbox.status import Object
from lab.sandbox.claims import CLAIMS, Claims, claim_spec, pod_with, settled

FREE = (False, [], False)


# --- pods get claims ---------------------------------------------------------------------------------------------------------


async def test_a_pod_gets_a_claim_of_its_own_from_a_template() -> None:
    cluster = Claims()
    cluster.template(labels={"team": "a"}, annotations={"note": "b"})
    uid = cluster.pod(template="gpus")["metadata"]["uid"]
    await settled()
    name = cluster.claim_of()
    meta, spec = cluster.show(name)["metadata"], cluster.show(name)["spec"]
    assert name.startswith("web-gpu-")
    assert len(name) == len("web-gpu-") + 5
    assert meta["annotations"] == {POD_CLAIM_NAME: "gpu", "note": "b"}
    assert meta["labels"] == {"team": "a"}
    assert [(each["kind"], each["uid"], each["controller"]) for each in meta["ownerReferences"]] == [("Pod", uid, True)]
    assert spec["devices"]["requests"][0]["exactly"]["count"] == 1


async def test_a_pod_gets_one_claim_for_each_of_its_entries_and_not_again() -> None:
    cluster = Claims()
    cluster.template()
    body = pod_with("web", template="gpus")
    body["spec"]["resourceClaims"].append({"name": "second", "resourceClaimTemplateName": "gpus"})
    cluster.core.create("pods", body)
    await settled()
    cluster.edit("pods", "web", lambda content: content["metadata"].update(labels={"touched": "yes"}))
    await settled()
    assert len(cluster.names()) == 2
    assert {cluster.claim_of(entry="gpu"), cluster.claim_of(entry="second")} == set(cluster.names())


async def test_a_pod_that_names_a_claim_itself_gets_none() -> None:
    cluster = Claims()
    cluster.claim("shared")
    cluster.pod(claim="shared")
    await settled()
    assert cluster.names() == ["shared"]
    assert cluster.claim_of() == ""


async def test_a_template_that_is_not_there_is_named_in_an_event_until_it_comes() -> None:
    cluster = Claims()
    cluster.pod(template="gpus")
    await settled()
    missing = 'resource claim template "gpus": resourceclaimtemplate.resource.k8s.io "gpus" not found'
    assert cluster.events() == [("FailedResourceClaimCreation", f"PodResourceClaim gpu: {missing}", 1)]
    cluster.template()
    await settled()
    assert cluster.claim_of() in cluster.names()


async def test_a_claim_that_was_made_before_the_pod_could_be_told_is_found_again() -> None:
    cluster = Claims(controller=False)
    cluster.template()
    made = cluster.pod(template="gpus")
    found = cluster.core.create(CLAIMS, generated_claim(made, PodClaim("gpu", "", "gpus", owned=True), {"spec": {"spec": claim_spec()}}))
    cluster.start()
    await settled()
    assert cluster.names() == [found["metadata"]["name"]]
    assert cluster.claim_of() == found["metadata"]["name"]


async def test_a_generated_claim_that_somebody_deletes_is_made_again() -> None:
    cluster = Claims()
    cluster.template()
    cluster.pod(template="gpus")
    await settled()
    first = cluster.claim_of()
    cluster.delete(CLAIMS, first)
    await settled()
    assert cluster.claim_of() != first
    assert cluster.names() == [cluster.claim_of()]


async def test_a_pod_that_is_going_gets_no_claim_any_more() -> None:
    cluster = Claims()
    body = pod_with("web", template="gpus")
    body["metadata"]["finalizers"] = ["example.com/hold"]
    cluster.core.create("pods", body)
    await settled()
    cluster.delete("pods", "web")
    cluster.template()
    await settled()
    assert cluster.names() == []


def test_long_names_are_cut_so_that_something_of_both_stays() -> None:
    pod: Object = {"metadata": {"name": "p" * 100, "uid": "u"}}
    base = generated_claim(pod, PodClaim("c" * 50, "", "t", owned=True), {"spec": {}})["metadata"]["generateName"]
    assert len(base) <= LONGEST_BASE
    assert base.startswith("ppp")
    assert base.endswith("ccc")


# --- claims are given back ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_a_pod_that_has_finished_gives_a_shared_claim_back(phase: str) -> None:
    cluster = Claims()
    cluster.claim("shared")
    for name in ("one", "two"):
        cluster.pod(name, claim="shared", node="node-a")
    cluster.allocate("shared", "one", "two")
    cluster.finish("one", phase)
    await settled()
    assert cluster.state("shared") == (True, ["two"], True)
    cluster.finish("two", phase)
    await settled()
    assert cluster.state("shared") == FREE


async def test_a_pod_that_is_deleted_gives_its_claim_back() -> None:
    cluster = Claims()
    cluster.claim("shared")
    cluster.pod(claim="shared", node="node-a")
    cluster.allocate("shared", "web")
    cluster.delete("pods", "web")
    await settled()
    assert cluster.state("shared") == FREE


async def test_a_generated_claim_goes_with_its_pod_and_frees_its_device_on_the_way() -> None:
    cluster = Claims()
    cluster.template()
    cluster.pod(template="gpus")
    await settled()
    name = cluster.claim_of()
    cluster.bind("web")
    cluster.allocate(name, "web")
    seen: list[bool] = []
    collection = cluster.core.store.collection(("resource.k8s.io", CLAIMS))
    collection.listeners.append(lambda change: seen.append("allocation" in (change.current or change.previous).object["status"]))
    cluster.delete("pods", "web")
    await settled()
    assert cluster.names() == []
    assert seen[-1] is False


async def test_a_generated_claim_of_a_pod_that_has_finished_goes_before_the_pod() -> None:
    cluster = Claims()
    cluster.template()
    cluster.pod(template="gpus", node="node-a")
    await settled()
    cluster.allocate(cluster.claim_of(), "web")
    cluster.finish("web")
    await settled()
    assert cluster.names() == []
    assert cluster.show_pod()["status"]["phase"] == "Succeeded"


async def test_a_namesake_of_a_pod_does_not_hold_its_claim() -> None:
    cluster = Claims(controller=False)
    cluster.claim("shared")
    cluster.pod(claim="shared", node="node-a")
    cluster.allocate("shared", "web")
    cluster.delete("pods", "web")
    cluster.pod(claim="shared")
    cluster.start()
    await settled()
    assert cluster.state("shared") == FREE


async def test_a_claim_that_was_never_used_stays_allocated() -> None:
    cluster = Claims()
    cluster.claim("shared")
    cluster.allocate("shared")
    await settled()
    assert cluster.state("shared") == (True, [], True), "whoever allocated it may want it later"


async def test_an_unused_allocated_claim_can_be_deleted() -> None:
    cluster = Claims()
    cluster.claim("shared")
    cluster.allocate("shared")
    cluster.delete(CLAIMS, "shared")
    await settled()
    assert cluster.names() == []


async def test_a_claim_in_use_is_deleted_once_it_is_free() -> None:
    cluster = Claims()
    cluster.claim("shared")
    cluster.pod(claim="shared", node="node-a")
    cluster.allocate("shared", "web")
    cluster.delete(CLAIMS, "shared")
    await settled()
    assert cluster.state("shared") == (True, ["web"], True)
    cluster.finish("web")
    await settled()
    assert cluster.names() == []


async def test_what_the_controller_does_not_know_keeps_its_claim() -> None:
    cluster = Claims()
    cluster.claim("shared")
    cluster.allocate("shared")
    held = {"apiGroup": "example.com", "resource": "boxes", "name": "b", "uid": "1"}
    gone = {"resource": "pods", "name": "gone", "uid": "2"}
    cluster.edit(CLAIMS, "shared", lambda content: content["status"].update(reservedFor=[held, gone]))
    await settled()
    assert cluster.state("shared")[1] == ["b", "gone"]


async def test_a_pod_that_came_to_its_node_past_the_scheduler_gets_its_allocated_claim() -> None:
    cluster = Claims()
    cluster.claim("shared")
    cluster.pod("first", claim="shared", node="node-a")
    cluster.allocate("shared", "first")
    cluster.pod("second", claim="shared", node="node-a")
    await settled()
    assert cluster.state("shared")[1] == ["first", "second"]


async def test_a_claim_for_extended_resources_is_given_back_like_any_other() -> None:
    cluster = Claims()
    uid = cluster.core.create("pods", {"metadata": {"name": "web"}, "spec": pod_with("web", claim="none")["spec"]})["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": uid, "controller": True}
    cluster.core.create(CLAIMS, {"metadata": {"name": "web-extended", "ownerReferences": [owner]}, "spec": claim_spec()})
    cluster.edit("pods", "web", lambda content: content["status"].update(extendedResourceClaimStatus={"resourceClaimName": "web-extended"}))
    cluster.allocate("web-extended", "web")
    await settled()
    assert cluster.state("web-extended") == (True, ["web"], True)
    cluster.bind("web")
    cluster.finish("web")
    await settled()
    assert cluster.names() == []


# --- whenever it starts, in whatever order -----------------------------------------------------------------------------------


async def test_a_controller_that_starts_late_does_what_was_left_undone() -> None:
    cluster = Claims(controller=False)
    cluster.template()
    cluster.claim("shared")
    cluster.pod("new", template="gpus")
    cluster.pod("done", claim="shared", node="node-a")
    cluster.allocate("shared", "done")
    cluster.finish("done")
    cluster.start()
    await settled()
    assert cluster.claim_of("new") in cluster.names()
    assert cluster.state("shared") == FREE


async def test_two_controllers_at_once_do_the_same_as_one() -> None:
    cluster = Claims()
    cluster.start()
    cluster.template()
    for number in range(5):
        cluster.pod(f"p{number}", template="gpus")
    await settled()
    assert len(cluster.names()) == 5
    for number in range(5):
        cluster.delete("pods", f"p{number}")
    await settled()
    assert cluster.names() == []


def _touch(pod: Object) -> None:
    labels = pod["metadata"].setdefault("labels", {})
    labels["touched"] = str(int(labels.get("touched", "0")) + 1)


@pytest.mark.parametrize("seed", range(20))
async def test_after_any_history_each_claim_is_held_by_who_runs_and_by_nobody_else(seed: int) -> None:
    cluster, chance = Claims(), random.Random(seed)
    cluster.template()
    cluster.claim("shared")
    alive: list[str] = []
    for step in range(60):
        act = chance.choice(("pod", "pod", "allocate", "finish", "delete", "restart", "touch", "wait"))
        if act == "pod":
            alive.append(f"p{step}")
            cluster.pod(f"p{step}", **({"template": "gpus"} if chance.random() < 0.7 else {"claim": "shared"}))
        elif act == "allocate" and alive:
            name = chance.choice(alive)
            claim = cluster.claim_of(name) or "shared"
            if claim in cluster.names() and not cluster.state(claim)[0]:
                cluster.bind(name)
                cluster.allocate(claim, name)
        elif act in ("finish", "delete") and alive:
            name = alive.pop(chance.randrange(len(alive)))
            cluster.finish(name) if act == "finish" else cluster.delete("pods", name)
        elif act == "restart":
            cluster.start()
        elif act == "touch" and alive:
            cluster.edit("pods", chance.choice(alive), _touch)
        elif act == "wait":
            await settled()
    await settled()
    own = {cluster.claim_of(name) for name in alive} - {""}
    assert set(cluster.names()) == own | {"shared"}, "one claim for each pod that may run, and those that people made"
    for name in cluster.names():
        is_allocated, users, protected = cluster.state(name)
        assert set(users) <= set(alive)
        assert is_allocated == protected == bool(users)
