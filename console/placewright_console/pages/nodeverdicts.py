"""The verdict of a waiting pod's profile about each node: the plugin that rejects it first and why, or its rank by score.

The map colours nodes by it. The verdicts are those of `explain`, by the pod's own profile and without a change to the cluster. The answer
names the nodes of all verdicts but the most frequent one. So it is small, and it holds while nodes come and go.

Evaluating is one piece, because it is valid until the cluster changes; preparing it and writing the answer are cut into slices.

Levels of what nodes without room lack of a waiting pod's requests, and the nodes that lack least.

The map shades these nodes by level. Without levels most nodes of a full cluster look the same: "rejected by NodeResourcesFit".
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import Any, Final

import numpy as np

from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.errors import CycleError, InvalidScoreError
from placewright.framework.interface import Diagnosis, Rows
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.guard import why
from placewright.framework.status import Status
from placewright.plugins.noderesources.fit import NodeResourcesFit
from placewright.scheduler.cycle import NO_REASON, OTHER_REASONS, cut
from placewright_console.pages.podpage import filter_order

#: Shares of a request: a node is at the first level if it lacks at most the first of them of each request.
LEVELS: Final = (0.1, 0.25, 0.5)
#: The level of nodes that offer none of a resource that they lack.
OFFERS_NONE: Final = len(LEVELS) + 1
#: Nodes that are listed with the amounts that they lack.
MOST_NEAREST: Final = 10
#: No node lacks anything.
NONE_LACK: Final[dict[str, Any]] = {"lacks": [], "lacking": {}, "nearest": []}


def near_misses(evaluator: Evaluator, cluster: Cluster, pod: PodInfo, rows: Rows) -> dict[str, Any]:
    """Find what nodes lack.

    Args:
        evaluator: evaluator of the pod's profile.
        cluster: cluster with the nodes.
        pod: pod without a node.
        rows: rows that NodeResourcesFit rejects first.

    Returns:
        `lacks`: number of nodes at each level; `lacking`: names by level, without the level of most nodes; `nearest`: the nodes that lack
        least, each with the missing amount by resource. A node that has room, and too many pods, lacks nothing.
    """
    fit = next((plugin for plugin in evaluator.runtime.filter if isinstance(plugin, NodeResourcesFit)), None)
    if fit is None or not len(rows):
        return NONE_LACK
    missing = fit.shortfalls(pod, cluster, rows)
    share, whole = np.zeros(len(rows)), np.zeros(len(rows))
    offers = np.ones(len(rows), np.bool_)
    for name, amounts in missing.items():
        part = amounts / pod.requests[name]
        whole += part
        share = np.maximum(share, part)
        offers &= (amounts == 0) | (cluster.resources.column(name).allocatable[rows] > 0)
    level = np.where(offers, np.searchsorted(LEVELS, share), OFFERS_NONE)
    counts = np.bincount(level, minlength=OFFERS_NONE + 1)
    lacking = {
        str(each): [name for row in rows[level == each].tolist() if (name := cluster.names[row]) is not None]
        for each in np.flatnonzero(counts).tolist()
        if each != counts.argmax()
    }
    near = np.flatnonzero(offers)
    near = near[np.argsort(whole[near], kind="stable")[:MOST_NEAREST]]
    nearest = [
        [cluster.names[rows[at]], {name: int(amounts[at]) for name, amounts in missing.items() if amounts[at]}] for at in near.tolist()
    ]
    return {"lacks": counts.tolist(), "lacking": lacking, "nearest": nearest}


#: Kinds of verdict that an answer tells; the nodes of further reasons of a plugin share one, and so do those of further plugins.
MOST_VERDICTS: Final = 40
#: Best nodes that are ranked.
MOST_RANKED: Final = 500
#: Nodes of an answer that are written in a slice.
_SLICE: Final = 5_000

#: The answer, made in slices.
Judging = Generator[None, None, dict[str, Any]]


def node_verdicts(evaluator: Evaluator, cluster: Cluster, pod: PodInfo) -> Judging:
    """Judge each node for a pod.

    Args:
        evaluator: evaluator of the pod's profile.
        cluster: cluster with the nodes, which may change between two slices.
        pod: pod without a node.

    Yields:
        After each slice.

    Returns:
        `verdicts`: plugin, reason and number of nodes of each, the first for nodes that fit; `rest`: the place of the verdict of all nodes
        that are not named; `named`: by the place of any other verdict, its nodes; `best`: the best nodes with their scores; and what nodes
        without room lack. `told` says why there are no verdicts.
    """
    profile = evaluator.runtime.profile.name
    try:
        gate = evaluator.runtime.run_pre_enqueue(pod)
        if not gate.ok:
            return _nothing(profile, cluster, f"it would not be tried: {cut(gate.message)}")
        yield from evaluator.preparation(pod)
        judged = _judged(evaluator, cluster, pod)
    except (CycleError, InvalidScoreError) as problem:
        return _nothing(profile, cluster, f"something breaks: {cut(str(problem))}")
    except MemoryError:
        raise
    except Exception as problem:  # noqa: BLE001 - a plugin may be out-of-tree code
        return _nothing(profile, cluster, f"something breaks: {cut(why(problem))}")
    groups, best, names, lacks = judged
    yield
    rest = max(range(len(groups)), key=lambda at: len(groups[at][2]))
    named: dict[str, list[str]] = {}
    for at, (_, _, rows) in enumerate(groups):
        if at != rest and len(rows):
            named[str(at)] = found = []
            for begin in range(0, len(rows), _SLICE):
                found += [name for row in rows[begin : begin + _SLICE].tolist() if (name := names[row]) is not None]
                yield
    return {
        "profile": profile,
        "told": "",
        "nodes": sum(len(rows) for _, _, rows in groups),
        "verdicts": [[plugin, reason, len(rows)] for plugin, reason, rows in groups],
        "rest": rest,
        "named": named,
        "best": best,
        **lacks,
        "unasked": [extender.settings.name for extender in evaluator.runtime.extenders_for(pod)],
    }


def unjudged(cluster: Cluster, told: str) -> Judging:
    """Answer for a pod that is not evaluated.

    Yields:
        Nothing: the answer is made in one slice.

    Returns:
        The answer without verdicts.
    """
    yield from ()
    return _nothing("", cluster, told)


def _nothing(profile: str, cluster: Cluster, told: str) -> dict[str, Any]:
    nowhere: dict[str, Any] = {"verdicts": [], "rest": -1, "named": {}, "best": [], **NONE_LACK, "unasked": []}
    return {"profile": profile, "told": told, "nodes": cluster.node_count, **nowhere}


#: Plugin, reason and rows; both texts are empty for rows that fit.
_Group = tuple[str, str, Rows]


def _judged(evaluator: Evaluator, cluster: Cluster, pod: PodInfo) -> tuple[list[_Group], list[list[Any]], list[str | None], dict[str, Any]]:
    """Return groups of rows with one verdict (rows that fit first), the best nodes, all names, and lacking amounts."""
    evaluation = evaluator.evaluate(pod)
    diagnosis = evaluator.diagnose(evaluation)
    fits = np.flatnonzero(evaluation.feasible)
    best: list[list[Any]] = []
    if len(fits):
        totals = evaluator.score(evaluation)[fits]
        order = np.argsort(-totals, kind="stable")[:MOST_RANKED]
        best = [[cluster.names[row], total] for row, total in zip(fits[order].tolist(), totals[order].tolist(), strict=True)]
    rejected = _rejected(cluster, diagnosis, fits)
    small = [each for (plugin, _), rows in rejected.items() if plugin == NodeResourcesFit.name for each in rows]
    lacks = near_misses(evaluator, cluster, pod, np.concatenate(small)) if small else NONE_LACK
    return [("", "", fits), *_bounded(rejected, filter_order(evaluator))], best, list(cluster.names), lacks


def _rejected(cluster: Cluster, diagnosis: Diagnosis, fits: Rows) -> dict[tuple[str, str], list[Rows]]:
    """Group the rejected rows by plugin and reason."""
    found: dict[tuple[str, str], list[Rows]] = {}
    left = cluster.present.copy()
    left[fits] = False
    for status, rows in diagnosis.rejections:
        found.setdefault(_told(status), []).append(rows)
        left[rows] = False
    if left.any():
        absent = ("", NO_REASON) if diagnosis.absent is None else _told(diagnosis.absent)
        found.setdefault(absent, []).append(np.flatnonzero(left))
    return found


def _told(status: Status) -> tuple[str, str]:
    return status.plugin, cut(status.message) or NO_REASON


def _bounded(found: dict[tuple[str, str], list[Rows]], order: Iterable[str]) -> Iterator[_Group]:
    """Iterate over at most `MOST_VERDICTS` groups, in the order of plugins, the larger group of a plugin first."""
    groups = [(plugin, reason, np.concatenate(rows)) for (plugin, reason), rows in found.items()]
    groups.sort(key=lambda group: -len(group[2]))
    places = {plugin: place for place, plugin in enumerate(order)}
    kept, merged = groups[: MOST_VERDICTS - 1], groups[MOST_VERDICTS - 1 :]
    if merged:
        kept.append(("", OTHER_REASONS, np.concatenate([rows for _, _, rows in merged])))
    yield from sorted(kept, key=lambda group: places.get(group[0], len(places)))
