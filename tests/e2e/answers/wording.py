"""Why a pod fits nowhere, in 1.20's words."""

from __future__ import annotations

from collections import Counter
from typing import Final

from e2e.answers.scene import Scene
from placewright.api.tolerations import first_untolerated
from placewright_lab.simulation.evaluation import NodeVerdict

_AFFINITY: Final = "node(s) didn't match pod affinity/anti-affinity"


def message_of_1_20(scene: Scene) -> str:
    """Our verdict on every node as 1.20 would have put it."""
    counted = Counter(reason for verdict in scene.verdict.nodes for reason in _reasons(scene, verdict))
    listed = ", ".join(sorted(f"{count} {reason}" for reason, count in counted.items()))
    return f"0/{len(scene.nodes)} nodes are available: {listed}."


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
