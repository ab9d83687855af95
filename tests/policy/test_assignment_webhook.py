"""The webhook for new pods: its answers to reviews, which are the policy's in another form, and the configuration that is shipped."""

from __future__ import annotations

import base64
import json
from typing import Any, cast

import pytest
import yaml

from kubesandbox.edits.jsonpatch import apply_json_patch
from placewright.api.decode import DecodeError, convert
from placewright.api.profile import SchedulingProfile
from placewright.api.workloads import Namespace
from placewright.handlers.podassignment import HANDLER, PodAssignment

from .admissionpolicy import COMPONENTS, Object, the_policy
from .test_assignment_policy import SEEDS, Drawn


class Asked:
    """The webhook with these profiles and namespaces, and no API server; pods are created in the first namespace."""

    def __init__(self, profiles: list[Object], *namespaces: Object) -> None:
        name = namespaces[0]["metadata"]["name"]
        by_name = {each["metadata"]["name"]: convert(each, Namespace) for each in namespaces}
        self.webhook = PodAssignment(cast(Any, None), by_name, "placewright-system")
        store = cast("dict[Any, Any]", self.webhook._reflector.store)
        store.update({profile["metadata"]["name"]: convert(profile, SchedulingProfile) for profile in profiles})
        self._namespace = name

    def response(self, pod: Object, **request: Any) -> Object:
        asked = {"uid": "u", "operation": "CREATE", "namespace": self._namespace, "object": pod, **request}
        answer = json.loads(self.webhook.answer(json.dumps({"request": asked}).encode()))
        assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
        response: Object = answer["response"]
        assert (response["uid"], response["allowed"]) == ("u", True)
        return response

    def admitted(self, pod: Object) -> Object:
        response = self.response(pod)
        if "patch" not in response:
            return pod
        assert response["patchType"] == "JSONPatch"
        patched: Object = apply_json_patch(pod, json.loads(base64.b64decode(response["patch"])))
        return patched


def giving(name: str) -> Object:
    metadata = {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"metadata": metadata, "spec": {"schedulerName": name, "pods": {"podSelector": {}}}, "status": {"activeGeneration": 1}}


NAMESPACE: Object = {"metadata": {"name": "red"}}
POD: Object = {"metadata": {"name": "web"}, "spec": {"schedulerName": "default-scheduler"}}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_webhook_and_the_policy_leave_every_pod_the_same(seed: int) -> None:
    drawn, policy = Drawn(seed), the_policy()
    for _ in range(15):
        profiles = [drawn.profile(name) for name in ("a", "b", "c")]
        namespace, pod = drawn.namespace(), drawn.pod(profiles)
        assert Asked(profiles, namespace).admitted(pod) == policy.admitted(pod, namespace, profiles)


@pytest.mark.parametrize("request_", [{"operation": "UPDATE"}, {"operation": "CREATE", "subResource": "binding"}])
def test_only_creations_of_pods_are_patched(request_: Object) -> None:
    asked = Asked([giving("a")], NAMESPACE)
    assert "patch" in asked.response(POD)
    assert "patch" not in asked.response(POD, **request_)


def annotated(name: str, **annotations: str) -> Object:
    return {"metadata": {"name": name, "annotations": {f"placewright.dev/{key}": value for key, value in annotations.items()}}}


WAITING: Object = {"metadata": {"name": "web"}, "spec": {"schedulerName": "a"}}


@pytest.mark.parametrize(
    ("namespaces", "allowed", "why"),
    [
        ([NAMESPACE], ["blue"], "spec.pods.allowedNamespaces does not name it"),
        (
            [annotated("red", **{"allowed-profiles": "b"})],
            None,
            "its annotation placewright.dev/allowed-profiles does not name the profile",
        ),
        (
            [NAMESPACE, annotated("kube-system", **{"default-allowed-profiles": "b"})],
            None,
            "it has no annotation placewright.dev/allowed-profiles, and placewright.dev/default-allowed-profiles on namespace kube-system "
            "does not name the profile",
        ),
    ],
)
def test_the_creator_of_a_pod_that_will_wait_is_warned_with_the_sentence_of_the_pod(
    namespaces: list[Object], allowed: list[str] | None, why: str
) -> None:
    profile = giving("a")
    profile["spec"]["pods"] = {} if allowed is None else {"allowedNamespaces": allowed}
    response = Asked([profile], *namespaces).response(WAITING)
    assert response["warnings"] == [f'namespace "red" may not use profile "a": {why}']
    assert "patch" not in response


@pytest.mark.parametrize("request_", [{"operation": "UPDATE"}, {"operation": "CREATE", "subResource": "binding"}, {"namespace": "blue"}])
def test_pods_that_may_use_their_profile_and_other_requests_bring_no_warning(request_: Object) -> None:
    profile = giving("a")
    profile["spec"]["pods"] = {"allowedNamespaces": ["blue"]}
    assert "warnings" not in Asked([profile], NAMESPACE).response(WAITING, **request_)


def test_without_profiles_every_pod_stays_as_it_is() -> None:
    assert "patch" not in Asked([], NAMESPACE).response(POD)


def test_a_namespace_that_the_cache_does_not_have_yet_has_no_labels() -> None:
    asked = Asked([giving("a")], {"metadata": {"name": "elsewhere"}})
    assert "patch" in asked.response(POD, namespace="red")


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"request": {"uid": "u"}}', b'{"request": {"uid": "u", "object": {"spec": 3}}}'])
def test_what_is_no_review_of_a_pod_is_refused(body: bytes) -> None:
    with pytest.raises(DecodeError):
        Asked([], NAMESPACE).webhook.answer(body)


def test_the_shipped_configuration_asks_about_the_pods_that_the_policy_is_evaluated_for() -> None:
    (hook,) = yaml.safe_load((COMPONENTS / "profile-assignment-webhook" / "configuration.yaml").read_text())["webhooks"]
    constraints = the_policy().constraints
    assert hook["namespaceSelector"] == constraints["namespaceSelector"]
    assert hook["objectSelector"] == constraints["objectSelector"]
    assert hook["rules"] == constraints["resourceRules"]
    assert (hook["failurePolicy"], hook["reinvocationPolicy"]) == ("Ignore", "IfNeeded")
    assert hook["clientConfig"]["service"]["path"] == f"/{HANDLER}"
