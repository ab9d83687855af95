"""Simulated kubelets: pods start, end and complete, each at its time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kubesandbox.controllers.kubelet import (
    RUN_SECONDS,
    START_SECONDS,
    TURNS_AWAY,
    Kubelets,
    KubeletTimes,
    simulated_node,
)
from kubesandbox.storage.writes import DeleteOptions
from lab.sandbox.claims import Claims, pod_with, settled
from lab.sandbox.makers import Core, Object, a_pod

AT_ONCE = KubeletTimes(start=0.0, end=0.0)
NEVER = KubeletTimes(start=3600.0, end=3600.0)


def kubelets(core: Core, times: KubeletTimes = AT_ONCE) -> None:
    Kubelets(core.writes, times)
    core.create("nodes", simulated_node(0, "2023-11-14T22:13:20Z"))


async def until(core: Core, wanted: Callable[[Object | None], bool], name: str = "web") -> Object | None:
    """Return the pod once it is as wanted. Each change of pods is a new look."""
    changed = asyncio.Event()
    core.store.collection(("", "pods")).listeners.append(lambda _change: changed.set())
    async with asyncio.timeout(10):
        while not wanted(found := core.get("pods", name)):
            changed.clear()
            await changed.wait()
    return found


def noted(item: Object, key: str, value: str) -> Object:
    item["metadata"]["annotations"] = {key: value}
    return item


def phase(wanted: str) -> Callable[[Object | None], bool]:
    return lambda found: found is not None and found["status"]["phase"] == wanted


async def test_a_bound_pod_runs_with_an_address_and_ready_containers() -> None:
    core = Core()
    kubelets(core)
    core.create("pods", a_pod("web", node="node-0000"))
    found = await until(core, phase("Running"))
    assert found is not None
    status = found["status"]
    assert status["podIP"] == status["podIPs"][0]["ip"]
    assert status["startTime"]
    assert [each["ready"] for each in status["containerStatuses"]] == [True]
    assert {each["type"] for each in status["conditions"]} >= {"Ready", "ContainersReady", "Initialized"}


async def test_pods_get_different_addresses() -> None:
    core = Core()
    kubelets(core)
    for name in "ab":
        core.create("pods", a_pod(name, node="node-0000"))
    found = [await until(core, phase("Running"), name) for name in "ab"]
    assert len({each["status"]["podIP"] for each in found if each}) == 2


async def test_a_pod_or_a_node_may_start_later_than_others() -> None:
    core = Core()
    kubelets(core)
    core.create("nodes", noted(simulated_node(1, "2023-11-14T22:13:20Z"), START_SECONDS, "3600"))
    core.create("pods", a_pod("quick", node="node-0000"))
    core.create("pods", a_pod("node-is-slow", node="node-0001"))
    core.create("pods", noted(a_pod("slow", node="node-0000"), START_SECONDS, "3600"))
    core.create("pods", noted(a_pod("odd", node="node-0000"), START_SECONDS, "soon"))
    await until(core, phase("Running"), "quick")
    await until(core, phase("Running"), "odd")
    assert [phase("Pending")(core.get("pods", name)) for name in ("slow", "node-is-slow")] == [True, True]


async def test_a_node_that_turns_pods_away_fails_them_with_its_reason_until_the_annotation_goes() -> None:
    core = Core()
    kubelets(core)
    core.create("nodes", noted(simulated_node(1, "2023-11-14T22:13:20Z"), TURNS_AWAY, "OutOfcpu"))
    core.create("pods", a_pod("web", node="node-0001"))
    found = await until(core, phase("Failed"))
    core.writes.modify(core.type("nodes"), "", "node-0001", lambda node: node["metadata"].pop("annotations"))
    core.create("pods", a_pod("next", node="node-0001"))
    await until(core, phase("Running"), "next")
    assert found is not None
    assert found["status"]["reason"] == "OutOfcpu"
    assert "containerStatuses" not in found["status"]


async def test_an_unbound_pod_is_nobodys() -> None:
    core = Core()
    kubelets(core)
    core.create("pods", a_pod("waiting"))
    core.create("pods", a_pod("web", node="node-0000"))
    await until(core, phase("Running"))
    found = core.get("pods", "waiting")
    assert found is not None
    assert found["status"]["phase"] == "Pending"


async def test_a_pod_on_a_missing_node_waits_for_the_node() -> None:
    core = Core()
    kubelets(core)
    core.create("pods", a_pod("web", node="node-0001"))
    core.create("pods", a_pod("other", node="node-0000"))
    await until(core, phase("Running"), "other")
    found = core.get("pods", "web")
    assert found is not None
    assert found["status"]["phase"] == "Pending"
    core.create("nodes", simulated_node(1, "2023-11-14T22:13:20Z"))
    await until(core, phase("Running"))


async def test_a_gracefully_deleted_pod_ends_once_its_kubelet_is_done() -> None:
    core = Core()
    kubelets(core)
    core.create("pods", a_pod("web", node="node-0000"))
    await until(core, phase("Running"))
    assert not core.writes.delete(core.type("pods"), "default", "web")[1]
    await until(core, lambda found: found is None)


async def test_a_deleted_pod_with_a_finalizer_waits_for_it_after_its_kubelet() -> None:
    core = Core()
    kubelets(core)
    held = a_pod("web", node="node-0000")
    held["metadata"]["finalizers"] = ["example.test/hold"]
    core.create("pods", held)
    core.writes.delete(core.type("pods"), "default", "web")
    await until(core, lambda found: found is not None and found["metadata"].get("deletionGracePeriodSeconds") == 0)
    core.writes.modify(core.type("pods"), "default", "web", lambda found: found["metadata"].pop("finalizers"))
    assert core.get("pods", "web") is None


async def test_a_namesake_is_not_started_in_place_of_a_pod_that_is_gone() -> None:
    core = Core()
    kubelets(core)
    core.create("pods", a_pod("web", node="node-0000"))
    core.writes.delete(core.type("pods"), "default", "web", DeleteOptions(grace=0))
    core.create("pods", a_pod("web"))
    core.create("pods", a_pod("later", node="node-0000"))
    await until(core, phase("Running"), "later")
    found = core.get("pods", "web")
    assert found is not None
    assert found["status"]["phase"] == "Pending"


async def test_a_pod_with_a_running_time_completes() -> None:
    core = Core()
    kubelets(core)
    job = a_pod("web", node="node-0000")
    job["metadata"]["annotations"] = {RUN_SECONDS: "0"}
    core.create("pods", job)
    found = await until(core, phase("Succeeded"))
    assert found is not None
    assert [each["ready"] for each in found["status"]["containerStatuses"]] == [False]


async def test_a_running_time_that_is_none_is_passed_over() -> None:
    core = Core()
    kubelets(core)
    job = a_pod("web", node="node-0000")
    job["metadata"]["annotations"] = {RUN_SECONDS: "soon"}
    core.create("pods", job)
    found = await until(core, phase("Running"))
    assert found is not None
    assert found["status"]["phase"] == "Running"


async def test_nothing_starts_before_its_time() -> None:
    core = Core()
    kubelets(core, NEVER)
    core.create("pods", a_pod("web", node="node-0000"))
    for _ in range(20):
        await asyncio.sleep(0)
    found = core.get("pods", "web")
    assert found is not None
    assert found["status"]["phase"] == "Pending"


# --- pods with claims to devices ---------------------------------------------------------------------------------------------


def phase_of(claims: Claims, name: str = "web") -> str:
    return str(claims.show_pod(name)["status"]["phase"])


async def started(claims: Claims) -> None:
    """Return when a second pod without claims runs, because then earlier work has been done."""
    core, name = claims.core, f"probe-{claims.core.store.version}"
    core.create("pods", a_pod(name, node="node-0000"))
    await until(core, phase("Running"), name)


async def test_a_pod_waits_for_its_claim_to_be_allocated_and_reserved_for_it() -> None:
    claims = Claims(controller=False)
    claims.claim("shared")
    kubelets(claims.core)
    claims.pod(claim="shared", node="node-0000")
    await started(claims)
    assert phase_of(claims) == "Pending"
    claims.allocate("shared")
    await started(claims)
    assert phase_of(claims) == "Pending"
    claims.allocate("shared", "web")
    assert await until(claims.core, phase("Running"))
    uid, claim = claims.show_pod()["metadata"]["uid"], claims.show("shared")["metadata"]["uid"]
    before = "Failed to prepare dynamic resources: "
    assert {(reason, message) for reason, message, _ in claims.events()} == {
        ("FailedPrepareDynamicResources", f"{before}ResourceClaim shared is not allocated"),
        ("FailedPrepareDynamicResources", f"{before}pod web ({uid}) is not allowed to use ResourceClaim shared ({claim})"),
    }


async def test_a_pod_waits_for_a_claim_that_does_not_exist_yet() -> None:
    claims = Claims(controller=False)
    kubelets(claims.core)
    claims.pod(claim="later", node="node-0000")
    await started(claims)
    assert [message for _, message, _ in claims.events()] == [
        'Failed to prepare dynamic resources: fetch ResourceClaim later: resourceclaims.resource.k8s.io "later" not found'
    ]
    claims.claim("later")
    claims.allocate("later", "web")
    assert await until(claims.core, phase("Running"))


async def test_a_pod_waits_for_all_of_its_claims_and_runs_once() -> None:
    claims = Claims(controller=False)
    body = pod_with("web", claim="one", node="node-0000")
    body["spec"]["resourceClaims"].append({"name": "more", "resourceClaimName": "two"})
    for name in ("one", "two"):
        claims.claim(name)
    kubelets(claims.core)
    claims.core.create("pods", body)
    for name in ("two", "one"):
        await started(claims)
        assert phase_of(claims) == "Pending"
        claims.allocate(name, "web")
    found = await until(claims.core, phase("Running"))
    assert found is not None
    address = found["status"]["podIP"]
    claims.edit("resourceclaims", "one", lambda content: content["metadata"].update(labels={"touched": "yes"}))
    await started(claims)
    assert claims.show_pod()["status"]["podIP"] == address


async def test_a_claim_made_for_another_pod_helps_nobody() -> None:
    claims = Claims(controller=False)
    claims.claim("taken")
    kubelets(claims.core)
    claims.pod(template="gpus", node="node-0000")
    made = [{"name": "gpu", "resourceClaimName": "taken"}]
    claims.edit("pods", "web", lambda content: content["status"].update(resourceClaimStatuses=made))
    claims.allocate("taken", "web")
    await started(claims)
    assert phase_of(claims) == "Pending"
    assert claims.events()[-1][1].endswith("ResourceClaim default/taken was not created for pod default/web (pod is not owner)")


async def test_a_pod_with_a_template_runs_from_beginning_to_end_of_its_claim() -> None:
    claims = Claims()
    claims.template()
    kubelets(claims.core)
    claims.pod(template="gpus", node="node-0000")
    await settled()
    claims.allocate(claims.claim_of(), "web")
    assert await until(claims.core, phase("Running"))
    claims.finish("web")
    await settled()
    assert claims.names() == []


async def test_a_pod_that_went_while_it_waited_is_not_started() -> None:
    claims = Claims(controller=False)
    claims.claim("shared")
    kubelets(claims.core)
    claims.pod(claim="shared", node="node-0000")
    await started(claims)
    claims.delete("pods", "web")
    claims.pod("web", claim="shared")
    claims.allocate("shared", "web")
    await started(claims)
    assert phase_of(claims) == "Pending", "its namesake has no node"
