"""Makers of scenarios: manifests in a few words, random clusters, and what a simulation made of them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from placewright import testing as kit
from placewright.framework.interface import Plugin
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.offline.kinds import Manifest
from placewright.plugins.catalog import in_tree
from placewright_lab.simulation.outcome import Outcome
from placewright_lab.simulation.scenario import Act, Happening, Scenario
from placewright_lab.simulation.simulation import Which, simulate


def a_node(name: str, cpu: str = "4", memory: str = "16Gi", taint: str = "", **labels: str) -> Manifest:
    made = kit.node(name, labels=labels, cpu=cpu, memory=memory).spec()
    return (made.taint(taint) if taint else made).manifest


def a_pod(name: str, cpu: str = "1", *, on: str = "", priority: int = 0, meta: Mapping[str, Any] | None = None, **spec: Any) -> Manifest:
    made = kit.pod(name, on=on, cpu=cpu).priority(priority).phase("Running" if on else "Pending")
    return made.metadata(**(meta or {})).spec(**spec).manifest


def comes(at: float, manifest: Manifest) -> Happening:
    return Happening(at, Act.ADDED, manifest)


def changes(at: float, manifest: Manifest) -> Happening:
    return Happening(at, Act.MODIFIED, manifest)


def goes(at: float, manifest: Manifest) -> Happening:
    return Happening(at, Act.DELETED, manifest)


def a_profile(*plugins: type[Plugin], name: str = "default", **spec: Any) -> ResolvedProfile:
    """Make a profile with these out-of-tree plugins, all enabled."""
    made = kit.profile(name)
    for plugin in plugins:
        made = made.enable(plugin)
    return made.spec(**spec).resolved(*plugins)


def run(
    objects: Sequence[Manifest],
    happenings: Sequence[Happening] = (),
    *plugins: type[Plugin],
    durations: Mapping[str, float] | None = None,
    seed: int = 0,
    which: Which = Which.PENDING,
    **spec: Any,
) -> Outcome:
    scenario = Scenario("test", objects, happenings, durations or {})
    return simulate(scenario, a_profile(*plugins, **spec), in_tree().extended(plugins), seed=seed, which=which)


def nodes_of(outcome: Outcome) -> dict[str, str | None]:
    """Return the nodes by the names of their pods."""
    return {fate.pod.name: fate.node for fate in outcome.fates.values()}


def random_nodes(rng: random.Random, count: int) -> list[Manifest]:
    return [
        a_node(
            f"node-{index:02d}",
            cpu=str(rng.choice((2, 4, 8))),
            memory=f"{rng.choice((4, 8, 32))}Gi",
            taint="dedicated" if rng.random() < 0.15 else "",
            **{"topology.kubernetes.io/zone": rng.choice("abc"), "disk": rng.choice(("ssd", "hdd"))},
        )
        for index in range(count)
    ]


def random_pod(rng: random.Random, name: str, priority: int, *, on: str = "", **spec: Any) -> Manifest:
    """Make a pod that may spread, choose its nodes, tolerate a taint, or only ask for room."""
    app = rng.choice(("web", "db", "batch"))
    made = a_pod(name, f"{rng.choice((100, 500, 1000, 2000))}m", on=on, priority=priority, meta={"labels": {"app": app}}, **spec)
    made["spec"]["containers"][0]["resources"]["requests"]["memory"] = f"{rng.choice((64, 512, 2048))}Mi"
    if rng.random() < 0.2:
        made["spec"]["nodeSelector"] = {"disk": rng.choice(("ssd", "hdd"))}
    if rng.random() < 0.3:
        made["spec"]["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    if rng.random() < 0.4:
        key, strict = rng.choice(("topology.kubernetes.io/zone", "kubernetes.io/hostname")), rng.random() < 0.3
        constraint = {"maxSkew": 2, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule" if strict else "ScheduleAnyway"}
        made["spec"]["topologySpreadConstraints"] = [{**constraint, "labelSelector": {"matchLabels": {"app": app}}}]
    return made
