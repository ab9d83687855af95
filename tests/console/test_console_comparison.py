"""A comparison of profiles as a page of the console: from the JSON of `compare`, and saying what the report says."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from lab.commands.scenarios import profile_file, scenario_file
from lab.figures.outcomes import a_node, a_pod, outcome
from placewright.api.bad_input import InputError
from placewright.cli.main import main
from placewright.serving.rights import ALL_NAMESPACES
from placewright_lab.consolefiles.additions import open_file
from placewright_lab.consolefiles.comparisonsource import ComparisonSource, read_comparison
from placewright_lab.figures.comparison import compare, rows_of
from placewright_lab.report.content import MOST_NAMED, ReportContent, content_of

from .makers import a_node as node_of
from .makers import claim_profile, file_of


def compared(pods: int = 3) -> ReportContent:
    """Two profiles, of which the second puts all pods elsewhere."""
    one, two = outcome("a", a_node("n1"), a_node("n2")), outcome("b", a_node("n1"), a_node("n2"))
    for number in range(pods):
        one.placed(a_pod(f"p{number}"), "n1", parts={"NodeResourcesFit": 3})
        two.placed(a_pod(f"p{number}"), "n2")
    one.waits(a_pod("late"), "0/2 nodes are available: 2 Insufficient cpu.")
    two.placed(a_pod("late"), "n1")
    return content_of(compare("a trace.csv", [one.made, two.made]))


@pytest.fixture(name="written")
def _written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    one, two = profile_file(tmp_path, "plain"), profile_file(tmp_path, "packing", preset="bin-packing")
    assert main(["compare", "-f", str(scenario_file(tmp_path)), "--profile", str(one), "--profile", str(two), "-o", "json"]) == 0
    path = tmp_path / "comparison.json"
    path.write_text(capsys.readouterr().out)
    return path


def test_the_json_of_compare_is_opened_by_the_console(written: Path) -> None:
    content = read_comparison(written, 2**24)
    assert content is not None
    assert content.profiles == ("plain", "packing")
    assert [each.placed for each in content.cards] == [json.loads(written.read_text())["profiles"][at]["placed"] for at in (0, 1)]
    source = ComparisonSource(content, written.name)
    state = source.sections(ALL_NAMESPACES)
    assert state["about"] == {"kind": "comparison", "source": "comparison.json", "can": ["comparison"]}
    assert state["comparison"]["report"]["groups"][0]["name"] == "Pods"
    assert source.sections(ALL_NAMESPACES)["comparison"]["report"] is state["comparison"]["report"], "nothing is sent twice"
    assert source.pod("shop", "web") is None
    assert source.node("n1") is None


def test_the_content_survives_being_written_and_has_all_rows_of_the_figures() -> None:
    content = compared()
    assert msgspec.json.decode(msgspec.json.encode(content), type=ReportContent) == content
    one, two = outcome("a", a_node("n1")), outcome("b", a_node("n1"))
    comparison = compare("s", [one.made, two.made])
    shown = [(group.name, row.label, row.texts) for group in content_of(comparison).groups for row in group.rows]
    assert shown == [(row.group, row.label, row.texts) for row in rows_of(comparison) if row.group != "Pending, and why"]


def test_long_lists_are_cut_and_their_number_is_kept() -> None:
    (change,) = compared(MOST_NAMED + 7).changes
    moved = change.lists[-1]
    assert (moved.title, moved.count, len(moved.rows)) == ("On another node under b", MOST_NAMED + 7, MOST_NAMED)
    assert change.lists[0].title == "Do not wait any more under b"
    assert moved.columns == ("Pod", "a", "b")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"scenario": "s", "profiles": []}', "no report in it"),
        ('{"scenario": "s", "report": {"source": 3}}', "Expected `str`"),
        ('{"scenario": "s", "report": 7}', "Expected `object`"),
    ],
)
def test_a_comparison_that_cannot_be_shown_is_refused_with_the_reason(text: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(text)
    with pytest.raises(InputError, match=complaint):
        read_comparison(path, 2**20)


def test_other_files_are_no_comparisons_and_still_opened(tmp_path: Path) -> None:
    path = file_of(tmp_path / "s", [node_of("a"), claim_profile()])
    assert read_comparison(path, 2**20) is None
    assert open_file(path, 2**20).world.cluster.node_count == 1
    for text in (b"\x1f\x8b\x08", b"[1]", b"{", b'{"kind": "List"}', b"\xff"):
        path.write_bytes(text)
        assert read_comparison(path, 2**20) is None
    with pytest.raises(InputError, match="cannot be read"):
        read_comparison(tmp_path / "missing", 2**20)
