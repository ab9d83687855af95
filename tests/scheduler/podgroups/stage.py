"""Plays scenarios with groups in virtual time, and takes down what was sent to the API server, and when."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from lab.simulation.scenarios import a_profile
from placewright.api.errors import BindError
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.framework.interface import Plugin
from placewright_lab.simulation import simulation
from placewright_lab.simulation.apiserver import ApiServer
from placewright_lab.simulation.outcome import Outcome
from placewright_lab.simulation.scenario import Scenario
from placewright_lab.simulation.simulation import simulate

from .judge import LABEL, MODE, TOPOLOGY, Deed, Judge, Manifest


def pod_group(name: str, members: int, *, topology: str = "", mode: str = "required") -> Manifest:
    notes = {"annotations": {TOPOLOGY: topology, MODE: mode}} if topology else {}
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", **notes},
        "spec": {"minMember": members},
    }


def in_group(of: str) -> dict[str, Any]:
    """Metadata of a member."""
    return {"labels": {LABEL: of}}


class Play:
    """A scenario that was played.

    Attributes:
        deeds: in the order in which they were done.
        refuses: says of each Binding whether the API server refuses it.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.deeds: list[Deed] = []
        self.refuses: Callable[[], bool] = lambda: False
        deeds, play = self.deeds, self

        class Watched(ApiServer):
            async def bind(self, pod: PodInfo, node: NodeName, annotations: dict[str, str]) -> None:
                refused = play.refuses()
                deeds.append(Deed(self._clock(), "refused" if refused else "bind", pod.name, node))
                if refused:
                    raise BindError("given up after 5 attempts: 500")
                await super().bind(pod, node, annotations)

            async def evict(self, victim: PodInfo, preemptor: PodInfo, node: NodeName) -> None:
                deeds.append(Deed(self._clock(), "evict", victim.name, node, preemptor.name))
                await super().evict(victim, preemptor, node)

            def remove_pod(self, uid: str) -> None:
                known = self._pods.get(uid)
                if known is not None:
                    deeds.append(Deed(self._clock(), "gone", known.name, known.node_name))
                super().remove_pod(uid)

        monkeypatch.setattr(simulation, "ApiServer", Watched)

    def run(self, scenario: Scenario, *plugins: type[Plugin], seed: int = 0, **spec: Any) -> Outcome:
        from placewright.plugins.catalog import in_tree  # noqa: PLC0415 - the registry is made anew for every play

        self.deeds.clear()
        return simulate(scenario, a_profile(*plugins, **spec), in_tree().extended(plugins), seed=seed)

    def judged(self, scenario: Scenario) -> Judge:
        """What the judge found."""
        everything: Sequence[Manifest] = [*scenario.objects, *(happening.manifest for happening in scenario.happenings)]
        by_kind: dict[str, dict[str, Manifest]] = {"Node": {}, "Pod": {}, "PodGroup": {}}
        for manifest in everything:
            by_kind[manifest["kind"]].setdefault(manifest["metadata"]["name"], manifest)
        judge = Judge(by_kind["Node"], by_kind["PodGroup"], by_kind["Pod"])
        running = (pod for pod in scenario.objects if pod["kind"] == "Pod" and pod["spec"].get("nodeName"))
        at_first = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in running}
        judge.go_through(self.deeds, at_first)
        return judge
