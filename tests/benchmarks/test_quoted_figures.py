"""What the README and the docs quote of speed and memory comes from `make figures`, and the pages are as its data has them."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from benchmarks import quotedfigures
from benchmarks.checkouts import Checkout, ChildFailed
from benchmarks.quoteddata import QUOTED, measure, read_figures
from benchmarks.quotedfigures import main, outside_regions
from benchmarks.quotedregions import about
from placewright_lab.bench import figurestamp
from placewright_lab.bench.figurestamp import FigureStamp, stamp_here

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
#: A number that says how fast something is, or how much memory it takes. Seconds alone are settings more often than not.
MEASURED = re.compile(
    r"\d[\d.,]*\s?(?:[a-z]+/s|/s|ms|µs|MB|GB)(?![\w/])|\d\s?s of (?:CPU|processor)|\d\s(?:pods|decisions|groups|Bindings) a second"
)
#: Lines outside of regions that have such a number, by a part of the line, and why it is no figure of ours that could go stale unseen.
SETTING = "a setting or a limit, not a measurement"
EXAMPLE = "says what one run of the example above it took, beside the output of that run"
INSIDE = "a part of the whole that no benchmark shows by itself; measured with a clock in the code, and said so"
EXCEPTIONS = {
    "docs/e2e.md": {"99 MB of tools": "sizes of downloads"},
    "docs/logs.md": {"more than 100 ms": SETTING, "gather for 50 ms": SETTING},
    "docs/reference.md": {"How long a whole call may take": SETTING},
    "docs/runbook.md": {"Attempts above 100 ms": SETTING},
}  # fmt: skip
#: Pages that a benchmark writes as a whole.
WRITTEN = {"docs/scheduler-perf-reference.md": "written by `placewright bench scheduler-perf`"}


def prose(page: Path) -> list[str]:
    """Lines of a page that are neither in a region nor shown as they would be typed or printed."""
    text = outside_regions(page.read_text())
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return [re.sub(r"`[^`]*`", "``", line) for line in text.splitlines() if not line.startswith("    ")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_figure_of_speed_or_memory_is_typed_by_hand(page: Path) -> None:
    name = str(page.relative_to(ROOT))
    if name in WRITTEN:
        return
    excepted = EXCEPTIONS.get(name, {})
    lines = [line for line in prose(page) if MEASURED.search(line)]
    assert [line for line in lines if not any(part in line for part in excepted)] == []
    assert [part for part in excepted if not any(part in line for line in prose(page))] == [], "exceptions that are none any more"


def test_the_rule_knows_a_figure_when_it_sees_one() -> None:
    for text in ("6,200/s", "1,200 pods/s", "16 ms", "0.94 ms", "20 µs", "384 MB", "150 s of CPU", "2,014 decisions a second"):
        assert MEASURED.search(text), text
    for text in ("Kubernetes 1.20", "5,000 nodes", "within 10 s", "8 devices", "v1/status"):
        assert not MEASURED.search(text), text


def test_the_pages_are_as_the_data_has_them() -> None:
    assert main(["check"]) == 0


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the pages and their data."""
    shutil.copy(ROOT / "README.md", tmp_path)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    return tmp_path


def test_a_figure_that_was_changed_by_hand_is_found_and_put_right(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = checkout / "docs" / "devices.md"
    before = page.read_text()
    row = next(line for line in before.splitlines() if line.startswith("| one device |"))
    page.write_text(before.replace(row, "| one device | 9,999 | ≥ 500 |"))
    assert main(["check"], checkout) == 1
    assert capsys.readouterr().err == "docs/devices.md is out of date: run 'make generate'\n"
    assert main(["write"], checkout) == 0
    assert page.read_text() == before


def test_new_data_reaches_every_page_that_quotes_it(checkout: Path) -> None:
    file = checkout / "docs" / "figures" / "shares.json"
    data = json.loads(file.read_text())
    data["rows"][0]["per_second"] = 12_345.6
    machine = {"cpu": "a chip", "cores": 3, "memory_bytes": 5 * 2**30}
    data["stamp"] = {"date": "2031-02-03", "commit": "0123456789+", "versions": {"Python": "3.99"}, **machine}
    file.write_text(json.dumps(data))
    assert main(["write"], checkout) == 0
    assert "12,000 pods with shares of GPUs" in (checkout / "docs" / "figures.md").read_text()
    page = (checkout / "docs" / "fragmentation.md").read_text()
    assert "12,000 decisions a second" in page
    assert "Measured 2031-02-03 at 0123456+ on a chip, 3 cores, 5 GiB; Python 3.99; load 0.0 at the start." in page


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("<!-- end of figures -->", ""), "a marker of figures without its pair"),
        (("<!-- figures: shares -->", "<!-- figures: fast -->"), "found 'fast'; allowed summary, "),
        (("<!-- figures: shares -->", "<!-- figures: devices -->"), "found 'on 2 pages'; allowed one page"),
    ],
)
def test_a_region_that_is_broken_or_unknown_is_refused(
    checkout: Path, capsys: pytest.CaptureFixture[str], change: tuple[str, str], said: str
) -> None:
    page = checkout / "docs" / "fragmentation.md"
    page.write_text(page.read_text().replace(*change))
    assert main(["check"], checkout) == 2
    assert said in capsys.readouterr().err


def test_data_that_is_missing_says_how_to_make_it(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (checkout / "docs" / "figures" / "reload.json").unlink()
    assert main(["write"], checkout) == 2
    assert "make figures ARGS=reload" in capsys.readouterr().err


class Answering(Checkout):
    """A checkout whose benchmarks answer what they are told to."""

    answers: Any = None

    def run(self, words: Any, number: int = 0) -> Any:
        if isinstance(self.answers, Exception):
            raise self.answers
        return self.answers


def answering(monkeypatch: pytest.MonkeyPatch, answers: Any) -> Checkout:
    monkeypatch.setattr(Answering, "answers", answers)
    code = Answering("this code", "", Path(), Path())
    monkeypatch.setattr(quotedfigures, "running", lambda _: code)
    monkeypatch.setattr(figurestamp, "commit_of", lambda _: "0123456789")
    return code


def test_what_is_measured_is_stamped_with_commit_machine_and_versions(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, {"nodes": 1523, "members": 8, "per_second": 555.5555555, "seconds": [1, 2, 3]})
    assert main(["measure", "groups"], checkout) == 0
    figures = read_figures(checkout / "docs" / "figures", "groups")
    assert figures.rows == [{"nodes": 1523, "members": 8, "per_second": 555.56}]
    assert figures.commands == ["gangs"]
    said = r"Measured 20\d\d-\d\d-\d\d at 0123456 on .+, \d+ cores, \d+ GiB; Python 3\S+, NumPy \S+, Kopf \S+; load .+ at the start\."
    assert re.fullmatch(said, figures.stamp.sentence())
    assert "560 groups of 8 pods" in (checkout / "docs" / "figures.md").read_text()


def test_a_benchmark_that_breaks_leaves_its_figures_and_the_exit_code_tells(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (checkout / "docs" / "figures" / "groups.json").read_bytes()
    answering(monkeypatch, ChildFailed("ValueError: no"))
    assert main(["measure", "groups"], checkout) == 1
    assert "groups: left as it was: ValueError: no" in capsys.readouterr().err
    assert (checkout / "docs" / "figures" / "groups.json").read_bytes() == before


def test_what_wants_an_api_server_is_left_where_there_is_none(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answering(monkeypatch, AssertionError("asked"))
    monkeypatch.setattr(quotedfigures, "at_hand", lambda _: None)
    assert main(["measure", "against"], checkout) == 0
    assert "against: left as it was: no kube-apiserver" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["measure", "speed"], ["meassure"], []])
def test_words_that_mean_nothing_are_refused(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert main(words) == 2
    assert "placewright: error: figures: found" in capsys.readouterr().err


def test_a_row_without_a_column_that_is_shown_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ChildFailed, match="groups: a row without per_second"):
        measure(QUOTED["groups"], answering(monkeypatch, {"nodes": 1, "members": 8}), lambda _: None)


def test_figures_have_as_many_digits_as_mean_something() -> None:
    assert [about(value) for value in (6187.3, 87.4, 0.0123, 16.0, 2.04, 0)] == ["6,200", "87", "0.012", "16", "2.0", "0"]
    assert about(384.2, 3) == "384"


def test_a_stamp_says_what_it_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figurestamp, "commit_of", lambda _: "")
    assert FigureStamp(note="Once.").sentence() == "Once."
    assert "at an unknown commit on" in FigureStamp(date="2026-01-01", cpu="c", versions={}).sentence()
    assert stamp_here(1.0).cores >= 1
