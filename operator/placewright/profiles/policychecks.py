"""Checks fields of a profile: which pods may use it, whose turn it is, and which pods it displaces.

The fields are `spec.pods`, `spec.fairness` and `spec.preemption`. The API server holds most of the rules by the definition. API servers
before 1.25 know no rules across fields, and files meet no API server.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from placewright.api.bad_input import in_json
from placewright.api.fairness import LABEL, LABEL_KEY, SHARES, TENANTS_BY, Fairness
from placewright.api.objects import LabelSelector
from placewright.api.preemption import BEST_EFFORT, LOWER_PRIORITY, NEVER, STRICT, PreemptionSpec
from placewright.api.profile import SHADOW, ProfileSpec
from placewright.api.profilelimits import MAX_LABEL_KEY_LENGTH, MAX_TENANT_WEIGHT, MAX_TENANT_WEIGHTS
from placewright.api.profilepods import MAX_NAMESPACES, NAMESPACE_PATTERN, ProfileLabelSelector
from placewright.api.selectors import SelectorError, compile_label_selector
from placewright.profiles.problem import Problem, check_word

_NAMESPACE: Final = re.compile(NAMESPACE_PATTERN)
_KEY: Final = re.compile(LABEL_KEY)


def check_pods(spec: ProfileSpec) -> Iterator[Problem]:
    """Check `spec.pods`.

    Yields:
        Problems, in the order of the document.
    """
    pods = spec.pods
    if pods is None:
        return
    if spec.is_shadow:
        yield Problem("spec.pods", "settings", f"nothing, as spec.mode is {SHADOW}: a shadow is given to no pod")
    yield from check_label_selector("spec.pods.namespaceSelector", pods.namespace_selector)
    yield from check_label_selector("spec.pods.podSelector", pods.pod_selector)
    yield from _check_namespaces(pods.allowed_namespaces)
    yield from check_label_selector("spec.pods.allowedNamespaceSelector", pods.allowed_namespace_selector)
    if pods.priority is not None and not pods.assigns:
        allowed = "nothing without podSelector or namespaceSelector: it ranks the profiles that select a pod"
        yield Problem("spec.pods.priority", str(pods.priority), allowed)


def check_label_selector(path: str, selector: ProfileLabelSelector | None) -> Iterator[Problem]:
    """Check a label selector of a profile, in the words of an API server.

    Yields:
        A problem for each label and each expression that an API server would refuse.
    """
    if selector is None:
        return
    for key, value in (selector.match_labels or {}).items():
        if said := _refused(LabelSelector(match_labels={key: value})):
            yield Problem(f"{path}.matchLabels", in_json({key: value}), f"a label; {said}")
    whole = selector.as_label_selector()
    for index, expression in enumerate(whole.match_expressions or ()):
        if said := _refused(LabelSelector(match_expressions=(expression,))):
            yield Problem(f"{path}.matchExpressions[{index}]", in_json(msgspec.to_builtins(expression)), f"an expression; {said}")


def _refused(selector: LabelSelector) -> str:
    """Return the reason why a selector does not compile; empty when it does."""
    try:
        compile_label_selector(selector)
    except SelectorError as problem:
        return str(problem)
    return ""


def _check_namespaces(names: list[str] | None) -> Iterator[Problem]:
    if names is None:
        return
    path = "spec.pods.allowedNamespaces"
    if not 1 <= len(names) <= MAX_NAMESPACES:
        yield Problem(path, f"{len(names)} of them", f"1 to {MAX_NAMESPACES} names of namespaces, or no such field: then all may")
        return
    seen: set[str] = set()
    for index, name in enumerate(names):
        if not _NAMESPACE.fullmatch(name):
            yield Problem(f"{path}[{index}]", in_json(name), "the name of a namespace: at most 63 lower case letters, digits and '-'")
        elif name in seen:
            yield Problem(f"{path}[{index}]", in_json(name), "each namespace once")
        seen.add(name)


def check_fairness(fairness: Fairness | None) -> Iterator[Problem]:
    """Find the problems of `spec.fairness`.

    Yields:
        Problems, in the order of the fields.
    """
    if fairness is None:
        return
    yield from check_word("spec.fairness.by", fairness.by, TENANTS_BY)
    yield from _check_label(fairness)
    yield from check_word("spec.fairness.share", fairness.share, SHARES)
    yield from _check_weights(fairness.weights or {})


def _check_label(fairness: Fairness) -> Iterator[Problem]:
    path, key = "spec.fairness.label", fairness.label
    if fairness.by != LABEL:
        if key is not None:
            yield Problem(path, in_json(key), f"nothing, as spec.fairness.by is {fairness.by}")
    elif not key:
        yield Problem(path, "nothing", f"the key of a label of the pods, as spec.fairness.by is {LABEL}")
    elif len(key) > MAX_LABEL_KEY_LENGTH or not _KEY.fullmatch(key):
        yield Problem(path, in_json(key), "the key of a label, such as team or example.com/team")


def _check_weights(weights: Mapping[str, int]) -> Iterator[Problem]:
    if len(weights) > MAX_TENANT_WEIGHTS:
        yield Problem("spec.fairness.weights", f"{len(weights)} of them", f"at most {MAX_TENANT_WEIGHTS}")
        return
    for tenant, weight in weights.items():
        if not 1 <= weight <= MAX_TENANT_WEIGHT:
            yield Problem(f"spec.fairness.weights.{tenant}", str(weight), f"1 to {MAX_TENANT_WEIGHT}")


def check_preemption(preemption: PreemptionSpec | None) -> Iterator[Problem]:
    """Check the rules of preemption; their bounds are checked with those of all numbers.

    Yields:
        Problems, in the order of the document.
    """
    if preemption is None:
        return
    yield from check_word("spec.preemption.policy", preemption.policy, (LOWER_PRIORITY, NEVER))
    yield from check_word("spec.preemption.disruptionBudgets", preemption.disruption_budgets, (BEST_EFFORT, STRICT))
    most, in_a_minute = preemption.max_victims, preemption.max_evictions_per_minute
    if most is not None and in_a_minute is not None and most > in_a_minute:
        allowed = f"at most maxEvictionsPerMinute ({in_a_minute}): no minute has room for more"
        yield Problem("spec.preemption.maxVictims", str(most), allowed)
    yield from check_label_selector("spec.preemption.protect", preemption.protect)
