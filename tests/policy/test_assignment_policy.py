"""The CEL of the shipped policies, and the functions of the webhook and of `profiles who`: the same profile and warning for every pod."""

from __future__ import annotations

import random
from typing import Any, Final

import pytest
import yaml

from kubesandbox.edits.jsonpatch import apply_json_patch
from placewright.api.decode import convert
from placewright.api.objects import Pod
from placewright.api.profile import SchedulingProfile
from placewright.api.profileaccess import facts_of
from placewright.api.workloads import Namespace
from placewright.profiles.assignment import assigned_profile, new_pod, patch_of, placing_profile, refusal, value_of

from .admissionpolicy import COMPONENTS, AdmissionPolicy, Object, the_policy, the_use_policy

KEYS: Final = ("app", "tier", "e.x/team")
VALUES: Final = ("web", "db", "")
NEVER_IN: Final = {"kube-system", "placewright-system"}
SEEDS: Final = 12
ANNOTATION: Final = "placewright.dev/assigned-profile"


@pytest.fixture(scope="module")
def policy() -> AdmissionPolicy:
    return the_policy()


class Drawn:
    """Random profiles and pods, in which everything that decides is met often."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)

    def labels(self) -> dict[str, str]:
        return {key: self.dice.choice(VALUES) for key in KEYS if self.dice.random() < 0.5}

    def selector(self) -> Object:
        selector: Object = {}
        if self.dice.random() < 0.5:
            selector["matchLabels"] = {key: value for key, value in self.labels().items() if self.dice.random() < 0.5}
        if self.dice.random() < 0.3:
            selector["matchExpressions"] = [self.expression() for _ in range(self.dice.randrange(3))]
        return selector

    def expression(self) -> Object:
        operator = self.dice.choice(("In", "NotIn", "Exists", "DoesNotExist"))
        values = {"values": self.dice.sample(VALUES, self.dice.randint(1, 2))} if operator.endswith("In") else {}
        return {"key": self.dice.choice(KEYS), "operator": operator, **values}

    def profile(self, name: str) -> Object:
        pods: Object = {}
        for field in ("podSelector", "namespaceSelector"):
            if self.dice.random() < 0.6:
                pods[field] = self.selector()
        if pods and self.dice.random() < 0.7:
            pods["priority"] = self.dice.choice((-(2**31), -1, 0, 7, 2**31 - 1))
        if self.dice.random() < 0.3:
            pods["allowedNamespaces"] = self.dice.sample(("red", "blue", "kube-system"), 2)
        if self.dice.random() < 0.3:
            pods["allowedNamespaceSelector"] = self.selector()
        spec: Object = {"schedulerName": f"scheduler of {name}" if self.dice.random() < 0.3 else name}
        if self.dice.random() < 0.9:
            spec["pods"] = pods
        if self.dice.random() < 0.2:
            spec["mode"] = self.dice.choice(("Live", "Shadow"))
        metadata = {"name": name, "creationTimestamp": self.dice.choice(("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"))}
        status = self.dice.choice(({}, {"activeGeneration": 0}, *({"activeGeneration": 2},) * 6))
        return {"metadata": metadata, "spec": spec} | ({"status": status} if status or self.dice.random() < 0.5 else {})

    def namespace(self) -> Object:
        name = self.dice.choice((*("red", "blue") * 4, "green", "kube-system", "placewright-system"))
        metadata: Object = {"name": name, "labels": {"kubernetes.io/metadata.name": name, **self.labels()}}
        if self.dice.random() < 0.4:
            value = self.dice.choice(("", "*", "a", "a,b", " b , c", "nobody", "c,*"))
            metadata["annotations"] = self.dice.choice(({}, {"placewright.dev/allowed-profiles": value}))
        return {"metadata": metadata}

    def pod(self, profiles: list[Object]) -> Object:
        spec: Object = {"schedulerName": "default-scheduler", "containers": [{"name": "main", "image": "example.test/main"}]}
        metadata: Object = {"name": "web"}
        if self.dice.random() < 0.8:
            metadata["labels"] = self.labels() | ({"placewright.dev/assign-profile": "false"} if self.dice.random() < 0.1 else {})
        if self.dice.random() < 0.3:
            metadata["annotations"] = self.dice.choice(({}, {"a": "b"}, {ANNOTATION: self.noted(profiles)}))
        if self.dice.random() < 0.4:  # a pod that an earlier evaluation gave a profile
            metadata["annotations"] = {ANNOTATION: value_of(convert(self.dice.choice(profiles), SchedulingProfile))}
            given = metadata["annotations"][ANNOTATION].split(" ", 3)[3]
            spec["schedulerName"] = self.dice.choice((given, given, "another"))
        elif self.dice.random() < 0.3:
            spec["schedulerName"] = self.dice.choice(("another", *(profile["spec"]["schedulerName"] for profile in profiles)))
        if self.dice.random() < 0.1:
            spec["nodeName"] = self.dice.choice(("", "node-0"))
        return {"metadata": metadata, "spec": spec}

    def naming(self, profiles: list[Object]) -> Object:
        """A pod that mostly names a profile's scheduler, and profiles with more rules about namespaces."""
        for profile in profiles:
            if "pods" in profile["spec"] and self.dice.random() < 0.5:
                profile["spec"]["pods"]["allowedNamespaceSelector"] = {"matchExpressions": [self.expression()]}
        pod = self.pod(profiles)
        if self.dice.random() < 0.7:
            pod["spec"]["schedulerName"] = self.dice.choice(profiles)["spec"]["schedulerName"]
        return pod

    def noted(self, profiles: list[Object]) -> str:
        """An annotation as an earlier evaluation leaves it, or one that a user made up."""
        values = [value_of(convert(profile, SchedulingProfile)) for profile in profiles]
        return self.dice.choice(("", "nonsense", "1 2 3", "99999999999 a b c", "x 2026-01-01T00:00:00Z a a", *values, *values))


def by_the_function(pod: Object, namespace: Object, profiles: list[Object]) -> Object:
    """The pod as the webhook's answer leaves it."""
    name = namespace["metadata"]["name"]
    subject = new_pod(convert(pod, Pod), facts_of(name, {name: convert(namespace, Namespace)}))
    found = assigned_profile(subject, [convert(profile, SchedulingProfile) for profile in profiles], NEVER_IN)
    patched: Object = pod if found is None else apply_json_patch(pod, patch_of(subject, found))
    return patched


@pytest.mark.parametrize("seed", range(SEEDS))
def test_policy_and_function_give_the_same_profile_in_every_order(seed: int, policy: AdmissionPolicy) -> None:
    drawn = Drawn(seed)
    for _ in range(20):
        profiles = [drawn.profile(name) for name in drawn.dice.sample(("a", "b", "c", "d", "e"), drawn.dice.randint(1, 4))]
        namespace, pod = drawn.namespace(), drawn.pod(profiles)
        expected = by_the_function(pod, namespace, profiles)
        for _ in range(3):
            drawn.dice.shuffle(profiles)
            admitted = policy.admitted(pod, namespace, profiles)
            assert admitted == expected
            assert policy.admitted(admitted, namespace, profiles) == expected, "evaluated again it changes nothing"


def test_the_drawn_pods_meet_everything_that_decides(policy: AdmissionPolicy) -> None:
    """Otherwise the comparison would compare nothing."""
    given = kept = replaced = 0
    for seed in range(SEEDS):
        drawn = Drawn(seed)
        for _ in range(20):
            profiles = [drawn.profile(name) for name in ("a", "b", "c", "d")]
            namespace, pod = drawn.namespace(), drawn.pod(profiles)
            admitted = policy.admitted(pod, namespace, profiles)
            changed = admitted["spec"]["schedulerName"] != pod["spec"]["schedulerName"]
            given += changed
            kept += not changed
            replaced += changed and pod["spec"]["schedulerName"] != "default-scheduler"
    assert given > 25
    assert kept > 50
    assert replaced > 5


def warned_by_the_function(pod: Object, namespace: Object, profiles: list[Object]) -> list[str]:
    """The sentence that the pod will wait with; none for a pod that waits for nothing of that kind."""
    name = namespace["metadata"]["name"]
    subject = new_pod(convert(pod, Pod), facts_of(name, {name: convert(namespace, Namespace)}))
    mine = placing_profile(subject.scheduler_name, [convert(profile, SchedulingProfile) for profile in profiles])
    if mine is None or subject.node_name or name in NEVER_IN:
        return []
    return [said] if (said := refusal(subject.namespace, mine)) else []


def test_the_policy_warns_with_the_sentence_that_the_pod_will_wait_with(policy: AdmissionPolicy) -> None:
    uses, met = the_use_policy(), set()
    for seed in range(SEEDS):
        drawn = Drawn(seed)
        for _ in range(120):
            profiles = [drawn.profile(name) for name in ("a", "b", "c", "d")]
            namespace = drawn.namespace()
            pod = policy.admitted(drawn.naming(profiles), namespace, profiles)
            expected = warned_by_the_function(pod, namespace, profiles)
            assert uses.messages(pod, namespace, profiles) == expected
            met |= {said.split(": ")[1] for said in expected}
    assert len(met) == 4, "every reason was met, else the comparison compares nothing"


def test_the_fixed_manifests_are_about_creations_of_pods_alone_and_take_every_profile() -> None:
    policy, binding = (yaml.safe_load((COMPONENTS / "profile-assignment" / f"{name}.yaml").read_text()) for name in ("policy", "binding"))
    spec: dict[str, Any] = policy["spec"]
    assert spec["paramKind"] == {"apiVersion": "placewright.dev/v1alpha1", "kind": "SchedulingProfile"}
    (rule,) = spec["matchConstraints"]["resourceRules"]
    assert (rule["apiGroups"], rule["resources"], rule["operations"]) == ([""], ["pods"], ["CREATE"])
    (never,) = spec["matchConstraints"]["namespaceSelector"]["matchExpressions"]
    assert (never["key"], never["operator"], set(never["values"])) == ("kubernetes.io/metadata.name", "NotIn", NEVER_IN)
    assert spec["failurePolicy"] == "Ignore"
    assert binding["spec"] == {"policyName": policy["metadata"]["name"], "paramRef": {"selector": {}, "parameterNotFoundAction": "Allow"}}


def test_the_policy_about_uses_warns_and_refuses_nothing() -> None:
    given, policy, binding = (
        yaml.safe_load((COMPONENTS / "profile-assignment" / f"{name}.yaml").read_text()) for name in ("policy", "use-policy", "use-binding")
    )
    assert policy["spec"]["paramKind"] == given["spec"]["paramKind"]
    mine, theirs = (each["spec"]["matchConstraints"] for each in (policy, given))
    assert mine == {key: value for key, value in theirs.items() if key != "objectSelector"}, "a pod that opted out may name a profile"
    assert policy["spec"]["failurePolicy"] == "Ignore"
    assert binding["spec"] == {
        "policyName": policy["metadata"]["name"],
        "paramRef": {"selector": {}, "parameterNotFoundAction": "Allow"},
        "validationActions": ["Warn"],
    }
