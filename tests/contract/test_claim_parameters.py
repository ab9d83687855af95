"""Claims whose drivers' parameters are text in all the forms that an API server keeps: the scheduler's writes leave every byte of it."""

from __future__ import annotations

import msgspec
import pytest

from contract.cluster import Cluster
from contract.devices import DRIVER, FINALIZER, VERSION, a_claim, allocation, claims_path
from contract.objects import a_pod
from placewright.api.devices import AllocationResult
from placewright.api.objects import Pod
from placewright.api.pods import PodInfo
from placewright.kube.auth.login import ClusterAccess
from placewright.kube.client import ApiClient
from placewright.kube.writers.claimprotobuf import PROTOBUF
from placewright.kube.writers.claims import HttpClaimWriter, decode_claim

PARAMETERS = (
    b'{"b":1}', b'{"b": 1}', '{"b":"<&>\u00e9"}'.encode(), rb'{"b":"\u00e9\u003c\/"}', b'{"b":1.0,"c":1e3,"d":-0.0}',
    b'{"n":123456789012345678901234567890}', b'{"z":1,"a":2}', b'{"a":1,"a":2}', b'{\n "a":\n [1 , 2]}', '{"a":"\u2028"}'.encode(),
)  # fmt: skip


async def using(cluster: Cluster, name: str) -> PodInfo:
    made = await cluster.create("pods", a_pod(name, resourceClaims=[{"name": "gpu", "resourceClaimName": "it"}]))
    return PodInfo(msgspec.convert(made, Pod))


@pytest.mark.parametrize("parameters", PARAMETERS)
async def test_a_claim_gets_devices_and_pods_and_is_freed_whatever_the_text_of_its_parameters(cluster: Cluster, parameters: bytes) -> None:
    cluster.needs(VERSION, "resource.k8s.io/v1")
    opaque = {"opaque": {"driver": DRIVER, "parameters": msgspec.Raw(parameters)}}
    path = claims_path(cluster)
    (await cluster.client.post(path, msgspec.json.encode(a_claim("it", config=[opaque])))).expect(201)
    given = msgspec.json.decode(msgspec.json.encode(allocation(config=[{"source": "FromClaim", **opaque}])), type=AllocationResult)
    first, second = await using(cluster, "first"), await using(cluster, "second")
    access = ClusterAccess(cluster.client.server, cluster.client._context, authorization=cluster.client._headers.get("Authorization", ""))
    async with ApiClient(access) as client:
        writer = HttpClaimWriter(client, lambda: True, attempts=1)
        there = await writer.reserve(decode_claim(await client.get(f"{path}/it")), given, first)
        assert FINALIZER in (there.metadata.finalizers or ())
        there = await writer.reserve(there, None, second)
        assert [user.name for user in there.status.reserved_for or ()] == ["first", "second"]
        stored = await client.request("GET", f"{path}/it", accept=PROTOBUF)
        assert parameters in stored or not stored.startswith(b"k8s"), "the spec has the text in which it was sent"
        await writer.release(there, first, deallocate=False)
        await writer.release(there, second, deallocate=True)
        there = decode_claim(await client.get(f"{path}/it"))
        assert there.status.allocation is None
        await writer.delete(there)
