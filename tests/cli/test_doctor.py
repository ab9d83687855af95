"""`placewright doctor` on sandboxes: well, ill in one way each, without an operator, and for somebody who may look at little."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from handlers.stage import new_stage, operator
from kubesandbox.faults import Rule
from placewright import __version__
from placewright.cli.doctor.command import diagnosed
from placewright.cli.doctor.patient import CheckResult, Level
from placewright.cli.main import main
from placewright.kube.auth.login import load_config

from .profile_desk import Desk

ROOT = Path(__file__).parents[2]
NAMESPACE = "placewright-system"
COLLECTIONS = {
    "Namespace": ("", "v1", "namespaces"),
    "ServiceAccount": ("", "v1", "serviceaccounts"),
    "ClusterRole": ("rbac.authorization.k8s.io", "v1", "clusterroles"),
    "ClusterRoleBinding": ("rbac.authorization.k8s.io", "v1", "clusterrolebindings"),
    "Role": ("rbac.authorization.k8s.io", "v1", "roles"),
    "RoleBinding": ("rbac.authorization.k8s.io", "v1", "rolebindings"),
    "Deployment": ("apps", "v1", "deployments"),
}
CHECKS = {
    "api-server", "clock", "openapi", "definitions", "operator", "image", "pods", "rights", "leader", "profiles",
    "packages", "unclaimed-pods",
    "second-scheduler",
}  # fmt: skip


@dataclass(frozen=True)
class Clinic:
    """A sandbox with what is shipped, and a doctor."""

    desk: Desk

    def create(self, group: str, version: str, plural: str, content: dict[str, Any]) -> None:
        resource = self.desk.stage.sandbox.resource(group, version, plural)
        namespace = content["metadata"].get("namespace", "")
        self.desk.stage.sandbox.writes.create(resource, namespace, content)

    def install(self, **image: str) -> Clinic:
        """What manifests/base has, but the definitions and the peering, which the operator makes itself."""
        for name in ("namespace", "serviceaccount", "clusterrole", "clusterrolebinding", "role", "rolebinding", "deployment"):
            content = yaml.safe_load((ROOT / "manifests" / "base" / f"{name}.yaml").read_text())
            if content["kind"] == "Deployment":
                content["metadata"]["labels"]["app.kubernetes.io/version"] = image.get("version", __version__)
            self.create(*COLLECTIONS[content["kind"]], content)
        return self

    def pod(self, name: str, **status: Any) -> Clinic:
        """A pod of the Deployment."""
        labels = {"app.kubernetes.io/name": "placewright", "app.kubernetes.io/component": "scheduler"}
        metadata = {"name": name, "namespace": NAMESPACE, "labels": labels}
        spec = {"nodeName": "of-another-kubelet", "containers": [{"name": "scheduler", "image": "placewright:0.1.0"}]}
        self.create("", "v1", "pods", {"metadata": metadata, "spec": spec})
        pods = self.desk.stage.sandbox.resource("", "v1", "pods")
        self.desk.stage.sandbox.writes.modify(pods, NAMESPACE, name, lambda pod: pod.update(status=status))
        return self

    def lease(self, namespace: str, name: str, *, since: float, holder: str = "somebody") -> None:
        renewed = (datetime.now(UTC) - timedelta(seconds=since)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed}
        self.create("coordination.k8s.io", "v1", "leases", {"metadata": {"name": name, "namespace": namespace}, "spec": spec})

    def modify(self, group: str, version: str, plural: str, name: str, change: Any) -> None:
        resource = self.desk.stage.sandbox.resource(group, version, plural)
        self.desk.stage.sandbox.writes.modify(resource, "", name, change)

    async def findings(self, **given: Any) -> dict[str, list[CheckResult]]:
        kubeconfig = self.desk.kubeconfig or self.desk.stage.sandbox.kubeconfig
        found: dict[str, list[CheckResult]] = {}
        for each in await diagnosed(load_config(str(kubeconfig)), NAMESPACE, **given):
            found.setdefault(each.check, []).append(each)
        return found

    async def one(self, check: str, **given: Any) -> CheckResult:
        (found,) = (await self.findings(**given))[check]
        assert (found.level is Level.OK) == (found.do == ""), "what is not well says what to do, and nothing else does"
        return found

    async def told(self, *words: str) -> tuple[int, str, str]:
        kubeconfig = self.desk.kubeconfig or self.desk.stage.sandbox.kubeconfig
        self.desk.capsys.readouterr()
        code = await asyncio.to_thread(main, ["doctor", "--kubeconfig", str(kubeconfig), *words])
        return code, *self.desk.capsys.readouterr()


RUNS = {
    "conditions": [{"type": "Ready", "status": "True"}],
    "containerStatuses": [{"name": "scheduler", "image": "placewright:0.1.0", "state": {"running": {}}}],
}


@pytest.fixture
async def clinic(capsys: pytest.CaptureFixture[str]) -> AsyncIterator[Clinic]:
    async with new_stage() as stage:
        yield Clinic(Desk(stage.nodes(1), capsys))


async def test_an_installation_that_is_well_is_ok_in_every_line(clinic: Clinic) -> None:
    clinic.install().pod("one", **RUNS).pod("two", **RUNS)
    clinic.desk.stage.profile()
    async with operator(clinic.desk.stage):
        await clinic.desk.until_judged("default", 1)
        code, out, err = await clinic.told()
    assert (code, err) == (0, ""), out
    *lines, counts = out.splitlines()
    assert {line.split()[1] for line in lines} == CHECKS
    assert {line.split()[0] for line in lines} == {"ok"}
    assert counts == f"{len(CHECKS)} ok, 0 warn, 0 fail"


async def test_without_an_operator_everything_else_is_looked_at_and_the_lack_of_a_leader_fails(clinic: Clinic) -> None:
    clinic.desk.stage.profile()
    code, out, err = await clinic.told("-o", "json")
    assert (code, err) == (1, "")
    data = json.loads(out)
    levels = {each["check"]: each["level"] for each in data["findings"]}
    assert levels == {
        "api-server": "ok", "clock": "ok", "openapi": "ok", "definitions": "ok", "operator": "warn", "rights": "warn", "leader": "fail",
        "profiles": "warn", "packages": "ok", "unclaimed-pods": "ok", "second-scheduler": "ok",
    }  # fmt: skip
    assert (data["ok"], data["warn"], data["fail"]) == (7, 3, 2)
    assert all(each["do"] for each in data["findings"] if each["level"] != "ok")


async def test_a_server_that_is_not_there_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listened to: nobody answers
        cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{taken.getsockname()[1]}"}}
        context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
        kubeconfig = tmp_path / "kubeconfig"
        content = {"clusters": [cluster], "contexts": [context], "users": [{"name": "u", "user": {}}], "current-context": "c"}
        kubeconfig.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", **content}))
        code = await asyncio.to_thread(main, ["doctor", "--kubeconfig", str(kubeconfig)])
    line, counts = capsys.readouterr().out.splitlines()
    assert code == 1 and counts == "0 ok, 0 warn, 1 fail"
    assert line.startswith("fail  api-server  http://127.0.0.1:") and "does not answer" in line and "->" in line


async def test_an_image_that_cannot_be_pulled_is_named_with_what_to_do(clinic: Clinic) -> None:
    state = {"waiting": {"reason": "ImagePullBackOff"}}
    clinic.install().pod("one", containerStatuses=[{"name": "scheduler", "image": "placewright:0.1.0", "state": state}])
    found = await clinic.one("image")
    assert found.level is Level.FAIL
    assert found.says == "pod one: image placewright:0.1.0 cannot be had (ImagePullBackOff)"
    assert "build the Dockerfile" in found.do


async def test_a_pod_that_crashes_is_named(clinic: Clinic) -> None:
    clinic.install().pod("one", containerStatuses=[{"name": "s", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}])
    found = await clinic.one("pods")
    assert found.level is Level.FAIL and found.do == "kubectl -n placewright-system logs one --previous"


async def test_nothing_is_said_of_an_image_that_nobody_has_asked_for_yet(clinic: Clinic) -> None:
    found = await clinic.install().pod("one", conditions=[]).findings()
    assert "image" not in found and found["pods"][0].says == "0 of 2 are ready"


async def test_where_nothing_is_installed_at_all_the_definitions_are_the_first_thing_to_do(clinic: Clinic) -> None:
    definitions = clinic.desk.stage.sandbox.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    for name in ("schedulingprofiles.placewright.dev", "clusterkopfpeerings.kopf.dev"):
        clinic.desk.stage.sandbox.writes.delete(definitions, "", name)
    found = await clinic.findings()
    assert [each.level for each in found["definitions"]] == [Level.FAIL, Level.FAIL]
    assert "kubectl apply --server-side -k crds" in found["profiles"][0].do
    assert all("install it" in each.do or "peering.yaml" in each.do for each in found["leader"])


async def test_a_deployment_without_pods_and_one_with_too_few_are_told(clinic: Clinic) -> None:
    clinic.install()
    assert (await clinic.one("pods")).says.startswith("the Deployment wants 2 pods, and there is none")
    clinic.pod("one", **RUNS)
    found = await clinic.one("pods")
    assert (found.level, found.says) == (Level.WARN, "1 of 2 are ready")


async def test_another_version_of_the_operator_is_a_warning(clinic: Clinic) -> None:
    clinic.install(version="9.9.9")
    found = await clinic.one("operator")
    assert (found.level, found.says) == (Level.WARN, f"the operator is 9.9.9, this placewright is {__version__}")


@pytest.mark.parametrize("name", ["schedulingprofiles.placewright.dev", "clusterkopfpeerings.kopf.dev"])
async def test_a_definition_that_is_missing_fails(clinic: Clinic, name: str) -> None:
    definitions = clinic.desk.stage.sandbox.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    clinic.desk.stage.sandbox.writes.delete(definitions, "", name)
    found = await clinic.one("definitions")
    assert (found.level, found.says) == (Level.FAIL, f"{name} is not there")
    assert "kubectl apply --server-side -k crds" in found.do


async def test_a_definition_of_another_version_is_told_with_the_place_where_it_differs(clinic: Clinic) -> None:
    name, where = "schedulingprofiles.placewright.dev", ("apiextensions.k8s.io", "v1", "customresourcedefinitions")

    def properties(content: Any) -> Any:
        return content["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]

    def older(content: Any) -> None:
        content["spec"] = json.loads(json.dumps(content["spec"]))
        del properties(content)["weights"]

    def newer(content: Any) -> None:
        content["spec"] = json.loads(json.dumps(content["spec"]))
        properties(content)["weights"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        properties(content)["zeal"] = {"type": "integer"}

    clinic.modify(*where, name, older)
    found = await clinic.one("definitions")
    assert found.level is Level.WARN and found.says.endswith("spec.properties.weights is missing")
    clinic.modify(*where, name, newer)
    assert (await clinic.one("definitions")).says.endswith("spec.properties.zeal is new")


async def test_a_version_that_is_stored_and_not_known_is_told(clinic: Clinic) -> None:
    name, where = "schedulingprofiles.placewright.dev", ("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    clinic.modify(*where, name, lambda each: each.update(status={**each["status"], "storedVersions": ["v1alpha1", "v1beta9"]}))
    assert (await clinic.one("definitions")).says.endswith("versions that this placewright does not know: v1beta9")


async def test_rights_that_are_always_needed_fail_and_a_plugin_s_are_a_warning(clinic: Clinic) -> None:
    clinic.install()
    role = ("rbac.authorization.k8s.io", "v1", "clusterroles", "placewright")
    clinic.modify(*role, lambda each: each.update(rules=[rule for rule in each["rules"] if rule["resources"] != ["pods/binding"]]))
    found = await clinic.one("rights")
    assert (found.level, found.says) == (Level.FAIL, "service account placewright may not create pods/binding")
    clinic.modify(*role, lambda each: each.update(rules=yaml.safe_load((ROOT / "manifests/base/clusterrole.yaml").read_text())["rules"]))
    assert (await clinic.one("rights")).level is Level.OK
    clinic.modify(*role, lambda each: each.update(rules=[rule for rule in each["rules"] if rule["verbs"] != ["delete"]]))
    found = await clinic.one("rights")
    assert found.level is Level.WARN and "may not delete pods: pods wait that need DefaultPreemption" in found.says


async def test_a_leader_that_has_not_renewed_its_lease_fails(clinic: Clinic) -> None:
    clinic.install()
    clinic.create("kopf.dev", "v1", "clusterkopfpeerings", {"metadata": {"name": "placewright"}})
    clinic.lease(NAMESPACE, "placewright", since=3)
    assert (await clinic.one("leader")).says.startswith("somebody leads, and renewed its Lease")
    later = (await clinic.findings())["leader"]
    assert [each.level for each in later] == [Level.OK]


async def test_a_lease_of_long_ago_means_that_nobody_leads(clinic: Clinic) -> None:
    clinic.install()
    clinic.create("kopf.dev", "v1", "clusterkopfpeerings", {"metadata": {"name": "placewright"}})
    clinic.lease(NAMESPACE, "placewright", since=60)
    found = await clinic.one("leader")
    assert found.level is Level.FAIL and "has not renewed it for 6" in found.says


@pytest.mark.parametrize(
    ("seconds", "level"),
    [(0.0, Level.OK), (1.0, Level.OK), (8.0, Level.WARN), (-8.0, Level.WARN), (40.0, Level.FAIL), (-3600.0, Level.FAIL)],
)
async def test_a_clock_that_differs_is_told(clinic: Clinic, seconds: float, level: Level) -> None:
    found = await clinic.one("clock", now=lambda: datetime.now(UTC) + timedelta(seconds=seconds))
    assert found.level is level
    if level is not Level.OK:
        assert ("ahead of" if seconds > 0 else "behind") in found.says


async def test_a_wrong_clock_here_makes_no_leader_look_dead(clinic: Clinic) -> None:
    clinic.install()
    clinic.create("kopf.dev", "v1", "clusterkopfpeerings", {"metadata": {"name": "placewright"}})
    clinic.lease(NAMESPACE, "placewright", since=1)
    found = await clinic.one("leader", now=lambda: datetime.now(UTC) + timedelta(hours=1))
    assert found.level is Level.OK


async def test_a_refused_profile_fails_and_advice_is_a_warning(clinic: Clinic) -> None:
    clinic.desk.stage.profile().profile("other", schedulerName="other")
    clinic.desk.stage.write_profile_unchecked("other", weights={"Nonsense": 1})
    async with operator(clinic.desk.stage):
        await clinic.desk.until_judged("other", 2)
        await clinic.desk.until_judged("default", 1)

    def advised(profile: Any) -> None:
        status = json.loads(json.dumps(profile["status"]))
        status["conditions"].append({"type": "Advice", "status": "True", "reason": "x", "message": "look"})
        profile["status"] = status

    clinic.modify("placewright.dev", "v1alpha1", "schedulingprofiles", "default", advised)
    found = (await clinic.findings())["profiles"]
    assert [(each.level, each.says.split(":")[0]) for each in found] == [(Level.WARN, "default"), (Level.FAIL, "other")]
    assert "Nonsense" in found[1].says and found[0].says == "default: Advice: look"
    assert found[1].do == "placewright validate checks a file before it is applied", "no generation was good that the history could show"
    clinic.desk.record("other", 1, {"schedulerName": "other"})
    found = (await clinic.findings())["profiles"]
    assert found[1].do == (
        "placewright profiles history other shows the last good one; placewright validate checks a file before it is applied"
    )


async def test_kube_scheduler_beside_a_profile_of_its_name_is_told(clinic: Clinic) -> None:
    clinic.desk.stage.profile()
    assert (await clinic.one("second-scheduler")).says == "kube-scheduler is not seen, and no profile takes default-scheduler"
    clinic.lease("kube-system", "kube-scheduler", since=2, holder="master-1")
    assert (await clinic.one("second-scheduler")).level is Level.OK
    clinic.desk.stage.profile("all", schedulerName="default-scheduler")
    found = await clinic.one("second-scheduler")
    assert found.level is Level.WARN and "while kube-scheduler is alive (master-1)" in found.says


async def test_pods_that_another_scheduler_places_under_a_profile_s_name_fail(clinic: Clinic) -> None:
    clinic.desk.stage.profile("all", schedulerName="default-scheduler")
    clinic.modify(
        "placewright.dev", "v1alpha1", "schedulingprofiles", "all",
        lambda each: each.update(metadata={**each["metadata"], "creationTimestamp": "2020-01-01T00:00:00Z"}),
    )  # fmt: skip
    assert (await clinic.one("second-scheduler")).level is Level.OK
    (name,) = clinic.desk.stage.pods(1, scheduler="default-scheduler")
    pods = clinic.desk.stage.sandbox.resource("", "v1", "pods")
    clinic.desk.stage.sandbox.writes.modify(pods, "default", name, lambda pod: pod["spec"].update(nodeName="node-0"))
    found = await clinic.one("second-scheduler")
    assert found.level is Level.FAIL and f"default/{name}" in found.says


async def test_pods_that_no_profile_takes_are_told(clinic: Clinic) -> None:
    clinic.desk.stage.profile()
    clinic.desk.stage.pods(2, scheduler="placewrigth")
    found = await clinic.one("unclaimed-pods")
    assert found.level is Level.WARN and found.says.startswith("2 pods wait: no profile takes pods of schedulerName 'placewrigth'")


async def test_openapi_that_is_not_served_is_told(clinic: Clinic) -> None:
    clinic.desk.stage.sandbox.faults.add(Rule(path="/openapi/v2", code=503))
    found = await clinic.one("openapi")
    assert (found.level, found.says) == (Level.WARN, "/openapi/v2 answers 503")


async def test_whoever_may_look_at_little_hears_what_was_not_looked_at(clinic: Clinic) -> None:
    clinic.install()
    clinic.desk.stage.profile()
    rights = [("placewright.dev", "schedulingprofiles", ["get", "list"])]
    little = replace(clinic, desk=clinic.desk.somebody("little", rights))
    code, out, err = await little.told("-o", "json")
    findings = json.loads(out)["findings"]
    assert err == "" and code in (0, 1)
    by_check = {each["check"]: each for each in findings}
    for check in ("definitions", "operator", "leader", "unclaimed-pods", "second-scheduler"):
        assert by_check[check]["level"] == "warn" and by_check[check]["says"].startswith("not checked: 403"), check
    assert by_check["rights"]["level"] == "warn"
    assert by_check["api-server"]["level"] == "ok"
