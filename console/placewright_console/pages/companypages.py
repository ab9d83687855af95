"""The pages of a pod's group and claims, and the verdicts about each node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from placewright.cluster.cluster import Cluster
from placewright.serving.rights import Rights
from placewright_console.pages.claimpage import claim_page
from placewright_console.pages.grouppage import group_page
from placewright_console.pages.nodeverdicts import Judging, node_verdicts, unjudged
from placewright_console.pages.pendingpods import PendingPods
from placewright_console.pages.verdictdesk import SHARE, VerdictDesk


class CompanyPages:
    """Answers for one cluster."""

    def __init__(self, cluster: Cluster, pending: PendingPods, clock: Callable[[], float], share: float = SHARE) -> None:
        """Answer nothing yet.

        Args:
            cluster: only read.
            pending: the pods without a node.
            clock: seconds, monotonic.
            share: share of the time that verdicts may take.
        """
        self._cluster = cluster
        self._pending = pending
        self._desk = VerdictDesk(clock, share)

    def group(self, namespace: str, name: str, rights: Rights) -> dict[str, Any] | None:
        """Return the page of a pod group.

        Returns:
            None for an unknown group, and for one that the reader may not see.
        """
        return group_page(self._cluster, self._pending, namespace, name, rights)

    def claim(self, namespace: str, name: str, rights: Rights) -> dict[str, Any] | None:
        """Return the page of a ResourceClaim.

        Returns:
            None for an unknown claim, and for one that the reader may not see.
        """
        return claim_page(self._cluster, self._pending, namespace, name, rights)

    async def verdicts(self, namespace: str, name: str, rights: Rights) -> bytes | None:
        """Return what a waiting pod would meet on each node.

        Returns:
            JSON (`nodeverdicts`); None for a pod that does not wait, and for one that the reader may not see.

        Raises:
            TooManyQuestionsError: too many readers wait for an answer.
        """
        if not rights.may_see(namespace):
            return None
        return await self._desk.answer(f"{namespace}/{name}", lambda: self._judging(namespace, name))

    def _judging(self, namespace: str, name: str) -> Judging | None:
        pod = self._pending.named(namespace, name)
        if pod is None:
            return None
        evaluator = self._pending.evaluator(pod)
        return unjudged(self._cluster, evaluator) if isinstance(evaluator, str) else node_verdicts(evaluator, self._cluster, pod)
