"""How a fault with several replicas ended: what was wrong by the API server's audit log, and a line for the report."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from faults.report import Run
from lab.controlplane.onceaudit import exactly_once

from . import judging
from .replicas import Replicas
from .room import Room, cpu_of, milli


@dataclass
class Verdict:
    """A line for each thing that must not be, and who held the Lease, one after the other."""

    without_the_lead: list[str] = field(default_factory=list)
    doubly_bound: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    overcommitted: list[str] = field(default_factory=list)
    strange: list[str] = field(default_factory=list)
    leaders: list[str] = field(default_factory=list)

    @property
    def faults(self) -> list[str]:
        """Everything that must not be."""
        return [*self.without_the_lead, *self.doubly_bound, *self.lost, *self.overcommitted, *self.strange]


async def judged(replicas: Replicas) -> Verdict:
    """Ends all replicas that live, and judges all that was heard of them since the stage was set."""
    codes = await replicas.end()
    stage = replicas.stage
    records = replicas.records()
    sent, writes = judging.bindings(records), judging.lease_writes(records)
    placements = stage.views.placements
    pods = [each.as_json() for each in stage.own_pods().values()]
    asks = {each.metadata.uid: cpu_of(each.as_json()) for each in stage.own_pods().values()}
    room = {name: milli(each.status["allocatable"]["cpu"]) for name, each in stage.views.nodes.items()}
    known = {"", *(each.name for each in replicas.members)}
    overfilled = Room((each.as_json() for each in stage.views.nodes.values()), pods).overfilled()
    return Verdict(
        without_the_lead=judging.without_the_lead(writes, sent),
        doubly_bound=list(exactly_once([each.asked for each in sent], placements).faults),
        lost=[f"{uid} has no node" for uid, node in placements.items() if not node],
        overcommitted=[*judging.overcommitted(sent, asks, room), *(f"{name} is too full" for name in overfilled)],
        strange=[f"{each}: a stranger" for each in sent if each.replica not in known] + [f"exit code {code}" for code in codes if code],
        leaders=judging.reigns(writes),
    )


def report(file: Path | None, fault: str, replicas: Replicas, verdict: Verdict, recovery: float) -> None:
    """A line for the table; on a real control plane there are no seeds, and what events and conditions say is not judged."""
    if file is None:
        return
    placements = replicas.stage.views.placements
    Run(
        fault=f"{fault}, on kube-apiserver",
        seed=0,
        pods=len(placements),
        bound=sum(map(bool, placements.values())),
        doubly_bound=len(verdict.doubly_bound),
        lost=len(verdict.lost),
        overcommitted=len(verdict.overcommitted),
        untrue=0,
        untold=0,
        unled=len(verdict.without_the_lead),
        terms=len(verdict.leaders),
        recovery=round(recovery, 2),
    ).append_to(file)
