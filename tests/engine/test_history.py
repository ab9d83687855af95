"""Every generation of a profile is recorded, with who wrote it and what came of it; and nothing depends on that."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

import pytest

from handlers.stage import Object, Stage, operator
from placewright.engine import profilehistory
from placewright.engine.profilehistory import HistoryKeeper
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright.kube.history import DEFAULT_NAMESPACE, HistoryStore, Revision
from placewright.profiles.profilestate import ProfileStanding, Reason


@pytest.fixture
async def store(stage: Stage) -> AsyncIterator[HistoryStore]:
    """The history on stage, with the namespace that it needs."""
    stage.sandbox.writes.create(stage.sandbox.resource("", "v1", "namespaces"), "", {"metadata": {"name": DEFAULT_NAMESPACE}})
    async with ApiClient(load_config(str(stage.sandbox.kubeconfig))) as client:
        yield HistoryStore(client, DEFAULT_NAMESPACE)


def recorded(stage: Stage) -> list[Object]:
    """The ControllerRevisions there are, oldest first."""
    key = stage.sandbox.resource("apps", "v1", "controllerrevisions").key
    return sorted((each.object for each in stage.sandbox.store.listed(key)), key=lambda each: int(each["revision"]))


def results(stage: Stage) -> list[str]:
    return [each["metadata"]["annotations"]["placewright.dev/result"] for each in recorded(stage)]


async def test_each_generation_is_recorded_with_what_came_of_it(stage: Stage, store: HistoryStore) -> None:
    async with operator(stage):
        await stage.until(lambda: results(stage) == ["Active"], "the first generation is recorded")
        stage.edit_profile(weights={"NodeAffinity": 5})
        await stage.until(lambda: results(stage) == ["Active", "Active"], "the second is recorded")
        stage.write_profile_unchecked(weights={"NodeAfinity": 5})
        await stage.until(lambda: len(results(stage)) == 3, "the third is recorded")
    first, second, third = await store.revisions("default")
    assert [each.recorded.generation for each in (first, second, third)] == [1, 2, 3]
    assert second.recorded.spec["weights"] == {"NodeAffinity": 5}
    assert third.result == "InvalidProfile"
    assert "did you mean 'NodeAffinity'?" in third.message
    assert "generation 2 stays in effect" in third.message


@pytest.mark.parametrize("weights", [{"NodeAfinity": 5}, "many"], ids=["a wrong name", "no profile at all"])
async def test_an_operator_that_starts_while_the_newest_generation_is_refused_places_by_the_last_good_one(
    stage: Stage, store: HistoryStore, weights: object
) -> None:
    async with operator(stage):
        await stage.until(lambda: results(stage) == ["Active"], "the first generation is recorded")
        good = stage.edit_profile(weights={"NodeAffinity": 5})
        await stage.until(lambda: results(stage) == ["Active", "Active"], "the second is recorded")
        stage.write_profile_unchecked(weights=weights)
        await stage.until(lambda: len(results(stage)) == 3, "the third is recorded")
    async with operator(stage):
        stage.pod("web")
        await stage.until(lambda: stage.placed("web"))
        if weights != "many":  # an object of no shape takes no status either
            await stage.until(lambda: stage.show_profile()["status"].get("activeGeneration") == good)
            assert stage.profile_condition("Stalled")["status"] == "True"
    decision = stage.decision("web")
    assert decision is not None and decision.generation == good
    assert await store.revisions("default"), "the history is as it was"
    assert results(stage) == ["Active", "Active", "InvalidProfile"]


async def test_a_generation_of_a_namesake_that_is_gone_is_not_put_back(stage: Stage, store: HistoryStore) -> None:
    async with operator(stage):
        await stage.until(lambda: results(stage) == ["Active"], "the first generation is recorded")
    stage.delete_profile()
    stage.profile(weights={"NodeAfinity": 5})
    async with operator(stage):
        await stage.until(lambda: results(stage) == ["Active", "InvalidProfile"], "the namesake is recorded")
        stage.pod("web")
        await stage.until(lambda: (stage.show_profile().get("status") or {}).get("pending", {}).get("total") == 1)
    assert stage.show_profile()["status"]["activeGeneration"] == 0
    assert not stage.placed("web")


async def test_a_generation_that_is_no_profile_at_all_is_recorded_as_refused(stage: Stage, store: HistoryStore) -> None:
    async with operator(stage):
        await stage.until(lambda: results(stage) == ["Active"], "the first generation is recorded")
        stage.write_profile_unchecked(weights="many")
        await stage.until(lambda: results(stage) == ["Active", "InvalidProfile"], "the second is recorded")
    assert (await store.revisions())[1].recorded.spec["weights"] == "many"


async def test_it_is_said_who_changed_the_profile(stage: Stage, store: HistoryStore) -> None:
    async with operator(stage), ApiClient(load_config(str(stage.sandbox.kubeconfig))) as client:
        await stage.until(lambda: results(stage) == ["Active"], "the first generation is recorded")
        path, params = "/apis/placewright.dev/v1alpha1/schedulingprofiles/default", {"fieldManager": "argocd-controller"}
        await client.patch(path, {"spec": {"weights": {"ImageLocality": 4}}}, params)
        await stage.until(lambda: len(results(stage)) == 2, "the second is recorded")
    revision = (await store.revisions())[1].recorded
    assert revision.changed_by == "argocd-controller"
    assert revision.changed_at.endswith("Z")


async def test_changes_of_the_same_fields_that_follow_at_once_all_have_an_author_and_an_event(stage: Stage, store: HistoryStore) -> None:
    async with operator(stage), ApiClient(load_config(str(stage.sandbox.kubeconfig))) as client:
        await stage.until(lambda: results(stage) == ["Active"], "the first generation is recorded")
        path, params = "/apis/placewright.dev/v1alpha1/schedulingprofiles/default", {"fieldManager": "argocd-controller"}
        for weight in range(2, 8):  # not all of them can be the first of their second
            await client.patch(path, {"spec": {"weights": {"ImageLocality": weight}}}, params)
            await stage.until(lambda weight=weight: len(results(stage)) == weight, "it is recorded")  # type: ignore[misc]
        await stage.until(lambda: len(announced(stage)) == 7, "all are announced")
    assert [each.recorded.changed_by for each in (await store.revisions())[1:]] == ["argocd-controller"] * 6
    assert announced(stage) == [f"generation {number} places the pods of schedulerName 'placewright'" for number in range(1, 8)]


def announced(stage: Stage) -> list[str]:
    """What the events ProfileActive say, in the order in which they were written."""
    key = stage.sandbox.resource("", "v1", "events").key
    found = [each for each in stage.sandbox.store.listed(key) if each.object["reason"] == "ProfileActive"]
    return [each.object["message"] for each in sorted(found, key=lambda each: each.version)]


async def test_an_operator_that_starts_again_records_nothing_twice(stage: Stage, store: HistoryStore) -> None:
    async with operator(stage):
        await stage.until(lambda: results(stage) == ["Active"], "it is recorded")
    async with operator(stage) as second:
        stage.edit_profile(weights={"NodeAffinity": 5})
        await stage.until(lambda: len(recorded(stage)) > 1, "the next is recorded")
        await second.end()
    assert [each.recorded.generation for each in await store.revisions()] == [1, 2]


async def test_a_generation_that_takes_effect_later_is_marked(stage: Stage, store: HistoryStore) -> None:
    stage.profile("younger")
    async with operator(stage):
        await stage.until(lambda: sorted(results(stage)) == ["Active", "SchedulerNameTaken"], "both are recorded")
        stage.delete_profile("default")
        await stage.until(lambda: results(stage) == ["Active", "Active"], "the younger one took effect")
    (younger,) = await store.revisions("younger")
    assert younger.number == 1


async def test_a_profile_created_anew_continues_the_numbers_of_its_predecessor(stage: Stage, store: HistoryStore) -> None:
    async with operator(stage):
        await stage.until(lambda: results(stage) == ["Active"], "the first is recorded")
        stage.delete_profile()
        stage.profile()
        await stage.until(lambda: len(results(stage)) == 2, "the second is recorded")
    one, other = await store.revisions("default")
    assert (one.number, other.number) == (1, 2)
    assert one.recorded.generation == other.recorded.generation == 1
    assert one.recorded.uid != other.recorded.uid


async def test_private_keys_of_extenders_are_not_kept(stage: Stage, store: HistoryStore) -> None:
    tls = {"certData": "YQ==", "keyData": "c2VjcmV0"}
    extender = {"urlPrefix": "https://x.test", "filterVerb": "filter", "enableHTTPS": True, "tlsConfig": tls}
    async with operator(stage):
        stage.write_profile_unchecked(extenders=[extender])
        await stage.until(lambda: any(each["data"]["generation"] == 2 for each in recorded(stage)), "it is recorded")
    (kept,) = (each.recorded.spec["extenders"][0]["tlsConfig"] for each in await store.revisions() if each.recorded.generation == 2)
    assert kept == {"certData": "YQ==", "keyData": "(not kept)"}
    assert "c2VjcmV0" not in str(recorded(stage))


# --- the keeper alone ------------------------------------------------------------------------------------------------------------


class Desk:
    """A keeper on a real API server, whose profiles stand as the test says, and whose clock stands still."""

    def __init__(self, store: HistoryStore) -> None:
        self.time = 0.0
        self.standings: dict[str, ProfileStanding] = {}
        self.active = True
        self.keeper = HistoryKeeper(store, lambda: self.standings, lambda: self.active, lambda: self.time)

    def stand(self, generation: int, reason: Reason, active: int | None = None) -> None:
        self.standings["web"] = ProfileStanding("web", "web", generation, active or generation, reason, "so it is")

    def see(self, generation: int, reason: Reason = Reason.ACTIVE, *, active: int | None = None) -> None:
        self.stand(generation, reason, active)
        self.show(generation)

    def show(self, generation: int) -> None:
        """News of the API server that changes nothing of how the profile stands."""
        metadata = {"name": "web", "uid": "u-1", "generation": generation, "creationTimestamp": "2026-01-01T00:00:00Z"}
        self.keeper.saw({"metadata": metadata, "spec": {"schedulerName": "web", "weights": {"NodeAffinity": generation}}})


async def generations(store: HistoryStore) -> list[int]:
    return [each.recorded.generation for each in await store.revisions()]


async def test_twenty_are_kept_and_the_one_in_effect_besides(stage: Stage, store: HistoryStore) -> None:
    desk = Desk(store)
    desk.see(1)
    for generation in range(2, 31):
        desk.see(generation, Reason.INVALID_PROFILE, active=1)
    await desk.keeper.write()
    assert await generations(store) == [1, *range(11, 31)]
    desk.see(31)
    await desk.keeper.write()
    assert await generations(store) == list(range(12, 32))


async def test_a_replica_that_is_not_active_writes_nothing(stage: Stage, store: HistoryStore) -> None:
    desk = Desk(store)
    desk.active = False
    desk.see(1)
    await desk.keeper.write()
    assert await store.revisions() == []
    desk.active = True
    await desk.keeper.write()
    assert await generations(store) == [1]


async def test_generations_that_come_fast_are_all_recorded(stage: Stage, store: HistoryStore) -> None:
    desk = Desk(store)
    for generation in (1, 2, 3):
        desk.see(generation)
    await desk.keeper.write()
    assert [each.recorded.spec["weights"]["NodeAffinity"] for each in await store.revisions()] == [1, 2, 3]


async def test_late_news_of_an_earlier_generation_changes_nothing(stage: Stage, store: HistoryStore) -> None:
    desk = Desk(store)
    desk.see(3, Reason.SCHEDULER_NAME_TAKEN)
    desk.show(2)
    desk.stand(3, Reason.ACTIVE)
    await desk.keeper.write()
    assert [(each.recorded.generation, each.result) for each in await store.revisions()] == [(3, "Active")]


async def test_two_replicas_do_not_record_one_generation_twice(
    stage: Stage, store: HistoryStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    one, other = Desk(store), Desk(store)
    one.see(1)
    other.see(1)
    await one.keeper.write()

    async def as_it_was_before(_profile: str | None = None) -> list[Revision]:
        return []

    with monkeypatch.context() as patched:
        patched.setattr(store, "revisions", as_it_was_before)
        await other.keeper.write()
    assert await generations(store) == [1]
    assert not caplog.records


async def test_without_a_namespace_it_is_said_once_and_made_good_later(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    async with ApiClient(load_config(str(stage.sandbox.kubeconfig))) as client:
        store = HistoryStore(client, "nowhere")
        desk = Desk(store)
        with caplog.at_level(logging.INFO, logger=profilehistory.__name__):
            for generation in (1, 2, 3):
                desk.see(generation)
                desk.time += 31
                await desk.keeper.write()
        (record,) = caplog.records
        assert record.message.startswith("the history of profiles is not kept in namespace nowhere for now: 404")
        stage.sandbox.writes.create(stage.sandbox.resource("", "v1", "namespaces"), "", {"metadata": {"name": "nowhere"}})
        await desk.keeper.write()
        assert await store.revisions() == [], "too early to try again"
        desk.time += 31
        await desk.keeper.write()
        assert await generations(store) == [1, 2, 3]
