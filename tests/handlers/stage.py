"""A stage for the operator: an embedded cluster in this process, objects in a few words, and waiting for what its store shows."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Self

import pytest

from kubesandbox.resources import ResourceType
from kubesandbox.server import Sandbox, SandboxOptions
from kubesandbox.storage.store import Change
from kubesandbox.storage.writes import DeleteOptions, WriteOptions
from news import News
from placewright.api.annotations import Decision, read_decision
from placewright.engine import (
    decidingpart,
    podgroupstatus,
    profilehistory,
    profilekeeper,
    profilestatus,
    takeover,
    unclaimedpods,
)
from placewright.engine.companions import MakeCompanions, no_companions
from placewright.engine.engine import Engine, build_engine
from placewright.engine.options import EngineOptions
from placewright.handlers.operator import run_engine
from placewright.kube.auth.login import load_config
from placewright.kube.writers import podgroupstatus as groupwriter
from placewright.scheduler import giveupreports

Object = dict[str, Any]
CRDS = Path(__file__).parents[2] / "crds"
#: With the definition of PodGroup that comes with us.
WITH_GROUPS = (CRDS, CRDS / "groups")
GROUP_LABEL: Final = "scheduling.x-k8s.io/pod-group"
#: `pluginConfig` with which all nodes may be kept for a group, at once.
KEEPING: Final = [{
    "name": "GangScheduling",
    "args": {"reservationAfterSeconds": 0, "reservations": 1, "reservationPercent": 100, "reservationPercentOfNamespace": 100},
}]  # fmt: skip
#: How long anything on stage may take before the test fails, in seconds.
DEADLINE = 60.0
#: The latency of a request that is held back until `faults.release`, in seconds.
HELD = 3600.0
FAST = EngineOptions(seed=1, reconcile_seconds=3600.0, peering_lifetime=2)
#: What an operator on stage does in place of seconds, as nobody's API server has to be spared: beats, pauses between writes, patience.
#: The comparison after a list keeps its own: it is not to meet pods that are only on their way to the queue.
BRISK: Final[tuple[tuple[ModuleType, str, float], ...]] = (
    (decidingpart, "BEAT_SECONDS", 0.05),
    (decidingpart, "GROUPS_BEAT_SECONDS", 0.05),
    (podgroupstatus, "PATIENCE_SECONDS", 0.2),
    (profilehistory, "_BEAT_SECONDS", 0.05),
    (groupwriter, "PAUSE_SECONDS", 0.05),
    (profilekeeper, "_BEAT_SECONDS", 0.05),
    (profilestatus, "WRITE_SECONDS", 0.05),
    (giveupreports, "BEAT_SECONDS", 0.05),
    (takeover, "QUIET_SECONDS", 0.03),
    (unclaimedpods, "PATIENCE_SECONDS", 0.3),
    (unclaimedpods, "SETTLE_SECONDS", 0.3),
    (unclaimedpods, "_SURVEY_SECONDS", 0.5),
)


class Stage:
    """One sandbox and what happens in it."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        #: (uid, node) of every Binding that took place, in order.
        self.bindings: list[tuple[str, str]] = []
        #: Who was in the peering object at each of them.
        self.peers_when_bound: list[set[str]] = []
        self._news = News()
        self._pods = sandbox.resource("", "v1", "pods")
        self.pod_key = self._pods.key
        self._nodes = sandbox.resource("", "v1", "nodes")
        self._names = itertools.count()
        sandbox.store.listeners.append(self._heard)

    def account_kubeconfig(self, namespace: str, name: str) -> bytes:
        """The kubeconfig of a ServiceAccount."""
        return self.sandbox.credentials.kubeconfig(self.sandbox.server, self.sandbox.access.new_token(namespace, name))

    @property
    def _profiles(self) -> ResourceType:
        return self.sandbox.resource("placewright.dev", "v1alpha1", "schedulingprofiles")

    def _heard(self, key: object, change: Change) -> None:
        self._news.set()
        if key == self._pods.key and change.current is not None:
            before = change.previous.object["spec"].get("nodeName") if change.previous is not None else None
            node = change.current.object["spec"].get("nodeName")
            if node and node != before:
                self.bindings.append((change.current.uid, node))
                self.peers_when_bound.append(self.peers())

    async def until(self, condition: Callable[[], Any], what: str = "") -> None:
        """Wait until the condition holds of the store, or of anything that changes with it; fail at the deadline."""
        await self._news.until(condition, lambda: what or condition.__name__, DEADLINE)

    # --- what is put on stage -----------------------------------------------------------------------------------------------------

    def _create(self, resource: ResourceType, content: Object) -> Object:
        namespace = "default" if resource.namespaced else ""
        return self.sandbox.writes.create(resource, namespace, content).object

    def node(self, name: str, *, cpu: str = "4", taint: str = "", zone: str = "") -> Self:
        amounts = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
        spec = {"taints": [{"key": taint, "effect": "NoSchedule"}]} if taint else {}
        metadata = {"name": name, "labels": {"topology.kubernetes.io/zone": zone} if zone else {}}
        self._create(self._nodes, {"metadata": metadata, "spec": spec, "status": {"allocatable": amounts, "capacity": amounts}})
        return self

    def nodes(self, count: int) -> Self:
        for number in range(count):
            self.node(f"node-{number}")
        return self

    def untaint(self, name: str) -> None:
        self._modify(self._nodes, name, lambda node: node["spec"].update(taints=[]))

    def pod(self, name: str, *, cpu: str = "100m", scheduler: str = "placewright", restart: str = "Always", group: str = "") -> Self:
        container = {"name": "main", "image": "example.test/main", "resources": {"requests": {"cpu": cpu}}}
        spec = {"schedulerName": scheduler, "restartPolicy": restart, "containers": [container]}
        self._create(self._pods, {"metadata": {"name": name, "labels": {GROUP_LABEL: group} if group else {}}, "spec": spec})
        return self

    def members(self, group: str, *names: str, cpu: str = "1") -> None:
        for name in names:
            self.pod(name, cpu=cpu, group=group)

    def pod_group(self, name: str, members: int) -> None:
        """A PodGroup of scheduler-plugins, on a server that knows them."""
        groups = self.sandbox.resource("scheduling.x-k8s.io", "v1alpha1", "podgroups")
        self._create(groups, {"metadata": {"name": name}, "spec": {"minMember": members}})

    def pods(self, count: int, **spec: str) -> list[str]:
        names = [f"web-{next(self._names)}" for _ in range(count)]
        for name in names:
            self.pod(name, **spec)
        return names

    def delete_pod(self, name: str) -> None:
        self.sandbox.writes.delete(self._pods, "default", name, DeleteOptions(grace=0))

    def profile(self, name: str = "default", **spec: Any) -> Self:
        self._create(self._profiles, {"metadata": {"name": name}, "spec": {"schedulerName": "placewright", **spec}})
        return self

    def edit_profile(self, name: str = "default", **spec: Any) -> int:
        """Change fields of the spec; answers the new generation."""
        self._modify(self._profiles, name, lambda profile: profile["spec"].update(spec))
        return int(self.show_profile(name)["metadata"]["generation"])

    def write_profile_unchecked(self, name: str = "default", **spec: Any) -> None:
        """Past the schema."""
        self.sandbox.writes.modify(self._profiles, "", name, lambda profile: profile["spec"].update(spec))

    def edit_status(self, change: Callable[[Object], None], name: str = "default") -> None:
        """As somebody else would who writes to a profile's status."""

        def changed(profile: Object) -> None:
            profile["status"] = json.loads(json.dumps(profile.get("status") or {}))
            change(profile["status"])

        self.sandbox.writes.modify(self._profiles, "", name, changed)

    def delete_profile(self, name: str = "default") -> None:
        self.sandbox.writes.delete(self._profiles, "", name, DeleteOptions())

    def _modify(self, resource: ResourceType, name: str, change: Callable[[Object], None]) -> None:
        content = self.sandbox.writes.current(resource, "", name).object
        changed = {**content, "spec": dict(content.get("spec") or {}), "metadata": dict(content["metadata"])}
        change(changed)
        self.sandbox.writes.replace(resource, "", name, changed, WriteOptions())

    # --- what is seen -------------------------------------------------------------------------------------------------------------

    def show(self, name: str) -> Object:
        return self.sandbox.writes.current(self._pods, "default", name).object

    def show_profile(self, name: str = "default") -> Object:
        return self.sandbox.writes.current(self._profiles, "", name).object

    def node_of(self, name: str) -> str:
        return str(self.show(name)["spec"].get("nodeName", ""))

    def placed(self, *names: str) -> bool:
        return all(self.node_of(name) for name in names)

    def decision(self, name: str) -> Decision | None:
        return read_decision(self.show(name)["metadata"].get("annotations"))

    def condition(self, name: str, kind: str = "PodScheduled") -> Object:
        return _condition(self.show(name), kind)

    def profile_condition(self, kind: str, name: str = "default") -> Object:
        return _condition(self.show_profile(name), kind)

    def events(self, about: str) -> list[tuple[str, str]]:
        """(reason, note) of events about an object of that name."""
        found = []
        for key in self.sandbox.store.types():
            for stored in self.sandbox.store.listed(key) if "events" in key else ():
                event = stored.object
                regarding = event.get("regarding") or event.get("involvedObject") or {}
                if regarding.get("name") == about:
                    found.append((event["reason"], event.get("note") or event.get("message") or ""))
        return found

    def bound_twice(self) -> list[str]:
        """Uids of pods that were bound more often than once: the audit after every storm."""
        return [uid for uid, times in Counter(uid for uid, _ in self.bindings).items() if times > 1]

    def peers(self) -> set[str]:
        """Identities in the peering object."""
        try:
            peerings = self.sandbox.resource("kopf.dev", "v1", "clusterkopfpeerings")
        except KeyError:
            return set()
        found = self.sandbox.store.get(peerings.key, "", "placewright")
        return set(found.object.get("status") or {}) if found is not None else set()


def _condition(content: Object, kind: str) -> Object:
    return next((one for one in (content.get("status") or {}).get("conditions") or () if one["type"] == kind), {})


class Running:
    """An operator at work."""

    def __init__(self, engine: Engine, task: asyncio.Task[None], stop: asyncio.Event) -> None:
        self.engine = engine
        self.task = task
        self._stop = stop

    def agrees_with(self, stage: Stage) -> bool:
        """The columns and the queue say what the store says."""
        stored = {one.uid: one.object for one in stage.sandbox.store.listed(stage.pod_key)}
        alive = {uid: one for uid, one in stored.items() if one.get("status", {}).get("phase") not in ("Succeeded", "Failed")}
        placed = {uid: one["spec"]["nodeName"] for uid, one in alive.items() if one["spec"].get("nodeName")}
        believed = {one.pod.uid: one.node for one in self.engine.deciding.cluster.placements()}
        return believed == placed and set(self.engine.deciding.queue.uids()) == alive.keys() - placed.keys()

    def impatient(self) -> None:
        """Differences between cache or queue and the API server are looked at again at once, and not after seconds."""
        self.engine.reading.reconcile_loop.comparer._patience = 0.2

    def unlimited(self) -> None:
        """As many requests a second as it likes from now on, so that its end is none of waiting."""
        limit = self.engine.writing.client.pacing.limit
        if limit is not None:
            limit.qps = 1e6  # those who wait in it now are let out by this, too

    async def end(self) -> None:
        """Ask it to end, and wait for that."""
        self._stop.set()
        async with asyncio.timeout(DEADLINE):
            await self.task


@asynccontextmanager
async def operator(stage: Stage, options: EngineOptions = FAST, make_companions: MakeCompanions = no_companions) -> AsyncIterator[Running]:
    """An operator at work on this stage, ended in order if the test did not end it."""
    stop = asyncio.Event()
    engine = build_engine(load_config(str(stage.sandbox.kubeconfig)), options, make_companions)
    running = Running(engine, asyncio.create_task(run_engine(engine, stop)), stop)
    try:
        yield running
    finally:
        if not running.task.done():
            await running.end()


@asynccontextmanager
async def new_stage(crds: Sequence[Path] = (CRDS,), **options: Any) -> AsyncIterator[Stage]:
    with pytest.MonkeyPatch.context() as patched:
        for module, name, seconds in BRISK:
            patched.setattr(module, name, seconds)
        async with Sandbox(SandboxOptions(crds=crds, seed=1, **options)) as sandbox:
            yield Stage(sandbox)
