"""`placewright validate`: what it finds, where, in which format, and what it passes over."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from handlers.stage import new_stage
from placewright.api.decode import convert
from placewright.api.profile import SchedulingProfile
from placewright.cli.main import main
from placewright.plugins.catalog import in_tree
from placewright.profiles.live import LiveProfiles
from placewright.profiles.validation import check_file, check_files

ROOT = Path(__file__).parents[2]
BAD = """\
# A comment, so that lines are not what one would count.
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
---
apiVersion: placewright.dev/v1alpha1
kind: SchedulingProfile
metadata:
  name: bad
spec:
  schedulerName: x
  plugins:
    filter:
      enabled:
      - name: NodeName
      - name: NodeNames
  weights:
    NodeResourcesFit: 300000
  backoff: {initialSeconds: 3, maxSeconds: 2}
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: MostAlocated
"""
FOUND = [
    "16:15: spec.plugins.filter.enabled[1].name: found \"NodeNames\"; allowed a known plugin (did you mean 'NodeName'?)",
    "18:23: spec.weights.NodeResourcesFit: found 300000; allowed 0 to 100000 (0: off)",
    "19:44: spec.backoff.maxSeconds: found 2; allowed 0 (no backoff), or initialSeconds (3) to 86400",
    '24:15: spec.pluginConfig[0].args.scoringStrategy.type: found "MostAlocated"; allowed LeastAllocated, MostAllocated, '
    "RequestedToCapacityRatio (did you mean 'MostAllocated'?)",
]


@pytest.fixture
def bad(tmp_path: Path) -> str:
    return written(tmp_path, BAD)


def written(folder: Path, text: str, name: str = "profiles.yaml") -> str:
    folder.joinpath(name).write_text(text)
    return str(folder / name)


def profile_text(name: str = "p", **spec: Any) -> str:
    spec = {"schedulerName": "batch", **spec}
    return yaml.safe_dump({"apiVersion": "placewright.dev/v1alpha1", "kind": "SchedulingProfile", "metadata": {"name": name}, "spec": spec})


def told(capsys: pytest.CaptureFixture[str], *words: str, code: int) -> str:
    assert main(["validate", *words]) == code
    out, err = capsys.readouterr()
    assert err == ""
    return out


def said_of(text: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines about a file, without its name."""
    file = written(folder, text)
    assert main(["validate", "-q", file]) in (0, 2)
    return [line.removeprefix(f"{file}:") for line in capsys.readouterr().out.splitlines()]


def test_everything_that_is_wrong_is_named_with_its_line(bad: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, bad, code=2).splitlines() == [f"{bad}:{line}" for line in FOUND]


def test_what_is_right_is_counted_and_with_quiet_nothing_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, profile_text() + "---\n" + profile_text("q", schedulerName="q") + "---\n{kind: ConfigMap, apiVersion: v1}\n")
    expected = "2 profiles in 1 file: nothing is wrong; 1 object of other kinds passed over\n"
    assert told(capsys, file, code=0) == expected + "not checked without --cluster: the profiles, resources and admission of a cluster\n"
    assert told(capsys, "-q", file, code=0) == ""


def test_a_file_that_is_no_yaml_beside_a_profile_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path, profile_text())
    broken = written(tmp_path, "a: [1\n", "broken.yaml")
    summary, _ = told(capsys, str(tmp_path), code=0).splitlines()
    assert summary == f"1 profile in 2 files: nothing is wrong; passed over, as neither YAML nor JSON: {broken}"


def test_our_own_samples_are_right(capsys: pytest.CaptureFixture[str]) -> None:
    assert "nothing is wrong" in told(capsys, str(ROOT / "manifests/samples"), str(ROOT / "manifests/base"), code=0)


# --- places --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (profile_text(weights={"example.com/x.y": 1}), "8:5: spec.weights.example.com/x.y: "),
        (profile_text().replace("name: p", "labels: {}"), "3:1: metadata.name: found nothing"),
        (profile_text(pluginConfig=[{"name": "NodeResourcesFit", "args": {"ignored": []}}]), "8:7: spec.pluginConfig[0].args.ignored: "),
        (profile_text(weigths={}), "7:3: spec.weigths: found an unknown field; "),
        (profile_text(extenders=[{"urlPrefix": "http://x"}]), "7:5: spec.extenders[0]: found nothing to call"),
        ("apiVersion: v1\nkind: List\nitems:\n- " + profile_text(paused=3).replace("\n", "\n  "), "9:13: items[0].spec.paused: "),
        (profile_text() + "---\n" + profile_text("q"), '13:18: spec.schedulerName: found "batch"; allowed each schedulerName once'),
        (profile_text() + "---\n" + profile_text(schedulerName="q"), '11:9: metadata.name: found "p"; allowed each name once'),
        (profile_text("Bad_Name"), '4:9: metadata.name: found "Bad_Name"'),
    ],
)
def test_each_problem_stands_at_its_field_or_at_what_should_hold_it(
    text: str, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (said,) = said_of(text, tmp_path, capsys)
    assert said.startswith(line)


def test_an_alias_is_followed_to_where_its_value_was_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = profile_text().replace("spec:", "spec:\n  weights: &w {NodeName: 1}\n  pluginConfig: []")
    (said,) = said_of(text, tmp_path, capsys)
    assert said.startswith("6:16: spec.weights.NodeName: ")


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("kind: SchedulingProfile\nspec: [", "2:8: ", "found the end of the text; allowed a value"),
        ("kind: SchedulingProfile\nkind: x\n", "2:1: ", 'the key "kind" a second time; allowed each key once'),
    ],
)
def test_text_that_is_no_yaml_is_told_with_its_line(
    text: str, place: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (said,) = said_of(text, tmp_path, capsys)
    assert said.startswith(place)
    assert words in said


# --- what is looked at ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "# nothing\n", "{{ template }}: [", "a: !Ref b\n", "3\n", "kind: Kustomization\n"])
def test_what_is_not_ours_is_passed_over(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said_of(text, tmp_path, capsys) == []


@pytest.mark.parametrize(
    ("kind", "version", "words"),
    [
        ("SchedulingProfil", "placewright.dev/v1alpha1", "did you mean 'SchedulingProfile'?"),
        ("SchedulingProfile", "placewright.dev/v1", "allowed placewright.dev/v1alpha1"),
        ("SchedulingProfile", "placewrite.dev/v1alpha1", "allowed placewright.dev/v1alpha1"),
        ("KubeSchedulerConfig", "kubescheduler.config.k8s.io/v1", "did you mean 'KubeSchedulerConfiguration'?"),
    ],
)
def test_a_kind_or_version_that_is_almost_ours_is_not_passed_over(
    kind: str, version: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (said,) = said_of(f"kind: {kind}\napiVersion: {version}\nmetadata: {{name: a}}\n", tmp_path, capsys)
    assert words in said


def test_a_configuration_of_kube_scheduler_is_checked_under_its_own_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 101
podInitialBackoffSeconds: 20
podMaxBackoffSeconds: 10
extenders:
- urlPrefix: http://x
profiles:
- schedulerName: a
- schedulerName: b
  percentageOfNodesToScore: 102
  plugins: {score: {enabled: [{name: Foo}]}}
"""
    assert [line.partition(" found")[0] for line in said_of(text, tmp_path, capsys)] == [
        "3:27: percentageOfNodesToScore:",
        "5:23: podMaxBackoffSeconds:",
        "7:3: extenders[0]:",
        "11:29: profiles[1].percentageOfNodesToScore:",
        "12:38: profiles[1].plugins.score.enabled[0].name:",
    ]


def test_older_configurations_are_read_as_the_operator_reads_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "apiVersion: kubescheduler.config.k8s.io/v1beta1\nkind: KubeSchedulerConfiguration\npodMaxBackoffSeconds: -1\n"
    (said,) = said_of(text, tmp_path, capsys)
    assert said.startswith("3:23: podMaxBackoffSeconds: found -1")
    (said,) = said_of(text.replace("v1beta1", "v1beta4"), tmp_path, capsys)
    assert said.startswith('1:13: apiVersion: found "kubescheduler.config.k8s.io/v1beta4"')


def test_what_only_the_api_server_would_refuse_is_refused_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    disabled = [{"name": "*"}] * 101
    (said,) = said_of(profile_text(plugins={"score": {"disabled": disabled}}), tmp_path, capsys)
    assert said.endswith("spec.plugins.score.disabled: found 101 of them; allowed at most 100 items")


def test_standard_input_is_a_file_too(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with Path(written(tmp_path, profile_text(paused=3))).open() as source:
        monkeypatch.setattr("sys.stdin", source)
        assert told(capsys, "-", code=2).startswith("<stdin>:6:11: spec.paused: ")


def test_a_file_that_is_not_there_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "/nowhere/x.yaml"]) == 2
    assert capsys.readouterr().err == "placewright: error: /nowhere/x.yaml: cannot be read: No such file or directory\n"


# --- formats -------------------------------------------------------------------------------------------------------------------


def test_json_has_a_list_of_problems(bad: str, capsys: pytest.CaptureFixture[str]) -> None:
    first, *_ = found = json.loads(told(capsys, "-o", "json", bad, code=2))
    assert len(found) == len(FOUND)
    assert first == {
        "file": bad,
        "line": 16,
        "column": 15,
        "path": "spec.plugins.filter.enabled[1].name",
        "found": '"NodeNames"',
        "allowed": "a known plugin (did you mean 'NodeName'?)",
    }


def test_github_gets_annotations_in_which_nothing_can_break_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, profile_text(weights={"a%0A::error::b": 1}), "a,b.yaml")
    (line,) = told(capsys, "-o", "github", file, code=2).splitlines()
    head, _, message = line.removeprefix("::error ").partition("::")
    assert head == f"file={tmp_path / 'a'}%2Cb.yaml,line=8,col=5,title=Scheduling profile"
    assert message.startswith("spec.weights.a%250A::error::b: ")


def test_sarif_names_the_place_of_each_problem(bad: str, capsys: pytest.CaptureFixture[str]) -> None:
    log = json.loads(told(capsys, "-o", "sarif", bad, code=2))
    (run,) = log["runs"]
    assert (log["version"], run["tool"]["driver"]["name"]) == ("2.1.0", "placewright")
    declared = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert {result["ruleId"] for result in run["results"]} <= declared
    places = [result["locations"][0]["physicalLocation"] for result in run["results"]]
    assert [place["region"]["startLine"] for place in places] == [16, 18, 19, 24]
    assert {place["artifactLocation"]["uri"] for place in places} == {bad}


def test_without_problems_the_formats_of_programs_are_still_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, profile_text())
    assert json.loads(told(capsys, "-o", "json", file, code=0)) == []
    assert json.loads(told(capsys, "-o", "sarif", file, code=0))["runs"][0]["results"] == []
    assert told(capsys, "-o", "github", file, code=0) == ""


def test_the_pre_commit_hook_runs_this_command() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert hook["entry"] == "placewright validate --quiet"
    assert {"id", "name", "language", "types_or"} <= hook.keys()


def test_a_configuration_in_the_spec_is_one_line_that_names_convert(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "podInitialBackoffSeconds": 2,
        "profiles": [{"schedulerName": "x"}], "leaderElection": {"leaderElect": True},
    }  # fmt: skip
    (line,) = said_of(profile_text(**configuration), tmp_path, capsys)
    assert line.endswith(
        "spec: found a KubeSchedulerConfiguration; allowed the fields of one of its profiles: "
        "'placewright convert FILE' makes SchedulingProfiles of a KubeSchedulerConfiguration"
    )


def test_a_number_with_a_unit_is_told_the_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = said_of(profile_text(backoff={"initialSeconds": "60s"}), tmp_path, capsys)
    assert line.endswith('spec.backoff.initialSeconds: found "60s"; allowed a number, such as 60, without quotes and unit')


def test_arguments_of_an_older_version_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = {"apiVersion": "kubescheduler.config.k8s.io/v1beta2", "kind": "NodeResourcesFitArgs"}
    (line,) = said_of(profile_text(pluginConfig=[{"name": "NodeResourcesFit", "args": args}]), tmp_path, capsys)
    assert line.endswith("allowed kubescheduler.config.k8s.io/v1 (placewright convert translates older versions)")
    args["apiVersion"] = "kubescheduler.config.k8s.io/v1"
    assert said_of(profile_text(pluginConfig=[{"name": "NodeResourcesFit", "args": args}]), tmp_path, capsys) == []


# --- files as one set ------------------------------------------------------------------------------------------------------------------


def together(capsys: pytest.CaptureFixture[str], folder: Path, texts: dict[str, str], *words: str) -> tuple[int, list[str]]:
    for name, text in texts.items():
        written(folder, text, name)
    code = main(["validate", str(folder), *words])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, [line.removeprefix(f"{folder}/") for line in out.splitlines()]


def test_two_files_with_one_scheduler_name_are_refused_with_the_other_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, lines = together(capsys, tmp_path, {"a.yaml": profile_text("one"), "b.yaml": profile_text("two")})
    (line,) = lines
    assert code == 2
    assert line.startswith("b.yaml:")
    assert line.endswith(
        f'spec.schedulerName: found "batch"; allowed each schedulerName once: the older of two profiles would win ({tmp_path}/a.yaml)'
    )


def test_two_files_that_select_the_same_pods_with_one_priority_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pods = {"podSelector": {"matchLabels": {"app": "web"}}}
    texts = {"a.yaml": profile_text("one", schedulerName="one", pods=pods), "b.yaml": profile_text("two", schedulerName="two", pods=pods)}
    code, (line,) = together(capsys, tmp_path, texts)
    assert code == 2
    assert f'another priority than profile "one" has ({tmp_path}/a.yaml), or selectors that exclude each other' in line
    texts["b.yaml"] = profile_text("two", schedulerName="two", pods={**pods, "priority": 1})
    assert together(capsys, tmp_path, texts)[0] == 0


def test_one_name_in_two_files_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, lines = together(capsys, tmp_path, {"a.yaml": profile_text("one"), "b.yaml": profile_text("one", schedulerName="other")})
    assert code == 2
    assert [f'metadata.name: found "one"; allowed each name once ({tmp_path}/a.yaml)' in line for line in lines] == [True]


@pytest.mark.parametrize("text", ["", "a: [", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"], ids=["empty", "broken", "others"])
def test_files_without_a_profile_are_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    file = written(tmp_path, text)
    assert main(["validate", file]) == 2
    assert capsys.readouterr().err == (
        f"placewright: error: {file}: found no profile in 1 file; allowed SchedulingProfiles or KubeSchedulerConfigurations\n"
    )
    assert main(["validate", "--quiet", file]) == 0, "pre-commit hands over any file"
    (tmp_path / "nothing").mkdir()
    assert main(["validate", str(tmp_path / "nothing")]) == 2


SCHEDULERS = ["one", "two", "three"]
APPS = st.sampled_from([None, "web", "db"])


@st.composite
def sets_of_profiles(draw: st.DrawFn) -> list[dict[str, Any]]:
    made = []
    for number in range(draw(st.integers(1, 5))):
        app, priority = draw(APPS), draw(st.integers(0, 1))
        pods = {} if app is None else {"pods": {"podSelector": {"matchLabels": {"app": app}}, "priority": priority}}
        spec = {"schedulerName": draw(st.sampled_from(SCHEDULERS)), **pods}
        made.append(
            {"apiVersion": "placewright.dev/v1alpha1", "kind": "SchedulingProfile", "metadata": {"name": f"p{number}"}, "spec": spec}
        )
    return made


@given(sets_of_profiles(), st.lists(st.integers(0, 2), min_size=5, max_size=5))
def test_the_verdict_is_the_operator_s_however_profiles_are_split_into_files(profiles: list[dict[str, Any]], places: list[int]) -> None:
    order = sorted(range(len(profiles)), key=lambda at: (places[at], at))  # as the files are read
    live = LiveProfiles(in_tree(), lambda resolved: resolved)
    for age, at in enumerate(order):
        metadata = {**profiles[at]["metadata"], "generation": 1, "uid": f"u{at}", "creationTimestamp": f"2026-01-01T00:00:0{age}Z"}
        live.apply(convert({**profiles[at], "metadata": metadata}, SchedulingProfile))
    refused = {each.name for each in live.standings() if each.reason.stalls}
    texts = [("\n---\n".join(yaml.safe_dump(profiles[at]) for at in order if places[at] == place), f"{place}.yaml") for place in range(3)]
    checked = check_files(texts, in_tree())
    found = [finding for one in checked for finding in one.findings]
    whole = check_file("\n---\n".join(yaml.safe_dump(profiles[at]) for at in order), "all.yaml", in_tree())
    assert len(found) == len(whole.findings)
    assert bool(found) == bool(refused)
    assert {str(each.problem.path) for each in found} <= {"spec.schedulerName", "spec.pods.priority"}


async def test_profiles_are_checked_beside_those_of_the_cluster_and_replace_their_namesakes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with new_stage() as stage:
        stage.profile("theirs", schedulerName="batch")
        words = ["--cluster", "--kubeconfig", str(stage.sandbox.kubeconfig)]
        file = written(tmp_path, profile_text("mine"))
        assert await asyncio.to_thread(main, ["validate", file, *words]) == 2
        assert "(in the cluster)" in capsys.readouterr().out
        file = written(tmp_path, profile_text("theirs"))
        assert await asyncio.to_thread(main, ["validate", file, *words]) == 0
        assert main(["validate", file]) == 0
