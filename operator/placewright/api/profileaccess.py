"""Judges which profiles the pods of a namespace may use: by the profile's own rule, by the namespace's, and by the cluster's default.

The rules stand in cluster-scoped objects: in the profile (`spec.pods.allowedNamespaces`, `allowedNamespaceSelector`), and in annotations of
Namespace objects. Kubernetes' roles for tenants (`admin`, `edit`) may not write these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from placewright.api.bad_input import in_json
from placewright.api.profilepods import ProfilePods
from placewright.api.selectors import SelectorError, compile_label_selector
from placewright.api.workloads import Namespace

#: The annotation of a Namespace with the names of the profiles that its pods may use, with commas between them; `*` stands for all.
ALLOWED_PROFILES: Final = "placewright.dev/allowed-profiles"
#: The same for all namespaces without that annotation; it stands on the namespace `DEFAULTS_ON`.
DEFAULT_PROFILES: Final = "placewright.dev/default-allowed-profiles"
DEFAULTS_ON: Final = "kube-system"
ALL_PROFILES: Final = "*"


@dataclass(frozen=True, slots=True)
class NamespaceFacts:
    """The facts about a namespace that decide which profiles its pods may use.

    Attributes:
        name: name of the namespace.
        labels: labels of the namespace.
        allowed: the value of its annotation `ALLOWED_PROFILES`; None without one.
        default: the value of `DEFAULT_PROFILES`; None without one.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    allowed: str | None = None
    default: str | None = None


def facts_of(name: str, namespaces: Mapping[str, Namespace]) -> NamespaceFacts:
    """Collect the facts about a namespace."""
    known, defaults = namespaces.get(name), namespaces.get(DEFAULTS_ON)
    default = None if defaults is None else (defaults.metadata.annotations or {}).get(DEFAULT_PROFILES)
    if known is None:
        return NamespaceFacts(name, default=default)
    return NamespaceFacts(name, known.metadata.labels or {}, (known.metadata.annotations or {}).get(ALLOWED_PROFILES), default)


class NamespaceRule:
    """The rule for one profile."""

    def __init__(self, profile: str, pods: ProfilePods | None) -> None:
        """Compile the rule."""
        self._profile = profile
        self._names = None if pods is None or pods.allowed_namespaces is None else frozenset(pods.allowed_namespaces)
        selector = None if pods is None else pods.allowed_namespace_selector
        try:
            self._selector = None if selector is None else compile_label_selector(selector.as_label_selector())
        except SelectorError:  # a generation that is refused, and judged by commands alone
            self._selector, self._names = None, frozenset()

    def objection(self, namespace: NamespaceFacts) -> str:
        """Explain why pods of a namespace may not use the profile.

        Returns:
            A clause about the namespace; empty if its pods may use the profile.
        """
        named = self._names is not None and namespace.name in self._names
        selected = self._selector is not None and self._selector.matches(namespace.labels)
        if not (named or selected) and (self._names is not None or self._selector is not None):
            if self._selector is None:
                return "spec.pods.allowedNamespaces does not name it"
            also = "" if self._names is None else "spec.pods.allowedNamespaces does not name it, and "
            return f"{also}spec.pods.allowedNamespaceSelector does not select it"
        if namespace.allowed is not None:
            return "" if self._is_in(namespace.allowed) else f"its annotation {ALLOWED_PROFILES} does not name the profile"
        if namespace.default is None or self._is_in(namespace.default):
            return ""
        return f"it has no annotation {ALLOWED_PROFILES}, and {DEFAULT_PROFILES} on namespace {DEFAULTS_ON} does not name the profile"

    def refusal(self, namespace: NamespaceFacts) -> str:
        """Say that pods of a namespace may not use the profile, in the sentence that pods, events and commands have.

        Returns:
            The sentence; empty if they may.
        """
        why = self.objection(namespace)
        return f"namespace {in_json(namespace.name)} may not use profile {in_json(self._profile)}: {why}" if why else ""

    def _is_in(self, value: str) -> bool:
        names = [each.strip() for each in value.split(",")]
        return self._profile in names or ALL_PROFILES in names
