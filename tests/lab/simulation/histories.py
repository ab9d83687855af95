"""Histories drawn at random, of everything that placement reads, and a simulation that looks for forgotten pods all along.

Whenever nothing is left to decide, every waiting pod is decided afresh: one that would fit was let wait by a hint.
"""

from __future__ import annotations

import asyncio
import copy
from collections import Counter
from collections.abc import Callable, Collection
from functools import cache
from random import Random
from typing import Any, Final, cast

from lab.snapshots import anyworld
from lab.snapshots.anyworld import Body, World
from lab.snapshots.deviceworld import DeviceWorld
from placewright.api.podgroups import GROUP_LABEL
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.plugins.catalog import in_tree
from placewright.profiles.config import read_profiles
from placewright.profiles.resolve import resolve
from placewright.scheduler.selfcheck import Forgotten, SelfCheck, SkipReason
from placewright.testing import coscheduling_group
from placewright_lab.simulation.scenario import Act, Happening, Scenario
from placewright_lab.simulation.simulation import Simulation, Which
from placewright_lab.simulation.virtualtime import VirtualTimeLoop
from placewright_legacy_plugins import NodeLabel, NodePreferAvoidPods, SelectorSpread, ServiceAffinity

#: The plugins of old are a package of their own.
REGISTRY: Final = in_tree().extended([NodeLabel, NodePreferAvoidPods, SelectorSpread, ServiceAffinity])
SECONDS_A_STEP: Final = 20.0
#: Beside those of `anyworld`: one that counts Services' pods strictly, and one with plugins of old.
MORE_PROFILES: Final = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: strict
  pluginConfig:
  - name: PodTopologySpread
    args:
      defaultingType: List
      defaultConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}]
- schedulerName: labelled
  plugins: {multiPoint: {enabled: [{name: NodeLabel}, {name: ServiceAffinity}]}}
  pluginConfig:
  - {name: NodeLabel, args: {presentLabels: [disk], absentLabels: []}}
  - {name: ServiceAffinity, args: {affinityLabels: [disk]}}
"""
#: The spec of these never changes: what is drawn anew is another one of the same name.
REPLACED: Final = ("ResourceClaim", "StorageClass", "PersistentVolumeClaim")
SCHEDULERS: Final = (*anyworld.SCHEDULERS, "strict", "labelled")


@cache
def all_profiles() -> tuple[ResolvedProfile, ...]:
    more = [resolve(one, REGISTRY) for one in read_profiles(MORE_PROFILES, "profiles")]
    return (*anyworld.profiles_by_scheduler().values(), *more)


class History:
    """Draws a cluster, and its later events.

    Attributes:
        seen: number of each kind of event.
    """

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        self.seen: Counter[str] = Counter()
        self._world, self._devices = World(seed), DeviceWorld(seed)
        self._made = 0
        self._now: dict[tuple[str, str], Body] = {}

    def scenario(self, steps: int) -> Scenario:
        objects = [*self._world.objects(), *self._devices.objects(), *(self._csi_node(node) for node in ("node-a", "node-b"))]
        for each in objects:
            self._others_profiles(each)
            self._now[_key(each)] = each
        begin = copy.deepcopy(objects)
        happenings = [each for step in range(1, steps + 1) for each in self._step(step * SECONDS_A_STEP)]
        return Scenario("history", begin, happenings)

    # --- what happens -----------------------------------------------------------------------------------------------------------

    def _step(self, at: float) -> list[Happening]:
        acts: dict[Callable[[], Happening | None], int] = {
            self._pod_comes: 6, self._pod_comes_on_a_node: 2, self._goes: 5, self._changes: 12, self._pod_changes: 4, self._node_changes: 6
        }  # fmt: skip
        act = self.dice.choices([*acts], [*acts.values()])[0]
        found = act()
        if found is None:
            return []
        self.seen[f"{found.manifest['kind']} {found.act}"] += 1
        happened = Happening(at, found.act, copy.deepcopy(found.manifest))
        if found.act is Act.MODIFIED and found.manifest["kind"] in REPLACED:
            return [Happening(at - 1, Act.DELETED, happened.manifest), Happening(at, Act.ADDED, happened.manifest)]
        return [happened]

    def _pod_comes(self) -> Happening:
        return self._put(self._pod(""))

    def _pod_comes_on_a_node(self) -> Happening | None:
        nodes = self._names("Node")
        return self._put(self._pod(self.dice.choice(nodes))) if nodes else None

    def _pod(self, node: str) -> Body:
        self._made += 1
        name = f"new-{self._made}"
        if self.dice.random() < 0.2:
            return self._devices._pod(name, node, self.dice.choice(self._names("ResourceClaim") or ["none"]))
        return self._others_profiles(self._world._pod(name, node))

    def _others_profiles(self, manifest: Body) -> Body:
        if manifest["kind"] == "Pod":
            manifest["spec"].setdefault("schedulerName", "default-scheduler")
            if self.dice.random() < 0.3:
                manifest["spec"]["schedulerName"] = self.dice.choice(SCHEDULERS)
        return manifest

    def _goes(self) -> Happening | None:
        kind = self.dice.choice(["Pod"] * 6 + sorted({kind for kind, _ in self._now}))
        names = self._names(kind)
        if not names:
            return None
        return Happening(0, Act.DELETED, self._now.pop((kind, self.dice.choice(names))))

    def _changes(self) -> Happening | None:
        """One of the objects that are neither pods nor nodes comes, comes back, or is drawn anew."""
        world, devices, dice = self._world, self._devices, self.dice
        nodes = self._names("Node") or ["node-a"]
        hosts = [name for name in nodes if name.startswith("host-")] or ["host-a"]
        drawn: list[Callable[[], Body]] = [
            lambda: world._namespace(dice.choice(["home", "away", "default"])),
            lambda: world._claim(f"data{dice.randrange(4)}"),
            lambda: world._volume(f"pv{dice.randrange(4)}", nodes),
            lambda: dice.choice(world._classes()),
            lambda: self._csi_node(dice.choice(nodes)),
            world._service,
            lambda: world._owner("ReplicaSet", "apps/v1", "owner-rs"),
            lambda: dice.choice(devices._classes()),
            lambda: dice.choice(devices._slices(dice.choice(hosts))),
            lambda: devices._claim(f"asked-{dice.randrange(3)}", allocated=False),
            *([devices._rule] if devices._free else []),
        ]
        return self._put(dice.choice(drawn)())

    def _pod_changes(self) -> Happening | None:
        """A pod that waits or runs gets other labels, tolerations, or asks for less."""
        names = self._names("Pod")
        if not names:
            return None
        pod = copy.deepcopy(self._now["Pod", self.dice.choice(names)])
        what = self.dice.choice(("labels", "tolerations", "requests", "terminating"))
        if what == "labels":
            pod["metadata"]["labels"] = self._world._labels()
        elif what == "tolerations":
            pod["spec"]["tolerations"] = [*pod["spec"].get("tolerations", ()), *self._world._tolerations()]
        elif what == "requests":
            pod["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "50m"}
        else:
            pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:30Z"
        return self._put(pod)

    def _node_changes(self) -> Happening:
        """It comes, or is drawn anew: all of it, or a part."""
        name = self.dice.choice([*self._names("Node"), f"node-{self.dice.choice('abcdefgh')}"])
        drawn = self._devices._node(name) if name.startswith("host-") else self._world._node(name)
        known = self._now.get(("Node", name))
        if known is None or self.dice.random() < 0.2:
            return self._put(drawn)
        node, part = copy.deepcopy(known), self.dice.choice(("labels", "spec", "status"))
        if part == "labels":
            node["metadata"]["labels"] = drawn["metadata"]["labels"]
        else:
            node[part] = drawn.get(part, {})
        return self._put(node)

    def _csi_node(self, name: str) -> Body:
        drivers = [
            {"name": driver, "nodeID": name, "allocatable": {"count": self.dice.randint(0, 2)}}
            for driver in ("ebs.csi.aws.com", "pd.csi.storage.gke.io")
            if self.dice.random() < 0.7
        ]
        return {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": name}, "spec": {"drivers": drivers}}

    # --- what there is ----------------------------------------------------------------------------------------------------------

    def _put(self, manifest: Body) -> Happening:
        known = self._now.get(_key(manifest))
        self._made += 1
        manifest["metadata"]["resourceVersion"] = f"history-{self._made}"
        if manifest["kind"] in REPLACED:
            manifest["metadata"]["uid"] = f"uid-{self._made}"
        self._now[_key(manifest)] = manifest
        return Happening(0, Act.ADDED if known is None else Act.MODIFIED, manifest)

    def _names(self, kind: str) -> list[str]:
        return [name for of, name in self._now if of == kind]


class GroupHistory(History):
    """A history with groups, too. Most have members that are alike, and a part of these are in one zone."""

    def _step(self, at: float) -> list[Happening]:
        return self._group_comes(at) if self.dice.random() < 0.25 else super()._step(at)

    def _group_comes(self, at: float) -> list[Happening]:
        self._made += 1
        name, minimum = f"job-{self._made}", self.dice.randint(2, 5)
        declared = coscheduling_group(name, minimum).namespace("default")
        one = self._world._pod(name, "")
        one["spec"] |= {"schedulerName": "default-scheduler", "priority": 0, "volumes": []}
        if self.dice.random() < 0.9:
            one["spec"].pop("topologySpreadConstraints", None)
            one["spec"]["affinity"] = {key: value for key, value in one["spec"]["affinity"].items() if key == "nodeAffinity"}
        drawn = [(declared.topology(anyworld.ZONE) if self.dice.random() < 0.3 else declared).manifest]
        for index in range(minimum + self.dice.randint(0, 1)):
            member = copy.deepcopy(one)
            labels = {**(one["metadata"].get("labels") or {}), GROUP_LABEL: name}
            member["metadata"] |= {"name": f"{name}-{index}", "uid": f"uid-{name}-{index}", "namespace": "default", "labels": labels}
            drawn.append(member)
        put = [self._put(each) for each in drawn]
        self.seen["group"] += 1
        return [Happening(at, each.act, copy.deepcopy(each.manifest)) for each in put]


def _key(manifest: Body) -> tuple[str, str]:
    return manifest["kind"], manifest["metadata"]["name"]


class Watched(Simulation):
    """Looks at all waiting pods after each decision.

    Attributes:
        found: forgotten pods, and the times at which they were found.
        left: reasons why others were left out.
        looked: number of pods that were decided again, by each plugin that had rejected them.
    """

    def __init__(self, *arguments: Any, in_slices: bool = False) -> None:
        """`in_slices`: waiting pods are told of events as a mass of them would be (`queue.sweeps`)."""
        super().__init__(*arguments)
        if in_slices:
            self._queue.sweeps.a_slice = 0
        self.found: list[tuple[float, Forgotten]] = []
        self.left: Counter[SkipReason] = Counter()
        self.looked: Counter[str] = Counter()
        self._check = SelfCheck(self._cluster, self._queue, self._evaluator, self._loop.time)

    async def _decide(self) -> None:
        while True:
            self._queue.sweeps.sweep_all()
            await super()._decide()
            if not self._queue.sweeps.behind:
                return

    def _next_moment(self) -> float | None:
        for lane in self._queue.profile_queues():
            for queued in tuple(lane.unschedulable):
                rejecting = queued.rejecting_plugins
                self._take(self._check.look(lane, queued), rejecting)
        return super()._next_moment()

    def _take(self, found: Forgotten | SkipReason | None, rejecting: Collection[str]) -> None:
        if isinstance(found, SkipReason):
            self.left[found] += 1
            return
        self.looked.update(rejecting)
        if found is not None:
            self.found.append((self._loop.time(), found))
            self._queue.retry(found.uid, "ForgottenPod")


def watched(scenario: Scenario, *, in_slices: bool = False) -> Watched:
    """The simulation after its end."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        loop = cast("VirtualTimeLoop", runner.get_loop())
        simulation = Watched(loop, scenario, list(all_profiles()), REGISTRY, 0, Which.PENDING, in_slices=in_slices)
        runner.run(simulation.run())
    return simulation
