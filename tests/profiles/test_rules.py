"""The CRD's rules in CEL and our own checks: each rule has an object that breaks it, and both sides refuse the same objects.

The API server's side is the sandbox's; API servers before 1.25 have no such rules, and there the operator's checks are all there is.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesandbox.definitions.customresources import CustomResource, establish
from kubesandbox.status import ApiError
from placewright.profiles.check import check_same_mode, check_same_name
from placewright.profiles.problem import ProfileError
from placewright.profiles.resolve import resolve
from placewright.profiles.rules import RULES
from profiles.makers import CATALOGUE, a_profile
from tools.generated.definition import custom_resource_definition

PEM = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg=="
URL = "https://extender.example"
Spec = dict[str, Any]


def extender(**fields: Any) -> Spec:
    return {"extenders": [{"urlPrefix": URL, "filterVerb": "filter", **fields}]}


def tls(**fields: Any) -> Spec:
    return extender(tlsConfig=fields)


#: By the message of the rule: an object that breaks it and nothing else, with the former one where the rule is about a change.
BREAKS: dict[str, tuple[Spec, Spec | None]] = {
    "schedulerName is immutable": ({"schedulerName": "b"}, {"schedulerName": "a"}),
    "schedulerName is required": ({"schedulerName": None}, None),
    "mode Shadow and shadows": ({"mode": "Shadow"}, None),
    "shadow is for mode Shadow alone": ({"shadow": {"budgetPercent": 3}}, None),
    "pods is for mode Live alone": ({"mode": "Shadow", "shadows": "a", "pods": {"podSelector": {}}}, None),
    "priority needs podSelector or namespaceSelector": ({"pods": {"priority": 3}}, None),
    "In and NotIn need values": ({"pods": {"podSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}}, None),
    "mode is immutable": ({"mode": "Shadow", "shadows": "a"}, {}),
    "a weight is 0 (off) to 100000": ({"weights": {"Tetris": 100_001}, "plugins": {"score": {"enabled": [{"name": "Tetris"}]}}}, None),
    "only one extender may have a bindVerb": ({"extenders": [{"urlPrefix": URL, "bindVerb": "bind"}] * 2}, None),
    "maxSeconds is at least initialSeconds": ({"backoff": {"initialSeconds": 3, "maxSeconds": 2}}, None),
    "maxVictims is at most maxEvictionsPerMinute": ({"preemption": {"maxVictims": 6, "maxEvictionsPerMinute": 5}}, None),
    "by: Label and label": ({"fairness": {"by": "Label"}}, None),
    "an extender needs something to do": ({"extenders": [{"urlPrefix": URL}]}, None),
    "an extender with a prioritizeVerb needs a weight": (extender(prioritizeVerb="score"), None),
    "a certificate and its key go together": (tls(certFile="/tls.crt"), None),
    "insecure beside a CA": (tls(insecure=True, caFile="/ca.crt"), None),
}
FINE: list[tuple[Spec, Spec | None]] = [
    ({}, None),
    ({"schedulerName": "a"}, {"schedulerName": "a"}),
    ({"paused": True}, {}),
    ({"mode": "Shadow", "shadows": "a"}, None),
    ({"mode": "Shadow", "shadows": "b", "shadow": {"budgetPercent": 50}}, {"mode": "Shadow", "shadows": "a"}),
    ({"mode": "Live", "shadows": ""}, None),
    ({"pods": {"podSelector": {}, "priority": 0}}, None),
    ({"pods": {"namespaceSelector": {"matchLabels": {"team": "a"}}, "priority": -1, "allowedNamespaces": ["a", "b-1"]}}, None),
    ({"pods": {"allowedNamespaces": ["a"]}}, None),
    ({"pods": {"podSelector": {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["", "x"]}]}}}, None),
    ({"pods": {"podSelector": {"matchExpressions": [{"key": "e.x/a", "operator": "Exists"}]}}}, None),
    ({"mode": "Shadow", "shadows": "a", "schedulerName": None}, None),
    ({"backoff": {"initialSeconds": 20, "maxSeconds": 0}}, None),
    ({"backoff": {"initialSeconds": 10}}, None),
    ({"preemption": {}}, None),
    ({"preemption": {"policy": "Never", "maxVictims": 5, "maxEvictionsPerMinute": 5}}, None),
    ({"preemption": {"disruptionBudgets": "Strict", "waitSeconds": 60, "minRunSeconds": 600, "maxVictims": 1}}, None),
    ({"preemption": {"protect": {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "Exists"}]}}}, None),
    ({"preemption": {"protect": {}}}, None),
    ({"fairness": {}}, None),
    ({"fairness": {"by": "None"}}, None),
    ({"fairness": {"by": "Namespace", "share": "Pods", "weights": {"a": 1, "b": 1000}}}, None),
    ({"fairness": {"by": "Label", "label": "example.com/team", "weights": {"": 2}}}, None),
    (extender(prioritizeVerb="score", weight=1), None),
    (extender(filterVerb="", managedResources=[{"name": "example.com/gpu", "ignoredByScheduler": True}]), None),
    (tls(certFile="/tls.crt", keyData=PEM), None),
    (tls(insecure=False, caFile="/ca.crt"), None),
]


@pytest.fixture(scope="module")
def resource() -> CustomResource:
    return sandboxed()


def sandboxed() -> CustomResource:
    definition = custom_resource_definition()
    establish(definition)
    return CustomResource(definition)


def manifest(spec: Spec) -> Spec:
    said = {name: value for name, value in {"schedulerName": "default-scheduler", **spec}.items() if value is not None}
    return {"apiVersion": "placewright.dev/v1alpha1", "kind": "SchedulingProfile", "metadata": {"name": "p"}, "spec": said}


def said_by_the_api_server(resource: CustomResource, new: Spec, old: Spec | None) -> str:
    former = None if old is None else resource.admit(manifest(old), None)
    try:
        resource.admit(manifest(new), former)
    except ApiError as refused:
        return str(refused)
    return ""


def said_by_our_checks(new: Spec, old: Spec | None) -> str:
    wanted = a_profile(new)
    try:
        resolve(wanted, CATALOGUE)
    except ProfileError as error:
        return str(error)
    former = wanted if old is None else a_profile(old)
    name = check_same_name(wanted.spec.scheduler_name, former.spec.scheduler_name)
    mode = check_same_mode(wanted.spec.mode, former.spec.mode)
    return "\n".join(str(problem) for problem in (*name, *mode))


def test_every_rule_is_broken_by_a_case_here() -> None:
    messages = [rule.message for rules in RULES.values() for rule in rules]
    for message in messages:
        assert sum(message.startswith(begin) for begin in BREAKS) == 1, (
            f"{message}: add an object that breaks it to BREAKS in tests/profiles/test_rules.py"
        )
    assert len(messages) == len(BREAKS)


@pytest.mark.parametrize("begin", BREAKS)
def test_what_a_rule_forbids_both_sides_refuse(begin: str, resource: CustomResource) -> None:
    new, old = BREAKS[begin]
    assert begin in said_by_the_api_server(resource, new, old)
    assert said_by_our_checks(new, old), f"{begin}: add it to check_spec in operator/placewright/profiles/check.py"


@pytest.mark.parametrize("case", range(len(FINE)))
def test_what_no_rule_forbids_both_sides_take(case: int, resource: CustomResource) -> None:
    new, old = FINE[case]
    assert said_by_the_api_server(resource, new, old) == ""
    assert said_by_our_checks(new, old) == ""


verbs = st.sampled_from([None, "", "do"])
texts = st.sampled_from([None, "", "/file"])
data = st.sampled_from([None, "", PEM])
flags = st.sampled_from([None, False, True])
tls_configs = st.fixed_dictionaries(
    {"insecure": flags, "certFile": texts, "keyFile": texts, "caFile": texts, "certData": data, "keyData": data, "caData": data}
)
resources = st.none() | st.just([{"name": "example.com/gpu"}]) | st.just([{"name": "example.com/gpu", "ignoredByScheduler": True}])
extenders = st.fixed_dictionaries(
    {
        "urlPrefix": st.just(URL),
        "weight": st.sampled_from([None, 0, 1, 7]),
        "tlsConfig": st.none() | tls_configs,
        "managedResources": resources,
    }
    | dict.fromkeys(("filterVerb", "preemptVerb", "prioritizeVerb", "bindVerb"), verbs)
)
seconds = st.sampled_from([None, 0.5, 1, 2, 10, 11])
backoffs = st.fixed_dictionaries({"initialSeconds": seconds, "maxSeconds": seconds | st.just(0)})
operators = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"])
expressions = st.fixed_dictionaries({"key": st.just("app"), "operator": operators, "values": st.sampled_from([None, [], ["a"]])})
selectors = st.none() | st.just({}) | st.fixed_dictionaries({"matchExpressions": st.lists(expressions, max_size=2)})
pods = st.fixed_dictionaries(
    {
        "podSelector": selectors,
        "namespaceSelector": selectors,
        "allowedNamespaces": st.sampled_from([None, [], ["a"], ["a", "b"], ["A"], ["a", "a"]]),
        "priority": st.sampled_from([None, 0, 7]),
    }
)
fairness = st.fixed_dictionaries(
    {
        "by": st.sampled_from([None, "None", "Namespace", "Label", "Pod"]),
        "label": st.sampled_from([None, "", "team", "example.com/team", "a b", "/team", "-team"]),
        "share": st.sampled_from([None, "Pods", "Resources", "Nodes"]),
        "weights": st.none() | st.dictionaries(st.sampled_from(["", "a", "b"]), st.sampled_from([0, 1, 1000, 1001])),
    }
)
specs = st.fixed_dictionaries(
    {
        "pods": st.none() | pods,
        "backoff": st.none() | backoffs,
        "fairness": st.none() | fairness,
        "extenders": st.lists(extenders, max_size=2),
        "schedulerName": st.sampled_from(["a", "b"]),
        "mode": st.sampled_from([None, "Live", "Shadow"]),
        "shadows": st.sampled_from([None, "", "a"]),
        "shadow": st.sampled_from([None, {}, {"budgetPercent": 7.5}]),
    }
)


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


SANDBOXED = sandboxed()


@given(new=specs.map(without_nulls), old=st.none() | st.sampled_from([{"schedulerName": "a"}, {"schedulerName": "b"}]))
def test_both_sides_agree_on_whatever_somebody_writes(new: Spec, old: Spec | None) -> None:
    resources = [resource["name"] for one in new["extenders"] for resource in one.get("managedResources", ())]
    if len(resources) > len(set(resources)):
        return  # a resource named by two extenders: our checks alone see it
    theirs, ours = said_by_the_api_server(SANDBOXED, new, old), said_by_our_checks(new, old)
    assert bool(theirs) == bool(ours), (theirs, ours)
