"""Keeps pods out whose namespace may not use the profile (`api/profileaccess.py`): a gate before the profile's PreEnqueue plugins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from placewright.api.pods import PodInfo
from placewright.api.profileaccess import DEFAULTS_ON, NamespaceRule, facts_of
from placewright.api.workloads import Namespace
from placewright.framework.events import Action, ClusterEventWithHint, EventResource, QueueingHint, event_with_hint
from placewright.framework.interface import PreEnqueuePlugin
from placewright.framework.status import SUCCESS, Status, unresolvable

#: Stands for the gating plugin of such pods.
ALLOWED_NAMESPACES: Final = "AllowedNamespaces"


class AllowedNamespaces(PreEnqueuePlugin[NamespaceRule]):
    """Gates pods of namespaces that may not use the profile, until the profile or the namespace lets them."""

    name = ALLOWED_NAMESPACES

    def keeps_out(self, pod: PodInfo) -> bool:
        """Return whether the pod's namespace may not use the profile."""
        return bool(self._refusal(pod))

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Gate the pod if its namespace may not use the profile.

        Returns:
            SUCCESS, or a rejection that names the profile and the rule.
        """
        refusal = self._refusal(pod)
        return unresolvable(refusal) if refusal else SUCCESS

    def events(self) -> Sequence[ClusterEventWithHint[Namespace]]:
        """Return the changes of namespaces that may let a pod use the profile."""
        return (event_with_hint(EventResource.NAMESPACE, Action.ADD | Action.UPDATE, self._after_namespace),)

    def _refusal(self, pod: PodInfo) -> str:
        return self.args.refusal(facts_of(pod.namespace, self.handle.cluster.objects.namespaces))

    def _after_namespace(self, pod: PodInfo, _old: Namespace | None, new: Namespace | None) -> QueueingHint:
        """Queue a pod when its namespace changes, or the namespace that has the default."""
        concerned = new is None or new.metadata.name in (pod.namespace, DEFAULTS_ON)
        return QueueingHint.QUEUE if concerned and not self._refusal(pod) else QueueingHint.SKIP
