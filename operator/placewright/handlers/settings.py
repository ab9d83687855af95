"""Kopf's settings: the API server filters, Kopf writes nothing to pods and profiles, and its peering elects the active replica."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable
from typing import Any, Final

import kopf

from placewright.engine.discovery import UNSCHEDULED_PODS
from placewright.leadership.peering import PEERING_NAME
from placewright.leadership.peers import ENROLLED_SECONDS, Replica

#: Seconds that Kopf's worker of an object waits for another event. Kopf's 5 s would keep ten times as many tasks in a storm of pods;
#: much less would end and start workers between the events of one pod.
_WORKER_IDLE_SECONDS: Final = 0.5
#: Objects in a page of a list, as in client-go: a page is decoded in one go of the event loop.
_PAGE_OBJECTS: Final = 500
#: Seconds between two attempts at a request that found no server. Kopf's own pauses grow to 21 s, and then its watch ends. After a restart
#: of the API server Kopf would come back long after our reflectors. Meanwhile the reconciler would find the new pods.
_RETRY_SECONDS: Final = 1.0


class NoDiffBase(kopf.DiffBaseStorage):
    """Stores no state to compare objects with: no handler here asks for a difference, and computing it is half of Kopf's cost an event."""

    def build(self, *, body: kopf.Body, extra_fields: Iterable[Any] | None = None) -> Any:
        """Return an empty essence, as nothing is compared.

        Args:
            body: body of the object.
            extra_fields: extra fields of handlers for single fields; there are none.
        """
        return {}

    def fetch(self, *, body: kopf.Body) -> None:
        """Return that nothing was stored."""

    def store(self, *, body: kopf.Body, patch: kopf.Patch, essence: Any) -> None:
        """Store nothing, so that no annotation is written.

        Args:
            body: body of the object.
            patch: stays empty.
            essence: the empty one.
        """


def configure(settings: kopf.OperatorSettings, replica: Replica) -> None:
    """Set Kopf up. To be called by a startup handler, before Kopf watches.

    Args:
        settings: Kopf's, changed in place.
        replica: its priority is announced to Kopf's peering.
    """
    settings.watching.field_selectors["", "v1", "pods"] = UNSCHEDULED_PODS
    settings.watching.chunk_size = _PAGE_OBJECTS
    settings.networking.error_backoffs = itertools.repeat(_RETRY_SECONDS)  # without an end: a watch ends with its operator alone
    settings.persistence.diffbase_storage = NoDiffBase()
    settings.posting.enabled = False
    settings.queueing.worker_limit = None  # a limit caps events a second at the limit divided by the idle timeout
    settings.queueing.idle_timeout = _WORKER_IDLE_SECONDS
    settings.peering.name = PEERING_NAME
    settings.peering.clusterwide = True
    settings.peering.mandatory = True
    settings.peering.priority = replica.priority
    settings.peering.lifetime = ENROLLED_SECONDS  # Kopf writes the record once; `RecordKeeper` renews it
    settings.peering.stealth = True
    # Kopf formats a line for each event before it looks at the level of the handlers.
    logging.getLogger("kopf.objects").setLevel(logging.WARNING)
