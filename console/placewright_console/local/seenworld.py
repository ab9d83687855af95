"""The cluster that the console shows, as columns: of a file with its recorded changes, or of a live API server."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final, Protocol, TypeAlias

from placewright.api.bad_input import InputError, bad_field
from placewright.api.compatibility import BASELINE
from placewright.api.decode import DecodeError, convert
from placewright.api.objects import Condition, Node, NodeName, Pod
from placewright.api.pods import PodInfo
from placewright.api.profile import KIND as PROFILE
from placewright.api.profile import SchedulingProfile, default_profile
from placewright.cluster.cluster import Cluster
from placewright.cluster.objects import ClusterObject
from placewright.explain.observed import ObservedObjects, oldest_of
from placewright.framework.errors import PluginError
from placewright.framework.registry import Registry
from placewright.framework.runtime.evaluation import Evaluator
from placewright.kube.writers.podstatus import POD_SCHEDULED, find_condition
from placewright.offline.world import Members, offline_evaluator, read_object
from placewright.profiles.config import placing
from placewright.profiles.resolve import resolve
from placewright.profiles.unclaimed import looked_at_by_others
from placewright_console.pages.decisionrows import LastDecisions, SeenDecision
from placewright_console.pages.pendingpods import unix_seconds
from placewright_console.pages.timeline import OTHERS, Series

#: Objects that a world is made of.
Item: TypeAlias = Node | Pod | PodInfo | SchedulingProfile | ClusterObject
#: Placements that are kept for `take_placed`.
_MOST_UNTOLD: Final = 100_000
#: Objects that are put in between two looks at the clock.
_PIECE: Final = 64
#: The type of a watch's event that ends an object.
_DELETED: Final = "DELETED"


class RecordedChange(Protocol):
    """A change of an object, as a recorder saw it."""

    @property
    def at(self) -> float:
        """Seconds after the beginning."""

    @property
    def act(self) -> str:
        """Type of the watch's event: ADDED, MODIFIED or DELETED."""

    @property
    def manifest(self) -> dict[str, Any]:
        """The object as it is then; of a deleted one, its name and kind."""


class SeenBeginning(Protocol):
    """The beginning of a file, as read."""

    @property
    def objects(self) -> Sequence[Node | PodInfo | ClusterObject]:
        """All objects but the profiles."""

    @property
    def profiles(self) -> Sequence[SchedulingProfile]:
        """The profiles. A file without profiles gets kube-scheduler's default profile, as in `simulate`."""

    @property
    def kubernetes(self) -> int:
        """Minor version of the API server that the objects come from."""

    @property
    def remarks(self) -> Sequence[str]:
        """Remarks about the file, for the person who opened it."""


class SeenWorld:
    """The cluster at one moment.

    Attributes:
        cluster: nodes, pods on them, and all other objects.
        kubernetes: minor version of the API server, by which profiles are judged that follow it.
        pending: pods without a node, by uid.
        members: the same pods, by group.
        changes: number of changes that were applied.
        profiles: profiles that place pods; kube-scheduler's default profile if there are none.
        evaluators: evaluators of each schedulerName that a usable profile has.
        placements: the last pods that got their nodes while the changes were applied.
        began: when it was begun, seconds since 1970.
        now: the moment that is shown, seconds since 1970.
        notes: notes for the person who opened it.
    """

    def __init__(self, registry: Registry, began: float, clock: Callable[[], float] | None = None) -> None:
        """Begin without objects.

        Args:
            registry: registry of plugins.
            began: seconds since 1970.
            clock: seconds since 1970, for plugins that ask for the time; None for the latest Binding that pods tell of.
        """
        self.cluster = Cluster()
        self.kubernetes = BASELINE
        self.pending: dict[str, PodInfo] = {}
        self.members = Members()
        self.changes = 0
        self.placements = LastDecisions()
        self.notes: list[str] = []
        self.began = self.now = began
        self.profiles = [default_profile()]
        self.evaluators: dict[str, Evaluator] = {}
        self._registry = registry
        self._clock = clock
        self._known_profiles: dict[str, SchedulingProfile] = {}
        #: The profile that each schedulerName's evaluator was made from.
        self._evaluated: dict[str, SchedulingProfile] = {}
        self._unusable: dict[str, str] = {}
        self._placed: deque[tuple[Series, float]] = deque(maxlen=_MOST_UNTOLD)
        self._refused: Counter[Series] = Counter()

    def filling(self, seen: SeenBeginning) -> Generator[int, None, None]:
        """Put in the beginning of a file, piece by piece.

        Yields:
            How many objects are in, after each piece.
        """
        self.notes += seen.remarks
        self.kubernetes = seen.kubernetes
        for many, item in enumerate(seen.objects, 1):
            self.put(item)
            if many % _PIECE == 0:
                yield many
        self.set_profiles(seen.profiles)
        self.changes = 0

    @property
    def scheduler_names(self) -> Sequence[str]:
        """The schedulerNames of all usable profiles, sorted."""
        return sorted(self.evaluators)

    @property
    def has_profiles(self) -> bool:
        """Whether there is a SchedulingProfile."""
        return bool(self._known_profiles)

    @property
    def declared(self) -> Collection[SchedulingProfile]:
        """All profiles that there are, shadows among them."""
        return self._known_profiles.values()

    @property
    def in_effect(self) -> Mapping[str, tuple[str, int]]:
        """The profile's name and its generation, by schedulerName."""
        used = {name: self._evaluated[name].metadata for name in self.evaluators}
        return {name: (metadata.name, metadata.generation) for name, metadata in used.items()}

    @property
    def remarks(self) -> Sequence[str]:
        """The notes, and the reasons why profiles cannot be used."""
        return [*self.notes, *(self._unusable[name] for name in sorted(self._unusable))]

    def observed(self) -> ObservedObjects:
        """Return the objects as `explain` takes them."""
        return ObservedObjects(self.cluster, self.profiles, self.members, kubernetes=self.kubernetes)

    def pod(self, namespace: str, name: str) -> PodInfo | None:
        """Find a pod by name: without a node, or on one. O(pods)."""
        on_nodes = (placement.pod for placement in self.cluster.placements())
        return next((pod for pod in chain(self.pending.values(), on_nodes) if (pod.namespace, pod.name) == (namespace, name)), None)

    def series(self, scheduler_name: str) -> Series:
        """Return the profile and the generation that a pod is counted with. A schedulerName without a profile is not named."""
        if scheduler_name not in self.evaluators:
            return OTHERS, 0
        return scheduler_name, self._evaluated[scheduler_name].metadata.generation

    def take_placed(self) -> list[tuple[Series, float]]:
        """Return the placements since the last call: with which profile each is counted, and the seconds since the pod's creation."""
        taken = list(self._placed)
        self._placed.clear()
        return taken

    def take_refused(self) -> Counter[Series]:
        """Return the refusals since the last call, by the profile that each is counted with.

        A pod tells of a refusal by its condition. Another attempt that writes the same condition cannot be seen.
        """
        taken, self._refused = self._refused, Counter()
        return taken

    def apply(self, change: RecordedChange) -> None:
        """Apply a change of a recording.

        Raises:
            InputError: its object is not valid.
        """
        self.now = self.began + change.at
        where = f"{change.at:g} s after the beginning"
        item = _read_profile(change.manifest, where) if change.manifest.get("kind") == PROFILE else _read(change, where)
        if item is None:
            self.changes += 1
        elif change.act == _DELETED:
            self.remove(item)
        else:
            self.put(item)

    def put(self, item: Item) -> None:
        """Add an object, or its new state."""
        self.changes += 1
        if isinstance(item, Node):
            self.cluster.set_node(item)
        elif isinstance(item, Pod | PodInfo):
            self._put_pod(PodInfo(item) if isinstance(item, Pod) else item)
        elif isinstance(item, SchedulingProfile):
            self.set_profiles([*(each for name, each in self._known_profiles.items() if name != item.metadata.name), item])
        else:
            self.cluster.objects.put(item)

    def remove(self, item: Item) -> None:
        """Remove an object."""
        self.changes += 1
        if isinstance(item, Node):
            self.cluster.remove_node(NodeName(item.metadata.name))
        elif isinstance(item, Pod | PodInfo):
            self._remove_pod(item.metadata.uid if isinstance(item, Pod) else item.uid)
        elif isinstance(item, SchedulingProfile):
            self.set_profiles([each for name, each in self._known_profiles.items() if name != item.metadata.name])
        else:
            self.cluster.objects.remove(item)

    def set_profiles(self, profiles: Iterable[SchedulingProfile]) -> None:
        """Go on with other profiles. Evaluators of profiles that stay as they are, stay.

        Args:
            profiles: all that there are. Without any, pods are judged by kube-scheduler's default profile.
        """
        self._known_profiles = {each.metadata.name: each for each in profiles}
        self.profiles = list(placing(list(self._known_profiles.values()))) or [default_profile()]
        self._unusable.clear()
        claiming = {name: oldest_of(self.profiles, name) for name in {each.spec.scheduler_name for each in self.profiles}}
        for gone in self.evaluators.keys() - claiming.keys():
            del self.evaluators[gone]
        for name, profile in claiming.items():
            assert profile is not None
            if name not in self.evaluators or self._evaluated.get(name) != profile:
                self._evaluate_by(name, profile)

    def _evaluate_by(self, name: str, profile: SchedulingProfile) -> None:
        self.evaluators.pop(name, None)
        try:
            resolved = resolve(profile, self._registry, self.kubernetes)
            self.evaluators[name] = offline_evaluator(resolved, self._registry, self.cluster, self.members, now=self._clock)
        except (InputError, PluginError) as problem:
            self._unusable[profile.metadata.name] = f"SchedulingProfile {profile.metadata.name} cannot be used: {problem}"
        self._evaluated[name] = profile

    def _put_pod(self, pod: PodInfo) -> None:
        if pod.finished:
            self._remove_pod(pod.uid)
        elif not pod.node_name:
            refusal = _refusal(pod)
            if refusal is not None and refusal != _refusal(self.pending.get(pod.uid)):
                self._refused[self.series(pod.scheduler_name)] += 1
            self._wait_no_more(pod.uid)
            self.pending[pod.uid] = pod
            self.members.add(pod)
        else:
            if self._wait_no_more(pod.uid):
                self.placements.add(SeenDecision(pod.uid, pod.namespace, pod.name, pod.node_name, pod.scheduler_name, self.now))
                waited = self.now - (unix_seconds(pod.created) or self.now)
                self._placed.append((self.series(pod.scheduler_name), max(waited, 0.0)))
            self.cluster.set_pod(pod)

    def _remove_pod(self, uid: str) -> None:
        self._wait_no_more(uid)
        self.cluster.remove_pod(uid)

    def _wait_no_more(self, uid: str) -> bool:
        pod = self.pending.pop(uid, None)
        if pod is not None:
            self.members.remove(pod)
        return pod is not None


def _refusal(pod: PodInfo | None) -> Condition | None:
    """Return the condition by which a scheduler reports that a waiting pod has no node."""
    if pod is None or not looked_at_by_others(pod.pod.status.conditions):
        return None
    return find_condition(pod.pod, POD_SCHEDULED)


def _read(change: RecordedChange, where: str) -> Item | None:
    """Return the object of a change. A deleted node is its name alone."""
    manifest = change.manifest
    if change.act == _DELETED and manifest.get("kind") == "Node":
        return convert({"metadata": {"name": manifest["metadata"]["name"]}}, Node)
    return read_object(manifest, where)


def _read_profile(manifest: Mapping[str, Any], where: str) -> SchedulingProfile:
    try:
        return convert(manifest, SchedulingProfile)
    except DecodeError as problem:
        raise bad_field(f"{where}: {PROFILE}", str(problem), "a valid SchedulingProfile") from None
