"""Decides from two profiles alone whether both could be given to one pod: whether some labels of a pod and of its namespace satisfy both.

Every expression of a label selector is about one key. So both selectors exclude each other only if their demands on one key do: no value
meets all of these, and neither does the label's absence. That is exact: values of labels are free, and an excluding expression names only
finitely many. Pods and namespaces that exist are not looked at, because others can be created at any time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain, combinations, product
from typing import Final, NamedTuple

from placewright.api.labeltests import label_tests
from placewright.api.profilepods import ProfileLabelSelector, ProfilePods
from placewright.api.selectors import CompiledRequirement

#: The label that API servers put on each namespace: its name.
NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"


def rivals(giving: Mapping[str, ProfilePods]) -> dict[str, list[str]]:
    """Find the profiles that can select one pod with the same priority.

    Returns:
        By profile, the others; profiles without one are left out.
    """
    found: dict[str, list[str]] = {}
    by_priority: dict[int, dict[str, tuple[_Demands, ...]]] = {}
    for name, pods in giving.items():
        if pods.assigns:
            by_priority.setdefault(pods.priority or 0, {})[name] = _demands(pods)
    for demands in by_priority.values():
        for one, other in combinations(demands, 2):
            if _possible_together(demands[one], demands[other]):
                found.setdefault(one, []).append(other)
                found.setdefault(other, []).append(one)
    return found


class _Demands(NamedTuple):
    """The expressions about a pod's labels, and about its namespace's."""

    pods: tuple[CompiledRequirement, ...]
    namespaces: tuple[CompiledRequirement, ...]


def _demands(pods: ProfilePods) -> tuple[_Demands, ...]:
    """List the alternatives: a namespace may be allowed by its name, or by its labels."""
    on_pods, on_namespaces = _expressions(pods.pod_selector), _expressions(pods.namespace_selector)
    allowed: list[tuple[CompiledRequirement, ...]] = []
    if pods.allowed_namespaces is not None:
        allowed.append((CompiledRequirement(NAMESPACE_NAME, "In", frozenset(pods.allowed_namespaces)),))
    if pods.allowed_namespace_selector is not None:
        allowed.append(_expressions(pods.allowed_namespace_selector))
    return tuple(_Demands(on_pods, (*on_namespaces, *each)) for each in allowed or [()])


def _possible_together(one: tuple[_Demands, ...], other: tuple[_Demands, ...]) -> bool:
    return any(
        _possible(chain(mine.pods, theirs.pods)) and _possible(chain(mine.namespaces, theirs.namespaces))
        for mine, theirs in product(one, other)
    )


def _expressions(selector: ProfileLabelSelector | None) -> tuple[CompiledRequirement, ...]:
    return () if selector is None else selector.expressions


def _possible(requirements: Iterable[CompiledRequirement]) -> bool:
    return all(test.possible for test in label_tests(requirements))
