"""The rights that are shipped: enough, and none too many."""

from __future__ import annotations

import pytest

from contract.devices import VERSION as DEVICES
from contract.devices import a_claim, device_class, request, resource_slice, shared_path
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright.kube.errors import FORBIDDEN, ApiError
from placewright_lab.controlplane.audit import Record, denied, read_records
from programs import not_on_this_server

from .groups import define_groups, group_of
from .installation import USER, Installation, the_shipped
from .makers import a_pod
from .stage import Stage

Right = tuple[str, str, str]


def given() -> set[Right]:
    """(group, resource, verb) of the shipped roles."""
    rules = [*the_shipped("ClusterRole")["rules"], *the_shipped("Role")["rules"]]
    return {
        (group, resource, verb) for rule in rules for group in rule["apiGroups"] for resource in rule["resources"] for verb in rule["verbs"]
    }


def used(records: list[Record]) -> set[Right]:
    """What the operator asked for."""
    return {(each.object_ref.api_group, each.resource, each.verb) for each in records if each.user == USER and each.resource}


async def run_a_pod_with_a_device(stage: Stage, node: str) -> None:
    """Only this node can serve the pod's claim."""
    name = f"{stage.namespace}-gpus"
    gpus = resource_slice(name, nodeName=node, pool={"name": node})
    trainer = a_pod("trainer", stage.namespace, stage.namespace)
    trainer["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "it"}]
    claims = f"/apis/resource.k8s.io/v1/namespaces/{stage.namespace}/resourceclaims"
    try:
        await stage.client.post(shared_path("deviceclasses"), device_class(name))
        await stage.client.post(shared_path("resourceslices"), gpus)
        await stage.client.post(claims, a_claim("it", request("gpu", name)))
        await stage.client.post(f"/api/v1/namespaces/{stage.namespace}/pods", trainer)
        await stage.until_running([f"{stage.namespace}/trainer"])
    finally:
        for plural in ("deviceclasses", "resourceslices"):
            await stage.delete(shared_path(plural, name))


async def test_a_request_beyond_the_role_is_denied_and_found_in_the_log(installation: Installation) -> None:
    if installation.control_plane is None:
        not_on_this_server("it is that of KUBECONFIG_E2E, whose audit log we do not have")
    log = installation.control_plane.audit_log
    before = log.stat().st_size
    async with ApiClient(load_config(str(installation.operator_kubeconfig))) as client:
        with pytest.raises(ApiError) as refusal:
            await client.get("/api/v1/secrets")
    assert refusal.value.status == FORBIDDEN
    assert [each.resource for each in denied(read_records(log, before), USER)] == ["secrets"]


async def test_no_right_is_there_for_nothing(stage: Stage) -> None:
    if stage.installation.control_plane is None:
        not_on_this_server("it is that of KUBECONFIG_E2E, whose audit log we do not have")
    await stage.node("full")
    # Preemption needs the most rights.
    urgently = await stage.priority_class("urgent", 1000)
    await define_groups(stage.client)
    async with stage.active_operator():
        # A profile that selects pods has its author advised where no admission reads selectors.
        nothing = {"podSelector": {"matchLabels": {"none": "none"}}}
        await stage.until_active(await stage.edit_profile(weights={"NodeResourcesFit": 2}, pods=nothing))
        (victim,) = await stage.pods(1, cpu="4")
        await stage.until_running([victim])
        (urgent,) = await stage.pods(1, cpu="4", priority_class=urgently)
        await stage.until_running([urgent])
        assert victim not in stage.views.pods
        empty = await stage.node("empty")
        await stage.until_running(await group_of(stage, "train", 2, cpu="1"))
        if stage.control_plane.assets.minor >= DEVICES:
            await run_a_pod_with_a_device(stage, empty)
    rarely = {
        ("", "persistentvolumes", "patch"),  # claims that wait for their pod's node
        ("", "persistentvolumeclaims", "patch"),
        ("", "pods", "get"),  # after a Binding without a clear answer
        ("apps", "controllerrevisions", "patch"),  # when a generation that had to wait for a schedulerName takes effect
        ("authentication.k8s.io", "tokenreviews", "create"),  # when somebody asks for metrics or debug pages
        ("authorization.k8s.io", "subjectaccessreviews", "create"),
        ("events.k8s.io", "events", "patch"),  # when the same is said again, half a minute later
    }
    rarely |= {  # other ways to declare groups, of which this server has none
        *((group, "podgroups", verb) for group in ("scheduling.k8s.io", "scheduling.volcano.sh") for verb in ("list", "watch")),
        *(("scheduling.k8s.io", kind, verb) for kind in ("workloads", "compositepodgroups") for verb in ("list", "watch")),
        *(("scheduling.k8s.io", f"{kind}/status", "patch") for kind in ("podgroups", "compositepodgroups")),
    }
    if stage.control_plane.assets.minor < DEVICES:
        rarely |= {right for right in given() if right[0] == "resource.k8s.io"}
    else:
        rarely |= {
            ("resource.k8s.io", "resourceclaims", "get"),  # when somebody else was faster
            ("resource.k8s.io", "resourceclaims", "create"),  # for extended resources that devices serve
            ("resource.k8s.io", "resourceclaims", "delete"),
            ("resource.k8s.io", "resourceclaims/binding", "patch"),  # asked for beside the write of a status: no request of its own
            # where a patch would change the parameters of drivers
            *(("resource.k8s.io", f"resourceclaims{part}", "update") for part in ("", "/status", "/binding")),
            *(("resource.k8s.io", "devicetaintrules", verb) for verb in ("list", "watch")),  # which this server has not switched on
        }
    if stage.control_plane.assets.minor < 21:  # serves no version of them that can be read
        rarely |= {("storage.k8s.io", "csistoragecapacities", verb) for verb in ("list", "watch")}
    by_number = {("apps", "controllerrevisions", "delete")}  # from the 21st generation on, which earlier tests may have come to
    assert given() - used(stage.records()) - by_number == rarely
