"""Checks `spec.pods` of a profile: its selectors, the names of namespaces, and that a priority stands beside a selector."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from placewright.api.bad_input import in_json
from placewright.api.objects import LabelSelector
from placewright.api.profile import SHADOW, ProfileSpec
from placewright.api.profilepods import MAX_NAMESPACES, NAMESPACE_PATTERN, ProfileLabelSelector
from placewright.api.selectors import SelectorError, compile_label_selector
from placewright.profiles.problem import Problem

_PATH: Final = "spec.pods"
_NAMESPACE: Final = re.compile(NAMESPACE_PATTERN)


def check_pods(spec: ProfileSpec) -> Iterator[Problem]:
    """Check `spec.pods`.

    Args:
        spec: of the profile.

    Yields:
        Problems, in the order of the document.
    """
    pods = spec.pods
    if pods is None:
        return
    if spec.is_shadow:
        yield Problem(_PATH, "settings", f"nothing, as spec.mode is {SHADOW}: a shadow is given to no pod")
    yield from check_label_selector(f"{_PATH}.namespaceSelector", pods.namespace_selector)
    yield from check_label_selector(f"{_PATH}.podSelector", pods.pod_selector)
    yield from _check_namespaces(pods.allowed_namespaces)
    yield from check_label_selector(f"{_PATH}.allowedNamespaceSelector", pods.allowed_namespace_selector)
    if pods.priority is not None and not pods.assigns:
        allowed = "nothing without podSelector or namespaceSelector: it ranks the profiles that select a pod"
        yield Problem(f"{_PATH}.priority", str(pods.priority), allowed)


def check_label_selector(path: str, selector: ProfileLabelSelector | None) -> Iterator[Problem]:
    """Check a label selector of a profile, in the words of an API server.

    Args:
        path: of the field.
        selector: as decoded; None where the field is absent.

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
    path = f"{_PATH}.allowedNamespaces"
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
