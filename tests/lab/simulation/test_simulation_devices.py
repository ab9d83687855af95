"""Claims to devices in virtual time: random worlds with failures in between, judged by a ledger that shares no code with the plugin."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from placewright import testing as kit
from placewright.api.errors import BindError, ClaimError
from placewright.plugins.catalog import in_tree
from placewright_lab.simulation.apiserver import ApiServer
from placewright_lab.simulation.claimwriter import InstantClaimWriter
from placewright_lab.simulation.scenario import Act, Happening, Scenario
from placewright_lab.simulation.simulation import simulate
from randomcases import cases

from .deviceledger import Ledger
from .scenarios import a_profile

Body = dict[str, Any]
DRIVER = "gpu.example.com"
PROFILE = a_profile()


def a_node(name: str) -> Body:
    return kit.node(name, cpu="8").manifest


def devices(name: str, count: int, generation: int = 1) -> Body:
    made = kit.resource_slice(f"{name}-slice", driver=DRIVER).on(name).pool(name, generation=generation)
    return made.devices(*(f"gpu-{number}" for number in range(count))).version(str(generation)).manifest


def request(count: int) -> Body:
    return {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": count}}]}}


def template(name: str, count: int) -> Body:
    """With words for the driver, as templates mostly have."""
    devices = request(count)["devices"] | {"config": [{"opaque": {"driver": DRIVER, "parameters": {"sharing": "none"}}}]}
    return {"kind": "ResourceClaimTemplate", "metadata": {"name": name, "namespace": "default"}, "spec": {"spec": {"devices": devices}}}


def a_claim(name: str, count: int) -> Body:
    return {"kind": "ResourceClaim", "metadata": {"name": name, "namespace": "default"}, "spec": request(count)}


def a_pod(name: str, *claims: Body) -> Body:
    named = [{"name": f"c{number}", **each} for number, each in enumerate(claims)]
    return kit.pod(name, cpu="100m", resourceClaims=named).manifest


def world(seed: int) -> Scenario:
    """Few devices, many pods: each alone, sharing a claim, or with two claims. They come and go; so do devices and shared claims."""
    dice = random.Random(seed)
    nodes = [f"n{number}" for number in range(dice.randint(2, 4))]
    objects: list[Body] = [{"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}, template("one", 1), template("two", 2)]
    objects += [each for name in nodes for each in (a_node(name), devices(name, dice.randint(1, 4)))]
    shared = [f"shared-{number}" for number in range(3)]
    objects += [a_claim(name, dice.randint(1, 2)) for name in shared]
    happenings, durations = [], {}
    for number in range(dice.randint(20, 45)):
        wants = [{"resourceClaimTemplateName": dice.choice(("one", "one", "two"))} for _ in range(dice.choice((1, 1, 1, 2)))]
        if dice.random() < 0.4:
            wants = [{"resourceClaimName": dice.choice(shared)}, *wants[1:]]
        body, at = a_pod(f"p{number}", *wants), dice.uniform(0, 300)
        happenings.append(Happening(at, Act.ADDED, body))
        durations[body["metadata"]["uid"]] = dice.uniform(1, 60)
        if dice.random() < 0.2:
            happenings.append(Happening(at + dice.uniform(0, 30), Act.DELETED, body))
    happenings += [Happening(dice.uniform(0, 300), Act.MODIFIED, devices(dice.choice(nodes), 4, number)) for number in range(2, 6)]
    pods = [each.manifest for each in happenings if each.manifest["kind"] == "Pod"]
    happenings += [Happening(dice.uniform(400, 500), Act.DELETED, body) for body in pods]
    return Scenario("test", objects, sorted(happenings, key=lambda each: each.at), durations)


def kept(monkeypatch: pytest.MonkeyPatch, seed: int) -> Ledger:
    """A ledger of all that is shown; writes and Bindings take their time, fail, or succeed and say that they failed."""
    ledger, dice = Ledger(), random.Random(seed)
    keep_book(monkeypatch, ledger)
    make_bindings_unreliable(monkeypatch, ledger, dice)
    make_writes_unreliable(monkeypatch, dice)
    return ledger


def keep_book(monkeypatch: pytest.MonkeyPatch, ledger: Ledger) -> None:
    show, hide = ApiServer.put, ApiServer.remove

    def shown(self: ApiServer, item: Any) -> None:
        show(self, item)
        if type(item).__name__ == "ResourceClaim":
            ledger.shows(item)

    def hidden(self: ApiServer, item: Any) -> None:
        hide(self, item)
        if type(item).__name__ == "ResourceClaim":
            ledger.hides(item)

    monkeypatch.setattr(ApiServer, "put", shown)
    monkeypatch.setattr(ApiServer, "remove", hidden)


def make_bindings_unreliable(monkeypatch: pytest.MonkeyPatch, ledger: Ledger, dice: random.Random) -> None:
    bind = ApiServer.bind

    async def bound(self: ApiServer, pod: Any, node: Any, annotations: dict[str, str]) -> None:
        await asyncio.sleep(dice.choice((0, 0, 0.5)))
        if dice.random() < 0.15:
            raise BindError("the API server does not like it")
        await bind(self, pod, node, annotations)
        ledger.bound(pod.on(node))

    monkeypatch.setattr(ApiServer, "bind", bound)


def make_writes_unreliable(monkeypatch: pytest.MonkeyPatch, dice: random.Random) -> None:
    reserve, release = InstantClaimWriter.reserve, InstantClaimWriter.release

    async def reserved(self: InstantClaimWriter, *args: Any) -> Any:
        if dice.random() < 0.3:
            self._show(self._next(self._current(args[0])))  # somebody else writes, too
        await asyncio.sleep(dice.choice((0, 0, 0.5, 3)))
        if dice.random() < 0.1:
            raise ClaimError("no answer")
        written = await reserve(self, *args)
        await asyncio.sleep(dice.choice((0, 0.5)))
        if dice.random() < 0.1:
            raise ClaimError("the answer was lost")
        return written

    async def released(self: InstantClaimWriter, *args: Any, **rest: Any) -> None:
        await asyncio.sleep(dice.choice((0, 2)))
        await release(self, *args, **rest)

    monkeypatch.setattr(InstantClaimWriter, "reserve", reserved)
    monkeypatch.setattr(InstantClaimWriter, "release", released)


@pytest.mark.parametrize("seed", range(cases(40)))
def test_no_device_is_given_away_twice_and_nothing_is_left_over(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    ledger = kept(monkeypatch, seed)
    outcome = simulate(world(seed), PROFILE, in_tree(), seed=seed)
    table = outcome.cluster.objects.devices.claims
    assert ledger.wrong == []
    assert ledger.given > 5, "the world asks nothing of anybody"
    assert ledger.taken() == [], "devices are kept although all pods are gone"
    assert sorted(ledger.claims) == ["shared-0", "shared-1", "shared-2"], "claims that were made for pods outlive them"
    kept_back = [each for each in table.values() if each.status.allocation or table.pending(each) or table.releasing(each)]
    assert kept_back == [], "the scheduler keeps to itself what nobody has"


def test_pods_get_devices_as_others_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    objects = [{"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}, template("one", 1), a_node("n"), devices("n", 2)]
    pods = [a_pod(f"p{number}", {"resourceClaimTemplateName": "one"}) for number in range(6)]
    durations = {each["metadata"]["uid"]: 10.0 for each in pods}
    outcome = simulate(Scenario("test", [*objects, *pods], (), durations), PROFILE, in_tree())
    bound = sorted(fate.bound for fate in outcome.fates.values() if fate.bound is not None)
    assert len(bound) == 6
    assert bound[:2] == [0.0, 0.0]
    assert bound[2] >= 10.0 and bound[4] >= 20.0


def test_a_group_that_shares_a_claim_and_has_devices_of_its_own_is_placed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = kept(monkeypatch, 7)
    group = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "train", "namespace": "default"}}
    objects: list[Body] = [{"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}, template("one", 1), a_claim("shared", 1)]
    objects += [group | {"spec": {"minMember": 3}}, *(each for name in ("n0", "n1") for each in (a_node(name), devices(name, 4)))]
    members = [a_pod(f"m{number}", {"resourceClaimName": "shared"}, {"resourceClaimTemplateName": "one"}) for number in range(3)]
    for each in members:
        each["metadata"]["labels"] = {"scheduling.x-k8s.io/pod-group": "train"}
    outcome = simulate(Scenario("test", [*objects, *members]), PROFILE, in_tree())
    assert ledger.wrong == []
    assert len({fate.node for fate in outcome.fates.values()} - {None}) == 1
    assert all(fate.bound is not None for fate in outcome.fates.values())
    assert len(ledger.taken()) == 4
