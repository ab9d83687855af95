"""A live profile says whose pods it places: nobody takes those of the default scheduler without having written so."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from placewright.api.profile import ProfileSpec, SchedulingProfile, default_profile
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.plugins.catalog import in_tree
from placewright.profiles.kubescheduler.documents import manifest, to_yaml
from placewright.profiles.kubescheduler.findings import Loss, without_counterpart
from placewright.profiles.kubescheduler.reader import convert
from placewright.profiles.live import LiveProfiles
from placewright.profiles.profilestate import Reason, status_of
from placewright.profiles.resolve import resolve
from placewright.profiles.schema import json_schema, openapi_schema
from placewright.profiles.validation import check_file, check_object
from profiles.makers import CATALOGUE, a_profile

PLUGINS = in_tree()


def document(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "placewright.dev/v1alpha1", "kind": "SchedulingProfile", "metadata": {"name": "batch"}, "spec": spec}


def live() -> LiveProfiles[ResolvedProfile]:
    return LiveProfiles(CATALOGUE, lambda resolved: resolved)


def test_the_definition_fills_in_no_name_and_the_editors_schema_wants_one() -> None:
    assert "default" not in openapi_schema()["properties"]["spec"]["properties"]["schedulerName"]
    assert "required" not in openapi_schema()["properties"]["spec"], "a shadow has none"
    assert json_schema()["properties"]["spec"]["then"] == {"required": ["schedulerName"]}


@pytest.mark.parametrize(
    "spec", [{}, {"weights": {"ImageLocality": 2}}, {"schedulername": "batch"}, {"schedulerName": None}, {"paused": True}]
)
def test_a_live_profile_without_a_name_is_refused_in_files_and_by_the_webhook(spec: dict[str, Any]) -> None:
    text = yaml.safe_dump(document(**spec))
    said = [str(finding.problem) for finding in check_file(text, "batch.yaml", PLUGINS).findings]
    assert any("schedulerName" in problem for problem in said)
    assert any("schedulerName" in str(problem) for problem in check_object(document(**spec), None, PLUGINS))


def test_what_is_said_names_the_field_what_to_write_and_whose_pods_it_took() -> None:
    (finding,) = check_file(yaml.safe_dump(document(preset="spread")), "batch.yaml", PLUGINS).findings
    assert str(finding).startswith("batch.yaml:5:1: spec.schedulerName: found nothing; allowed ")
    assert "write 'schedulerName: default-scheduler'" in finding.problem.allowed
    assert "took the pods of default-scheduler" in finding.problem.allowed


def test_a_shadow_needs_no_name() -> None:
    shadow = document(mode="Shadow", shadows="other")
    assert check_file(yaml.safe_dump(shadow), "a.yaml", PLUGINS).findings == ()
    assert check_object(shadow, None, PLUGINS) == []
    assert manifest(convert(yaml.safe_dump(shadow), "", PLUGINS).profiles[0])["spec"] == {"mode": "Shadow", "shadows": "other"}


def test_one_that_is_stored_without_a_name_is_refused_by_the_operator_and_takes_nobodys_pods() -> None:
    profiles = live()
    outcome = profiles.apply(SchedulingProfile(metadata=a_profile({}, "old", uid="1", generation=3).metadata, spec=ProfileSpec()))
    assert outcome.standing is not None
    assert (outcome.standing.reason, outcome.standing.active_generation) == (Reason.INVALID_PROFILE, None)
    assert "schedulerName: default-scheduler" in outcome.standing.message
    assert not profiles.active
    conditions = {each["type"]: each["message"] for each in status_of(outcome.standing, (), "2026-01-01T00:00:00Z")["conditions"]}
    assert "took the pods of default-scheduler" in conditions["Ready"] == conditions["Stalled"]


def test_writing_the_name_down_brings_it_into_effect() -> None:
    profiles = live()
    meta = a_profile({}, "old", uid="1", generation=3).metadata
    profiles.apply(SchedulingProfile(metadata=meta, spec=ProfileSpec()))
    mended = a_profile({"schedulerName": "default-scheduler"}, "old", uid="1", generation=4)
    assert profiles.apply(mended).standing == profiles.standings()[0]
    assert profiles.standings()[0].reason is Reason.ACTIVE
    assert check_object(document(schedulerName="default-scheduler"), document(), PLUGINS) == []


def test_convert_writes_the_name_out_and_says_so() -> None:
    conversion = convert(yaml.safe_dump(document(preset="spread")), "", PLUGINS)
    written = yaml.safe_load(to_yaml([manifest(each) for each in conversion.profiles]))
    assert written["spec"] == {"schedulerName": "default-scheduler", "preset": "spread"}
    (finding,) = conversion.findings
    assert finding.loss is Loss.NOTE
    assert without_counterpart(conversion.findings) == ()
    assert "default-scheduler" in str(finding)
    assert check_file(yaml.safe_dump(written), "a.yaml", PLUGINS).findings == ()


def test_a_configuration_of_kube_scheduler_means_the_default_scheduler_without_a_name() -> None:
    text = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    (found,) = convert(text, "", PLUGINS).profiles
    assert found.spec.scheduler_name == "default-scheduler"


def test_two_without_a_name_are_told_each_for_itself_and_not_as_namesakes() -> None:
    text = yaml.safe_dump_all([document(), document() | {"metadata": {"name": "other"}}])
    said = [finding.problem.found for finding in check_file(text, "a.yaml", PLUGINS).findings]
    assert said == ["nothing", "nothing"]


def test_the_default_profile_is_for_the_default_scheduler() -> None:
    assert resolve(default_profile(), PLUGINS).scheduler_name == "default-scheduler"


# --- advice in files ---------------------------------------------------------------------------------------------------------------


def test_a_file_with_a_profile_for_the_default_scheduler_gets_advice_at_its_line_and_is_right() -> None:
    text = "apiVersion: placewright.dev/v1alpha1\nkind: SchedulingProfile\nmetadata: {name: a}\nspec:\n  preset: spread\n"
    checked = check_file(f"{text}  schedulerName: default-scheduler\n", "a.yaml", PLUGINS)
    assert checked.findings == ()
    (advice,) = checked.advice
    assert str(advice).startswith("a.yaml:6:3: ")
    assert "kube-scheduler" in advice.hint.message
    assert check_file(f"{text}  schedulerName: batch\n", "a.yaml", PLUGINS).advice == ()


def test_advice_is_for_manifests_in_lists_too_and_not_for_kube_schedulers_own_file() -> None:
    items = {"kind": "List", "apiVersion": "v1", "items": [document(schedulerName="batch"), document(schedulerName="default-scheduler")]}
    items["items"][1]["metadata"] = {"name": "other"}
    assert len(check_file(yaml.safe_dump(items), "a.yaml", PLUGINS).advice) == 1
    own = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    assert check_file(own, "a.yaml", PLUGINS).advice == ()
