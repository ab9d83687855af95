"""A cluster for faults: an API server in a process of its own, replicas in processes of their own, and a proxy before each replica."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise, zip_longest
from pathlib import Path
from random import Random
from typing import Any, Final

from kubesandbox.auth.credentials import make_credentials, write_private
from manifest import Object, manifest
from news import News
from pacing import paced
from placewright_lab.demo.feed import background

from .api import Api, Refused, api_of
from .audit import OURS, Findings, audit, node_counts
from .deviceaudit import ClaimReplay, leaks, unaccounted
from .groupaudit import GroupAudit, lapses
from .history import GROUP_LABEL, History, PodView
from .proxy import BindingRequest, Proxy
from .replica import Replica, operator
from .warm import api_server

#: Who publishes devices on stage; also the name of their class.
DRIVER: Final = "gpu.sandbox.placewright.dev"
_DEFINITIONS: Final = Path(__file__).parents[2] / "crds"
CRDS: Final = (_DEFINITIONS, _DEFINITIONS / "groups")
PODS: Final = "/api/v1/pods"
NODES: Final = "/api/v1/nodes"
OWN_PODS: Final = "/api/v1/namespaces/default/pods"
EVENTS: Final = "/apis/events.k8s.io/v1/events"
OWN_EVENTS: Final = "/apis/events.k8s.io/v1/namespaces/default/events"
LEASES: Final = "/apis/coordination.k8s.io/v1/leases"
PEERINGS: Final = "/apis/kopf.dev/v1/clusterkopfpeerings"
GROUPS: Final = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups"
RESOURCES: Final = "/apis/resource.k8s.io/v1"
OWN_CLAIMS: Final = f"{RESOURCES}/namespaces/default/resourceclaims"
PRIORITY_CLASSES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"
TEMPLATES: Final = f"{RESOURCES}/namespaces/default/resourceclaimtemplates"
SLICES: Final = f"{RESOURCES}/resourceslices"
PROFILES: Final = "/apis/placewright.dev/v1alpha1/schedulingprofiles"
#: How long a replica that vanished keeps its lead here, seconds; as short as Kopf's keep-alive, once a second, bears on a loaded machine.
LIFETIME: Final = 4
#: The leader acts for so long after it sent a renewal that was granted, seconds; proportions are kube-scheduler's.
RENEWED_WITHIN: Final = LIFETIME * 2 / 3
#: How long anything on stage may take before the test fails, seconds.
DEADLINE: Final = 40.0
_CREATING_AT_ONCE: Final = 16
_LAST_LINES: Final = 25
#: What a Binding is told whose pod is gone, or bound already.
_TOO_LATE: Final = (404, 409)
#: Far more than happen before a watch of the audit that broke is back.
_REMEMBERED_CHANGES: Final = "20000"


class Stage:
    """What a test may do and see. `random` is seeded: a run can be repeated."""

    def __init__(self, folder: Path, seed: int, kubeconfig: Path, api: Api) -> None:
        self.api = api
        self.folder = folder
        self.seed = seed
        self.random = Random(seed)
        self.replicas: list[Replica] = []
        self.proxies: list[Proxy] = []
        #: Uids of pods of ours.
        self.created: list[str] = []
        #: By group, how many of its members are placed together.
        self.groups: dict[str, int] = {}
        #: By uid, how many devices a pod claims.
        self.claiming: dict[str, int] = {}
        #: Uids that the test saw somebody else bind.
        self.foreign: set[str] = set()
        #: Where more is to be done than the machine can do, a replica may lose the lead while a Binding is on its way, and tell of none.
        self.every_event_is_due = True
        #: Seconds from a fault, or from its end, to the next first Binding.
        self.recovery: float | None = None
        self._news = News()
        self.history = History(self._news.set)
        self._credentials = make_credentials()
        self._kubeconfig = kubeconfig
        self._names = itertools.count()
        self._counts: dict[str, int] = {}
        self._away = 0.0
        self._watching: list[asyncio.Task[None]] = []

    # --- what is put on stage ---

    async def node(self, name: str, *, cpu: str = "8", memory: str = "16Gi", pods: str = "110") -> None:
        room = {"cpu": cpu, "memory": memory, "pods": pods}
        status = {"allocatable": room, "capacity": room, "conditions": [{"type": "Ready", "status": "True"}]}
        await self.api.create(NODES, manifest("v1", "Node", name, {"labels": {"kubernetes.io/hostname": name}}, status=status))

    async def nodes(self, count: int, **wanted: str) -> list[str]:
        names = [f"node-{number}" for number in range(count)]
        await asyncio.gather(*(self.node(name, **wanted) for name in names))
        return names

    async def profile(self, **spec: Any) -> None:
        content = {"schedulerName": OURS, "backoff": {"maxSeconds": 1}, **spec}
        await self.api.create(PROFILES, manifest("placewright.dev/v1alpha1", "SchedulingProfile", "default", spec=content))

    async def pod(
        self,
        name: str = "",
        *,
        cpu: str = "100m",
        memory: str = "64Mi",
        scheduler: str = OURS,
        group: str = "",
        templates: Sequence[str] = (),
        priority_class: str = "",
        grace: int = 30,
    ) -> str:
        """Create one, a member of `group`, with a claim from each of the `templates`; its uid. `grace`: seconds that its end takes."""
        resources = {"requests": {"cpu": cpu, "memory": memory}}
        spec: Object = {"schedulerName": scheduler} | ({"priorityClassName": priority_class} if priority_class else {})
        spec["terminationGracePeriodSeconds"] = grace
        spec["containers"] = [{"name": "main", "image": "example.test/main", "resources": resources}]
        spec["resourceClaims"] = [{"name": f"c{at}", "resourceClaimTemplateName": each} for at, each in enumerate(templates)]
        meta = {"namespace": "default", "labels": {GROUP_LABEL: group} if group else {}}
        made = await self.api.create(OWN_PODS, manifest("v1", "Pod", name or f"web-{next(self._names)}", meta, spec=spec))
        uid = str(made["metadata"]["uid"])
        if scheduler == OURS:
            self.created.append(uid)
        if templates:
            self.claiming[uid] = sum(self._counts[each] for each in templates)
        return uid

    async def pods(self, count: int, **wanted: Any) -> list[str]:
        """Create so many at once; their uids."""
        slots = asyncio.Semaphore(_CREATING_AT_ONCE)

        async def one() -> str:
            async with slots:
                return await self.pod(**wanted)

        return list(await asyncio.gather(*(one() for _ in range(count))))

    async def group(self, name: str, needed: int, members: int = 0, **wanted: Any) -> list[str]:
        """Declare a group and create its members, as many as are placed together if no more are asked for; their uids."""
        self.groups[name] = needed
        await self.api.create(GROUPS, manifest("scheduling.x-k8s.io/v1alpha1", "PodGroup", name, spec={"minMember": needed}))
        return await self.pods(members or needed, group=name, **wanted)

    async def claim_template(self, name: str, count: int) -> None:
        """Claims made from it ask for so many devices."""
        self._counts[name] = count
        request = {"name": "gpu", "exactly": {"deviceClassName": DRIVER, "count": count}}
        spec = {"spec": {"devices": {"requests": [request]}}}
        await self.api.create(TEMPLATES, manifest("resource.k8s.io/v1", "ResourceClaimTemplate", name, spec=spec))

    async def priority_class(self, name: str, value: int, *, preempts: bool = False) -> None:
        """Create a PriorityClass. Its pods evict others only if `preempts` is true."""
        policy = "PreemptLowerPriority" if preempts else "Never"
        body = manifest("scheduling.k8s.io/v1", "PriorityClass", name, value=value, preemptionPolicy=policy)
        await self.api.create(PRIORITY_CLASSES, body)

    @asynccontextmanager
    async def burst(self, count: int, **wanted: Any) -> AsyncIterator[asyncio.Task[list[str]]]:
        """Pods are being created while this is open; when it is left they have been."""
        async with background(self.pods(count, **wanted), "burst") as creating:
            yield creating
            await creating

    @asynccontextmanager
    async def steadily(self, a_second: float, **wanted: str) -> AsyncIterator[None]:
        """A pod is created every so often while this is open."""
        enough = False

        async def create() -> None:
            async for _ in paced(a_second):
                if enough:
                    return
                await self.pod(**wanted)

        async with background(create(), "steady stream of pods") as creating:
            yield
            enough = True
            await creating

    async def delete_pod(self, uid: str) -> None:
        """At once, as if its kubelet had seen to it."""
        await self.api.delete(f"{OWN_PODS}/{self.name_of(uid)}")

    def name_of(self, uid: str) -> str:
        return self.history.first[uid].key.partition("/")[2]

    async def bind(self, uid: str, node: str) -> bool:
        """As another scheduler would; whether the API server agreed."""
        name, target = self.name_of(uid), {"apiVersion": "v1", "kind": "Node", "name": node}
        body = manifest("v1", "Binding", name, {"namespace": "default", "uid": uid}, target=target)
        try:
            await self.api.request("POST", f"{OWN_PODS}/{name}/binding", body)
        except Refused as refused:
            if refused.code not in _TOO_LATE:
                raise
            return False
        self.foreign.add(uid)
        return True

    async def restart_api_server(self, seconds: float) -> None:
        """All its connections break, and it listens again after so long; what it stores is kept, as etcd keeps it."""
        self._away += seconds
        await self.api.request_without_answer("/sandbox/refuse-connections", {"seconds": seconds})

    # --- replicas ---

    async def replicas_at_work(
        self, count: int, clocks_ahead: Sequence[float] = (), *, probe: bool = True, machine: str = "", source: Path | None = None
    ) -> list[Replica]:
        """So many replicas, ready, which know each other, and one of which has bound a pod (unless there is to be no `probe`)."""
        started = [await self.replica(ahead, machine, source) for _, ahead in zip_longest(range(count), clocks_ahead, fillvalue=0.0)]
        await self.until_ready(*started)
        await self.until(lambda: len(self.history.peers) == count, f"{count} replicas are peers")
        if probe:
            uid = await self.pod(cpu="1m", memory="1Mi")
            await self.until(lambda: self.node_of(uid), "somebody binds")
        return started

    async def leader_and_heir(self) -> tuple[Replica, Replica]:
        """Of two replicas the one that leads now, and the other."""
        leader = await self.until_somebody_leads()
        (heir,) = (each for each in self.replicas if each is not leader)
        return leader, heir

    async def replica(self, clock_ahead: float = 0.0, machine: str = "", source: Path | None = None) -> Replica:
        """A further replica, started.

        Its wall clock may be some seconds ahead of ours, its `machine` one of another kind, and its code that of another checkout.
        """
        name = f"replica-{len(self.replicas)}"
        proxy = Proxy(name, self._kubeconfig, self.seed)
        self.proxies.append(proxy)
        kubeconfig = self.folder / f"{name}.kubeconfig"
        write_private(kubeconfig, await proxy.start(self._credentials))
        made = Replica(name, proxy, operator(kubeconfig, LIFETIME, clock_ahead, machine), self.folder, source=source)
        self.replicas.append(made)
        await made.start()
        return made

    async def until_ready(self, *replicas: Replica) -> None:
        """Until each of them has filled its caches."""
        await self.until(lambda: all("synced: " in each.log.read_text() for each in replicas), f"{len(replicas)} replicas are ready")

    async def until_somebody_leads(self) -> Replica:
        """The replica that the Lease names; waits while it names nobody."""
        await self.until(lambda: self.history.holders and self.history.holders[-1][1], "the Lease names a replica")
        return self.by_name(self.history.holders[-1][1].partition("/")[0])

    def node_of(self, uid: str) -> str:
        """Where the pod is, or was when it was last seen."""
        found = self.history.last.get(uid)
        return found.node if found is not None else ""

    def by_name(self, name: str) -> Replica:
        return next(each for each in self.replicas if each.name == name)

    def requests(self) -> list[BindingRequest]:
        """Every Binding that a replica sent, in order of arrival."""
        return sorted((each for proxy in self.proxies for each in proxy.bindings), key=lambda each: each.at)

    # --- waiting ---

    async def until(self, condition: Callable[[], Any], what: str, seconds: float = DEADLINE) -> None:
        def holds() -> bool:
            if condition():
                return True
            self._fail_if_blind()
            return False

        await self._news.until(holds, lambda: f"{what}; {self._waiting()}", seconds)

    async def until_bound(self, count: int) -> None:
        """Until so many pods, of all that there ever were, have got a node."""
        await self.until(lambda: self.history.bound >= count, f"{count} pods have a node")

    async def until_settled(self) -> None:
        """Until each pod that was created is seen, and is gone, or has a node, or is said to be unschedulable."""
        first = self.history.first
        await self.until(lambda: all(uid in first for uid in self.created) and not self._waiting(), "all pods are settled")

    async def until_told(self) -> None:
        """Until there is an event for each pod that was placed; what was placed by a replica that was killed may have none."""
        if self.every_event_is_due:
            await self.until(lambda: not self._untold(), "all placed pods have an event")

    def _untold(self) -> list[str]:
        excused = self.foreign | {each.uid for each in self.requests() if self.by_name(each.replica).killed}
        told = {one.uid for one in self.history.said.values() if one.reason == "Scheduled"} | excused
        return [uid for uid, pod in self.history.pods.items() if pod.node and pod.scheduler == OURS and uid not in told]

    async def until_agreed(self) -> None:
        """Until each replica that is left finds no difference between what it believes and what the API server says."""
        for proxy in self.proxies:
            await proxy.calm()
        async with asyncio.TaskGroup() as group:
            for each in self.replicas:
                if each.alive:
                    group.create_task(self._until_it_agrees(each))

    async def until_used(self) -> None:
        """Until groups and claims have had their next turn: with the room and the devices that were freed last nobody waits."""
        if self.groups or self.claiming:
            with contextlib.suppress(AssertionError):  # the audit says it better
                await self.until(lambda: not ((found := self.audit()).lost or found.split or found.astray), "nothing is left to do")

    async def _until_it_agrees(self, replica: Replica) -> None:
        found = ""
        deadline = now() + DEADLINE
        while not found.endswith(" no difference"):
            assert now() < deadline, f"{replica.name}: {found}"
            known = len(replica.comparisons())
            replica.compare()
            await self.until(lambda known=known: len(replica.comparisons()) > known, f"{replica.name} compares")  # type: ignore[misc]
            found = replica.comparisons()[-1]

    async def until_recovered(self, since: float, replica: Replica | None = None) -> None:
        """Until a Binding sent after `since` (by this replica) has succeeded; how long that took is the run's figure."""

        def first() -> BindingRequest | None:
            later = (each for each in self.requests() if each.at > since and each.code == 201)
            return next((each for each in later if replica is None or each.replica == replica.name), None)

        await self.until(first, "Bindings succeed again")
        found = first()
        assert found is not None
        self.recovery = found.at - since

    def _waiting(self) -> str:
        waiting = [pod for pod in self.history.pods.values() if _waits(pod)]
        unseen = sum(uid not in self.history.first for uid in self.created)
        return f"{len(waiting)} pods wait ({waiting[0].key}: {waiting[0].condition})" if waiting else f"{unseen} unseen" * bool(unseen)

    def _fail_if_blind(self) -> None:
        for task in self._watching:
            if task.done():
                task.result()
                raise AssertionError(f"{task.get_name()} ended")

    # --- the end ---

    async def faults(self) -> list[str]:
        """What the audit finds, once all pods are settled."""
        await self.until_settled()
        await self.until_told()
        await self.until_used()
        return self.audit().faults

    def audit(self) -> Findings:
        """Everything that was seen, judged."""
        self._fail_if_blind()
        counts = node_counts(changes := sorted(self.history.changes, key=lambda change: change.version))
        groups = GroupAudit(self.history, self.requests(), self.groups)
        special = unaccounted(self.history, self.claiming, counts) | groups.unaccounted(counts)
        found = audit(self.history, self.requests(), self.created, self.foreign, special)
        if self.groups:
            found.split = [*groups.not_together(changes, self._stopped(), self._away), *groups.split()]
            found.groups, found.halfway = len(self.groups), len(groups.halfway)
        if self.claiming:
            found.astray = [*ClaimReplay(self.foreign).run(changes), *leaks(self.history)]
            found.claims = self.history.made
        return found

    def _stopped(self) -> list[tuple[str, float]]:
        """Which replica could not go on, from when: it was killed, stood still, lost the lead, or only the renewals of it."""
        terms = [(identity.partition("/")[0], at) for (_, identity), (at, _) in pairwise(self.history.holders)]
        lapsed = [(each.replica, at) for each in self.proxies for at in lapses(each.renewals, RENEWED_WITHIN)]
        return [*terms, *lapsed, *((each.name, at) for each in self.replicas for at in each.stopped)]

    def words(self) -> str:
        """The end of each replica's log."""
        return "\n".join(f"--- {each.log}\n" + "\n".join(each.log.read_text().splitlines()[-_LAST_LINES:]) for each in self.replicas)

    # --- from start to end ---

    def start(self) -> None:
        heard = self.history
        for path, hear in (
            (PODS, heard.pod_changed),
            (NODES, heard.node_changed),
            (EVENTS, heard.event_changed),
            (LEASES, heard.lease_changed),
            (PEERINGS, heard.peering_changed),
            (f"{RESOURCES}/resourceclaims", heard.claim_changed),
            (SLICES, heard.slice_changed),
        ):
            self._watching.append(asyncio.create_task(self.api.watch(path, hear), name=f"watch of {path}"))

    async def close(self) -> None:
        """Whatever happened, nothing is left running."""
        await asyncio.gather(*(each.kill() for each in self.replicas), return_exceptions=True)
        await asyncio.gather(*(each.close() for each in self.proxies), return_exceptions=True)
        for task in self._watching:
            task.cancel()
        await asyncio.gather(*self._watching, return_exceptions=True)


def _waits(pod: PodView) -> bool:
    unplaced = pod.scheduler == OURS and not (pod.node or pod.over or pod.leaving)
    return unplaced and pod.condition[:2] != ("False", "Unschedulable")


def now() -> float:
    """Monotonic seconds, as every record here has them."""
    return time.monotonic()


@asynccontextmanager
async def new_stage(folder: Path, seed: int, devices: int = 0, ends: float = 0.05) -> AsyncIterator[Stage]:
    """A stage with a profile, without nodes and replicas yet. Nodes will have so many devices; a pod ends in so many seconds at most."""
    definitions = [word for each in CRDS for word in ("--crds", str(each))]
    arguments = ["--history", _REMEMBERED_CHANGES, "--devices", str(devices), "--end-seconds", str(ends), *definitions]
    async with api_server(folder, arguments) as kubeconfig, api_of(kubeconfig) as api:
        stage = Stage(folder, seed, kubeconfig, api)
        try:
            stage.start()
            await stage.profile()
            yield stage
        finally:
            await stage.close()
