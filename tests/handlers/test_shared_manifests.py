"""Published manifests, and crowds of pods, are placed as their constraints demand: an independent checker looks at each placement."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
import yaml

from inputs.manifests import APPLICATIONS, MANIFESTS, Manifests
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright_lab.demo.feed import Feed
from placewright_lab.readers.manifests import SourceText, read_manifests

from .crowd import Crowd, cluster
from .placement_checker import Obstacle, World, wrong_placements, wrong_refusals
from .stage import WITH_GROUPS, Running, Stage, new_stage, operator

Object = dict[str, Any]
SEEDS = range(4)
#: Of crowds that are large enough to miss a plugin: in the first of them every plugin is missed, as long as the makers stay as they are.
SMALL, SMALL_SEEDS = 16, (1, 0, 2, 3)
#: By plugins, what is wrong with placements that were made without it.
NOTICED: dict[str, tuple[str, ...]] = {
    "NodeAffinity": (Obstacle.LABELS.name,),
    # A cordoned node is tainted as well: one of the two is enough to keep pods away.
    "TaintToleration, NodeUnschedulable": (Obstacle.TAINTS.name, Obstacle.CORDONED.name),
    "NodeResourcesFit": (Obstacle.RESOURCES.name,),
    "NodePorts": (Obstacle.PORTS.name,),
    "InterPodAffinity": (Obstacle.ANTI_AFFINITY.name, Obstacle.AFFINITY.name),
    "PodTopologySpread": (Obstacle.SPREAD.name,),
    "VolumeBinding": (Obstacle.VOLUME_REACH.name, Obstacle.NO_VOLUME.name, "has no volume"),
    "NodeVolumeLimits": (Obstacle.VOLUME_LIMIT.name,),
    "VolumeRestrictions": (Obstacle.DISK.name, Obstacle.CLAIM_TAKEN.name),
}


def world(stage: Stage) -> World:
    """Everything that the checker looks at, as the API server has it."""

    def listed(plural: str, group: str = "") -> list[Object]:
        return [stored.object for stored in stage.sandbox.store.listed(stage.sandbox.resource(group, "v1", plural).key)]

    def by_name(plural: str, group: str = "") -> dict[str, Object]:
        return {each["metadata"]["name"]: each for each in listed(plural, group)}

    return World(
        nodes=by_name("nodes"),
        pods=listed("pods"),
        claims={(each["metadata"]["namespace"], each["metadata"]["name"]): each for each in listed("persistentvolumeclaims")},
        volumes=by_name("persistentvolumes"),
        classes=by_name("storageclasses", "storage.k8s.io"),
        namespaces=by_name("namespaces"),
        csi_nodes=by_name("csinodes", "storage.k8s.io"),
        bound=[uid for uid, _ in stage.bindings],
    )


async def apply(stage: Stage, objects: Sequence[Object], pods: Sequence[Object]) -> None:
    """Over HTTP, as kubectl would."""
    refused: list[str] = []
    async with ApiClient(load_config(str(stage.sandbox.kubeconfig))) as client:
        feed = Feed(client)
        refused += await feed.create_objects(objects)
        await feed.create_pods(pods, lambda _: None, lambda key, why: refused.append(f"{key}: {why}"))
    assert refused == []


async def at_rest(stage: Stage, running: Running) -> World:
    """Wait until nothing is going to happen any more; the world as it is then."""

    def settled() -> bool:
        sizes = running.engine.deciding.queue.sizes()
        if sizes.active or sizes.backoff or sizes.in_flight:  # asked at every change in the store, so the cheapest first
            return False
        pods = [stored.object for stored in stage.sandbox.store.listed(stage.pod_key)]
        told = all(pod["spec"].get("nodeName") or (pod.get("status") or {}).get("conditions") for pod in pods)
        return told and running.agrees_with(stage)

    await stage.until(settled)
    return world(stage)


async def placed_by(scheduler_names: Sequence[str], objects: Sequence[Object], pods: Sequence[Object], *without: str) -> World:
    """A cluster with something of everything, and what became of these pods on it; `without` names plugins to leave out."""
    plugins = {"multiPoint": {"disabled": [{"name": name} for name in without]}}
    async with new_stage(WITH_GROUPS, volumes=True) as stage:
        for name in scheduler_names:
            stage.profile(name, schedulerName=name, backoff={"initialSeconds": 1, "maxSeconds": 0}, plugins=plugins)
        await apply(stage, cluster(), [])
        async with operator(stage) as running:
            await apply(stage, objects, pods)
            seen = await at_rest(stage, running)
            if not without:
                # The last word on a pod may still be on its way to the API server.
                with contextlib.suppress(AssertionError):
                    await stage.until(lambda: not wrong_refusals(world(stage)))
                seen = world(stage)
            return seen


def objects_and_pods(published: Manifests, application: str) -> tuple[list[Object], list[Object]]:
    """The application's objects and pods. Where two files use a name for two pods, the second is called after its file as well."""
    objects: list[Object] = []
    pods: dict[tuple[str, str], Object] = {}
    nodes = [each for each in cluster() if each["kind"] == "Node"]
    for source in _sources(published, application):
        reading = read_manifests([source], nodes)
        assert reading.problems == []
        objects += reading.objects
        for pod in reading.pods:
            meta = pod["metadata"]
            if (meta["namespace"], meta["name"]) in pods:
                meta["name"] = f"{meta['name']}-{source.name}"
            pods[meta["namespace"], meta["name"]] = pod
    return objects, list(pods.values())


def _sources(published: Manifests, application: str) -> list[SourceText]:
    """The application's files, completed where they are templates."""
    found = []
    for path, text in published.of(application).items():
        complete = reduce(lambda known, each: known.replace(*each), published.placeholders.items(), text)
        found.append(SourceText(Path(path).stem, complete))
    label = published.applications[application].patched
    return [SourceText(application, _kustomized(found, label))] if label else found


def _kustomized(sources: Sequence[SourceText], label: Mapping[str, str]) -> str:
    """A base, patched, and with the label that the kustomization gives to everything."""
    merged: Object = {}
    for source in sources:
        merged = _merged(merged, yaml.safe_load(source.text))
    spec = {"selector": {"matchLabels": label}, "template": {"metadata": {"labels": label}}}
    return yaml.safe_dump(_merged(merged, {"spec": spec}))


def _merged(base: Object, patch: Object) -> Object:
    both = {key: _merged(base[key], patch[key]) for key in base.keys() & patch.keys() if isinstance(base[key], dict)}
    return {**base, **patch, **both}


def schedulers(pods: Sequence[Object]) -> list[str]:
    return sorted({pod["spec"].get("schedulerName") or "default-scheduler" for pod in pods})


# --- the manifests --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", MANIFESTS)
def test_no_manifest_is_left_out_here(folder: Callable[[], Manifests]) -> None:
    published = folder()
    named = [path for application in published.applications for path in published.of(application)]
    assert sorted(named) == sorted(published.files)


@pytest.mark.parametrize(("folder", "application"), APPLICATIONS)
async def test_a_published_application_is_placed_as_its_constraints_demand(folder: Callable[[], Manifests], application: str) -> None:
    objects, pods = objects_and_pods(folder(), application)
    seen = await placed_by(schedulers(pods), objects, pods)
    assert wrong_placements(seen) == []
    assert [pod["metadata"]["name"] for pod in seen.pods if not pod["spec"].get("nodeName")] == []
    assert len(seen.pods) == len(pods) > 0


@pytest.mark.parametrize("folder", MANIFESTS)
async def test_all_published_applications_find_room_beside_one_another(folder: Callable[[], Manifests]) -> None:
    published = folder()
    objects: list[Object] = []
    pods: list[Object] = []
    for application in published.applications:
        more = objects_and_pods(published, application)
        objects += more[0]
        pods += more[1]
    seen = await placed_by(schedulers(pods), objects, pods)
    assert wrong_placements(seen) == []
    assert wrong_refusals(seen) == []


# --- what the manifests do not ask for ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def worlds() -> dict[int, World]:
    """What became of the crowds, by seed, as far as anybody has looked."""
    return {}


async def crowd_placed(seed: int, worlds: dict[int, World]) -> World:
    if seed not in worlds:
        crowd = Crowd(seed)
        worlds[seed] = await placed_by(["default-scheduler"], crowd.objects, crowd.pods)
    return worlds[seed]


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_crowd_is_placed_as_its_constraints_demand_and_who_is_left_has_no_node(seed: int, worlds: dict[int, World]) -> None:
    seen = await crowd_placed(seed, worlds)
    assert wrong_placements(seen) == []
    assert wrong_refusals(seen) == []
    with_node = sum(bool(pod["spec"].get("nodeName")) for pod in seen.pods)
    assert 0 < with_node < len(seen.pods) == len(Crowd(seed).pods)


async def test_every_kind_of_obstacle_was_in_somebodys_way(worlds: dict[int, World]) -> None:
    """Else the crowds prove less than they seem to."""
    unmet = set(Obstacle)
    for seed in SEEDS:
        seen = await crowd_placed(seed, worlds)
        for pod in seen.pods if unmet else ():
            unmet -= {obstacle for node in seen.nodes.values() for obstacle in seen.met(pod, node)}
    assert unmet == set()


@pytest.mark.parametrize(("plugins", "noticed"), NOTICED.items())
async def test_a_scheduler_without_one_of_its_plugins_is_found_out(plugins: str, noticed: Sequence[str]) -> None:
    """The checker can see: what would have been kept apart is not, and a line says so."""
    missing = set(noticed)
    for seed in SMALL_SEEDS:
        crowd = Crowd(seed, SMALL)
        wrong = wrong_placements(await placed_by(["default-scheduler"], crowd.objects, crowd.pods, *plugins.split(", ")))
        missing = {what for what in missing if not any(line.endswith(what) for line in wrong)}
        if not missing:
            break
    assert missing == set(), f"without {plugins} nothing was found to be wrong with these"
