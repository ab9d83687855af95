"""`placewright profiles`: looking at the profiles of a cluster, and at what they were."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from handlers.stage import Object, new_stage, operator
from placewright.cli.main import main
from placewright.cli.profiles import profileview
from placewright.cli.terminal import age, compact
from placewright.kube.history import DEFAULT_NAMESPACE

from .profile_desk import Desk


@pytest.fixture
async def desk(capsys: pytest.CaptureFixture[str]) -> AsyncIterator[Desk]:
    async with new_stage() as stage:
        yield Desk(stage.nodes(1), capsys)


# --- list ------------------------------------------------------------------------------------------------------------------------


async def test_list_shows_each_profile_with_the_generation_in_effect(desk: Desk) -> None:
    desk.stage.profile().profile("younger")
    async with operator(desk.stage):
        await desk.until_judged("default", 1)
        desk.stage.write_profile_unchecked(weights={"Nonsense": 1})
        await desk.until_judged("default", 2)
        await desk.until_judged("younger", 1)
    ran = await desk("list")
    assert ran.rows() == [
        ["NAME", "SCHEDULER", "STATE", "IN", "EFFECT", "PENDING", "AGE"],
        ["default", "placewright", "InvalidProfile", "1", "of", "2", "0", ran.rows()[1][-1]],
        ["younger", "placewright", "SchedulerNameTaken", "none", "of", "1", "0", ran.rows()[2][-1]],
    ]


async def test_list_says_that_nobody_has_looked_at_a_profile(desk: Desk) -> None:
    desk.stage.profile()
    assert (await desk("list")).rows()[1][2:6] == ["Unknown", "none", "of", "1"]


async def test_list_wide_has_weights_and_who_changed_them_last_and_folds_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.stage.profile(weights={"NodeAffinity": 3, "ImageLocality": 0})
    monkeypatch.setenv("COLUMNS", "40")
    header, row = (await desk("list", "-o", "wide")).out.splitlines()
    assert header.split()[-5:] == ["PRESET", "WEIGHTS", "CHANGED", "BY", "MESSAGE"]
    assert "NodeAffinity=3,ImageLocality=0" in row


async def test_list_as_data_is_what_the_api_server_has_without_its_bookkeeping(desk: Desk) -> None:
    desk.stage.profile(weights={"NodeAffinity": 3})
    for output, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        (profile,) = read((await desk("list", "-o", output)).out)
        assert profile["spec"]["weights"] == {"NodeAffinity": 3}
        assert "managedFields" not in profile["metadata"]


async def test_list_without_any_profile_says_what_to_do(desk: Desk) -> None:
    assert (await desk("list")).out == "there are no profiles: kubectl apply -f one of manifests/samples\n"


async def test_list_counts_pods_that_no_profile_takes(desk: Desk) -> None:
    desk.stage.profile().profile("batch", schedulerName="batch")
    desk.namespace()
    async with operator(desk.stage):
        await desk.until_judged("batch", 1)
        await desk.until_recorded(2)
    desk.stage.delete_profile("batch")
    desk.stage.pods(2, scheduler="batch")
    for name in ("placewrigth", "placewright", "default-scheduler", "placewright2"):
        desk.stage.pods(1, scheduler=name)
    (theirs,) = desk.stage.pods(1, scheduler="placewright2")
    pods = desk.stage.sandbox.resource("", "v1", "pods")
    desk.stage.sandbox.writes.modify(pods, "default", theirs, lambda pod: pod["spec"].update(nodeName="node-0"))
    ran = await desk("list")
    assert ran.err == ""
    assert ran.out.splitlines()[2:] == [
        "",
        "2 pods wait: no profile takes pods of schedulerName 'batch': profile 'batch', which had it, was deleted; apply it again, "
        "or let the pods' creator name another schedulerName",
        "1 pod waits: no profile takes pods of schedulerName 'placewrigth' (did you mean 'placewright'?); "
        "a pod's own cannot be changed, so the pod's creator must name another one",
    ]


async def test_list_says_that_it_may_not_count_pods(desk: Desk) -> None:
    desk.stage.profile()
    ran = await desk.somebody("viewer", [("placewright.dev", "schedulingprofiles", ["get", "list"])])("list")
    assert ran.code == 0 and ran.rows()[1][0] == "default"
    assert ran.err.startswith("placewright: pods that no profile takes are not counted: 403")


# --- show ------------------------------------------------------------------------------------------------------------------------


async def test_show_tells_where_each_part_came_from(desk: Desk) -> None:
    desk.stage.profile(preset="bin-packing", weights={"ImageLocality": 7, "NodeAffinity": 0})
    ran = await desk("show", "default")
    rows = {row[0]: row[1:] for row in reversed(ran.rows()) if row}  # a plugin's own line is above those of its arguments
    assert "switched off: NodeResourcesBalancedAllocation" in ran.out
    assert rows["ImageLocality"] == ["7", "weights", "score"]
    assert rows["NodeResourcesFit"][:2] == ["5", "preset"]
    assert rows["TaintToleration"] == ["3", "default", "filter,", "preScore,", "score"]
    assert rows["NodeAffinity"] == ["0", "preFilter,", "filter"]
    assert rows["scoringStrategy.type"] == ["MostAllocated", "preset"]


async def test_show_as_data_has_the_same(desk: Desk) -> None:
    desk.stage.profile(weights={"ImageLocality": 7})
    for output, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        shown = read((await desk("show", "default", "-o", output)).out)
        weights = {plugin["name"]: plugin["weight"] for plugin in shown["plugins"] if "weight" in plugin}
        assert weights["ImageLocality"] == {"value": 7, "from": "weights"}
        assert shown["schedulerName"] == "placewright"


async def test_show_of_a_refused_generation_shows_the_one_in_effect(desk: Desk) -> None:
    desk.namespace()
    desk.stage.profile(weights={"ImageLocality": 7})
    async with operator(desk.stage):
        await desk.until_recorded(1)
        desk.stage.write_profile_unchecked(weights={"Nonsense": 1})
        await desk.until_recorded(2)
        await desk.until_judged("default", 2)
    ran = await desk("show", "default")
    first, _, head = ran.out.splitlines()[:3]
    assert first.startswith('generation 2 is not in effect: InvalidProfile: spec.weights.Nonsense: found "Nonsense"')
    assert head == "profile default@1, generation 1: schedulerName placewright, preset default"
    assert ["ImageLocality", "7", "weights", "score"] in ran.rows()


async def test_show_of_a_bad_profile_without_history_says_what_is_wrong(desk: Desk) -> None:
    desk.stage.profile()
    desk.stage.write_profile_unchecked(weights={"NodeAfinity": 1})
    ran = await desk("show", "default")
    assert ran.code == 2
    said = "found \"NodeAfinity\"; allowed a known plugin (did you mean 'NodeAffinity'?)"
    assert ran.err == f"placewright: error: default: spec.weights.NodeAfinity: {said}\n"


async def test_show_of_an_unknown_profile_is_one_line(desk: Desk) -> None:
    ran = await desk("show", "nobody")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "placewright: error: there is no profile 'nobody'; placewright profiles list shows all\n"


def test_a_file_is_shown_without_any_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    path = tmp_path / "profile.yaml"
    path.write_text(yaml.safe_dump(manifest("web", weights={"ImageLocality": 4})))
    assert main(["profiles", "show", str(path), "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "web"


def test_a_setting_without_a_sentence_of_its_own_is_shown_by_path_where_it_is_not_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """So a new field of the profile is shown from its first day on."""
    monkeypatch.setattr(profileview, "_IN_WORDS", frozenset({"paused"}))
    path = tmp_path / "profile.yaml"
    path.write_text(yaml.safe_dump(manifest("web", paused=True, percentageOfNodesToScore=0, backoff={"maxSeconds": 20})))
    assert main(["profiles", "show", str(path)]) == 0
    assert "\nsettings: backoff.maxSeconds 20\n" in capsys.readouterr().out


def manifest(name: str, **spec: Any) -> Object:
    spec = {"schedulerName": name, **spec}
    return {"apiVersion": "placewright.dev/v1alpha1", "kind": "SchedulingProfile", "metadata": {"name": name}, "spec": spec}


# --- diff ------------------------------------------------------------------------------------------------------------------------


async def test_diff_of_two_profiles_is_what_differs_in_effect(desk: Desk) -> None:
    desk.stage.profile(weights={"NodeAffinity": 2}).profile("other", schedulerName="other", weights={"ImageLocality": 7})
    ran = await desk("diff", "default", "other")
    assert ran.code == 1
    assert ran.rows() == [["WHAT", "default", "other"], ["schedulerName", "placewright", "other"], ["weights.ImageLocality", "1", "7"]]


async def test_diff_of_profiles_that_decide_alike_is_nothing_and_exit_code_0(desk: Desk, tmp_path: Path) -> None:
    desk.stage.profile()
    path = tmp_path / "same.yaml"
    path.write_text(yaml.safe_dump(manifest("default", schedulerName="placewright", weights={"NodeAffinity": 2}, preset="default")))
    ran = await desk("diff", "default", str(path))
    assert (ran.code, ran.out) == (0, f"default and {path} do not differ in effect\n")


async def test_diff_takes_the_profile_of_the_same_name_out_of_a_file_with_several(desk: Desk, tmp_path: Path) -> None:
    desk.stage.profile()
    path = tmp_path / "several.yaml"
    path.write_text(yaml.safe_dump_all([manifest("one"), manifest("default", schedulerName="placewright", paused=True)]))
    ran = await desk("diff", "default", str(path), "-o", "json")
    assert json.loads(ran.out) == [{"what": "paused", "before": False, "after": True}]
    wrong = await desk("show", str(path))
    assert wrong.code == 2
    assert "found 'one, default'; allowed one profile" in wrong.err


async def test_diff_of_two_revisions(desk: Desk) -> None:
    desk.namespace()
    desk.stage.profile()
    async with operator(desk.stage):
        await desk.until_recorded(1)
        desk.stage.edit_profile(backoff={"initialSeconds": 2, "maxSeconds": 20})
        await desk.until_recorded(2)
    ran = await desk("diff", "default@1", "default@2")
    assert ran.rows()[1:] == [["backoff.initialSeconds", "1", "2"], ["backoff.maxSeconds", "10", "20"]]
    unknown = await desk("diff", "default@1", "default@7")
    assert unknown.err == "placewright: error: profile default: found revision 7; allowed 1, 2\n"


# --- history ---------------------------------------------------------------------------------------------------------------------


async def test_history_tells_who_changed_what_and_whether_it_took(desk: Desk) -> None:
    desk.namespace()
    desk.stage.profile()
    async with operator(desk.stage):
        await desk.until_recorded(1)
        await desk("set", "default", "ImageLocality=7")
        await desk.until_recorded(2)
        desk.stage.write_profile_unchecked(weights={"Nonsense": 1})
        await desk.until_recorded(3)
        await desk.until_judged("default", 3)
    ran = await desk("history", "default")
    _, first, second, third = ran.out.splitlines()
    assert "the first that is known" in first
    assert "placewright-cli" in second
    assert "Active, in effect" in second
    assert second.endswith("weights.ImageLocality: 1 → 7")
    assert "InvalidProfile" in third
    assert 'spec.weights.Nonsense: found "Nonsense"' in third
    entries = json.loads((await desk("history", "default", "-o", "json")).out)
    assert [each["revision"] for each in entries] == [1, 2, 3]
    assert [(each["took"], each["inEffect"]) for each in entries] == [(True, False), (True, True), (False, False)]
    assert entries[1]["changes"] == [{"what": "weights.ImageLocality", "before": 1, "after": 7}]


async def test_history_of_a_profile_that_is_gone_is_there(desk: Desk) -> None:
    desk.namespace()
    desk.stage.profile()
    async with operator(desk.stage):
        await desk.until_recorded(1)
    desk.stage.delete_profile()
    ran = await desk("history", "default")
    assert ran.code == 0
    assert "in effect" not in ran.out
    assert len(ran.rows()) == 2


async def test_nothing_recorded_is_said_with_the_namespace_that_was_looked_into(desk: Desk) -> None:
    desk.stage.profile()
    ran = await desk("history", "default", "-n", "elsewhere")
    assert ran.out == "nothing is recorded of profile default in namespace elsewhere; --operator-namespace names the operator's\n"
    assert (await desk("history", "nobody")).code == 2


async def test_without_the_right_to_read_it_history_says_which_right_is_missing(desk: Desk) -> None:
    desk.stage.profile()
    as_nobody = desk.somebody("profile-reader", [("placewright.dev", "schedulingprofiles", ["get", "list"])])
    ran = await as_nobody("history", "default")
    assert ran.code == 2
    assert ran.err == (
        "placewright: error: the history cannot be read: the right to list controllerrevisions.apps "
        f"in namespace {DEFAULT_NAMESPACE} is missing; Kubernetes' role view has it\n"
    )
    assert (await as_nobody("show", "default")).code == 0


async def test_a_revision_that_this_placewright_cannot_resolve_is_said_to_be_one(desk: Desk) -> None:
    desk.namespace()
    desk.stage.profile()
    for number, plugin in ((1, "NodeAffinity"), (2, "OfTheirOwn"), (3, "ImageLocality"), (4, "NodeAffinity")):
        desk.record("default", number, {"schedulerName": "placewright", "weights": {plugin: 3}})
    entries = json.loads((await desk("history", "default", "-o", "json")).out)
    assert [len(each["changes"]) for each in entries] == [0, 0, 0, 2], "the third is compared with nothing that is known"
    assert "this placewright cannot tell: spec.weights.OfTheirOwn" in (await desk("history", "default")).out


async def test_what_somebody_else_wrote_under_our_label_is_passed_over(desk: Desk) -> None:
    desk.namespace()
    desk.stage.profile()
    desk.record("default", 1, {"schedulerName": "placewright"})
    desk.record_data("default", 2, {"template": "of a StatefulSet"})
    assert [row[0] for row in (await desk("history", "default")).rows()] == ["REV", "1"]


# --- all of them -----------------------------------------------------------------------------------------------------------------


async def test_names_from_the_cluster_cannot_move_the_terminal_s_cursor(desk: Desk) -> None:
    desk.namespace()
    desk.stage.profile()
    desk.record("default", 1, {"schedulerName": "placewright"}, by="mallory\x1b[2J")
    out = (await desk("history", "default")).out
    assert "\x1b" not in out
    assert "mallory\\x1b[2J" in out


async def test_an_api_server_that_is_not_there_is_one_line(desk: Desk) -> None:
    kubeconfig = desk.stage.sandbox.kubeconfig
    nowhere = kubeconfig.with_name("nowhere.kubeconfig")
    nowhere.write_text(re.sub(r"(https://127.0.0.1:)[0-9]+", r"\g<1>1", kubeconfig.read_text()))
    ran = await replace(desk, kubeconfig=nowhere)("list")
    assert ran.code == 2
    assert ran.err.startswith("placewright: error: https://127.0.0.1:")
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("timestamp", "shown"),
    [
        ("2026-01-01T00:00:00Z", "3d"),
        ("2026-01-03T23:59:10Z", "50s"),
        ("2026-01-03T23:00:00Z", "60m"),
        ("2026-01-05T00:00:00Z", "0s"),
        ("", "unknown"),
    ],
)
def test_an_age_is_as_kubectl_says_it(timestamp: str, shown: str) -> None:
    assert age(timestamp, datetime(2026, 1, 4, tzinfo=UTC)) == shown


@pytest.mark.parametrize(
    ("value", "text"), [(None, "none"), (True, "true"), (5, "5"), ("a, b", "a, b"), ([{"name": "cpu"}], "[{name: cpu}]"), ({}, "{}")]
)
def test_values_are_one_line(value: Any, text: str) -> None:
    assert compact(value) == text


async def test_a_narrow_terminal_folds_and_cuts_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.stage.profile()
    monkeypatch.setenv("COLUMNS", "80")
    out = (await desk("show", "default")).out
    _, tables = out.split("\n\nPLUGIN", 1)
    assert max(map(len, tables.splitlines())) <= 80
    assert "…" not in out
    monkeypatch.delenv("COLUMNS")
    assert "ignorePreferredTermsOfExistingPods" in (await desk("show", "default")).out


def test_help_is_there_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("list", "show", "diff", "set", "history", "rollback"):
        with pytest.raises(SystemExit) as ended:
            main(["profiles", command, "--help"])
        assert ended.value.code == 0
        assert "--kubeconfig" in capsys.readouterr().out
