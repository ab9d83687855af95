"""The standing of a profile, and its status.

kstatus, Flux and Argo CD read these conditions: `Ready` is always there; `Reconciling` and `Stalled` only while they are true,
and so is `Advice`, which these tools do not read. `PluginFailing` is there from a plugin's first failure on. `PluginHanging` is there while
a generation is held because a plugin did not return. While plugins fail for every pod of the generation in effect, `Ready` is False.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from placewright.api.objects import Condition
from placewright.api.profile import QueueSizes, ShadowStatus
from placewright.framework.runtime.guard import PluginFailures
from placewright.profiles.advice import SEVERAL_HINTS, Recommendation

READY: Final = "Ready"
RECONCILING: Final = "Reconciling"
STALLED: Final = "Stalled"
ADVICE: Final = "Advice"
PLUGIN_FAILING: Final = "PluginFailing"
#: Reason of the condition PluginFailing, and then of Ready, too.
EVERY_POD_FAILS: Final = "EveryPodFails"
PLUGIN_HANGING: Final = "PluginHanging"
OUR_CONDITIONS: Final = frozenset({READY, RECONCILING, STALLED, ADVICE, PLUGIN_FAILING, PLUGIN_HANGING})

#: Characters of a condition's message; the API allows 32,768, but every watcher of profiles receives it with each change.
_MAX_MESSAGE: Final = 4096


class Reason(enum.StrEnum):
    """Reasons of the conditions; stable, for alerts and scripts."""

    ACTIVE = "Active"
    PAUSED = "Paused"
    APPLYING = "Applying"
    INVALID_PROFILE = "InvalidProfile"
    BUILD_FAILED = "BuildFailed"
    SCHEDULER_NAME_TAKEN = "SchedulerNameTaken"
    QUEUE_SORT_DIFFERS = "QueueSortDiffers"
    NOTHING_TO_SHADOW = "NothingToShadow"
    PLUGIN_HANGING = "PluginHanging"
    PODS_SELECTED_TWICE = "PodsSelectedTwice"

    @property
    def stalls(self) -> bool:
        """True when nothing changes until a person edits a profile."""
        return self not in (Reason.ACTIVE, Reason.PAUSED, Reason.APPLYING)

    @property
    def refuses(self) -> bool:
        """True when the judged generation is not in effect, and will not be. One that selects another profile's pods, too, is in effect."""
        return self.stalls and self is not Reason.PODS_SELECTED_TWICE


#: Reasons of a generation that took effect.
TOOK_EFFECT: Final = frozenset({Reason.ACTIVE, Reason.PAUSED, Reason.PODS_SELECTED_TWICE})


@dataclass(frozen=True, slots=True)
class ProfileStanding:
    """The generation of a profile that was judged, the result, and the generation in effect.

    Attributes:
        name: name of the SchedulingProfile.
        scheduler_name: that the judged generation asks for; empty for a shadow, which claims none.
        observed_generation: the generation that was judged last.
        active_generation: the generation that decisions use; None when no pod is placed by this profile.
        reason: result of the judged generation.
        message: clause for people; it names the problem and the generation that stays in effect.
    """

    name: str
    scheduler_name: str
    observed_generation: int
    active_generation: int | None
    reason: Reason
    message: str


def status_of(
    standing: ProfileStanding,
    previous: Sequence[Condition],
    now: str,
    pending: QueueSizes = QueueSizes(),  # noqa: B008 - frozen
    hints: Sequence[Recommendation] = (),
    shadow: ShadowStatus | None = None,
    failing: Condition | None = None,
) -> dict[str, Any]:
    """Build the body of `status`, with our fields and conditions only.

    Args:
        standing: standing of the profile.
        previous: the conditions that the object carries now; the times of unchanged ones are kept.
        now: RFC 3339, for conditions whose status flips.
        pending: the profile's pods in the queue.
        hints: advice about the generation in effect.
        shadow: figures of a shadow; None for other profiles.
        failing: the condition about plugins that fail, without its time; None when none ever did.

    Returns:
        The status, ready for server-side apply.
    """
    total = pending.active + pending.backoff + pending.unschedulable + pending.gated
    told = {} if shadow is None else msgspec.to_builtins(shadow)
    # Fields that are None are left out: the schema does not allow null for them.
    compared = {"shadow": {name: value for name, value in told.items() if value is not None}} if told else {}
    return {
        "observedGeneration": standing.observed_generation,
        "activeGeneration": standing.active_generation or 0,
        "conditions": [msgspec.to_builtins(condition) for condition in _conditions(standing, previous, now, hints, failing)],
        "pending": msgspec.structs.asdict(pending) | {"total": total},
        **compared,
    }


def _conditions(
    standing: ProfileStanding, previous: Sequence[Condition], now: str, hints: Sequence[Recommendation], failing: Condition | None
) -> Iterable[Condition]:
    known = {condition.type: condition for condition in previous}
    for condition in (*_current(standing, hints, failing), *([] if failing is None else [failing])):
        before = known.get(condition.type)
        unchanged = before is not None and before.status == condition.status and before.last_transition_time
        # By Kubernetes' conventions the time of the last change of the status; a new message or reason does not move it.
        since = before.last_transition_time if before is not None and unchanged else now
        # Kubernetes 1.20 takes an applied empty text for null.
        message = _short(condition.message or condition.reason)
        yield msgspec.structs.replace(condition, message=message, last_transition_time=since)


def _current(standing: ProfileStanding, hints: Sequence[Recommendation], failing: Condition | None) -> Iterator[Condition]:
    """Yield the conditions that hold now, without times."""
    reason, about = standing.reason, standing.observed_generation
    ready = "False" if reason.stalls or reason is Reason.APPLYING else "True"
    if ready == "True" and failing is not None and (failing.status, failing.reason) == ("True", EVERY_POD_FAILS):
        yield Condition(READY, "False", EVERY_POD_FAILS, failing.message, observed_generation=about)
    else:
        yield Condition(READY, ready, reason, standing.message, observed_generation=about)
    if reason is Reason.APPLYING:
        yield Condition(RECONCILING, "True", reason, standing.message, observed_generation=about)
    if reason.stalls:
        yield Condition(STALLED, "True", reason, standing.message, observed_generation=about)
    if reason is Reason.PLUGIN_HANGING:
        yield Condition(PLUGIN_HANGING, "True", reason, standing.message, observed_generation=about)
    if hints:
        # A condition has one reason, and a status has each condition once.
        reasons = {hint.reason for hint in hints}
        word = hints[0].reason if len(reasons) == 1 else SEVERAL_HINTS
        yield Condition(ADVICE, "True", word, " ".join(hint.message for hint in hints), observed_generation=standing.active_generation)


def _short(message: str) -> str:
    return message if len(message) <= _MAX_MESSAGE else message[: _MAX_MESSAGE - 1] + "…"


# --- plugins that fail -----------------------------------------------------------------------------------------------------------

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
    """The condition `PluginFailing` of one profile.

    It is True from a failure until no plugin has failed for `QUIET_SECONDS`, or until another generation takes effect. Its message counts
    the failures. While it stays True the message changes only every `TELL_SECONDS`: a profile whose every pod fails must not cause a
    stream of writes.
    """

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
