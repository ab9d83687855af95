"""Published Volcano jobs, and the examples of this repository, as groups in the sandbox: all or none of each, with an operator at work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from inputs.manifests import MANIFESTS, Manifests
from placewright.api.podgroups import GROUP_LABEL
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright_lab.demo.feed import Feed
from placewright_lab.readers.manifests import Reading, SourceText, read_manifests

from .stage import WITH_GROUPS, Object, Stage, new_stage, operator

EXAMPLES = Path(__file__).parents[2] / "manifests" / "examples" / "gangs"
#: The objects that other projects' controllers write for kube-scheduler.
WORKLOADS = EXAMPLES.parent / "workloads"


def read(files: Mapping[str, str]) -> Reading:
    reading = read_manifests([SourceText(path, text) for path, text in files.items()])
    assert reading.problems == []
    return reading


async def apply(stage: Stage, objects: Sequence[Object], pods: Sequence[Object]) -> None:
    refused: list[str] = []
    async with ApiClient(load_config(str(stage.sandbox.kubeconfig))) as client:
        feed = Feed(client)
        refused += await feed.create_objects(objects)
        await feed.create_pods(pods, lambda _: None, lambda key, why: refused.append(f"{key}: {why}"))
    assert refused == []


def needed(reading: Reading) -> dict[str, int]:
    groups = [each for each in reading.objects if each["apiVersion"] == "scheduling.x-k8s.io/v1alpha1"]
    return {each["metadata"]["name"]: each["spec"]["minMember"] for each in groups}


def standing(stage: Stage) -> Counter[str]:
    """By group, how many members have a node, from the store alone."""
    pods = [stored.object for stored in stage.sandbox.store.listed(stage.pod_key)]
    placed = [pod for pod in pods if pod["spec"].get("nodeName")]
    return Counter(name for pod in placed if (name := (pod["metadata"].get("labels") or {}).get(GROUP_LABEL)))


def phases(stage: Stage) -> dict[str, str]:
    groups = stage.sandbox.store.listed(stage.sandbox.resource("scheduling.x-k8s.io", "v1alpha1", "podgroups").key)
    return {stored.object["metadata"]["name"]: (stored.object.get("status") or {}).get("phase", "") for stored in groups}


@pytest.mark.parametrize("cpu", ["2", "4", "40"])
@pytest.mark.parametrize("folder", MANIFESTS)
async def test_volcano_jobs_are_placed_all_or_none_and_those_that_are_run(folder: Callable[[], Manifests], cpu: str) -> None:
    """Some jobs, of which more and more fit."""
    published = folder()
    reading = read(published.of(published.pod_groups))
    minimum = needed(reading)
    assert len(minimum) == published.figures.pod_groups
    async with new_stage(WITH_GROUPS) as stage:
        stage.profile(schedulerName="volcano").node("one", cpu=cpu).node("two", cpu=cpu)
        async with operator(stage) as running:
            await apply(stage, reading.objects, reading.pods)

            def at_rest() -> bool:
                sizes = running.engine.deciding.queue.sizes()
                pods = [stored.object for stored in stage.sandbox.store.listed(stage.pod_key)]
                told = all(pod["spec"].get("nodeName") or (pod.get("status") or {}).get("conditions") for pod in pods)
                idle = not sizes.active and not sizes.backoff and not sizes.in_flight
                return idle and told and running.agrees_with(stage)

            await stage.until(at_rest)
            placed = standing(stage)
            assert all(count >= minimum[name] for name, count in placed.items())
            await stage.until(lambda: all(phases(stage)[name] == "Running" for name in placed))
            await stage.until(lambda: all(phases(stage)[name] == "Pending" for name in minimum.keys() - placed.keys()))
    assert placed and stage.bound_twice() == []
    assert (sum(placed.values()) == published.figures.members) == (cpu == "40")


async def test_the_examples_are_placed_as_they_say() -> None:
    # The sandbox serves the PodGroups of 1.36, whose form is the same.
    texts = {
        file.stem: file.read_text().replace("v1alpha3\nkind: PodGroup", "v1alpha2\nkind: PodGroup")
        for file in sorted(EXAMPLES.glob("*.yaml"))
    }
    reading = read(texts)
    assert needed(reading) == {"training": 8, "elastic": 2}
    async with new_stage(WITH_GROUPS) as stage:
        stage.profile()
        for rack, size in (("small", "4"), ("large", "16")):
            for number in range(2):
                rack_node(stage, f"{rack}-{number}", rack, size)
        async with operator(stage):
            await apply(stage, reading.objects, reading.pods)
            trained = [pod["metadata"]["name"] for pod in reading.pods if pod["metadata"]["name"].startswith("training")]
            others = ["native-0", "native-1", *(f"{of}-{number}" for of in ("prefill", "decode") for number in range(2))]
            await stage.until(lambda: stage.placed(*trained, *others) and standing(stage)["elastic"] >= 2)
    assert len(trained) == 8
    assert {stage.node_of(name).partition("-")[0] for name in trained} == {"large"}, "the only rack that holds all of them"


def of_controllers(name: str) -> Reading:
    """An example, with groups in the version that the sandbox serves. Their fields are the same."""
    text = (WORKLOADS / f"{name}.yaml").read_text()
    return read({name: text.replace("scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha2")})


#: By example: pods in all, pods that run if a node lacks room for one of them, and the prefix of pods that share a rack.
CONTROLLERS = [("raycluster", 5, 0, "ray-gpu"), ("leaderworkerset", 6, 3, ""), ("jobset", 4, 0, "")]


@pytest.mark.parametrize("enough", [True, False], ids=["room for all", "room for all but one"])
@pytest.mark.parametrize(("name", "pods", "fewer", "together"), CONTROLLERS)
async def test_jobs_of_other_controllers_need_no_settings(name: str, pods: int, fewer: int, together: str, enough: bool) -> None:
    reading = of_controllers(name)
    assert len(reading.pods) == pods
    async with new_stage(WITH_GROUPS) as stage:
        stage.profile()
        for rack, cpu in zip("ab", (pods - 1, pods - 1) if enough else (2, pods - 3), strict=True):
            rack_node(stage, f"{rack}-0", rack, str(cpu))
        async with operator(stage) as running:
            await apply(stage, reading.objects, reading.pods)
            names = [pod["metadata"]["name"] for pod in reading.pods]

            def at_rest() -> bool:
                sizes = running.engine.deciding.queue.sizes()
                told = all(stage.node_of(each) or stage.condition(each) for each in names)
                return told and not (sizes.active + sizes.backoff + sizes.in_flight) and running.agrees_with(stage)

            await stage.until(at_rest)
            placed = [each for each in names if stage.node_of(each)]
    assert len(placed) == (pods if enough else fewer)
    assert len({stage.node_of(each) for each in placed if together and each.startswith(together)}) <= 1


def rack_node(stage: Stage, name: str, rack: str, cpu: str) -> None:
    amounts = {"cpu": cpu, "memory": "32Gi", "pods": "110"}
    metadata = {"name": name, "labels": {"topology.kubernetes.io/rack": rack, "topology.kubernetes.io/zone": "z"}}
    nodes = stage.sandbox.resource("", "v1", "nodes")
    stage.sandbox.writes.create(nodes, "", {"metadata": metadata, "status": {"allocatable": amounts, "capacity": amounts}})
