"""kube-scheduler and the operator, each with the same extender, nodes and pods: they ask the same, and place the pods the same.

Of a question, what is each run's own is left out: uids, versions and times of pods. So is what has changed between versions:
`managedFields` of pods, which 1.20 sends and later versions drop, and the status of the pod to be placed, in which each scheduler has
written in its own words. The order of nodes is that of each scheduler's own list. All else is equal to the letter, versions and times of
nodes included.

1.20.2 does not ask extenders about preemption (kubernetes/kubernetes#102971, repaired in later patch releases): of what the operator asks
there, the expectation is made from what the API server shows.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from aiohttp import web

from contract.client import MERGE, Client, Watch
from contract.cluster import client_from
from e2e import makers
from e2e.installation import PROFILES, Installation, install
from kube.extender_server import ExtenderServer
from placewright_lab.controlplane.assets import VARIABLE, from_environment
from placewright_lab.controlplane.kubescheduler import KubeScheduler
from placewright_lab.controlplane.server import ControlPlane, Options
from placewright_lab.demo.operatorprocess import OperatorProcess, operator_command
from programs import not_on_this_server

Object = dict[str, Any]
NAMESPACE: Final = "extended"
NODES: Final = tuple(f"n{number}" for number in range(6))
#: The extender keeps pods away from it.
CLOSED: Final = "n5"
GPU: Final = "example.com/gpu"
_PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
_SECONDS: Final = 60.0
_LAST_WORDS: Final = 1000


def extenders(url: str, *, knows: bool) -> list[Object]:
    """One for all pods that does everything, and one that counts GPUs, which no node offers."""
    verbs = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 100, "preemptVerb": "preempt", "bindVerb": "bind"}
    every = {"urlPrefix": f"{url}/all/", **verbs, "nodeCacheCapable": knows, "httpTimeout": "30s"}
    managed = [{"name": GPU, "ignoredByScheduler": True}]
    return [every, {"urlPrefix": f"{url}/gpu", "filterVerb": "filter", "nodeCacheCapable": not knows, "managedResources": managed}]


# --- the extender ------------------------------------------------------------------------------------------------------------


def filtered(question: Object) -> Object:
    names = offered(question)
    lost = set(names) if question["Pod"]["metadata"]["name"] == "refused" else {CLOSED}
    failed = {name: "no licence" for name in names if name in lost}
    if question["NodeNames"] is not None:
        return {"NodeNames": [name for name in names if name not in lost], "FailedNodes": failed}
    items = [node for node in question["Nodes"]["items"] if node["metadata"]["name"] not in lost]
    return {"Nodes": {"metadata": {}, "items": items}, "FailedNodes": failed}


def scored(question: Object) -> list[Object]:
    """Every node another score, and every pod another order; with its weight it drowns all plugins."""
    turn = sum(question["Pod"]["metadata"]["name"].encode())
    return [{"Host": name, "Score": 2 * ((NODES.index(name) + turn) % len(NODES))} for name in offered(question)]


def agreed(question: Object) -> Object:
    """Only the third of all nodes, whichever way victims are named."""
    if question["NodeNameToMetaVictims"] is not None:
        return {"NodeNameToMetaVictims": {NODES[2]: question["NodeNameToMetaVictims"][NODES[2]]}}
    victims = question["NodeNameToVictims"][NODES[2]]
    uids = [{"UID": pod["metadata"]["uid"]} for pod in victims["Pods"]]
    return {"NodeNameToMetaVictims": {NODES[2]: {"Pods": uids, "NumPDBViolations": victims["NumPDBViolations"]}}}


def offered(question: Object) -> list[str]:
    names: list[str] | None = question["NodeNames"]
    return names if names is not None else [node["metadata"]["name"] for node in question["Nodes"]["items"]]


@asynccontextmanager
async def extender(client: Client) -> AsyncIterator[ExtenderServer]:
    """Binds with the rights of whoever runs the test."""

    async def bind(request: web.BaseRequest) -> web.StreamResponse:
        question = json.loads(await request.read())
        target = {"apiVersion": "v1", "kind": "Node", "name": question["Node"]}
        meta = {"name": question["PodName"], "uid": question["PodUID"]}
        path = f"/api/v1/namespaces/{question['PodNamespace']}/pods/{question['PodName']}/binding"
        answer = await client.post(path, {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target})
        return web.json_response({"Error": "" if answer.status == 201 else str(answer)})

    async with ExtenderServer() as server:
        for verb, say in (("filter", filtered), ("prioritize", scored), ("preempt", agreed)):
            server.on(verb, say)
        server.on("bind", bind)
        yield server


# --- the play ----------------------------------------------------------------------------------------------------------------


@dataclass
class Run:
    """What one scheduler did.

    Attributes:
        placed: the node of each pod, "" for none.
        message: why the pod that nobody wants was not placed.
        questions: the first of each extender, verb and pod.
        victims: by node, the pod there that has to leave for `vip`, as the API server had it before.
    """

    placed: dict[str, str] = field(default_factory=dict)
    message: str = ""
    questions: dict[tuple[str, str], Object] = field(default_factory=dict)
    victims: dict[str, Object] = field(default_factory=dict)
    content_types: set[str] = field(default_factory=set)


class Play:
    """The same pods in the same order; whoever schedules is at work already."""

    def __init__(self, client: Client, watch: Watch, server: ExtenderServer) -> None:
        self._client = client
        self._watch = watch
        self._server = server
        self.run = Run()

    async def perform(self) -> Run:
        await self._warm_up()
        for name in ("web-0", "web-1", "web-2", "web-3"):
            await self._place(a_pod(name))
        await self._place(a_pod("gpu", gpus=1))
        await self._place(a_pod("refused"))
        await self._delete("refused")
        for node in NODES:
            low = await self._create(a_pod(f"low-{node}", cpu="3", node=node, priority="low"))
            self.run.victims[node] = {name: part for name, part in low.items() if name not in ("kind", "apiVersion")}
        await self._until_full()
        await self._place(a_pod("vip", cpu="3", priority="high"), until_placed=True)
        self._collect()
        return self.run

    async def _warm_up(self) -> None:
        """A scheduler may begin before it knows all nodes."""
        for number in range(50):
            await self._place(a_pod(f"warm-{number}"), until_placed=True)
            if sorted(offered(self._server.asked("POST", "/filter")[-1].body)) == sorted(NODES):
                return
        raise AssertionError("it does not get to know all nodes")

    async def _until_full(self) -> None:
        """A scheduler may hear of a new pod before it hears that older ones stand on nodes."""
        for number in range(50):
            full = a_pod(f"warm-up-{number}", cpu="1")
            seen = await _settled(self._watch, await self._create(full), until_placed=False)
            await self._delete(full["metadata"]["name"])
            if not seen["spec"].get("nodeName"):
                return
        raise AssertionError("it does not get to know what stands on the nodes")

    async def _place(self, wanted: Object, *, until_placed: bool = False) -> None:
        made = await self._create(wanted)
        seen = await _settled(self._watch, made, until_placed=until_placed)
        name = made["metadata"]["name"]
        if name.startswith("warm"):
            await self._delete(name)
            return
        self.run.placed[name] = seen["spec"].get("nodeName", "")
        self.run.message = _message(seen) or self.run.message

    async def _create(self, wanted: Object) -> Object:
        return (await self._client.post(_PODS, wanted)).expect(201)

    async def _delete(self, name: str) -> None:
        (await self._client.delete(f"{_PODS}/{name}", {"gracePeriodSeconds": 0})).expect(200)

    def _collect(self) -> None:
        for asked in self._server.requests:
            name = asked.body.get("PodName") or asked.body["Pod"]["metadata"]["name"]
            self.run.content_types.add(asked.headers["Content-Type"])
            if not name.startswith("warm"):
                self.run.questions.setdefault((asked.path, name), _comparable(asked.body))


def a_pod(name: str, *, cpu: str = "100m", node: str = "", priority: str = "", gpus: int = 0) -> Object:
    made = makers.a_pod(name, NAMESPACE, NAMESPACE, cpu=cpu, priority_class=priority, grace=0)
    if node:
        made["spec"]["nodeName"] = node
    if gpus:
        resources = made["spec"]["containers"][0]["resources"]
        resources["limits"] = {GPU: str(gpus)}
        resources["requests"][GPU] = str(gpus)
    return made


async def _settled(watch: Watch, made: Object, *, until_placed: bool) -> Object:
    async with asyncio.timeout(_SECONDS):
        while True:
            seen: Object = (await watch.next())["object"]
            if seen["metadata"].get("uid") == made["metadata"]["uid"] and (
                seen["spec"].get("nodeName") or (_message(seen) and not until_placed)
            ):
                return seen


def _message(seen: Object) -> str:
    conditions = seen.get("status", {}).get("conditions") or ()
    return next((each.get("message", "") for each in conditions if each["type"] == "PodScheduled" and each["status"] == "False"), "")


def _comparable(question: Object) -> Object:
    """The question without what is each run's own; see the module's text."""
    kept = json.loads(json.dumps(question))
    if "PodUID" in kept:
        return {**kept, "PodUID": bool(kept["PodUID"])}
    _forget(kept["Pod"])
    del kept["Pod"]["status"]
    if kept.get("Nodes"):
        kept["Nodes"]["items"].sort(key=lambda node: node["metadata"]["name"])
    if kept.get("NodeNames"):
        kept["NodeNames"].sort()
    for victims in (kept.get("NodeNameToVictims") or {}).values():
        for victim in victims["Pods"]:
            _forget(victim)
    for victims in (kept.get("NodeNameToMetaVictims") or {}).values():
        victims["Pods"] = [sorted(victim) for victim in victims["Pods"]]
    return kept


def _forgotten(sent: Object) -> Object:
    copied: Object = json.loads(json.dumps(sent))
    _forget(copied)
    return copied


def _forget(sent: Object) -> None:
    assert sent["metadata"]["uid"]
    for name in ("uid", "resourceVersion", "creationTimestamp", "managedFields"):
        sent["metadata"].pop(name, None)


# --- the two who schedule ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    assets = from_environment(os.environ)
    if assets is None or assets.kube_scheduler is None:
        not_on_this_server(f"{VARIABLE} has no kube-scheduler")
    with ControlPlane(assets, Options(audit=False)) as running:
        yield running


@pytest.fixture(scope="module")
def installation(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    made = install(plane.kubeconfig, plane, tmp_path_factory.mktemp("extended"))
    asyncio.run(_furnish(plane.kubeconfig))
    return made


async def _furnish(kubeconfig: Path) -> None:
    async with client_from(kubeconfig) as client:
        (await client.post("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})).expect(201)
        for name, value in (("low", 1), ("high", 1000)):
            body = {"metadata": {"name": name}, "value": value}
            (await client.post("/apis/scheduling.k8s.io/v1/priorityclasses", body)).expect(201)
        for name in NODES:
            (await client.post("/api/v1/nodes", makers.a_node(name, NAMESPACE))).expect(201)


@pytest.fixture(scope="module", params=[True, False], ids=["it knows the nodes", "it is sent whole objects"])
def knows(request: pytest.FixtureRequest) -> bool:
    """Whether the extender for all pods is `nodeCacheCapable`."""
    return bool(request.param)


@pytest.fixture(scope="module")
def runs(plane: ControlPlane, installation: Installation, *, knows: bool) -> tuple[Run, Run]:
    """Theirs and ours."""
    return asyncio.run(_with_theirs(plane, knows=knows)), asyncio.run(_with_ours(installation, knows=knows))


async def _with_theirs(plane: ControlPlane, *, knows: bool) -> Run:
    assert plane.assets.kube_scheduler is not None, "the fixture has looked"
    async with _stage(plane.kubeconfig) as (client, watch, server):
        assets = plane.assets
        profile, settings = {"schedulerName": "placewright"}, {"extenders": extenders(server.url, knows=knows)}
        scheduler = KubeScheduler(assets.kube_scheduler, assets.minor, plane.kubeconfig, plane.folder, profile=profile, settings=settings)
        with scheduler:
            try:
                return await Play(client, watch, server).perform()
            except TimeoutError:
                raise AssertionError(f"kube-scheduler: {scheduler.log.read_text()[-_LAST_WORDS:]}") from None


async def _with_ours(installation: Installation, *, knows: bool) -> Run:
    async with _stage(installation.kubeconfig) as (client, watch, server):
        change = {"spec": {"extenders": extenders(server.url, knows=knows)}}
        (await client.patch(f"{PROFILES}/default", change, MERGE)).expect(200)
        log = installation.folder / f"operator-{knows}.log"
        async with OperatorProcess(operator_command(installation.operator_kubeconfig), log):
            try:
                return await Play(client, watch, server).perform()
            except TimeoutError:
                raise AssertionError(f"the operator: {log.read_text()[-_LAST_WORDS:]}") from None


@asynccontextmanager
async def _stage(kubeconfig: Path) -> AsyncIterator[tuple[Client, Watch, ExtenderServer]]:
    """The nodes as they are, and no pod."""
    async with client_from(kubeconfig) as client, extender(client) as server:
        listed = (await client.get(_PODS)).expect(200)
        for left in listed["items"]:
            (await client.delete(f"{_PODS}/{left['metadata']['name']}", {"gracePeriodSeconds": 0})).expect(200)
        async with client.watch(_PODS, resourceVersion=listed["metadata"]["resourceVersion"]) as watch:
            yield client, watch, server


# --- what is compared --------------------------------------------------------------------------------------------------------


#: What is not compared: see the module's text.
PREEMPTOR: Final = "vip"
#: The first minor version whose pods have a generation by default.
COUNTS_GENERATIONS: Final = 34


def test_they_ask_the_same_questions(runs: tuple[Run, Run]) -> None:
    theirs, ours = ({asked: question for asked, question in run.questions.items() if asked[1] != PREEMPTOR} for run in runs)
    assert ours.keys() == theirs.keys()
    for asked, question in theirs.items():
        assert ours[asked] == question, asked
    assert runs[0].content_types == runs[1].content_types == {"application/json"}


def test_pods_go_to_the_same_nodes(runs: tuple[Run, Run]) -> None:
    theirs, ours = ({name: node for name, node in run.placed.items() if name != PREEMPTOR} for run in runs)
    assert ours == theirs


def test_a_pod_that_the_extender_wants_nowhere_is_told_so_in_its_words(runs: tuple[Run, Run]) -> None:
    for run in runs:
        assert run.placed["refused"] == ""
        assert run.message.startswith("0/6 nodes are available: 6 no licence.")


def test_the_operator_asks_about_victims_as_they_are_and_takes_the_node_that_is_agreed_to(
    runs: tuple[Run, Run], plane: ControlPlane, *, knows: bool
) -> None:
    _, ours = runs
    question = ours.questions["/all/preempt", PREEMPTOR]
    whole = {node: {"Pods": [_forgotten(low)], "NumPDBViolations": 0} for node, low in ours.victims.items()}
    by_uid = {node: {"Pods": [["UID"]], "NumPDBViolations": 0} for node in ours.victims}
    assert question["NodeNameToVictims"] == (None if knows else whole)
    assert question["NodeNameToMetaVictims"] == (by_uid if knows else None)
    counted = {"generation": 1} if plane.assets.minor >= COUNTS_GENERATIONS else {}
    assert question["Pod"]["metadata"] == {"name": PREEMPTOR, "namespace": NAMESPACE, **counted}
    assert ours.placed[PREEMPTOR] == NODES[2]


def test_the_run_was_worth_comparing(runs: tuple[Run, Run]) -> None:
    for run in runs:
        pods = {"web-0", "web-1", "web-2", "web-3", "gpu"}
        assert {path for path, _ in run.questions} >= {"/all/filter", "/all/prioritize", "/all/bind", "/gpu/filter"}
        assert {name for path, name in run.questions if path == "/gpu/filter"} == {"gpu"}
        assert {name for path, name in run.questions if path == "/all/prioritize"} == pods
        assert len({run.placed[name] for name in pods}) >= 3
        assert CLOSED not in {run.placed[name] for name in pods}
