"""Makers for the tests of preemption: a cluster in a few words, and an attempt to place a pod in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import framework.makers
from placewright import testing as kit
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.api.workloads import PodDisruptionBudget
from placewright.framework.interface import Diagnosis, PostFilterResult
from placewright.framework.ports import NominationChanges
from placewright.framework.preemption.evictions import Evictions
from placewright.framework.runtime.evaluation import Evaluation, Evaluator


def a_pod(
    name: str, priority: int = 0, cpu: str = "1", *, start: str | None = None, labels: Mapping[str, str] | None = None, **rest: Any
) -> PodInfo:
    """A pod. `start` is a day of January 2026; `rest`: `node`, `leaving` (why it is being deleted), `spec` (more fields), `nominated`."""
    maker = kit.pod(name, on=rest.get("node", ""), labels=labels, cpu=cpu, **rest.get("spec", {})).priority(priority).uid(name)
    maker = maker.namespace(rest.get("namespace", "default")).nominated(rest.get("nominated", ""))
    if start:
        maker = maker.status(startTime=f"2026-01-{start}T00:00:00Z")
    if leaving := rest.get("leaving"):
        condition = {"type": "DisruptionTarget", "status": "True", "reason": leaving}
        maker = maker.deleting("2026-02-01T00:00:00Z").status(conditions=[condition])
    return maker.build()


def budget(
    selector: Mapping[str, Any] | None, allowed: int = 0, *, namespace: str = "default", disrupted: Iterable[str] = (), name: str = "b"
) -> PodDisruptionBudget:
    """A PodDisruptionBudget that allows so many evictions more."""
    return kit.disruption_budget(name).namespace(namespace).spec(selector=selector).allows(allowed).disrupted(*disrupted).build()


@dataclass
class Scene(framework.makers.Scene):
    """A cluster under the default profile; it is its own source of nominations."""

    args: dict[str, Any] = field(default_factory=dict)
    #: `spec.preemption`; None for a profile without.
    rules: dict[str, Any] | None = None
    #: `spec.compatibility`.
    compatibility: str = "1.36"
    #: The time of day, a day of January 2026 as seconds since 1970, and seconds of the scheduler's clock.
    today: float = datetime(2026, 1, 31, tzinfo=UTC).timestamp()
    now: float = 0.0
    #: When pods could first be tried, by uid, in seconds of the scheduler's clock.
    tried: dict[str, float] = field(default_factory=dict)
    changes: NominationChanges = field(default_factory=NominationChanges)

    def __post_init__(self) -> None:
        args = [{"name": "DefaultPreemption", "args": self.args}]
        self.spec = {"pluginConfig": args, "compatibility": self.compatibility} | ({} if self.rules is None else {"preemption": self.rules})
        self.evictions = Evictions(self.cluster, lambda: self.now, lambda: self.today, self.tried.get)

    def node(
        self, name: str, *running: PodInfo, cpu: str = "2", unschedulable: bool = False, labels: Mapping[str, str] | None = None
    ) -> Scene:
        """Add a node with these pods on it."""
        self.cluster.set_node(kit.node(name, labels=labels, cpu=cpu, memory="64Gi").spec(unschedulable=unschedulable).build())
        for one in running:
            self.cluster.assume(one, NodeName(name))
        return self

    def budget(self, *args: Any, **kwargs: Any) -> Scene:
        """Add a disruption budget."""
        self.cluster.objects.put(budget(*args, **kwargs))
        return self

    def diagnosed(self, preemptor: PodInfo) -> tuple[Evaluator, Evaluation, Diagnosis]:
        """The pod evaluated; no node may be able to hold it."""
        evaluator = self.evaluator()
        evaluation = evaluator.evaluate(preemptor)
        assert evaluation.count == 0, "a test of preemption needs a pod that fits nowhere"
        return evaluator, evaluation, evaluator.diagnose(evaluation)

    def attempt(self, preemptor: PodInfo) -> PostFilterResult:
        """What PostFilter makes of a pod that fits nowhere."""
        evaluator, evaluation, diagnosis = self.diagnosed(preemptor)
        return evaluator.runtime.run_post_filter(evaluation.state, preemptor, diagnosis)

    def victims(self, preemptor: PodInfo) -> list[str]:
        """Names of the victims, most important first."""
        return [victim.name for victim in self.attempt(preemptor).victims]
