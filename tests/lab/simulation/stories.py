"""Stories: a cluster drawn at random in which things happen, one after the other, before an operator at work; and what was seen of it.

Each step waits until the operator has nothing left to do, so that the order of decisions is certain: pods have priorities of their own, and
no pod is in backoff. The recorded steps are ten virtual seconds apart, as a simulation reads them. A story ends when a simulation does:
after the last step, pods that no event brought back are tried again after five minutes, until nothing changes any more. One thing is
uncertain all the same: what the operator decides while bindings are on their way and victims leave, which in a simulation takes no time
(docs/simulate.md). A story in which a pod waited for its turn just then is `crowded`.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from handlers.stage import Running, Stage
from kubesandbox.storage.writes import WriteOptions
from placewright.engine.companions import Companions, Listeners, ReplicaInfo
from placewright.engine.engine import Engine
from placewright.framework.events import ASSIGNED_POD_ADD
from placewright.offline.kinds import Manifest
from placewright.queue.queue import MAX_UNSCHEDULABLE_SECONDS, SchedulingQueue
from placewright.scheduler.attempts import Attempt
from placewright_lab.simulation.scenario import Act, Happening
from placewright_lab.simulation.simulation import FLUSH_SECONDS, PATIENCE_SECONDS

from .scenarios import a_node, a_pod

SCHEDULER: Final = "placewright"
ZONE, HOST, GATE = "topology.kubernetes.io/zone", "kubernetes.io/hostname", "example.test/wait"
SCORES: Final = (
    "NodeResourcesFit", "NodeResourcesBalancedAllocation", "PodTopologySpread", "TaintToleration", "NodeAffinity", "InterPodAffinity"
)  # fmt: skip
STRICT, SOFT = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
SECONDS_A_STEP: Final = 10  # `FLUSH_SECONDS` is a multiple of it


def random_spec(rng: random.Random) -> dict[str, Any]:
    """Draw a profile's spec. Pods are tried again right after an event that may help."""
    spec: dict[str, Any] = {"backoff": {"initialSeconds": 1, "maxSeconds": 0}}
    if rng.random() < 0.5:
        spec["preset"] = rng.choice(("default", "bin-packing", "spread"))
    if rng.random() < 0.7:
        spec["weights"] = {name: rng.choice((0, 1, 3, 10)) for name in rng.sample(SCORES, 2)}
    if rng.random() < 0.3:
        strategy = {"type": rng.choice(("LeastAllocated", "MostAllocated")), "resources": [{"name": "memory", "weight": 3}]}
        spec["pluginConfig"] = [{"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}]
    if rng.random() < 0.2:
        spec["plugins"] = {"postFilter": {"disabled": [{"name": "DefaultPreemption"}]}}
    return spec


class Story:
    """A random story. `tell` it, then read `before`, `happenings` and `places`.

    Attributes:
        before: nodes and pods on the API server when the operator came.
        happenings: events since then.
        seen: number of each kind of event, and of `preempted`, `waited` and `outwaited` pods (time alone placed these).
        crowded: times at which others could be decided, victims left, or a binding made another attempt useful.
    """

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.spec = random_spec(self.rng)
        self.before: list[Manifest] = []
        self.happenings: list[Happening] = []
        self.seen: Counter[str] = Counter()
        self.crowded = False
        self._crowds = _Crowds(self.seen)
        self._priorities = self.rng.sample(range(10, 5000), 400)
        self._names = iter(range(400))

    # --- what there is ----------------------------------------------------------------------------------------------------------

    def node(self) -> Manifest:
        rng = self.rng
        labels = {ZONE: rng.choice("abc"), "disk": rng.choice(("ssd", "hdd"))}
        taint = "dedicated" if rng.random() < 0.15 else ""
        return a_node(f"node-{next(self._names):03d}", rng.choice("248"), f"{rng.choice((4, 8, 32))}Gi", taint, **labels)

    def pod(self, on: str = "") -> Manifest:
        """With any of what decides: room, selectors, tolerations, ports, gates, spread, and whom it wants beside it."""
        rng, number = self.rng, next(self._names)
        app = rng.choice(("web", "db", "batch"))
        policy = rng.choice(("Never", "PreemptLowerPriority"))
        more: dict[str, Any] = {"preemptionPolicy": policy, "terminationGracePeriodSeconds": 0, "schedulerName": SCHEDULER}
        made = a_pod(f"pod-{number:03d}", f"{rng.choice((100, 500, 1000, 2000))}m", on=on, priority=self._priorities[number], **more)
        made["metadata"]["labels"] = {"app": app}
        spec = made["spec"]
        spec["containers"][0]["resources"]["requests"]["memory"] = f"{rng.choice((64, 512, 2048))}Mi"
        mine = {"labelSelector": {"matchLabels": {"app": app}}}
        spread = {"maxSkew": 1, "topologyKey": rng.choice((ZONE, HOST))}
        spread["whenUnsatisfiable"] = rng.choice(("DoNotSchedule", "ScheduleAnyway"))
        term = {"topologyKey": rng.choice((ZONE, HOST)), **mine}
        wishes: list[tuple[float, dict[str, Any]]] = [
            (0.15, {"nodeSelector": {"disk": rng.choice(("ssd", "hdd"))}}),
            (0.3, {"tolerations": [{"key": "dedicated", "operator": "Exists"}]}),
            (0.3, {"topologySpreadConstraints": [spread | mine]}),
            (0.15, {"affinity": {"podAntiAffinity": {STRICT: [term]}}}),
            (0.15, {"affinity": {"podAffinity": {SOFT: [{"weight": 9, "podAffinityTerm": term}]}}}),
        ]
        for chance, wish in wishes:
            if rng.random() < chance:
                spec |= wish
        if rng.random() < 0.1:
            spec["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8080}]
        if rng.random() < 0.1 and not on:
            spec["schedulingGates"] = [{"name": GATE}]
        return made

    # --- what happens -----------------------------------------------------------------------------------------------------------

    def open(self, stage: Stage) -> None:
        """Make the cluster before the operator comes: nodes, pods on some of them, pods that wait, and the profile."""
        nodes = [self.node() for _ in range(self.rng.randint(3, 8))]
        self.rng.shuffle(nodes)
        running = [self.pod(on=self.rng.choice(nodes)["metadata"]["name"]) for _ in range(self.rng.randint(0, 6))]
        waiting = [self.pod() for _ in range(self.rng.randint(0, 12))]
        for each in waiting:  # all are decided in one go
            each["spec"]["preemptionPolicy"] = "Never"
        for manifest in (*nodes, *running, *waiting):
            put(stage, manifest)
        self.before = objects_of(stage)

    def make_companions(self, _info: ReplicaInfo) -> Companions:
        """What looks around while the operator works."""
        return Companions(Listeners(attempts=(self._crowds,)), self._crowds.looking_at)

    async def tell(self, stage: Stage, running: Running, steps: int) -> None:
        """Bring the profile and so many events. Then let time pass until all waiting pods were tried since the last change."""
        await idle(stage, running)
        stage.profile(**self.spec)
        await stage.until(lambda: (stage.show_profile().get("status") or {}).get("activeGeneration"), "the profile is in effect")
        await idle(stage, running)
        self._crowds.all_is_quiet()
        at = changed = 0
        known = places(objects_of(stage))
        reached: dict[float, float] = {}  # by virtual second: when it came, on the queue's clock
        while (at := at + SECONDS_A_STEP) <= changed + PATIENCE_SECONDS:
            reached[at] = time.monotonic()
            happens = at <= SECONDS_A_STEP * steps
            if happens:
                self._step(stage, at)
            if at > MAX_UNSCHEDULABLE_SECONDS and at % FLUSH_SECONDS == 0:
                self.seen["outwaited"] += running.engine.deciding.queue.sweeps.flush(oldest=reached[at - MAX_UNSCHEDULABLE_SECONDS])
            await idle(stage, running)
            self._crowds.all_is_quiet()
            was, known = known, places(objects_of(stage))
            changed = at if happens or known != was else changed
        self.crowded = self._crowds.crowded
        self._count(known)

    def _count(self, end: dict[str, str]) -> None:
        pods = places([*self.before, *(each.manifest for each in self.happenings)]).keys()
        deleted = {each.manifest["metadata"]["name"] for each in self.happenings if each.act is Act.DELETED}
        self.seen["waited"] = sum(not node for node in end.values())
        self.seen["preempted"] = len(pods - deleted - end.keys())

    def _step(self, stage: Stage, at: float) -> None:
        acts: dict[str, tuple[int, Callable[[Stage], tuple[Act, Manifest] | None]]] = {
            "pod comes": (50, self._pod_comes),
            "pod goes": (18, self._pod_goes),
            "gate falls": (8, self._gate_falls),
            "pod is labelled": (6, self._pod_is_labelled),
            "node comes": (4, self._node_comes),
            "node changes": (14, self._node_changes),
        }
        what = self.rng.choices([*acts], [weight for weight, _ in acts.values()])[0]
        done = acts[what][1](stage)
        if done is not None:
            self.seen[what] += 1
            self.happenings.append(Happening(at, *done))

    def _pod_comes(self, stage: Stage) -> tuple[Act, Manifest]:
        made = self.pod()
        put(stage, made)
        return Act.ADDED, {**stage.show(made["metadata"]["name"]), "kind": "Pod"}

    def _node_comes(self, stage: Stage) -> tuple[Act, Manifest]:
        made = self.node()
        put(stage, made)
        return Act.ADDED, self._any(stage, "Node", lambda each: each["metadata"]["name"] == made["metadata"]["name"])

    def _pod_goes(self, stage: Stage) -> tuple[Act, Manifest] | None:
        chosen = self._any(stage, "Pod")
        if chosen:
            stage.delete_pod(chosen["metadata"]["name"])
        return (Act.DELETED, chosen) if chosen else None

    def _gate_falls(self, stage: Stage) -> tuple[Act, Manifest] | None:
        gates = "schedulingGates"
        return self._changed(stage, "Pod", lambda each: each["spec"].get(gates), lambda each: each["spec"].pop(gates))

    def _pod_is_labelled(self, stage: Stage) -> tuple[Act, Manifest] | None:
        app = self.rng.choice(("web", "db"))
        return self._changed(stage, "Pod", lambda each: True, lambda each: each["metadata"].update(labels={"app": app}))

    def _node_changes(self, stage: Stage) -> tuple[Act, Manifest] | None:
        zone, taint = self.rng.choice("abc"), [{"key": "dedicated", "effect": "NoSchedule"}]
        changes: list[Callable[[Manifest], Any]] = [
            lambda each: each["spec"].update(unschedulable=not each["spec"].get("unschedulable")),
            lambda each: each["spec"].update(taints=[] if each["spec"].get("taints") else taint),
            lambda each: each["metadata"]["labels"].update({ZONE: zone}),
        ]
        return self._changed(stage, "Node", lambda each: True, self.rng.choice(changes))

    def _changed(
        self, stage: Stage, kind: str, wanted: Callable[[Manifest], Any], change: Callable[[Manifest], Any]
    ) -> tuple[Act, Manifest] | None:
        chosen = self._any(stage, kind, wanted)
        if not chosen:
            return None
        changed = json.loads(json.dumps(chosen))
        change(changed)
        resource = stage.sandbox.resource("", "v1", "nodes" if kind == "Node" else "pods")
        namespace = "" if kind == "Node" else "default"
        name = chosen["metadata"]["name"]
        stage.sandbox.writes.replace(resource, namespace, name, changed, WriteOptions())
        return Act.MODIFIED, self._any(stage, kind, lambda each: each["metadata"]["name"] == name)

    def _any(self, stage: Stage, kind: str, wanted: Callable[[Manifest], Any] = lambda each: True) -> Manifest:
        found = [each for each in objects_of(stage) if each["kind"] == kind and wanted(each)]
        return self.rng.choice(found) if found else {}


class _Crowds:
    """Hears of attempts, and looks around whenever something takes its time that takes none in a simulation."""

    def __init__(self, seen: Counter[str]) -> None:
        self.crowded = False
        self._queues: list[SchedulingQueue] = []
        self._seen = seen
        self._decided: set[str] = set()
        self._woken = False

    @asynccontextmanager
    async def looking_at(self, engine: Engine) -> AsyncIterator[None]:
        self._queues.append(engine.deciding.queue)
        yield

    def attempt_ended(self, attempt: Attempt) -> None:
        self._decided.add(attempt.uid)
        if attempt.failure is None or not attempt.failure.victims:
            return
        (queue,) = self._queues
        sizes = queue.sizes()
        self._seen["preemption"] += 1
        several = len(attempt.failure.victims) > 1  # those that wait hear of the first one's end before the last one's
        self.crowded |= bool(sizes.active + sizes.backoff + sizes.in_flight + several * (sizes.unschedulable - 1))

    def pod_entered(self, place: str, event: str) -> None:
        self._woken |= event == ASSIGNED_POD_ADD.label

    def all_is_quiet(self) -> None:
        """One turn is over. Beside the pod that was woken one other is no crowd: that one's binding has woken it."""
        self.crowded |= self._woken and len(self._decided) > 2
        self._decided, self._woken = set(), False


# --- a cluster on stage -------------------------------------------------------------------------------------------------------------


def objects_of(stage: Stage) -> list[Manifest]:
    """Return nodes and pods like a list of the API server."""
    found: list[Manifest] = []
    for kind, plural in (("Node", "nodes"), ("Pod", "pods")):
        key = stage.sandbox.resource("", "v1", plural).key
        found += [{**stored.object, "kind": kind} for stored in stage.sandbox.store.listed(key)]
    return found


def put(stage: Stage, manifest: Manifest) -> None:
    """Create a node or a pod; admission takes a pod's priority from its class alone, so that is made as well."""
    plural, namespace = ("nodes", "") if manifest["kind"] == "Node" else ("pods", "default")
    content = {**manifest, "metadata": {key: value for key, value in manifest["metadata"].items() if key != "uid"}}
    if manifest["kind"] == "Pod":
        spec = dict(manifest["spec"])
        value, policy = spec.pop("priority"), spec.pop("preemptionPolicy", "PreemptLowerPriority")
        one = {"metadata": {"name": f"class-{value}"}, "value": value, "preemptionPolicy": policy}
        stage.sandbox.writes.create(stage.sandbox.resource("scheduling.k8s.io", "v1", "priorityclasses"), "", one)
        content["spec"] = {**spec, "priorityClassName": f"class-{value}"}
    stage.sandbox.writes.create(stage.sandbox.resource("", "v1", plural), namespace, content)


def places(manifests: list[Manifest]) -> dict[str, str]:
    """Return the node of every pod by name, or nothing."""
    return {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in manifests if each["kind"] == "Pod"}


async def idle(stage: Stage, running: Running) -> None:
    """The operator knows what the API server shows, and has nothing left to do."""
    engine = running.engine
    nodes = stage.sandbox.resource("", "v1", "nodes").key

    def at_rest() -> bool:
        sizes = engine.deciding.queue.sizes()
        known = {each.metadata.name: each.metadata.resource_version for each in engine.deciding.cluster.nodes()}
        stored = {each.object["metadata"]["name"]: each.object["metadata"]["resourceVersion"] for each in stage.sandbox.store.listed(nodes)}
        busy = sizes.active + sizes.backoff + sizes.in_flight
        return not busy and known == stored and running.agrees_with(stage) and _pods_are_known(stage, running)

    while True:
        await stage.until(at_rest, "the operator has nothing left to do")
        await engine.deciding.scheduler.settled()
        if at_rest():
            return


def _pods_are_known(stage: Stage, running: Running) -> bool:
    """In the labels and gates that they have, not just where they are."""
    cluster, queue = running.engine.deciding.cluster, running.engine.deciding.queue
    for stored in stage.sandbox.store.listed(stage.pod_key):
        placement = cluster.placement(stored.uid)
        known = placement.pod if placement is not None else queue.latest(stored.uid)
        if known is None:
            return False
        gates = [gate["name"] for gate in stored.object["spec"].get("schedulingGates") or ()]
        if dict(known.labels) != stored.object["metadata"].get("labels", {}) or bool(gates) != bool(known.pod.spec.scheduling_gates):
            return False
    return True
