"""Decides from two profiles alone whether both could be given to one pod: whether some labels of a pod and of its namespace satisfy both.

Every expression of a label selector is about one key, so both selectors together can be satisfied when each key can be, by some value or by
the absence of the label. That is exact: values of labels are free, and an excluding expression names only finitely many. Pods and
namespaces that exist are not looked at, because others can be created at any time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

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
    pods = (*_expressions(one.pod_selector), *_expressions(other.pod_selector))
    return _possible(pods) and _possible((*_of_namespaces(one), *_of_namespaces(other)))


def rivals(giving: Mapping[str, ProfilePods]) -> dict[str, list[str]]:
    """Find the profiles that can select one pod with the same priority.

    Args:
        giving: `spec.pods` by profile.

    Returns:
        By profile, the others; profiles without one are left out.
    """
    found: dict[str, list[str]] = {}
    by_priority: dict[int, list[str]] = {}
    for name, pods in giving.items():
        if pods.assigns:
            by_priority.setdefault(pods.priority or 0, []).append(name)
    for names in by_priority.values():
        for one, other in combinations(names, 2):
            if can_both_select(giving[one], giving[other]):
                found.setdefault(one, []).append(other)
                found.setdefault(other, []).append(one)
    return found


def _of_namespaces(pods: ProfilePods) -> Iterator[Requirement]:
    yield from _expressions(pods.namespace_selector)
    if pods.allowed_namespaces is not None:
        yield Requirement(key=NAMESPACE_NAME, operator="In", values=tuple(pods.allowed_namespaces))


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
