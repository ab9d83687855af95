"""Decides from two profiles alone whether both could be given to one pod: whether some labels of a pod and of its namespace satisfy both.

Every expression of a label selector is about one key, so both selectors together can be satisfied when each key can be, by some value or by
the absence of the label. That is exact: values of labels are free, and an excluding expression names only finitely many. Pods and
namespaces that exist are not looked at, because others can be created at any time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, combinations, product
from typing import Final, NamedTuple

from placewright.api.objects import Requirement
from placewright.api.profilepods import ProfileLabelSelector, ProfilePods

#: The label that API servers put on each namespace: its name.
NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"


@dataclass(slots=True)
class _Label:
    """The demands of all expressions about one key.

    Attributes:
        present: the label must be there.
        absent: it must not.
        among: the values that it may have; None for any.
        excluded: the values that it may not have.
    """

    present: bool = False
    absent: bool = False
    among: set[str] | None = None
    excluded: set[str] = field(default_factory=set)

    def add(self, requirement: Requirement) -> None:
        """Add the demand of one expression."""
        values = set(requirement.values or ())
        match requirement.operator:
            case "In":
                self.present = True
                self.among = values if self.among is None else self.among & values
            case "NotIn":
                self.excluded |= values
            case "Exists":
                self.present = True
            case "DoesNotExist":
                self.absent = True

    @property
    def possible(self) -> bool:
        """Whether a value, or the label's absence, meets all demands."""
        if not self.present:
            return True  # a label that is absent is not excluded either
        return not self.absent and (self.among is None or bool(self.among - self.excluded))


def can_both_select(one: ProfilePods, other: ProfilePods) -> bool:
    """Judge whether some pod in some namespace would be selected by both.

        can_both_select(ProfilePods(pod_selector=app_is("web")), ProfilePods(pod_selector=app_is("db")))  # False

    Args:
        one: `spec.pods` of a profile.
        other: of another one.

    Returns:
        True when both select some pod; False too for a profile without a selector, which selects none.
    """
    if not (one.assigns and other.assigns):
        return False
    return _possible_together(_demands(one), _demands(other))


def rivals(giving: Mapping[str, ProfilePods]) -> dict[str, list[str]]:
    """Find the profiles that can select one pod with the same priority.

    Args:
        giving: `spec.pods` by profile.

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

    pods: tuple[Requirement, ...]
    namespaces: tuple[Requirement, ...]


def _demands(pods: ProfilePods) -> tuple[_Demands, ...]:
    """List the alternatives: a namespace may be allowed by its name, or by its labels."""
    on_pods, on_namespaces = tuple(_expressions(pods.pod_selector)), tuple(_expressions(pods.namespace_selector))
    allowed: list[tuple[Requirement, ...]] = []
    if pods.allowed_namespaces is not None:
        allowed.append((Requirement(key=NAMESPACE_NAME, operator="In", values=tuple(pods.allowed_namespaces)),))
    if pods.allowed_namespace_selector is not None:
        allowed.append(tuple(_expressions(pods.allowed_namespace_selector)))
    return tuple(_Demands(on_pods, (*on_namespaces, *each)) for each in allowed or [()])


def _possible_together(one: tuple[_Demands, ...], other: tuple[_Demands, ...]) -> bool:
    return any(
        _possible(chain(mine.pods, theirs.pods)) and _possible(chain(mine.namespaces, theirs.namespaces))
        for mine, theirs in product(one, other)
    )


def _expressions(selector: ProfileLabelSelector | None) -> Iterator[Requirement]:
    if selector is None:
        return
    for key, value in (selector.match_labels or {}).items():
        yield Requirement(key=key, operator="In", values=(value,))
    yield from selector.as_label_selector().match_expressions or ()


def _possible(requirements: Iterable[Requirement]) -> bool:
    labels: dict[str, _Label] = {}
    for requirement in requirements:
        labels.setdefault(requirement.key, _Label()).add(requirement)
    return all(label.possible for label in labels.values())
