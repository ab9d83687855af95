"""Pages of the pods that share rows of the queue, beyond the oldest ones, which the rows themselves name.

A page has the next pods in order of `turn_of`. It is asked for by the last pod before it. A number of pods to leave out would skip pods
when older ones get their nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import nsmallest
from math import isfinite
from typing import Any, Final, NamedTuple, Self

from placewright.api.decode import DecodeError
from placewright.serving.rights import Rights
from placewright_console.pages.waitingrows import Alike, PendingPod, alike, row_key

#: Pods on a page, and rows that a question may name.
MOST_PODS: Final = 100
MOST_ROWS: Final = 50
#: Characters of a question: keys of rows, and a time with a namespace and a name.
LONGEST_ROWS: Final = MOST_ROWS * 17
LONGEST_AFTER: Final = 400

#: Since when a pod waits, its name, and its namespace.
Turn = tuple[float, str, str]


class PodsAsked(NamedTuple):
    """A question for a page.

    Attributes:
        rows: keys of rows.
        after: the turn of the last pod before the page; None for the first page.
    """

    rows: frozenset[str]
    after: Turn | None = None

    @classmethod
    def of(cls, rows: str, after: str) -> Self:
        """Read a question.

        Args:
            rows: keys, with commas.
            after: `SINCE/NAMESPACE/NAME`; empty for the first page.

        Raises:
            DecodeError: it names no rows, too many, or no turn.
        """
        keys = frozenset(filter(None, rows.split(",")))
        if not 0 < len(keys) <= MOST_ROWS:
            raise DecodeError(f"rows: found {len(keys)} keys; allowed 1 to {MOST_ROWS}")
        if not after:
            return cls(keys)
        try:
            since, namespace, name = after.split("/", 2)
            at = float(since)
        except ValueError:
            at = float("nan")
        if not isfinite(at):
            raise DecodeError(f"after: found {after[:80]!r}; allowed SINCE/NAMESPACE/NAME")
        return cls(keys, (at, name, namespace))


def turn_of(pod: PendingPod) -> Turn:
    """Return what pods of a page are sorted by."""
    return pod.since, pod.name, pod.namespace


def waiting_page(pods: Iterable[PendingPod], after: Turn | None) -> dict[str, Any]:
    """Make a page.

    Args:
        pods: pods of the rows, in any order. Pods before the page may be among them.
        after: the turn of the last pod before the page.

    Returns:
        `pods`: namespace, name, the time since which it waits, and the facts of each; `more`: whether there are pods after them.
    """
    found = nsmallest(MOST_PODS + 1, (pod for pod in pods if after is None or turn_of(pod) > after), key=turn_of)
    return {"pods": [[pod.namespace, pod.name, pod.since, *pod.facts] for pod in found[:MOST_PODS]], "more": len(found) > MOST_PODS}


def pods_of_rows(pods: Iterable[PendingPod], rows: frozenset[str], rights: Rights) -> Iterator[PendingPod]:
    """Yield the pods of rows.

    Args:
        pods: all pods that wait.
        rows: keys.
        rights: rights of the reader. Pods of other namespaces are left out.

    Yields:
        The pods, in the order of `pods`.
    """
    keys: dict[Alike, str] = {}
    for pod in pods:
        if rights.may_see(pod.namespace):
            kind = alike(pod)
            if kind not in keys:
                keys[kind] = row_key(kind)
            if keys[kind] in rows:
                yield pod
