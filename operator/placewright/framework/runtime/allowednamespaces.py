"""Keeps pods out whose namespace may not use the profile (`spec.pods.allowedNamespaces`): a gate before the profile's PreEnqueue plugins.

A runtime has this gate only where the profile names namespaces, so that other profiles have no call more a pod.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from placewright.api.bad_input import in_json
from placewright.api.pods import PodInfo
from placewright.framework.events import ClusterEventWithHint
from placewright.framework.interface import Handle, PreEnqueuePlugin
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.framework.status import SUCCESS, Status, unresolvable

#: Stands for the gating plugin of such pods.
ALLOWED_NAMESPACES: Final = "AllowedNamespaces"


class AllowedNamespaces(PreEnqueuePlugin[frozenset[str]]):
    """Gates pods of all namespaces but the named ones. No event helps a gated pod: the profile must change."""

    name = ALLOWED_NAMESPACES

    def __init__(self, allowed: frozenset[str], handle: Handle, profile: str) -> None:
        """Gate the pods of one profile.

        Args:
            allowed: names of the namespaces that may use the profile.
            handle: of the profile's plugins.
            profile: name of the profile.
        """
        super().__init__(allowed, handle)
        self._profile = profile

    def keeps_out(self, pod: PodInfo) -> bool:
        """Return whether the pod's namespace may not use the profile."""
        return pod.namespace not in self.args

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Gate the pod if its namespace is not named.

        Args:
            pod: waiting.

        Returns:
            SUCCESS, or a rejection that names the profile and the field.
        """
        if pod.namespace in self.args:
            return SUCCESS
        return unresolvable(
            f"namespace {in_json(pod.namespace)} may not use profile {in_json(self._profile)}: spec.pods.allowedNamespaces does not name it"
        )

    def events(self) -> Sequence[ClusterEventWithHint]:
        """Return no events, because a pod never changes its namespace."""
        return ()


def allowed_namespaces(profile: ResolvedProfile, handle: Handle) -> AllowedNamespaces | None:
    """Build the gate of a profile.

    Args:
        profile: one generation.
        handle: of its plugins.

    Returns:
        The gate; None where every namespace may use the profile.
    """
    pods = profile.settings.pods
    if pods is None or pods.allowed_namespaces is None:
        return None
    return AllowedNamespaces(frozenset(pods.allowed_namespaces), handle, profile.name or profile.scheduler_name)
