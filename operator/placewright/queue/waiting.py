"""Pods that wait for an event, found by the plugins that hold them back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from placewright.queue.queued import QueuedPod

_NOBODY: Final[Mapping[str, QueuedPod]] = {}


class WaitingPods:
    """Pods by uid, indexed by plugin, so that an event costs nothing for pods whose plugins do not care."""

    __slots__ = ("_by_plugin", "_pods")

    def __init__(self) -> None:
        self._pods: dict[str, tuple[QueuedPod, tuple[str, ...]]] = {}
        self._by_plugin: dict[str, dict[str, QueuedPod]] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def __iter__(self) -> Iterator[QueuedPod]:
        """All pods, in order of arrival."""
        return (queued for queued, _ in self._pods.values())

    def get(self, uid: str) -> QueuedPod | None:
        """The pod of this uid, or None."""
        found = self._pods.get(uid)
        return found[0] if found else None

    def put(self, queued: QueuedPod, plugins: Iterable[str]) -> None:
        """Let a pod wait for these plugins' events; a pod already here is indexed anew."""
        self.remove(queued.uid)
        held_by = tuple(plugins)
        self._pods[queued.uid] = (queued, held_by)
        for plugin in held_by:
            self._by_plugin.setdefault(plugin, {})[queued.uid] = queued

    def remove(self, uid: str) -> QueuedPod | None:
        """Take a pod out; None when it is not here."""
        found = self._pods.pop(uid, None)
        if found is None:
            return None
        queued, held_by = found
        for plugin in held_by:
            pods = self._by_plugin[plugin]
            del pods[uid]
            if not pods:
                del self._by_plugin[plugin]
        return queued

    def plugins(self) -> Collection[str]:
        """Plugins that hold at least one pod back."""
        return self._by_plugin.keys()

    def held_by(self, plugin: str) -> Mapping[str, QueuedPod]:
        """Pods by uid that this plugin holds back."""
        return self._by_plugin.get(plugin, _NOBODY)
