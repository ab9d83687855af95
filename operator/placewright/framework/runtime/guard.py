"""Checks the calls of plugins of other packages.

An exception of such a plugin, or an answer that its extension point does not allow, becomes a `PluginError`. The error names the plugin
and the point, and is counted. The calls of plugins in the tree go past the checks, and cost nothing. Everything else is the same for both:
the caller decides the meaning of an answer.

The methods are replaced on the plugin object itself. So the framework calls `plugin.filter` for any author, and `isinstance` still says
which points the plugin has.

If one of our own plugins raises, `why` finds it in the exception's traceback.

`PluginFailures` counts the failures of a profile's plugins. Status, metrics and events read them.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from traceback import walk_tb
from types import FrameType, SimpleNamespace
from typing import Any, Final, NamedTuple, NoReturn

import numpy as np

from placewright.api.bad_input import InputError
from placewright.api.errors import BindError
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.errors import CycleError, PluginBuildError, PluginError, raised
from placewright.framework.events import ClusterEventWithHint, Narrowing, always
from placewright.framework.interface import (
    BindPlugin,
    FilterPlugin,
    Handle,
    PermitPlugin,
    PermitResult,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    QueueSortPlugin,
    Reads,
    ReservePlugin,
    ScorePlugin,
)
from placewright.framework.remedies import RemedyPlugin
from placewright.framework.rowwise import RowwiseFilter
from placewright.framework.runtime import answers
from placewright.framework.runtime.answers import Asked, Check, WrongAnswer
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.framework.runtime.snapshot import Snapshot
from placewright.framework.status import Code, Status

#: Failed pods from which on a generation counts as one that fails for every pod, unless an attempt passed.
EVERY_POD: Final = 3
#: Pods whose PreEnqueue failed that are kept until an event tells them. More say nothing new, because each failure says the same.
_MOST_UNTOLD: Final = 1000


class Call(NamedTuple):
    """The plugin and the extension point of a call.

    Attributes:
        point: the extension point, as kube-scheduler names it; `Sign`, `NormalizeScore` and `QueueingHint` are others' names for the
            methods that belong to no point.
    """

    plugin: str
    point: str


@dataclass(slots=True)
class PluginFailures:
    """The failures of one generation of one profile: exceptions, wrong answers, and statuses that say ERROR.

    Attributes:
        counts: number of failures, by call.
        last: problem of the last failure, by call.
        total: number of all failures.
        passed: an attempt under this generation ended without a failure.
        failed_pods: uids of pods whose attempts failed, `EVERY_POD` at most.
        untold: pods that a failing PreEnqueue plugin keeps out of the queue, with the reason; no attempt tells them.
    """

    counts: Counter[Call] = field(default_factory=Counter)
    last: dict[Call, str] = field(default_factory=dict)
    total: int = 0
    passed: bool = False
    failed_pods: set[str] = field(default_factory=set)
    untold: dict[str, tuple[PodInfo, str]] = field(default_factory=dict)
    #: Called with each failed call.
    heard: Callable[[Call], None] = lambda _call: None

    def note(self, plugin: str, point: str, problem: str) -> bool:
        """Count one failure.

        Returns:
            True for the first failure of this call.
        """
        call = Call(plugin, point)
        self.counts[call] += 1
        self.last[call] = problem
        self.total += 1
        self.heard(call)
        return self.counts[call] == 1

    def attempted(self, uid: str, *, failed: bool) -> None:
        """Note the end of an attempt under this generation."""
        if not failed:
            self.passed = True
        elif len(self.failed_pods) < EVERY_POD:
            self.failed_pods.add(uid)

    @property
    def every_pod(self) -> bool:
        """True if plugins failed for every pod that this generation has decided, and for several pods."""
        return self.total > 0 and not self.passed and len(self.failed_pods) >= EVERY_POD

    def sentences(self, most: int | None = None) -> list[str]:
        """Return a sentence for each call that failed, the most frequent first.

        Args:
            most: number of calls with a sentence of their own; further ones are counted in a last one. None: all.
        """
        told = [
            f'{call.point} plugin "{call.plugin}" failed {count} time{"" if count == 1 else "s"}, last: {self.last[call]}'
            for call, count in self.counts.most_common(most)
        ]
        more = len(self.counts) - len(told)
        return told + ([f"and {more} more"] if more > 0 else [])

    def kept_out(self, pod: PodInfo, message: str) -> None:
        """Note a pod that a failing PreEnqueue plugin keeps out of the queue, so that an event tells it."""
        if len(self.untold) < _MOST_UNTOLD:
            self.untold[pod.uid] = (pod, message)
        self.attempted(pod.uid, failed=True)

    def to_tell(self) -> list[tuple[PodInfo, str]]:
        """Return the pods that were kept out since the last call, each with the reason, and forget them."""
        untold, self.untold = list(self.untold.values()), {}
        return untold


_logger = logging.getLogger(__name__)

_OURS: Final = __name__.partition(".")[0]
_HINT: Final = "QueueingHint"
_RESULTS: Final = (PreFilterResult, PermitResult, PostFilterResult)
#: The point of frames that have none of their own.
_POINT_OF: Final = {"build": "New", "events_of": "EventsToRegister"}
#: Exceptions of a plugin that end its call and nothing else. KeyboardInterrupt is not among them, because a person sent it.
_ANYTHING: Final = (Exception, SystemExit, GeneratorExit, asyncio.CancelledError)
#: The same for an awaited call. CancelledError is not among them, because the scheduler cancels such calls.
_ANYTHING_AWAITED: Final = (Exception, SystemExit)


@dataclass(frozen=True, slots=True)
class Guarding:
    """The way in which a profile's plugins are watched.

    Attributes:
        failures: counts their failures.
        untouched: look at every call whether the plugin wrote into objects or columns; slow.
        ours: watch the plugins that come with Placewright, too. Only tests do: the calls of ours cost nothing otherwise.
    """

    failures: PluginFailures = field(default_factory=PluginFailures)
    untouched: bool = False
    ours: bool = False


class PluginInCall:
    """A plugin, and the profile that calls it; the watchdog finds this in the frames of a loop that hangs.

    Attributes:
        plugin: its name.
        profile, generation: name and generation of the SchedulingProfile that runs it.
    """

    def __init__(self, plugin: str, profile: ResolvedProfile, guarding: Guarding | None = None, cluster: Cluster | None = None) -> None:
        guarding = guarding or Guarding()
        self.plugin = plugin
        self.profile = profile.name
        self.generation = profile.generation
        self._failures = guarding.failures
        self._cluster = cluster if guarding.untouched else None

    def failed(self, point: str, problem: BaseException) -> PluginError:
        """Return the error to raise in place of an exception, and count it once.

        Args:
            point: the extension point.
            problem: the exception; returned itself if it is a `PluginError` already.
        """
        if isinstance(problem, PluginError):
            found = problem
        elif isinstance(problem, WrongAnswer):
            found = PluginError(self.plugin, point, str(problem))
        else:
            found = PluginError(self.plugin, point, raised(problem))
        if not found.counted:
            found.counted = True
            first = self._failures.note(found.plugin, found.point, found.problem)
            _logger.log(logging.ERROR if first else logging.DEBUG, "profile %s: %s", self.profile, found, exc_info=problem)
        return found

    def said(self, point: str, answer: Any) -> None:
        """Count an answer that says ERROR by itself."""
        status = answer.status if isinstance(answer, _RESULTS) else answer
        if isinstance(status, Status) and status.code is Code.ERROR:
            self._failures.note(self.plugin, point, status.message)

    def before(self, asked: Asked, *, columns: bool = False) -> Snapshot | None:
        """Return a picture of what the plugin is shown; None if its writes are not watched."""
        return None if self._cluster is None else Snapshot(self._cluster, asked, columns=columns)


class CallOnStack(NamedTuple):
    """A call of a plugin that has not returned.

    Attributes:
        call: the plugin and its profile.
        point: the extension point.
        frame: the guard's frame of this call.
    """

    call: PluginInCall
    point: str
    frame: FrameType


def calls_on_stack(frame: FrameType | None) -> Iterator[CallOnStack]:
    """Find the guarded calls that have not returned, innermost first."""
    while frame is not None:
        if frame.f_globals.get("__name__") == __name__:
            call, point = frame.f_locals.get("call"), frame.f_locals.get("point")
            if isinstance(call, PluginInCall):
                yield CallOnStack(call, str(point or _POINT_OF.get(frame.f_code.co_name, _HINT)), frame)
        frame = frame.f_back


def running(frame: FrameType | None) -> tuple[PluginInCall, str] | None:
    """Return the innermost call of a plugin that is not ours, with its extension point; None if no such plugin runs."""
    found = next(calls_on_stack(frame), None)
    return None if found is None else (found.call, found.point)


# --- building -----------------------------------------------------------------------------------------------------------------------


def is_ours(plugin: type[Plugin]) -> bool:
    """Return True for a plugin of this package. That may decide which checks are made, and nothing else."""
    return plugin.__module__.partition(".")[0] == _OURS


def build(kind: type[Plugin], name: str, profile: ResolvedProfile, handle: Handle) -> Plugin:
    """Return a new plugin, with `args` and `handle` even if its constructor forgot them.

    Args:
        kind: its class.
        name: its name in the registry.
        profile: the profile that has its arguments.
        handle: the scheduler as it may use it.

    Raises:
        InputError: its arguments are wrong, as it says itself.
        PluginBuildError: its constructor raised, or `reads` is no member of `Reads`.
    """
    args = profile.args[name]
    call = PluginInCall(name, profile)
    try:
        plugin = kind(args, handle)
        reads = getattr(plugin, "reads", Reads.NODE)
    except (InputError, MemoryError):
        raise
    except _ANYTHING as problem:
        raise PluginBuildError(call.plugin, raised(problem)) from problem
    if not isinstance(reads, Reads):
        raise PluginBuildError(name, f"found reads = {answers.described(reads)}; allowed a member of Reads")
    for given, own in (("handle", handle), ("args", args)):
        plugin.__dict__.setdefault(given, own)  # a constructor of its own may have forgotten super().__init__
    return plugin


def guard(plugin: Plugin, profile: ResolvedProfile, guarding: Guarding, cluster: Cluster) -> None:
    """Have all calls of a plugin watched; our own are left as they are, unless `guarding` says otherwise."""
    if is_ours(type(plugin)) and not guarding.ours:
        return
    call = PluginInCall(plugin.name, profile, guarding, cluster)
    bases = type(plugin).__mro__  # isinstance() asks abstract base classes, which look at all that extend them
    for base, method, point, check in _CALLS:
        if base in bases:
            watched = _awaited if inspect.iscoroutinefunction(getattr(base, method)) else _called
            plugin.__dict__[method] = watched(call, point, getattr(plugin, method), check)
    if isinstance(plugin, QueueSortPlugin):
        plugin.__dict__["sort_key"] = _called(call, "QueueSort", plugin.sort_key, answers.sort_key())
    if isinstance(plugin, RowwiseFilter):
        plugin.__dict__["judge"] = _judging(call, plugin.__dict__["judge"])


def events_of(plugin: Plugin, profile: ResolvedProfile, guarding: Guarding, cluster: Cluster) -> Sequence[ClusterEventWithHint] | None:
    """Return the events that a plugin registers, with their hints watched; None for "any event".

    Raises:
        PluginBuildError: `events` raised, or returned no table.
    """
    try:
        events = answers.interests(plugin.events())
    except WrongAnswer as problem:
        raise PluginBuildError(plugin.name, str(problem)) from problem
    except MemoryError:
        raise
    except _ANYTHING as problem:
        raise PluginBuildError(plugin.name, f"events: {raised(problem)}") from problem
    if events is None or (is_ours(type(plugin)) and not guarding.ours):
        return events
    call = PluginInCall(plugin.name, profile, guarding, cluster)
    return [replace(each, hint=_hinting(call, each.hint), narrow=_narrowing(call, each.narrow)) for each in events]


# --- calls --------------------------------------------------------------------------------------------------------------------------

Method = Callable[..., Any]

#: Methods that the framework calls: whose they are, the name of the point, and the check of the answer.
_CALLS: Final[tuple[tuple[type[Any], str, str, Check], ...]] = (
    (Plugin, "sign", "Sign", answers.hashable),
    (Plugin, "start", "Start", answers.nothing),
    (Plugin, "close", "Close", answers.nothing),
    (Plugin, "metrics", "Metrics", answers.metrics),
    (PreEnqueuePlugin, "pre_enqueue", "PreEnqueue", answers.admitted),
    (PreFilterPlugin, "pre_filter", "PreFilter", answers.pre_filter_result),
    (ScorePlugin, "fingerprint", "Score", answers.hashable),
    (FilterPlugin, "fingerprint", "Filter", answers.hashable),
    (FilterPlugin, "filter", "Filter", answers.passes),
    (FilterPlugin, "explain", "Filter", answers.rejections),
    (FilterPlugin, "failure", "Filter", answers.failed),
    (RowwiseFilter, "judge", "Filter", answers.judge),
    (RemedyPlugin, "remedies", "Filter", answers.remedies),
    (RemedyPlugin, "nearest_first", "Filter", answers.reordered),
    (RemedyPlugin, "passes_after", "Filter", answers.passes),
    (PostFilterPlugin, "post_filter", "PostFilter", answers.post_filter_result),
    (PostFilterPlugin, "make_room_in_place", "PostFilter", answers.post_filter_result),
    (PreScorePlugin, "pre_score", "PreScore", answers.prepared),
    (ScorePlugin, "score", "Score", answers.scores),
    (ScorePlugin, "summarise", "NormalizeScore", answers.hashable),
    (ScorePlugin, "normalise", "NormalizeScore", answers.normalised),
    (ReservePlugin, "reserve", "Reserve", answers.admitted),
    (ReservePlugin, "unreserve", "Unreserve", answers.nothing),
    (PermitPlugin, "permit", "Permit", answers.permit_result),
    (PreBindPlugin, "pre_bind_pre_flight", "PreBind", answers.to_be_called),
    (PreBindPlugin, "pre_bind", "PreBind", answers.prepared),
    (BindPlugin, "bind", "Bind", answers.prepared),
    (PostBindPlugin, "post_bind", "PostBind", answers.nothing),
)
#: The point of each method that the framework calls.
POINTS: Final[Mapping[str, str]] = {"sort_key": "QueueSort", **{method: point for _, method, point, _ in _CALLS}}


def _called(call: PluginInCall, point: str, method: Method, check: Check) -> Method:
    def guarded_call(*asked: Any, **named: Any) -> Any:
        if named:  # the framework names none: the plugin calls itself
            return method(*asked, **named)
        seen = call.before(asked, columns=True)
        try:
            answer = check(method(*_read_only(asked)), asked)
            _require_untouched(seen)
        except MemoryError:
            raise
        except _ANYTHING as problem:
            _raise(call.failed(point, problem), problem)
        call.said(point, answer)
        return answer

    return guarded_call


def _read_only(asked: Asked) -> Asked:
    """Make the last argument, if it is an array, one that cannot be written: other plugins are asked with the same rows and scores."""
    if not asked or type(asked[-1]) is not np.ndarray:
        return asked
    shown = asked[-1].view()
    shown.flags.writeable = False
    return (*asked[:-1], shown)


def _awaited(call: PluginInCall, point: str, method: Method, check: Check) -> Method:
    async def guarded_call(*asked: Any) -> Any:
        seen = call.before(asked)
        try:
            answer = check(await answers.awaitable(method(*asked)), asked)
            _require_untouched(seen)
        except (BindError, MemoryError):
            raise  # the former tells the outcome of a Binding, which is the API server's word and no failure of the plugin
        except _ANYTHING_AWAITED as problem:
            _raise(call.failed(point, problem), problem)
        call.said(point, answer)
        return answer

    return guarded_call


def _hinting(call: PluginInCall, hint: Method) -> Method:
    return hint if hint is always else _guarded(call, hint, lambda said: answers.hint(said, ()))


def _narrowing(call: PluginInCall, narrow: Narrowing | None) -> Narrowing | None:
    return None if narrow is None else _guarded(call, narrow, bool)


def _guarded(call: PluginInCall, ask: Method, check: Callable[[Any], Any]) -> Method:
    def guarded_call(pod: PodInfo, old: Any, new: Any) -> Any:
        try:
            return check(ask(pod, old, new))
        except MemoryError:
            raise
        except _ANYTHING as problem:
            _raise(call.failed(_HINT, problem), problem)

    return guarded_call


def _raise(found: PluginError, problem: BaseException) -> NoReturn:
    if found is problem:
        raise found
    raise found from problem


def _require_untouched(seen: Snapshot | None) -> None:
    written = "" if seen is None else seen.written()
    if written:
        raise PluginWroteError(written)


class PluginWroteError(WrongAnswer):
    """A plugin wrote into an object that it was shown."""

    def __init__(self, what: str) -> None:
        Exception.__init__(self, what)


# --- answers that say more than a column ----------------------------------------------------------------------------------------------


def _judging(call: PluginInCall, method: Method) -> Method:
    def judge(*asked: Any) -> Any:
        found = method(*asked)
        if found is None:
            return None
        passes = _called(call, "Filter", found.passes, answers.passes)
        return SimpleNamespace(passes=passes, explain=_called(call, "Filter", found.explain, answers.rejections))

    return judge


_MOST_FRAMES: Final = 500
#: The attribute in which an exception keeps its description.
_NAMED: Final = "__placewright_named__"


def why(problem: BaseException) -> str:
    """Return the failure in one line; with the plugin and the extension point if a plugin did.

    Args:
        problem: the exception that ended a decision; a `CycleError` tells by itself, of others the traceback tells.
    """
    for each in (problem, problem.__cause__):
        if isinstance(each, CycleError):
            return str(each)
    known = getattr(problem, _NAMED, None)
    if isinstance(known, str):
        return known
    found = _innermost(problem)
    if found is None:
        return raised(problem)
    plugin, point = found
    named = PluginError(plugin.name, point, raised(problem))
    failures = getattr(getattr(plugin.handle, "guarding", None), "failures", None)
    if isinstance(failures, PluginFailures):
        failures.note(named.plugin, named.point, named.problem)
    setattr(problem, _NAMED, str(named))  # it may pass several who ask, and is one failure
    return str(named)


def _innermost(problem: BaseException) -> tuple[Plugin, str] | None:
    found = None
    for frame, _ in islice(walk_tb(problem.__traceback__), _MOST_FRAMES):
        found = _plugin_in(frame) or found
    return found


def _plugin_in(frame: FrameType) -> tuple[Plugin, str] | None:
    """Return the plugin whose method this frame runs, with the point of the method; None for other frames."""
    point = POINTS.get(frame.f_code.co_name)
    plugin = None if point is None else frame.f_locals.get("self")
    return (plugin, point) if point is not None and isinstance(plugin, Plugin) else None
