"""The world of a file, with the changes that its recorder saw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from placewright.api.bad_input import InputError
from placewright.kube.client import ApiClient
from placewright_console.local.seenworld import SeenWorld
from placewright_console.local.worldsource import WorldSource
from placewright_console.local.worldtimeline import WorldTimeline
from placewright_lab.simulation.scenario import Happening

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
