"""`/debug/queue` and `/debug/cache`: this replica's queue and cache as JSON, cut by `?limit=`, for a person who asks why a pod waits.

They show names and numbers only: no labels, annotations or environment of pods.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

import msgspec

from placewright.cluster.cluster import Cluster
from placewright.engine.debuglines import node_amounts
from placewright.http.routes import JSON, Answer, Audience, Endpoint, Question, RequestRefused
from placewright.queue.queue import SchedulingQueue
from placewright.queue.queued import QueuedPod, SubQueue

_DEFAULT_LIMIT: Final = 1000
_HIGHEST_LIMIT: Final = 100_000
#: Items that are written in one go of the event loop.
_SLICE: Final = 100
_BAD_REQUEST: Final = 400


def queue_endpoint(queue: SchedulingQueue) -> Endpoint:
    """Make `/debug/queue`: every pod of the queue with its place."""

    async def answer(question: Question) -> Answer:
        sizes, limit = queue.sizes(), limit_of(question)
        return _listed({"sizes": sizes._asdict(), "total": sum(sizes)}, "pods", islice(_pods(queue), limit))

    return Endpoint("/debug/queue", answer, Audience.LOOPBACK)


def cache_endpoint(cluster: Cluster) -> Endpoint:
    """Make `/debug/cache`: every node with its requests and allocatable amounts, and the assumed pods."""

    async def answer(question: Question) -> Answer:
        counts = {"nodes": cluster.node_count, "pods": cluster.pod_count_total, "assumed": cluster.assumed_count}
        limit = limit_of(question)
        head = {"counts": counts, "assumedPods": list(islice(_assumed(cluster), limit)), "total": cluster.node_count}
        return _listed(head, "nodes", islice(_nodes(cluster), limit))

    return Endpoint("/debug/cache", answer, Audience.LOOPBACK)


def _pods(queue: SchedulingQueue) -> Iterator[Mapping[str, Any]]:
    now = time.monotonic()
    return (_pod(place, queued, queue.nominator.node_of(queued.uid), now) for place, queued in queue.pods())


def _pod(place: SubQueue, queued: QueuedPod, nominated: str | None, now: float) -> Mapping[str, Any]:
    pod = queued.pod
    shown = {
        "place": str(place),
        "namespace": pod.namespace,
        "name": pod.name,
        "uid": pod.uid,
        "schedulerName": pod.scheduler_name,
        "priority": pod.priority,
        "attempts": queued.attempts,
        "secondsSinceLastMove": round(now - queued.timestamp, 1),
        "rejectedBy": sorted(queued.unschedulable_plugins),
        "waitsFor": sorted(queued.pending_plugins),
        "gatedBy": queued.gating_plugin if queued.gated else "",
        "nominatedNode": nominated or "",
        "secondsSinceGivenUp": "" if queued.given_up_at is None else round(now - queued.given_up_at, 1),
    }
    return {name: value for name, value in shown.items() if value not in ("", [])}


def _nodes(cluster: Cluster) -> Iterator[Mapping[str, Any]]:
    for row, requested, allocatable in node_amounts(cluster):
        yield {
            "name": cluster.names[row],
            "pods": int(cluster.pod_count[row]),
            "podLimit": int(cluster.pod_limit[row]),
            "requested": requested,
            "allocatable": allocatable,
        }


def _assumed(cluster: Cluster) -> Iterator[Mapping[str, Any]]:
    for pod, node, assumed in cluster.placements():
        if assumed:
            yield {"namespace": pod.namespace, "name": pod.name, "uid": pod.uid, "node": node}


def limit_of(question: Question, default: int = _DEFAULT_LIMIT, highest: int = _HIGHEST_LIMIT) -> int:
    """Read the parameter `limit`, the number of items that an answer may have.

    Args:
        question: the request.
        default: number for a request without the parameter.
        highest: highest number that is allowed.

    Raises:
        RequestRefused: the parameter is no such number.
    """
    text = question.query.get("limit", (str(default),))[-1]
    if not (text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= highest):
        raise RequestRefused(_BAD_REQUEST, f"limit: found {text[:40]!r}; allowed a whole number from 1 to {highest}")
    return int(text)


def _listed(head: Mapping[str, Any], name: str, items: Iterable[Mapping[str, Any]]) -> Answer:
    """Make an answer of a head and a list. The items are taken now, so that all of them are of one moment while others are written."""
    shown = list(items)
    return Answer(_pieces({**head, "shown": len(shown)}, name, shown), JSON)


async def _pieces(head: Mapping[str, Any], name: str, items: Iterable[Mapping[str, Any]]) -> AsyncIterator[bytes]:
    """Yield a JSON object whose last field is a list, in pieces. After each the event loop runs other tasks."""
    encode = msgspec.json.Encoder().encode
    yield encode(head)[:-1] + b"," + encode(name) + b":["
    separator = b""
    remaining = iter(items)
    while piece := list(islice(remaining, _SLICE)):
        yield separator + b",\n".join(encode(item) for item in piece)
        separator = b",\n"
        await asyncio.sleep(0)
    yield b"]}\n"
