"""The cluster that is shown, for the console's own features: as columns, and the right to write, if it was given.

The pages themselves may come from an operator's console. A feature that evaluates the cluster in this process, such as what-if, asks here.
It gets a cluster that was read with the rights of the person who started the console.
"""

from __future__ import annotations

from typing import Protocol

from placewright.kube.client import ApiClient
from placewright_console.local.seenworld import SeenWorld


class ClusterAtHand(Protocol):
    """The cluster that the console shows.

    A source of the pages is one, so that pages and features speak of one cluster.

    Example:
        world = await at_hand.current_world()
        now = evaluated(world.evaluators["placewright"], world.cluster, pod)
    """

    @property
    def writer(self) -> ApiClient | None:
        """A client of the API server that may change things, with the person's own rights. None: the console only reads."""

    async def current_world(self) -> SeenWorld:
        """Return the cluster as it is now, or was some seconds ago.

        It may be live: it may change whenever the caller awaits, and the caller does not change it. The first call may take as long as
        reading the whole cluster does. Later calls return the same object as long as they come within minutes of each other.

        Raises:
            InputError: the cluster cannot be read; the message is for the person.
        """
