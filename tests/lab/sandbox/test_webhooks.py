"""Validating and mutating webhooks: who is asked about which write, what he is shown, and what comes of his answer or his silence."""

from __future__ import annotations

import base64
import datetime as dt
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from kubesandbox.server import Sandbox
from lab.sandbox.http import Client, client_of
from lab.sandbox.makers import Object, config_map
from placewright.http.certificates import self_signed

HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
MAPS = "/api/v1/namespaces/default/configmaps"
MERGE = {"headers": {"Content-Type": "application/merge-patch+json"}}


@dataclass
class Judge:
    """A webhook that keeps its questions, and answers as the test wants."""

    url: str = ""
    bundle: str = ""
    answer: Object = field(default_factory=lambda: {"allowed": True})
    code: int = 200
    asked: list[Object] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.Response:
        review = await request.json()
        self.asked.append(review["request"])
        response = {"uid": review["request"]["uid"], **self.answer}
        return web.json_response({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}, status=self.code)

    def configuration(self, policy: str = "Fail", **rule: Any) -> Object:
        matching = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE", "UPDATE"], **rule}
        hook = {
            "name": "judge.example.com",
            "clientConfig": {"url": self.url, "caBundle": self.bundle},
            "rules": [matching],
            "failurePolicy": policy,
            "timeoutSeconds": 5,
        }
        return {"metadata": {"name": "judge"}, "webhooks": [hook]}


@asynccontextmanager
async def sitting(folder: Path) -> AsyncIterator[Judge]:
    certificate, key = self_signed(["127.0.0.1"], dt.datetime.now(dt.UTC))
    folder.joinpath("both.pem").write_bytes(certificate + key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "both.pem")
    judge = Judge(bundle=base64.b64encode(certificate).decode())
    app = web.Application()
    app.router.add_post("/judge", judge.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    judge.url = f"https://127.0.0.1:{runner.addresses[0][1]}/judge"
    try:
        yield judge
    finally:
        await runner.cleanup()


@pytest.fixture
async def judge(tmp_path: Path) -> AsyncIterator[Judge]:
    async with sitting(tmp_path) as sits:
        yield sits


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with Sandbox() as sandbox, client_of(sandbox.kubeconfig) as made:
        yield made


async def test_the_webhook_is_shown_what_would_be_stored_and_what_is(client: Client, judge: Judge) -> None:
    await client.expect(201, "POST", MAPS, config_map("a", x="1"))
    await client.expect(201, "POST", HOOKS, judge.configuration())
    await client.expect(200, "PATCH", f"{MAPS}/a", {"data": {"x": "2"}}, **MERGE)
    (asked,) = judge.asked
    assert (asked["operation"], asked["name"], asked["namespace"], asked["dryRun"]) == ("UPDATE", "a", "default", False)
    assert (asked["oldObject"]["data"], asked["object"]["data"]) == ({"x": "1"}, {"x": "2"})
    assert asked["object"]["metadata"]["uid"] == asked["oldObject"]["metadata"]["uid"]


async def test_a_refusal_is_the_answer_and_nothing_is_stored(client: Client, judge: Judge) -> None:
    judge.answer = {"allowed": False, "status": {"message": "not like this", "code": 422}}
    await client.expect(201, "POST", HOOKS, judge.configuration())
    said = await client.expect(422, "POST", MAPS, config_map("a"))
    assert said["message"] == 'admission webhook "judge.example.com" denied the request: not like this'
    await client.expect(404, "GET", f"{MAPS}/a")


async def test_a_refusal_without_words_is_a_bad_request_without_explanation(client: Client, judge: Judge) -> None:
    judge.answer = {"allowed": False}
    await client.expect(201, "POST", HOOKS, judge.configuration())
    said = await client.expect(400, "POST", MAPS, config_map("a"))
    assert said["message"].endswith("denied the request without explanation")


async def test_what_was_allowed_is_stored_as_it_was_shown(client: Client, judge: Judge) -> None:
    await client.expect(201, "POST", HOOKS, judge.configuration())
    stored = await client.expect(201, "POST", MAPS, config_map("a", x="1"))
    assert stored["data"] == judge.asked[0]["object"]["data"]
    assert judge.asked[0]["oldObject"] is None


async def test_a_dry_run_is_called_one(client: Client, judge: Judge) -> None:
    await client.expect(201, "POST", HOOKS, judge.configuration())
    await client.expect(201, "POST", f"{MAPS}?dryRun=All", config_map("a"))
    assert [asked["dryRun"] for asked in judge.asked] == [True]


async def test_a_write_that_breaks_other_rules_is_refused_before_anybody_is_asked(client: Client, judge: Judge) -> None:
    await client.expect(201, "POST", HOOKS, judge.configuration())
    await client.expect(404, "PATCH", f"{MAPS}/nobody", {"data": {}}, **MERGE)
    assert judge.asked == []


@pytest.mark.parametrize(
    "rule",
    [{"apiGroups": ["apps"]}, {"apiVersions": ["v2"]}, {"resources": ["secrets"]}, {"operations": ["UPDATE"]}, {"resources": ["*/status"]}],
)
async def test_a_webhook_is_not_asked_about_what_its_rules_do_not_name(client: Client, judge: Judge, rule: Object) -> None:
    await client.expect(201, "POST", HOOKS, judge.configuration(**rule))
    await client.expect(201, "POST", MAPS, config_map("a"))
    assert judge.asked == []


@pytest.mark.parametrize("rule", [{"apiGroups": ["*"]}, {"apiVersions": ["*"]}, {"resources": ["*"]}, {"operations": ["*"]}])
async def test_a_star_names_all(client: Client, judge: Judge, rule: Object) -> None:
    await client.expect(201, "POST", HOOKS, judge.configuration(**rule))
    await client.expect(201, "POST", MAPS, config_map("a"))
    assert len(judge.asked) == 1


async def broken_url(judge: Judge) -> None:
    judge.url = "https://127.0.0.1:1/judge"


async def broken_trust(judge: Judge) -> None:
    judge.bundle = base64.b64encode(self_signed(["127.0.0.1"], dt.datetime.now(dt.UTC))[0]).decode()


async def broken_bundle(judge: Judge) -> None:
    judge.bundle = "no base64"


async def broken_answer(judge: Judge) -> None:
    judge.answer = {"uid": "another"}


async def broken_server(judge: Judge) -> None:
    judge.code = 500


@pytest.mark.parametrize("breaking", [broken_url, broken_trust, broken_bundle, broken_answer, broken_server])
async def test_a_webhook_that_fails_is_passed_over_or_stops_the_write_as_its_policy_says(
    client: Client, judge: Judge, breaking: Any
) -> None:
    await breaking(judge)
    await client.expect(201, "POST", HOOKS, judge.configuration())
    said = await client.expect(500, "POST", MAPS, config_map("a"))
    assert said["message"].startswith('Internal error occurred: failed calling webhook "judge.example.com": ')
    await client.expect(200, "PATCH", f"{HOOKS}/judge", {"webhooks": judge.configuration("Ignore")["webhooks"]}, **MERGE)
    await client.expect(201, "POST", MAPS, config_map("a"))


# --- mutating ones -----------------------------------------------------------------------------------------------------------------

MUTATING = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


def patching(*operations: Object) -> Object:
    return {"allowed": True, "patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(operations).encode()).decode()}


async def test_a_new_object_is_stored_as_the_webhook_patched_it(client: Client, judge: Judge) -> None:
    judge.answer = patching({"op": "add", "path": "/data/y", "value": "2"})
    await client.expect(201, "POST", MUTATING, judge.configuration())
    made = await client.expect(201, "POST", MAPS, config_map("a", x="1"))
    assert made["data"] == {"x": "1", "y": "2"}
    assert (await client.expect(200, "GET", f"{MAPS}/a"))["data"] == {"x": "1", "y": "2"}
    assert judge.asked[0]["object"]["data"] == {"x": "1"}
    await client.expect(200, "PATCH", f"{MAPS}/a", {"data": {"z": "3"}}, **MERGE)
    assert len(judge.asked) == 1, "only creations are mutated here"


async def test_validating_webhooks_see_the_patched_object(client: Client, judge: Judge) -> None:
    judge.answer = patching({"op": "add", "path": "/data/y", "value": "2"})
    await client.expect(201, "POST", MUTATING, judge.configuration())
    await client.expect(201, "POST", HOOKS, judge.configuration())
    await client.expect(201, "POST", MAPS, config_map("a", x="1"))
    assert [asked["object"]["data"] for asked in judge.asked] == [{"x": "1"}, {"x": "1", "y": "2"}]


async def test_a_mutating_webhook_may_refuse_and_its_patch_must_apply(client: Client, judge: Judge) -> None:
    await client.expect(201, "POST", MUTATING, judge.configuration())
    judge.answer = {"allowed": False, "status": {"message": "no", "code": 422}}
    await client.expect(422, "POST", MAPS, config_map("a"))
    judge.answer = patching({"op": "remove", "path": "/data/nothing"})
    said = await client.expect(500, "POST", MAPS, config_map("a"))
    assert 'webhook "judge.example.com" sent a patch that does not apply' in said["message"]
    await client.expect(404, "GET", f"{MAPS}/a")


@pytest.mark.parametrize(
    "selectors",
    [
        {"objectSelector": {"matchLabels": {"app": "other"}}},
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}},
    ],
)
async def test_a_webhook_is_not_asked_about_objects_that_its_selectors_leave_out(client: Client, judge: Judge, selectors: Object) -> None:
    configuration = judge.configuration()
    configuration["webhooks"][0] |= selectors
    await client.expect(201, "POST", MUTATING, configuration)
    await client.expect(201, "POST", HOOKS, configuration)
    await client.expect(201, "POST", MAPS, config_map("a"))
    assert judge.asked == []
