"""The live set: what is in effect after each change, who has a schedulerName, and what is told."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from placewright.api.objects import Condition
from placewright.api.profile import ProfileStatus
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.profiles.live import LiveProfiles, Outcome, Swap
from placewright.profiles.profilestate import Reason
from profiles.makers import CATALOGUE, a_profile

BAD = {"weights": {"Nonsense": 1}}


class Runtime:
    """Stands in for a real runtime; one is made for every build."""

    def __init__(self, profile: ResolvedProfile) -> None:
        self.profile = profile


class Scheduler:
    """A live set, with the swaps that its listener heard; `explode` makes the next builds fail."""

    def __init__(self) -> None:
        self.explode = False
        self.heard: list[Swap[Runtime]] = []
        self.live = LiveProfiles[Runtime](CATALOGUE, self._build, self.heard.append)

    def _build(self, resolved: ResolvedProfile) -> Runtime:
        if self.explode:
            raise RuntimeError("boom")
        return Runtime(resolved)

    def apply(self, name: str, generation: int, spec: dict[str, Any] | None = None, *, age: str = "", uid: str = "") -> Outcome[Runtime]:
        metadata = {"uid": uid or name, "generation": generation, "creationTimestamp": f"2026-01-01T00:00:00Z{age}"}
        return self.live.apply(a_profile(spec, name, **metadata))

    def in_effect(self) -> dict[str, tuple[str, int]]:
        """By schedulerName: the profile's name and generation."""
        return {key: (active.profile.name, active.profile.generation) for key, active in self.live.active.items()}


@pytest.fixture
def scheduler() -> Scheduler:
    return Scheduler()


def named(scheduler_name: str, **spec: Any) -> dict[str, Any]:
    return {"schedulerName": scheduler_name, **spec}


def test_a_good_profile_is_in_effect_and_the_listener_hears_of_it(scheduler: Scheduler) -> None:
    outcome = scheduler.apply("a", 1, named("x"))
    assert outcome.changed
    assert outcome.standing is not None
    assert outcome.standing.reason is Reason.ACTIVE
    assert outcome.standing.active_generation == 1
    active = scheduler.live.by_scheduler_name("x")
    assert active is not None
    assert active.evaluator.profile is active.profile
    assert scheduler.heard == [Swap("x", None, active)] == list(outcome.swaps)
    assert scheduler.live.by_scheduler_name("y") is None


def test_a_bad_change_leaves_the_last_good_generation_in_effect(scheduler: Scheduler) -> None:
    scheduler.apply("a", 1, named("x"))
    before = scheduler.live.by_scheduler_name("x")
    outcome = scheduler.apply("a", 2, named("x", **BAD))
    assert scheduler.live.by_scheduler_name("x") is before
    assert outcome.swaps == ()
    assert outcome.standing is not None
    assert outcome.standing.reason is Reason.INVALID_PROFILE
    assert (outcome.standing.observed_generation, outcome.standing.active_generation) == (2, 1)
    assert "Nonsense" in outcome.standing.message
    assert "generation 1 stays in effect" in outcome.standing.message


def test_a_repaired_profile_takes_effect_with_its_newest_generation(scheduler: Scheduler) -> None:
    scheduler.apply("a", 1, named("x"))
    scheduler.apply("a", 2, named("x", **BAD))
    outcome = scheduler.apply("a", 3, named("x", weights={"NodeAffinity": 9}))
    assert scheduler.in_effect() == {"x": ("a", 3)}
    assert outcome.standing is not None
    assert outcome.standing.reason is Reason.ACTIVE


def test_a_profile_that_was_never_good_places_nothing(scheduler: Scheduler) -> None:
    outcome = scheduler.apply("a", 1, named("x", **BAD))
    assert scheduler.in_effect() == {}
    assert outcome.standing is not None
    assert outcome.standing.active_generation is None
    assert "no generation of this profile is in effect" in outcome.standing.message


def test_what_was_in_effect_elsewhere_can_be_put_in_effect_below_a_refused_generation(scheduler: Scheduler) -> None:
    scheduler.apply("a", 3, named("x", **BAD))
    outcome = scheduler.live.restore(a_profile(named("x"), "a", uid="a", generation=2))
    assert scheduler.in_effect() == {"x": ("a", 2)}
    assert outcome.standing is not None
    assert (outcome.standing.observed_generation, outcome.standing.active_generation) == (3, 2)
    assert outcome.standing.reason is Reason.INVALID_PROFILE
    scheduler.apply("a", 4, named("x"))
    assert scheduler.in_effect() == {"x": ("a", 4)}


@pytest.mark.parametrize(
    ("spec", "uid", "generation"),
    [({**BAD}, "a", 2), ({}, "another", 2), ({}, "a", 3)],
    ids=["it is no better", "it is another object's", "it is not earlier"],
)
def test_what_could_not_have_been_in_effect_is_not_put_back(scheduler: Scheduler, spec: dict[str, Any], uid: str, generation: int) -> None:
    scheduler.apply("a", 3, named("x", **BAD))
    assert not scheduler.live.restore(a_profile(named("x", **spec), "a", uid=uid, generation=generation)).changed
    assert scheduler.in_effect() == {}


def test_a_good_generation_is_not_replaced_by_an_earlier_one(scheduler: Scheduler) -> None:
    scheduler.apply("a", 2, named("x"))
    scheduler.apply("a", 3, named("x", **BAD))
    assert not scheduler.live.restore(a_profile(named("x"), "a", uid="a", generation=1)).changed
    assert scheduler.in_effect() == {"x": ("a", 2)}


def test_a_plugin_that_breaks_while_it_is_built_leaves_the_last_good_generation(scheduler: Scheduler) -> None:
    scheduler.apply("a", 1, named("x"))
    scheduler.explode = True
    outcome = scheduler.apply("a", 2, named("x", paused=True))
    assert scheduler.in_effect() == {"x": ("a", 1)}
    assert outcome.standing is not None
    assert outcome.standing.reason is Reason.BUILD_FAILED
    assert "RuntimeError: boom" in outcome.standing.message


def test_a_repeated_or_late_event_builds_and_swaps_nothing(scheduler: Scheduler) -> None:
    scheduler.apply("a", 2, named("x", paused=True))
    heard = list(scheduler.heard)
    assert not scheduler.apply("a", 2, named("x", paused=True)).changed
    assert not scheduler.apply("a", 1, named("x")).changed
    assert scheduler.heard == heard
    assert scheduler.in_effect() == {"x": ("a", 2)}


def test_a_set_that_was_taken_hold_of_does_not_change_under_a_cycle(scheduler: Scheduler) -> None:
    scheduler.apply("a", 1, named("x"))
    held = scheduler.live.active
    scheduler.apply("a", 2, named("x", paused=True))
    assert held["x"].profile.generation == 1
    assert scheduler.live.active["x"].profile.generation == 2


def test_of_two_profiles_with_one_scheduler_name_the_older_wins(scheduler: Scheduler) -> None:
    scheduler.apply("a-young", 1, named("x"), age="2")
    outcome = scheduler.apply("z-old", 1, named("x"), age="1")
    assert scheduler.in_effect() == {"x": ("z-old", 1)}
    (other,) = outcome.others
    assert (other.name, other.reason, other.active_generation) == ("a-young", Reason.SCHEDULER_NAME_TAKEN, None)
    assert '"z-old"' in other.message


def test_of_two_profiles_of_one_age_the_first_by_name_wins(scheduler: Scheduler) -> None:
    scheduler.apply("b", 1, named("x"))
    scheduler.apply("a", 1, named("x"))
    assert scheduler.in_effect() == {"x": ("a", 1)}


def test_the_younger_gets_the_name_when_the_older_is_removed(scheduler: Scheduler) -> None:
    scheduler.apply("z-old", 1, named("x"), age="1")
    scheduler.apply("a-young", 3, named("x"), age="2")
    outcome = scheduler.live.remove("z-old")
    assert scheduler.in_effect() == {"x": ("a-young", 3)}
    (swap,) = outcome.swaps
    assert swap.before is not None
    assert swap.after is not None
    assert (swap.before.profile.name, swap.after.profile.name) == ("z-old", "a-young")
    assert [(other.name, other.reason) for other in outcome.others] == [("a-young", Reason.ACTIVE)]


def test_a_profile_keeps_its_scheduler_name(scheduler: Scheduler) -> None:
    scheduler.apply("a", 1, named("y"))
    outcome = scheduler.apply("a", 2, named("x"))
    assert scheduler.in_effect() == {"y": ("a", 1)}
    assert outcome.standing is not None
    assert outcome.standing.reason is Reason.INVALID_PROFILE
    assert 'spec.schedulerName: found "x"; allowed "y": it is immutable' in outcome.standing.message
    assert "generation 1 stays in effect for schedulerName 'y'" in outcome.standing.message


def test_another_object_under_the_same_name_may_have_another_scheduler_name(scheduler: Scheduler) -> None:
    scheduler.apply("a", 1, named("y"), uid="old")
    scheduler.apply("a", 1, named("x"), uid="new")
    assert scheduler.in_effect() == {"x": ("a", 1)}


def test_removing_a_profile_leaves_its_pods_without_one(scheduler: Scheduler) -> None:
    scheduler.apply("a", 1, named("x"))
    outcome = scheduler.live.remove("a")
    assert outcome.standing is None
    assert [swap.after for swap in outcome.swaps] == [None]
    assert scheduler.in_effect() == {}
    assert scheduler.live.standings() == ()


def test_a_late_deletion_of_an_earlier_object_removes_nothing(scheduler: Scheduler) -> None:
    scheduler.apply("a", 1, named("x"), uid="new")
    assert not scheduler.live.remove("a", uid="old").changed
    assert not scheduler.live.remove("unknown").changed
    assert scheduler.in_effect() == {"x": ("a", 1)}


def test_a_recreated_profile_starts_afresh_and_does_not_inherit_the_last_good_one(scheduler: Scheduler) -> None:
    scheduler.apply("a", 7, named("x"), uid="first")
    scheduler.apply("a", 1, named("x", **BAD), uid="second")
    assert scheduler.in_effect() == {}
    scheduler.apply("a", 2, named("x"), uid="second")
    assert scheduler.in_effect() == {"x": ("a", 2)}


def test_a_profile_with_another_queue_sort_is_not_taken_beside_others(scheduler: Scheduler) -> None:
    other_sort = {"plugins": {"queueSort": {"disabled": [{"name": "*"}], "enabled": [{"name": "Coscheduling"}]}}}
    scheduler.apply("a", 1, named("x"), age="2")
    scheduler.apply("b", 1, named("y", **other_sort), age="1")
    assert scheduler.in_effect() == {"x": ("a", 1)}
    assert {standing.name: standing.reason for standing in scheduler.live.standings()} == {
        "a": Reason.ACTIVE,
        "b": Reason.QUEUE_SORT_DIFFERS,
    }
    scheduler.live.remove("a")
    assert scheduler.in_effect() == {"y": ("b", 1)}


def test_a_paused_profile_says_so(scheduler: Scheduler) -> None:
    outcome = scheduler.apply("a", 1, named("x", paused=True))
    assert outcome.standing is not None
    assert outcome.standing.reason is Reason.PAUSED
    assert scheduler.in_effect() == {"x": ("a", 1)}


# --- generations that are held -------------------------------------------------------------------------------------------------------


def marked(generation: int, *, of: int = 2, spec: dict[str, Any] | None = None) -> Any:
    """The profile with the mark that a process left on generation `of`."""
    seen = a_profile(spec or named("x"), "a", uid="a", generation=generation)
    condition = Condition("PluginHanging", "True", "PluginHanging", "it hung", observed_generation=of)
    return msgspec.structs.replace(seen, status=ProfileStatus(conditions=[condition]))


def test_a_generation_that_is_marked_is_neither_built_nor_in_effect(scheduler: Scheduler) -> None:
    scheduler.explode = True
    outcome = scheduler.live.apply(marked(2))
    assert outcome.standing is not None
    assert (outcome.standing.reason, outcome.standing.message) == (Reason.PLUGIN_HANGING, "it hung")
    assert scheduler.in_effect() == {}


def test_a_mark_that_comes_while_the_generation_is_in_effect_ends_it_once(scheduler: Scheduler) -> None:
    scheduler.apply("a", 2, named("x"))
    outcome = scheduler.live.apply(marked(2))
    assert [swap.after for swap in outcome.swaps] == [None]
    assert scheduler.in_effect() == {}
    assert not scheduler.live.apply(marked(2)).changed


def test_no_earlier_generation_takes_over_for_one_that_is_held(scheduler: Scheduler) -> None:
    """It may well have the same plugin."""
    scheduler.apply("a", 1, named("x"))
    scheduler.live.apply(marked(2))
    assert scheduler.in_effect() == {}


def test_the_next_generation_is_in_effect_whatever_is_said_of_the_one_before(scheduler: Scheduler) -> None:
    scheduler.live.apply(marked(2))
    scheduler.live.apply(marked(3, of=2, spec=named("x", weights={"NodeResourcesFit": 2})))
    assert scheduler.in_effect() == {"x": ("a", 3)}


def test_another_profile_may_have_the_name_of_one_that_is_held(scheduler: Scheduler) -> None:
    scheduler.live.apply(marked(2))
    scheduler.apply("b", 1, named("x"), age="1")
    assert scheduler.in_effect() == {"x": ("b", 1)}


# --- versions of the API server ----------------------------------------------------------------------------------------------------


def test_another_version_builds_anew_what_follows_it_and_leaves_the_rest(scheduler: Scheduler) -> None:
    scheduler.apply("auto", 1, named("a"))
    scheduler.apply("fixed", 1, named("f", compatibility="1.36"))
    scheduler.apply("beside", 1, {"mode": "Shadow", "shadows": "auto", "compatibility": "1.37"})
    before, shadow = dict(scheduler.live.active), scheduler.live.shadows["beside"]
    outcome = scheduler.live.follow(37)
    after = scheduler.live.active
    assert after["a"].evaluator is not before["a"].evaluator
    assert after["f"] is before["f"]
    assert scheduler.live.shadows["beside"] is shadow
    assert outcome.swaps == (Swap("a", before["a"], after["a"]),)
    assert [(standing.name, standing.message) for standing in outcome.others] == [
        (
            "auto",
            "generation 1 places the pods of schedulerName 'a', by later rules of kube-scheduler: DRAFractionalCapacityRange, "
            "StorageCapacityScoring, VolumeLimitScaling; `placewright diff --compatibility 1.36..1.37` shows their effect",
        )
    ]
    assert scheduler.live.follow(37).swaps == ()


def test_a_shadow_that_follows_another_version_begins_anew(scheduler: Scheduler) -> None:
    scheduler.apply("live", 1, named("a", compatibility="1.36"))
    scheduler.apply("beside", 1, {"mode": "Shadow", "shadows": "live"})
    before = scheduler.live.shadows["beside"]
    scheduler.live.follow(37)
    assert scheduler.live.shadows["beside"].profile is not before.profile


def test_what_cannot_be_built_for_another_version_stays(scheduler: Scheduler) -> None:
    scheduler.apply("a", 1, named("x"))
    before = scheduler.live.by_scheduler_name("x")
    scheduler.explode = True
    (standing,) = scheduler.live.follow(37).others
    assert standing.reason is Reason.BUILD_FAILED
    assert scheduler.live.by_scheduler_name("x") is before


def test_a_refused_generation_stays_refused_under_another_version(scheduler: Scheduler) -> None:
    scheduler.apply("a", 1, named("x"))
    scheduler.apply("a", 2, named("x", **BAD))
    scheduler.live.follow(37)
    standing = scheduler.live.standing("a")
    assert standing is not None
    assert (standing.reason, standing.active_generation) == (Reason.INVALID_PROFILE, 1)
