"""A file that is opened while its pages are shown. They tell the progress until the cluster is there.

A file of a hundred thousand nodes takes a while. So it is read and built in slices, and the server answers between them.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, Final, Self

from placewright.api.bad_input import InputError
from placewright.framework.registry import Registry
from placewright.serving.rights import Rights
from placewright_console.local.seenworld import SeenWorld
from placewright_console.pages.pendingpods import unix_seconds
from placewright_console.pages.statedelta import Sections
from placewright_lab.consolefiles.filesource import FileSource
from placewright_lab.snapshots.linefile import only_what_stays
from placewright_lab.snapshots.playback import SeenFile, finished

#: Seconds of reading between two looks at requests.
_SLICE: Final = 0.03
#: Seconds for which pages show the error of a file, before the console ends.
_LAST_WORD: Final = 1.0
#: Number of rows of nodes that are made between two looks at the clock.
_ROWS: Final = 256
_NOTHING: Final[Sections] = {"nodes": {}, "loads": {}, "queue": {}, "decisions": {}}


class OpenedFile(FileSource):
    """The source of a file, from the moment at which its header is read.

    Example:
        source = OpenedFile(path, largest, registry, time.monotonic)
        while source.opening:
            source.advance()        # between two slices the server answers
    """

    def __init__(
        self,
        path: Path,
        largest: int,
        registry: Registry,
        clock: Callable[[], float],
        speed: float = 1.0,
        say: Callable[[str], object] | None = None,
    ) -> None:
        """Read the header. Raises `InputError` if the file is neither a snapshot nor a recording.

        Args:
            path: path of a snapshot or a recording.
            largest: limit of unpacked bytes.
            registry: known plugins.
            clock: function that returns monotonic seconds.
            speed: seconds of a recording that pass in a second.
            say: function that hears the remarks about the file; None to keep them for the pages.
        """
        self._file = SeenFile(path, largest)
        header = self._file.header
        world = SeenWorld(registry, unix_seconds(header.taken))
        about = {"kind": header.placewright, "source": path.name, "server": header.server, "began": world.began, "speed": speed}
        super().__init__(world, (), about, clock, speed)
        self._say = say
        self._put = 0
        self._whole = asyncio.Event()
        self._steps: Generator[None, None, None] | None = self._opened()
        self._problem: InputError | None = None
        self._ends = 0.0

    @property
    def opening(self) -> bool:
        """True while the file is not read to its end."""
        return self._steps is not None

    def whole(self) -> Self:
        """Open the rest of the file at once, and return the source. Raises `InputError` with the line of a fault."""
        if self._steps is not None:
            finished(self._steps)
            self._steps = None
        return self

    def advance(self) -> bool:
        """Open the file for a moment, or play it on. Return whether there is more to do at once.

        Raises `InputError` for a damaged file, after pages have shown the error for a moment.
        """
        if self._steps is None:
            return super().advance()
        if self._problem is not None:
            if self._clock() < self._ends:
                return False
            raise self._problem
        ends = self._clock() + _SLICE
        try:
            while self._clock() < ends:
                next(self._steps)
        except StopIteration:
            self._steps = None
        except InputError as problem:
            self._problem, self._ends = problem, self._clock() + _LAST_WORD
        return True

    def sections(self, rights: Rights) -> Sections:
        """Return the state: the progress of reading, or the content."""
        if self._steps is None:
            return super().sections(rights)
        every = max(self._file.promised, self._file.taken)
        # Reading an object is half of the work, and adding it to the cluster is the other half.
        told: dict[str, Any] = {"opening": [(self._file.taken + self._put) / 2, every]}
        if self._problem is not None:
            told = {"failed": str(self._problem)}
        return {"about": {**self._about, "can": [], **told}, **_NOTHING}

    async def current_world(self) -> SeenWorld:
        """Return the world after it is complete. Implements `ClusterAtHand`."""
        await self._whole.wait()
        return self.world

    def _opened(self) -> Generator[None, None, None]:
        with only_what_stays():
            yield from self._file.reading()
            for put in self.world.filling(self._file):
                self._put = put
                yield
            while self.refresh(_ROWS):
                yield
            self.begin(self._file.changes)
        if self._say is not None:
            for note in self.world.remarks:
                self._say(note)
        self._whole.set()
        # All objects stay. The collector would walk a million objects again and again, and the pages would stand still meanwhile.
        gc.freeze()
