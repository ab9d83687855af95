"""The shipped role: with it everything works, and with any one of its rights taken away a named thing does not.

Each scenario below is something that the operator does, run in a sandbox that enforces RBAC, as its ServiceAccount. A table says which
right each scenario is red without.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
import yaml

from handlers.stage import DEADLINE
from handlers.test_devices import Devices
from handlers.test_volumes import Storage
from kubesandbox.devices.layouts import EXTENDED_RESOURCE
from kubesandbox.faults import Rule
from placewright.api.decode import convert
from placewright.api.objects import Pod
from placewright.api.pods import PodInfo
from placewright.engine.ownrole import own_role_yaml
from placewright.engine.permissions import main, needed_by, needs, role_yaml
from placewright.engine.profilehistory import KEPT
from placewright.http import routes
from placewright.http.routes import Endpoint, Question
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright.kube.errors import RequestError
from placewright.kube.history import PROFILE_LABEL, RESULT
from placewright.kube.writers.events import HttpEventRecorder
from placewright.leadership.leaseobject import CannotElect
from placewright.plugins.catalog import in_tree
from placewright.profiles.config import read_profiles
from placewright.profiles.resolve import resolve
from placewright.serving.access import AskingTheApiServer
from randomcases import some

from .rights import (
    DEVICE_RIGHTS,
    GROUP_RIGHTS,
    NAMESPACE,
    Manifest,
    Refused,
    Right,
    Trial,
    new_trial,
    rights_of,
    role_without,
    shipped,
)

ROLE = shipped("clusterrole")
OWN_ROLE = shipped("role")
BINDING = "/binding"


async def it_reads_and_follows_everything(trial: Trial) -> None:
    """Lists what it needs, elects itself, and keeps a watch open on each."""
    wanted = {(right.group, right.resource) for right in rights_of(ROLE) + rights_of(OWN_ROLE) if right.verb == "watch"}
    async with trial.operator() as running:
        await trial.until(lambda: trial.watched() >= wanted and running.engine.leading.leadership.active, "everything is watched")


async def it_places_a_pod_and_says_so(trial: Trial) -> None:
    """Binding, event."""
    trial.stage.nodes(1).pod("web")
    async with trial.operator():
        await trial.until(lambda: trial.stage.placed("web"), "the pod is placed")
        await trial.until(lambda: [each for each in trial.stage.events("web") if each[0] == "Scheduled"], "the event is written")


async def it_says_on_the_pod_why_it_waits(trial: Trial) -> None:
    """The condition PodScheduled."""
    trial.stage.pod("web")
    async with trial.operator():
        await trial.until(lambda: trial.stage.condition("web"), "the condition is written")


async def it_reports_on_a_profile(trial: Trial) -> None:
    """The profile's status, and an event."""
    async with trial.operator():
        await trial.until(lambda: trial.stage.profile_condition("Ready"), "the status is written")
        await trial.until(lambda: trial.stage.events("default"), "the event is written")


async def it_advises_a_profile_that_no_admission_gives(trial: Trial) -> None:
    """A profile that selects pods, in a cluster without the admission that reads selectors."""
    trial.stage.profile("selects", schedulerName="selects", pods={"podSelector": {}})
    async with trial.operator():
        await trial.until(lambda: "no admission" in trial.stage.profile_condition("Advice", "selects").get("message", ""), "it is advised")


async def it_keeps_the_history_of_a_profile(trial: Trial) -> None:
    """Looks for what is recorded, and records a generation."""
    async with trial.operator():
        await trial.until(lambda: revisions(trial, "default"), "the generation is recorded")


async def it_marks_a_generation_that_takes_effect_later(trial: Trial) -> None:
    """One that had to wait for another profile's schedulerName."""
    trial.stage.profile("younger")
    async with trial.operator():
        await trial.until(lambda: results(trial, "younger") == ["SchedulerNameTaken"], "the generation is recorded")
        trial.stage.delete_profile()
        await trial.until(lambda: results(trial, "younger") == ["Active"], "it is marked")


async def it_lets_old_history_go(trial: Trial) -> None:
    """One in, one out."""
    resource = trial.stage.sandbox.resource("apps", "v1", "controllerrevisions")
    for number in range(1, KEPT + 1):
        metadata = {"name": f"old-{number}", "labels": {PROFILE_LABEL: "default"}}
        data = {"profile": "default", "uid": "another", "generation": number, "spec": {}}
        trial.stage.sandbox.writes.create(resource, NAMESPACE, {"metadata": metadata, "revision": number, "data": data})
    async with trial.operator():
        await trial.until(lambda: revisions(trial, "default")[:1] == [2], "the oldest is gone")


def revisions(trial: Trial, profile: str) -> list[int]:
    return [each["revision"] for each in history(trial, profile)]


def results(trial: Trial, profile: str) -> list[str]:
    return [each["metadata"]["annotations"][RESULT] for each in history(trial, profile)]


def history(trial: Trial, profile: str) -> list[Manifest]:
    key = trial.stage.sandbox.resource("apps", "v1", "controllerrevisions").key
    found = [each.object for each in trial.stage.sandbox.store.listed(key) if each.object["data"]["profile"] == profile]
    return sorted(found, key=lambda each: int(each["revision"]))


async def it_makes_room_for_a_pod_that_is_more_important(trial: Trial) -> None:
    """Preemption."""
    stage = trial.stage.node("full", cpu="1").pod("victim", cpu="1")
    urgent_class(trial)
    async with trial.operator():
        await trial.until(lambda: stage.placed("victim"), "the first pod is placed")
        urgent_pod(trial)
        await trial.until(lambda: stage.placed("urgent"), "the urgent pod is placed")


def urgent_class(trial: Trial) -> None:
    classes = trial.stage.sandbox.resource("scheduling.k8s.io", "v1", "priorityclasses")
    trial.stage.sandbox.writes.create(classes, "", {"metadata": {"name": "urgent"}, "value": 1000})


def urgent_pod(trial: Trial) -> None:
    """A pod as large as a node, which may have others evicted."""
    container = {"name": "main", "image": "example.test/main", "resources": {"requests": {"cpu": "1"}}}
    spec = {"schedulerName": "placewright", "priorityClassName": "urgent", "containers": [container]}
    pods = trial.stage.sandbox.resource("", "v1", "pods")
    trial.stage.sandbox.writes.create(pods, "default", {"metadata": {"name": "urgent"}, "spec": spec})


async def it_gives_a_claim_a_volume(trial: Trial) -> None:
    """Writes the claim into the volume."""
    storage = Storage(trial.stage)
    storage.storage_class("kubernetes.io/no-provisioner")
    storage.node("left")
    storage.volume("disk", "left")
    storage.pod_with_claim("web")
    async with trial.operator():
        await trial.until(lambda: storage.claimed_by("disk") == "web" and trial.stage.placed("web"), "the volume is claimed")


async def it_gives_a_claim_a_device(trial: Trial) -> None:
    """Writes finalizer, allocation and pod into the claim."""
    at = Devices(trial.stage.nodes(1))
    at.claim("mine")
    at.pod("web", {"resourceClaimName": "mine"})
    async with trial.operator():
        await trial.until(lambda: trial.stage.placed("web"), "the pod is placed")


async def it_replaces_a_claim_and_its_status(trial: Trial) -> None:
    """As where a patch would change the text of a driver's parameters; the sandbox reads claims in JSON only, and the right is the same."""
    at = Devices(trial.stage.nodes(1))
    at.claim("mine")
    path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/mine"
    result = {"request": "gpu", "driver": "gpu.example.com", "pool": "node-0", "device": "gpu-0"}
    async with ApiClient(load_config(str(trial.kubeconfig()))) as client:
        with suppress(RequestError):
            await client.put(path, await client.get(path))
        with suppress(RequestError):
            there = msgspec.json.decode(await client.get(path))
            await client.put(f"{path}/status", {**there, "status": {"allocation": {"devices": {"results": [result]}}}})
        await trial.until(at.taken, "the claim is written")


async def it_takes_a_device_back(trial: Trial) -> None:
    """Looks at the claim of a pod that could not be bound, and frees it."""
    at = Devices(trial.stage.nodes(1))
    at.claim("mine")
    trial.stage.sandbox.faults.add(Rule(code=422, method="POST", path="/pods/web/binding"))
    at.pod("web", {"resourceClaimName": "mine"})
    async with trial.operator():
        await trial.until(at.taken, "the claim is written")
        await trial.until(lambda: not at.taken(), "the device is free")


async def it_makes_a_claim_for_an_extended_resource_and_takes_it_back(trial: Trial) -> None:
    """Creates the claim, and deletes it when the pod could not be bound."""
    at = Devices(trial.stage.nodes(1))
    trial.stage.sandbox.faults.add(Rule(code=422, method="POST", path="/pods/web/binding"))
    at.pod("web", resources={"requests": {EXTENDED_RESOURCE: "1"}, "limits": {EXTENDED_RESOURCE: "1"}})
    async with trial.operator():
        await trial.until(at.taken, "the claim is written")
        await trial.until(lambda: not list(at.claims()), "the claim is gone")


async def it_says_where_a_volume_is_to_be_made(trial: Trial) -> None:
    """Writes the node onto the claim."""
    storage = Storage(trial.stage)
    storage.storage_class("example.test/maker")
    storage.node("left", zone="west")
    storage.pod_with_claim("web")
    async with trial.operator():
        await trial.until(lambda: storage.selected_node("web") == "left" and trial.stage.placed("web"), "the claim names the node")


async def it_looks_before_it_binds_again(trial: Trial) -> None:
    """After a Binding without an answer."""
    trial.stage.sandbox.faults.add(Rule(method="POST", path=BINDING, lose_answer=True, times=1))
    trial.stage.nodes(1).pod("web")
    async with trial.operator() as running:
        await trial.until(lambda: running.engine.writing.binder.counts.bound, "it is known that the pod is bound")


async def it_counts_repeated_events(trial: Trial) -> None:
    """The second time the same is said, the first event becomes a series."""
    stage = trial.stage.pod("web")
    pod = PodInfo(convert(stage.show("web"), Pod))
    async with ApiClient(load_config(str(trial.kubeconfig()))) as client:
        recorder = HttpEventRecorder(client, instance="test", series_interval=0.0, attempts=1)
        recorder.start()
        try:
            for times in (1, 2):
                recorder.record(pod, "Warning", "FailedScheduling", "Scheduling", "no room")
                await trial.until(lambda n=times: recorder.counts.written == n, "the event is written")  # type: ignore[misc]
        finally:
            await recorder.close()


async def it_says_what_became_of_a_group(trial: Trial) -> None:
    """The status of scheduler-plugins' form."""
    spec = {"minMember": 1}
    await placed_group(trial, "scheduling.x-k8s.io", "v1alpha1", spec, {"labels": {"scheduling.x-k8s.io/pod-group": "train"}}, {})


async def it_says_what_became_of_a_native_group(trial: Trial) -> None:
    """The condition of Kubernetes' own form."""
    spec = {"schedulingPolicy": {"gang": {"minCount": 1}}}
    await placed_group(trial, "scheduling.k8s.io", "v1alpha2", spec, {}, {"schedulingGroup": {"podGroupName": "train"}})


async def it_says_what_became_of_a_tree(trial: Trial) -> None:
    """The condition of a group of groups."""
    sandbox = trial.stage.sandbox
    composites = sandbox.resource("scheduling.k8s.io", "v1alpha3", "compositepodgroups")
    root = {"metadata": {"name": "root"}, "spec": {"schedulingPolicy": {"gang": {"minGroupCount": 1}}}}
    sandbox.writes.create(composites, "default", root)
    spec = {"schedulingPolicy": {"gang": {"minCount": 1}}, "parentCompositePodGroupName": "root"}
    await placed_group(trial, "scheduling.k8s.io", "v1alpha2", spec, {}, {"schedulingGroup": {"podGroupName": "train"}})
    async with trial.operator():
        await trial.until(lambda: sandbox.writes.current(composites, "default", "root").object.get("status"), "the root has a status")


async def placed_group(trial: Trial, group: str, version: str, spec: Manifest, metadata: Manifest, pod_spec: Manifest) -> None:
    """A group of one, and what its object says once it is placed."""
    sandbox = trial.stage.nodes(1).sandbox
    groups, pods = sandbox.resource(group, version, "podgroups"), sandbox.resource("", "v1", "pods")
    sandbox.writes.create(groups, "default", {"metadata": {"name": "train"}, "spec": spec})
    container = {"name": "main", "image": "example.test/main"}
    member = {"metadata": {"name": "web", **metadata}, "spec": {"schedulerName": "placewright", "containers": [container], **pod_spec}}
    sandbox.writes.create(pods, "default", member)
    async with trial.operator():
        await trial.until(lambda: sandbox.writes.current(groups, "default", "train").object.get("status"), "the group has a status")


async def it_asks_who_may_read_its_pages(trial: Trial) -> None:
    """Whose a token is, and what they may."""
    token = reader(trial, "/configz")
    async with ApiClient(load_config(str(trial.kubeconfig()))) as client:
        page = Endpoint("/configz", cast(Any, None))
        with suppress(routes.RequestRefused):
            await AskingTheApiServer(client).admit(page, Question("/configz", authorization=f"Bearer {token}"))
        await trial.until(lambda: True, "the reader is let in")


def reader(trial: Trial, path: str) -> str:
    """The token of an account that may get this path, and nothing else."""
    sandbox, group = trial.stage.sandbox, "rbac.authorization.k8s.io"
    reference = {"apiGroup": group, "kind": "ClusterRole", "name": "reader"}
    subject = {"kind": "ServiceAccount", "name": "reader", "namespace": "default"}
    sandbox.writes.create(sandbox.resource("", "v1", "serviceaccounts"), "default", named())
    rules = [{"nonResourceURLs": [path], "verbs": ["get"]}]
    sandbox.writes.create(sandbox.resource(group, "v1", "clusterroles"), "", {**named(), "rules": rules})
    binding = {**named(), "roleRef": reference, "subjects": [subject]}
    sandbox.writes.create(sandbox.resource(group, "v1", "clusterrolebindings"), "", binding)
    return sandbox.access.new_token("default", "reader")


def named() -> Manifest:
    return {"metadata": {"name": "reader"}}


Scenario = Callable[[Trial], Awaitable[None]]
SCENARIOS: tuple[Scenario, ...] = (
    it_reads_and_follows_everything,
    it_places_a_pod_and_says_so,
    it_says_on_the_pod_why_it_waits,
    it_reports_on_a_profile,
    it_makes_room_for_a_pod_that_is_more_important,
    it_gives_a_claim_a_volume,
    it_says_where_a_volume_is_to_be_made,
    it_gives_a_claim_a_device,
    it_replaces_a_claim_and_its_status,
    it_takes_a_device_back,
    it_makes_a_claim_for_an_extended_resource_and_takes_it_back,
    it_looks_before_it_binds_again,
    it_counts_repeated_events,
    it_advises_a_profile_that_no_admission_gives,
    it_keeps_the_history_of_a_profile,
    it_marks_a_generation_that_takes_effect_later,
    it_lets_old_history_go,
    it_asks_who_may_read_its_pages,
    it_says_what_became_of_a_group,
    it_says_what_became_of_a_native_group,
)
RED_WITHOUT: dict[Right, Scenario] = {
    Right("", "pods/binding", "create"): it_places_a_pod_and_says_so,
    Right("events.k8s.io", "events", "create"): it_places_a_pod_and_says_so,
    Right("events.k8s.io", "events", "patch"): it_counts_repeated_events,
    Right("", "pods/status", "patch"): it_says_on_the_pod_why_it_waits,
    Right("", "pods", "get"): it_looks_before_it_binds_again,
    Right("", "pods", "delete"): it_makes_room_for_a_pod_that_is_more_important,
    Right("", "persistentvolumes", "patch"): it_gives_a_claim_a_volume,
    Right("", "persistentvolumeclaims", "patch"): it_says_where_a_volume_is_to_be_made,
    Right("scheduling.x-k8s.io", "podgroups/status", "patch"): it_says_what_became_of_a_group,
    Right("scheduling.k8s.io", "podgroups/status", "patch"): it_says_what_became_of_a_native_group,
    Right("scheduling.k8s.io", "compositepodgroups/status", "patch"): it_says_what_became_of_a_tree,
    Right("resource.k8s.io", "resourceclaims", "patch"): it_gives_a_claim_a_device,
    Right("resource.k8s.io", "resourceclaims/status", "patch"): it_gives_a_claim_a_device,
    Right("resource.k8s.io", "resourceclaims/binding", "patch"): it_gives_a_claim_a_device,
    Right("resource.k8s.io", "resourceclaims", "update"): it_replaces_a_claim_and_its_status,
    Right("resource.k8s.io", "resourceclaims/status", "update"): it_replaces_a_claim_and_its_status,
    Right("resource.k8s.io", "resourceclaims/binding", "update"): it_replaces_a_claim_and_its_status,
    Right("resource.k8s.io", "resourceclaims", "get"): it_takes_a_device_back,
    Right("resource.k8s.io", "resourceclaims", "create"): it_makes_a_claim_for_an_extended_resource_and_takes_it_back,
    Right("resource.k8s.io", "resourceclaims", "delete"): it_makes_a_claim_for_an_extended_resource_and_takes_it_back,
    Right("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "get"): it_advises_a_profile_that_no_admission_gives,
    Right("", "events", "create"): it_reports_on_a_profile,
    Right("placewright.dev", "schedulingprofiles/status", "patch"): it_reports_on_a_profile,
    Right("authentication.k8s.io", "tokenreviews", "create"): it_asks_who_may_read_its_pages,
    Right("authorization.k8s.io", "subjectaccessreviews", "create"): it_asks_who_may_read_its_pages,
}
"""What is not here is read or elected by, and `it_reads_and_follows_everything` without it no more."""
HISTORY = "controllerrevisions"
OWN_RED_WITHOUT: dict[tuple[str, str], Scenario] = {
    (HISTORY, "list"): it_keeps_the_history_of_a_profile,
    (HISTORY, "create"): it_keeps_the_history_of_a_profile,
    (HISTORY, "patch"): it_marks_a_generation_that_takes_effect_later,
    (HISTORY, "delete"): it_lets_old_history_go,
    **{("leases", verb): it_reads_and_follows_everything for verb in ("create", "get", "list", "watch", "update")},
}
"""What is red without a right of the Role in the operator's own namespace."""
#: The sandbox does not serve the kind, and answers 404 before it asks for rights; `tests/e2e/test_rbac.py` has a real server.
ON_A_REAL_SERVER = {Right("admissionregistration.k8s.io", "mutatingadmissionpolicies", "get")}
STARTING = [right for right in rights_of(ROLE) if right not in RED_WITHOUT and right not in ON_A_REAL_SERVER]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.__name__)
async def test_with_the_shipped_role_the_operator_is_refused_nothing(scenario: Scenario) -> None:
    async with new_trial(ROLE) as trial:
        await scenario(trial)
        assert not trial.refused()


@pytest.mark.parametrize("right", some([right for right in rights_of(ROLE) if right not in ON_A_REAL_SERVER]), ids=str)
async def test_without_one_right_something_that_needs_it_is_refused(right: Right) -> None:
    scenario = RED_WITHOUT.get(right, it_reads_and_follows_everything)
    async with new_trial(role_without(ROLE, right)) as trial:
        with pytest.raises(Refused) as refused:
            await scenario(trial)
    assert right.covers(refused.value.asked), f"{scenario.__name__} without {right}: {refused.value}"


async def test_where_preemption_is_not_allowed_its_pod_waits_and_others_are_placed() -> None:
    async with new_trial(role_without(ROLE, Right("", "pods", "delete"))) as trial:
        stage = trial.stage.node("full", cpu="1").pod("first", cpu="1")
        urgent_class(trial)
        async with trial.operator():
            await stage.until(lambda: stage.placed("first"))
            urgent_pod(trial)
            await stage.until(trial.refused, "the eviction is refused")
            stage.node("empty").pod("other", cpu="3")
            await stage.until(lambda: stage.placed("other"))
            assert stage.placed("first")


def test_the_command_prints_a_role_for_files_and_names_a_file_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(profile_text())
    bad.write_text(profile_text("{filter: {enabled: [{name: Nothing}]}}"))
    assert main([str(good)]) == 0
    assert yaml.safe_load(capsys.readouterr().out) == ROLE
    assert main([str(good), str(bad)]) == 2
    assert "Nothing" in capsys.readouterr().err
    assert main([str(tmp_path / "absent.yaml")]) == 2


PROFILE_WITHOUT_PREEMPTION = {"plugins": {"multiPoint": {"disabled": [{"name": "DefaultPreemption"}]}}}


async def test_a_role_for_a_profile_is_enough_for_it() -> None:
    (read,) = read_profiles(profile_text("{multiPoint: {disabled: [{name: DefaultPreemption}]}}"), "test")
    role = yaml.safe_load(role_yaml(needed_by([resolve(read, in_tree())])))
    async with new_trial(role) as trial:
        stage = trial.stage.node("full", cpu="1").pod("first", cpu="1")
        stage.edit_profile(**PROFILE_WITHOUT_PREEMPTION)
        urgent_class(trial)
        async with trial.operator():
            await trial.until(lambda: stage.placed("first"), "the first pod is placed")
            urgent_pod(trial)
            await trial.until(lambda: stage.condition("urgent"), "the urgent pod is told that it waits")
            await trial.until(lambda: stage.profile_condition("Ready"), "the profile is reported on")
        assert not trial.refused()


@pytest.mark.parametrize("right", rights_of(OWN_ROLE), ids=str)
async def test_without_one_right_in_its_own_namespace_something_that_needs_it_is_refused(right: Right) -> None:
    scenario = OWN_RED_WITHOUT[right.resource, right.verb]
    async with new_trial(role_without(OWN_ROLE, right)) as trial:
        with pytest.raises(Refused) as refused:
            await scenario(trial)
        assert right.covers(refused.value.asked), f"{scenario.__name__} without {right}: {refused.value}"


async def test_without_any_right_to_keep_history_pods_are_placed_all_the_same() -> None:
    async with new_trial(own_role_of("leases")) as trial:
        trial.stage.nodes(1).pod("web")
        async with trial.operator():
            await trial.stage.until(lambda: trial.refused() and trial.stage.placed("web"), "the pod is placed without any history")
        assert {refusal.asked.resource for refusal in trial.stage.sandbox.access.authorizer.refusals} == {HISTORY}


async def test_without_rights_on_the_lease_it_does_not_start_and_says_what_to_apply() -> None:
    async with new_trial(own_role_of(HISTORY)) as trial, trial.operator() as running:
        with pytest.raises(CannotElect, match=r"may not be used.*apply manifests/base.*or run the only replica"):
            await asyncio.wait_for(asyncio.shield(running.task), DEADLINE)


def own_role_of(resource: str) -> Manifest:
    """The Role in the operator's namespace, with nothing but the rights on one resource."""
    return {**OWN_ROLE, "rules": [rule for rule in OWN_ROLE["rules"] if rule["resources"] == [resource]]}


def test_what_is_left_for_the_start_is_reading_and_electing() -> None:
    assert {right.verb for right in STARTING if right.group != "kopf.dev"} == {"list", "watch"}
    assert {right.verb for right in STARTING if right.group == "kopf.dev"} == {"get", "list", "watch", "patch"}


def test_the_role_in_the_base_is_the_one_that_is_generated() -> None:
    assert yaml.safe_load(role_yaml(list(needs()))) == ROLE
    assert yaml.safe_load(own_role_yaml()) == OWN_ROLE


def profile_text(plugins: str = "{}") -> str:
    spec = f"spec: {{schedulerName: x, plugins: {plugins}}}"
    return f"apiVersion: placewright.dev/v1alpha1\nkind: SchedulingProfile\nmetadata: {{name: x}}\n{spec}\n"


def rights_for(*documents: str) -> set[Right]:
    resolved = [resolve(read_profiles(each, "test")[0], in_tree()) for each in documents]
    return set(rights_of(yaml.safe_load(role_yaml(needed_by(resolved)))))


@pytest.mark.parametrize(
    ("plugin", "spared"),
    [
        ("DefaultPreemption", {Right("", "pods", "delete")}),
        ("VolumeBinding", {Right("", "persistentvolumes", "patch"), Right("", "persistentvolumeclaims", "patch")}),
        ("DynamicResources", DEVICE_RIGHTS),
        ("GangScheduling", GROUP_RIGHTS),
    ],
)
def test_a_role_for_profiles_without_a_plugin_lacks_what_only_that_plugin_needs(plugin: str, spared: set[Right]) -> None:
    everything = set(rights_of(ROLE))
    without = profile_text(f"{{multiPoint: {{disabled: [{{name: {plugin}}}]}}}}")
    assert rights_for(without) == everything - spared
    assert rights_for(without, profile_text()) == everything
