"""The interface between a server of the console and its data: the state of the feed, and the pages of nodes and pods.

A file's source is in `placewright_console.local`, the running operator's above its engine. Both servers need no more than this.
"""

from __future__ import annotations

from typing import Any, Protocol

from placewright.serving.rights import Rights
from placewright_console.pages.companypages import CompanyPages
from placewright_console.pages.feed import StateSource
from placewright_console.pages.waitingpage import PodsAsked


class ConsoleSource(StateSource, Protocol):
    """The state, brought forward in slices, and the pages that a reader asks for.

    Example:
        while source.advance():                 # between two slices others have their turn
            await asyncio.sleep(0)
        feed.publish()
    """

    def advance(self) -> bool:
        """Do a bounded slice of the work that the state needs.

        Returns:
            Whether there is more to do at once.
        """

    def node(self, name: str, rights: Rights) -> dict[str, Any] | None:
        """Return what runs on a node.

        Args:
            name: name of the node.
            rights: rights of the reader. Pods of other namespaces are counted.

        Returns:
            None for an unknown node.
        """

    def pod(self, namespace: str, name: str, rights: Rights) -> dict[str, Any] | None:
        """Explain a pod as `placewright explain` does.

        Returns:
            None for an unknown pod, and for a pod that the reader may not see.
        """

    def waiting(self, asked: PodsAsked, rights: Rights) -> dict[str, Any]:
        """Return a page of the pods of rows of the queue (`waitingpage`).

        Args:
            asked: the question.
            rights: rights of the reader. Pods of other namespaces are left out.

        Returns:
            The page; empty for rows that are not there any more.
        """


class CompanySource(ConsoleSource, Protocol):
    """A source that knows the pods without a node one by one."""

    @property
    def company(self) -> CompanyPages:
        """The pages of groups and claims, and the verdicts about each node."""
