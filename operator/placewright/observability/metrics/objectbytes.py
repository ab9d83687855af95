"""Estimates the bytes of objects from a sample of each store, at most once a minute, while metrics are scraped.

One walk over the sizes of all pods finds the large ones. The loop has a turn whenever the count has taken a few milliseconds.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

from placewright.api.bytecount import DERIVED_BYTES, UNENDING, bytes_of, sample
from placewright.api.objects import Pod
from placewright.api.pods import PodInfo
from placewright.engine.decidingpart import DecidingPart
from placewright.engine.readingpart import ReadingPart

#: Seconds for which an estimate is told.
LASTS_SECONDS: Final = 60.0
#: The loop has a turn after so many seconds. Not after each value: a scrape would wait for hundreds of turns of a busy loop.
TURN_SECONDS: Final = 0.005
#: Bytes of JSON that a pod whose extent is not counted has, about.
_SMALL_POD: Final = 1024


class ObjectSizes:
    """Estimates the bytes of each store.

    Attributes:
        by_resource: bytes, by resource; empty until the first estimate.
    """

    def __init__(self, deciding: DecidingPart, reading: ReadingPart) -> None:
        """Estimate nothing yet."""
        self.by_resource: dict[str, int] = {}
        self._deciding = deciding
        self._reading = reading
        self._counted_at = -math.inf

    async def refresh(self) -> None:
        """Estimate anew if the last estimate is older than `LASTS_SECONDS`. While one call does so, others return at once."""
        if time.monotonic() - self._counted_at >= LASTS_SECONDS:
            self._counted_at = time.monotonic()
            self.by_resource = await self._estimate()

    async def _estimate(self) -> dict[str, int]:
        found: dict[str, int] = {}
        began = time.perf_counter()
        for resource, drawn, derived in self._samples():
            total = float(derived)
            for item, number in drawn:
                if time.perf_counter() - began > TURN_SECONDS:
                    await asyncio.sleep(0)
                    began = time.perf_counter()
                total += number * bytes_of(item, UNENDING)
            found[resource] = round(total)
        return found

    def _samples(self) -> Iterator[tuple[str, list[tuple[Any, float]], int]]:
        """Yield each resource, the values to count, and the bytes that are derived from its objects."""
        for reflector in tuple(self._reading.running):  # they may come and go meanwhile
            if reflector.source.kind is not Pod:
                yield reflector.source.resource, sample(list(reflector.store.values())), 0
        yield "pods", *_of_pods([place.pod for place in self._deciding.cluster.placements()])
        yield "waiting pods", *_of_pods([queued.pod for _, queued in self._deciding.queue.pods()])


def _of_pods(pods: Sequence[PodInfo]) -> tuple[list[tuple[Any, float]], int]:
    drawn = sample(pods, [each.extent.nbytes or _SMALL_POD for each in pods])
    # Indexes have labels and affinity once more.
    return [((each.pod, each.pairwise_key), number) for each, number in drawn], DERIVED_BYTES * len(pods)
