"""Pods that wait for events, indexed by the plugin that holds them back and by the keys of that plugin's events."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from placewright.api.pods import PodInfo
from placewright.framework.events import EventKeys
from placewright.queue.queued import QueuedPod

_log: Final = logging.getLogger(__name__)

_NO_PODS: Final[Mapping[str, QueuedPod]] = {}
#: The key of pods whose plugin could not name their keys: every event of the plugin finds them.
_ANY_KEY: Final = object()

#: The keys under which a plugin's pods are found.
KeysOf = Callable[[str], Sequence[EventKeys]]


class _Entry(NamedTuple):
    """A waiting pod, and the index entries that list it."""

    queued: QueuedPod
    held_by: tuple[str, ...]
    keys: list[tuple[str, EventKeys, Hashable]]


class UnschedulablePods:
    """Pods by uid, indexed by plugin, so that an event costs nothing for pods whose plugins do not listen for it.

    A plugin may name keys for its pods (`EventKeys`). A pod is listed under the keys of the version that was put in, until
    `put_anew`.

    Args:
        keys_of: the keys of a plugin's pods.
    """

    __slots__ = ("_by_key", "_by_plugin", "_keys_of", "_pods")

    def __init__(self, keys_of: KeysOf) -> None:
        self._pods: dict[str, _Entry] = {}
        self._by_plugin: dict[str, dict[str, QueuedPod]] = {}
        self._by_key: dict[tuple[str, EventKeys, Hashable], dict[str, QueuedPod]] = {}
        self._keys_of = keys_of

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def __iter__(self) -> Iterator[QueuedPod]:
        """Iterate over all pods, in order of arrival."""
        return (entry.queued for entry in self._pods.values())

    def uids(self) -> list[str]:
        """Return the uids of all pods as they are now, in order of arrival."""
        return list(self._pods)

    def get(self, uid: str) -> QueuedPod | None:
        """Find a pod.

        Args:
            uid: the pod's.

        Returns:
            The pod; None when it is not here.
        """
        found = self._pods.get(uid)
        return found.queued if found else None

    def put(self, queued: QueuedPod, plugins: Iterable[str]) -> None:
        """List a pod under the plugins that hold it back; a pod that is here already is indexed anew.

        Args:
            queued: the pod.
            plugins: the plugins whose events it waits for.
        """
        self.remove(queued.uid)
        held_by = tuple(plugins)
        keys = [(plugin, by, key) for plugin in held_by for by in self._keys_of(plugin) for key in _keys(plugin, by, queued.pod)]
        self._pods[queued.uid] = _Entry(queued, held_by, keys)
        for plugin in held_by:
            self._by_plugin.setdefault(plugin, {})[queued.uid] = queued
        for listed in keys:
            self._by_key.setdefault(listed, {})[queued.uid] = queued

    def put_anew(self, uid: str) -> None:
        """Index a pod anew after it changed; harmless for a pod that is not here. The pod keeps its place in the order of arrival."""
        entry = self._pods.get(uid)
        if entry is not None and (entry.keys or any(self._keys_of(plugin) for plugin in entry.held_by)):
            self.put(entry.queued, entry.held_by)

    def index_anew(self, keys_of: KeysOf) -> None:
        """Index all pods anew, if a plugin that holds some of them back has other keys than before: thousands of pods may wait.

        Args:
            keys_of: the keys of a plugin's pods from now on.
        """
        before, self._keys_of = self._keys_of, keys_of
        if any(tuple(keys_of(plugin)) != tuple(before(plugin)) for plugin in self._by_plugin):
            for entry in tuple(self._pods.values()):
                self.put(entry.queued, entry.held_by)

    def remove(self, uid: str) -> QueuedPod | None:
        """Remove a pod.

        Args:
            uid: the pod's.

        Returns:
            The pod; None when it is not here.
        """
        entry = self._pods.pop(uid, None)
        if entry is None:
            return None
        for plugin in entry.held_by:
            _drop(self._by_plugin, plugin, uid)
        for listed in entry.keys:
            _drop(self._by_key, listed, uid)
        return entry.queued

    def plugins(self) -> Collection[str]:
        """Return the plugins that hold at least one pod back."""
        return self._by_plugin.keys()

    def held_by(self, plugin: str) -> Mapping[str, QueuedPod]:
        """Return the pods that a plugin holds back.

        Args:
            plugin: its name.

        Returns:
            The pods by uid; a view.
        """
        return self._by_plugin.get(plugin, _NO_PODS)

    def concerned(self, plugin: str, by: Sequence[EventKeys], old: Any, new: Any) -> Mapping[str, QueuedPod]:
        """Return the plugin's pods that have a key in common with an event. When the event's keys cannot be told, all its pods.

        Args:
            plugin: holds the pods back.
            by: the keys that the plugin registered with the event.
            old: the event's object before; None when it appeared.
            new: the event's object after; None when it is gone.

        Returns:
            The pods by uid.
        """
        found: dict[str, QueuedPod] = {}
        for keys in by:
            try:
                wanted = keys.of_event(old, new)
            except MemoryError:
                raise
            except Exception:  # noqa: BLE001 - then the hints decide
                _log.warning("The keys of an event of %s could not be told; all its pods are asked.", plugin, exc_info=True)
                wanted = None
            if wanted is None:
                return self.held_by(plugin)
            for key in (*wanted, _ANY_KEY):
                found.update(self._by_key.get((plugin, keys, key), _NO_PODS))
        return found


def _keys(plugin: str, by: EventKeys, pod: PodInfo) -> Collection[Hashable]:
    try:
        return set(by.of_pod(pod))
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - then every event of the plugin finds the pod
        _log.warning("The keys of pod %s could not be told by %s; its hints are always asked.", pod.key, plugin, exc_info=True)
        return (_ANY_KEY,)


def _drop(index: dict[Any, dict[str, QueuedPod]], key: Hashable, uid: str) -> None:
    pods = index[key]
    del pods[uid]
    if not pods:
        del index[key]
