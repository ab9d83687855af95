"""Whatever stands in an object of the resource.k8s.io group: it is taken, or refused with a reason, and never brings the server down."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

import pytest

from kubesandbox.devices.layouts import DeviceKind, DeviceLayout, counters_of, devices_of
from kubesandbox.edits.patches import PatchRequest
from kubesandbox.status import ApiError
from kubesandbox.storage.writes import WriteOptions
from lab.sandbox.claims import pod_with
from lab.sandbox.makers import Core, Object

HOSTILE: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, 2**70, float(10**300), "", "a", "Ä/\u0000/b", "1e999999999", "-1Gi", "x" * 70_000),
    *([], [None], [[]], {}, {"": None}, {"a": {"b": []}}, {"name": 7}, [{"name": "a"}] * 300),
)
LAYOUTS = [DeviceLayout(count=3, kind=kind) for kind in DeviceKind]


def claim_body() -> Object:
    exact = {
        "deviceClassName": "gpus",
        "selectors": [{"cel": {"expression": "device.driver == 'a'"}}],
        "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}],
        "capacity": {"requests": {"memory": "1Gi"}},
        "count": 2,
    }
    requests = [{"name": "a", "exactly": exact}, {"name": "b", "firstAvailable": [{"name": "c", "deviceClassName": "gpus"}]}]
    config = [{"requests": ["b/c"], "opaque": {"driver": "gpu.example.com", "parameters": {"a": 1}}}]
    constraints = [{"requests": ["a", "b/c"], "matchAttribute": "example.com/numa"}]
    return {"metadata": {"name": "it"}, "spec": {"devices": {"requests": requests, "constraints": constraints, "config": config}}}


def status_body() -> Object:
    term = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}], "matchFields": []}
    result = {"request": "a", "driver": "gpu.example.com", "pool": "p/q", "device": "d", "consumedCapacity": {"memory": "1Gi"}}
    conditions = [{"type": "Ready", "status": "True", "reason": "A", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    return {
        "allocation": {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [term]}},
        "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
        "devices": [{"driver": "gpu.example.com", "pool": "p/q", "device": "d", "conditions": conditions, "data": {"a": 1}}],
    }


def slice_body(layout: DeviceLayout, *, counters: bool = False) -> Object:
    content = {"sharedCounters": counters_of(layout)} if counters else {"devices": devices_of(layout, "node-a")}
    pool = {"name": "node-a", "generation": 1, "resourceSliceCount": 1}
    return {"metadata": {"name": "it"}, "spec": {"driver": layout.driver, "nodeName": "node-a", "pool": pool, **content}}


BODIES: list[tuple[str, Object]] = [
    ("resourceclaims", claim_body()),
    ("resourceclaimtemplates", {"metadata": {"name": "it"}, "spec": {"metadata": {}, "spec": claim_body()["spec"]}}),
    *(("resourceslices", slice_body(layout)) for layout in LAYOUTS),
    ("resourceslices", slice_body(LAYOUTS[1], counters=True)),
    ("deviceclasses", {"metadata": {"name": "it"}, "spec": {"selectors": [{"cel": {"expression": "true"}}], "config": []}}),
    ("devicetaintrules", {"metadata": {"name": "it"}, "spec": {"deviceSelector": {"pool": "p"}, "taint": {"key": "a", "effect": "None"}}}),
    ("podgroups", {"metadata": {"name": "it"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}),
    ("pods", pod_with("it", claim="a")),
]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    for key, below in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*path, key)
        yield from places(below, (*path, key))


def with_hostility(body: Object, chance: random.Random) -> Object:
    """Return the body with one or two unexpected values."""
    changed = copy.deepcopy(body)
    for _ in range(chance.choice((1, 1, 2))):
        path = chance.choice(list(places(changed)))
        holder = changed
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = copy.deepcopy(chance.choice(HOSTILE))
    return changed


def answer_to(core: Core, plural: str, body: Object) -> int:
    """Return the code of the answer to a creation."""
    try:
        core.create(plural, body)
    except ApiError as refused:
        return refused.code
    return 201


@pytest.mark.parametrize(("plural", "body"), BODIES)
def test_the_object_that_everything_is_made_of_is_taken(plural: str, body: Object) -> None:
    assert answer_to(Core(), plural, copy.deepcopy(body)) == 201


@pytest.mark.parametrize(("plural", "body"), BODIES)
def test_a_new_object_is_taken_or_refused(plural: str, body: Object) -> None:
    core, chance, seen = Core(), random.Random(plural), set[int]()
    for number in range(300):
        seen.add(answer_to(core, plural, with_hostility({"spec": body["spec"]}, chance) | {"metadata": {"name": f"it-{number}"}}))
    assert seen <= {201, 400, 422}
    assert len(seen) > 1, "some are refused, and not everything is"


def test_a_status_is_taken_or_refused_and_what_is_refused_changes_nothing() -> None:
    core, chance, seen = Core(), random.Random(1), set[int]()
    for number in range(600):
        name = f"it-{number}"
        core.create("resourceclaims", claim_body() | {"metadata": {"name": name}})
        patch = PatchRequest(with_hostility({"status": status_body()}, chance), "application/merge-patch+json")
        try:
            core.writes.patch(core.type("resourceclaims"), "default", name, patch, WriteOptions(subresource="status"))
            seen.add(200)
        except ApiError as refused:
            seen.add(refused.code)
            found = core.get("resourceclaims", name)
            assert found is not None
            assert "status" not in found
    assert seen == {200, 422}
