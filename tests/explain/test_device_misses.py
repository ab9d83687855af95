"""What is told of devices that a pod would need is true: with the devices added to the objects, the pod fits where it was said to."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from explain.test_nearest_miss import Object, a_node, a_pod, apply, fitting, now
from placewright.api.objects import NodeName
from placewright.api.podgroups import GROUP_LABEL, Form, GroupRef
from placewright.explain.explanation import CurrentVerdict, claim_facts
from placewright.explain.groupfacts import group_facts
from placewright.explain.nearestmiss import Miss
from placewright.framework.remedies import RemedyKind
from placewright.offline.world import world_from
from randomcases import cases
from scheduler.podgroups.makers import group

API = {"apiVersion": "resource.k8s.io/v1"}
GPU = "gpu.example.com"


def device_class(name: str = GPU, driver: str = "gpu") -> Object:
    selector = {"cel": {"expression": f"device.driver == '{driver}'"}}
    return {**API, "kind": "DeviceClass", "metadata": {"name": name}, "spec": {"selectors": [selector]}}


def devices(on: str, *kinds: str, driver: str = "gpu", taint: str = "") -> Object:
    """A device for each kind."""
    taints = [{"key": taint, "effect": "NoSchedule"}] if taint else []
    made = [{"name": f"d{i}", "attributes": {"kind": {"string": kind}}, "taints": taints} for i, kind in enumerate(kinds)]
    spec = {"driver": driver, "nodeName": on, "pool": {"name": on, "generation": 1, "resourceSliceCount": 1}, "devices": made}
    return {**API, "kind": "ResourceSlice", "metadata": {"name": f"{driver}-{on}"}, "spec": spec}


def request(count: int = 1, kind: str = "", name: str = "r", of: str = GPU, **more: Any) -> Object:
    selectors = [{"cel": {"expression": f"device.attributes['gpu'].kind == '{kind}'"}}] if kind else []
    return {"name": name, "exactly": {"deviceClassName": of, "count": count, "selectors": selectors, **more}}


def a_claim(name: str, *requests: Object, has: tuple[str, ...] = (), on: str = "", alike: bool = False) -> Object:
    """`has`: names of devices of that node."""
    constraints = [{"matchAttribute": "gpu/kind"}] if alike else []
    results = [{"request": "r", "driver": "gpu", "pool": on, "device": device} for device in has]
    users = [{"resource": "pods", "name": "o", "uid": "o"}]
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": users} if has else {}
    spec = {"devices": {"requests": list(requests), "constraints": constraints}}
    return {**API, "kind": "ResourceClaim", "metadata": {"name": name, "namespace": "default", "uid": name}, "spec": spec, "status": status}


def wanting(*claims: str, cpu: int = 100) -> Object:
    return a_pod("p", cpu=cpu, resourceClaims=[{"name": f"c{i}", "resourceClaimName": each} for i, each in enumerate(claims)])


def with_devices(objects: list[Object], miss: Miss, *, less: int = 0) -> list[Object]:
    """The objects as the miss wants them: of every kind of device that there is without a taint, as many more as it says."""
    after = copy.deepcopy(objects)
    kinds = {str(each["attributes"]): each for one in objects for each in one["spec"].get("devices", ()) if _is_untainted(one, each)}
    for change in miss.changes:
        if change.kind is not RemedyKind.MORE_DEVICES:
            after = apply(after, miss.node, change)
            continue
        assert list(change.devices) == [GPU]
        for number, model in enumerate(list(kinds.values()) * (change.devices[GPU] - less)):
            pool = {"name": f"new-{number}", "generation": 1, "resourceSliceCount": 1}
            spec = {"driver": "gpu", "nodeName": miss.node, "pool": pool, "devices": [{**model, "name": "new"}]}
            after.append({**API, "kind": "ResourceSlice", "metadata": {"name": f"new-{number}"}, "spec": spec})
    return after


def _is_untainted(one: Object, device: Object) -> bool:
    return one["kind"] == "ResourceSlice" and not device["taints"]


def of_devices(found: CurrentVerdict) -> list[tuple[str, dict[str, int]]]:
    return [(miss.node, change.devices) for miss in found.misses for change in miss.changes if change.kind is RemedyKind.MORE_DEVICES]


# --- what is told ----------------------------------------------------------------------------------------------------------------


def test_the_node_that_lacks_the_fewest_devices_comes_first_with_how_many() -> None:
    objects = [
        device_class(), a_node("n-16"), a_node("n-17"), devices("n-16", "a"), devices("n-17", "a", "a"),
        a_claim("taken", request(), has=("d0",), on="n-16"), a_claim("c", request(3)), wanting("c"),
    ]  # fmt: skip
    found = now(objects)
    assert of_devices(found) == [("n-17", {GPU: 1}), ("n-16", {GPU: 3})]
    assert found.misses[0].changes[0].text == f"1 more device of class {GPU}"
    assert "n-17" in fitting(with_devices(objects, found.misses[0]))
    assert fitting(with_devices(objects, found.misses[0], less=1)) == set()
    assert "n-16" in fitting(with_devices(objects, found.misses[1]))
    assert fitting(with_devices(objects, found.misses[1], less=1)) == set()


def test_nodes_with_free_devices_that_lack_something_else_are_told_apart_from_those_without() -> None:
    objects = [device_class(), *(a_node(f"n-{i}", cpu=1000) for i in range(2)), *(a_node(f"e-{i}") for i in range(3))]
    objects += [devices("n-0", "a"), devices("n-1", "a"), a_claim("c", request()), wanting("c", cpu=1500)]
    found = now(objects)
    assert found.devices is not None
    assert (found.devices.device_class, found.devices.wanted) == (GPU, 1)
    told = [(group.nodes, group.free, group.enough, group.reason) for group in found.devices.groups]
    assert told == [(2, 1, True, "Insufficient cpu"), (3, 0, False, "")]
    assert sum(group.nodes for group in found.devices.groups) == found.nodes
    assert any(miss.changes[0].resources == {"cpu": 500} and miss.node in ("n-0", "n-1") for miss in found.misses)
    assert {name for name, _ in of_devices(found)} & {"e-0", "e-1", "e-2"}


def test_both_devices_and_cpu_are_told_of_a_node_that_lacks_both() -> None:
    objects = [device_class(), a_node("n-0", cpu=1000), devices("n-0", "a"), a_claim("c", request(2)), wanting("c", cpu=1200)]
    (miss,) = now(objects).misses
    assert [change.text for change in miss.changes] == ["200m more cpu", f"1 more device of class {GPU}"]
    assert [change.beyond for change in miss.changes] == ["more cpu than any node has (the largest has 1000m)", ""]
    assert fitting(with_devices(objects, miss)) == {"n-0"}


def test_where_more_devices_would_not_help_none_are_told() -> None:
    for wish in (request(allocationMode="All", count=0), request(kind="unheard-of")):
        objects = [device_class(), a_node("n-0"), devices("n-0", "a"), a_claim("t", request(), has=("d0",), on="n-0"), a_claim("c", wish)]
        found = now([*objects, wanting("c")])
        assert of_devices(found) == []
        assert [miss.changes[0].kind for miss in found.misses] == [RemedyKind.TOLD]


def test_a_device_that_nobody_may_have_is_no_example_of_what_is_lacking() -> None:
    objects = [device_class(), a_node("n-0"), a_node("n-1"), devices("n-0", "a", taint="broken"), devices("n-1", "a")]
    objects += [a_claim("t", request(), has=("d0",), on="n-1"), a_claim("c", request()), wanting("c")]
    found = now(objects)
    assert sorted(of_devices(found)) == [("n-0", {GPU: 1})]
    assert found.misses[0].nodes == 2
    assert "n-0" in fitting(with_devices(objects, found.misses[0]))


def test_a_pod_without_claims_is_told_nothing_of_devices() -> None:
    found = now([device_class(), a_node("n-0", cpu=50), devices("n-0", "a"), a_pod("p")])
    assert found.devices is None
    assert of_devices(found) == []


@settings(max_examples=cases(150))
@given(st.data())
def test_with_the_devices_that_are_told_the_pod_fits_and_with_one_less_it_does_not(data: st.DataObject) -> None:
    kinds, taints = st.lists(st.sampled_from("ab"), max_size=4), st.sampled_from(["", "", "x"])
    objects = [device_class()]
    for i in range(data.draw(st.integers(1, 4))):
        made = data.draw(kinds)
        objects += [a_node(f"n-{i}", cpu=data.draw(st.sampled_from([50, 4000]))), devices(f"n-{i}", *made, taint=data.draw(taints))]
        used = tuple(f"d{j}" for j in range(len(made)) if data.draw(st.booleans()))
        objects += [a_claim(f"t-{i}", request(), has=used, on=f"n-{i}")] if used else []
    wishes = st.builds(request, st.integers(1, 3), st.sampled_from(["", "a", "b"]))
    asked = data.draw(st.lists(wishes, min_size=1, max_size=2))
    for number, each in enumerate(asked):
        each["name"] = f"r{number}"
    alike = data.draw(st.booleans())
    objects += [a_claim("c", *asked, alike=alike), wanting("c")]
    found = now(objects)
    for miss in found.misses:
        if miss.told_only or not any(change.kind is RemedyKind.MORE_DEVICES for change in miss.changes):
            continue
        assert miss.node in fitting(with_devices(objects, miss)), miss
        if len(asked) == 1 and asked[0]["exactly"]["selectors"] and not alike:
            assert miss.node not in fitting(with_devices(objects, miss, less=1)), miss


# --- groups ----------------------------------------------------------------------------------------------------------------------


def test_a_member_on_its_way_to_a_node_is_placed_and_does_not_wait() -> None:
    world = world_from([a_node("n-0"), *(a_pod(f"m-{i}", labels={GROUP_LABEL: "g"}) for i in range(3))], "test")
    world.cluster.objects.put(group("g", 4))
    members = list(world.pending.values())
    world.cluster.assume(members[0], NodeName("n-0"))
    found = group_facts(world.cluster.pod_groups, GroupRef(Form.COSCHEDULING, "default", "g"), members)
    assert (found.needed, found.placed, found.waiting, found.missing) == (4, 1, 2, 1)


# --- claims ----------------------------------------------------------------------------------------------------------------------


def test_claims_tell_what_they_ask_for_what_they_have_and_what_is_wrong() -> None:
    half = {"name": "h", "firstAvailable": [{"name": "big", "deviceClassName": GPU, "count": 2}, {"name": "s", "deviceClassName": "nic"}]}
    objects = [a_claim("has", request(), has=("d0",), on="n-0"), a_claim("wants", request(2), half), wanting("has", "gone", "wants")]
    world = world_from(objects, "test")
    has, gone, wants = claim_facts(world.pending["default/p"], world.cluster.objects.devices.claims)
    assert (has.claim, has.entry, has.users, has.problem) == ("default/has", "c0", 1, "")
    assert [(each.request, each.driver, each.pool, each.device) for each in has.devices] == [("r", "gpu", "n-0", "d0")]
    assert (gone.claim, gone.problem) == ("", 'could not find ResourceClaim "default/gone"')
    assert (wants.asks, wants.devices) == ((f"r: 2 of class {GPU}", f"h: 2 of class {GPU} or 1 of class nic"), ())
