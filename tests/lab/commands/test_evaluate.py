"""`placewright evaluate`: tables and data that say what would be done and why; one line for whatever is wrong."""

from __future__ import annotations

import gzip
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from placewright.api.objects import Pod
from placewright.api.pods import PodInfo
from placewright.api.profile import SchedulingProfile
from placewright.cli.main import main
from placewright.framework.runtime.evaluation import PluginScore
from placewright.framework.status import Code
from placewright_lab.commands.evaluate import show_verdict
from placewright_lab.simulation.evaluation import NodeVerdict, Verdict

NODE = {
    "kind": "Node",
    "apiVersion": "v1",
    "metadata": {"name": "worker-1"},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
}
POD = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"containers": [{"name": "c", "image": "nginx", "resources": {"requests": {"cpu": "1"}}}]},
}
CORDONED = NODE | {"metadata": {"name": "worker-2"}, "spec": {"unschedulable": True}}
SMALL = NODE | {"metadata": {"name": "worker-3"}, "status": {"allocatable": {"cpu": "100m", "pods": "10"}}}


def written(folder: Path, *objects: dict[str, Any], name: str = "objects.json") -> str:
    path = folder / name
    path.write_text("\n---\n".join(json.dumps(item) for item in objects))
    return str(path)


def evaluate(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = main(["evaluate", *arguments])
    out, err = capsys.readouterr()
    assert err == ""
    return code, out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the one line about wrong input."""
    assert main(["evaluate", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    assert line.startswith("placewright: error: ")
    assert line.isprintable()
    return line


def test_the_table_shows_who_fits_with_all_scores_and_who_does_not_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = evaluate(capsys, "-f", written(tmp_path, NODE, CORDONED, SMALL, POD))
    assert code == 0
    for expected in (
        r"pod shop/web, profile default-scheduler",
        r"NODE +VERDICT +PLUGIN +RAW +NORMALISED +WEIGHT +PRODUCT",
        r"worker-1 +fits, best +TaintToleration +0 +100 +3 +300",
        r"NodeResourcesFit +\d+ +\d+ +1 +\d+",
        r"total +\d+",
        r"worker-2 +Unschedulable\S* +NodeUnschedulable +node\(s\) were",
        r"Insufficient cpu",
        r"goes to worker-1\n",
    ):
        assert re.search(expected, out), expected


def test_a_long_name_goes_on_in_the_next_line_and_is_not_cut(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    name = "a-node-with-a-name-as-long-as-some-clouds-have-them.internal.example.com"
    _, out = evaluate(capsys, "-f", written(tmp_path, NODE | {"metadata": {"name": name}}, POD))
    assert "…" not in out
    cells = re.findall(r"^ ?(\S+)", out, re.MULTILINE)
    assert name in "".join(cells)
    assert all(len(line) <= 80 for line in out.splitlines())


def test_control_characters_in_names_and_reasons_do_not_reach_the_terminal() -> None:
    hostile = "evil\x1b[2J[bold]\u202e\nx"
    fits = NodeVerdict(hostile, Code.SUCCESS, scores={hostile: PluginScore(1, 1, 1)})
    nodes = (NodeVerdict(hostile, Code.UNSCHEDULABLE, hostile, (hostile,)), fits)
    for shown in (Verdict(nodes=nodes), Verdict(nodes=nodes[:1], message=hostile), Verdict(error=hostile), Verdict(gated=hostile)):
        paper = io.StringIO()
        show_verdict(Console(file=paper, width=200), PodInfo(Pod()), SchedulingProfile(), shown)
        assert all(line.isprintable() for line in paper.getvalue().split("\n"))
        assert "[bold]" in paper.getvalue(), "names are no markup"


def test_of_many_nodes_the_best_are_shown_and_the_rest_counted() -> None:
    fitting = [NodeVerdict(f"n{i:03}", Code.SUCCESS, scores={"P": PluginScore(i, i, 1)}) for i in range(30)]
    rejected = [NodeVerdict(f"r{i:03}", Code.UNSCHEDULABLE, "P", ("no",)) for i in range(25)]
    paper = io.StringIO()
    show_verdict(Console(file=paper, width=120), PodInfo(Pod()), SchedulingProfile(), Verdict(nodes=(*fitting, *rejected)))
    out = paper.getvalue()
    assert out.index("n029") < out.index("n010")
    assert "n009" not in out
    assert "10 more nodes fit, with totals no higher; all of them with -o json" in out
    assert "5 more nodes do not fit; all of them with -o json" in out


def test_the_data_has_every_number_and_every_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = evaluate(capsys, "-o", "json", "-f", written(tmp_path, NODE, CORDONED, POD))
    data = json.loads(out)
    assert code == 0
    assert (data["pod"], data["best"], data["message"]) == ("shop/web", ["worker-1"], "")
    fits = data["nodes"]["worker-1"]
    assert fits["scores"]["TaintToleration"] == {"raw": 0, "normalised": 100, "weight": 3, "product": 300}
    assert fits["total"] == sum(score["product"] for score in fits["scores"].values())
    assert data["nodes"]["worker-2"] == {
        "code": "UnschedulableAndUnresolvable",
        "plugin": "NodeUnschedulable",
        "reasons": ["node(s) were unschedulable"],
    }
    assert data["unschedulablePlugins"] == ["NodeUnschedulable"]


def test_victims_of_a_group_are_told_as_the_group(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    meta = {"name": "low", "namespace": "ml"}
    group = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": meta, "spec": {"minMember": 2}}
    label = {"scheduling.x-k8s.io/pod-group": "low"}
    running = [
        POD | {"metadata": {"name": f"low-{n}", "namespace": "ml", "labels": label}, "spec": POD["spec"] | {"nodeName": f"worker-{n}"}}
        for n in (1, 2)
    ]
    nodes = [NODE | {"metadata": {"name": f"worker-{n}"}} for n in (1, 2)]
    vip = POD | {"spec": {"priority": 100, "containers": [{"name": "c", "resources": {"requests": {"cpu": "4"}}}]}}
    objects = written(tmp_path, *nodes, group, *running, vip)
    _, out = evaluate(capsys, "-f", objects)
    words = " ".join(out.split())
    assert "by evicting all of PodGroup.scheduling.x-k8s.io ml/low (ml/low-1, ml/low-2)" in words
    _, out = evaluate(capsys, "-o", "json", "-f", objects)
    assert json.loads(out)["victims"] == ["ml/low-1", "ml/low-2"]


def test_a_pod_that_fits_nowhere_ends_with_code_1_and_the_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = evaluate(capsys, "-o", "json", "-f", written(tmp_path, CORDONED, SMALL, POD))
    assert code == 1
    assert json.loads(out)["message"].startswith("0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable. ")


def test_a_cluster_without_nodes_and_a_gated_pod_are_told_and_end_with_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = evaluate(capsys, "-f", written(tmp_path, POD))
    assert (code, "error: no nodes available to schedule pods" in out) == (1, True)
    gated = POD | {"spec": POD["spec"] | {"schedulingGates": [{"name": "wait"}]}}
    code, out = evaluate(capsys, "-f", written(tmp_path, NODE, gated))
    assert (code, "gated: waiting for scheduling gates: [wait]" in out) == (1, True)


def test_what_preemption_would_do_is_told_and_is_no_placement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    running = POD | {"metadata": {"name": "old", "namespace": "shop"}, "spec": POD["spec"] | {"nodeName": "worker-1"}}
    running["spec"]["containers"] = [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "4"}}}]
    urgent = POD | {"spec": POD["spec"] | {"priority": 9}}
    code, out = evaluate(capsys, "-f", written(tmp_path, NODE, running, urgent))
    assert code == 1
    assert "make room on worker-1 by evicting shop/old" in out.replace("\n", " ")


def test_the_rules_of_preemption_hold_and_a_wait_counts_as_over_where_no_time_passes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    running = POD | {"metadata": {"name": "old", "namespace": "shop", "labels": {"tier": "gold"}}}
    running |= {"spec": POD["spec"] | {"nodeName": "worker-1", "containers": [{"name": "c", "resources": {"requests": {"cpu": "4"}}}]}}
    objects = written(tmp_path, NODE, running, POD | {"spec": POD["spec"] | {"priority": 9}})

    def under(**rules: Any) -> str:
        spec = {"schedulerName": "default-scheduler", "preemption": rules}
        document = {"apiVersion": "placewright.dev/v1alpha1", "kind": "SchedulingProfile", "metadata": {"name": "p"}, "spec": spec}
        return evaluate(capsys, "-f", objects, "--profile", written(tmp_path, document, name="profile.json"))[1].replace("\n", " ")

    assert "make room on worker-1 by evicting shop/old" in under(waitSeconds=600, minRunSeconds=600)
    assert "evicting" not in under(protect={"matchLabels": {"tier": "gold"}})
    assert "evicting" not in under(policy="Never")


def test_the_profile_in_a_file_decides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = {"kind": "KubeSchedulerConfiguration", "apiVersion": "kubescheduler.config.k8s.io/v1"}
    config |= {"profiles": [{"plugins": {"filter": {"disabled": [{"name": "NodeUnschedulable"}]}}}]}
    profile = written(tmp_path, config, name="profile.yaml")
    objects = written(tmp_path, CORDONED, POD)
    assert evaluate(capsys, "-f", objects, "--profile", profile)[0] == 0
    assert evaluate(capsys, "-f", objects)[0] == 1


def test_of_several_pending_pods_one_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = POD | {"metadata": {"name": "api"}}
    objects = written(tmp_path, NODE, POD, other)
    assert "--pod is needed: the files have 2 pending pods; one of default/api, shop/web" in refused(capsys, "-f", objects)
    assert "goes to worker-1" in evaluate(capsys, "-f", objects, "--pod", "shop/web")[1]
    assert "pod default/api" in evaluate(capsys, "-f", objects, "--pod", "api")[1]
    assert "allowed one of default/api, shop/web" in refused(capsys, "-f", objects, "--pod", "shop/gone")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "an empty file"),
        ("kind: Pod\n  x: 1", "line 2"),
        ("- 1\n- 2", "found"),
        ('{"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}, "spec": {"containers": 7}}', "spec.containers"),
        ('{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "lots"}}}', "allocatable.cpu"),
        ("\x00\x01", "control characters"),
        ("a: &a [*a]", ""),
        ("[" * 100_000, ""),
    ],
)
def test_a_wrong_manifest_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, said: str) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(content)
    line = refused(capsys, "-f", str(path))
    assert str(path) in line
    assert said in line


@pytest.mark.parametrize(
    ("profile", "said"),
    [
        ("kind: Nonsense", "Nonsense"),
        (
            '{"apiVersion": "placewright.dev/v1alpha1", "kind": "SchedulingProfile", "metadata": {"name": "p"},'
            ' "spec": {"schedulerName": "p", "weights": {"NoSuchPlugin": 1}}}',
            "NoSuchPlugin",
        ),
        ("[]", "profile.yaml"),
    ],
)
def test_a_wrong_profile_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], profile: str, said: str) -> None:
    path = tmp_path / "profile.yaml"
    path.write_text(profile)
    assert said in refused(capsys, "-f", written(tmp_path, NODE, POD), "--profile", str(path))


def test_missing_arguments_and_files_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "name manifests with -f" in refused(capsys)
    assert "cannot be read" in refused(capsys, "-f", str(tmp_path / "gone.yaml"))
    assert "cannot be read" in refused(capsys, "--cases", str(tmp_path / "gone.jsonl"))
    assert "the files have none" in refused(capsys, "-f", written(tmp_path, NODE), "--pod", "shop/web")


# --- cases ---------------------------------------------------------------------------------------------------------------------

CASE: dict[str, Any] = {"id": "c-1", "objects": [NODE, POD], "namespace": "shop", "pod": "web"}


def test_cases_are_answered_line_by_line_with_the_keys_of_the_golden_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = CASE | {"id": "c-2", "objects": [CORDONED, POD]}
    path = tmp_path / "cases.jsonl.gz"
    path.write_bytes(gzip.compress(f"{json.dumps(CASE)}\n\n{json.dumps(other)}\n".encode()))
    code, out = evaluate(capsys, "--cases", str(path))
    first, second = (json.loads(line) for line in out.splitlines())
    assert code == 0
    assert (first["id"], first["best"], second["id"]) == ("c-1", ["worker-1"], "c-2")
    assert first["nodes"]["worker-1"]["scores"]["TaintToleration"] == 300
    assert second["nodes"]["worker-2"]["reasons"] == ["node(s) were unschedulable"]
    assert "best" not in second


@pytest.mark.parametrize(
    "case",
    [
        CASE | {"pod": "gone"},
        CASE | {"objects": [NODE, 7]},
        CASE | {"objects": [NODE, {"kind": "Pod", "metadata": {"name": "web", "namespace": "shop"}, "spec": {"containers": 7}}]},
        CASE | {"objects": [NODE | {"status": {"allocatable": {"cpu": "lots"}}}, POD]},
        CASE | {"config": 7},
        CASE | {"config": {"profiles": []}},
        CASE | {"config": {"kind": "KubeSchedulerConfiguration", "apiVersion": "kubescheduler.config.k8s.io/v1", "profiles": "x"}},
    ],
)
def test_a_case_that_cannot_be_evaluated_says_so_and_spoils_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], case: dict[str, Any]
) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(f"{json.dumps(case)}\n{json.dumps(CASE | {'id': 'good'})}\n")
    code, out = evaluate(capsys, "--cases", str(path))
    bad, good = (json.loads(line) for line in out.splitlines())
    assert code == 0
    assert bad["error"]
    assert good["best"] == ["worker-1"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("c.jsonl", b"{"),
        ("c.jsonl", b"[]"),
        ("c.jsonl", b'{"id": 7, "objects": [], "namespace": "a", "pod": "b"}'),
        ("c.jsonl", b'{"id": "x", "objects": {}, "namespace": "a", "pod": "b"}'),
        ("c.jsonl", b"\xff\xfe"),
        ("c.jsonl", b'{"id": "\\ud800", "objects": [], "namespace": "a", "pod": "b"}'),
        ("c.jsonl", b'{"id": "x", "n": ' + b"9" * 6000 + b', "objects": [], "namespace": "a", "pod": 1}'),
        ("c.jsonl", b"[" * 100_000),
        ("c.jsonl.gz", b"not gzip"),
        ("c.jsonl.gz", gzip.compress(b"{}" * 1000, mtime=0)[:-12]),
        ("c.jsonl.gz", gzip.compress(b"{}" * 1000, mtime=0)[:15] + b"\x00" * 40),
    ],
    ids=["half", "list", "id", "objects", "bytes", "surrogate", "digits", "deep", "plain.gz", "cut.gz", "broken.gz"],
)
def test_a_file_that_holds_no_cases_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert str(path) in refused(capsys, "--cases", str(path))


def test_extenders_that_would_be_asked_are_said_to_be_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for_all = {"urlPrefix": "http://all", "filterVerb": "f"}
    for_gpus = {"urlPrefix": "http://gpu", "filterVerb": "f", "managedResources": [{"name": "example.com/gpu"}]}
    named = {"apiVersion": "placewright.dev/v1alpha1", "kind": "SchedulingProfile", "metadata": {"name": "p"}}
    file = written(tmp_path, named | {"spec": {"schedulerName": "p", "extenders": [for_all, for_gpus]}}, name="profile.json")
    assert main(["evaluate", "-o", "json", "-f", written(tmp_path, NODE, POD), "--profile", file]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["best"] == ["worker-1"]
    assert err == "placewright: http://all is not asked: evaluate calls no extenders\n"
