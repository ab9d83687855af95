"""How Kopf is set up: it filters on the server, writes nothing, and elects by peering. Measured reasons: `docs/architecture.md`."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, Final

import kopf

from placewright.engine.reflectors import UNSCHEDULED_PODS
from placewright.leadership.peering import PEERING_NAME
from placewright.leadership.peerrecord import ENROLLED_SECONDS
from placewright.leadership.peers import Replica

#: One worker an object lives this long after its last event, in seconds.
_WORKER_IDLE: Final = 0.5
_LIST_PAGE: Final = 500


class _NoDiffBase(kopf.DiffBaseStorage):
    """Remembers nothing: no handler here asks what changed, and computing it is half of Kopf's cost an event."""

    def build(self, *, body: kopf.Body, extra_fields: Iterable[Any] | None = None) -> Any:
        """Nothing to compare."""
        return {}

    def fetch(self, *, body: kopf.Body) -> None:
        """Nothing was stored."""

    def store(self, *, body: kopf.Body, patch: kopf.Patch, essence: Any) -> None:
        """Nothing is stored."""


def configure(settings: kopf.OperatorSettings, replica: Replica) -> None:
    """Set what must be set before Kopf starts to watch."""
    settings.watching.field_selectors["", "v1", "pods"] = UNSCHEDULED_PODS
    settings.watching.chunk_size = _LIST_PAGE
    settings.persistence.diffbase_storage = _NoDiffBase()
    settings.posting.enabled = False
    settings.queueing.worker_limit = None
    settings.queueing.idle_timeout = _WORKER_IDLE
    settings.peering.name = PEERING_NAME
    settings.peering.clusterwide = True
    settings.peering.mandatory = True
    settings.peering.priority = replica.priority
    settings.peering.lifetime = ENROLLED_SECONDS  # it enrols us; that we are there is told by `leadership.recordkeeper`
    settings.peering.stealth = True
    # One line an event is formatted whether or not anybody reads it.
    logging.getLogger("kopf.objects").setLevel(logging.WARNING)
