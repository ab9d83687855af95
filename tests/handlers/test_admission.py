"""The webhook: what it refuses and lets pass, how the API server comes to ask it, and what happens while nobody answers."""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
import difflib
import json
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import aiohttp
import kopf
import msgspec
import pytest
from aiohttp import web
from cryptography import x509

from intruders import intruders
from kubectl.tool import Kubectl
from placewright.engine.options import AdmissionOptions
from placewright.handlers import admission
from placewright.handlers.admission import AdmissionServer, answer_review, registry_with_admission
from placewright.http.certificates import self_made, self_signed
from placewright.kube.auth.login import ClusterAccess, load_config
from placewright.kube.client import ApiClient
from placewright.kube.errors import ApiError
from placewright.kube.profiles import PROFILES_PATH
from placewright.plugins.catalog import in_tree
from placewright.profiles.problem import MOST_PROBLEMS
from ports import reserved_port
from programs import program
from randomcases import some
from serving.desk import trusting

from .stage import DEADLINE, FAST, Object, Stage, operator

CONFIGURATIONS = ("admissionregistration.k8s.io", "validatingwebhookconfigurations")
NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def manifest(name: str = "p", **spec: Any) -> Object:
    metadata = {"name": name, "uid": "1", "creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": []}
    spec = {"schedulerName": "default-scheduler", **spec}
    return {"apiVersion": "placewright.dev/v1alpha1", "kind": "SchedulingProfile", "metadata": metadata, "spec": spec}


def verdict(new: Object, old: Object | None = None) -> str:
    try:
        answer_review(new, old, in_tree())
    except kopf.AdmissionError as refused:
        return f"{refused.code}: {refused}"
    return ""


# --- what is checked -------------------------------------------------------------------------------------------------------------


def test_a_profile_that_can_come_into_effect_passes() -> None:
    assert verdict(manifest(weights={"NodeResourcesFit": 3})) == ""


def test_everything_that_is_wrong_is_said_in_one_line() -> None:
    said = verdict(manifest(weights={"NodeResourceFit": 3}, backoff={"initialSeconds": 3, "maxSeconds": 2}))
    assert said.startswith('422: spec.weights.NodeResourceFit: found "NodeResourceFit"; allowed a known plugin (did you mean')
    assert "; spec.backoff.maxSeconds: found 2; " in said


def test_the_scheduler_name_stays() -> None:
    assert "immutable" in verdict(manifest(schedulerName="b"), manifest(schedulerName="a"))
    assert verdict(manifest(schedulerName="a", paused=True), manifest(schedulerName="a")) == ""


def test_a_bad_profile_can_still_be_labelled_and_mended() -> None:
    bad = manifest(weights={"Nobody": 3})
    assert verdict(bad | {"metadata": bad["metadata"] | {"labels": {"a": "b"}}}, bad) == ""
    assert verdict(manifest(), bad) == ""
    assert verdict(manifest(weights={"Nobody": 4}), bad) != ""


AFFINITY = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a"}]}] * 1500}}


@pytest.mark.parametrize(
    "spec",
    [
        {f"f{i}": 1 for i in range(20_000)},
        {"weights": {f"NodeResourceFi{i}": 1 for i in range(20_000)}},
        {"weights": {f"NodeResourcesFit{i}": "many" for i in range(9_000)}},
        {"weights": dict.fromkeys(map(str, range(9_000)), 1) | {"last": "many"}},
        {"plugins": {"score": {"enabled": [{"name": f"NodeResourceFi{i}"} for i in range(9_000)]}}},
        {"plugins": {"multiPoint": {"disabled": [{"name": f"NodeResourceFi{i}"} for i in range(9_000)]}}},
        {"pluginConfig": [{"name": f"NodeResourceFi{i}"} for i in range(9_000)]},
        {"pluginConfig": [{"name": "NodeResourcesFit", "args": {f"f{i}": 1 for i in range(9_000)}}] * 10},
        {"pluginConfig": [{"name": "NodeAffinity", "args": {"addedAffinity": AFFINITY}}]},
        {"pluginConfig": [{"name": "NodeResourcesFit", "args": {"ignoredResources": ["x/y"] * 20_000}}]},
        {"preset": "NodeResourcesFit" * 50_000},
        {"weights": {"NodeResourceFit" * 10_000: 1}},
    ],
)
def test_a_profile_with_thousands_of_faults_costs_no_more_than_one_with_a_hundred(spec: Object, monkeypatch: pytest.MonkeyPatch) -> None:
    compared, converted, looked = Counter[str](), Counter[str](), list[str]()
    closest, convert = difflib.get_close_matches, msgspec.convert

    def counted(name: str, known: Any, **more: Any) -> Any:
        compared[name] += 1
        return closest(name, known, **more)

    def counting(document: Any, kind: Any, **more: Any) -> Any:
        converted[str(kind)] += 1
        return convert(document, kind, **more)

    monkeypatch.setattr(difflib, "get_close_matches", counted)

    def looking(group: str) -> Any:
        looked.append(group)
        return entry_points(group=group)

    monkeypatch.setattr(msgspec, "convert", counting)
    monkeypatch.setattr("placewright.framework.registry.entry_points", looking)
    catalogue = in_tree()
    looked.clear()
    with pytest.raises(kopf.AdmissionError) as refused:
        answer_review(manifest(**spec), None, catalogue)
    assert str(refused.value).startswith("spec")
    assert len(str(refused.value)) < 9_000
    assert len(looked) <= 2
    assert compared.total() <= 2 * MOST_PROBLEMS
    assert converted.total() <= 20 * MOST_PROBLEMS
    assert all(len(name) < 300 for name in compared)


def test_the_fault_of_one_entry_among_thousands_is_still_named() -> None:
    many = {f"w{i}": 1 for i in range(3_000)} | {"here": "three", "there": "four"} | {f"x{i}": 1 for i in range(3_000)}
    said = verdict(manifest(weights=many))
    assert said == '422: spec.weights.here: found "three"; allowed a whole number; spec.weights.there: found "four"; allowed a whole number'


# --- what reaches the check --------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def webhook(fn: Callable[..., Any]) -> AsyncIterator[tuple[str, int]]:
    """The address of a server that answers as the webhook does, without its certificates; `fn` is what Kopf would have it call."""
    async with ApiClient(ClusterAccess("http://127.0.0.1:1")) as client:
        server = AdmissionServer(AdmissionOptions(address="127.0.0.1", port=0), client)

        async def serve(request: web.Request) -> web.Response:
            return await server._serve(fn, request)

        app = web.Application()
        app.add_routes([web.post("/{id:.*}", serve)])
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            host, port = runner.addresses[0][:2]
            yield host, port
        finally:
            await runner.cleanup()


async def posted(address: tuple[str, int], body: bytes) -> int:
    async with aiohttp.ClientSession() as session, session.post(f"http://{address[0]}:{address[1]}/profiles", data=body) as answer:
        return answer.status


async def never(*_: Any, **__: Any) -> Any:
    pytest.fail("this was to be refused before anybody looks at it")


def review(**request: Any) -> bytes:
    return json.dumps({"request": {"uid": "u", "object": manifest(), **request}}).encode()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (review(object=[{}] * 30_000), 413),
        (review(object=[[[[[{}]]]] * 8_000]), 413),
        (review(object=manifest(weights={f"w{i}": i for i in range(30_000)})), 413),
        (b"x" * (2**20 + 1), 413),
        (b"[" * 500_000, 400),
        (b"[]", 400),
        (b"{}", 400),
        (b"nonsense", 400),
        (review(object=[1]), 400),
        (review(object={"metadata": None}), 400),
        (review(oldObject="text"), 400),
    ],
)
async def test_what_is_no_review_or_too_much_of_one_is_refused_before_it_is_looked_at(body: bytes, status: int) -> None:
    async with webhook(never) as address:
        assert await posted(address, body) == status


async def test_a_review_whose_client_is_gone_ends() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def wait(*_: Any, **__: Any) -> Any:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    body = review()
    async with ApiClient(ClusterAccess("http://127.0.0.1:1")) as client, asyncio.timeout(DEADLINE):
        server = AdmissionServer(AdmissionOptions(address="127.0.0.1", port=0), client)
        async with server._listening(wait, self_made()) as port:
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=ssl._create_unverified_context())
            writer.write(b"POST /profiles HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            await begun.wait()
            writer.close()
            await ended.wait()


async def test_kopf_remembers_no_object_that_somebody_asks_about() -> None:
    """It keeps one memory for each uid that is to be changed, for ever."""
    seen = list[Any]()

    async def noted(data: Any, **_: Any) -> Any:
        seen.extend(data["request"][part]["metadata"]["uid"] for part in ("object", "oldObject"))
        return {"response": {"allowed": True}}

    async with webhook(noted) as address:
        for uid in ("a", "b"):
            one = manifest() | {"metadata": {"name": "p", "uid": uid}}
            assert await posted(address, review(operation="UPDATE", object=one, oldObject=one)) == 200
    assert len(seen) == 4
    assert len(set(seen)) == 1


def test_only_a_kopf_that_serves_the_webhook_has_its_handler() -> None:
    registered = registry_with_admission()
    assert len(registered._webhooks.get_all_handlers()) == 1
    assert not kopf.get_default_registry()._webhooks.get_all_handlers()
    assert registered._watching.get_all_handlers() != []


# --- certificates ------------------------------------------------------------------------------------------------------------------


def test_a_certificate_of_our_own_is_for_its_names_and_vouches_for_itself() -> None:
    certificate, key = self_signed(["127.0.0.1", "webhook.placewright.svc", "127.0.0.1"], NOW)
    parsed = x509.load_pem_x509_certificate(certificate)
    names = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["webhook.placewright.svc"]
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]
    assert parsed.not_valid_before_utc < NOW < parsed.not_valid_after_utc
    assert b"PRIVATE KEY" in key
    assert ssl.create_default_context(cadata=certificate.decode()).get_ca_certs()


# --- the API server asks -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def options() -> AdmissionOptions:
    return AdmissionOptions(address="127.0.0.1", port=reserved_port())


def webhooks(stage: Stage, name: str = "placewright") -> list[Object]:
    found = stage.sandbox.store.get(CONFIGURATIONS, "", name)
    return list(found.object["webhooks"]) if found is not None else []


async def create(stage: Stage, content: Object) -> str:
    """What the API server says of a new profile; empty when it takes it."""
    async with ApiClient(load_config(str(stage.sandbox.kubeconfig))) as client:
        try:
            await client.post(PROFILES_PATH, content | {"metadata": {"name": content["metadata"]["name"]}})
        except ApiError as refused:
            return str(refused)
    return ""


BAD = manifest("bad", schedulerName="bad", weights={"NodeResourceFit": 3})
GOOD = manifest("good", schedulerName="good", weights={"NodeResourcesFit": 3})


async def test_a_bad_profile_is_not_stored_and_a_good_one_is(stage: Stage, options: AdmissionOptions) -> None:
    async with operator(stage, replace(FAST, admission=options)):
        await stage.until(lambda: webhooks(stage), "a webhook configuration")
        said = await create(stage, BAD)
        assert 'admission webhook "profiles.placewright.dev" denied the request: spec.weights.NodeResourceFit' in said
        assert await create(stage, GOOD) == ""
        stage.pod("web", scheduler="good")
        await stage.until(lambda: stage.placed("web"))
    (hook,) = webhooks(stage)
    assert (hook["failurePolicy"], hook["sideEffects"]) == ("Ignore", "None")
    assert hook["clientConfig"]["url"] == f"https://127.0.0.1:{options.port}/profiles"


async def test_a_rule_of_the_definition_refuses_before_the_webhook_is_asked(stage: Stage, options: AdmissionOptions) -> None:
    """As real API servers with rules in CEL do: both would refuse this one, each in its own words."""
    worse = manifest("worse", schedulerName="worse", backoff={"initialSeconds": 3, "maxSeconds": 2})
    async with operator(stage, replace(FAST, admission=options)):
        await stage.until(lambda: webhooks(stage), "a webhook configuration")
        said = await create(stage, worse)
    assert said.endswith("spec.backoff: Invalid value: maxSeconds is at least initialSeconds, or 0 for no backoff")
    assert "webhook" not in said


async def test_while_nobody_answers_profiles_are_taken_unseen(stage: Stage, options: AdmissionOptions) -> None:
    async with operator(stage, replace(FAST, admission=options)):
        await stage.until(lambda: webhooks(stage), "a webhook configuration")
    assert await create(stage, BAD) == ""


async def test_with_the_policy_fail_nothing_is_taken_unseen(stage: Stage, options: AdmissionOptions) -> None:
    async with operator(stage, replace(FAST, admission=replace(options, failure_policy="Fail"))):
        await stage.until(lambda: webhooks(stage), "a webhook configuration")
        assert await create(stage, GOOD) == ""
    assert 'failed calling webhook "profiles.placewright.dev"' in await create(stage, BAD)


async def test_certificates_of_a_mounted_secret_are_served(stage: Stage, options: AdmissionOptions, tmp_path: Path) -> None:
    certificate, key = self_signed(["127.0.0.1"], dt.datetime.now(dt.UTC))
    for name, content in (("tls.crt", certificate), ("tls.key", key), ("ca.crt", certificate)):
        tmp_path.joinpath(name).write_bytes(content)
    async with operator(stage, replace(FAST, admission=replace(options, certificates=tmp_path))):
        await stage.until(lambda: webhooks(stage), "a webhook configuration")
        assert "denied the request" in await create(stage, BAD)


async def test_behind_a_service_the_service_is_what_the_api_server_is_told(stage: Stage, options: AdmissionOptions) -> None:
    served = replace(options, service=("placewright", "webhook", 443), configuration="other")
    async with operator(stage, replace(FAST, admission=served)):
        await stage.until(lambda: webhooks(stage, "other"), "a webhook configuration")
    (hook,) = webhooks(stage, "other")
    expected = {"namespace": "placewright", "name": "webhook", "port": 443, "path": "/profiles"}
    assert hook["clientConfig"]["service"] == expected
    assert "url" not in hook["clientConfig"]


async def test_a_scheduler_that_may_not_tell_the_api_server_says_so_and_goes_on(
    stage: Stage, options: AdmissionOptions, caplog: pytest.LogCaptureFixture
) -> None:
    unnamed = replace(options, configuration="Not A Name")
    async with operator(stage, replace(FAST, admission=unnamed)):
        await stage.until(lambda: "the API server was not told to ask" in caplog.text, "a warning")
        stage.pod("web")
        await stage.until(lambda: stage.placed("web"))
    assert webhooks(stage) == []


@pytest.mark.parametrize("habit", some(["a byte at a time", "silent within TLS", "silent before TLS", "a body that never comes"]))
async def test_whoever_opens_connections_keeps_no_review_out(stage: Stage, options: AdmissionOptions, habit: str) -> None:
    async with operator(stage, replace(FAST, admission=options)):
        await stage.until(lambda: webhooks(stage), "a webhook configuration")
        async with intruders(options.port, [habit] * 300, trusting()):
            assert "denied the request" in await create(stage, BAD)
            assert await create(stage, GOOD) == ""


async def test_a_certificate_that_is_replaced_is_served(
    stage: Stage, options: AdmissionOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "CHECK_SECONDS", 0.1)

    mounted = tmp_path / "mounted"

    def put(name: str) -> bytes:
        """As a kubelet does it: all files change in one moment."""
        certificate, key = self_signed(["127.0.0.1"], dt.datetime.now(dt.UTC), name)
        tmp_path.joinpath(name).mkdir()
        for file, content in (("tls.crt", certificate), ("tls.key", key), ("ca.crt", certificate)):
            tmp_path.joinpath(name, file).write_bytes(content)
        tmp_path.joinpath("next").symlink_to(name)
        tmp_path.joinpath("next").replace(mounted)
        return certificate

    def trusted() -> bytes:
        return base64.b64decode(webhooks(stage)[0]["clientConfig"]["caBundle"]) if webhooks(stage) else b""

    first = put("first")
    async with operator(stage, replace(FAST, admission=replace(options, certificates=mounted))):
        await stage.until(lambda: trusted() == first, "a webhook configuration")
        second = put("second")
        await stage.until(lambda: trusted() == second, "the new certificate")
        assert "denied the request" in await create(stage, BAD)


async def test_without_the_option_nothing_is_configured(stage: Stage) -> None:
    async with operator(stage):
        stage.pod("web")
        await stage.until(lambda: stage.placed("web"))
    assert webhooks(stage) == []


async def test_kubectl_shows_what_the_webhook_says(stage: Stage, options: AdmissionOptions, tmp_path: Path) -> None:
    kubectl = Kubectl(program("kubectl"), stage.sandbox.kubeconfig, tmp_path)
    async with operator(stage, replace(FAST, admission=options)):
        await stage.until(lambda: webhooks(stage), "a webhook configuration")
        said = await kubectl.fails("apply", "-f", "-", given=BAD | {"metadata": {"name": "bad"}})
        assert 'denied the request: spec.weights.NodeResourceFit: found "NodeResourceFit"' in said
        assert "did you mean 'NodeResourcesFit'?" in said
        assert "created" in await kubectl("apply", "-f", "-", given=GOOD | {"metadata": {"name": "good"}})
        patch = '{"spec":{"weights":{"Nobody":1}}}'
        assert "denied the request" in await kubectl.fails("patch", "schedprof", "good", "--type=merge", "-p", patch)
