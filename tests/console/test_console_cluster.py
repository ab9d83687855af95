"""The kubeconfig's cluster without an operator's console: what the API server shows, with the person's own rights, and why."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from handlers.stage import Stage, new_stage
from placewright.api.bad_input import InputError

from .livestage import live_console


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with new_stage() as made:
        yield made


@pytest.fixture(autouse=True)
def without_kubectl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")


async def test_without_an_operator_the_cluster_is_shown_live_with_the_reason(stage: Stage) -> None:
    stage.profile().node("a", cpu="2", zone="z1").node("b", zone="z2").pod("big", cpu="8").pod("lost", scheduler="placewrigth")
    async with live_console(stage) as (browser, source):
        await browser.until(lambda: "big" in browser.reasons and browser.state["about"]["notEvaluated"] == 0)
        assert browser.state["nodes"].keys() == {"a", "b"}
        assert browser.reasons["big"] == ("unschedulable", [["NodeResourcesFit", "Insufficient cpu", 2, 2]])
        assert "did you mean 'placewright'" in browser.reasons["lost"][1][0][1]
        assert "evaluated here: there is no kubectl to forward its port" in browser.notes
        assert "from the API server's objects" in browser.notes
        assert browser.state["about"]["kind"] == "cluster"
        assert browser.state["about"]["own"] == source._own == "default", "the namespace that kubectl would use"
        assert browser.state["about"]["profiles"] == ["placewright"]
        stage.node("c", cpu="16")
        await browser.until(lambda: browser.place("big") == "active")
        status, page = await browser.ask("pod?pod=default/big")
        assert (status, page["verdict"]) == (200, "now: 1 of 3 nodes can hold it")
        status, page = await browser.ask("node?name=c")
        assert (status, page["name"], page["pods"]) == (200, "c", [])
        assert await browser.ask("pod?pod=default/nobody") == (404, "no such pod: it may have gone since, or you may not see it\n")


async def test_pods_that_get_their_node_are_placements_and_those_that_go_are_gone(stage: Stage) -> None:
    stage.profile().nodes(1).pod("web").pod("other")
    async with live_console(stage) as (browser, _):
        await browser.until(lambda: len(browser.reasons) == 1)
        bind(stage, "web", "node-0")
        await browser.until(lambda: browser.state["decisions"])
        (placed,) = browser.state["decisions"].values()
        assert placed[:4] == ["default", "web", "node-0", "placewright"]
        await browser.until(lambda: browser.state["loads"]["node-0"][0][0] == 100)
        stage.delete_pod("web")
        stage.delete_pod("other")
        await browser.until(lambda: browser.state["loads"]["node-0"][0][0] == 0 and not browser.state["queue"])


async def test_a_profile_that_is_changed_made_or_deleted_is_followed(stage: Stage) -> None:
    stage.profile().nodes(1).pod("web").pod("late", scheduler="late")
    async with live_console(stage) as (browser, _):
        await browser.until(lambda: browser.place("web") == "active")
        stage.edit_profile(pods={"allowedNamespaces": ["ml"]})
        await browser.until(lambda: browser.place("web") == "gated")
        stage.profile("late", schedulerName="late")
        await browser.until(lambda: browser.place("late") == "active")
        assert browser.state["about"]["profiles"] == ["late", "placewright"]
        stage.delete_profile("late")
        await browser.until(lambda: browser.place("late") == "")
        stage.delete_profile()
        await browser.until(lambda: "There is no SchedulingProfile" in browser.notes)
        assert browser.state["about"]["profiles"] == ["default-scheduler"]


async def test_an_object_that_cannot_be_used_is_noted(stage: Stage) -> None:
    stage.profile().nodes(1)
    async with live_console(stage) as (browser, _):
        await browser.until(lambda: browser.state.get("nodes"))
        stage.edit_profile()
        stage.write_profile_unchecked(weights={"NoSuchPlugin": 1})
        await browser.until(lambda: "SchedulingProfile default cannot be used" in browser.notes)
        stage.write_profile_unchecked(weights={})
        await browser.until(lambda: "cannot be used" not in browser.notes)


async def test_kinds_that_may_not_be_listed_are_named_and_the_rest_is_shown(stage: Stage, tmp_path: Path) -> None:
    stage.profile().nodes(1).pod("web")
    kubeconfig = reader(stage, tmp_path, "nodes", "pods", "services")
    async with live_console(stage, str(kubeconfig)) as (browser, _):
        await browser.until(lambda: "web" in browser.reasons)
        assert "schedulingprofiles.placewright.dev may not be listed (403)" in browser.notes
        assert "persistentvolumes may not be listed (403)" in browser.notes
        assert "services" not in browser.notes


async def test_without_the_right_to_list_pods_the_page_says_so(stage: Stage, tmp_path: Path) -> None:
    stage.profile().nodes(1).pod("web")
    async with live_console(stage, str(reader(stage, tmp_path, "nodes"))) as (browser, source):
        await browser.until(lambda: "pods may not be listed (403)" in browser.notes)
        assert browser.state["nodes"] == {}
        with pytest.raises(InputError, match="pods may not be listed"):
            await source.current_world()


async def test_an_api_server_that_goes_away_and_comes_back_is_told_and_caught_up_with(stage: Stage) -> None:
    stage.profile().nodes(1)
    async with live_console(stage) as (browser, _):
        await browser.until(lambda: browser.state.get("nodes"))
        stage.sandbox.faults.refuse_connections(1.0)
        await browser.until(lambda: "has not answered since" in browser.notes)
        assert browser.state["nodes"].keys() == {"node-0"}, "it stays to be looked at"
        stage.node("new")
        await browser.until(lambda: "new" in browser.state["nodes"])
        await browser.until(lambda: "has not answered" not in browser.notes)


async def test_an_api_server_that_has_forgotten_the_version_is_listed_again(stage: Stage) -> None:
    stage.profile().nodes(2).pod("web").pod("gone")
    async with live_console(stage) as (browser, source):
        await browser.until(lambda: len(browser.state.get("nodes", ())) == 2)
        faults, reflectors = stage.sandbox.faults, source._watched._reflectors
        assert reflectors is not None
        faults.refuse_connections(0.3)
        stage.delete_pod("gone")
        stage.node("new")
        faults.compact()
        await browser.until(lambda: "new" in browser.state["nodes"] and sum(row["count"] for row in browser.state["queue"].values()) == 1)
        assert sum(each.counts.expired for each in reflectors.members) > 0


async def test_the_world_for_the_lab_s_features_is_the_live_one(stage: Stage) -> None:
    stage.profile().nodes(2).pod("web")
    async with live_console(stage, allow_changes=True) as (_, source):
        world = await source.current_world()
        assert (world.cluster.node_count, [pod.name for pod in world.pending.values()]) == (2, ["web"])
        assert await source.current_world() is world
        assert source.writer is not None
    async with live_console(stage) as (_, source):
        assert source.writer is None


def reader(stage: Stage, folder: Path, *plurals: str) -> Path:
    """Make the kubeconfig of a user who may read these kinds of the core group alone."""
    create, rbac = stage.sandbox.writes.create, "rbac.authorization.k8s.io"
    create(stage.sandbox.resource("", "v1", "serviceaccounts"), "default", {"metadata": {"name": "guest"}})
    rules = [{"apiGroups": [""], "resources": list(plurals), "verbs": ["get", "list", "watch"]}]
    create(stage.sandbox.resource(rbac, "v1", "clusterroles"), "", {"metadata": {"name": "guest"}, "rules": rules})
    role = {"apiGroup": rbac, "kind": "ClusterRole", "name": "guest"}
    subjects = [{"kind": "ServiceAccount", "name": "guest", "namespace": "default"}]
    binding = {"metadata": {"name": "guest"}, "roleRef": role, "subjects": subjects}
    create(stage.sandbox.resource(rbac, "v1", "clusterrolebindings"), "", binding)
    path = folder / "guest.config"
    path.write_bytes(stage.account_kubeconfig("default", "guest"))
    return path


def bind(stage: Stage, pod: str, node: str) -> None:
    """As a scheduler would."""
    stage.sandbox.writes.modify(stage.sandbox.resource("", "v1", "pods"), "default", pod, lambda found: found["spec"].update(nodeName=node))
