"""Searches that several workers share in a storage of Optuna's: the same as alone, each setting once, and none lost with a worker."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from placewright.api.bad_input import InputError
from placewright.cli.main import main
from placewright_lab.simulation.simulation import Which
from placewright_lab.tune import sharedstudy
from placewright_lab.tune.sharedstudy import SharedStudy, StudyPace, StudyPlace, tune, tune_together
from placewright_lab.tune.studystorage import errors_in_a_line, open_storage, without_password
from placewright_lab.tune.weightsearch import Result, Search, Settings, Task, TunedSetting, parse_objectives

from .test_tuning import WEIGHTS, spec, task, told, world

FINE = (TunedSetting("NodeResourcesFit", range(30)), TunedSetting("NodeResourcesBalancedAllocation", range(30)))
AS_IT_IS = Result((9.0, 9.0), 9)


class Time:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(name="journal")
def _journal(tmp_path: Path) -> str:
    return str(tmp_path / "study.journal")


def worker(storage: str, of: Task, trials: int, number: int = 0, **more: Any) -> SharedStudy:
    return SharedStudy(StudyPlace(open_storage(storage), "s"), of, trials, number, **more)


def together(storage: str, of: Task, trials: int, number: int = 0) -> Search:
    search = Search(of)
    tune_together(search, worker(storage, of, trials, number), 1)
    return search


def result_of(settings: Settings) -> Result:
    """Return a possible result of a simulation."""
    values = [int(value) for value in settings.values()]
    return Result((float(sum(values)), float(values[0])), sum(values))


def learn(study: SharedStudy, several: Sequence[Settings]) -> None:
    for settings in several:
        study.learn(settings, result_of(settings))


def keys(several: Sequence[Settings]) -> list[tuple[Any, ...]]:
    return [tuple(settings.values()) for settings in several]


def states(study: SharedStudy) -> list[str]:
    return [trial.state.name for trial in study._all()]


@pytest.mark.parametrize("url", ["{}/a.journal", "journal://{}/a.journal", "sqlite:///{}/a.db"])
@pytest.mark.parametrize(("knobs", "trials"), [(WEIGHTS, 16), (FINE, 11)])
def test_one_worker_finds_what_it_finds_without_a_storage(tmp_path: Path, url: str, knobs: tuple[TunedSetting, ...], trials: int) -> None:
    of = task(world(1), *knobs, seed=3)
    alone = Search(of)
    tune(alone, trials)
    shared = together(url.format(tmp_path), of, trials)
    assert told(shared) == told(alone)
    assert [trial.result.pending for trial in shared.trials] == [trial.result.pending for trial in alone.trials]
    assert shared.best == alone.best


def test_a_study_that_is_done_is_shown_again_without_a_simulation(journal: str, monkeypatch: pytest.MonkeyPatch) -> None:
    of = task(world(1), *FINE)
    first = together(journal, of, 9)
    monkeypatch.setattr(sharedstudy, "evaluator_of", lambda *_: pytest.fail("simulated"))
    study, search = worker(journal, of, 9), Search(of)
    assert study.next_round(1) == []
    assert study.as_it_is is not None
    sharedstudy._show(search, study.as_it_is, study, lambda _: None)
    assert told(search) == told(first)


@pytest.mark.parametrize(("knobs", "trials"), [(WEIGHTS, 16), (FINE, 20)])
def test_an_interrupted_search_goes_on_where_it_was(journal: str, knobs: tuple[TunedSetting, ...], trials: int) -> None:
    of = task(world(1), *knobs)
    search = Search(of)

    def stop(so_far: Search) -> None:
        if len(so_far.trials) == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune_together(search, worker(journal, of, trials), 1, stop)
    assert "RUNNING" not in states(worker(journal, of, trials)), "what was not finished was given back"
    found = [dict(trial.settings) for trial in search.trials[1:]]
    assert len(found) == 5
    again = together(journal, of, trials)
    tried = [tuple(trial.settings.items()) for trial in again.trials[1:]]
    assert len(tried) == len(set(tried)) == trials
    assert [dict(trial.settings) for trial in again.trials[1:6]] == found


@pytest.mark.parametrize(("knobs", "trials"), [(WEIGHTS, 16), (FINE, 21)])
def test_workers_try_each_setting_once_and_no_more_than_they_may_together(
    journal: str, knobs: tuple[TunedSetting, ...], trials: int
) -> None:
    of = task(world(1), *knobs)
    several = [worker(journal, of, trials, number) for number in range(3)]
    tried: list[tuple[Any, ...]] = []
    while rounds := [(study, study.next_round(1)) for study in several]:
        if not any(settings for _, settings in rounds):
            break
        for study, settings in rounds:
            tried += keys(settings)
            learn(study, settings)
    assert len(tried) == len(set(tried)) == trials
    assert all(sorted(keys([one for one, _ in study.finished()])) == sorted(tried) for study in several)


def test_workers_of_one_seed_and_one_number_get_different_settings(journal: str) -> None:
    of = task(world(1), *FINE)
    first, second = worker(journal, of, 40), worker(journal, of, 40)
    one, other = first.next_round(1), second.next_round(1)
    assert len(one) == len(other) == 8
    assert not set(keys(one)) & set(keys(other))


def test_another_number_draws_other_settings_from_the_same_seed(tmp_path: Path) -> None:
    of = task(world(1), *FINE)
    rounds = [worker(str(tmp_path / f"{at}"), of, 40, number).next_round(1) for at, number in enumerate((0, 0, 1))]
    assert rounds[0] == rounds[1] != rounds[2]


@pytest.mark.parametrize(("knobs", "trials"), [(WEIGHTS, 16), (FINE, 8)])
def test_what_a_dead_worker_was_at_goes_to_another_after_a_while(journal: str, knobs: tuple[TunedSetting, ...], trials: int) -> None:
    of, clock = task(world(1), *knobs), Time()
    dead, heir = worker(journal, of, trials), worker(journal, of, trials, 1, clock=clock)
    lost = dead.next_round(1)
    learn(dead, lost[:2])
    learn(heir, heir.next_round(1))
    assert heir.others_work()
    clock.now += heir.pace.silence - 1
    assert heir.next_round(1) == [], "it may still be at work"
    clock.now += 1
    assert sorted(keys(heir.next_round(1))) == sorted(keys(lost[2:]))
    assert not heir.others_work()
    dead.learn(lost[2], result_of(lost[2]))
    learn(heir, lost[2:])
    assert len(heir.finished()) == trials, "what the dead one says after all counts once"
    assert heir.next_round(1) == []


def test_a_worker_that_shows_signs_of_life_keeps_what_it_is_at(journal: str) -> None:
    of, clock = task(world(1), *FINE), Time()
    slow, other = worker(journal, of, 8), worker(journal, of, 8, 1, clock=clock)
    slow.next_round(1)
    for beat in range(5):
        assert other.next_round(1) == []
        clock.now += other.pace.silence - 1
        for trial in slow._asked.values():
            trial.set_user_attr(sharedstudy._BEAT, f"alive {beat}")
    assert other.others_work()


def test_signs_of_life_are_given_while_a_simulation_runs(journal: str) -> None:
    of = task(world(1), *FINE)
    study = worker(journal, of, 8, pace=StudyPace(beat=0.01))
    with study.working():
        study.next_round(1)
        begun = time.monotonic()
        while min(int(trial.user_attrs[sharedstudy._BEAT].split()[1]) for trial in study._all()) < 2:
            assert time.monotonic() - begun < 60
    assert set(states(study)) == {"FAIL", "WAITING"}, "given back at the end"


def test_a_worker_with_nothing_to_do_waits_for_the_others(journal: str) -> None:
    of = task(world(1), *FINE)
    busy = worker(journal, of, 8)
    several = busy.next_round(1)
    search, waits = Search(of), []

    def pause(seconds: float) -> None:
        waits.append(seconds)
        learn(busy, several[4 * len(waits) - 4 : 4 * len(waits)])

    tune_together(search, worker(journal, of, 8, 1), 1, pause=pause)
    assert waits == [StudyPace().look] * 2
    assert len(search.trials) == 9


CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("objectives", {"objectives": parse_objectives("pending")}),
    ("objectives", {"objectives": parse_objectives("pending,cpu-std")}),
    ("vary", {"knobs": (TunedSetting("NodeResourcesFit", range(31)),)}),
    ("seed", {"seed": 8}),
    ("pods", {"which": Which.ALL}),
    ("profile", {"base": spec(weights={"ImageLocality": 7})}),
    ("scenario", {"scenario": world(2)}),
]


@pytest.mark.parametrize(("what", "change"), CHANGES)
def test_a_study_of_another_search_is_refused(journal: str, what: str, change: dict[str, Any]) -> None:
    of = task(world(1), *FINE)
    worker(journal, of, 8)
    with pytest.raises(InputError, match=f"--study s: {what}: found .*or another name of a study"):
        worker(journal, replace(of, **change), 8)


def test_a_study_that_somebody_else_began_is_refused(journal: str) -> None:
    import optuna  # noqa: PLC0415

    study = optuna.create_study(storage=open_storage(journal), study_name="s", directions=["minimize", "minimize"])
    study.ask({"x": optuna.distributions.FloatDistribution(0, 1)})
    with pytest.raises(InputError, match="a study that tune did not begin"):
        worker(journal, task(world(1), *FINE), 8)


@pytest.mark.parametrize("as_it_is", [{}, {"values": [1.0], "pending": 1}, {"values": "ab", "pending": 1}, 7])
def test_a_study_s_own_notes_are_believed_only_where_they_make_sense(journal: str, as_it_is: object) -> None:
    study = worker(journal, task(world(1), *FINE), 8)
    study._study.set_user_attr("placewright:as-it-is", as_it_is)
    assert study.as_it_is is None
    study.as_it_is = AS_IT_IS
    assert study.as_it_is == AS_IT_IS


def test_settings_that_nobody_asked_for_are_not_tried(journal: str) -> None:
    study = worker(journal, task(world(1), *FINE), 8)
    study._study.enqueue_trial({"NodeResourcesFit": 1_000_000, "NodeResourcesBalancedAllocation": 1})
    assert all(int(value) < 30 for settings in study.next_round(1) for value in settings.values())


def test_half_a_line_of_a_journal_is_dropped_and_the_search_goes_on(journal: str) -> None:
    of = task(world(1), *FINE)
    first = together(journal, of, 8)
    with Path(journal).open("ab") as file:
        file.write(b'{"op_code":5,"worker_id":"gone","stu')
    assert told(together(journal, of, 8)) == told(first)
    assert len(together(journal, of, 10).trials) == 11
    Path(journal).write_bytes(b'{"op_code":0,"wor')
    assert len(together(journal, of, 8).trials) == 9


RUBBISH = (
    b"sn,cpu\nn-0,4", b"{}\n", b"[1]\n", b"5\n", b"\xff\xfe\n\n", b"{\n\n",
    b'{"op_code":77}\n', b'{"op_code":0}\n', b'{"op_code":5,"study_id":3}\n',
)  # fmt: skip


@pytest.mark.parametrize("content", RUBBISH)
def test_a_file_that_is_no_journal_is_refused_in_a_line_and_left_alone(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "mine.csv"
    file.write_bytes(content)
    with pytest.raises(InputError, match=r"--storage .*mine\.csv: ") as refused, errors_in_a_line(str(file)):
        SharedStudy(StudyPlace(open_storage(str(file)), "s"), task(world(1), *FINE), 8)
    assert "\n" not in str(refused.value)
    assert file.read_bytes() == content


@pytest.mark.parametrize(
    ("storage", "said"),
    [
        ("", "found ''; allowed a path"),
        ("://x", "allowed a path"),
        ("nosuch://host/x", "Can't load plugin"),
        ("postgresql+nosuch://u:secret@host/x", "Can't load plugin"),
        ("sqlite:///{}", "unable to open database file"),
        ("sqlite:///{}/text", "file is not a database"),
        ("{}", "Is a directory"),
        ("{}/text/below", "Not a directory"),
        ("journal:///proc/no/such", "No such file"),
        ("a\0b", "allowed a path"),
    ],
)
def test_a_place_that_cannot_be_is_one_line(tmp_path: Path, storage: str, said: str) -> None:
    (tmp_path / "text").write_text("not a database, and long enough to be looked at as one: " * 20)
    with pytest.raises(InputError) as refused:
        open_storage(storage.format(tmp_path))
    assert said in str(refused.value)
    assert "secret" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_driver_that_is_missing_is_named_and_the_password_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    drivers = {"psycopg2": "psycopg2-binary", "psycopg": "'psycopg[binary]'"}
    for driver, package in drivers.items():
        monkeypatch.setitem(sys.modules, driver, None)
        with pytest.raises(InputError) as refused:
            open_storage(f"postgresql+{driver}://u:secret@host/x")
        said = f"the driver {driver} is not installed: pip install {package}"
        assert str(refused.value) == f"--storage postgresql+{driver}://u@host/x: {said}"
    with pytest.raises(InputError, match=r"is not installed: pip install .*psycopg"):
        open_storage("postgresql://u:secret@host/x")
    assert without_password("postgresql://u:a@b@host/x") == "postgresql://u@host/x"
    assert without_password("/a:b@c") == "/a:b@c"


# --- the command ---------------------------------------------------------------------------------------------------------------

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn-0,4000,8192,1,T4\nn-1,4000,8192,1,T4\nn-2,4000,8192,0,\n"
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
    "p-0,1000,1024,1,500,,LS,Running,0,100,0\np-1,1000,1024,1,500,,LS,Running,0,100,0\np-2,1000,1024,1,1000,,LS,Running,0,500,0\n"
)


@pytest.fixture(name="words")
def _words(tmp_path: Path) -> list[str]:
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "pods.csv").write_text(PODS)
    files = ["-f", str(tmp_path / "nodes.csv"), "-f", str(tmp_path / "pods.csv"), "--at-once"]
    return ["tune", *files, "--objective", "cpu-std,pending", "--vary", "NodeResourcesFit=0..300", "--trials", "24", "-o", "json"]


def started(words: Sequence[str]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "placewright.cli.main", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("url", ["{}/a.journal", "sqlite:///{}/a.db"])
def test_processes_that_begin_at_once_share_one_search(tmp_path: Path, words: list[str], url: str) -> None:
    several = [started([*words, "--storage", url.format(tmp_path), "--worker", str(number)]) for number in range(3)]
    outputs = [process.communicate(timeout=100) for process in several]
    assert [(process.returncode, err) for process, (_, err) in zip(several, outputs, strict=True)] == [(0, "")] * 3
    found = [json.loads(out) for out, _ in outputs]
    assert found[0] == found[1] == found[2]
    tried = [trial["settings"]["NodeResourcesFit"] for trial in found[0]["trials"][1:]]
    assert len(tried) == len(set(tried))
    assert 24 <= len(tried) <= 26, "two that begin in the same moment may not see each other"


def test_a_worker_that_is_told_to_end_gives_back_what_it_was_at(tmp_path: Path, words: list[str]) -> None:
    journal = tmp_path / "a.journal"
    process = started([*words, "--trials", "290", "--storage", str(journal)])
    begun = time.monotonic()
    while not (journal.exists() and journal.read_text().count(sharedstudy._PENDING) > 3):
        assert process.poll() is None
        assert time.monotonic() - begun < 90
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "")
    assert len(json.loads(out)["trials"]) > 3
    import optuna  # noqa: PLC0415

    study = optuna.load_study(study_name="tune", storage=open_storage(str(journal)))
    assert "RUNNING" not in {trial.state.name for trial in study.trials}


def test_the_options_of_a_shared_search_belong_together(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for option, value in (("--study", "x"), ("--worker", "1")):
        assert main([*words, option, value]) == 2
        assert f"{option}: found '{value}'; allowed only with --storage" in capsys.readouterr().err.replace("found 1;", "found '1';")
    assert main([*words, "--storage", "nosuch://x"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("placewright: error: --storage nosuch://x: ")
