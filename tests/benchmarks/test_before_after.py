"""`python -m benchmarks … --before`: which checkout, which turns, what ratios come to. Made-up checkouts print the times they are given."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks.__main__ import main
from benchmarks.beforeafter import (
    CONFIDENCE,
    FEWEST_ROUNDS,
    BeforeAfter,
    Tendency,
    Turn,
    in_turns,
    median_interval,
    named,
    rows_of,
)
from benchmarks.checkouts import checkout_named, commit_of, running
from placewright.api.bad_input import InputError
from programs import program

ROUNDS = FEWEST_ROUNDS
#: A benchmark that takes as long as the file beside it says, and knows some workloads. It notes each turn.
BENCHMARK = """
import json, pathlib, sys
import placewright
here = pathlib.Path(placewright.__file__).resolve().parent
from placewright_lab import KNOWN
words = sys.argv[1:]
workload = words[words.index("--workloads") + 1]
with (here / "turns").open("a") as turns:
    turns.write(" ".join(words) + "\\n")
if workload not in KNOWN:
    sys.stderr.write("placewright: error: found '%s'; allowed some of %s\\n" % (workload, ", ".join(KNOWN)))
    sys.exit(2)
times = json.loads((here / "times.json").read_text())
print(json.dumps([{"workload": workload, "nodes": 7, "pods": 9, "placed": times["placed"], "seconds": [times["seconds"], 99.0]}]))
"""


def checkout(folder: Path, seconds: float, known: tuple[str, ...] = ("plain", "hard-spread"), placed: int = 9) -> Path:
    """Make a checkout."""
    source = folder / "operator"
    for package in ("placewright", "placewright_lab", "kubesandbox"):
        (source / package).mkdir(parents=True)
        (source / package / "__init__.py").touch()
    (source / "placewright" / "__init__.py").touch()
    (source / "placewright" / "times.json").write_text(json.dumps({"seconds": seconds, "placed": placed}))
    (folder / "benchmarks").mkdir()
    (folder / "benchmarks" / "__init__.py").touch()
    (folder / "benchmarks" / "__main__.py").write_text(BENCHMARK)
    (source / "placewright_lab" / "__init__.py").write_text(f"KNOWN = {known!r}\n")
    return folder


def turns(folder: Path) -> list[str]:
    return (folder / "operator" / "placewright" / "turns").read_text().splitlines()


def compare(capsys: pytest.CaptureFixture[str], before: object, after: object, *words: str, code: int = 0) -> Any:
    arguments = ["decisions", "--workloads", "plain", "--nodes", "7", "--before", str(before), "--after", str(after)]
    assert main([*arguments, *words, "-o", "json"]) == code
    return json.loads(capsys.readouterr().out)


def one_of(*ratios: float) -> BeforeAfter:
    return BeforeAfter({}, [Turn(2.0)] * len(ratios), [Turn(2.0 * ratio) for ratio in ratios])


def test_twice_the_time_is_slower_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = checkout(tmp_path / "a", 1.0), checkout(tmp_path / "b", 2.0)
    data = compare(capsys, before, after, code=1)
    (one,) = data["measured"]
    assert (one["workload"], one["nodes"], one["ratio"], one["tendency"], one["lost"]) == ("plain", 7, 2.0, "slower", True)
    assert one["before"] == [1.0] * ROUNDS
    assert turns(before) == turns(after) == ["decisions --workloads plain --nodes 7 -o json"] * (ROUNDS + 1)


def test_half_the_time_is_faster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = compare(capsys, checkout(tmp_path / "a", 1.0), checkout(tmp_path / "b", 0.5))
    assert (data["measured"][0]["tendency"], data["measured"][0]["lost"]) == ("faster", False)


def test_a_loss_within_the_tolerance_is_told_and_does_not_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = checkout(tmp_path / "a", 1.0), checkout(tmp_path / "b", 1.04)
    assert compare(capsys, before, after)["measured"][0]["tendency"] == "slower"
    assert compare(capsys, before, after, "--tolerance", "3", code=1)["measured"][0]["lost"]


def test_what_cannot_be_measured_before_is_left_out_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = checkout(tmp_path / "a", 1.0), checkout(tmp_path / "b", 2.0)
    (before / "operator" / "placewright" / "times.json").write_text('{"seconds": ')
    data = compare(capsys, before, after, code=1)
    assert data["measured"] == []
    (line,) = data["left_out"]
    assert "decisions --workloads plain --nodes 7: cannot be measured before: " in line
    assert "JSONDecodeError" in line


def test_what_only_the_older_version_can_measure_is_left_out_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = checkout(tmp_path / "a", 1.0), checkout(tmp_path / "b", 1.0, known=("hard-spread",))
    data = compare(capsys, before, after, "--workloads", "plain,hard-spread")
    assert [one["workload"] for one in data["measured"]] == ["hard-spread"]
    said = "cannot be measured after: found 'plain'; allowed some of hard-spread"
    assert data["left_out"] == [f"decisions --workloads plain --nodes 7: {said}"]


def test_what_is_broken_after_the_change_fails_with_what_it_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = checkout(tmp_path / "a", 1.0), checkout(tmp_path / "b", 2.0)
    (after / "operator" / "placewright" / "times.json").unlink()
    assert main(["decisions", "--before", str(before), "--after", str(after)]) == 1
    assert "FileNotFoundError" in capsys.readouterr().err


def test_different_work_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = checkout(tmp_path / "a", 1.0), checkout(tmp_path / "b", 1.0, placed=8)
    assert not compare(capsys, before, after)["measured"][0]["same_work"]
    assert main(["decisions", "--workloads", "plain", "--before", str(before), "--after", str(after)]) == 0
    out = capsys.readouterr().out
    assert "different work: plain, 7 nodes, 9 pods: placed 9 before, 8 after" in out
    assert "no difference" in out


def test_each_workload_and_size_has_turns_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = checkout(tmp_path / "a", 1.0), checkout(tmp_path / "b", 1.0)
    compare(capsys, before, after, "--workloads", "plain,hard-spread", "--nodes", "5,7", "--pods", "9")
    sizes = [("plain", 5), ("plain", 7), ("hard-spread", 5), ("hard-spread", 7)]
    asked = [f"decisions --workloads {workload} --nodes {nodes} --pods 9 -o json" for workload, nodes in sizes]
    assert turns(before) == [each for each in asked for _ in range(ROUNDS + 1)]


def test_a_commit_is_taken_from_the_repository_as_it_was_committed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = checkout(tmp_path / "repository", 1.0)
    (folder / "crds").mkdir()
    (folder / "crds" / "one.yaml").touch()
    git = [program("git"), "-C", str(folder), "-c", "user.name=n", "-c", "user.email=e"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "one"]):
        subprocess.run([*git, *words], check=True)
    (folder / "operator" / "placewright" / "times.json").write_text("{}")
    (tmp_path / "scratch").mkdir()
    found = checkout_named("HEAD", tmp_path / "scratch", folder / "operator")
    assert found.run(["decisions", "--workloads", "plain"])[0]["seconds"] == [1.0, 99.0]
    assert commit_of(folder / "operator" / name for name in ("placewright", "placewright_lab", "kubesandbox")) == found.commit + "+"
    assert found.name == f"HEAD ({found.commit[:7]})"


@pytest.mark.parametrize(
    ("text", "said"), [("no-such", "found 'no-such'; allowed a folder"), ("--all", "found '--all'"), (".", "operator/placewright")]
)
def test_what_is_no_checkout_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=said):
        checkout_named(text, tmp_path, Path(__file__).parent)


def test_a_folder_whose_packages_do_not_load_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "placewright").mkdir()
    (tmp_path / "placewright" / "__init__.py").write_text("raise SystemExit(3)")
    assert main(["decisions", "--before", str(tmp_path)]) == 2
    assert "packages that Python does not load" in capsys.readouterr().err


def test_fewer_rounds_than_can_tell_anything_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["gangs", "--before", "HEAD", "--rounds", str(FEWEST_ROUNDS - 1)])
    assert f"allowed a whole number from {FEWEST_ROUNDS}" in capsys.readouterr().err


def test_a_difference_stands_out_only_where_the_whole_interval_does() -> None:
    assert one_of(1.2, 1.1, 1.3, 1.2, 1.01, 1.2).tendency is Tendency.SLOWER
    assert one_of(1.2, 1.1, 1.3, 1.2, 0.99, 1.2).tendency is Tendency.UNDECIDED
    assert one_of(0.9, 0.8, 0.7, 0.9, 0.8, 0.9).tendency is Tendency.FASTER
    assert one_of(2.0, 2.0, 2.0).tendency is Tendency.UNDECIDED, "three turns tell nothing"


def test_the_interval_holds_the_median_as_often_as_it_says() -> None:
    rng = random.Random(1)
    for number in (FEWEST_ROUNDS, 9, 20):
        hits = 0
        for _ in range(2000):
            low, high = median_interval([rng.expovariate(1.0) for _ in range(number)])
            hits += low <= 0.6931 <= high
        assert hits / 2000 >= CONFIDENCE - 0.015


def test_the_interval_is_that_of_the_tables() -> None:
    """Ranks of the 95 % interval of a median, as tables of order statistics have them (Conover 1999, table A3)."""
    ranks = {6: (1, 6), 8: (1, 8), 9: (2, 8), 12: (3, 10), 15: (4, 12), 20: (6, 15), 25: (8, 18)}
    for number, (low, high) in ranks.items():
        assert median_interval(list(range(1, number + 1))) == (low, high)


@pytest.mark.parametrize("benchmark", ["decisions", "gangs", "devices", "moves", "end-to-end"])
def test_every_benchmark_of_our_own_code_can_be_compared(benchmark: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([benchmark, "--help"])
    assert "--before COMMIT|FOLDER" in capsys.readouterr().out


def test_two_real_checkouts_are_measured_by_their_own_code(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    before, after = checkout_named(str(root), tmp_path, root), running(tmp_path)
    (one,), left_out = in_turns(before, after, ["gangs", "--nodes", "400", "--groups", "2", "--members", "2"], 1)
    assert (one.what["workload"], one.what["nodes"], one.what["groups"], one.same_work) == ("gangs", 400, 2, True)
    assert (len(one.before), len(one.after), left_out) == (1, 1, [])
    assert {each.resolve() for each in before.source.iterdir()} == {each.resolve() for each in after.source.iterdir()}


def test_every_line_that_a_benchmark_prints_is_told_from_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = {"moves": ("--waiting", "20", "--claims", "20"), "devices": ("--nodes", "300", "--pods", "5")}
    for benchmark, words in sizes.items():
        assert main([benchmark, *words, "-o", "json"]) == 0
        printed = json.loads(capsys.readouterr().out)
        rows = list(rows_of(benchmark, printed))
        assert len({named(what) for what, _ in rows}) == len(rows) == len(printed) > 3
        assert all(turn.seconds > 0 for _, turn in rows)
