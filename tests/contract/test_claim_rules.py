"""What the real server refuses of claims, their templates and their status, and in which words: one fault each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest
import pytest_asyncio

from contract.boxes import causes
from contract.client import MERGE, Answer, Object
from contract.cluster import Cluster
from contract.devices import (
    DRIVER,
    GROUP,
    VERSION,
    a_claim,
    allocation,
    alternative,
    alternatives,
    claims_path,
    request,
    result,
    template,
    user,
)

LABEL = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-'"
SUBDOMAIN = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'"
REFERENCE = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
Fields = dict[str, Any]


@pytest_asyncio.fixture(autouse=True, loop_scope="session")
async def _enough(cluster: Cluster) -> AsyncIterator[None]:
    cluster.needs(VERSION, "resource.k8s.io/v1")
    yield


def expression(text: str) -> Object:
    return {"cel": {"expression": text}}


# --- claims: all faults of an object are said at once ---------------------------------------------------------------------------

REQUESTS: dict[str, tuple[Object, str, str]] = {
    "a request has a name": (request(""), "name", f'Invalid value: "": {LABEL}'),
    "which is a label": (request("A b"), "name", f'Invalid value: "A b": {LABEL}'),
    "a request says which devices": ({"name": "a"}, "", "Required value: exactly one of `exactly` or `firstAvailable` is required"),
    "in one way": (
        {**request("b"), **alternatives("b", alternative("c"))},
        "",
        "Invalid value: null: exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set",
    ),
    "devices have a class": (request("c", ""), "exactly.deviceClassName", "Required value"),
    "that can be one": (request("d", "No One"), "exactly.deviceClassName", f'Invalid value: "No One": {SUBDOMAIN}'),
    "a count is positive": (request("e", count=-1), "exactly.count", "Invalid value: -1: must be greater than zero"),
    "all is all": (
        request("f", allocationMode="All", count=2),
        "exactly.count",
        "Invalid value: 2: must not be specified when allocationMode is 'All'",
    ),
    "there are two modes": (
        request("g", allocationMode="Some"),
        "exactly.allocationMode",
        'Unsupported value: "Some": supported values: "All", "ExactCount"',
    ),
    "a selector is an expression": (request("h", selectors=[{}]), "exactly.selectors[0].cel", "Required value"),
    "that compiles": (
        request("i", selectors=[expression("device.driver ==")]),
        "exactly.selectors[0].cel.expression",
        'Invalid value: "device.driver ==": compilation failed',
    ),
    "about a device": (
        request("j", selectors=[expression("pod.name == 'a'")]),
        "exactly.selectors[0].cel.expression",
        """Invalid value: "pod.name == 'a'": compilation failed: ERROR: """,
    ),
    "alternatives differ in name": (alternatives("n", alternative("b"), alternative("b")), "firstAvailable[1]", 'Duplicate value: "b"'),
    "no name is there twice": (request("j"), "", 'Duplicate value: "j"'),
}
CONSTRAINTS: list[tuple[Object, str, str]] = [
    ({"requests": ["other"], "matchAttribute": "example.com/numa"}, "requests[0]", f'Invalid value: "other": {REFERENCE}'),
    ({"requests": ["n/c"], "matchAttribute": "example.com/numa"}, "requests[0]", f'Invalid value: "n/c": {REFERENCE}'),
]


def of(place: str, cases: Iterable[tuple[Object, str, str]]) -> dict[str, str]:
    """What is to be said of each element of a list: field to the beginning of the message."""
    return {f"spec.devices.{place}[{at}]{field and f'.{field}'}": why for at, (_, field, why) in enumerate(cases)}


def begun(said: dict[str, str], wanted: dict[str, str]) -> dict[str, str]:
    """As much of each message as is wanted, nothing of those that are not."""
    return {field: message[: len(wanted.get(field, ""))] for field, message in said.items()}


async def test_a_claim_is_refused_for_each_of_its_faults(cluster: Cluster) -> None:
    wanted = of("requests", REQUESTS.values()) | of("constraints", CONSTRAINTS)
    devices = {"constraints": [each for each, _, _ in CONSTRAINTS]}
    said = causes(await cluster.client.post(claims_path(cluster), a_claim("it", *(each for each, _, _ in REQUESTS.values()), **devices)))
    assert begun(said, wanted) == wanted
    assert any("undeclared reference to 'pod' (in container '')" in message for message in said.values())


async def test_a_claim_in_an_ordinary_namespace_asks_for_no_devices_in_use(cluster: Cluster) -> None:
    why = "Forbidden: admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on the containing namespace"
    assert why in await cluster.refusal(claims_path(cluster), a_claim("it", request(adminAccess=True)))


async def test_a_template_is_refused_for_what_a_claim_would_be(cluster: Cluster) -> None:
    path = cluster.path("resourceclaimtemplates", group=GROUP)
    assert f'spec.spec.devices.requests[0].name: Invalid value: "A": {LABEL}' in await cluster.refusal(path, template("it", request("A")))


async def test_every_fault_of_an_object_is_named(cluster: Cluster) -> None:
    answer = await cluster.client.post(claims_path(cluster), a_claim("it", request("A", count=-1), {"name": "b"}))
    causes = answer.expect(422)["details"]["causes"]
    assert [each["field"] for each in causes] == [
        "spec.devices.requests[0].name",
        "spec.devices.requests[0].exactly.count",
        "spec.devices.requests[1]",
    ]
    assert [each["reason"] for each in causes] == ["FieldValueInvalid", "FieldValueInvalid", "FieldValueRequired"]


async def test_administrators_say_so_on_their_namespace(cluster: Cluster) -> None:
    label = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
    (await cluster.client.patch(f"/api/v1/namespaces/{cluster.namespace}", label, MERGE)).expect(200)
    found = (await cluster.client.post(claims_path(cluster), a_claim("it", request(adminAccess=True)))).expect(201)
    assert found["spec"]["devices"]["requests"][0]["exactly"]["adminAccess"] is True


@pytest.mark.parametrize(("plural", "body"), [("resourceclaims", a_claim("it")), ("resourceclaimtemplates", template("it"))])
async def test_what_a_claim_asks_for_is_fixed(cluster: Cluster, plural: str, body: Object) -> None:
    path = cluster.path(plural, group=GROUP)
    (await cluster.client.post(path, body)).expect(201)
    more = {"devices": {"requests": [request(count=2)]}}
    change = {"spec": {"spec": more} if plural == "resourceclaimtemplates" else more}
    message = (await cluster.client.patch(f"{path}/it", change, MERGE)).refused(422, "Invalid")
    assert "spec: Invalid value: " in message
    assert "field is immutable" in message


@pytest.mark.parametrize(
    "spec",
    [
        {"devices": []},
        {"devices": {"requests": {}}},
        {"devices": {"requests": [{"name": 7}]}},
        {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "c", "count": "two"}}]}},
        {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "c", "capacity": {"requests": {"memory": "much"}}}}]}},
    ],
)
async def test_what_has_another_shape_is_no_claim(cluster: Cluster, spec: Object) -> None:
    answer = await cluster.client.post(claims_path(cluster), {**a_claim("it"), "spec": spec})
    assert answer.refused(400, "BadRequest")


NO_NAME = f'name: Invalid value: "": {LABEL}'


@pytest.mark.parametrize(
    ("devices", "why"),
    [
        ({"requests": [None]}, f"[spec.devices.requests[0].{NO_NAME}"),
        ({"requests": [None]}, "spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required]"),
        ({"requests": [{"name": None}]}, f"[spec.devices.requests[0].{NO_NAME}"),
        ({"requests": [{"name": "a", "firstAvailable": [None]}]}, f"[spec.devices.requests[0].firstAvailable[0].{NO_NAME}"),
        (
            {"requests": [{"name": "a", "exactly": {"deviceClassName": "c", "selectors": [None]}}]},
            "spec.devices.requests[0].exactly.selectors[0].cel: Required value",
        ),
    ],
)
async def test_null_in_a_claim_stands_for_nothing_said(cluster: Cluster, devices: Object, why: str) -> None:
    answer = await cluster.client.post(claims_path(cluster), {**a_claim("it"), "spec": {"devices": devices}})
    assert why in answer.refused(422, "Invalid")


@pytest.mark.parametrize("spec", [None, {"devices": None}, {"devices": {"requests": None}}])
async def test_a_claim_may_ask_for_nothing_by_null(cluster: Cluster, spec: Object | None) -> None:
    (await cluster.client.post(claims_path(cluster), {**a_claim("it"), "spec": spec})).expect(201)


# --- the status of claims ----------------------------------------------------------------------------------------------------

SAID: Fields = {"driver": DRIVER, "pool": "node-a", "device": "gpu-0"}
FAULTY: Object = {
    "allocation": allocation(result("other")),
    "reservedFor": [user()],
    "devices": [{**SAID, "device": "gpu-1"}],
}
TOLD = {
    "allocation.devices.results[0].request": f'Invalid value: "other": {REFERENCE}',
    "devices[0]": "Invalid value",
}


async def refused_status(cluster: Cluster, status: Object) -> Answer:
    (await cluster.client.post(claims_path(cluster), a_claim("it"))).expect(201)
    answer = await cluster.client.patch(claims_path(cluster, "it", "status"), {"status": status}, MERGE)
    assert answer.refused(422, "Invalid")
    assert not (await cluster.read("resourceclaims", "it", group=GROUP)).get("status"), "nothing of it is kept"
    return answer


async def test_a_status_is_refused_for_each_of_its_faults(cluster: Cluster) -> None:
    wanted = {f"status.{field}": why for field, why in TOLD.items()}
    assert begun(causes(await refused_status(cluster, FAULTY)), wanted) == wanted


@pytest.mark.parametrize(
    ("status", "why"),
    [
        ({"reservedFor": [user()]}, "status.reservedFor: Forbidden: may not be specified when `allocated` is not set"),
        (
            {"allocation": allocation(), "reservedFor": [user(f"p{at}", f"uid-{at}") for at in range(257)]},
            "status.reservedFor: Too many: 257: must have at most 256 items",
        ),
        ({"allocation": allocation(), "devices": [{**SAID, "device": "gpu-1"}]}, "must be an allocated device in the claim"),
    ],
)
async def test_a_status_is_refused_for(cluster: Cluster, status: Object, why: str) -> None:
    assert why in (await refused_status(cluster, status)).body["message"]


async def test_alternatives_are_named_with_their_request(cluster: Cluster) -> None:
    (await cluster.client.post(claims_path(cluster), a_claim("it", alternatives("a", alternative("b"))))).expect(201)
    status = {"status": {"allocation": allocation(result("a/b"))}}
    found = (await cluster.client.patch(claims_path(cluster, "it", "status"), status, MERGE)).expect(200)
    assert found["status"]["allocation"]["devices"]["results"][0]["request"] == "a/b"
