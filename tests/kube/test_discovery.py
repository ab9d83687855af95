from __future__ import annotations

import pytest
from fake_api import FakeApi, answer, hang_up, refuse

from kubesandbox.server import Sandbox
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright.kube.discovery import ATTEMPTS, Collection, ServedResources, Wanted, discover
from placewright.kube.errors import ApiError, RetryBackoff, Unreachable


def serve(api: FakeApi, served: dict[str, list[str]], down: dict[str, int] | None = None) -> None:
    """Answer discovery: `policy/v1` to the names of its resources; `v1` is the core group. `down`: 503 that often before it answers."""
    groups: dict[str, list[str]] = {}
    for group_version, names in served.items():
        group, _, version = group_version.rpartition("/")
        root = f"/apis/{group}/{version}" if group else f"/api/{version}"
        api.on(f"GET {root}", *[refuse(503, "ServiceUnavailable")] * (down or {}).get(group_version, 0))
        api.on(f"GET {root}", answer({"kind": "APIResourceList", "resources": [{"name": name} for name in names]}))
        if group:
            groups.setdefault(group, []).append(version)
    listed = [{"name": group, "versions": [{"version": version} for version in versions]} for group, versions in groups.items()]
    api.on("GET /apis", answer({"kind": "APIGroupList", "groups": listed}))


KUBERNETES_1_20 = {
    "v1": ["pods", "pods/binding", "nodes", "events"],
    "policy/v1beta1": ["poddisruptionbudgets"],
    "storage.k8s.io/v1": ["storageclasses", "csinodes"],
    "storage.k8s.io/v1beta1": ["csistoragecapacities", "csinodes"],
    "metrics.example/v1": ["pods"],
}


GROUPS = ("policy", "storage.k8s.io", "resource.k8s.io")
AT_ONCE = RetryBackoff(initial=0.0)
BUDGETS = Wanted("policy", "poddisruptionbudgets", ("v1", "v1beta1"), "DefaultPreemption")


async def discovered(served: dict[str, list[str]]) -> ServedResources:
    async with FakeApi() as api, api.client() as client:
        serve(api, served)
        return await discover(client, GROUPS)


async def test_an_old_server_gives_its_beta_versions() -> None:
    served = await discovered(KUBERNETES_1_20)
    assert served.served[("", "pods")] == ["v1"]
    assert served.find(BUDGETS) == Collection("/apis/policy/v1beta1/poddisruptionbudgets", "v1beta1")
    assert served.served[("storage.k8s.io", "csinodes")] == ["v1", "v1beta1"]
    assert ("resource.k8s.io", "resourceclaims") not in served.served


async def test_groups_nobody_asks_for_and_subresources_are_left_out() -> None:
    served = await discovered(KUBERNETES_1_20)
    assert ("metrics.example", "pods") not in served.served
    assert ("", "pods/binding") not in served.served


@pytest.mark.parametrize(
    ("versions", "found"),
    [
        (["v1beta1"], Collection("/apis/policy/v1beta1/poddisruptionbudgets", "v1beta1")),
        (["v1beta1", "v1"], Collection("/apis/policy/v1/poddisruptionbudgets", "v1")),
        (["v2"], None),
        ([], None),
    ],
)
def test_the_most_wanted_version_that_is_served_is_found(versions: list[str], found: Collection | None) -> None:
    assert ServedResources({("policy", "poddisruptionbudgets"): versions}).find(BUDGETS) == found


async def test_a_group_whose_apiservice_is_down_is_silent_and_the_others_are_found() -> None:
    async with FakeApi() as api, api.client() as client:
        serve(api, KUBERNETES_1_20, {"policy/v1beta1": ATTEMPTS})
        served = await discover(client, GROUPS, backoff=AT_ONCE)
    assert served.silent == ("policy/v1beta1",)
    assert served.find(BUDGETS) is None and ("storage.k8s.io", "csinodes") in served.served


@pytest.mark.parametrize("nonsense", ["<html>", [], {"resources": 7}])
async def test_a_group_that_answers_nonsense_is_silent_too(nonsense: object) -> None:
    async with FakeApi() as api, api.client() as client:
        api.on("GET /apis", answer({"groups": [{"name": "resource.k8s.io", "versions": [{"version": "v1"}]}]}))
        api.on("GET /apis/resource.k8s.io/v1", answer(nonsense))
        api.on("GET /api/v1", answer({"resources": [{"name": "pods"}]}))
        served = await discover(client, GROUPS, backoff=AT_ONCE)
    assert served.silent == ("resource.k8s.io/v1",) and ("", "pods") in served.served


async def test_a_group_that_answers_when_it_is_asked_again_is_not_silent() -> None:
    async with FakeApi() as api, api.client() as client:
        serve(api, KUBERNETES_1_20, {"policy/v1beta1": ATTEMPTS - 1})
        served = await discover(client, GROUPS, backoff=AT_ONCE)
    assert not served.silent and served.find(BUDGETS) is not None


async def test_an_aggregated_group_that_nobody_wants_is_not_asked() -> None:
    async with FakeApi() as api, api.client() as client:
        serve(api, KUBERNETES_1_20, {"metrics.example/v1": ATTEMPTS})
        assert not (await discover(client, GROUPS, backoff=AT_ONCE)).silent
        assert not api.asked("GET", "metrics.example/v1")


async def test_a_group_we_may_not_see_is_one_that_is_not_served() -> None:
    async with FakeApi() as api, api.client() as client:
        api.on("GET /apis", answer({"groups": [{"name": "policy", "versions": [{"version": "v1"}]}]}))
        api.on("GET /apis/policy/v1", refuse(403, "Forbidden"))
        api.on("GET /api/v1", answer({"resources": [{"name": "pods"}]}))
        served = await discover(client, GROUPS)
    assert served.find(BUDGETS) is None and served.served == {("", "pods"): ["v1"]}


async def test_a_server_that_does_not_answer_is_an_error_and_not_an_empty_server() -> None:
    async with FakeApi() as api, api.client() as client:
        api.on("GET /apis", hang_up(), answer({"groups": []}))
        api.on("GET /api/v1", refuse(503, "ServiceUnavailable"))
        with pytest.raises((Unreachable, ApiError)):
            await discover(client, GROUPS)
        with pytest.raises(ApiError, match="503"):
            await discover(client, GROUPS)


async def test_the_sandbox_serves_what_the_scheduler_reads() -> None:
    async with Sandbox() as sandbox, ApiClient(load_config(str(sandbox.kubeconfig))) as client:
        served = await discover(client, GROUPS)
    for group, resource in [("", "pods"), ("", "nodes"), ("policy", "poddisruptionbudgets")]:
        assert (group, resource) in served.served
