"""The recorder follows the objects of a live cluster that placement reads, and writes their changes into a file."""

from __future__ import annotations

import asyncio
import gzip
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from placewright.api.pods import FINISHED_PHASES
from placewright.cli.livecluster import Readable, now_in_words
from placewright.kube.client import ApiClient
from placewright.kube.reflector import Reflector, Reflectors
from placewright_console.local.prunedobjects import kind_of, manifest_line, pruned
from placewright_lab.simulation.scenario import Act
from placewright_lab.snapshots.linefile import NewFile
from placewright_lab.snapshots.snapshot import FORMAT_VERSION, RECORDING, Header

#: Seconds of changes that a kill may cost.
FLUSH_SECONDS: Final = 1.0
#: Compression level of gzip.
_LEVEL: Final = 6

Told = Callable[[Act, Any], None]


@dataclass(slots=True)
class Recorded:
    """The result of a recording, with `counts` at its beginning, and `acts` since then."""

    counts: dict[str, int] = field(default_factory=dict)
    acts: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    size: int = 0


class ChangeSink:
    """Takes the changes of one collection, cut down to the fields that placement reads. A pod that has ended counts as gone."""

    def __init__(self, told: Told) -> None:
        self._told = told

    def changed(self, old: Any | None, new: Any) -> None:
        """Pass an object on that is new, or that has a change that placement reads."""
        before = None if old is None or ended(old) else pruned(old)
        if ended(new):
            if before is not None:
                self._told(Act.DELETED, new)
            return
        after = pruned(new)
        if before != after:
            self._told(Act.ADDED if before is None else Act.MODIFIED, after)

    def deleted(self, old: Any) -> None:
        """Pass on that an object is gone."""
        if not ended(old):
            self._told(Act.DELETED, old)

    def synced(self) -> None:
        """Do nothing."""


def ended(item: Any) -> bool:
    """Return True for a pod that has finished."""
    return kind_of(item) == "Pod" and item.status.phase in FINISHED_PHASES


class Recorder:
    """Records one cluster into one file.

    Attributes:
        recorded: result so far.
    """

    def __init__(self, client: ApiClient, found: Readable, clock: Callable[[], float] = time.monotonic) -> None:
        self.recorded = Recorded()
        self._found = found
        self._clock = clock
        self._began: float | None = None
        self._out: gzip.GzipFile | None = None
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._reflectors = Reflectors([Reflector(client, source, ChangeSink(self._note)) for source in found.sources])

    async def run(self, new: NewFile, stop: asyncio.Event, begun: Callable[[Recorded], None], seconds: float | None = None) -> Recorded:
        """Record until `stop`, or for that many seconds. `begun` hears when the beginning is on disk under its name.

        An earlier end leaves nothing. Raises `OSError` if the file cannot be written. Flushed lines stay readable.
        """
        self._reflectors.start()
        stopped = asyncio.create_task(stop.wait())
        try:
            if not await self._is_there(stopped):
                return self.recorded
            self._out = out = gzip.GzipFile(fileobj=new.file, mode="wb", compresslevel=_LEVEL)
            self._write_beginning(out)
            out.flush()
            new.stand()
            begun(self.recorded)
            await self._follow(out, stopped, seconds)
            out.close()
            new.file.flush()
            self.recorded.size = new.file.tell()
        finally:
            stopped.cancel()
            self._out = None
            await self._reflectors.stop()
        return self.recorded

    async def _is_there(self, stopped: asyncio.Task[bool]) -> bool:
        synced = asyncio.create_task(self._reflectors.wait_synced())
        await asyncio.wait([synced, stopped], return_when=asyncio.FIRST_COMPLETED)
        if stopped.done():
            synced.cancel()
            return False
        synced.result()
        return True

    def _write_beginning(self, out: gzip.GzipFile) -> None:
        """Write the beginning at once, so that every change is either in it or after it."""
        stores = [one.store.values() for one in self._reflectors.members]
        items = [pruned(item) for store in stores for item in store if not ended(item)]
        self.recorded.counts = dict(Counter(map(kind_of, items)))
        header = Header(
            placewright=RECORDING,
            version=FORMAT_VERSION,
            taken=now_in_words(),
            server=self._found.server,
            kubernetes=self._found.kubernetes,
            counts=self.recorded.counts,
            left_out=tuple(self._found.left_out),
        )
        self._began = self._clock()
        out.write(msgspec.json.encode(header) + b"\n")
        for item in items:
            out.write(manifest_line(item) + b"\n")

    async def _follow(self, out: gzip.GzipFile, stopped: asyncio.Task[bool], seconds: float | None) -> None:
        assert self._began is not None
        end = None if seconds is None else self._began + seconds
        either: list[asyncio.Future[Any]] = [stopped, self._failed]
        flushed = 0
        while not stopped.done():
            left = FLUSH_SECONDS if end is None else min(FLUSH_SECONDS, end - self._clock())
            if left <= 0:
                break
            await asyncio.wait(either, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if self._failed.done():
                self._failed.result()
            if (told := self.recorded.acts.total()) != flushed:  # an empty flush would cost some bytes, too
                out.flush()
                flushed = told
        self.recorded.seconds = self._clock() - self._began

    def _note(self, act: Act, item: Any) -> None:
        if self._out is None or self._began is None or self._failed.done():
            return
        shown = b'{"at":%.3f,"act":"%s","object":%s}\n' % (
            self._clock() - self._began,
            act.value.encode(),
            _last_words(item) if act is Act.DELETED else manifest_line(item),
        )
        try:
            self._out.write(shown)
        except OSError as error:
            # The caller of a sink catches its failure, but the waiter must hear of this one.
            self._failed.set_exception(error)
            return
        self.recorded.acts[act] += 1


def _last_words(item: Any) -> bytes:
    """Return the last line of an object that is gone. It has its identity, and the phase of a pod that ended by itself."""
    meta = item.metadata
    head = msgspec.structs.replace(type(item)().metadata, name=meta.name, namespace=meta.namespace, uid=meta.uid)
    gone = type(item)(metadata=head)
    if ended(item):
        gone = msgspec.structs.replace(gone, status=msgspec.structs.replace(gone.status, phase=item.status.phase))
    return manifest_line(gone)
