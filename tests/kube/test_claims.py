"""What is written into claims to devices, on a server that can be scripted."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from fake_api import FakeApi, answer, answer_bytes, hang_up, refuse

from placewright.api.decode import convert
from placewright.api.devices import AllocationResult, ClaimMeta, ConsumerReference, ResourceClaim
from placewright.api.errors import ClaimError
from placewright.api.objects import NodeAllocatableClaimStatus, OwnerReference, Pod, PodExtendedResourceClaimStatus
from placewright.api.pods import PodInfo
from placewright.kube.errors import RetryBackoff
from placewright.kube.writers.claims import ClaimListener, HttpClaimWriter

Body = dict[str, Any]
PATH = "/apis/resource.k8s.io/v1/namespaces/shop/resourceclaims/mine"
GET, PATCH, STATUS = f"GET {PATH}", f"PATCH {PATH}", f"PATCH {PATH}/status"
FINALIZER = "resource.kubernetes.io/delete-protection"
DEVICES = {"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "x"}]}}
OTHER_DEVICES = {"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "y"}]}}
ALLOCATION = convert(DEVICES, AllocationResult)
WEB = PodInfo(convert({"metadata": {"name": "web", "namespace": "shop", "uid": "w-1"}}, Pod))
US = {"resource": "pods", "name": "web", "uid": "w-1"}
THEM = {"resource": "pods", "name": "else", "uid": "e-1"}


def body(version: str = "7", *, uid: str = "c-1", finalizers: tuple[str, ...] = (), **status: Any) -> Body:
    meta = {"name": "mine", "namespace": "shop", "uid": uid, "resourceVersion": version, "finalizers": list(finalizers)}
    return {"metadata": meta, "status": status}


def a_claim(version: str = "7", **rest: Any) -> ResourceClaim:
    return convert(body(version, **rest), ResourceClaim)


class Bench:
    """A fake server, and a writer whose waits take no time."""

    def __init__(self, api: FakeApi, client: Any) -> None:
        self.api = api
        self.leads = True
        self.waited = 0.0
        backoff = RetryBackoff(0.1, uniform=lambda: 1.0)
        self.listening: list[ClaimListener] = []
        self.writer = HttpClaimWriter(
            client, lambda: self.leads, listeners=self.listening, backoff=backoff, clock=lambda: self.waited, sleep=self._sleep
        )

    async def _sleep(self, seconds: float) -> None:
        self.waited += seconds

    def sent(self, method: str = "PATCH") -> list[Body]:
        return [each.body for each in self.api.asked(method)]


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with FakeApi() as api, api.client() as client:
        yield Bench(api, client)


async def test_a_claim_is_protected_before_it_gets_devices_and_each_write_is_on_what_the_last_one_made(bench: Bench) -> None:
    bench.api.on(PATCH, answer(body("8", finalizers=("mine", FINALIZER))))
    bench.api.on(STATUS, answer(body("9", allocation=DEVICES, reservedFor=[US])))
    written = await bench.writer.reserve(a_claim(finalizers=("mine",)), ALLOCATION, WEB)
    assert written.metadata.resource_version == "9"
    assert bench.sent() == [
        {"metadata": {"uid": "c-1", "resourceVersion": "7", "finalizers": ["mine", FINALIZER]}},
        {"metadata": {"uid": "c-1", "resourceVersion": "8"}, "status": {"allocation": DEVICES, "reservedFor": [US]}},
    ]


# --- parameters that a patch would change in passing ----------------------------------------------------------------------------

PARAMETERS = b'{"b": "<1>"}'
EXACT = "application/vnd.kubernetes.protobuf"
OPAQUE = [{"opaque": {"driver": "d", "parameters": {"b": "<1>"}}}]


def part(number: int, text: bytes) -> bytes:
    return bytes([number << 3 | 2, len(text)]) + text


def exact(version: str = "7", uid: str = "c-1", users: bytes = b"") -> bytes:
    """The claim in the API server's own form, as far as it matters here."""
    metadata = part(1, b"mine") + part(5, uid.encode()) + part(6, version.encode())
    return b"k8s\x00" + part(2, part(1, metadata) + part(2, PARAMETERS) + part(3, users))


def with_parameters(version: str = "7", **rest: Any) -> ResourceClaim:
    return msgspec.json.decode(json.dumps({**body(version, **rest), "spec": {"devices": {"config": OPAQUE}}}), type=ResourceClaim)


async def test_a_claim_is_replaced_as_it_is_where_a_patch_would_change_the_text_of_parameters(bench: Bench) -> None:
    bench.api.on(PATCH, refuse(422, "Invalid"))
    bench.api.on(GET, answer_bytes(exact(), EXACT))
    bench.api.on(f"PUT {PATH}", answer(body("8", finalizers=(FINALIZER,))))
    bench.api.on(STATUS, answer(body("9", allocation=DEVICES, reservedFor=[US])))
    written = await bench.writer.reserve(with_parameters(), ALLOCATION, WEB)
    assert written.metadata.resource_version == "9"
    (got,), (put,) = bench.api.asked("GET"), bench.api.asked("PUT")
    assert got.headers["Accept"].startswith(EXACT)
    assert put.headers["Content-Type"] == EXACT
    metadata = part(1, b"mine") + part(5, b"c-1") + part(6, b"7") + part(14, FINALIZER.encode())
    inside = part(1, metadata) + part(2, PARAMETERS) + part(3, b"")
    assert put.body == b"k8s\x00" + part(2, inside)
    assert bench.sent()[-1]["metadata"]["resourceVersion"] == "8"


async def test_a_user_is_added_to_what_another_scheduler_allocated_with_parameters_as_text(bench: Bench) -> None:
    bench.api.on(STATUS, refuse(422, "Invalid"))
    bench.api.on(GET, answer_bytes(exact(), EXACT))
    bench.api.on(f"PUT {PATH}/status", answer(body("8")))
    await bench.writer.reserve(with_parameters(allocation=DEVICES), None, WEB)
    (put,) = bench.api.asked("PUT")
    us = part(1, b"") + part(3, b"pods") + part(4, b"web") + part(5, b"w-1")
    assert put.body == exact(users=part(2, us))


async def test_a_claim_that_was_changed_since_is_looked_at_again_before_it_is_replaced(bench: Bench) -> None:
    bench.api.on(STATUS, refuse(422, "Invalid"), answer(body("10")))
    there = answer(body("9", finalizers=(FINALIZER,), allocation=DEVICES, reservedFor=[THEM]))
    bench.api.on(GET, answer_bytes(exact("9"), EXACT), there)
    await bench.writer.reserve(with_parameters(allocation=DEVICES), None, WEB)
    assert bench.api.asked("PUT") == []
    assert bench.sent()[-1] == {"metadata": {"uid": "c-1", "resourceVersion": "9"}, "status": {"reservedFor": [THEM, US]}}


@pytest.mark.parametrize("there", [answer_bytes(b"{}", "application/json"), answer_bytes(b"k8s\x00\xff", EXACT)])
async def test_a_server_without_that_form_has_its_refusal_reported(bench: Bench, there: Any) -> None:
    bench.api.on(PATCH, refuse(422, "Invalid"))
    bench.api.on(GET, there)
    with pytest.raises(ClaimError, match="422"):
        await bench.writer.reserve(with_parameters(), ALLOCATION, WEB)


async def test_a_claim_without_parameters_is_not_asked_for_again(bench: Bench) -> None:
    bench.api.on(PATCH, refuse(422, "Invalid"))
    with pytest.raises(ClaimError, match="422"):
        await bench.writer.reserve(a_claim(), ALLOCATION, WEB)
    assert bench.api.asked("GET") == []


async def test_a_claim_that_has_devices_gets_the_pod_beside_the_others(bench: Bench) -> None:
    bench.api.on(STATUS, answer(body("8")))
    await bench.writer.reserve(a_claim(allocation=DEVICES, reservedFor=[THEM]), None, WEB)
    assert bench.sent() == [{"metadata": {"uid": "c-1", "resourceVersion": "7"}, "status": {"reservedFor": [THEM, US]}}]


async def test_after_a_conflict_the_claim_is_looked_at_and_the_pod_added_to_what_a_sibling_wrote(bench: Bench) -> None:
    bench.api.on(STATUS, refuse(409, "Conflict"), answer(body("10")))
    bench.api.on(GET, answer(body("9", finalizers=(FINALIZER,), allocation=DEVICES, reservedFor=[THEM])))
    await bench.writer.reserve(a_claim(finalizers=(FINALIZER,)), ALLOCATION, WEB)
    assert bench.sent()[-1] == {"metadata": {"uid": "c-1", "resourceVersion": "9"}, "status": {"reservedFor": [THEM, US]}}


async def test_a_write_whose_answer_got_lost_is_found_and_not_repeated(bench: Bench) -> None:
    bench.api.on(STATUS, hang_up, refuse(409, "Conflict"))
    bench.api.on(GET, answer(body("8", finalizers=(FINALIZER,), allocation=DEVICES, reservedFor=[US])))
    written = await bench.writer.reserve(a_claim(finalizers=(FINALIZER,)), ALLOCATION, WEB)
    assert written.metadata.resource_version == "8"
    assert len(bench.sent()) == 2


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (body("9", allocation=OTHER_DEVICES), "claim shop/mine got allocated elsewhere in the meantime"),
        (body("9", uid="c-2"), "claim shop/mine got deleted in the meantime"),
        ({"metadata": {**body("9")["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}, "claim shop/mine got deleted"),
    ],
)
async def test_what_somebody_else_did_meanwhile_may_make_it_impossible(bench: Bench, now: Body, why: str) -> None:
    bench.api.on(STATUS, refuse(409, "Conflict"))
    bench.api.on(GET, answer(now))
    with pytest.raises(ClaimError, match=why):
        await bench.writer.reserve(a_claim(finalizers=(FINALIZER,)), ALLOCATION, WEB)
    assert len(bench.sent()) == 1


async def test_a_claim_that_lost_its_devices_meanwhile_is_not_reserved(bench: Bench) -> None:
    bench.api.on(STATUS, refuse(409, "Conflict"))
    bench.api.on(GET, answer(body("9")))
    with pytest.raises(ClaimError, match="claim shop/mine got deallocated elsewhere in the meantime"):
        await bench.writer.reserve(a_claim(allocation=DEVICES), None, WEB)


async def test_a_refusal_says_what_was_refused(bench: Bench) -> None:
    bench.api.on(STATUS, refuse(403, "Forbidden"))
    with pytest.raises(ClaimError, match="403"):
        await bench.writer.reserve(a_claim(finalizers=(FINALIZER,)), ALLOCATION, WEB)


@pytest.mark.parametrize(
    ("there", "deallocate", "status"),
    [
        ([US], True, {"reservedFor": None, "allocation": None, "devices": None}),
        ([US], False, {"reservedFor": None}),
        ([US, THEM], True, {"reservedFor": [THEM]}),
        ([], True, {"reservedFor": None, "allocation": None, "devices": None}),
    ],
)
async def test_a_pod_is_taken_off_and_the_devices_go_with_the_last_one(
    bench: Bench, there: list[Body], deallocate: bool, status: Body
) -> None:
    bench.api.on(GET, answer(body("8", allocation=DEVICES, reservedFor=there)))
    bench.api.on(STATUS, answer(body("9")))
    await bench.writer.release(a_claim(), WEB, deallocate=deallocate)
    assert bench.sent() == [{"metadata": {"uid": "c-1", "resourceVersion": "8"}, "status": status}]


NOT_OURS = (answer(body("8", reservedFor=[THEM])), answer(body("8", uid="c-2", allocation=DEVICES)), refuse(404, "NotFound"))


@pytest.mark.parametrize("now", NOT_OURS)
async def test_nothing_is_written_where_nothing_is_to_be_released(bench: Bench, now: Any) -> None:
    bench.api.on(GET, now)
    await bench.writer.release(a_claim(), WEB, deallocate=True)
    assert bench.sent() == []


async def test_devices_that_others_gave_to_the_claim_meanwhile_are_left_there(bench: Bench) -> None:
    bench.api.on(GET, answer(body("8", allocation=OTHER_DEVICES)))
    await bench.writer.release(a_claim(allocation=DEVICES), WEB, deallocate=True)
    assert bench.sent() == []


async def test_a_release_is_tried_for_as_long_as_the_server_is_away(bench: Bench) -> None:
    bench.api.on(GET, *[refuse(503, "ServiceUnavailable")] * 9, answer(body("8", allocation=DEVICES, reservedFor=[US])))
    bench.api.on(STATUS, hang_up, refuse(409, "Conflict"), answer(body("10")))
    await bench.writer.release(a_claim(), WEB, deallocate=True)
    assert len(bench.api.asked("GET")) >= 10


async def test_a_claim_is_made_for_its_pod(bench: Bench) -> None:
    bench.api.on("POST /apis/resource.k8s.io/v1/namespaces/shop/resourceclaims", answer(body("1")))
    owner = OwnerReference(kind="Pod", name="web", uid="w-1", api_version="v1", controller=True)
    meta = ClaimMeta(namespace="shop", name="<x>", annotations={"a": "true"}, owner_references=(owner,))
    await bench.writer.create(ResourceClaim(metadata=meta), "web-extended-resources-")
    (sent,) = bench.sent("POST")
    assert sent["metadata"] == {
        "generateName": "web-extended-resources-",
        "annotations": {"a": "true"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "w-1", "controller": True}],
    }


async def test_a_claim_of_ours_is_deleted_with_its_protection_and_only_as_itself(bench: Bench) -> None:
    bench.api.on(GET, answer(body("8", finalizers=("theirs", FINALIZER))))
    bench.api.on(PATCH, answer(body("9")))
    bench.api.on(f"DELETE {PATH}", answer({}))
    await bench.writer.delete(a_claim())
    assert bench.sent() == [{"metadata": {"uid": "c-1", "resourceVersion": "8", "finalizers": ["theirs"]}}]
    assert bench.sent("DELETE")[0]["preconditions"] == {"uid": "c-1"}


async def test_a_pod_is_told_which_claim_serves_it(bench: Bench) -> None:
    bench.api.on("PATCH /api/v1/namespaces/shop/pods/web/status", answer({}))
    await bench.writer.tell_pod(WEB, PodExtendedResourceClaimStatus(resource_claim_name="made"))
    assert bench.sent() == [{"metadata": {"uid": "w-1"}, "status": {"extendedResourceClaimStatus": {"resourceClaimName": "made"}}}]


async def test_a_claim_is_reserved_for_a_group_once_and_released_from_it(bench: Bench) -> None:
    group = ConsumerReference.of_pod_group("train", "g-1")
    train = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "train", "uid": "g-1"}
    bench.api.on(STATUS, answer(body("8", allocation=DEVICES, reservedFor=[THEM, train])))
    written = await bench.writer.reserve(a_claim(allocation=DEVICES, reservedFor=[THEM]), None, WEB, group)
    assert await bench.writer.reserve(written, None, WEB, group) is written
    bench.api.on(GET, answer(body("8", allocation=DEVICES, reservedFor=[THEM, train])))
    await bench.writer.release(written, WEB, deallocate=True, group=group)
    assert [each["status"] for each in bench.sent()] == [{"reservedFor": [THEM, train]}, {"reservedFor": [THEM]}]


async def test_a_pod_is_told_what_it_takes_of_its_node_and_that_it_takes_nothing_after_all(bench: Bench) -> None:
    bench.api.on("PATCH /api/v1/namespaces/shop/pods/web/status", answer({}))
    await bench.writer.tell_node_resources(WEB, (NodeAllocatableClaimStatus(resource_claim_name="c", resources={"cpu": "2"}),))
    await bench.writer.tell_node_resources(WEB, ())
    field = "nodeAllocatableResourceClaimStatuses"
    statuses = [each["status"] for each in bench.sent()]
    assert statuses == [{field: [{"resourceClaimName": "c", "resources": {"cpu": "2"}}]}, {field: None}]


async def test_a_replica_that_does_not_lead_writes_nothing(bench: Bench) -> None:
    bench.leads = False
    for attempt in (
        bench.writer.reserve(a_claim(), ALLOCATION, WEB),
        bench.writer.release(a_claim(), WEB, deallocate=True),
        bench.writer.delete(a_claim()),
        bench.writer.until(lambda: False, 5.0),
    ):
        with pytest.raises(ClaimError, match="not the active one"):
            await attempt
    assert bench.api.asked("PATCH") == []


async def test_what_is_done_beside_is_waited_for(bench: Bench) -> None:
    done: list[str] = []

    async def work() -> None:
        done.append("released")

    bench.writer.beside(work())
    await bench.writer.settled()
    assert done == ["released"]


async def test_listeners_hear_of_claims_that_were_made_and_of_those_that_could_not_be(bench: Bench) -> None:
    heard: list[Any] = []

    class Listener:
        def created(self, *, failed: bool) -> None:
            heard.append(failed)

        def waited(self, profile: str, drivers: Any, status: str, seconds: float) -> None:
            heard.append((profile, drivers, status, seconds))

    bench.listening.append(Listener())
    collection = "POST /apis/resource.k8s.io/v1/namespaces/shop/resourceclaims"
    bench.api.on(collection, answer(body("9"), 201), refuse(403))
    await bench.writer.create(a_claim(), "web-")
    with pytest.raises(ClaimError):
        await bench.writer.create(a_claim(), "web-")
    bench.writer.waited("p", {"d"}, "success", 1.0)
    assert heard == [False, True, ("p", {"d"}, "success", 1.0)]
