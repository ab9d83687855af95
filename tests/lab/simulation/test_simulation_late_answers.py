"""Answers that come after the watch has shown what they answer: nobody waits for news that will not come.

In virtual time. What is written is shown at once and answered seconds later; pods that missed their news would wait five minutes.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from placewright.api.errors import ClaimError, VolumeError
from placewright.plugins.catalog import in_tree
from placewright_lab.simulation.apiserver import InstantVolumeWriter
from placewright_lab.simulation.claimwriter import InstantClaimWriter
from placewright_lab.simulation.scenario import Act, Happening, Scenario
from placewright_lab.simulation.simulation import simulate

from .deviceledger import Ledger
from .test_simulation_devices import PROFILE, Body, a_claim, a_node, a_pod, devices, keep_book, template

LATE = 3.0
GROUP = {"scheduling.x-k8s.io/pod-group": "train"}


def make_answers_late(monkeypatch: pytest.MonkeyPatch, fails: int = 0) -> None:
    """Of the first writes into claims, `fails` are done and answered with an error."""
    failing = [ClaimError("the answer was lost")] * fails
    answer_late(monkeypatch, InstantClaimWriter, "reserve", failing)
    answer_late(monkeypatch, InstantClaimWriter, "release", [])
    answer_late(monkeypatch, InstantVolumeWriter, "bind", [])
    answer_late(monkeypatch, InstantVolumeWriter, "select_node", [])


def answer_late(monkeypatch: pytest.MonkeyPatch, writer: type[Any], name: str, failing: list[ClaimError]) -> None:
    write = getattr(writer, name)

    async def late(self: Any, *args: Any, **rest: Any) -> Any:
        written = await write(self, *args, **rest)
        await asyncio.sleep(LATE)
        if failing:
            raise failing.pop()
        return written

    monkeypatch.setattr(writer, name, late)


def one_node(*more: Body, count: int = 1) -> list[Body]:
    return [{"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}, template("one", 1), a_node("n"), devices("n", count), *more]


def bound_at(outcome: Any) -> dict[str, float | None]:
    return {fate.pod.name: fate.bound for fate in outcome.fates.values()}


@pytest.mark.parametrize("pods", [2, 4])
def test_pods_that_share_a_claim_go_on_when_the_watch_shows_it_written_not_when_the_answer_comes(
    monkeypatch: pytest.MonkeyPatch, pods: int
) -> None:
    make_answers_late(monkeypatch)
    sharing = [a_pod(f"p{number}", {"resourceClaimName": "shared"}) for number in range(pods)]
    outcome = simulate(Scenario("test", one_node(a_claim("shared", 1), *sharing)), PROFILE, in_tree())
    bound = bound_at(outcome)
    assert bound["p0"] == pytest.approx(LATE)
    assert all(at is not None and at < 2 * LATE + 2 for at in bound.values()), "a pod waits for its turn and nothing else"


def test_pods_that_share_a_claim_go_on_after_a_write_that_was_done_and_answered_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger()
    keep_book(monkeypatch, ledger)
    make_answers_late(monkeypatch, fails=1)
    sharing = [a_pod(f"p{number}", {"resourceClaimName": "shared"}) for number in range(2)]
    outcome = simulate(Scenario("test", one_node(a_claim("shared", 1), *sharing)), PROFILE, in_tree())
    assert ledger.wrong == []
    assert all(at is not None and at < 6 * LATE for at in bound_at(outcome).values())


def test_pods_that_want_the_devices_of_a_failed_write_get_them_when_they_are_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The watch shows the claim without devices before the release is answered, and nothing after that."""
    ledger = Ledger()
    keep_book(monkeypatch, ledger)
    make_answers_late(monkeypatch, fails=1)
    first, other = a_pod("first", {"resourceClaimTemplateName": "one"}), a_pod("other", {"resourceClaimTemplateName": "one"})
    happenings = [Happening(1.0, Act.ADDED, other), Happening(LATE + 0.5, Act.DELETED, first)]
    outcome = simulate(Scenario("test", one_node(first), happenings), PROFILE, in_tree())
    assert ledger.wrong == []
    other_bound = bound_at(outcome)["other"]
    assert other_bound is not None
    assert other_bound < 6 * LATE


@pytest.mark.parametrize("count", [1, 2])
def test_devices_that_were_taken_and_never_written_are_for_those_who_waited(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Nothing is ever shown of them: no watch wakes anybody."""

    async def refused(_self: InstantClaimWriter, _claim: Any, _allocation: Any, who: Any, group: Any) -> Any:
        await asyncio.sleep(LATE)
        if who.name == "first":
            raise ClaimError("forbidden")
        return await reserve(_self, _claim, _allocation, who, group)

    reserve = InstantClaimWriter.reserve
    monkeypatch.setattr(InstantClaimWriter, "reserve", refused)
    wants = {"resourceClaimName": "shared"} if count == 1 else {"resourceClaimTemplateName": "one"}
    first, others = a_pod("first", wants), [a_pod(f"other-{number}", wants) for number in range(count)]
    happenings = [*(Happening(1.0, Act.ADDED, each) for each in others), Happening(LATE + 0.1, Act.DELETED, first)]
    outcome = simulate(Scenario("test", one_node(a_claim("shared", 1), first, count=1), happenings), PROFILE, in_tree())
    bound = bound_at(outcome)
    assert sum(at is not None and at < 5 * LATE for name, at in bound.items() if name != "first") == 1


# --- groups, shares of one device, volumes -------------------------------------------------------------------------------------


def test_members_of_two_groups_that_share_a_claim_are_placed_one_group_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    make_answers_late(monkeypatch)
    group = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "train", "namespace": "default"}}
    members = [a_pod(f"m{number}", {"resourceClaimName": "shared"}) for number in range(3)]
    for each in members:
        each["metadata"]["labels"] = GROUP
    alone = a_pod("alone", {"resourceClaimName": "shared"})
    objects = one_node(a_claim("shared", 1), group | {"spec": {"minMember": 3}}, *members, alone)
    bound = bound_at(simulate(Scenario("test", objects), PROFILE, in_tree()))
    assert len(bound) == 4
    assert all(at is not None and at < 4 * LATE for at in bound.values())


def test_pods_get_their_shares_of_one_device(monkeypatch: pytest.MonkeyPatch) -> None:
    make_answers_late(monkeypatch)
    shared = {"name": "gpu-0", "allowMultipleAllocations": True, "capacity": {"memory": {"value": "4Gi"}}}
    published = devices("n", 1)
    published["spec"]["devices"] = [shared]
    quarter = a_claim("quarter", 1)["spec"]
    quarter["devices"]["requests"][0]["exactly"]["capacity"] = {"requests": {"memory": "1Gi"}}
    made = {"kind": "ResourceClaimTemplate", "metadata": {"name": "quarter", "namespace": "default"}, "spec": {"spec": quarter}}
    pods = [a_pod(f"p{number}", {"resourceClaimTemplateName": "quarter"}) for number in range(6)]
    objects = [{"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}, a_node("n"), published, made, *pods]
    durations = {each["metadata"]["uid"]: 10.0 for each in pods}
    bound = sorted(at for at in bound_at(simulate(Scenario("test", objects, (), durations), PROFILE, in_tree())).values() if at is not None)
    assert bound[:4] == [pytest.approx(LATE)] * 4
    assert len(bound) == 6
    assert bound[-1] < 10.0 + 4 * LATE


def volumes(mode: str = "WaitForFirstConsumer", *disks: str) -> list[Body]:
    provisioner = "kubernetes.io/no-provisioner" if disks else "made.example.com"
    late = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "late"}, "provisioner": provisioner}
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "late"}
    made = [{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name, "uid": name}, "spec": spec} for name in disks]
    return [late | {"volumeBindingMode": mode}, *made, a_node("n")]


def volume_claim(name: str) -> Body:
    meta = {"name": name, "namespace": "default", "uid": name}
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "late", "resources": {"requests": {"storage": "1Gi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}


def pod_on(name: str, used: str) -> Body:
    body = a_pod(name)
    body["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": used}}]
    return body


@pytest.mark.parametrize("disks", [(), ("disk",)])
def test_pods_that_share_a_claim_to_a_volume_are_both_placed(monkeypatch: pytest.MonkeyPatch, disks: tuple[str, ...]) -> None:
    make_answers_late(monkeypatch)
    pods = [pod_on(f"p{number}", "data") for number in range(2)]
    objects = [*volumes("WaitForFirstConsumer", *disks), volume_claim("data"), *pods]
    bound = bound_at(simulate(Scenario("test", objects), PROFILE, in_tree()))
    assert len(bound) == 2
    assert all(at is not None and at < 6 * LATE for at in bound.values())


def test_a_volume_that_was_taken_and_never_written_is_for_those_who_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    bind = InstantVolumeWriter.bind

    async def refused(self: InstantVolumeWriter, volume: Any) -> Any:
        await asyncio.sleep(LATE)
        if volume.spec.claim_ref.name == "first":
            raise VolumeError("forbidden")
        return await bind(self, volume)

    monkeypatch.setattr(InstantVolumeWriter, "bind", refused)
    first, other = pod_on("first", "first"), pod_on("other", "other")
    objects = [*volumes("WaitForFirstConsumer", "disk"), volume_claim("first"), volume_claim("other"), first]
    happenings = [Happening(1.0, Act.ADDED, other), Happening(LATE + 0.1, Act.DELETED, first)]
    at = bound_at(simulate(Scenario("test", objects, happenings), PROFILE, in_tree()))["other"]
    assert at is not None
    assert at < 5 * LATE
