"""A file that is opened while its pages are shown. They tell the progress until the cluster is there.

A file of a hundred thousand nodes takes a while. So it is read and built in slices, and the server answers between them.

The world of a file, with the changes that its recorder saw.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any, Final, Self

from placewright.api.bad_input import InputError
from placewright.framework.registry import Registry
from placewright.kube.client import ApiClient
from placewright.serving.rights import Rights
from placewright_console.local.seenworld import SeenWorld
from placewright_console.local.worldsource import WorldSource, WorldTimeline
from placewright_console.pages.pendingpods import unix_seconds
from placewright_console.pages.statedelta import Sections
from placewright_lab.simulation.scenario import Happening
from placewright_lab.snapshots.linefile import only_what_stays
from placewright_lab.snapshots.playback import SeenFile, finished

#: Number of remarks about the file that the pages show.
_MOST_NOTES: Final = 20


class FileSource(WorldSource):
    """A file's cluster, its changes at their times, and the verdicts about its waiting pods."""

    def __init__(
        self, world: SeenWorld, changes: Sequence[Happening], about: dict[str, Any], clock: Callable[[], float], speed: float = 1.0
    ) -> None:
        """Stand at the beginning.

        Args:
            world: world at the beginning.
            changes: changes in order of time.
            about: rows of the section `about`, which describe the file.
            clock: function that returns monotonic seconds.
            speed: seconds of the recording that pass in a second.
        """
        super().__init__(world, about, clock)
        self._clock = clock
        self._speed = speed
        self.begin(changes)

    def begin(self, changes: Sequence[Happening]) -> None:
        """Begin now, with these changes in order of time."""
        self._changes = changes
        self._applied = 0
        self._started = self._clock()
        if changes:
            self.timeline = WorldTimeline.of_recording(self.world, changes[-1].at)

    @property
    def writer(self) -> ApiClient | None:
        """None, because a file is only read. Implements `ClusterAtHand`."""
        return None

    async def current_world(self) -> SeenWorld:
        """Return the world. Implements `ClusterAtHand`."""
        return self.world

    def advance(self) -> bool:
        """Apply the changes whose time has come, and evaluate waiting pods for a moment. Return whether there is more to do at once."""
        position = (self._clock() - self._started) * self._speed
        while self._applied < len(self._changes) and self._changes[self._applied].at <= position:
            self._apply(self._changes[self._applied])
            self._applied += 1
        if self.timeline is not None and self._applied < len(self._changes):
            self.timeline.until(position)
        elif self.timeline is not None:
            self.timeline.finish(self._changes[-1].at)
        return super().advance()

    def moment(self) -> dict[str, Any]:
        """Return the rows of the section `about` that change."""
        return {**super().moment(), "changes": [self._applied, len(self._changes)]}

    def _apply(self, change: Happening) -> None:
        """Apply a change, or note that its object is invalid. The rest of the recording is still shown."""
        assert self.timeline is not None
        self.timeline.until(change.at)
        try:
            self.world.apply(change)
        except InputError as problem:
            if len(self.world.notes) < _MOST_NOTES:
                self.world.notes.append(f"left out, {change.at:.1f} s after the beginning: {problem}")
        self.timeline.changed(change.at)


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
