"""The webhook: what it refuses and lets pass, how the API server comes to ask it, and what happens while nobody answers."""

from __future__ import annotations

import base64
import datetime as dt
import ssl
from dataclasses import replace
from pathlib import Path
from typing import Any

import kopf
import pytest
from cryptography import x509

from kubectl.tool import Kubectl
from placewright.engine.certificates import self_signed
from placewright.engine.options import AdmissionOptions
from placewright.handlers import admission
from placewright.handlers.admission import answer_review, registry_with_admission
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright.kube.errors import ApiError
from placewright.kube.profiles import PROFILES_PATH
from placewright.plugins.catalog import in_tree
from ports import reserved_port
from programs import program
from serving.desk import trusting
from serving.intruders import intruders

from .stage import FAST, Object, Stage, operator

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


@pytest.mark.parametrize("habit", ["silent within TLS", "silent before TLS", "a body that never comes", "a byte at a time"])
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
