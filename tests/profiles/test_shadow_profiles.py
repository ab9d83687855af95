"""Shadows as profiles: what may be said of one, which profile it stands beside, and that it claims nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.plugins.catalog import in_tree
from placewright.profiles.config import placing, read_profiles
from placewright.profiles.kubescheduler.writer import to_configuration
from placewright.profiles.live import Active, LiveProfiles
from placewright.profiles.problem import ProfileError
from placewright.profiles.profilestate import ProfileStanding, Reason
from placewright.profiles.resolve import resolve
from placewright.profiles.validation import check_file, check_object
from profiles.makers import CATALOGUE, a_profile

Spec = dict[str, Any]
SHADOW: Spec = {"mode": "Shadow", "shadows": "live"}

WRONG: dict[str, tuple[Spec, str]] = {
    "nobody to shadow": ({"mode": "Shadow"}, "spec.shadows: found nothing; allowed the name of a live profile, as spec.mode is Shadow"),
    "live, and shadows": ({"shadows": "live"}, 'spec.shadows: found "live"; allowed nothing, as spec.mode is Live'),
    "live, with a budget": ({"shadow": {}}, "spec.shadow: found settings; allowed nothing, as spec.mode is Live"),
    "another mode": ({"mode": "Shadwo", "shadows": "live"}, "spec.mode: found \"Shadwo\"; allowed Live or Shadow (did you mean 'Shadow'?)"),
    "itself": ({"mode": "Shadow", "shadows": "p"}, 'spec.shadows: found "p"; allowed the name of another profile, not its own'),
    "no budget": ({**SHADOW, "shadow": {"budgetPercent": 0}}, "spec.shadow.budgetPercent: found 0; allowed 0.1 to 50"),
    "all the time": ({**SHADOW, "shadow": {"budgetPercent": 51}}, "spec.shadow.budgetPercent: found 51; allowed 0.1 to 50"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_makes_no_sense_of_a_shadow_is_refused_in_one_line(case: str) -> None:
    spec, line = WRONG[case]
    with pytest.raises(ProfileError) as refused:
        resolve(a_profile(spec), CATALOGUE)
    assert str(refused.value).startswith(line)
    assert len(refused.value.problems) == 1


@pytest.mark.parametrize(("spec", "budget"), [(SHADOW, 0.05), ({**SHADOW, "shadow": {"budgetPercent": 20}}, 0.2)])
def test_a_shadow_knows_whom_it_shadows_and_its_share_of_the_time(spec: Spec, budget: float) -> None:
    resolved = resolve(a_profile(spec), CATALOGUE)
    assert (resolved.shadows, resolved.shadow_budget) == ("live", budget)
    assert resolve(a_profile(), CATALOGUE).shadows is None


class Desk:
    """A live set, and the shadows that it told of, each time others than before."""

    def __init__(self) -> None:
        self.told: list[dict[str, int]] = []
        self.live = LiveProfiles[ResolvedProfile](CATALOGUE, lambda resolved: resolved, on_shadows=self._hear)

    def _hear(self, shadows: Any) -> None:
        found: dict[str, Active[ResolvedProfile]] = dict(shadows)
        self.told.append({name: active.profile.generation for name, active in found.items()})

    def apply(self, name: str, spec: Spec, generation: int = 1) -> None:
        self.live.apply(a_profile(spec, name, uid=name, generation=generation))

    def standing(self, name: str) -> ProfileStanding:
        return next(standing for standing in self.live.standings() if standing.name == name)


def test_a_shadow_is_in_effect_for_as_long_as_the_live_profile_is_and_comes_back_with_it() -> None:
    desk = Desk()
    desk.apply("try", SHADOW)
    assert desk.standing("try").reason is Reason.NOTHING_TO_SHADOW
    assert desk.standing("try").active_generation is None
    desk.apply("live", {"schedulerName": "x"})
    assert (desk.standing("try").reason, desk.standing("try").active_generation) == (Reason.ACTIVE, 1)
    desk.live.remove("live")
    assert desk.standing("try").reason is Reason.NOTHING_TO_SHADOW
    desk.apply("live", {"schedulerName": "x"})
    assert desk.told == [{"try": 1}, {}, {"try": 1}]


def test_a_shadow_claims_neither_a_scheduler_name_nor_the_order_of_the_queue() -> None:
    desk = Desk()
    order = {"queueSort": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]}}
    desk.apply("try", {**SHADOW, "schedulerName": "x", "plugins": order})
    desk.apply("live", {"schedulerName": "x"})
    desk.apply("second", {**SHADOW, "schedulerName": "x"})
    assert list(desk.live.active) == ["x"]
    assert desk.live.active["x"].profile.name == "live"
    assert [desk.standing(name).reason for name in ("try", "live", "second")] == [Reason.ACTIVE] * 3
    assert desk.standing("try").scheduler_name == ""


def test_a_live_profile_that_is_edited_to_be_a_shadow_goes_on_to_place_its_pods() -> None:
    desk = Desk()
    desk.apply("live", {"schedulerName": "x"})
    desk.apply("other", {"schedulerName": "y"})
    desk.apply("live", {"schedulerName": "x", "mode": "Shadow", "shadows": "other"}, 2)
    standing = desk.standing("live")
    assert (standing.reason, standing.active_generation) == (Reason.INVALID_PROFILE, 1)
    assert 'spec.mode: found "Shadow"; allowed "Live": it is immutable' in standing.message
    assert desk.live.active["x"].profile.name == "live"


def test_a_bad_generation_of_a_shadow_leaves_the_last_good_one_in_effect() -> None:
    desk = Desk()
    desk.apply("live", {})
    desk.apply("try", SHADOW)
    desk.apply("try", {**SHADOW, "weights": {"Nonsense": 1}}, 2)
    standing = desk.standing("try")
    assert (standing.reason, standing.active_generation) == (Reason.INVALID_PROFILE, 1)
    assert standing.message.endswith("generation 1 stays in effect as a shadow of 'live'")


def test_where_something_is_tried_out_live_profiles_place_and_shadows_only_by_themselves() -> None:
    live, shadow = a_profile({"schedulerName": "x"}, "live"), a_profile(SHADOW, "try")
    assert placing([shadow, live]) == [live]
    assert placing([shadow]) == [shadow]


def test_a_file_may_hold_a_live_profile_and_its_shadow_with_the_same_scheduler_name() -> None:
    text = "\n---\n".join(
        f"apiVersion: placewright.dev/v1alpha1\nkind: SchedulingProfile\nmetadata: {{name: {name}}}\nspec: {{{spec}}}"
        for name, spec in (("live", "schedulerName: x"), ("try", "schedulerName: x, mode: Shadow, shadows: live"))
    )
    checked = check_file(text, "f.yaml", CATALOGUE)
    assert (checked.findings, checked.profiles) == ((), 2)


def test_admission_refuses_another_mode_and_takes_a_shadow() -> None:
    def manifest(spec: Spec) -> dict[str, Any]:
        return {"apiVersion": "placewright.dev/v1alpha1", "kind": "SchedulingProfile", "metadata": {"name": "p"}, "spec": spec}

    assert check_object(manifest(SHADOW), None, CATALOGUE) == []
    (problem,) = check_object(manifest({"schedulerName": "x"}), manifest(SHADOW), CATALOGUE)
    assert problem.path == "spec.mode"


def test_the_example_is_a_shadow_of_the_profile_that_comes_with_placewright_and_its_pods_are_that_ones() -> None:
    manifests = Path(__file__).parents[2] / "manifests"
    (live,) = read_profiles((manifests / "base" / "profile.yaml").read_text(), "profile.yaml")
    (shadow,) = read_profiles((manifests / "examples" / "shadows" / "packed.yaml").read_text(), "packed.yaml")
    assert (shadow.spec.mode, shadow.spec.shadows) == ("Shadow", live.metadata.name)
    assert resolve(shadow, in_tree()).shadow_budget == 0.05
    pods = yaml.safe_load((manifests / "examples" / "shadows" / "nine-pods.yaml").read_text())["items"]
    assert [pod["spec"]["schedulerName"] for pod in pods] == [live.spec.scheduler_name] * 9


def test_kube_scheduler_has_no_shadows_so_they_are_left_out_of_its_configuration() -> None:
    document, findings = to_configuration([a_profile({"schedulerName": "x"}, "x"), a_profile(SHADOW, "try")], CATALOGUE)
    assert [each["schedulerName"] for each in document["profiles"]] == ["x"]
    assert ["is left out" in str(finding) for finding in findings if "try" in str(finding)] == [True]
