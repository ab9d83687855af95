"""The samples node-start-rate.yaml and node-rejections.yaml: slow kubelets, and one that turns pods away, with a running operator."""

from __future__ import annotations

from collections import Counter
from typing import Any

from handlers.stage import Object, Stage, operator
from kubesandbox.controllers.kubelet import START_SECONDS, TURNS_AWAY
from placewright.plugins.noderejections import record_of

from .samples import apply_sample, sample

STARTS, REJECTIONS = "node-start-rate.yaml", "node-rejections.yaml"


def create(stage: Stage, name: str, scheduler: str, **metadata: Any) -> None:
    spec = {"schedulerName": scheduler, "containers": [{"name": "main", "image": "example.test/main"}]}
    stage.sandbox.writes.create(stage.sandbox.resource("", "v1", "pods"), "default", {"metadata": {"name": name, **metadata}, "spec": spec})


def of_job(name: str) -> Object:
    return {"ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": f"uid-{name}", "controller": True}]}


def annotate(stage: Stage, node: str, **annotations: str) -> None:
    nodes = stage.sandbox.resource("", "v1", "nodes")
    stage.sandbox.writes.modify(nodes, "", node, lambda found: found["metadata"].update(annotations=annotations))


def is_ready(stage: Stage, name: str) -> bool:
    return bool(stage.condition(name, "Ready").get("status") == "True")


def becomes_ready(stage: Stage, name: str) -> None:
    ready = {"type": "Ready", "status": "True"}
    pods = stage.sandbox.resource("", "v1", "pods")
    stage.sandbox.writes.modify(pods, "default", name, lambda pod: pod["status"].update(conditions=[*pod["status"]["conditions"], ready]))


def edited_args(file: str, **args: Any) -> list[Object]:
    """The sample's arguments with others beside them."""
    (config,) = sample(file)["spec"]["pluginConfig"]
    return [{**config, "args": {**config["args"], **args}}]


async def test_nodes_start_two_pods_at_a_time_and_the_others_follow_as_these_become_ready(stage: Stage) -> None:
    scheduler = apply_sample(stage, STARTS)
    names = [f"web-{number}" for number in range(12)]
    most: Counter[str] = Counter()

    def starting() -> Counter[str]:
        pods = [one.object for one in stage.sandbox.store.listed(stage.pod_key)]
        bound = [pod for pod in pods if pod["spec"].get("nodeName")]
        unready = [pod for pod in bound if not any(each["type"] == "Ready" for each in (pod.get("status") or {}).get("conditions") or ())]
        return Counter(pod["spec"]["nodeName"] for pod in unready)

    def look() -> bool:
        for node, count in starting().items():
            most[node] = max(most[node], count)
        return all(is_ready(stage, name) for name in names)

    async with operator(stage):
        for name in names:
            create(stage, name, scheduler, annotations={START_SECONDS: "0.6"})
        await stage.until(lambda: sum(starting().values()) == 6, "six of twelve pods start")
        await stage.until(lambda: any("had 2 pods starting" in stage.condition(name).get("message", "") for name in names))
        await stage.until(look, "all pods are ready")
    assert set(most.values()) == {2}
    assert stage.bound_twice() == []


async def test_a_pod_that_never_becomes_ready_gives_its_place_up_after_start_seconds(stage: Stage) -> None:
    scheduler = apply_sample(stage, STARTS, pluginConfig=edited_args(STARTS, maxStarting=1, startSeconds=2, domains=[]))
    async with operator(stage) as running:
        for number in range(4):
            create(stage, f"stuck-{number}", scheduler, annotations={START_SECONDS: "3600"})
        await stage.until(lambda: stage.placed(*(f"stuck-{number}" for number in range(4))), "the fourth pod has a node, too")
        assert not running.engine.reading.forgotten.counts.forgotten, "its alarm woke it"
    assert [number for number in range(4) if is_ready(stage, f"stuck-{number}")] == []


async def test_a_node_that_turned_a_jobs_pod_away_is_left_alone_by_its_next_pod_until_one_is_ready_there(stage: Stage) -> None:
    nodes = stage.sandbox.resource("", "v1", "nodes")
    for node in ("node-1", "node-2"):
        stage.sandbox.writes.modify(nodes, "", node, lambda found: found["spec"].update(unschedulable=True))
    scheduler = apply_sample(stage, REJECTIONS)
    async with operator(stage) as running:
        await stage.until(lambda: running.engine.reading.arrivals["FailedPod"].watching, "failed pods are watched")
        create(stage, "good", scheduler, **of_job("job-x"), annotations={START_SECONDS: "3600"})
        await stage.until(lambda: stage.placed("good"))
        annotate(stage, "node-0", **{TURNS_AWAY: "TopologyAffinityError"})
        create(stage, "try-1", scheduler, **of_job("job-x"))
        await stage.until(lambda: stage.show("try-1")["status"]["phase"] == "Failed")
        await stage.until(lambda: len(record_of(running.engine.deciding.cluster)) == 1)
        annotate(stage, "node-0")
        create(stage, "try-2", scheduler, **of_job("job-x"))
        create(stage, "other", scheduler, **of_job("job-y"))
        await stage.until(lambda: is_ready(stage, "other"), "a pod of another owner goes there")
        said = "node-0 turned away 1 pod of job-x (TopologyAffinityError); tried again in"
        await stage.until(lambda: said in stage.condition("try-2").get("message", ""))
        becomes_ready(stage, "good")
        await stage.until(lambda: is_ready(stage, "try-2"), "the job is welcome there again")
        assert not record_of(running.engine.deciding.cluster)
        stage.delete_profile(sample(REJECTIONS)["metadata"]["name"])
        await stage.until(lambda: not running.engine.reading.arrivals["FailedPod"].watching, "no profile wants to know any more")
