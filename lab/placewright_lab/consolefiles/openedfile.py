"""A file that is opened while its pages are open already: they say how much of it is read, until the cluster is there.

A file of a hundred thousand nodes takes a while. It is read and built in slices between which the server answers, instead of before it
starts.
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
#: Seconds for which pages show why a file cannot be opened, before the console ends.
_LAST_WORD: Final = 1.0
#: Rows of nodes that are made between two looks at the clock.
_ROWS: Final = 256
_NOTHING: Final[Sections] = {"nodes": {}, "loads": {}, "queue": {}, "decisions": {}}


class OpenedFile(FileSource):
    """The source of a file, from the moment in which its header is read.

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
        """Read the header.

        Args:
            path: of a snapshot or a recording.
            largest: bytes of text that it may unpack to.
            registry: of plugins.
            clock: seconds, monotonic.
            speed: seconds of a recording that pass in a second.
            say: hears the remarks about the file once it is read; None to keep them for the pages.

        Raises:
            InputError: the file is neither.
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
        """Whether the file is not wholly there yet."""
        return self._steps is not None

    def whole(self) -> Self:
        """Open the rest of the file at once.

        Returns:
            The source itself.

        Raises:
            InputError: the file is damaged; the message names the line.
        """
        if self._steps is not None:
            finished(self._steps)
            self._steps = None
        return self

    def advance(self) -> bool:
        """Open the file for a moment, or go on as the file does.

        Returns:
            Whether there is more to do at once.

        Raises:
            InputError: the file is damaged. Pages have shown it for a moment.
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
        """Return the state: how far the file is read, or what is in it."""
        if self._steps is None:
            return super().sections(rights)
        every = max(self._file.promised, self._file.taken)
        # Half of the way of an object is from the file, the other half into the cluster.
        told: dict[str, Any] = {"opening": [(self._file.taken + self._put) / 2, every]}
        if self._problem is not None:
            told = {"failed": str(self._problem)}
        return {"about": {**self._about, "can": [], **told}, **_NOTHING}

    async def current_world(self) -> SeenWorld:
        """Return the world, once it is whole. Implements `ClusterAtHand`."""
        await self._whole.wait()
        return self.world

    def _opened(self) -> Generator[None, None, None]:
        with only_what_stays():
            yield from self._file.reading()
            seen = self._file.cluster
            for put in self.world.filling(seen):
                self._put = put
                yield
            while self.refresh(_ROWS):
                yield
            self.begin(seen.changes)
        if self._say is not None:
            for note in self.world.remarks:
                self._say(note)
        self._whole.set()
        # What was read stays. The collector would walk a million objects again and again, and the pages would stand still meanwhile.
        gc.freeze()
