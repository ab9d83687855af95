"""`placewright tune`: the front as a table and as data, the best as a profile that validates, and one line for whatever is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from placewright.cli.main import main
from placewright_lab.commands import tune
from placewright_lab.tune.weightsearch import STRATEGY, Search

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn-0,4000,8192,1,T4\nn-1,4000,8192,1,T4\nn-2,4000,8192,0,\n"
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
    "p-0,1000,1024,1,500,,LS,Running,0,100,0\n"
    "p-1,1000,1024,1,500,,LS,Running,0,100,0\n"
    "p-2,1000,1024,0,0,,LS,Running,0,500,0\n"
    "p-3,1000,1024,1,1000,,LS,Running,0,500,0\n"
)
FIT = ("--vary", "NodeResourcesFit=0..2")


@pytest.fixture
def trace(tmp_path: Path) -> list[str]:
    """Write two halves of a GPU and a whole one. All fit if the halves share."""
    nodes, pods = tmp_path / "nodes.csv", tmp_path / "pods.csv"
    nodes.write_text(NODES)
    pods.write_text(PODS)
    return ["-f", str(nodes), "-f", str(pods), "--at-once", "--processes", "1"]


def profile_file(folder: Path, name: str, spec: str = "") -> str:
    path = folder / f"{name}.yaml"
    kind = "apiVersion: placewright.dev/v1alpha1\nkind: SchedulingProfile"
    path.write_text(f"{kind}\nmetadata: {{name: {name}}}\nspec: {{schedulerName: default-scheduler, {spec}}}\n")
    return str(path)


def tuned(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["tune", "-o", "json", *arguments]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the one line about wrong input."""
    assert main(["tune", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    return line.removeprefix("placewright: error: ")


def test_the_best_makes_room_and_is_written_as_a_profile_that_validates(
    capsys: pytest.CaptureFixture[str], trace: list[str], tmp_path: Path
) -> None:
    base, best = profile_file(tmp_path, "ours", "weights: {NodeAffinity: 9}"), tmp_path / "best.yaml"
    strategy = f"{STRATEGY}=LeastAllocated|MostAllocated"
    arguments = [*trace, "--objective", "placed-gpu,pending", *FIT, "--vary", strategy, "--profile", base, "--write", str(best)]
    data = tuned(capsys, *arguments)
    assert [len(data["trials"]), data["combinations"]] == [7, 6]
    chosen = data["trials"][data["best"]]
    assert data["trials"][0]["values"] == {"placed-gpu": 1, "pending": 1}
    assert chosen["values"] == {"placed-gpu": 2, "pending": 0}

    assert main(["validate", str(best)]) == 0
    written = yaml.safe_load(best.read_text())
    assert written["metadata"]["name"] == "ours"
    assert written["spec"]["weights"] == {"NodeAffinity": 9, "NodeResourcesFit": chosen["settings"]["NodeResourcesFit"]}
    capsys.readouterr()
    assert main(["simulate", "-o", "json", *trace[:-2], "--profile", str(best)]) == 0
    assert json.loads(capsys.readouterr().out)["profiles"][0]["pending"] == 0


def test_the_table_has_the_profile_as_it_is_and_the_front(capsys: pytest.CaptureFixture[str], trace: list[str]) -> None:
    assert main(["tune", *trace, "--objective", "placed-gpu", *FIT, "--vary", f"{STRATEGY}=MostAllocated"]) == 0
    head, first, best, summary = capsys.readouterr().out.splitlines()
    assert head.split() == ["TRIAL", "NodeResourcesFit", STRATEGY, "PLACED-GPU", "PENDING"]
    assert first.split() == ["0", "–", "–", "1", "1", "as", "it", "is,", "beaten"]
    assert best.split()[2:] == ["MostAllocated", "2", "0", "best"]
    assert summary == "3 of 3 combinations tried with seed 0, for placed-gpu (more is better)"


def test_without_a_profile_the_best_gets_a_name(capsys: pytest.CaptureFixture[str], trace: list[str], tmp_path: Path) -> None:
    best = tmp_path / "best.yaml"
    tuned(capsys, *trace, "--objective", "pending", *FIT, "--write", str(best))
    assert yaml.safe_load(best.read_text())["metadata"] == {"name": "tuned"}


def test_a_seed_gives_the_same_search_again(capsys: pytest.CaptureFixture[str], trace: list[str]) -> None:
    arguments = [*trace, "--objective", "cpu-std,pending", "--vary", "NodeResourcesFit=0..90", "--trials", "9", "--seed", "5"]
    first = tuned(capsys, *arguments)
    assert (first["seed"], len(first["trials"])) == (5, 10)
    assert tuned(capsys, *arguments) == first


def test_an_interrupted_search_shows_and_writes_what_was_found(
    capsys: pytest.CaptureFixture[str], trace: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stops(trials: int) -> Any:
        def told(search: Search) -> None:
            if len(search.trials) == 2:
                raise KeyboardInterrupt

        return told

    monkeypatch.setattr(tune, "_progress", stops)
    best = tmp_path / "best.yaml"
    assert main(["tune", *trace, "--objective", "pending", *FIT, "--write", str(best)]) == 130
    assert "1 of 3 combinations tried" in capsys.readouterr().out
    assert main(["validate", str(best)]) == 0


@pytest.mark.parametrize(
    ("objective", "vary", "said"),
    [
        ("empty-nods", "NodeResourcesFit=0..2", "--objective: found 'empty-nods'; allowed pending, placed-gpu,"),
        ("", "NodeResourcesFit=0..2", "--objective: found ''; allowed pending"),
        ("pending", "NodeResourceFit=0..2", "(did you mean 'NodeResourcesFit'?)"),
        ("pending", "NodeName=0..2", "--vary: found 'NodeName'; allowed DeviceFragmentation, "),
        ("pending", "NodeResourcesFit=2..1", "--vary NodeResourcesFit: found '2..1'; allowed LOW..HIGH, whole numbers from 0 to 100000"),
        ("pending", "NodeResourcesFit=0..100001", "found '0..100001'"),
        ("pending", "NodeResourcesFit", "found ''; allowed LOW..HIGH"),
        ("pending", f"{STRATEGY}=Most", f"--vary {STRATEGY}: found 'Most'; allowed LeastAllocated|MostAllocated"),
        ("zone-skew", "NodeResourcesFit=0..2", "--objective: found 'zone-skew'; allowed what the scenario has"),
        ("pending", "NodeLabel=1..2", "NodeLabel"),
    ],
)
def test_wrong_objectives_plugins_and_ranges_are_said_in_a_line(
    capsys: pytest.CaptureFixture[str], trace: list[str], objective: str, vary: str, said: str
) -> None:
    best = Path(trace[1]).with_name("best.yaml")
    assert said in refused(capsys, *trace, "--objective", objective, "--vary", vary, "--write", str(best))
    assert not best.exists()


def test_a_name_twice_two_profiles_and_a_place_that_cannot_be_written_are_said_in_a_line(
    capsys: pytest.CaptureFixture[str], trace: list[str], tmp_path: Path
) -> None:
    pending = [*trace, "--objective", "pending", *FIT]
    assert "each name once" in refused(capsys, *pending, *FIT)
    two = tmp_path / "two.yaml"
    texts = [Path(profile_file(tmp_path, name, "")).read_text().replace("default-scheduler", name) for name in "ab"]
    two.write_text("---\n".join(texts))
    assert "found '2 profiles'; allowed one" in refused(capsys, *pending, "--profile", str(two))
    assert "cannot be written" in refused(capsys, *pending, "--write", str(tmp_path / "nowhere" / "x.yaml"))
    assert "the following arguments are required" in refused(capsys, *trace)
