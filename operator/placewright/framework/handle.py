"""What plugins may ask of the scheduler around them, and how a profile's plugins are built around it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.evaluation import Evaluator
from placewright.framework.interface import Binder, Plugin, RowChecks, Rows, WaitingForPermit
from placewright.framework.resolved import ResolvedProfile
from placewright.framework.rowchecks import Nominations
from placewright.framework.runtime import ProfileRuntime
from placewright.framework.status import Status


class ProfileHandle:
    """The `Handle` of one profile's plugins."""

    def __init__(self, cluster: Cluster, binder: Binder, nominations: Nominations, waiting: Iterable[WaitingForPermit]) -> None:
        self._cluster = cluster
        self._waiting = waiting
        self._binder = binder
        self._nominations = nominations
        self._evaluator: Evaluator | None = None

    @property
    def cluster(self) -> Cluster:
        """The cluster as columns."""
        return self._cluster

    @property
    def binder(self) -> Binder:
        """Where bindings go."""
        return self._binder

    def waiting_pods(self) -> Iterable[WaitingForPermit]:
        """Placed pods that Permit plugins keep waiting."""
        return self._waiting

    def check_row(self, pod: PodInfo, row: int) -> Status:
        """`Handle.check_row`; raise `RuntimeError` when a plugin asks in its constructor."""
        if self._evaluator is None:
            raise RuntimeError("check_row was called before the profile was built")
        return self._evaluator.checker.check_row(pod, row)

    def check_rows(self, pod: PodInfo, rows: Rows) -> RowChecks:
        """`Handle.check_rows`; raise `RuntimeError` when a plugin asks in its constructor."""
        if self._evaluator is None:
            raise RuntimeError("check_rows was called before the profile was built")
        return self._evaluator.checker.check_rows(pod, rows)

    def evaluator(self, profile: ResolvedProfile, registry: Mapping[str, type[Plugin]]) -> Evaluator:
        """Build the profile's plugins around this handle; exceptions of their constructors pass through."""
        self._evaluator = Evaluator(ProfileRuntime(profile, registry, self), self._cluster, self._nominations)
        return self._evaluator


def build_evaluator(
    profile: ResolvedProfile,
    registry: Mapping[str, type[Plugin]],
    cluster: Cluster,
    binder: Binder,
    nominations: Nominations,
    waiting: Iterable[WaitingForPermit] = (),
) -> Evaluator:
    """One profile generation, ready to evaluate pods. `waiting` is read anew whenever a plugin asks."""
    return ProfileHandle(cluster, binder, nominations, waiting).evaluator(profile, registry)
