"""Groups of pods on a stage: what the objects that declare them say, and what members are told that nobody can even try."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from handlers.stage import CRDS, WITH_GROUPS, Object, Stage, new_stage, operator
from kubesandbox.definitions.definitions import read_definitions
from kubesandbox.storage.writes import DeleteOptions
from placewright.engine import decidingpart, podgroupstatus
from placewright.engine.discovery import survey


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    """Two nodes of four CPUs, a profile, and a server that knows PodGroups of both groups."""
    async with new_stage(WITH_GROUPS) as made:
        yield made.profile().nodes(2)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits long before he is told."""
    monkeypatch.setattr(decidingpart, "GROUPS_BEAT_SECONDS", 0.05)
    monkeypatch.setattr(podgroupstatus, "PATIENCE_SECONDS", 0.0)


class Groups:
    """Groups and members on a stage."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.writes = stage.sandbox.writes
        self._pods = stage.sandbox.resource("", "v1", "pods")

    def _resource(self, *, native: bool) -> Any:
        group, version = ("scheduling.k8s.io", "v1alpha2") if native else ("scheduling.x-k8s.io", "v1alpha1")
        return self.stage.sandbox.resource(group, version, "podgroups")

    def declare(self, minimum: int, *, native: bool = False, name: str = "train") -> None:
        spec: Object = {"schedulingPolicy": {"gang": {"minCount": minimum}}} if native else {"minMember": minimum}
        self.writes.create(self._resource(native=native), "default", {"metadata": {"name": name}, "spec": spec})

    def members(self, *names: str, cpu: str = "1", native: bool = False, scheduler: str = "placewright") -> None:
        for name in names:
            container = {"name": "main", "image": "example.test/main", "resources": {"requests": {"cpu": cpu}}}
            spec: Object = {"schedulerName": scheduler, "containers": [container]}
            metadata: Object = {"name": name}
            if native:
                spec["schedulingGroup"] = {"podGroupName": "train"}
            else:
                metadata["labels"] = {"scheduling.x-k8s.io/pod-group": "train"}
            self.writes.create(self._pods, "default", {"metadata": metadata, "spec": spec})

    def status(self, *, native: bool = False) -> Object:
        return dict(self.writes.current(self._resource(native=native), "default", "train").object.get("status") or {})

    def condition(self) -> Object:
        return next(iter(self.status(native=True).get("conditions") or ()), {})

    def delete(self) -> None:
        self.writes.delete(self._resource(native=False), "default", "train", DeleteOptions())

    def message(self, pod: str) -> str:
        return str(self.stage.condition(pod).get("message", ""))


@pytest.fixture
def groups(stage: Stage) -> Groups:
    return Groups(stage)


async def test_a_group_that_is_placed_runs_and_says_since_when(stage: Stage, groups: Groups) -> None:
    groups.declare(3)
    groups.members("a", "b", "c")
    async with operator(stage):
        await stage.until(lambda: stage.placed("a", "b", "c"))
        await stage.until(lambda: groups.status().get("phase") == "Running")
        status = groups.status()
        await stage.until(lambda: stage.events("train"))
    assert status["running"] == 3 and status["scheduleStartTime"].endswith("Z")
    assert ("Scheduled", "3 members have a node, 3 are needed") in stage.events("train")


async def test_a_group_that_does_not_fit_says_what_is_missing_on_itself_and_on_its_members(stage: Stage, groups: Groups) -> None:
    groups.declare(3, native=True)
    groups.members("a", "b", "c", cpu="3", native=True)
    async with operator(stage):
        await stage.until(groups.condition)
        assert not any(stage.placed(name) for name in "abc"), "two would fit, and none is placed"
        said = groups.condition()
        assert (said["type"], said["status"], said["reason"]) == ("PodGroupScheduled", "False", "Unschedulable")
        assert said["message"].startswith("needs 1 more member placed: 1 lacks cpu")
        await stage.until(lambda: groups.message("a"))
        assert "needs 1 more member placed: 1 lacks cpu" in groups.message("a")
        await stage.until(lambda: ("FailedScheduling", said["message"]) in stage.events("train"))
        stage.node("more")
        await stage.until(lambda: stage.placed("a", "b", "c"))
        await stage.until(lambda: groups.condition()["status"] == "True")
        assert groups.condition()["reason"] == "Scheduled"


async def test_members_of_a_group_that_nobody_declares_are_told_so_and_placed_once_it_is(stage: Stage, groups: Groups) -> None:
    groups.members("a", "b")
    async with operator(stage):
        await stage.until(lambda: groups.message("a"))
        assert "PodGroup.scheduling.x-k8s.io default/train does not exist" in groups.message("a")
        await stage.until(lambda: "FailedScheduling" in dict(stage.events("b")))
        groups.declare(2)
        await stage.until(lambda: stage.placed("a", "b"))


async def test_a_group_with_too_few_members_says_how_many_there_are_until_the_last_one_comes(stage: Stage, groups: Groups) -> None:
    groups.declare(3)
    groups.members("a")
    async with operator(stage):
        await stage.until(lambda: "there is 1 pod of it" in groups.message("a"))
        groups.members("b")
        await stage.until(lambda: "there are 2 pods of it" in groups.message("a"))
        assert "PodGroup.scheduling.x-k8s.io default/train: spec.minMember is 3" in groups.message("b")
        await stage.until(lambda: groups.status() == {"phase": "Pending"})
        groups.members("c")
        await stage.until(lambda: stage.placed("a", "b", "c"))


async def test_a_group_over_two_profiles_waits_and_names_both_and_others_are_placed(stage: Stage, groups: Groups) -> None:
    stage.profile("second", schedulerName="other")
    groups.declare(2)
    groups.members("a")
    groups.members("b", scheduler="other")
    stage.pod("single")
    async with operator(stage):
        await stage.until(lambda: stage.placed("single"))
        await stage.until(lambda: groups.message("a") and groups.message("b"))
        assert "spec.schedulerName must be the same in all members, found 1 of 'other', 1 of 'placewright'" in groups.message("a")
        assert not stage.placed("a") and not stage.placed("b")


async def test_a_minimum_below_one_is_named_and_mended_by_a_change_of_the_group(stage: Stage, groups: Groups) -> None:
    """The definition's schema would not let it in; another definition may."""
    groups.declare(2)
    resource = groups._resource(native=False)
    groups.writes.modify(resource, "default", "train", lambda group: group["spec"].update(minMember=0))
    groups.members("a", "b")
    async with operator(stage):
        await stage.until(lambda: "spec.minMember is 0, at least 1 is allowed" in groups.message("a"))
        assert not stage.placed("a") and not stage.placed("b")
        groups.writes.modify(resource, "default", "train", lambda group: group["spec"].update(minMember=2))
        await stage.until(lambda: stage.placed("a", "b"))


async def test_a_group_deleted_while_its_members_wait_is_named_as_missing(stage: Stage, groups: Groups) -> None:
    groups.declare(3)
    groups.members("a", "b")
    async with operator(stage):
        await stage.until(lambda: "spec.minMember is 3" in groups.message("a"))
        groups.delete()
        await stage.until(lambda: "default/train does not exist" in groups.message("a"))
        assert not stage.placed("a")


async def test_what_is_told_is_told_once_while_nothing_changes(stage: Stage, groups: Groups) -> None:
    groups.members("a")
    async with operator(stage):
        await stage.until(lambda: groups.message("a") and stage.events("a"))
        version = stage.show("a")["metadata"]["resourceVersion"]
        for name in ("one", "two", "three"):  # other news, with looks in between
            stage.pod(name)
            await stage.until(lambda name=name: stage.placed(name))  # type: ignore[misc]
        assert stage.show("a")["metadata"]["resourceVersion"] == version
        assert len(stage.events("a")) == 1


async def test_groups_of_a_definition_that_is_installed_later_are_found(caplog: pytest.LogCaptureFixture) -> None:
    """Before, one calm line says that there are none of that kind, and members wait."""
    async with new_stage() as stage:
        sandbox = stage.profile().nodes(2).sandbox
        groups = Groups(stage)
        groups.members("a", "b")
        async with operator(stage) as running:
            await stage.until(lambda: "default/train does not exist" in groups.message("a"))
            definitions = sandbox.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
            for definition in read_definitions(CRDS / "groups"):
                sandbox.writes.create(definitions, "", definition)
            groups.declare(2)
            running.engine.reading.discovery.adopt(await survey(running.engine.writing.client))
            await stage.until(lambda: stage.placed("a", "b"))
            await stage.until(lambda: groups.status().get("phase") == "Running")
    assert not [record for record in caplog.records if record.levelname in ("WARNING", "ERROR") and "podgroups" in record.getMessage()]
