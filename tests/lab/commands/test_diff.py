"""`placewright diff`: what a change of profiles would do, as a reviewer reads it."""

from __future__ import annotations

import json
import shlex
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import yaml
from markdown_it import MarkdownIt

from lab.commands.scenarios import NODES, PODS, profile_file, scenario_file
from lab.figures.outcomes import a_node, a_pod, outcome
from placewright.cli.main import main
from placewright.profiles.effective import Difference
from placewright.testing import node, pod
from placewright.testing.objectmaker import HOSTNAME
from placewright_lab.commands.review import MOST_NAMED, Named, Review, markdown
from placewright_lab.figures.comparison import compare
from placewright_lab.snapshots.snapshot import FORMAT_VERSION, SNAPSHOT, Header, write_snapshot

EXAMPLES = Path(__file__).parents[3] / "manifests" / "examples" / "profiles-repository"
WORKFLOW = yaml.safe_load((EXAMPLES / ".github" / "workflows" / "placement.yaml").read_text())
HOSTILE = "<script>alert(1)</script> | </details> @team #7 [x](http://evil.example) **b** `c`\n# head"


def files(folder: Path, before: dict[str, object], after: dict[str, object]) -> list[str]:
    """The two sides, both called `web`."""
    sides = []
    for name, spec in (("base", before), ("head", after)):
        (folder / name).mkdir()
        sides.append(str(profile_file(folder / name, "web", **spec)))
    return sides


def test_it_says_what_differs_in_effect_and_what_comes_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sides = files(tmp_path, {}, {"preset": "bin-packing"})
    assert main(["diff", "-f", str(scenario_file(tmp_path)), *sides, "-o", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {"profile": "web", "what": "weights.NodeResourcesFit", "before": 1, "after": 5} in told["differences"]
    before, after = told["simulation"]["profiles"]
    assert (before["placed"], after["placed"], before["emptyNodes"], after["emptyNodes"]) == (PODS, PODS, 0, NODES - 2)
    assert told["pendingGrowsBy"] == 0


def test_what_is_written_differently_and_decides_alike_is_not_simulated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sides = files(tmp_path, {}, {"weights": {"NodeResourcesFit": 1}})
    assert main(["diff", "-f", str(scenario_file(tmp_path)), *sides, "-o", "markdown"]) == 0
    assert capsys.readouterr().out == "### Scheduling profiles: no difference in effect\n"


def test_pods_that_have_a_node_are_placed_anew_unless_only_pending_ones_are_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = scenario_file(tmp_path)
    told = json.loads(scenario.read_text())
    for each in told["items"]:
        if each["kind"] == "Pod":
            each["spec"]["nodeName"] = "n0"
    scenario.write_text(json.dumps(told))
    sides = files(tmp_path, {}, {"preset": "bin-packing"})
    counts = []
    for option in ([], ["--pending"]):
        assert main(["diff", "-f", str(scenario), *sides, "-o", "json", *option]) == 0
        counts.append(json.loads(capsys.readouterr().out)["simulation"]["profiles"][0]["pods"])
    assert counts == [PODS, 0]


def pending_grows(folder: Path) -> list[str]:
    """A head whose profile takes no node but those that nobody has."""
    terms = [{"matchExpressions": [{"key": "x", "operator": "Exists"}]}]
    impossible = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    args = [{"name": "NodeAffinity", "args": {"addedAffinity": impossible}}]
    return ["diff", "-f", str(scenario_file(folder)), *files(folder, {}, {"pluginConfig": args})]


def test_more_pending_pods_are_a_failure_only_where_that_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = pending_grows(tmp_path)
    assert main(words) == 0
    assert main([*words, "--fail-if-pending-grows"]) == 1
    assert f"0 → {PODS} pending" in capsys.readouterr().out


def test_fewer_pending_pods_are_no_failure(tmp_path: Path) -> None:
    words = pending_grows(tmp_path)
    words[-2:] = reversed(words[-2:])
    assert main([*words, "--fail-if-pending-grows"]) == 0


def test_the_comment_has_a_summary_the_differences_the_figures_and_the_pods(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*pending_grows(tmp_path), "-o", "markdown"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"### Scheduling profiles: 1 difference in effect; of {PODS} pods 0 → {PODS} pending; ")
    assert "| web | NodeAffinity.addedAffinity | none |" in out
    assert f"| pending | 0 | {PODS} (+{PODS}) |" in out
    assert "| nodes |" not in out
    assert f"<summary>Pods that begin to wait: {PODS}</summary>" in out
    assert "| shop/web-0 | node(s) didn't match scheduler-enforced node affinity |" in out


def test_a_profile_that_one_side_lacks_is_a_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = files(tmp_path, {}, {})
    more = profile_file(tmp_path, "batch", schedulerName="batch").read_text()
    both = tmp_path / "both.yaml"
    both.write_text(f"{Path(two).read_text()}\n---\n{more}\n")
    assert main(["diff", "-f", str(scenario_file(tmp_path)), one, str(both), "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["differences"] == [
        {"profile": "batch", "what": "the whole profile", "before": None, "after": "there"}
    ]


def test_a_profile_that_cannot_come_into_effect_is_wrong_input_with_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sides = files(tmp_path, {}, {"weights": {"NodeResourcesFit": -1}})
    assert main(["diff", "-f", str(scenario_file(tmp_path)), *sides]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert sides[1] in told.err
    assert "found -1" in told.err


def test_the_example_workflow_runs_the_command_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (step,) = [step for step in WORKFLOW["jobs"]["diff"]["steps"] if "placewright diff" in step.get("run", "")]
    (line,) = [line.strip() for line in step["run"].splitlines() if "placewright diff" in line]
    command = shlex.split(line.partition(" >>")[0])
    base, head = files(tmp_path, {}, {"preset": "bin-packing"})
    actual = {"--snapshot": "-f", "$snapshot": str(scenario_file(tmp_path)), "base.yaml": base, "head.yaml": head}
    assert main([actual.get(word, word) for word in command[1:]]) == 0
    assert capsys.readouterr().out.startswith("### Scheduling profiles: ")


class Elements(HTMLParser):
    """What a code host would make of a comment."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(MarkdownIt("commonmark", {"html": True}).enable("table").render(text))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def hostile_review() -> Review:
    before, after = outcome("before", a_node(HOSTILE, cpu=4)), outcome("after", a_node(HOSTILE, cpu=4))
    for i in range(MOST_NAMED + 3):
        before.placed(a_pod(f"{i} {HOSTILE}"), HOSTILE)
        after.waits(a_pod(f"{i} {HOSTILE}"), HOSTILE)
    found = (Named(HOSTILE, Difference(HOSTILE, HOSTILE, {HOSTILE: HOSTILE})),)
    return Review("base", "head", found, compare(HOSTILE, [before.made, after.made]))


def test_no_name_becomes_markup_in_a_comment() -> None:
    comment = markdown(hostile_review())
    page = Elements(comment)
    assert set(page.tags) == {"h3", "p", "table", "thead", "tbody", "tr", "th", "td", "strong", "details", "summary"}
    assert page.tags.count("h3") == 1
    assert page.tags.count("details") == comment.count("</details>") == 1
    assert page.text.count("<script>alert(1)</script>") > MOST_NAMED
    assert "@team" not in comment
    assert "#7" not in comment
    assert "http://" not in comment


def test_a_comment_names_ten_pods_of_each_list_and_says_so() -> None:
    comment = markdown(hostile_review())
    assert f"Pods that begin to wait: {MOST_NAMED + 3}, the first {MOST_NAMED}</summary>" in comment
    assert comment.count("| a/") == MOST_NAMED


def test_the_table_for_a_terminal_says_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(pending_grows(tmp_path)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"1 difference in effect; of {PODS} pods 0 → {PODS} pending; ")
    assert f"{PODS} pods begin to wait:" in lines
    assert any(line.split()[:2] == ["Pods:", "pending"] and line.endswith(f"+{PODS}") for line in lines)


def test_an_upgrade_of_kubernetes_is_compared_with_the_same_profiles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = tmp_path / "cluster.yaml"
    scenario.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": uneven()}))
    profile = str(profile_file(tmp_path, "web"))
    told = ["diff", "-f", str(scenario), "--pending", "--fail-if-pending-grows", profile, "-o", "json"]
    assert main([*told, "--compatibility", "1.36..1.38"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["differences"] == [{"profile": "web", "what": "compatibility", "before": "1.36", "after": "1.38"}]
    assert found["pendingGrowsBy"] == 1
    assert main([*told, "--compatibility", "1.20..1.37"]) == 0


@pytest.mark.parametrize(("version", "spec", "waits"), [(36, {}, 0), (38, {}, 1), (38, {"compatibility": "1.36"}, 0)])
def test_profiles_follow_the_version_of_the_cluster_in_the_snapshot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], version: int, spec: dict[str, str], waits: int
) -> None:
    header = Header(placewright=SNAPSHOT, version=FORMAT_VERSION, taken="2026-01-01T00:00:00Z", kubernetes=version)
    path = tmp_path / "cluster.gz"
    write_snapshot(path, header, [json.dumps(each).encode() for each in uneven()])
    assert main(["simulate", "--snapshot", str(path), "--profile", str(profile_file(tmp_path, "web", **spec)), "-o", "json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["profiles"]
    assert one["pending"] == waits


def uneven() -> list[dict[str, Any]]:
    """One more pod for node a: three there and none on b are an uneven spread, if an empty selector counts them."""
    spread = {"topologyKey": "kubernetes.io/hostname", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    return [
        *(node(name).labels({HOSTNAME: name}).offers({"cpu": cpu, "pods": "110"}).manifest for name, cpu in (("a", "8"), ("b", "100m"))),
        *(pod(f"old-{number}").requests({"cpu": "1"}).on("a").manifest for number in range(3)),
        pod("new").requests({"cpu": "1"}).spec(topologySpreadConstraints=[spread]).manifest,
    ]


@pytest.mark.parametrize("versions", ["1.36", "1.36..", "auto..1.38", "1.36..1.39"])
def test_versions_that_no_profile_could_name_are_wrong_input(versions: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "web.yaml", "--compatibility", versions]) == 2
    assert "allowed two versions from 1.20 to 1.38, such as 1.36..1.38" in capsys.readouterr().err


def test_one_file_alone_needs_two_versions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "web.yaml"]) == 2
    assert capsys.readouterr().err.rstrip().endswith("AFTER: found nothing; allowed a file of profiles, or --compatibility FROM..TO")
