"""`spec.pods`: what is refused and in which words, and where it shows."""

from __future__ import annotations

from typing import Any

import pytest

from placewright.api.profilepods import ProfilePods
from placewright.profiles.effective import as_document, differences
from placewright.profiles.kubescheduler.writer import to_configuration
from placewright.profiles.problem import ProfileError
from placewright.profiles.resolve import resolve
from profiles.makers import CATALOGUE, a_profile

LABEL = "a label's value must be empty, or letters, digits, '-', '_' and '.', at most 63, with a letter or digit at both ends"
NO_NAMESPACE = "allowed the name of a namespace: at most 63 lower case letters, digits and '-'"


def expression(**fields: Any) -> dict[str, Any]:
    return {"podSelector": {"matchExpressions": [fields]}}


CASES: list[tuple[dict[str, Any], str]] = [
    (
        {"podSelector": {"matchLabels": {"app": "-web"}}},
        f'spec.pods.podSelector.matchLabels: found {{"app": "-web"}}; allowed a label; values[0]: Invalid value: "-web": {LABEL}',
    ),
    (
        expression(key="app", operator="in", values=["web"]),
        'spec.pods.podSelector.matchExpressions[0]: found {"key": "app", "operator": "in", "values": ["web"]}; '
        'allowed an expression; "in" is not a valid label selector operator',
    ),
    (
        expression(key="app", operator="In"),
        'spec.pods.podSelector.matchExpressions[0]: found {"key": "app", "operator": "In"}; '
        "allowed an expression; values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty",
    ),
    (
        {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}},
        'spec.pods.namespaceSelector.matchExpressions[0]: found {"key": "a", "operator": "Exists", "values": ["b"]}; '
        'allowed an expression; values: Invalid value: ["b"]: values set must be empty for exists and does not exist',
    ),
    (
        {"allowedNamespaces": []},
        "spec.pods.allowedNamespaces: found 0 of them; allowed 1 to 1000 names of namespaces, or no such field: then all may",
    ),
    (
        {"allowedNamespaces": [f"n{i}" for i in range(1001)]},
        "spec.pods.allowedNamespaces: found 1001 of them; allowed 1 to 1000 names of namespaces, or no such field: then all may",
    ),
    ({"allowedNamespaces": ["a", "Team"]}, f'spec.pods.allowedNamespaces[1]: found "Team"; {NO_NAMESPACE}'),
    ({"allowedNamespaces": ["a" * 64]}, f'spec.pods.allowedNamespaces[0]: found "{"a" * 64}"; {NO_NAMESPACE}'),
    ({"allowedNamespaces": ["a\n"]}, f'spec.pods.allowedNamespaces[0]: found "a\\n"; {NO_NAMESPACE}'),
    ({"allowedNamespaces": ["a", "a"]}, 'spec.pods.allowedNamespaces[1]: found "a"; allowed each namespace once'),
    (
        {"priority": 3, "allowedNamespaces": ["a"]},
        "spec.pods.priority: found 3; allowed nothing without podSelector or namespaceSelector: it ranks the profiles that select a pod",
    ),
    ({"podSelector": {}, "priority": 2**31}, "spec.pods.priority: found 2147483648; allowed -2147483648 to 2147483647"),
    ({"podSelector": {"matchLabel": {}}}, "spec.pods.podSelector.matchLabel: found an unknown field"),
]


@pytest.mark.parametrize(("pods", "said"), CASES, ids=[said[:60] for _, said in CASES])
def test_what_cannot_be_is_refused_in_one_line_with_its_path(pods: dict[str, Any], said: str) -> None:
    with pytest.raises(ProfileError) as refused:
        resolve(a_profile({"pods": pods}), CATALOGUE)
    assert said in str(refused.value)
    assert len(refused.value.problems) == 1


def test_a_shadow_is_given_to_no_pod() -> None:
    with pytest.raises(ProfileError, match=r"spec.pods: found settings; allowed nothing, as spec.mode is Shadow"):
        resolve(a_profile({"mode": "Shadow", "shadows": "a", "pods": {"podSelector": {}}}), CATALOGUE)


@pytest.mark.parametrize(
    ("pods", "assigns"),
    [({}, False), ({"allowedNamespaces": ["a"]}, False), ({"podSelector": {}}, True), ({"namespaceSelector": {}}, True)],
)
def test_pods_are_given_a_profile_that_has_a_selector_and_no_other(pods: dict[str, Any], *, assigns: bool) -> None:
    assert (a_profile({"pods": pods}).spec.pods or ProfilePods()).assigns is assigns


def test_a_profile_without_it_shows_nothing_of_it() -> None:
    assert "pods" not in as_document(resolve(a_profile(), CATALOGUE))


def test_it_shows_where_profiles_are_shown_compared_and_converted() -> None:
    pods = {"podSelector": {"matchLabels": {"app": "web"}}, "priority": 3}
    before, after = resolve(a_profile(), CATALOGUE), resolve(a_profile({"pods": pods}), CATALOGUE)
    assert as_document(after)["pods"] == pods
    assert [(each.what, each.before, each.after) for each in differences(before, after)] == [("pods", None, pods)]
    _, findings = to_configuration([a_profile({"pods": pods})], CATALOGUE)
    assert [finding.text for finding in findings if "pods" in finding.text] == [
        'pods.podSelector {"matchLabels": {"app": "web"}}: kube-scheduler has no such setting',
        "pods.priority 3: kube-scheduler has no such setting",
    ]
