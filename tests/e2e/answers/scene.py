"""One decision of kube-scheduler's, and what Placewright says of the same pod in the same cluster."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from e2e.answers.comparing import Object, counted, judged
from e2e.answers.legacy import our_profile
from e2e.answers.recording import Decision
from placewright.api.decode import convert
from placewright.api.objects import Node, Pod, PodSpec
from placewright.api.pods import PodInfo
from placewright.api.selectors import compile_node_selector, selector_from_pairs
from placewright.api.tolerations import first_untolerated
from placewright.framework.runtime.evaluation import PluginScore
from placewright.plugins.nodeaffinity import RequiredNodeAffinity
from placewright_lab.simulation.evaluation import NodeVerdict, Verdict
from placewright_legacy_plugins import NodeLabel, NodePreferAvoidPods, SelectorSpread, ServiceAffinity

#: By node.
ByNode = dict[str, int]
_LEGACY: Final = (NodeLabel, NodePreferAvoidPods, SelectorSpread, ServiceAffinity)
_AFFINITY: Final = "node(s) didn't match pod affinity/anti-affinity"


@dataclass(frozen=True)
class Scene:
    """A decision with all that the comparison asks about it."""

    decision: Decision

    @cached_property
    def pod(self) -> PodInfo:
        """The pod as the scheduler sees it."""
        return PodInfo(convert(self.decision.pod, Pod))

    @property
    def spec(self) -> PodSpec:
        """The pod's specification."""
        return self.pod.pod.spec

    @cached_property
    def nodes(self) -> dict[str, Node]:
        """All nodes, by name."""
        nodes = (convert(each, Node) for each in self.decision.objects if each["kind"] == "Node")
        return {node.metadata.name: node for node in nodes}

    @cached_property
    def on_nodes(self) -> dict[str, list[PodInfo]]:
        """The pods of each node."""
        found: dict[str, list[PodInfo]] = {name: [] for name in self.nodes}
        for each in self.decision.objects:
            if each["kind"] == "Pod":
                pod = PodInfo(convert(each, Pod))
                found[pod.node_name].append(pod)
        return found

    @cached_property
    def matching(self) -> frozenset[str]:
        """Nodes that meet the pod's node selector and required node affinity."""
        affinity = self.spec.affinity.node_affinity if self.spec.affinity else None
        required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
        terms = None if required is None else compile_node_selector(required)
        demand = RequiredNodeAffinity(selector_from_pairs(self.spec.node_selector or {}), terms)
        return frozenset(name for name, node in self.nodes.items() if demand.matches(node))

    # --- kube-scheduler's answer ---------------------------------------------------------------------------------------------

    @property
    def scored(self) -> bool:
        """Whether kube-scheduler scored nodes, as it does when at least two can hold the pod."""
        return bool(self.decision.scores)

    def theirs(self, plugin: str, weight: int) -> ByNode:
        """A plugin's scores, without its weight."""
        weighted = self.decision.scores[plugin]
        assert all(score % weight == 0 for score in weighted.values()), f"{plugin} does not weigh {weight}"
        return {node: score // weight for node, score in weighted.items()}

    # --- ours ----------------------------------------------------------------------------------------------------------------

    @cached_property
    def verdict(self) -> Verdict:
        """What `placewright evaluate` says, with the default profile and the plugins of earlier versions."""
        return self._evaluate(self.decision.pod)

    @cached_property
    def ours(self) -> Mapping[str, NodeVerdict]:
        """The verdict by node."""
        return {each.node: each for each in self.verdict.nodes}

    @cached_property
    def our_feasible(self) -> frozenset[str]:
        """The nodes that we found."""
        return frozenset(name for name, each in self.ours.items() if each.fits)

    @cached_property
    def fitting_without_hard_spreading(self) -> frozenset[str]:
        """The nodes that would do if the pod had no DoNotSchedule constraints."""
        constraints = self.decision.pod["spec"].get("topologySpreadConstraints", ())
        if all(c["whenUnsatisfiable"] != "DoNotSchedule" for c in constraints):
            return self.our_feasible
        pod: Object = copy.deepcopy(self.decision.pod)
        pod["spec"]["topologySpreadConstraints"] = [c for c in constraints if c["whenUnsatisfiable"] != "DoNotSchedule"]
        verdict = self._evaluate(pod)
        return frozenset(each.node for each in verdict.nodes if each.fits)

    def scores(self, plugin: str) -> ByNode:
        """Our plugin's scores, normalised, without weight; 0 everywhere when it had nothing to say."""
        return self._parts(plugin, lambda score: score.normalised)

    def raw_scores(self, plugin: str) -> ByNode:
        """The same before normalisation."""
        return self._parts(plugin, lambda score: score.raw)

    def _parts(self, plugin: str, part: Callable[[PluginScore], int]) -> ByNode:
        found = ((name, self.ours[name].scores.get(plugin)) for name in sorted(self.our_feasible))
        return {name: 0 if score is None else part(score) for name, score in found}

    def _evaluate(self, pod: Object) -> Verdict:
        return judged(self.decision.objects, pod, our_profile(), _LEGACY)


def message_of_1_20(scene: Scene) -> str:
    """Why a pod fits nowhere: our verdict on every node as 1.20 would have put it."""
    return counted(len(scene.nodes), (reason for verdict in scene.verdict.nodes for reason in _reasons(scene, verdict)))


def _reasons(scene: Scene, verdict: NodeVerdict) -> tuple[str, ...]:
    match verdict.plugin:
        case "TaintToleration":  # since 1.35 the taint is not named
            taint = first_untolerated(scene.nodes[verdict.node].spec.taints or (), scene.spec.tolerations or ())
            assert taint is not None
            return (f"node(s) had taint {{{taint.key}: {taint.value or ''}}}, that the pod didn't tolerate",)
        case "NodeAffinity":  # later versions name the selector too
            return ("node(s) didn't match Pod's node affinity",)
        case "InterPodAffinity":  # later versions give one reason, not two
            return (_AFFINITY, *verdict.reasons)
    return verdict.reasons
