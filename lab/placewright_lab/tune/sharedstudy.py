"""The choice of settings to try: all of them, or proposals of a study, in memory or shared by several workers.

If the trials suffice, all combinations are tried. Otherwise Optuna's multi-objective TPE proposes settings in rounds of a fixed size. So
the result depends on the seed, and not on the number of processes.

Workers share only Optuna's study. There is no queue, and no process assigns work. A worker asks the study for settings, simulates them, and
tells the study the result. A worker that is interrupted gives back its unfinished trials. Otherwise, other workers take them over after a
time without a sign of life, by their own clocks.
"""

from __future__ import annotations

import random
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import wraps
from hashlib import sha256
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

import msgspec

from placewright.api.bad_input import InputError, bad_field
from placewright.scheduler.ports import Clock
from placewright_lab.tune.weightsearch import (
    PATIENCE,
    ROUND,
    Result,
    Search,
    Setting,
    Settings,
    Task,
    all_settings,
    check_corners,
    distribution_of,
    evaluator_of,
    optuna_library,
)

Key = tuple[Setting, ...]
Told = Callable[[Search], None]
P = ParamSpec("P")
R = TypeVar("R")

#: Attributes of the study: the identity of its search, and the result of the unchanged profile.
_TASK: Final = "placewright:task"
_AS_IT_IS: Final = "placewright:as-it-is"
#: Attributes of a trial: its worker with a number that grows, and the number of pods that waited at the end.
_BEAT: Final = "placewright:beat"
_PENDING: Final = "placewright:pending"


@dataclass(frozen=True, slots=True)
class StudyPace:
    """The pace of a worker.

    Attributes:
        beat: seconds between two signs of life.
        silence: seconds without a sign of life, after which a worker's trials go to others.
        look: seconds between two looks at other workers, for a worker that has nothing to do itself.
    """

    beat: float = 15.0
    silence: float = 90.0
    look: float = 1.0


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Delay an interrupt until the end, so that no trial is asked for and then forgotten. Raise a second interrupt at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def note(number: int, _frame: object) -> None:
        if came:
            raise KeyboardInterrupt
        came.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        signal.raise_signal(came[0])


def _in_a_line(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Decorate a method so that errors of the storage become one line, in the way of its place."""

    @wraps(method)
    def careful(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.place.errors():
            return method(self, *args, **kwargs)

    return careful


@dataclass(frozen=True, slots=True)
class StudyPlace:
    """The place of a study.

    Attributes:
        storage: storage of Optuna's; None for memory.
        name: name of the study in the storage.
        errors: context that turns errors of the storage into one line.
    """

    storage: Any
    name: str
    errors: Callable[[], AbstractContextManager[None]] = nullcontext


class SharedStudy:
    """One worker's view of the study.

    Args:
        place: place of the study, which is begun if it does not exist.
        task: task of the search; a study of another task is refused.
        trials: number of settings that all workers try together.
        worker: number of the worker; workers draw different settings from the same seed.
    """

    def __init__(
        self,
        place: StudyPlace,
        task: Task,
        trials: int,
        worker: int = 0,
        *,
        clock: Clock = time.monotonic,
        pace: StudyPace = StudyPace(),
    ) -> None:
        self._optuna = optuna_library()
        self._task, self._trials, self._clock = task, trials, clock
        self.place: Final = place
        self.pace: Final = pace
        self._everything = task.combinations <= trials
        self._distributions = {knob.name: distribution_of(self._optuna, knob) for knob in task.knobs}
        self._me = uuid.uuid4().hex
        #: Optuna's error about a trial that has ended.
        self._over = (self._optuna.exceptions.UpdateFinishedTrialError, ValueError)
        #: Trials that this worker simulates.
        self._asked: dict[Key, Any] = {}
        #: The last sign of life of other workers' trials, by number, and the time at which it was first seen.
        self._signs: dict[int, tuple[str, float]] = {}
        self._exhausted = False
        with place.errors():
            self._study = self._opened(place.storage, place.name, worker)
            if self._everything:
                self._enqueue_missing()

    # --- the study -----------------------------------------------------------------------------------------------------------

    def _opened(self, storage: Any, name: str, worker: int) -> Any:
        directions = ["minimize"] * len(self._task.objectives)
        study = self._optuna.create_study(storage=storage, study_name=name, directions=directions, load_if_exists=True)
        begun = study.get_trials(deepcopy=False)
        theirs, ours = study.user_attrs.get(_TASK), identity_of(self._task)
        if theirs is None and not begun and len(study.directions) == len(directions):
            study.set_user_attr(_TASK, ours)
        elif not isinstance(theirs, dict):
            raise bad_field(f"--study {name}", "a study that tune did not begin", "another name, or another storage")
        else:
            for what, value in ours.items():
                if theirs.get(what) != value:
                    raise bad_field(f"--study {name}: {what}", theirs.get(what), f"{value}, or another name of a study")
        seed = self._task.seed
        if worker or begun:  # the same seed again would draw settings that are there already
            seed = random.Random(f"{seed} {worker} {len(begun)}").getrandbits(32)
        study.sampler = self._optuna.samplers.TPESampler(seed=seed, n_startup_trials=2 * ROUND)
        return study

    def _enqueue_missing(self) -> None:
        """Enqueue the combinations that no worker has.

        Workers that begin together may enqueue one twice. The second one is skipped later.
        """
        there = {self._key(trial) for trial in self._all() if not self._failed(trial)}
        for settings in all_settings(self._task.knobs):
            if tuple(settings.values()) not in there:
                self._study.enqueue_trial(dict(settings))

    @property
    @_in_a_line
    def as_it_is(self) -> Result | None:
        """Result of the unchanged profile; None until a worker has stored it."""
        known = self._study.user_attrs.get(_AS_IT_IS)
        try:
            result = msgspec.convert(known, Result)
        except msgspec.ValidationError:
            return None
        return result if len(result.values) == len(self._task.objectives) else None

    @as_it_is.setter
    @_in_a_line
    def as_it_is(self, result: Result) -> None:
        """Store the result of the unchanged profile."""
        self._study.set_user_attr(_AS_IT_IS, {"values": list(result.values), "pending": result.pending})

    @_in_a_line
    def finished(self) -> list[tuple[Settings, Result]]:
        """Return the finished trials of all workers, in the order in which they were begun, and each setting once."""
        found: dict[Key, tuple[Settings, Result]] = {}
        for trial in self._all():
            key, pending = self._key(trial), trial.user_attrs.get(_PENDING)
            if self._is(trial, "COMPLETE") and isinstance(pending, int) and self._allowed(key):
                values = tuple(one.loss(loss) for one, loss in zip(self._task.objectives, trial.values, strict=True))
                found.setdefault(key, (self._settings(key), Result(values, pending)))
        return list(found.values())

    # --- settings to try -------------------------------------------------------------------------------------------------------

    @_undisturbed()
    @_in_a_line
    def next_round(self, jobs: int) -> list[Settings]:
        """Return the settings that this worker tries next, if there are any now."""
        self._take_over()
        most = max(ROUND, jobs) if self._everything else ROUND
        size = min(most, self._left())
        for _ in range(PATIENCE if size else 0):
            for _ in range(most):
                if len(self._asked) < size and (self._waiting() or not self._only_waiting):
                    self._ask()
            if self._asked or self._only_waiting:
                return [self._settings(key) for key in self._asked]
        self._exhausted = size > 0
        return []

    @property
    def _only_waiting(self) -> bool:
        """True if only enqueued trials are left, and no new setting is proposed."""
        return self._everything or self._exhausted

    @_in_a_line
    def others_work(self) -> bool:
        """Return whether another worker tries something."""
        return bool(self._of_others())

    def _left(self) -> int:
        """Return the number of settings that may still be begun."""
        taken = {self._key(trial) for trial in self._all() if self._is(trial, "COMPLETE", "RUNNING")}
        return max(0, self._trials - len(taken))

    def _ask(self) -> None:
        """Ask the study for settings. Give them back if they are known, are being tried, or exceed the number of trials."""
        trial = self._study.ask(self._distributions)
        key = tuple(trial.params[knob.name] for knob in self._task.knobs)
        known = next((each for each in self._all() if self._is(each, "COMPLETE") and self._key(each) == key), None)
        others = {self._key(each) for each in self._all() if self._is(each, "COMPLETE") or self._goes_before(each, trial.number)}
        if known is not None:
            self._study.tell(trial, known.values)
        elif key in self._asked:
            self._study.tell(trial, state=self._optuna.trial.TrialState.PRUNED)
        elif key in others or len(others) >= self._trials or not self._allowed(key):
            self._study.tell(trial, state=self._optuna.trial.TrialState.FAIL)
        else:
            trial.set_user_attr(_BEAT, f"{self._me} 0")
            self._asked[key] = trial

    def _goes_before(self, other: Any, number: int) -> bool:
        """Return whether another running trial has its settings by right: it began earlier, or is simulated already."""
        return self._is(other, "RUNNING") and (other.number < number or (other.number > number and _BEAT in other.user_attrs))

    @_undisturbed()
    @_in_a_line
    def learn(self, settings: Settings, result: Result) -> None:
        """Report a result. A trial that another worker took over meanwhile is that worker's."""
        trial = self._asked.pop(tuple(settings.values()))
        losses = [one.loss(value) for one, value in zip(self._task.objectives, result.values, strict=True)]
        with suppress(*self._over):
            trial.set_user_attr(_PENDING, result.pending)
            self._study.tell(trial, losses)

    # --- workers that come and go -----------------------------------------------------------------------------------------------

    @contextmanager
    def working(self) -> Iterator[None]:
        """Give signs of life while the context is open. At the end, give unfinished trials back to the study."""
        over = threading.Event()
        beating = threading.Thread(target=self._beat, args=(over,), daemon=True)
        beating.start()
        try:
            yield
        finally:
            over.set()
            beating.join()
            with suppress(InputError):  # if the storage is away, other workers take the trials over
                self._give_back()

    def _beat(self, over: threading.Event) -> None:
        number = 0
        while not over.wait(self.pace.beat):
            number += 1
            for trial in list(self._asked.values()):
                # The storage is away, or the trial has just ended. The search itself will meet the same error.
                with suppress(Exception):
                    trial.set_user_attr(_BEAT, f"{self._me} {number}")

    @_in_a_line
    def _give_back(self) -> None:
        while self._asked:
            key, trial = self._asked.popitem()
            self._release(trial.number, key)

    def _take_over(self) -> None:
        """Give trials of workers without a sign of life, by our own clock, to the next worker that asks."""
        now, running = self._clock(), self._of_others()
        for trial in running:
            sign = str(trial.user_attrs.get(_BEAT))
            seen, since = self._signs.get(trial.number, ("", now))
            if sign != seen:
                self._signs[trial.number] = sign, now
            elif now - since >= self.pace.silence:
                self._release(trial.number, self._key(trial))
        numbers = {trial.number for trial in running}
        self._signs = {number: sign for number, sign in self._signs.items() if number in numbers}

    def _release(self, number: int, key: Key) -> None:
        """Fail a trial, and enqueue its settings. Only the first of several workers does so."""
        with suppress(*self._over):
            self._study.tell(number, state=self._optuna.trial.TrialState.FAIL)
            if self._allowed(key):
                self._study.enqueue_trial(self._settings(key))

    # --- trials ------------------------------------------------------------------------------------------------------------------

    def _all(self) -> Sequence[Any]:
        found: Sequence[Any] = self._study.get_trials(deepcopy=False)
        return found

    def _is(self, trial: Any, *states: str) -> bool:
        return trial.state.name in states

    def _failed(self, trial: Any) -> bool:
        return self._is(trial, "FAIL", "PRUNED")

    def _waiting(self) -> bool:
        return any(self._is(trial, "WAITING") for trial in self._all())

    def _of_others(self) -> list[Any]:
        mine = {trial.number for trial in self._asked.values()}
        return [trial for trial in self._all() if self._is(trial, "RUNNING") and trial.number not in mine]

    def _key(self, trial: Any) -> Key:
        """Return the settings of a trial, in the order of the knobs. Missing ones are empty."""
        params: Mapping[str, Setting] = trial.params or trial.system_attrs.get("fixed_params") or {}
        return tuple(params.get(knob.name, "") for knob in self._task.knobs)

    def _settings(self, key: Key) -> dict[str, Setting]:
        return {knob.name: value for knob, value in zip(self._task.knobs, key, strict=True)}

    def _allowed(self, key: Key) -> bool:
        return all(value in knob.choices for knob, value in zip(self._task.knobs, key, strict=True))


def tune(search: Search, trials: int, jobs: int = 1, told: Told = lambda _: None) -> None:
    """Try the unchanged profile, then up to `trials` settings: every combination in order, or the proposals of a study in memory.

    `told` is called when trials have ended. After an interruption `search` has the results so far. Raises `InputError` for an objective
    that the scenario has nothing of, and `ProfileError` for settings that the profile cannot have.
    """
    task = search.task
    if task.combinations > trials:
        tune_together(search, SharedStudy(StudyPlace(None, "in memory"), task, trials), jobs, told)
        return
    check_corners(task)
    rounds: tuple[list[Settings], ...] = ([{}], list(all_settings(task.knobs)))
    with evaluator_of(task, jobs) as evaluate:
        for several in rounds:
            for settings, result in zip(several, evaluate(several), strict=True):
                search.add(settings, result)
                told(search)


def tune_together(
    search: Search, study: SharedStudy, jobs: int, told: Told = lambda _: None, pause: Callable[[float], None] = time.sleep
) -> None:
    """Work at the study until all its trials are done, here or elsewhere. After an interruption `search` has the results of all workers.

    Raises as `tune` does.
    """
    check_corners(search.task)
    with study.working(), evaluator_of(search.task, jobs) as evaluate:
        as_it_is = study.as_it_is
        if as_it_is is None:
            study.as_it_is = as_it_is = next(iter(evaluate([{}])))
        _show(search, as_it_is, study, told)
        while True:
            several = study.next_round(jobs)
            for settings, result in zip(several, evaluate(several), strict=True):
                study.learn(settings, result)
                _show(search, as_it_is, study, told)
            if not several:
                if not study.others_work():
                    break
                pause(study.pace.look)
        _show(search, as_it_is, study, told)


def _show(search: Search, as_it_is: Result, study: SharedStudy, told: Told) -> None:
    """Fill the search with the results of all workers."""
    search.trials = []
    search.add({}, as_it_is)
    for settings, result in study.finished():
        search.add(settings, result)
    told(search)


def identity_of(task: Task) -> dict[str, Any]:
    """Return the facts in which two equal searches agree: trials of a search that differs in any of them tell nothing about it."""
    scenario = (list(task.scenario.objects), list(task.scenario.happenings), dict(task.scenario.durations))
    return {
        "objectives": ",".join(objective.name for objective in task.objectives),
        "vary": "; ".join(f"{knob.name}={'|'.join(map(str, knob.choices))}" for knob in task.knobs),
        "seed": task.seed,
        "pods": str(task.which),
        "profile": _digest(task.base.spec),
        "scenario": _digest(scenario),
    }


def _digest(data: Any) -> str:
    try:
        return sha256(msgspec.json.encode(data, order="deterministic")).hexdigest()[:16]
    except (TypeError, ValueError) as error:
        raise InputError(f"--storage: the scenario cannot be told from another: {error}") from None
