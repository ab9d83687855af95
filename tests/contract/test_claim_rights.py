"""Who may write which part of a claim's status: a right to the status alone is not enough, as since Kubernetes 1.36."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from contract.client import MERGE, Answer, Object
from contract.cluster import Cluster
from contract.devices import DRIVER, GROUP, a_claim, allocation, claims_path
from contract.robots import Robot, made_robot, rule

STATUS = rule(["resourceclaims/status"], ["patch", "update"], group=GROUP)
BINDING = rule(["resourceclaims/binding"], ["patch"], group=GROUP)
ALLOCATED = {"allocation": allocation()}
SAID = {"devices": [{"driver": DRIVER, "pool": "node-a", "device": "gpu-0", "data": {"address": "1"}}]}


@pytest_asyncio.fixture(loop_scope="session")
async def robot(cluster: Cluster) -> AsyncIterator[Robot]:
    """A claim is there too."""
    cluster.needs(36, "rights to the parts of a claim's status")
    (await cluster.client.post(claims_path(cluster), a_claim("it"))).expect(201)
    async with made_robot(cluster) as made:
        yield made


async def written(who: Cluster | Robot, status: Object) -> Answer:
    cluster = who.cluster if isinstance(who, Robot) else who
    return await who.client.patch(claims_path(cluster, "it", "status"), {"status": status}, MERGE)


async def test_an_allocation_takes_the_right_to_bind_claims(cluster: Cluster, robot: Robot) -> None:
    await robot.may_everywhere(STATUS)
    message = (await written(robot, ALLOCATED)).refused(422, "Invalid")
    needed = 'changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", verb="patch" permission'
    assert f"status.allocation: Forbidden: {needed}" in message
    assert 'cannot patch resource "resourceclaims/binding" in API group "resource.k8s.io" at the cluster scope' in message
    assert not (await cluster.read("resourceclaims", "it", group=GROUP)).get("status")


async def test_who_may_bind_claims_allocates_and_releases_them(robot: Robot) -> None:
    await robot.may_everywhere(STATUS, BINDING)
    assert (await written(robot, ALLOCATED)).expect(200)["status"] == ALLOCATED
    assert not (await written(robot, {"allocation": None})).expect(200).get("status")


async def test_the_right_to_bind_claims_is_asked_for_the_whole_cluster(robot: Robot) -> None:
    await robot.may_here(STATUS, BINDING)
    assert "status.allocation: Forbidden" in (await written(robot, ALLOCATED)).refused(422, "Invalid")


async def test_the_right_is_that_of_the_verb(cluster: Cluster, robot: Robot) -> None:
    await robot.may_everywhere(STATUS, BINDING)
    body = {**await cluster.read("resourceclaims", "it", group=GROUP), "status": ALLOCATED}
    answer = await robot.client.put(claims_path(cluster, "it", "status"), body)
    assert 'verb="update" permission' in answer.refused(422, "Invalid")


async def test_a_status_that_stays_as_it_is_takes_no_more_than_the_right_to_the_status(cluster: Cluster, robot: Robot) -> None:
    await robot.may_everywhere(STATUS)
    (await written(cluster, {**ALLOCATED, **SAID})).expect(200)
    [found] = (await written(robot, SAID)).expect(200)["status"]["devices"]
    assert found["data"] == {"address": "1"}
