"""What the keeper of profiles says on its own account."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, cast

import msgspec
import pytest

from placewright.api.compatibility import rules_in_force
from placewright.api.profile import SchedulingProfile
from placewright.engine import profilekeeper
from placewright.engine.profilekeeper import ProfileKeeper
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.kube.serverversion import ServerVersion
from placewright.plugins.catalog import in_tree
from placewright.profiles.config import read_profiles
from placewright.profiles.live import LiveProfiles
from placewright.profiles.profilestate import ProfileStanding, Reason


@pytest.mark.parametrize(("listed", "said"), [(True, 1), (False, 0)], ids=["there is none", "nobody could list them yet"])
async def test_it_is_said_once_that_nothing_happens_without_a_profile(
    listed: bool, said: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    beats = asyncio.Queue[None]()
    monkeypatch.setattr(profilekeeper, "_BEAT_SECONDS", 0.0)

    def note_beat() -> bool:
        beats.put_nowait(None)
        return False

    nobody: Any = cast(Any, None)  # without a profile nothing is written and no queue is asked
    keeper = ProfileKeeper(nobody, LiveProfiles({}, lambda _profile: nobody), nobody, note_beat, nobody, nobody, nobody)
    keeper._listed = listed
    with caplog.at_level(logging.WARNING):
        task = asyncio.create_task(keeper.run())
        for _ in range(12):
            await asyncio.wait_for(beats.get(), 5)
        task.cancel()
    assert [r.message for r in caplog.records if "no SchedulingProfile" in r.message] == [
        "there is no SchedulingProfile: no pod is placed until one is applied, such as manifests/base/profile.yaml"
    ] * said


# --- who takes over a schedulerName ------------------------------------------------------------------------------------------------


class Reporter:
    """Notes what is to be announced."""

    def __init__(self) -> None:
        self.noted: list[ProfileStanding] = []

    def note(self, standing: ProfileStanding) -> None:
        self.noted.append(standing)

    def seen(self, profile: SchedulingProfile) -> None:
        """Not looked at."""

    def uid_of(self, name: str) -> str:
        """The uid that `made` gives."""
        return name

    def forget(self, name: str) -> None:
        """Not looked at."""


def keeper_with(reporter: Reporter, *, writes: bool = True) -> ProfileKeeper:
    nobody: Any = None
    live = LiveProfiles[ResolvedProfile](in_tree(), lambda resolved: resolved)
    return ProfileKeeper(nobody, cast(Any, live), nobody, lambda: writes, cast(Any, reporter), nobody, cast(Any, Unrecorded()))


class Unrecorded:
    """Stands for the history."""

    def saw(self, profile: Mapping[str, Any]) -> None:
        """Nothing is recorded."""

    def forget(self, name: str, uid: str) -> None:
        """Nothing was recorded."""


def made(name: str, minute: int, uid: str = "", **spec: Any) -> SchedulingProfile:
    metadata = {"name": name, "uid": uid or name, "generation": 1, "creationTimestamp": f"2026-01-01T00:{minute:02}:00Z"}
    document = {"apiVersion": "placewright.dev/v1alpha1", "kind": "SchedulingProfile", "metadata": metadata}
    return read_profiles({**document, "spec": {"schedulerName": "batch", **spec}}, "")[0]


def test_who_inherits_a_scheduler_name_is_said_together_with_who_left_it(caplog: pytest.LogCaptureFixture) -> None:
    keeper = keeper_with(reporter := Reporter())
    for number, name in enumerate(("first", "second", "third")):
        keeper.apply(made(name, number))
    with caplog.at_level(logging.INFO):
        caplog.clear()
        keeper.remove("first", "first")
    assert [record.message for record in caplog.records] == [
        "profile first was deleted: profile second (generation 1) places the pods of schedulerName 'batch' from now on",
        "profile second: generation 1 places the pods of schedulerName 'batch'",
        'profile third: spec.schedulerName: found "batch", which the older profile "second" has; allowed a name of its own; '
        "no generation of this profile is in effect",
    ]
    assert [standing.name for standing in reporter.noted][-2:] == ["second", "third"]


def test_who_inherits_from_a_namesake_that_was_made_anew_is_said_too(caplog: pytest.LogCaptureFixture) -> None:
    keeper = keeper_with(Reporter())
    keeper.apply(made("first", 0))
    keeper.apply(made("second", 1))
    with caplog.at_level(logging.INFO):
        caplog.clear()
        keeper.apply(made("first", 2, uid="anew", schedulerName="other"))
    said = [record.message for record in caplog.records]
    assert "profile first: generation 1 places the pods of schedulerName 'other'" in said
    assert "profile second: generation 1 places the pods of schedulerName 'batch'" in said


def test_without_an_heir_it_is_said_that_pods_wait_and_what_had_none_says_so(caplog: pytest.LogCaptureFixture) -> None:
    keeper = keeper_with(Reporter())
    keeper.apply(made("first", 0))
    keeper.apply(made("second", 1))
    with caplog.at_level(logging.INFO):
        caplog.clear()
        keeper.remove("second", "second")
        keeper.remove("first", "first")
    assert [record.message for record in caplog.records] == [
        "profile second was deleted; no pods were its own",
        "profile first was deleted: pods of schedulerName 'batch' wait",
    ]


def test_a_replica_that_is_not_active_announces_nothing() -> None:
    keeper = keeper_with(reporter := Reporter(), writes=False)
    keeper.apply(made("first", 0))
    assert reporter.noted == []


def test_late_news_of_an_earlier_generation_does_not_take_the_refusal_of_the_newest_back() -> None:
    keeper = keeper_with(Reporter())
    earlier = msgspec.to_builtins(made("first", 0))
    newest = {**earlier, "metadata": {**earlier["metadata"], "generation": 2}, "spec": {"schedulerName": "batch", "weights": "many"}}
    for body in (earlier, newest, earlier):
        keeper.take("MODIFIED", body)
    (standing,) = keeper.standings().values()
    assert (standing.observed_generation, standing.active_generation) == (2, 1)
    assert standing.reason is Reason.INVALID_PROFILE


# --- versions of the API server ----------------------------------------------------------------------------------------------------


def test_the_first_answer_of_the_api_server_decides_what_profiles_follow() -> None:
    keeper = keeper_with(reporter := Reporter())
    keeper.apply(made("first", 0))
    for _ in range(2):
        keeper.server_answered(ServerVersion(37))
    assert keeper.live.active["batch"].profile.rules == rules_in_force("1.37")
    assert [standing.name for standing in reporter.noted] == ["first", "first"]  # as it appeared, and as it was built anew
