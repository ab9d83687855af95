"""What the keeper of profiles says on its own account."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, cast

import pytest

from placewright.handlers import profilekeeper
from placewright.handlers.profilekeeper import ProfileKeeper
from placewright.profiles.live import LiveProfiles


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
    keeper = ProfileKeeper(nobody, LiveProfiles({}, lambda _profile: nobody), nobody, note_beat, nobody, nobody)
    keeper._listed = listed
    with caplog.at_level(logging.WARNING):
        task = asyncio.create_task(keeper.run())
        for _ in range(12):
            await asyncio.wait_for(beats.get(), 5)
        task.cancel()
    assert [r.message for r in caplog.records if "no SchedulingProfile" in r.message] == [
        "there is no SchedulingProfile: no pod is placed until one is applied, such as manifests/base/profile.yaml"
    ] * said
