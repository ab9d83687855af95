"""A pod's explanation as the pages show it: the sentences of `placewright explain`, the funnel of nodes by plugin, and the best nodes.

The explanation itself is made by the room `explain`. Readers who may not see all namespaces get it without the parts that name pods of
other namespaces.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from placewright.api.pods import PodInfo
from placewright.explain.explanation import AttemptSummary, CurrentVerdict, Explanation, RankedNode
from placewright.explain.words import beyond_line, headline, miss_line, standing, verdict
from placewright.framework.runtime.evaluation import Evaluator
from placewright.serving.rights import ALL_NAMESPACES, Rights

#: Best nodes that a page shows.
BEST_NODES: Final = 10
_NOT_FOR_ALL: Final = "what would have to change may name pods of other namespaces, and is told to readers who may see all of them"


def pod_page(
    found: Explanation, evaluator: Evaluator | None = None, rights: Rights = ALL_NAMESPACES, pod: PodInfo | None = None
) -> dict[str, Any]:
    """Make the page of a pod that the reader may see.

    Args:
        found: the explanation.
        evaluator: evaluator of the pod's profile, for the order of its plugins; None if no profile claims the pod.
        rights: rights of the reader.
        pod: the pod now; None for one that has gone.

    Returns:
        Sentences, the funnel, the best nodes, the changes that would help, and the attempts, the latest first.
    """
    beyond = "" if found.now is None else beyond_line(found.now.misses)  # names no pod
    if rights.namespaces is not None:
        found = _without_others(found)
    now = found.now
    return {
        "namespace": found.namespace,
        "name": found.name,
        "node": found.node,
        "asks": None if pod is None else _asks(pod),
        "profile": headline(found).partition(", ")[2],
        "lines": list(standing(found)),
        "verdict": "" if now is None else verdict(found, now),
        "beyond": beyond,
        "message": "" if now is None else now.message,
        "funnel": [] if now is None else funnel(now, () if evaluator is None else filter_order(evaluator)),
        "best": [] if now is None else [_ranked(each) for each in now.best],
        "ties": 0 if now is None else now.ties,
        "changes": [] if now is None else [miss_line(each) for each in now.misses],
        "decision": _decision(found),
        "notes": list(found.notes),
        "queue": None if found.queue is None else msgspec.to_builtins(found.queue),
        "attempts": [_attempt(each) for each in found.tried],
        "group": None if found.group is None else list(found.group.object.partition(" ")[2].partition("/")[::2]),
        "claims": [list(each.claim.partition("/")[::2]) for each in found.claims if each.claim],
    }


def _asks(pod: PodInfo) -> dict[str, Any]:
    """Return the pod's own wishes and marks."""
    owners = pod.pod.metadata.owner_references or ()
    owner = next((each for each in owners if each.controller), owners[0] if owners else None)
    return {
        "requests": {name: amount for name, amount in pod.requests.items() if amount},
        "priority": pod.priority,
        "created": pod.created,
        "owner": None if owner is None else [owner.kind, owner.name],
        "labels": dict(sorted(pod.labels.items())),
    }


def _decision(found: Explanation) -> dict[str, Any] | None:
    """Say why a placed pod has its node: from the record of its last attempt, or from its annotation."""
    made, last = found.decision, found.tried[0] if found.tried else None
    if last is not None and found.node and last.node == found.node:
        counts = {"ties": last.ties, "feasible": last.feasible, "nodes": last.nodes, "best": [_ranked(each) for each in last.best]}
        return {"score": last.score, "runnerUp": last.runner_up, "plugins": last.plugins, **counts}
    if made is None:
        return None
    return {"score": made.score, "runnerUp": made.runner_up, "plugins": made.plugins, "ties": 0, "feasible": 0, "nodes": 0, "best": []}


def _without_others(found: Explanation) -> Explanation:
    """Leave out what may name pods of other namespaces. All else is in the pod's own events and conditions, or about its namespace."""
    now, group = found.now, found.group
    if now is not None and now.misses:
        found = replace(found, now=replace(now, misses=()), notes=(*found.notes, _NOT_FOR_ALL))
    return found if group is None else replace(found, group=replace(group, shortages=()))


def _attempt(tried: AttemptSummary) -> dict[str, Any]:
    return {
        "number": tried.attempt,
        "at": tried.at,
        "seconds": tried.seconds,
        "result": tried.result,
        "profile": tried.profile,
        "generation": tried.generation,
        "node": tried.node,
        "nominated": tried.nominated_node,
        "feasible": tried.feasible,
        "nodes": tried.nodes,
        "score": tried.score,
        "message": tried.message,
        "refusals": [[each.plugin, each.reason, each.nodes] for each in tried.refusals],
        "steps": tried.steps,
        "together": tried.together,
    }


def filter_order(evaluator: Evaluator) -> Sequence[str]:
    """Return the names of the plugins that can reject nodes, in the order in which they do."""
    runtime = evaluator.runtime
    filters = [plugin.name for plugin in runtime.filter]
    return [*(plugin.name for plugin in runtime.pre_filter if plugin.name not in filters), *filters]


def funnel(now: CurrentVerdict, order: Sequence[str]) -> list[dict[str, Any]]:
    """Count the nodes that are left after each plugin.

    A node counts for the plugin that rejects it first, so the steps add up.

    Args:
        now: the verdicts about all nodes.
        order: plugins in the order in which they are asked. Refusals of other plugins come last.

    Returns:
        A step for each plugin that rejects nodes: the nodes that it rejects and leaves, and its reasons.
    """
    by_plugin: dict[str, list[dict[str, Any]]] = {}
    for each in now.refusals:
        reason = {"reason": each.reason, "nodes": each.nodes, "examples": list(each.examples)}
        by_plugin.setdefault(each.plugin, []).append(reason)
    places = {plugin: place for place, plugin in enumerate(order)}
    left, steps = now.nodes, []
    for plugin in sorted(by_plugin, key=lambda plugin: places.get(plugin, len(places))):
        rejected = sum(reason["nodes"] for reason in by_plugin[plugin])
        left -= rejected
        steps.append({"plugin": plugin, "rejected": rejected, "left": left, "reasons": by_plugin[plugin]})
    return steps


def _ranked(ranked: RankedNode) -> dict[str, Any]:
    parts = {plugin: [part.raw, part.normalised, part.weight, part.product] for plugin, part in ranked.parts.items()}
    return {"node": ranked.node, "total": ranked.total, "parts": parts}
