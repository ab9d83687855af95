"""A simulated driver publishes what nodes have, in pools whose generations and slices always agree in the end."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kubesandbox.controllers.kubelet import simulated_node
from kubesandbox.devices.driver import SimulatedDriver
from kubesandbox.devices.layouts import ATTACH_FAILED, ATTACHED, DRIVER, UNITS, DeviceKind, DeviceLayout, devices_of
from kubesandbox.server import Sandbox, SandboxOptions
from kubesandbox.status import ApiError, Object
from kubesandbox.storage.store import Change
from kubesandbox.storage.writes import DeleteOptions
from lab.sandbox.claims import CLAIMS, Claims, settled

SLICES = ("resource.k8s.io", "resourceslices")
NODE = "node-0000"
Fields = dict[str, Any]


class Published:
    """A cluster with one driver, and the slices that an independent reader sees."""

    def __init__(self, layout: DeviceLayout, nodes: int = 1) -> None:
        self.claims = Claims()
        self.core = self.claims.core
        self.driver = SimulatedDriver(self.core.writes, layout)
        for number in range(nodes):
            self.core.create("nodes", simulated_node(number, "2026-01-01T00:00:00Z"))

    def slices(self, node: str = NODE) -> list[Object]:
        found = [each.object for each in self.core.store.listed(SLICES)]
        return [each for each in found if each["spec"]["pool"]["name"] == node]

    def devices(self, node: str = NODE) -> list[Object]:
        """Return the devices of a complete pool, or none of an incomplete one."""
        specs = [each["spec"] for each in self.slices(node)]
        newest = max((each["pool"]["generation"] for each in specs), default=0)
        current = [each for each in specs if each["pool"]["generation"] == newest]
        if not current or len(current) != current[0]["pool"]["resourceSliceCount"]:
            return []
        return [device for each in current for device in each.get("devices", ())]

    def names(self, node: str = NODE) -> list[str]:
        return [each["name"] for each in self.devices(node)]


@asynccontextmanager
async def published(nodes: int = 1, **layout: Any) -> AsyncIterator[Published]:
    cluster = Published(DeviceLayout(**layout), nodes)
    await settled()
    yield cluster


async def test_each_node_has_a_pool_of_its_devices() -> None:
    async with published(nodes=2, count=3) as cluster:
        assert cluster.names("node-0000") == cluster.names("node-0001") == ["gpu-0", "gpu-1", "gpu-2"]
        spec = cluster.slices()[0]["spec"]
    assert (spec["driver"], spec["nodeName"], spec["pool"]["generation"]) == (DRIVER, NODE, 1)


async def test_devices_say_what_they_are() -> None:
    async with published(nodes=2, count=4, numa_nodes=2, memory=40, model="m") as cluster:
        devices = cluster.devices("node-0000") + cluster.devices("node-0001")
    assert len({each["attributes"]["uuid"]["string"] for each in devices}) == 8
    assert Counter(each["attributes"]["numa"]["int"] for each in devices) == {0: 4, 1: 4}
    assert {each["attributes"]["model"]["string"] for each in devices} == {"m"}
    assert {each["capacity"]["memory"]["value"] for each in devices} == {"40Gi"}


async def test_a_class_of_the_drivers_devices_is_there_and_nobody_elses_is_touched() -> None:
    core = Claims().core
    mine = {"metadata": {"name": DRIVER}, "spec": {"selectors": [{"cel": {"expression": "true"}}]}}
    core.create("deviceclasses", mine)
    SimulatedDriver(core.writes, DeviceLayout())
    found = core.get("deviceclasses", DRIVER)
    assert found is not None
    assert found["spec"]["selectors"] == mine["spec"]["selectors"]
    async with published() as cluster:
        made = cluster.core.get("deviceclasses", DRIVER)
    assert made is not None
    assert DRIVER in made["spec"]["selectors"][0]["cel"]["expression"]


async def test_a_node_that_comes_later_gets_devices_and_one_that_goes_takes_them_along() -> None:
    async with published(count=2) as cluster:
        cluster.core.create("nodes", simulated_node(7, "2026-01-01T00:00:00Z"))
        await settled()
        assert cluster.names("node-0007") == ["gpu-0", "gpu-1"]
        cluster.core.writes.delete(cluster.core.type("nodes"), "", "node-0007", DeleteOptions())
        await settled()
        assert cluster.slices("node-0007") == []
        assert cluster.names() == ["gpu-0", "gpu-1"]


async def test_devices_go_and_come_back_in_new_generations() -> None:
    async with published(count=3) as cluster:
        cluster.driver.remove(NODE, "gpu-1")
        assert cluster.names() == ["gpu-0", "gpu-2"]
        cluster.driver.publish(NODE, devices_of(cluster.driver.layout, NODE))
        assert cluster.names() == ["gpu-0", "gpu-1", "gpu-2"]
        assert cluster.driver.generation(NODE) == 3
        assert [each["spec"]["pool"]["generation"] for each in cluster.slices()] == [3]


async def test_a_pool_is_as_many_slices_as_it_takes() -> None:
    async with published(count=10, slice_size=4) as cluster:
        assert sorted(len(each["spec"]["devices"]) for each in cluster.slices()) == [2, 4, 4]
        assert {each["spec"]["pool"]["resourceSliceCount"] for each in cluster.slices()} == {3}
        for number in range(7):
            cluster.driver.remove(NODE, f"gpu-{number}")
        assert [len(each["spec"]["devices"]) for each in cluster.slices()] == [3]
        assert cluster.names() == ["gpu-7", "gpu-8", "gpu-9"]


async def test_between_two_generations_a_pool_is_incomplete_and_never_mixed() -> None:
    async with published(count=8, slice_size=2) as cluster:
        seen: list[set[str]] = []

        def look(_change: Change) -> None:
            seen.append(set(cluster.names()))

        cluster.core.store.collection(SLICES).listeners.append(look)
        cluster.driver.publish(NODE, [{"name": f"new-{number}"} for number in range(12)])
    new = {f"new-{number}" for number in range(12)}
    assert len(seen) == 6
    assert seen[-1] == new
    assert all(not each or each == new for each in seen)


async def test_a_pool_without_devices_is_still_a_pool() -> None:
    async with published(count=1) as cluster:
        cluster.driver.remove(NODE, "gpu-0")
        assert cluster.names() == []
        assert [each["spec"]["pool"]["resourceSliceCount"] for each in cluster.slices()] == [1]
        cluster.driver.withdraw(NODE)
        assert cluster.slices() == []


async def test_a_device_is_tainted_and_changed_by_itself() -> None:
    async with published(count=2) as cluster:
        cluster.driver.taint(NODE, "gpu-1", "example.com/broken", "NoExecute")
        first, second = cluster.devices()
        assert "taints" not in first
        assert [(each["key"], each["effect"]) for each in second["taints"]] == [("example.com/broken", "NoExecute")]
        assert second["taints"][0]["timeAdded"]
        with pytest.raises(KeyError):
            cluster.driver.taint(NODE, "gpu-9", "example.com/broken")
        with pytest.raises(ValueError, match="there is no node elsewhere"):
            cluster.driver.publish("elsewhere", [])


async def test_what_the_server_refuses_changes_nothing() -> None:
    async with published(count=2) as cluster:
        with pytest.raises(ApiError, match="quantities must match"):
            cluster.driver.publish(NODE, [{"name": "gpu-9", "capacity": {"memory": {"value": "lots"}}}])
        assert cluster.names() == ["gpu-0", "gpu-1"]
        assert [each["name"] for each in cluster.driver.devices(NODE)] == ["gpu-0", "gpu-1"]


async def test_a_driver_that_is_started_anew_goes_on_with_what_is_there() -> None:
    async with published(count=3) as cluster:
        cluster.driver.remove(NODE, "gpu-0")
        again = SimulatedDriver(cluster.core.writes, DeviceLayout(count=3))
        await settled()
        assert cluster.names() == ["gpu-1", "gpu-2"]
        again.remove(NODE, "gpu-1")
        assert (cluster.names(), again.generation(NODE)) == (["gpu-2"], 3)


# --- ways of handing out -----------------------------------------------------------------------------------------------------


async def test_partitions_draw_on_counters_that_their_device_has_once() -> None:
    async with published(count=9, kind=DeviceKind.PARTITIONS) as cluster:
        sets = {each["name"]: each["counters"] for part in cluster.slices() for each in part["spec"].get("sharedCounters", ())}
        devices = cluster.devices()
    assert len(sets) == 9, "in two slices, for one may have no more than eight"
    assert Counter(each["attributes"]["profile"]["string"] for each in devices) == {"whole": 9, "half": 18, "quarter": 36}
    for profile in ("whole", "half", "quarter"):
        drawn = Counter[str]()
        for each in devices:
            if each["attributes"]["profile"]["string"] == profile:
                [takes] = each["consumesCounters"]
                drawn[takes["counterSet"]] += int(takes["counters"]["units"]["value"])
        assert drawn == dict.fromkeys(sets, UNITS), "each way to cut a device up uses all of it"


async def test_shared_devices_may_be_asked_for_by_the_gibibyte() -> None:
    async with published(count=2, kind=DeviceKind.SHARES, memory=40) as cluster:
        devices = cluster.devices()
    assert {each["allowMultipleAllocations"] for each in devices} == {True}
    policy = devices[0]["capacity"]["memory"]["requestPolicy"]
    assert policy == {"default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi", "max": "40Gi"}}


async def allocated_to(cluster: Published, device: str) -> None:
    cluster.claims.claim("it")
    result = {"request": "gpu", "driver": DRIVER, "pool": NODE, "device": device, "bindingConditions": [ATTACHED]}
    status = {"allocation": {"devices": {"results": [{**result, "bindingFailureConditions": [ATTACH_FAILED]}]}}}
    cluster.claims.edit(CLAIMS, "it", lambda content: content.update(status=status))


@pytest.mark.parametrize(("attaches", "said"), [(True, ATTACHED), (False, ATTACH_FAILED)])
async def test_devices_that_are_attached_first_say_so_once(attaches: bool, said: str) -> None:
    async with published(count=1, kind=DeviceKind.ATTACHED, attach_seconds=0.0) as cluster:
        cluster.driver.attaches = attaches
        assert cluster.devices()[0]["bindingConditions"] == [ATTACHED]
        changed = asyncio.Event()
        cluster.core.store.collection(("resource.k8s.io", CLAIMS)).listeners.append(lambda _change: changed.set())
        await allocated_to(cluster, "gpu-0")
        async with asyncio.timeout(10):
            while not (said_of := (cluster.claims.show("it")["status"].get("devices") or [])):
                changed.clear()
                await changed.wait()
        assert [(each["device"], [c["type"] for c in each["conditions"]]) for each in said_of] == [("gpu-0", [said])]
        cluster.claims.edit(CLAIMS, "it", lambda content: content["metadata"].update(labels={"touched": "yes"}))
        await settled()
        assert len(cluster.claims.show("it")["status"]["devices"]) == 1


async def test_a_claim_that_is_gone_before_its_device_is_attached_is_no_trouble() -> None:
    async with published(count=1, kind=DeviceKind.ATTACHED, attach_seconds=0.0) as cluster:
        await allocated_to(cluster, "gpu-0")
        cluster.claims.delete(CLAIMS, "it")
        cluster.claims.claim("it")
        await asyncio.sleep(0)
        await settled()
        assert "devices" not in (cluster.claims.show("it").get("status") or {})


@pytest.mark.parametrize("kind", list(DeviceKind))
async def test_a_sandbox_publishes_every_kind_of_device_that_its_own_rules_allow(kind: DeviceKind) -> None:
    async with Sandbox(SandboxOptions(nodes=2, devices=DeviceLayout(count=9, kind=kind))) as sandbox:
        await settled()
        driver = sandbox.driver
        assert driver is not None
        assert [driver.generation(f"node-{number:04d}") for number in range(2)] == [1, 1]
        assert len(driver.devices(NODE)) == (63 if kind is DeviceKind.PARTITIONS else 9)


async def test_only_nodes_with_the_label_get_devices_where_one_is_asked_for() -> None:
    async with published(nodes=1, count=2, label="example.com/gpus") as cluster:
        node = simulated_node(5, "2026-01-01T00:00:00Z")
        node["metadata"]["labels"]["example.com/gpus"] = ""
        cluster.core.create("nodes", node)
        await settled()
        assert (cluster.slices("node-0000"), cluster.names("node-0005")) == ([], ["gpu-0", "gpu-1"])
