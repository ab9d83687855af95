"""The sample who-gets-it.yaml on a sandbox with a running operator: who is given the profile, who may use it, and what others are told."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import yaml

from handlers.stage import FAST, Object, Stage, new_stage, operator
from placewright.engine.options import AdmissionOptions
from placewright.handlers import lifecycle
from placewright.handlers.podassignment import PodAssignment
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from ports import reserved_port

from .admissionpolicy import COMPONENTS
from .samples import apply_sample

KEPT_OUT = 'namespace "default" may not use profile "research-batch": spec.pods.allowedNamespaces does not name it'
ADMISSION = "admissionregistration.k8s.io"


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with new_stage() as made:
        made.nodes(2)
        for name in ("physics", "chemistry"):
            create(made, "namespaces", "", {"metadata": {"name": name, "labels": {"tier": "research"}}})
        apply_sample(made, "who-gets-it.yaml")
        yield made


def create(stage: Stage, plural: str, namespace: str, content: Object) -> Object:
    return stage.sandbox.writes.create(stage.sandbox.resource("", "v1", plural), namespace, content).object


def a_pod(name: str, scheduler: str = "research-batch", **labels: str) -> Object:
    spec: Object = {"containers": [{"name": "main", "image": "example.test/main"}]} | ({"schedulerName": scheduler} if scheduler else {})
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


def node_of(stage: Stage, namespace: str, name: str) -> str:
    content = stage.sandbox.writes.current(stage.sandbox.resource("", "v1", "pods"), namespace, name).object
    return str(content["spec"].get("nodeName", ""))


async def test_a_pod_of_a_namespace_that_may_not_use_the_profile_waits_says_why_and_goes_on_when_it_may(stage: Stage) -> None:
    async with operator(stage) as running:
        create(stage, "pods", "physics", a_pod("allowed"))
        create(stage, "pods", "default", a_pod("kept-out"))
        await stage.until(lambda: node_of(stage, "physics", "allowed"))
        await stage.until(lambda: stage.condition("kept-out"))
        condition = stage.condition("kept-out")
        assert (condition["status"], condition["reason"], condition["message"]) == ("False", "Unschedulable", KEPT_OUT)
        await stage.until(lambda: ("FailedScheduling", KEPT_OUT) in stage.events("kept-out"))
        waiting = running.engine.deciding.queue.get(stage.show("kept-out")["metadata"]["uid"])
        assert waiting is not None
        assert (waiting.gated, waiting.attempts) == (True, 0)
        pods = stage.show_profile("research-batch")["spec"]["pods"]
        stage.edit_profile("research-batch", pods={**pods, "allowedNamespaces": [*pods["allowedNamespaces"], "default"]})
        await stage.until(lambda: stage.placed("kept-out"))
        assert stage.condition("kept-out")["status"] == "True"


async def test_a_second_profile_for_the_same_pods_with_the_same_priority_stalls_the_younger_with_both_names(stage: Stage) -> None:
    stage.profile("second", schedulerName="second", pods={"podSelector": {"matchLabels": {"workload": "batch"}}, "priority": 10})
    async with operator(stage):
        await stage.until(partial(stage.profile_condition, "Stalled", "second"), "it is Stalled")
        stalled = stage.profile_condition("Stalled", "second")
        assert stalled["reason"] == "PodsSelectedTwice"
        assert all(each in stalled["message"] for each in ('"second"', '"research-batch"'))
        for name in ("second", "research-batch"):
            assert stage.show_profile(name)["status"]["activeGeneration"] == 1, "it goes on placing the pods that name it"
        assert stage.profile_condition("Ready", "research-batch")["status"] == "True"
        await stage.until(lambda: "PodsSelectedTwice" in dict(stage.events("second")))
        stage.edit_profile("second", pods={"podSelector": {"matchLabels": {"workload": "batch"}}, "priority": 11})
        both = ("second", "research-batch")
        await stage.until(lambda: not any(stage.profile_condition("Stalled", name) for name in both), "neither is Stalled")


# --- pods that name no scheduler ---------------------------------------------------------------------------------------------------


class Assigning:
    """The webhook for pods as it is shipped, with the address of the operator in this process."""

    def __init__(self, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
        self.stage = stage
        self.made: list[PodAssignment] = []
        self.options = AdmissionOptions(address="127.0.0.1", port=reserved_port())
        monkeypatch.setattr(lifecycle, "PodAssignment", self._make)

    def _make(self, *parts: Any) -> PodAssignment:
        self.made.append(PodAssignment(*parts))
        return self.made[-1]

    def knows(self, name: str) -> bool:
        """Whether the webhook has seen a generation of the profile take effect."""
        profiles = self.made[-1]._reflector.store.values() if self.made else ()
        return any(profile.metadata.name == name and profile.status.active_generation > 0 for profile in profiles)

    async def install(self) -> None:
        """Apply the component; a sandbox has no services, so the address of the other webhook stands in."""
        validating = self.stage.sandbox.resource(ADMISSION, "v1", "validatingwebhookconfigurations")
        await self.stage.until(lambda: self.stage.sandbox.store.get(validating.key, "", "placewright"))
        (hook,) = self.stage.sandbox.writes.current(validating, "", "placewright").object["webhooks"]
        manifest = yaml.safe_load((COMPONENTS / "profile-assignment-webhook" / "configuration.yaml").read_text())
        path = manifest["webhooks"][0]["clientConfig"]["service"]["path"]
        bundle = hook["clientConfig"]["caBundle"]
        manifest["webhooks"][0]["clientConfig"] = {"url": f"https://127.0.0.1:{self.options.port}{path}", "caBundle": bundle}
        mutating = self.stage.sandbox.resource(ADMISSION, "v1", "mutatingwebhookconfigurations")
        self.stage.sandbox.writes.create(mutating, "", manifest)


@pytest.fixture
def assigning(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Assigning:
    return Assigning(stage, monkeypatch)


async def test_pods_that_the_profile_selects_get_it_without_naming_it_and_others_keep_their_scheduler(assigning: Assigning) -> None:
    stage = assigning.stage
    async with operator(stage, replace(FAST, admission=assigning.options)), ApiClient(load_config(str(stage.sandbox.kubeconfig))) as client:
        await assigning.install()
        await stage.until(lambda: assigning.knows("research-batch"))

        async def scheduler_of(namespace: str, content: Object) -> str:
            made = json.loads(await client.post(f"/api/v1/namespaces/{namespace}/pods", content))
            return str(made["spec"]["schedulerName"])

        assert await scheduler_of("physics", a_pod("sweep", "", workload="training")) == "research-batch"
        assert await scheduler_of("physics", a_pod("web", "", workload="web")) == "default-scheduler"
        assert await scheduler_of("default", a_pod("sweep", "", workload="training")) == "default-scheduler"
        opted_out = {"workload": "training", "placewright.dev/assign-profile": "false"}
        assert await scheduler_of("physics", a_pod("own", "", **opted_out)) == "default-scheduler"
        assert await scheduler_of("physics", a_pod("chosen", "another", workload="training")) == "another"
        assert await scheduler_of("kube-system", a_pod("system", "", workload="training")) == "default-scheduler"
        await stage.until(lambda: node_of(stage, "physics", "sweep"))
        given = stage.sandbox.writes.current(stage.sandbox.resource("", "v1", "pods"), "physics", "sweep").object
        created = stage.show_profile("research-batch")["metadata"]["creationTimestamp"]
        assert given["metadata"]["annotations"]["placewright.dev/assigned-profile"] == f"10 {created} research-batch research-batch"


async def test_while_no_replica_answers_pods_are_created_as_they_are(assigning: Assigning) -> None:
    stage = assigning.stage
    async with operator(stage, replace(FAST, admission=assigning.options)):
        await assigning.install()
    async with ApiClient(load_config(str(stage.sandbox.kubeconfig))) as client:
        made = json.loads(await client.post("/api/v1/namespaces/physics/pods", a_pod("sweep", "", workload="training")))
    assert made["spec"]["schedulerName"] == "default-scheduler"
