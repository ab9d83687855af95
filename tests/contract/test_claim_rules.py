"""What the real server refuses of claims, their templates and their status, and in which words: one fault each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from contract.client import MERGE, Object
from contract.cluster import Cluster
from contract.devices import (
    DRIVER,
    GROUP,
    VERSION,
    allocation,
    alternative,
    alternatives,
    claim,
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


async def refusal(cluster: Cluster, path: str, body: Object) -> str:
    answer = await cluster.client.post(path, body)
    if answer.status == 201:
        await cluster.client.delete(f"{path}/{body['metadata']['name']}")
    return answer.refused(422, "Invalid")


# --- claims ------------------------------------------------------------------------------------------------------------------

CLAIMS: list[tuple[str, Object, str]] = [
    ("a request has a name", claim("it", request("")), f'spec.devices.requests[0].name: Invalid value: "": {LABEL}'),
    ("which is a label", claim("it", request("A b")), f'spec.devices.requests[0].name: Invalid value: "A b": {LABEL}'),
    ("no name is there twice", claim("it", request("a"), request("a")), 'spec.devices.requests[1]: Duplicate value: "a"'),
    (
        "a request says which devices",
        claim("it", {"name": "a"}),
        "spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required",
    ),
    (
        "in one way",
        claim("it", {**request("a"), **alternatives("a", alternative("b"))}),
        "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set",
    ),
    ("devices have a class", claim("it", request(device_class="")), "spec.devices.requests[0].exactly.deviceClassName: Required value"),
    (
        "that can be one",
        claim("it", request(device_class="No One")),
        f'spec.devices.requests[0].exactly.deviceClassName: Invalid value: "No One": {SUBDOMAIN}',
    ),
    (
        "a count is positive",
        claim("it", request(count=-1)),
        "spec.devices.requests[0].exactly.count: Invalid value: -1: must be greater than zero",
    ),
    (
        "all is all",
        claim("it", request(allocationMode="All", count=2)),
        "spec.devices.requests[0].exactly.count: Invalid value: 2: must not be specified when allocationMode is 'All'",
    ),
    (
        "there are two modes",
        claim("it", request(allocationMode="Some")),
        'spec.devices.requests[0].exactly.allocationMode: Unsupported value: "Some": supported values: "All", "ExactCount"',
    ),
    (
        "a selector is an expression",
        claim("it", request(selectors=[{}])),
        "spec.devices.requests[0].exactly.selectors[0].cel: Required value",
    ),
    (
        "that compiles",
        claim("it", request(selectors=[{"cel": {"expression": "device.driver =="}}])),
        'spec.devices.requests[0].exactly.selectors[0].cel.expression: Invalid value: "device.driver ==": compilation failed',
    ),
    (
        "about a device",
        claim("it", request(selectors=[{"cel": {"expression": "pod.name == 'a'"}}])),
        "undeclared reference to 'pod' (in container '')",
    ),
    (
        "of bearable length",
        claim("it", request(selectors=[{"cel": {"expression": f"device.driver == '{'a' * 10240}'"}}])),
        "spec.devices.requests[0].exactly.selectors[0].cel.expression: Too long: may not be more than 10240 bytes",
    ),
    (
        "there are not too many of them",
        claim("it", request(selectors=[{"cel": {"expression": "true"}}] * 33)),
        "spec.devices.requests[0].exactly.selectors: Too many: 33: must have at most 32 items",
    ),
    (
        "there are not too many requests",
        claim("it", *(request(f"r{at}") for at in range(33))),
        "spec.devices.requests: Too many: 33: must have at most 32 items",
    ),
    (
        "nor alternatives",
        claim("it", alternatives("a", *(alternative(f"r{at}") for at in range(9)))),
        "spec.devices.requests[0].firstAvailable: Too many: 9: must have at most 8 items",
    ),
    (
        "alternatives differ in name",
        claim("it", alternatives("a", alternative("b"), alternative("b"))),
        'spec.devices.requests[0].firstAvailable[1]: Duplicate value: "b"',
    ),
    (
        "what exists has no value",
        claim("it", request(tolerations=[{"key": "a", "operator": "Exists", "value": "b"}])),
        'spec.devices.requests[0].exactly.tolerations[0].value: Invalid value: "b": must be empty for operator `Exists`',
    ),
    (
        "there are two operators",
        claim("it", request(tolerations=[{"key": "a", "operator": "Near"}])),
        'tolerations[0].operator: Unsupported value: "Near": supported values: "Equal", "Exists"',
    ),
    (
        "and three effects",
        claim("it", request(tolerations=[{"key": "a", "operator": "Exists", "effect": "PreferNoSchedule"}])),
        'tolerations[0].effect: Unsupported value: "PreferNoSchedule": supported values: "NoExecute", "NoSchedule", "None"',
    ),
    (
        "a constraint is about requests of the claim",
        claim("it", constraints=[{"requests": ["other"], "matchAttribute": "example.com/numa"}]),
        f'spec.devices.constraints[0].requests[0]: Invalid value: "other": {REFERENCE}',
    ),
    (
        "or their alternatives",
        claim("it", alternatives("a", alternative("b")), constraints=[{"requests": ["a/c"], "matchAttribute": "example.com/numa"}]),
        f'spec.devices.constraints[0].requests[0]: Invalid value: "a/c": {REFERENCE}',
    ),
    (
        "and about an attribute with a domain",
        claim("it", constraints=[{"matchAttribute": "numa"}]),
        'matchAttribute: Invalid value: "numa": a fully qualified name must be a domain and a name separated by a slash',
    ),
    ("a constraint says something", claim("it", constraints=[{}]), "spec.devices.constraints[0]: Required value"),
    ("so does a configuration", claim("it", config=[{}]), "spec.devices.config[0].opaque: Required value"),
    (
        "to a driver",
        claim("it", config=[{"opaque": {"parameters": {}}}]),
        "spec.devices.config[0].opaque.driver: Required value",
    ),
    (
        "an object",
        claim("it", config=[{"opaque": {"driver": DRIVER, "parameters": [1]}}]),
        'spec.devices.config[0].opaque.parameters: Invalid value: "<value omitted>": must be a valid JSON object',
    ),
    (
        "devices in use are for administrators",
        claim("it", request(adminAccess=True)),
        "Forbidden: admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on the containing namespace",
    ),
]


@pytest.mark.parametrize(("body", "why"), [case[1:] for case in CLAIMS], ids=[case[0] for case in CLAIMS])
async def test_a_claim_is_refused_for(cluster: Cluster, body: Object, why: str) -> None:
    assert why in await refusal(cluster, claims_path(cluster), body)


async def test_a_template_is_refused_for_what_a_claim_would_be(cluster: Cluster) -> None:
    path = cluster.path("resourceclaimtemplates", group=GROUP)
    assert f'spec.spec.devices.requests[0].name: Invalid value: "A": {LABEL}' in await refusal(cluster, path, template("it", request("A")))


async def test_every_fault_of_an_object_is_named(cluster: Cluster) -> None:
    answer = await cluster.client.post(claims_path(cluster), claim("it", request("A", count=-1), {"name": "b"}))
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
    found = (await cluster.client.post(claims_path(cluster), claim("it", request(adminAccess=True)))).expect(201)
    assert found["spec"]["devices"]["requests"][0]["exactly"]["adminAccess"] is True


@pytest.mark.parametrize(("plural", "body"), [("resourceclaims", claim("it")), ("resourceclaimtemplates", template("it"))])
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
    answer = await cluster.client.post(claims_path(cluster), {**claim("it"), "spec": spec})
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
        ({"config": [None]}, "spec.devices.config[0].opaque: Required value"),
        ({"constraints": [None]}, "spec.devices.constraints[0]: Required value: exactly one of"),
    ],
)
async def test_null_in_a_claim_stands_for_nothing_said(cluster: Cluster, devices: Object, why: str) -> None:
    answer = await cluster.client.post(claims_path(cluster), {**claim("it"), "spec": {"devices": devices}})
    assert why in answer.refused(422, "Invalid")


@pytest.mark.parametrize("spec", [None, {"devices": None}, {"devices": {"requests": None}}])
async def test_a_claim_may_ask_for_nothing_by_null(cluster: Cluster, spec: Object | None) -> None:
    (await cluster.client.post(claims_path(cluster), {**claim("it"), "spec": spec})).expect(201)


# --- the status of claims ----------------------------------------------------------------------------------------------------

SAID: Fields = {"driver": DRIVER, "pool": "node-a", "device": "gpu-0"}
STATUSES: list[tuple[str, Object, str]] = [
    (
        "only what is allocated is used",
        {"reservedFor": [user()]},
        "status.reservedFor: Forbidden: may not be specified when `allocated` is not set",
    ),
    (
        "by somebody",
        {"allocation": allocation(), "reservedFor": [{"resource": "pods", "name": "", "uid": "x"}]},
        "status.reservedFor[0].name: Required value",
    ),
    ("once", {"allocation": allocation(), "reservedFor": [user(), user("b")]}, "status.reservedFor[1]: Duplicate value"),
    (
        "and not by too many",
        {"allocation": allocation(), "reservedFor": [user(f"p{at}", f"uid-{at}") for at in range(257)]},
        "status.reservedFor: Too many: 257: must have at most 256 items",
    ),
    (
        "a result is for a request",
        {"allocation": allocation(result("other"))},
        f'status.allocation.devices.results[0].request: Invalid value: "other": {REFERENCE}',
    ),
    ("by a driver", {"allocation": allocation(result(driver=""))}, "status.allocation.devices.results[0].driver: Required value"),
    ("from a pool", {"allocation": allocation(result(pool=""))}, "status.allocation.devices.results[0].pool: Required value"),
    (
        "a device",
        {"allocation": allocation(result(device="A"))},
        f'status.allocation.devices.results[0].device: Invalid value: "A": {LABEL}',
    ),
    (
        "there are not too many",
        {"allocation": allocation(*(result(device=f"gpu-{at}") for at in range(33)))},
        "status.allocation.devices.results: Too many: 33: must have at most 32 items",
    ),
    (
        "a configuration has a source",
        {"allocation": allocation(config=[{"opaque": {"driver": DRIVER, "parameters": {}}}])},
        "status.allocation.devices.config[0].source: Required value",
    ),
    (
        "one of two",
        {"allocation": allocation(config=[{"source": "FromMe", "opaque": {"driver": DRIVER, "parameters": {}}}])},
        'status.allocation.devices.config[0].source: Unsupported value: "FromMe": supported values: "FromClaim", "FromClass"',
    ),
    (
        "a node selector selects",
        {"allocation": {**allocation(), "nodeSelector": {"nodeSelectorTerms": []}}},
        "status.allocation.nodeSelector.nodeSelectorTerms: Required value: must have at least one node selector term",
    ),
    (
        "who waits for a condition knows when it is in vain",
        {"allocation": allocation(result(bindingConditions=["example.com/a"]))},
        "bindingFailureConditions are required to use bindingConditions",
    ),
    (
        "drivers speak of allocated devices",
        {"allocation": allocation(), "devices": [{**SAID, "device": "gpu-1"}]},
        "must be an allocated device in the claim",
    ),
    (
        "in conditions",
        {"allocation": allocation(), "devices": [{**SAID, "conditions": [{"type": "Ready", "status": "Maybe", "reason": "A"}]}]},
        'status.devices[0].conditions[0].status: Unsupported value: "Maybe": supported values: "False", "True", "Unknown"',
    ),
    (
        "with a time",
        {"allocation": allocation(), "devices": [{**SAID, "conditions": [{"type": "Ready", "status": "True", "reason": "A"}]}]},
        "status.devices[0].conditions[0].lastTransitionTime: Required value",
    ),
    (
        "and devices in use go to administrators",
        {"allocation": allocation(result(adminAccess=True))},
        "status.allocation.devices.results[0].adminAccess: Forbidden: admin access to devices requires the",
    ),
]


@pytest.mark.parametrize(("status", "why"), [case[1:] for case in STATUSES], ids=[case[0] for case in STATUSES])
async def test_a_status_is_refused_unless(cluster: Cluster, status: Object, why: str) -> None:
    (await cluster.client.post(claims_path(cluster), claim("it"))).expect(201)
    answer = await cluster.client.patch(claims_path(cluster, "it", "status"), {"status": status}, MERGE)
    assert why in answer.refused(422, "Invalid")
    assert not (await cluster.read("resourceclaims", "it", group=GROUP)).get("status"), "nothing of it is kept"


async def test_alternatives_are_named_with_their_request(cluster: Cluster) -> None:
    (await cluster.client.post(claims_path(cluster), claim("it", alternatives("a", alternative("b"))))).expect(201)
    status = {"status": {"allocation": allocation(result("a/b"))}}
    found = (await cluster.client.patch(claims_path(cluster, "it", "status"), status, MERGE)).expect(200)
    assert found["status"]["allocation"]["devices"]["results"][0]["request"] == "a/b"
