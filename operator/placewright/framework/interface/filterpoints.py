"""The points that find the nodes which can hold a pod: PreFilter, Filter, and PostFilter if no node can."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.interface.columns import BoolColumn, Reads, Rejection, Rows
from placewright.framework.interface.cyclestate import CycleState
from placewright.framework.interface.diagnosis import Diagnosis, PostFilterResult
from placewright.framework.interface.plugin import ArgsT, Plugin
from placewright.framework.status import SUCCESS, Status, unschedulable


@dataclass(frozen=True, slots=True)
class PreFilterResult:
    """The answer of PreFilter.

    Attributes:
        status: see `PreFilterPlugin`.
        nodes: names of the only nodes that can hold the pod; None for all. They are read with SUCCESS alone. If several plugins name
            nodes, the nodes that all of them name remain. They are blamed for all others, because a node that they name may still come.
    """

    status: Status = SUCCESS
    nodes: frozenset[NodeName] | None = None


class PreFilterPlugin(Plugin[ArgsT], ABC):
    """Looks at the pod once, before any node.

    When: an attempt begins. A plugin that prepares something for its Filter writes it into the state here.
    How often: once per attempt, for a plugin with `Reads.CLUSTER` or without columns. A local plugin is asked once for all pods of one
        signature. Its answer, unless it is ERROR, and its values in the state are kept with the columns. Preemption and nominated pods
        call it again for rows that they change hypothetically.
    By: live, shadows, `explain`, `evaluate`, `simulate`, and the self-check that looks for forgotten pods.
    Runs: on the event loop, within the scheduling cycle: it never awaits. See `Plugin` for the time that a decision should take.
    Reads: the pod, the cluster, and the plugin's memory. A local plugin may read nothing of the pod that `sign` does not return.
    May change: the state. Nothing else, because most callers bind nothing.
    Statuses:
        SUCCESS: the next plugin is asked. `nodes` narrows the attempt to some nodes; if none is left, no node can hold the pod.
        SKIP: this plugin's Filter has nothing to check for this pod and is not called in this attempt.
        UNSCHEDULABLE: no node can hold the pod now. The other PreFilter plugins are still asked, but no filter is. PostFilter follows, and
            may evict pods on any node. The pod waits in the unschedulable set for this plugin's events. An event whose hint answers QUEUE
            lets it back off and then be tried again.
        UNSCHEDULABLE_AND_UNRESOLVABLE: the same, but no further PreFilter plugin is asked, and PostFilter finds no node if evicting pods
            could help.
        PENDING: as UNSCHEDULABLE, but the event makes the pod active at once, without backoff, and eviction cannot help.
        ERROR: the attempt ends. The pod backs off by the count of its errors in a row; no event ends that early.

    Example:
        def pre_filter(self, state, pod, cluster):
            wanted = pod.labels.get("example.com/rack")
            if wanted is None:
                return PreFilterResult(SKIP)
            state.write(self.name, wanted)
            return PreFilterResult()
    """

    @abstractmethod
    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> PreFilterResult:
        """Judge the pod as a whole, and prepare what Filter needs.

        Args:
            state: this attempt's state, with the values of the plugins before this one.
            pod: only to be read.
            cluster: the cluster as it stands; in a dry run, as it would stand.

        Returns:
            A status, and with SUCCESS the nodes to look at.
        """


class FilterPlugin(Plugin[ArgsT], ABC):
    """Says which nodes can hold the pod.

    When: after all PreFilter plugins, unless one of them rejected the pod or this one answered SKIP.
    How often: as seldom as `reads` allows. A local plugin is asked about the rows that changed since a pod of the same signature was
        evaluated. If no row changed, there is no call at all. A plugin with `Reads.CLUSTER` is asked about all rows once per attempt,
        unless its fingerprint has not changed. A profile with `percentageOfNodesToScore` asks for a part of the rows at a time, until
        enough fit. Preemption asks about single rows, up to thousands of times in an attempt.
    By: live, shadows, `explain`, `evaluate`, `simulate`, and the self-check that looks for forgotten pods.
    Runs: on the event loop, within the scheduling cycle: it never awaits. On 10,000 rows an expression of NumPy takes tens of
        microseconds, and a loop in Python takes milliseconds.
    Reads: what `reads` declares, the state, and of the pod what `sign` returns. Only a plugin with `Reads.CLUSTER` reads other rows than
        the ones it is asked about.
    May change: nothing, not even the state: filters are not asked in every attempt.
    Statuses: `filter` returns a column, `explain` gives rejected rows their status, and `failure` may end the attempt.
        SUCCESS: of `failure`, the rejected rows are only rejected.
        UNSCHEDULABLE: this node cannot hold the pod now, and evicting pods on it might help. If no node can, the pod waits in the
            unschedulable set for events of all plugins that rejected rows. A hint that answers QUEUE lets it back off and then be tried.
        UNSCHEDULABLE_AND_UNRESOLVABLE: the same, but PostFilter does not try this node, because evicting pods on it cannot help.
        PENDING: as UNSCHEDULABLE_AND_UNRESOLVABLE, but this plugin's event makes the pod active at once, without backoff.
        ERROR: of `failure` alone, the attempt ends, and the pod backs off by the count of its errors in a row.

    Example:
        class RackFilter(PreFilterPlugin, FilterPlugin):  # see PreFilterPlugin
            reads = Reads.NODE

            def sign(self, pod):
                return pod.labels.get("example.com/rack", "")

            def filter(self, state, pod, cluster, rows):
                wanted = state.read(self.name, str)
                return cluster.label("example.com/rack").where(rows, lambda value: value == wanted)

            def explain(self, state, pod, cluster, rows):
                return [Rejection(unresolvable("node(s) stood in another rack"), rows)]
    """

    #: Things that the column depends on, besides the pod.
    reads: ClassVar[Reads] = Reads.NODE

    @abstractmethod
    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        """Judge rows.

        Args:
            state: the state that PreFilter left.
            pod: one of all pods with its signature.
            cluster: the cluster as it stands; in a dry run, as it would stand.
            rows: shape (k,), in any order; only to be read. Free rows may be among them.

        Returns:
            True for each row that can hold the pod; a new array of shape (len(rows),).
        """

    @abstractmethod
    def explain(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> list[Rejection]:
        """Say why `filter` rejected rows.

        It is called only if the reasons are read: for a pod that fits nowhere, and by `explain` and `evaluate`.

        Args:
            state: the state that PreFilter left.
            pod: the pod, as for `filter`.
            cluster: the cluster, unchanged since `filter`.
            rows: shape (k,); `filter` rejected each of them.

        Returns:
            Groups of rows with one status each; every row in exactly one group.
        """

    def fingerprint(self, state: CycleState, cluster: Cluster) -> Hashable | None:
        """Promise that a kept column still holds, for `Reads.CLUSTER`. Called once per attempt, before `filter`.

        Args:
            state: the state that PreFilter left.
            cluster: the cluster as it stands.

        Returns:
            A value that is equal only if the whole column for pods of this signature is equal; None promises nothing, and `filter` is
            called.
        """
        return None

    def failure(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> Status:
        """End the attempt if a row shows that something is broken, for `Reads.CLUSTER`.

        kube-scheduler stops at such a node when it reaches it. It reaches only nodes that no earlier filter rejected. If a plugin
        overrides this, the framework looks at all rows, even in a profile that wants some.

        Args:
            state: the state that PreFilter left.
            pod: the pod, as for `filter`.
            cluster: the cluster, as for `filter`.
            rows: shape (k,), at least one; this plugin rejects them, and no other plugin does.

        Returns:
            SUCCESS, or ERROR with what is broken.
        """
        return SUCCESS


class PostFilterPlugin(Plugin[ArgsT], ABC):
    """Tries to make room when no node fits.

    When: an attempt found no node, after the diagnosis was made. It is not called for a pod beyond the limits of a pod, which no node
        could ever hold. It is not called after a Reserve or Permit plugin refused, either.
    How often: once per attempt that found no node; the plugins are asked in order until one does not answer UNSCHEDULABLE.
    By: live, `evaluate` and `simulate`. `explain` and shadows do not call it.
    Runs: on the event loop, within the scheduling cycle: it never awaits. Preemption may take tens of milliseconds on a large cluster;
        it bounds the number of nodes that it tries.
    Reads: everything; `Handle.check_row` and `Handle.trials` tell whether evictions would help.
    May change: the columns, within `Cluster.dry_run`, which takes the changes back. It evicts and nominates no pod: it only proposes.
    Statuses:
        SUCCESS: no other plugin is asked. The pod is nominated to the node, and its victims are evicted. Pods of the same or a lower
            priority must fit beside it there. The pod waits in the unschedulable set for the events of the filters that rejected it. The
            last victim's end should be one of these events. Then the pod is tried again, and passes all filters again.
        UNSCHEDULABLE: the next plugin is asked. The reasons of all plugins follow the filters' reasons. A plugin that only waits for a
            time says so in `retry_after`: then the pod is tried again though no event came.
        UNSCHEDULABLE_AND_UNRESOLVABLE: no other plugin is asked, and the pod waits as after UNSCHEDULABLE.
        ERROR: likewise, and it counts as a failure of the plugin. The pod waits for the filters' events all the same, because the filters
            rejected it. An exception is an error of the attempt instead: the pod backs off.

    Example:
        def post_filter(self, state, pod, cluster, diagnosis):
            return PostFilterResult(unschedulable("no spare node to ask for"))
    """

    #: Whether it names victims. Then its attempts count as attempts of preemption, and victims that are not bound yet are rejected in its
    #: name.
    preempts: ClassVar[bool] = False

    @abstractmethod
    def post_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, diagnosis: Diagnosis) -> PostFilterResult:
        """Propose a node and victims.

        Args:
            state: the state that PreFilter left.
            pod: only to be read.
            cluster: the cluster as it stands.
            diagnosis: the rows that each filter rejected; only to be read. Evicting pods may help on rows that are UNSCHEDULABLE.

        Returns:
            A status, with SUCCESS the node to nominate, and the pods to evict there.
        """

    def make_room_in_place(self, pod: PodInfo) -> PostFilterResult:
        """Propose victims on the pod's own node, where its resize in place has no room. Asked only if the profile wants it.

        Args:
            pod: a pod on a node, which counts with the amounts that it is to have.

        Returns:
            With SUCCESS the pods to evict. UNSCHEDULABLE if no eviction helps. UNSCHEDULABLE_AND_UNRESOLVABLE if the resize has room, and
            the kubelet is to carry it out.
        """
        return PostFilterResult(unschedulable())
