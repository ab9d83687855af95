"""Asks queueing hints whether a rejected pod is worth another try after an event. Only the plugins that rejected the pod are asked.

Hints cost a call for each pod, and thousands of pods may wait. So `UnschedulablePods` first chooses pods by the plugin that rejected them.
Then it chooses by keys, or by a narrowing test that the plugin registered with the event.

Facts: kube-scheduler's `isPodWorthRequeuing` in `backend/queue/scheduling_queue.go`, v1.36.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Final, NamedTuple

from placewright.api.pods import PodInfo
from placewright.framework.assignedpods import wanted_nearby
from placewright.framework.errors import PluginError
from placewright.framework.events import (
    WILDCARD,
    Action,
    ClusterEvent,
    ClusterEventWithHint,
    EventKeys,
    EventResource,
    Narrowing,
    QueueingHint,
    QueueingHintFn,
    always,
)
from placewright.queue.queued import ByUid, QueuedPod, drop

_log: Final = logging.getLogger(__name__)

_ANY: Final = (always,)
_UNKNOWN: Final = (ClusterEventWithHint(WILDCARD, narrow=wanted_nearby),)
#: Wraps a plugin's hint for a kind of event in a hint that reports how long it took. The answer is the same.
Timed = Callable[[str, ClusterEvent, QueueingHintFn], QueueingHintFn]


_NO_PODS: Final[Mapping[str, QueuedPod]] = {}
#: The key of pods whose plugin could not name their keys: every event of the plugin finds them.
_ANY_KEY: Final = object()

#: The keys under which a plugin's pods are found.
KeysOf = Callable[[str], Sequence[EventKeys]]


class Requeue(enum.Enum):
    """The effect of an event on a waiting pod."""

    SKIP = "leave it where it is"
    AFTER_BACKOFF = "try it again once its backoff is over"
    IMMEDIATELY = "try it again now"


class PluginHints(NamedTuple):
    """The events of one kind that one plugin registered.

    Attributes:
        asked: hint functions; none when the plugin did not register for the event.
        narrow: chooses the rejected pods that are asked about, by an event that is about a pod; None when all are.
        keys: find the rejected pods for the event; none when all have to be asked about.
    """

    asked: tuple[QueueingHintFn, ...]
    narrow: Narrowing | None
    keys: tuple[EventKeys, ...]


#: The hints of a plugin that did not register for the event, as nearly all did not.
_NOT_ASKED: Final = PluginHints((), None, ())


class EventHints(dict[str, PluginHints]):
    """The hints of one profile for one kind of event, by plugin. Each is looked up once and asked about thousands of pods.

    Args:
        interests: events that each plugin registered; None for "any event".
        event: any event of the kind.
        timed: wraps each hint; None leaves hints as they are.
    """

    def __init__(
        self, interests: Mapping[str, Sequence[ClusterEventWithHint] | None], event: ClusterEvent, timed: Timed | None = None
    ) -> None:
        self._interests = interests
        self._event = event
        self._timed = timed

    def __missing__(self, plugin: str) -> PluginHints:
        """Look up the events of this kind that a plugin registered."""
        found = self[plugin] = self._look_up(plugin)
        return found

    def _look_up(self, plugin: str) -> PluginHints:
        table = self._interests.get(plugin)
        heard = [each for each in table or () if self._event.concerns(each.event)]
        if table is not None and not heard:
            return _NOT_ASKED
        timed, keys = self._timed, [each.keys for each in heard if each.keys is not None]
        asked = [each.hint if timed is None or each.event.wildcard else timed(plugin, self._event, each.hint) for each in heard]
        narrow = None
        if self._event.frees_nothing:
            # A plugin that the profile no longer runs has no table of events. For its pods kube-scheduler's rule holds: pods that are
            # added help pods with affinity.
            told = heard if plugin in self._interests else _UNKNOWN
            narrows = tuple([each.narrow for each in told if each.narrow is not None])
            narrow = partial(_any_of, plugin, narrows) if len(narrows) == len(told) > 0 else None
        return PluginHints(_ANY if table is None else tuple(asked), narrow, tuple(keys) if len(keys) == len(heard) else ())

    @cached_property
    def wanted(self) -> bool:
        """False when the event can help no pod of this profile."""
        return self._event.wildcard or any(self[plugin].asked for plugin in self._interests)

    def effect_on(self, queued: QueuedPod, old: Any, new: Any) -> Requeue:
        """Return the effect of an event of this kind on this pod. A hint that raises counts as QUEUE.

        A pending plugin's QUEUE skips backoff, because the pod waited for exactly this event and did not fail.

        Args:
            queued: a pod that waits for an event or is gated.
            old: the object before the event; None when it appeared.
            new: the object after the event; None when it is gone.

        Returns:
            SKIP to leave the pod where it waits, otherwise when it may be tried again.
        """
        if self._event.wildcard:
            # It helps every pod, or only the pod that it is about.
            return Requeue.SKIP if isinstance(new, PodInfo) and new.uid != queued.uid else Requeue.AFTER_BACKOFF
        if queued.gated:
            # Being worth a try means another PreEnqueue here: only the gating plugin can lift its gate.
            return Requeue.AFTER_BACKOFF if self._helps(queued.gating_plugin, queued, old, new) else Requeue.SKIP
        if queued.recalled and self[queued.gating_plugin].asked:
            return Requeue.AFTER_BACKOFF
        for plugin in queued.pending_plugins:
            if self._helps(plugin, queued, old, new):
                return Requeue.IMMEDIATELY
        for plugin in queued.unschedulable_plugins:
            if self._helps(plugin, queued, old, new):
                return Requeue.AFTER_BACKOFF
        return Requeue.SKIP if queued.rejected else Requeue.AFTER_BACKOFF

    def _helps(self, plugin: str, queued: QueuedPod, old: Any, new: Any) -> bool:
        for hint in self[plugin].asked:
            try:
                if hint(queued.pod, old, new) is QueueingHint.QUEUE:
                    return True
            except PluginError as problem:
                _log.warning("%s; pod %s is tried again", problem, queued.key, extra={"about": plugin})
                return True
            except MemoryError:
                raise
            except Exception:  # noqa: BLE001 - one bad hint must not keep other pods from being moved
                _log.warning("Queueing hint of %s failed for pod %s; the pod is tried again.", plugin, queued.key, exc_info=True)
                return True
        return False


def _any_of(plugin: str, narrows: tuple[Narrowing, ...], pod: PodInfo, old: Any, new: Any) -> bool:
    try:
        return any(narrow(pod, old, new) for narrow in narrows)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - then the hint says it
        _log.warning("A narrowing of the events of %s failed for pod %s; its hint is asked.", plugin, pod.key, exc_info=True)
        return True


class Hints:
    """The hints of one profile, by kind of event.

    Any event helps a pod whose rejecting plugin registered no table, or is unknown to the profile. Otherwise the pod would wait for
    an event that no plugin listens for.

    Args:
        interests: events that each plugin registered; None for "any event".
        timed: wraps each hint; None leaves hints as they are.
    """

    __slots__ = ("_by_event", "_interests", "_keys", "_timed")

    def __init__(self, interests: Mapping[str, Sequence[ClusterEventWithHint] | None], timed: Timed | None = None) -> None:
        self._interests = interests
        self._timed = timed
        keys = {plugin: dict.fromkeys(each.keys for each in table or () if each.keys is not None) for plugin, table in interests.items()}
        self._keys = {plugin: tuple(each) for plugin, each in keys.items() if each}
        self._by_event: dict[tuple[EventResource | str, Action], EventHints] = {}

    def knows(self, plugin: str) -> bool:
        """Return True for a plugin that the profile has enabled."""
        return plugin in self._interests

    def keys_of(self, plugin: str) -> Sequence[EventKeys]:
        """Return the keys under which a plugin's rejected pods are listed; none for a plugin without."""
        return self._keys.get(plugin, ())

    def about(self, event: ClusterEvent) -> EventHints:
        """Return the hints for the kind of this event, the same object for the same kind."""
        kind = (event.resource, event.action)
        found = self._by_event.get(kind)
        if found is None:
            found = self._by_event[kind] = EventHints(self._interests, event, self._timed)
        return found


class Reached(NamedTuple):
    """Waiting pods that an event may concern.

    Attributes:
        pods: waiting pods by uid.
        narrow: a further test of each pod (`ClusterEventWithHint.narrow`); None when all are asked about.
    """

    pods: Mapping[str, QueuedPod]
    narrow: Narrowing | None

    def chosen(self, old: Any, new: Any) -> Mapping[str, QueuedPod]:
        """Return the pods whose hints are to be asked.

        Args:
            old: the event's object before; None when it appeared.
            new: the event's object after; None when it is gone.

        Returns:
            The pods that pass `narrow`, by uid.
        """
        narrow = self.narrow
        return self.pods if narrow is None else {uid: queued for uid, queued in self.pods.items() if narrow(queued.pod, old, new)}


class _Entry(NamedTuple):
    """A waiting pod, and the index entries that list it."""

    queued: QueuedPod
    held_by: tuple[str, ...]
    keys: list[tuple[str, EventKeys, Hashable]]


class UnschedulablePods(ByUid):
    """Pods by uid, indexed by plugin. An event costs nothing for pods whose plugins do not listen for it.

    A plugin may name keys for its pods (`EventKeys`). A pod is listed under the keys of the version that was put in, until
    `put_anew`.

    Args:
        keys_of: the keys of a plugin's pods.
    """

    __slots__ = ("_by_key", "_by_plugin", "_keys_of", "_of")

    def __init__(self, keys_of: KeysOf) -> None:
        self._of: dict[str, _Entry] = {}
        self._by_plugin: dict[str, dict[str, QueuedPod]] = {}
        self._by_key: dict[tuple[str, EventKeys, Hashable], dict[str, QueuedPod]] = {}
        self._keys_of = keys_of

    def __iter__(self) -> Iterator[QueuedPod]:
        """Iterate over all pods, in order of arrival."""
        return (entry.queued for entry in self._of.values())

    def get(self, uid: str) -> QueuedPod | None:
        """Find a pod; None when it is not here."""
        found = self._of.get(uid)
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
        self._of[queued.uid] = _Entry(queued, held_by, keys)
        for plugin in held_by:
            self._by_plugin.setdefault(plugin, {})[queued.uid] = queued
        for listed in keys:
            self._by_key.setdefault(listed, {})[queued.uid] = queued

    def put_anew(self, uid: str) -> None:
        """Index a pod anew after it changed; harmless for a pod that is not here. The pod keeps its place in the order of arrival."""
        entry = self._of.get(uid)
        if entry is not None and (entry.keys or any(self._keys_of(plugin) for plugin in entry.held_by)):
            self.put(entry.queued, entry.held_by)

    def index_anew(self, keys_of: KeysOf) -> None:
        """Index all pods anew if a plugin that holds some of them back has other keys than before.

        Args:
            keys_of: the keys of a plugin's pods from now on.
        """
        before, self._keys_of = self._keys_of, keys_of
        if any(tuple(keys_of(plugin)) != tuple(before(plugin)) for plugin in self._by_plugin):
            for entry in tuple(self._of.values()):
                self.put(entry.queued, entry.held_by)

    def remove(self, uid: str) -> QueuedPod | None:
        """Remove a pod and return it; None when it is not here."""
        entry = self._of.pop(uid, None)
        if entry is None:
            return None
        for plugin in entry.held_by:
            drop(self._by_plugin, plugin, uid)
        for listed in entry.keys:
            drop(self._by_key, listed, uid)
        return entry.queued

    def plugins(self) -> Collection[str]:
        """Return the plugins that hold at least one pod back."""
        return self._by_plugin.keys()

    def held_by(self, plugin: str) -> Mapping[str, QueuedPod]:
        """Return the pods that a plugin holds back, by uid; a view."""
        return self._by_plugin.get(plugin, _NO_PODS)

    def reach(self, hints: EventHints, old: Any, new: Any, *, keyed: bool = True) -> Iterator[Reached]:
        """Find the pods whose plugin listens for an event.

        Args:
            hints: hints of the event.
            old: the event's object before; None when it appeared.
            new: the event's object after; None when it is gone.
            keyed: choose by keys. Without, the result covers every event of this kind, whichever object it is about.

        Yields:
            The pods of each plugin; a pod that several plugins rejected is in several of them.
        """
        for plugin, held in self._by_plugin.items():
            asked, narrow, keys = hints[plugin]
            if asked:
                pods = self.concerned(plugin, keys, old, new) if keyed and keys else held
                yield Reached(pods, narrow if isinstance(new, PodInfo) else None)

    def concerned(self, plugin: str, by: Sequence[EventKeys], old: Any, new: Any) -> Mapping[str, QueuedPod]:
        """Return the plugin's pods that share a key with an event. If the event's keys are not known, return all its pods.

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
            except Exception:  # noqa: BLE001 - without keys the hints decide
                _log.warning("Plugin %s could not name the keys of an event; its hints are asked about all pods.", plugin, exc_info=True)
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
        _log.warning("Plugin %s could not name the keys of pod %s; its hints are asked about every event.", plugin, pod.key, exc_info=True)
        return (_ANY_KEY,)
