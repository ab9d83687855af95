"""What a cluster shows while a test goes: pods, nodes, profiles and events by watches, and waiting for what they show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from news import News
from placewright.api.objects import NodeName, ObjectMeta
from placewright.kube.client import ApiClient
from placewright.kube.errors import RetryBackoff
from placewright.kube.reflector import Reflector, Reflectors, Source

from .installation import PEERING, PROFILES

Object = dict[str, Any]
#: How long anything may take before the test fails, seconds: machines are noisy.
DEADLINE: Final = 90.0
_BACKOFF: Final = RetryBackoff(initial=0.1, maximum=1.0)


class Seen(msgspec.Struct, frozen=True, rename="camel"):
    """An object as a watch shows it; what an event says stands at its top."""

    metadata: ObjectMeta
    spec: Object = {}
    status: Object = {}
    reason: str = ""
    message: str = ""
    involved_object: Object = {}
    reporting_instance: str = ""

    def condition(self, kind: str) -> Object:
        """Its condition of this type, or an empty one."""
        return next((each for each in self.status.get("conditions") or () if each["type"] == kind), {})

    def as_json(self) -> Object:
        """As an API server shows it."""
        return dict(msgspec.to_builtins(self))


class Views:
    """The current objects by key, each collection kept by a watch.

    Attributes:
        placements: the node that each pod was seen on last, by uid: of those that exist ("" for none), and of deleted ones that had one.
    """

    def __init__(self, client: ApiClient, namespace: str, stage_label: str) -> None:
        self.placements: dict[str, NodeName] = {}
        self._news = News()
        self._pods = self._reflect(client, "/api/v1/pods", _PlacementSink(self.placements, self._news), "spec.schedulerName=placewright")
        self._nodes = self._reflect(client, "/api/v1/nodes", labels=stage_label)
        self._profiles = self._reflect(client, PROFILES)
        self._events = self._reflect(client, f"/api/v1/namespaces/{namespace}/events")
        self._peerings = self._reflect(client, PEERING)
        self.reflectors = Reflectors([self._pods, self._nodes, self._profiles, self._events, self._peerings])

    def _reflect(self, client: ApiClient, path: str, sink: _Sink | None = None, fields: str = "", labels: str = "") -> Reflector[Seen]:
        return Reflector(client, Source(path, Seen, fields, labels), sink or _Sink(self._news), backoff=_BACKOFF)

    @property
    def pods(self) -> dict[str, Seen]:
        """All pods of the schedulerName placewright, by `namespace/name`."""
        return self._pods.store

    @property
    def nodes(self) -> dict[str, Seen]:
        """The stage's nodes, by name."""
        return self._nodes.store

    @property
    def profiles(self) -> dict[str, Seen]:
        """All profiles, by name."""
        return self._profiles.store

    @property
    def peers(self) -> set[str]:
        """Identities of the replicas that have announced themselves."""
        return {name for each in self._peerings.store.values() for name in each.status}

    def events(self, pod: str, reason: str) -> list[Seen]:
        """Events of the stage's namespace about a pod of that name."""
        return [each for each in self._events.store.values() if each.reason == reason and each.involved_object.get("name") == pod]

    def reporters(self, keys: Sequence[str]) -> set[str]:
        """Which replicas said that they placed these pods."""
        names = {key.partition("/")[2] for key in keys}
        events = (each for each in self._events.store.values() if each.reason == "Scheduled")
        return {each.reporting_instance for each in events if each.involved_object.get("name") in names}

    def pods_told(self, reason: str) -> set[str]:
        """Names of the pods of the stage's namespace with an event of this reason."""
        return {each.involved_object.get("name", "") for each in self._events.store.values() if each.reason == reason}

    async def until(self, condition: Callable[[], Any], what: Callable[[], str], deadline: float = DEADLINE) -> None:
        """Wait until the condition holds; fail at the deadline with what `what` says then."""
        await self._news.until(condition, what, deadline, look=0.1)


class _Sink:
    """Says that there is news."""

    def __init__(self, news: News) -> None:
        self._news = news

    def changed(self, old: Seen | None, new: Seen) -> None:
        self._news.set()

    def deleted(self, old: Seen) -> None:
        self._news.set()

    def synced(self) -> None:
        self._news.set()


class _PlacementSink(_Sink):
    """Remembers where pods were."""

    def __init__(self, placements: dict[str, NodeName], news: News) -> None:
        super().__init__(news)
        self._placements = placements

    def changed(self, old: Seen | None, new: Seen) -> None:
        self._placements[new.metadata.uid] = NodeName(new.spec.get("nodeName", ""))
        super().changed(old, new)

    def deleted(self, old: Seen) -> None:
        if not self._placements.get(old.metadata.uid):
            self._placements.pop(old.metadata.uid, None)
        super().deleted(old)
