from __future__ import annotations

import pytest
from fake_api import FakeApi, answer, refuse

from placewright.kube.errors import ApiError
from placewright.kube.serverversion import ServerVersion, SteadyVersion, server_version


async def told(body: object) -> ServerVersion | None:
    async with FakeApi() as api, api.client() as client:
        api.on("GET /version", answer(body))
        return await server_version(client)


@pytest.mark.parametrize(("minor", "version"), [("20", 20), ("36", 36), ("27+", 27), ("28-gke.1", 28)])
async def test_the_minor_version_is_read_as_providers_write_it(minor: str, version: int) -> None:
    assert await told({"major": "1", "minor": minor}) == ServerVersion(version)


@pytest.mark.parametrize("body", [{}, [], {"major": "2", "minor": "1"}, {"major": "1", "minor": ""}, {"major": 1, "minor": 20}])
async def test_a_version_that_makes_no_sense_is_none(body: object) -> None:
    assert await told(body) is None


async def test_a_server_that_keeps_its_version_to_itself_is_no_error() -> None:
    async with FakeApi() as api, api.client() as client:
        api.on("GET /version", refuse(403, "Forbidden"))
        assert await server_version(client) is None


async def test_a_server_that_is_away_is_an_error() -> None:
    async with FakeApi() as api, api.client() as client:
        api.on("GET /version", refuse(503, "ServiceUnavailable"))
        with pytest.raises(ApiError):
            await server_version(client)


def test_an_old_server_drops_what_came_later() -> None:
    assert "schedulingGates (1.26)" in ServerVersion(20).unknown_fields
    assert ServerVersion(26).unknown_fields == ("restartPolicy of init containers (1.28)", "resources of whole pods (1.32)")
    assert ServerVersion(36).unknown_fields == ()


def test_uids_of_bindings_are_compared_since_1_23() -> None:
    assert ServerVersion(22).ignores_uids and not ServerVersion(23).ignores_uids


@pytest.mark.parametrize(
    ("answers", "followed"),
    [
        ([(0, 36), (300, 36)], 36),
        ([(0, 36), (300, 37), (600, 37), (899, 37)], 36),
        ([(0, 36), (300, 37), (600, 37), (900, 37)], 37),
        ([(0, 36), (300, 37), (600, 36), (900, 37)], 36),
        ([(0, 37), (300, 36)], 36),
    ],
    ids=["as before", "ten minutes are not over", "they are over", "an old server answers among new ones", "one falls at once"],
)
def test_a_newer_version_counts_when_no_older_one_answered_for_ten_minutes(answers: list[tuple[float, int]], followed: int) -> None:
    now = 0.0
    steady = SteadyVersion(lambda: now)
    for now, minor in answers:  # noqa: B007 - the clock reads it
        found = steady.after(ServerVersion(minor))
    assert found == followed
