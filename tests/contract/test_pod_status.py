"""The status of pods, which kubelets write: their addresses."""

from __future__ import annotations

import pytest

from contract.client import MERGE, STRATEGIC, Object
from contract.cluster import Cluster
from contract.objects import pod

FIRST = {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}
ONE_OF_EACH = "status.podIPs: Invalid value: "


async def written(cluster: Cluster, status: Object, content_type: str = MERGE) -> Object:
    found = (await cluster.client.patch(cluster.path("pods", "it", "status"), {"status": status}, content_type)).expect(200)
    return {key: value for key, value in found["status"].items() if "IP" in key}


async def refusal(cluster: Cluster, status: Object, content_type: str = MERGE) -> str:
    answer = await cluster.client.patch(cluster.path("pods", "it", "status"), {"status": status}, content_type)
    return answer.refused(422, "Invalid")


@pytest.mark.parametrize(
    ("status", "after"),
    [
        ({"podIP": "10.0.0.1"}, FIRST),
        ({"podIPs": [{"ip": "10.0.0.1"}]}, FIRST),
        ({"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.2"}]}, FIRST),
        ({"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.2"}, {"ip": "10.0.0.1"}]}, FIRST),
        ({"podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}]}, {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}]}),
    ],
)
async def test_the_address_of_a_pod_is_the_first_of_its_addresses(cluster: Cluster, status: Object, after: Object) -> None:
    await cluster.create("pods", pod("it"))
    assert await written(cluster, status) == after


async def test_an_address_that_is_replaced_by_its_own_field_alone_takes_the_others_with_it(cluster: Cluster) -> None:
    await cluster.create("pods", pod("it"))
    await written(cluster, {"podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}]})
    assert await written(cluster, {"podIP": "10.0.0.2"}) == {"podIP": "10.0.0.2", "podIPs": [{"ip": "10.0.0.2"}]}


async def test_a_kubelet_that_reports_another_address_adds_it_and_is_refused(cluster: Cluster) -> None:
    """A strategic patch merges the list by address, so that the pod would have two of one family."""
    await cluster.create("pods", pod("it"))
    await written(cluster, FIRST, STRATEGIC)
    again = {"podIP": "10.0.0.2", "podIPs": [{"ip": "10.0.0.2"}]}
    message = await refusal(cluster, again, STRATEGIC)
    assert message.startswith(f'Pod "it" is invalid: {ONE_OF_EACH}')
    assert message.endswith("may specify no more than one IP for each IP family")
    assert await written(cluster, FIRST, STRATEGIC) == FIRST


@pytest.mark.parametrize(
    ("status", "why"),
    [
        ({"podIPs": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}]}, ONE_OF_EACH),
        ({"podIPs": [{"ip": "fd00::1"}, {"ip": "fd00::2"}]}, ONE_OF_EACH),
        ({"podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}, {"ip": "fd00::2"}]}, ONE_OF_EACH),
        ({"podIP": "nowhere"}, 'status.podIPs[0]: Invalid value: "nowhere": must be a valid IP address'),
    ],
)
async def test_addresses_are_refused_that_no_pod_can_have(cluster: Cluster, status: Object, why: str) -> None:
    await cluster.create("pods", pod("it"))
    assert why in await refusal(cluster, status)


async def test_the_addresses_of_the_host_begin_with_its_address(cluster: Cluster) -> None:
    cluster.needs(28, "hostIPs")
    await cluster.create("pods", pod("it"))
    assert await written(cluster, {"hostIP": "10.1.0.1", "hostIPs": [{"ip": "10.1.0.1"}]})
    message = await refusal(cluster, {"hostIP": "10.1.0.2"})
    assert 'status.hostIPs[0].ip: Invalid value: "10.1.0.1": must be equal to `hostIP`' in message
