"""A snapshot carries devices and claims to them: nothing that only drivers read, and under made-up names the same claims have the same."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.snapshots.anyworld import SECRET, verdicts
from lab.snapshots.deviceworld import CLASS, DRIVER, DeviceWorld
from lab.snapshots.masking import Body, RememberingMask, as_saved, in_no_order
from placewright.api.bad_input import InputError
from placewright.api.decode import decode
from placewright.offline.world import struct_of
from placewright.plugins.catalog import in_tree
from placewright_console.local.prunedobjects import manifest_line, pruned
from placewright_lab.snapshots.anonymiser import anonymised
from placewright_lab.snapshots.snapshot import FORMAT_VERSION, Header, open_snapshot, write_snapshot

REGISTRY = in_tree()
SEEDS = st.integers(0, 2**32)


def saved(objects: list[Body]) -> list[Body]:
    return [msgspec.json.decode(line) for line in as_saved(objects)]


def of(objects: list[Body], kind: str) -> list[Body]:
    return [each for each in objects if each["kind"] == kind]


def devices_in(objects: list[Body]) -> set[tuple[str, str, str]]:
    slices = [each["spec"] for each in of(objects, "ResourceSlice")]
    return {(each["driver"], each["pool"]["name"], device["name"]) for each in slices for device in each.get("devices", ())}


@settings(max_examples=40)
@given(seed=SEEDS)
def test_every_object_about_devices_is_saved_without_what_drivers_are_told(seed: int) -> None:
    objects = DeviceWorld(seed).objects()
    kept = saved(objects)
    assert Counter(each["kind"] for each in kept) == Counter(each["kind"] for each in objects)
    assert SECRET in str(objects)
    assert SECRET not in str(kept)
    assert "opaque" not in str(kept)


@settings(max_examples=40)
@given(seed=SEEDS)
def test_pruning_twice_is_pruning_once_and_a_line_holds_all_of_it(seed: int) -> None:
    for body in DeviceWorld(seed).objects():
        kind: Any = struct_of(body["apiVersion"], body["kind"])
        once = pruned(decode(msgspec.json.encode(body), kind))
        assert pruned(once) == once
        assert msgspec.json.decode(manifest_line(once), type=kind) == once


@settings(max_examples=40)
@given(seed=SEEDS)
def test_verdicts_are_the_same_on_a_snapshot_and_under_made_up_names(seed: int) -> None:
    objects = DeviceWorld(seed).objects()
    kept = saved(objects)
    real = verdicts(objects, REGISTRY)
    assert verdicts(kept, REGISTRY) == real
    mask = RememberingMask(kept)
    assert mask.put_back(verdicts([mask.manifest(each) for each in kept], REGISTRY)) == in_no_order(real)


@settings(max_examples=40)
@given(seed=SEEDS)
def test_under_made_up_names_everything_is_still_found(seed: int) -> None:
    real = saved(DeviceWorld(seed).objects())
    made: list[Body] = [json.loads(line) for line in anonymised(as_saved(real))]
    claims = {each["metadata"]["name"]: each for each in of(made, "ResourceClaim")}
    for claim, before in zip(of(made, "ResourceClaim"), of(real, "ResourceClaim"), strict=True):
        devices = claim["spec"]["devices"]
        named = {request["name"] for request in devices["requests"]}
        named |= {f"{each['name']}/{sub['name']}" for each in devices["requests"] for sub in each.get("firstAvailable", ())}
        allocation = claim.get("status", {}).get("allocation")
        results = allocation["devices"]["results"] if allocation else []
        assert {name for each in devices.get("constraints", ()) for name in each["requests"]} <= named
        assert {each["request"] for each in results} <= named
        assert {(each["driver"], each["pool"], each["device"]) for each in results} <= devices_in(made)
        assert bool(results) == bool(before.get("status", {}).get("allocation"))
    for pod in of(made, "Pod"):
        entry, status = pod["spec"]["resourceClaims"][0], pod.get("status", {}).get("resourceClaimStatuses", ({},))[0]
        claim = claims[entry.get("resourceClaimName") or status["resourceClaimName"]]
        users = [each["uid"] for each in claim.get("status", {}).get("reservedFor", ())]
        assert (pod["metadata"]["uid"] in users) == bool(pod["spec"].get("nodeName"))
    (rule,) = of(made, "DeviceTaintRule")
    selector = rule["spec"]["deviceSelector"]
    assert (selector["driver"], selector["pool"], selector["device"]) in devices_in(made)


@settings(max_examples=40)
@given(seed=SEEDS)
def test_no_name_is_in_an_anonymised_snapshot_but_those_of_products(seed: int) -> None:
    objects = DeviceWorld(seed).objects()
    text = b"\n".join(anonymised(as_saved(objects))).decode()
    names = {each["metadata"]["name"] for each in objects if each["kind"] != "DeviceClass"} | {name for _, _, name in devices_in(objects)}
    assert [name for name in sorted(names | {"board-", "acme.com", "template", "uid-", '"main', '"gpu"'}) if name in text] == []
    assert CLASS in text
    assert DRIVER in text


def test_values_stay_of_attributes_that_an_expression_names_and_of_no_others() -> None:
    lines = as_saved(DeviceWorld(1).objects())
    made = [json.loads(line) for line in anonymised(lines)]
    attributes = [device["attributes"] for each in of(made, "ResourceSlice") for device in each["spec"].get("devices", ())]
    assert "startsWith" in str(of(made, "ResourceClaim"))
    assert {each["model"]["string"] for each in attributes} <= {"A100", "H100"}
    assert not any(each["board"]["string"].startswith("board") for each in attributes)
    assert {each["firmware"]["version"] for each in attributes} == {"1.2.3"}


def test_the_random_clusters_are_worth_comparing() -> None:
    worlds = [DeviceWorld(seed).objects() for seed in range(40)]
    claims = [each for objects in worlds for each in of(objects, "ResourceClaim")]
    said = [one for objects in worlds for one in verdicts(objects, REGISTRY).values()]
    blamed = Counter(node.get("plugin", "") for one in said for node in one["nodes"].values())
    assert blamed["DynamicResources"] > 40
    assert sum("best" in one for one in said) > 20
    assert 10 < sum(bool(each["status"]) for each in claims) < len(claims) - 10
    assert 10 < sum("firstAvailable" in each["spec"]["devices"]["requests"][0] for each in claims) < len(claims) - 10


def test_a_snapshot_from_before_there_were_devices_still_loads(tmp_path: Any) -> None:
    path = tmp_path / "old.snapshot.gz"
    older = [line for line in as_saved(DeviceWorld(3).objects()) if b"resource.k8s.io/v1" not in line]
    header = Header(placewright="snapshot", version=FORMAT_VERSION, taken="2026-01-01T00:00:00Z")
    write_snapshot(path, header, older)
    assert len(open_snapshot(path).objects) == len(older) > 0


@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceSlice", "DeviceClass", "DeviceTaintRule"])
def test_a_line_about_devices_that_is_no_such_object_is_refused_with_its_number(kind: str, tmp_path: Any) -> None:
    path = tmp_path / "bad.snapshot.gz"
    bad = json.dumps({"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": "x"}, "spec": 7}).encode()
    write_snapshot(path, Header(placewright="snapshot", version=FORMAT_VERSION, taken="2026-01-01T00:00:00Z"), [bad])
    with pytest.raises(InputError, match="line 2"):
        open_snapshot(path)
