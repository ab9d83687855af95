"""`placewright profiles who`: pods of the cluster and of manifests, as people and programs read the answer."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from handlers.stage import Object, new_stage, operator
from kubesandbox.storage.writes import DeleteOptions

from .profile_desk import Desk

POLICY = Path(__file__).parents[2] / "manifests" / "components" / "profile-assignment" / "policy.yaml"
WEB = {"podSelector": {"matchLabels": {"app": "web"}}}


@pytest.fixture
async def desk(capsys: pytest.CaptureFixture[str]) -> AsyncIterator[Desk]:
    """With two profiles in effect; one of them wants a namespace with the label tier."""
    async with new_stage() as stage:
        made = Desk(stage.nodes(1), capsys)
        made.create("", "namespaces", {"metadata": {"name": "red", "labels": {"tier": "research"}}})
        configuration = {"metadata": {"name": "placewright-profile-assignment"}, "webhooks": []}
        made.create("admissionregistration.k8s.io", "mutatingwebhookconfigurations", configuration)
        stage.profile("low", schedulerName="low", pods=WEB)
        stage.profile("high", schedulerName="high", pods={**WEB, "namespaceSelector": {"matchLabels": {"tier": "research"}}, "priority": 9})
        async with operator(stage):
            await made.until_judged("low", 1)
            await made.until_judged("high", 1)
            yield made


def a_pod(name: str = "web", namespace: str = "", **spec: Any) -> Object:
    metadata = {"name": name, "labels": {"app": "web"}} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


def written(folder: Path, *contents: Object) -> str:
    file = folder / "pods.yaml"
    file.write_text(yaml.safe_dump_all(contents))
    return str(file)


async def test_a_manifest_gets_a_line_a_profile(desk: Desk, tmp_path: Path) -> None:
    ran = await desk("who", written(tmp_path, a_pod(namespace="red")))
    assert ran.code == 0
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert lines == [
        'pod red/web: profile "high" (schedulerName "high")',
        "PROFILE PRIORITY GETS IT WHY",
        "high 9 yes it selects the pod",
        'low 0 no it selects the pod, too, but "high" has the higher priority (9 to 0)',
    ]


async def test_a_namespace_that_does_not_exist_yet_has_no_labels_but_its_name(desk: Desk, tmp_path: Path) -> None:
    ran = await desk("who", "--pod-namespace", "new", written(tmp_path, a_pod()))
    assert ran.out.splitlines()[0] == 'pod new/web: profile "low" (schedulerName "low")'


async def test_workloads_are_asked_about_by_their_template(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}}
    nightly = {"jobTemplate": {"spec": {"template": template}}}
    job = {"kind": "CronJob", "metadata": {"name": "nightly", "namespace": "red"}, "spec": nightly}
    deployment = {"kind": "Deployment", "metadata": {"name": "shop"}, "spec": {"template": template}}
    service = {"kind": "Service", "metadata": {"name": "shop"}, "spec": {"ports": []}}
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps({"kind": "List", "items": [service, deployment, job]})))
    ran = await desk("who", "-o", "json", "-")
    assert [(each["pod"], each["said"]) for each in json.loads(ran.out)] == [
        ("in default of Deployment shop", 'profile "low" (schedulerName "low")'),
        ("in red of CronJob nightly", 'profile "high" (schedulerName "high")'),
    ]


async def test_a_pod_of_the_cluster_is_asked_about_by_its_name(desk: Desk) -> None:
    desk.stage.pod("mine", scheduler="low")
    ran = await desk("who", "default/mine")
    assert ran.out.splitlines()[0] == 'pod default/mine: profile "low" (schedulerName "low")'


async def test_pods_of_the_operators_own_namespace_are_never_given_one(desk: Desk, tmp_path: Path) -> None:
    ran = await desk("who", "--operator-namespace", "red", written(tmp_path, a_pod(namespace="red")))
    assert 'no profile: it keeps schedulerName "default-scheduler", as pods of namespace "red" are never given a profile' in ran.out


async def test_without_an_admission_no_pod_gets_a_profile_that_it_does_not_name(desk: Desk, tmp_path: Path) -> None:
    resource = desk.stage.sandbox.resource("admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations")
    desk.stage.sandbox.writes.delete(resource, "", "placewright-profile-assignment", DeleteOptions())
    none = "no admission in this cluster gives profiles to pods: manifests/components/profile-assignment is not installed"
    ran = await desk("who", "-o", "json", written(tmp_path, a_pod(namespace="red"), a_pod("named", "red", schedulerName="low")))
    unnamed, named = json.loads(ran.out)
    assert unnamed["said"] == f'no profile: it keeps schedulerName "default-scheduler", as {none}'
    assert not any(each["getsIt"] for each in unnamed["profiles"])
    assert named["said"] == 'profile "low" (schedulerName "low")'


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{kind: Service, metadata: {name: a}}", "found no pod; allowed a Pod, or a workload with a template of pods"),
        ("[1]", "found [1]; allowed manifests"),
        ("{kind: Pod, metadata: {name: 3}, spec: {}}", "Pod: "),
        ("a: [", "pods.yaml"),
    ],
)
async def test_what_is_no_pod_is_one_line(desk: Desk, tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "pods.yaml").write_text(content)
    ran = await desk("who", str(tmp_path / "pods.yaml"))
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("name", ["default/nobody", "web", "a/b/c"])
async def test_a_pod_that_is_not_there_is_one_line(desk: Desk, name: str) -> None:
    ran = await desk("who", name)
    assert ran.code == 2
    assert ("there is no pod default/nobody" if name == "default/nobody" else "allowed NAMESPACE/NAME of a pod") in ran.err
