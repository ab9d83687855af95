"""The condition `PluginFailing` of one profile.

It is True from a failure until no plugin has failed for `QUIET_SECONDS`, or until another generation takes effect. Its message counts the
failures. While it stays True the message changes only every `TELL_SECONDS`: a profile whose every pod fails must not cause a stream of
writes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from placewright.api.objects import Condition
from placewright.framework.runtime.guard import PluginFailures
from placewright.profiles.profilestate import EVERY_POD_FAILS, PLUGIN_FAILING

#: Seconds without a failure after which the condition becomes False.
QUIET_SECONDS: Final = 300.0
#: Seconds between two messages; each is a write of the profile's status.
TELL_SECONDS: Final = 10.0
#: Reasons of the condition; stable, for alerts and scripts.
FAILED: Final = "PluginFailed"
NOT_FAILING: Final = "NoFailures"
#: Calls with a sentence of their own, because every watcher of profiles receives the message.
_MOST_CALLS: Final = 3


class PluginFailing:
    """The condition of one profile over time."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Know no failure yet; `clock` gives monotonic seconds."""
        self._clock = clock
        self._generation: int | None = None
        self._seen = 0
        self._failed_at: float | None = None
        self._told: Condition | None = None
        self._told_at = 0.0

    def condition(self, generation: int, failures: PluginFailures, shown: Sequence[Condition]) -> Condition | None:
        """Compute the condition now.

        Args:
            generation: the one in effect.
            failures: failures of its plugins since it took effect.
            shown: the conditions that the object has, perhaps written by another replica.

        Returns:
            The condition without its time; None when no plugin of this profile has ever failed.
        """
        before = next((each for each in shown if each.type == PLUGIN_FAILING), None)
        if generation != self._generation:
            self._begin(generation, before)
        if failures.total > self._seen:
            self._seen, self._failed_at = failures.total, self._clock()
        if self._failed_at is not None and self._clock() - self._failed_at < QUIET_SECONDS:
            return self._failing(generation, failures)
        self._told = None
        if before is None and self._failed_at is None:
            return None
        quiet = f"no plugin has failed for {QUIET_SECONDS / 60:.0f} minutes" if self._failed_at is not None else "no plugin has failed"
        return Condition(PLUGIN_FAILING, "False", NOT_FAILING, f"{quiet} under generation {generation}", observed_generation=generation)

    def _begin(self, generation: int, before: Condition | None) -> None:
        first = self._generation is None
        self._generation, self._seen, self._failed_at, self._told = generation, 0, None, None
        if first and before is not None and (before.status, before.observed_generation) == ("True", generation):
            # Without it a new leader would take the condition away for as long as its own first failure takes.
            self._failed_at = self._told_at = self._clock()  # another replica wrote it; the plugin may go on failing here
            self._told = before

    def _failing(self, generation: int, failures: PluginFailures) -> Condition:
        if self._told is None or (self._clock() - self._told_at >= TELL_SECONDS and failures.total):
            self._told_at = self._clock()
            reason = EVERY_POD_FAILS if failures.every_pod else FAILED
            message = "; ".join(failures.sentences(_MOST_CALLS))
            self._told = Condition(PLUGIN_FAILING, "True", reason, message, observed_generation=generation)
        return self._told
