"""The loop that brings a source forward and publishes it, beside other work of the event loop.

The operator decides pods on the same event loop, and a server on this machine answers requests on it. So the source's work is cut into
slices with a rest after each, and without readers nothing is done. Each publication has the changes of all slices since the one before
it.
"""

from __future__ import annotations

import asyncio
from typing import Final

from placewright_console.pages.feed import Feed
from placewright_console.pages.source import ConsoleSource

#: Seconds between two slices of a source that has more to do. A slice takes a few milliseconds at most.
REST: Final = 0.01
#: Seconds between two publications for readers over a network.
BEAT: Final = 0.5


async def keep_publishing(feed: Feed, source: ConsoleSource, beat: float = BEAT) -> None:
    """Bring the source forward and publish at each beat while there are readers. Runs until it is cancelled.

    Args:
        feed: feed of the source.
        source: its `advance` is called only while the feed has readers.
        beat: seconds between two publications.
    """
    loop = asyncio.get_running_loop()
    due = loop.time()
    while True:
        if not feed.readers:
            await asyncio.sleep(beat)
            continue
        busy = source.advance()
        if loop.time() >= due:
            for _ in feed.publishing():
                await asyncio.sleep(0)  # between classes of readers: each is a walk over all rows
            due = loop.time() + beat
        await asyncio.sleep(REST if busy else max(due - loop.time(), 0.0))
