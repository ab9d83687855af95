"""The content of a demo: the objects, the profiles of its pods, and the change half-way. Pure functions."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from placewright.api.bad_input import bad_field
from placewright.api.profile import DEFAULT_SCHEDULER_NAME, GROUP, KIND, VERSION
from placewright.offline.kinds import Manifest
from placewright_lab.readers.inputs import Inputs

#: The change from kube-scheduler's defaults, which spread, to packing, by NodeResourcesFit's preference and weight.
FIRST_SPEC: Final[Manifest] = {
    "weights": {"NodeResourcesFit": 1},
    "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "LeastAllocated"}}}],
}
CHANGE: Final[Manifest] = {
    "spec": {
        "weights": {"NodeResourcesFit": 10},
        "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}],
    }
}


@dataclass(frozen=True)
class DemoScenario:
    """A demo's content.

    Attributes:
        nodes, pods: manifests.
        objects: everything that must exist before the pods, including nodes and profiles.
        profile: name of the profile of most pods, which changes half-way.
        scheduler: name by which pods ask for the profile.
        change: merge patch of the profile.
        notes: remarks for people before the run.
        problems: errors, with the objects that were left out for them.
    """

    nodes: Sequence[Manifest]
    pods: Sequence[Manifest]
    objects: Sequence[Manifest]
    profile: str
    change: Manifest
    notes: Sequence[str]
    problems: Sequence[str] = ()
    scheduler: str = DEFAULT_SCHEDULER_NAME

    @property
    def change_command(self) -> str:
        """The command with which a person would make the change."""
        return f"kubectl patch schedprof {self.profile} --type merge -p '{json.dumps(self.change, separators=(',', ':'))}'"


def make_scenario(inputs: Inputs) -> DemoScenario:
    """Add a profile for every scheduler that the pods name and the input has no profile for. Raises `InputError` for an empty input."""
    for what, found in (("nodes", inputs.nodes), ("pods", inputs.pods)):
        if not found:
            raise bad_field(f"the input's {what}", "none", "at least one")
    wanted = Counter(_scheduler(pod) for pod in inputs.pods)
    present = {p["spec"].get("schedulerName", DEFAULT_SCHEDULER_NAME): p for p in inputs.others if _is_profile(p)}
    made = {name: _profile(name) for name in wanted if name not in present}
    main = wanted.most_common(1)[0][0]
    return DemoScenario(
        nodes=inputs.nodes,
        pods=inputs.pods,
        objects=[*inputs.others, *made.values(), *inputs.nodes],
        profile={**present, **made}[main]["metadata"]["name"],
        change=CHANGE,
        notes=[*inputs.notes, *_scheduler_notes(wanted)],
        problems=inputs.problems,
        scheduler=main,
    )


def _scheduler(pod: Manifest) -> str:
    return str(pod["spec"].get("schedulerName") or DEFAULT_SCHEDULER_NAME)


def _is_profile(manifest: Manifest) -> bool:
    return manifest["kind"] == KIND and isinstance(manifest.get("spec"), dict)


def _profile(scheduler: str) -> Manifest:
    """Return a profile for pods of `scheduler`, or `default` for pods that name none."""
    name = "default" if scheduler == DEFAULT_SCHEDULER_NAME else re.sub(r"[^a-z0-9]+", "-", scheduler.lower()).strip("-")
    spec = {"schedulerName": scheduler, **FIRST_SPEC}
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": KIND, "metadata": {"name": name or "unnamed"}, "spec": spec}


def _scheduler_notes(wanted: Counter[str]) -> list[str]:
    others = {name: count for name, count in wanted.items() if name != DEFAULT_SCHEDULER_NAME}
    return [f"{count} pods name the scheduler {name}: a profile for it is made" for name, count in others.items()]
