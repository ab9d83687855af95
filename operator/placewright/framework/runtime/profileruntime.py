"""One generation of one profile, ready to run: its plugins built, ordered by extension point, and called the way the contract says.

`AllowedNamespaces` keeps out pods whose namespace may not use the profile (`api/profileaccess.py`). Its gate comes before the profile's
PreEnqueue plugins.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar

from placewright.api.compatibility import Rule
from placewright.api.errors import BindError
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.api.profileaccess import DEFAULTS_ON, NamespaceRule, facts_of
from placewright.api.workloads import Namespace
from placewright.cluster.cluster import Cluster
from placewright.framework.assignedpods import wanted_nearby
from placewright.framework.errors import PluginError
from placewright.framework.events import WILDCARD, Action, ClusterEventWithHint, EventResource, QueueingHint, event_with_hint
from placewright.framework.interface import (
    MAX_NODE_SCORE,
    BindPlugin,
    CycleState,
    Diagnosis,
    Extender,
    FilterPlugin,
    Handle,
    PermitPlugin,
    Plugin,
    PluginMetric,
    PodGroupPlugin,
    PostBindPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreparingPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    Reads,
    ReservePlugin,
    ScorePlugin,
    Seconds,
)
from placewright.framework.preemption.evictions import Evictions
from placewright.framework.preemption.rules import PreemptionRules, soonest
from placewright.framework.runtime.guard import Guarding, build, events_of, guard, why
from placewright.framework.runtime.keptcolumn import narrowest
from placewright.framework.runtime.resolvedprofile import ExtensionPoint, ResolvedProfile
from placewright.framework.status import SUCCESS, Code, Status, error, unresolvable, unschedulable
from placewright.framework.steps import BIND, PERMIT, POST_BIND, POST_FILTER, PRE_BIND, RESERVE

#: Stands for the gating plugin of such pods.
ALLOWED_NAMESPACES: Final = "AllowedNamespaces"


class AllowedNamespaces(PreEnqueuePlugin[NamespaceRule]):
    """Gates pods of namespaces that may not use the profile, until the profile or the namespace lets them."""

    name = ALLOWED_NAMESPACES

    def keeps_out(self, pod: PodInfo) -> bool:
        """Return whether the pod's namespace may not use the profile."""
        return bool(self._refusal(pod))

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Gate the pod if its namespace may not use the profile.

        Returns:
            SUCCESS, or a rejection that names the profile and the rule.
        """
        refusal = self._refusal(pod)
        return unresolvable(refusal) if refusal else SUCCESS

    def events(self) -> Sequence[ClusterEventWithHint[Namespace]]:
        """Return the changes of namespaces that may let a pod use the profile."""
        return (event_with_hint(EventResource.NAMESPACE, Action.ADD | Action.UPDATE, self._after_namespace),)

    def _refusal(self, pod: PodInfo) -> str:
        return self.args.refusal(facts_of(pod.namespace, self.handle.cluster.objects.namespaces))

    def _after_namespace(self, pod: PodInfo, _old: Namespace | None, new: Namespace | None) -> QueueingHint:
        """Queue a pod when its namespace changes, or the namespace that has the default."""
        concerned = new is None or new.metadata.name in (pod.namespace, DEFAULTS_ON)
        return QueueingHint.QUEUE if concerned and not self._refusal(pod) else QueueingHint.SKIP


_logger = logging.getLogger(__name__)

P = TypeVar("P", bound=Plugin)

#: Stands for the rejecting plugin if extenders rejected a pod. Any event may help, because the scheduler cannot know their rules.
EXTENDER: Final = "Extender"

#: Stands for the rejecting plugin if a pod is beyond a limit (`api.podextent`). No event helps: the pod itself must change.
POD_LIMITS: Final = "PodLimits"

#: The events that could help a pod that extenders rejected.
ANY_EVENT: Final = (ClusterEventWithHint(WILDCARD, narrow=wanted_nearby),)

#: A Permit plugin may delay a pod for at most this long, in seconds.
MAX_PERMIT_TIMEOUT: Seconds = 15 * 60.0


class ProfileRuntime:
    """The plugins of a profile, built.

    Attributes:
        profile: the profile that this was built from; immutable.
        pre_filter, filter, pre_score, score, ...: the plugins of each extension point, in run order.
        pod_groups: has the members of a PodGroup decided together; None if the profile schedules each by itself.
        extenders: all of the profile's, in the order in which they are asked.
        preparing: plugins that can make ready beforehand what a pod that asks for much needs.
        failures: counts of what plugins did wrong.
        namespace_gate: keeps out pods whose namespace may not use the profile.
        preemption_rules: rules of `spec.preemption`; None if pods preempt as kube-scheduler's do.
        interests: events that could turn a rejection around, by plugin name, and for extenders. None: any event.
        totals_kind: integers that hold every sum of weighted scores, and what stands for none.
        told_once: names of plugins whose PreFilter and PreScore depend on the pod alone. Pods that look alike share their answers.
    """

    def __init__(
        self,
        profile: ResolvedProfile,
        registry: Mapping[str, type[Plugin]],
        handle: Handle,
        extenders: Sequence[Extender] = (),
        guarding: Guarding | None = None,
        evictions: Evictions | None = None,
    ) -> None:
        """Build the plugins. Raises `PluginBuildError` for one that cannot be built, and `InputError` about arguments."""
        self.profile = profile
        guarding = Guarding() if guarding is None else guarding
        self.failures = guarding.failures
        self._handle = handle
        spec = profile.settings.preemption
        self.preemption_rules: PreemptionRules | None = None
        if spec is not None and evictions is not None:
            empty_covers_all = Rule.EMPTY_BUDGET_SELECTOR in profile.rules
            self.preemption_rules = PreemptionRules(spec, profile.scheduler_name, evictions, empty_covers_all=empty_covers_all)
        self.extenders = tuple(extenders)
        self._plugins = {name: build(registry[name], name, profile, handle) for name in profile.plugin_names}
        for plugin in self._plugins.values():
            guard(plugin, profile, guarding, handle.cluster)
        self.pre_enqueue_plugins = self._at(ExtensionPoint.PRE_ENQUEUE, PreEnqueuePlugin)
        self.queue_sort = self._at(ExtensionPoint.QUEUE_SORT, QueueSortPlugin)[0]
        self.pod_groups = next((plugin for plugin in self._plugins.values() if isinstance(plugin, PodGroupPlugin)), None)
        self.pre_filter = self._at(ExtensionPoint.PRE_FILTER, PreFilterPlugin)
        self.filter = self._at(ExtensionPoint.FILTER, FilterPlugin)
        self.post_filter = self._at(ExtensionPoint.POST_FILTER, PostFilterPlugin)
        self.pre_score = self._at(ExtensionPoint.PRE_SCORE, PreScorePlugin)
        self.score = self._at(ExtensionPoint.SCORE, ScorePlugin)
        self.reserve = self._at(ExtensionPoint.RESERVE, ReservePlugin)
        self.permit = self._at(ExtensionPoint.PERMIT, PermitPlugin)
        self.pre_bind = self._at(ExtensionPoint.PRE_BIND, PreBindPlugin)
        self.bind = self._at(ExtensionPoint.BIND, BindPlugin)
        self.post_bind = self._at(ExtensionPoint.POST_BIND, PostBindPlugin)
        events = {name: events_of(plugin, profile, guarding, handle.cluster) for name, plugin in self._plugins.items()}
        self.interests = {name: _interests(found) for name, found in events.items()}
        if self.extenders:
            self.interests[EXTENDER] = ANY_EVENT
        self.namespace_gate = AllowedNamespaces(NamespaceRule(profile.name or profile.scheduler_name, profile.settings.pods), handle)
        self.pre_enqueue_plugins = (self.namespace_gate, *self.pre_enqueue_plugins)
        self.interests[ALLOWED_NAMESPACES] = _interests(self.namespace_gate.events())
        # An answer that depends on the cluster may change before the next pod. So only answers of local plugins are kept.
        # A plugin without columns is asked in every attempt.
        self._signers = tuple(p for p in self._plugins.values() if isinstance(p, (FilterPlugin, ScorePlugin)))
        self.told_once = frozenset(plugin.name for plugin in self._signers if plugin.reads is not Reads.CLUSTER)
        self.preparing = tuple([plugin for plugin in self._plugins.values() if isinstance(plugin, PreparingPlugin)])
        self.totals_kind = narrowest(-1, sum(MAX_NODE_SCORE * self.weight(plugin) for plugin in self.score))

    def start(self) -> None:
        """Start the plugins, because the profile takes effect. One that raises keeps no other from starting."""
        self._tell("start")

    def close(self) -> None:
        """Close the plugins. One that raises keeps no other from closing."""
        self._tell("close")

    def _tell(self, call: str) -> None:
        for plugin in self._plugins.values():
            try:
                getattr(plugin, call)()
            except MemoryError:
                raise
            except Exception as problem:
                logged = isinstance(problem, PluginError)  # by the guard
                _logger.log(logging.DEBUG if logged else logging.ERROR, "profile %s: %s", self.profile.name, why(problem), exc_info=problem)

    def metrics(self) -> Iterator[PluginMetric]:
        """Yield the plugins' own metrics. Those of a plugin that raises are left out, and its failure counts."""
        for plugin in self._plugins.values():
            try:
                yield from tuple(plugin.metrics())
            except MemoryError:
                raise
            except Exception as problem:  # noqa: BLE001 - a scrape shows the metrics of all others
                why(problem)

    @property
    def cluster(self) -> Cluster:
        """The cluster that the plugins see."""
        return self._handle.cluster

    def _at(self, point: ExtensionPoint, base: type[P]) -> tuple[P, ...]:
        plugins = (self._plugins[name] for name in self.profile.at(point))
        return tuple(plugin for plugin in plugins if isinstance(plugin, base))

    def plugin(self, name: str) -> Plugin:
        """Return a plugin of the profile.

        Raises:
            KeyError: the profile does not run it.
        """
        return self._plugins[name]

    def weight(self, plugin: Plugin) -> int:
        """Return what a plugin's score is multiplied by.

        Raises:
            KeyError: it does not score in this profile.
        """
        return self.profile.weights[plugin.name]

    def sign(self, pod: PodInfo) -> tuple[Hashable, ...] | None:
        """Return everything of a pod that the profile's columns read.

        Returns:
            The plugins' signatures, in their order; None when such a pod shares its columns with no other.
        """
        fragments = tuple([plugin.sign(pod) for plugin in self._signers])
        return None if None in fragments else fragments  # a shared column would hold one pod's answer of the plugin that shares nothing

    def fragments(self, signature: tuple[Hashable, ...]) -> dict[str, Hashable]:
        """Take a signature apart.

        Args:
            signature: an answer of `sign`.
        """
        return {plugin.name: fragment for plugin, fragment in zip(self._signers, signature, strict=True)}

    def extenders_for(self, pod: PodInfo) -> tuple[Extender, ...]:
        """List the extenders that want to be asked about a pod.

        Returns:
            The extenders, in the order in which they are asked.
        """
        return tuple([extender for extender in self.extenders if extender.settings.interested_in(pod)])

    # --- the points that are not columns -------------------------------------------------------------------------------------

    def run_pre_enqueue(self, pod: PodInfo) -> Status:
        """Ask the PreEnqueue plugins in order.

        Returns:
            SUCCESS, or the first refusal with the plugin's name.

        Raises:
            PluginError: a plugin answered ERROR. That is no rejection: nothing that the plugin waits for will end it.
        """
        for plugin in self.pre_enqueue_plugins:
            status = plugin.pre_enqueue(pod)
            if status.ok:
                continue
            if status.code is Code.ERROR:
                found = PluginError(plugin.name, "PreEnqueue", status.message)
                found.counted = True
                raise found
            return status.by(plugin.name)
        return SUCCESS

    def run_post_filter(self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis) -> PostFilterResult:
        """Try to make room: the first answer that is not UNSCHEDULABLE ends it.

        Returns:
            That answer; else what all plugins said, together, and the first time at which one of them wants to be asked again.
        """
        said: list[str] = []
        retries: list[Seconds | None] = []
        nominated: NodeName | None = None
        for plugin in self.post_filter:
            result = state.steps.ask(plugin.name, POST_FILTER, plugin.post_filter, state, pod, plugin.handle.cluster, diagnosis)
            # A plugin that made room, or found that nothing can, has the last word; UNSCHEDULABLE only says that it found nothing.
            if result.status.code is not Code.UNSCHEDULABLE or result.alternatives is not None:
                return _after(said, result)
            said.extend(result.status.reasons)
            retries.append(result.retry_after)
            nominated = nominated if result.nominated_node is None else result.nominated_node
        return PostFilterResult(unschedulable(*said), nominated, retry_after=soonest(retries))

    def run_make_room_in_place(self, pod: PodInfo) -> PostFilterResult:
        """Ask the PostFilter plugins in order for victims on the pod's own node: the first answer that is not UNSCHEDULABLE ends it.

        Returns:
            That answer; else the reasons of all plugins.
        """
        said: list[str] = []
        for plugin in self.post_filter:
            result = plugin.make_room_in_place(pod)
            if result.status.code is not Code.UNSCHEDULABLE:
                return result
            said.extend(result.status.reasons)
        return PostFilterResult(unschedulable(*said))

    def run_reserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status:
        """Reserve in order. On the first failure everything is unreserved before this returns.

        Args:
            state: the attempt's state.
            pod: assumed on `node`.
            node: the chosen one.

        Returns:
            SUCCESS, or the failure with the plugin's name.
        """
        for plugin in self.reserve:
            status = state.steps.ask(plugin.name, RESERVE, plugin.reserve, state, pod, node)
            if not status.ok:
                # All of them, as upstream: a plugin that refused may have taken a part before.
                self.run_unreserve(state, pod, node)
                return _told("Reserve", plugin, status)
        return SUCCESS

    def run_unreserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> None:
        """Unreserve in reverse order. A plugin that raises keeps no other from giving back; the first exception is raised in the end."""
        _all(partial(plugin.unreserve, state, pod, node) for plugin in reversed(self.reserve))

    def run_permit(self, state: CycleState, pod: PodInfo, node: NodeName) -> tuple[Status, dict[str, Seconds]]:
        """Ask the Permit plugins in order, up to the first that refuses.

        Args:
            state: the attempt's state.
            pod: assumed on `node`.
            node: the chosen one.

        Returns:
            SUCCESS or a rejection; and by plugin that wants the pod to wait, for how long at most (seconds).
        """
        waits: dict[str, Seconds] = {}
        for plugin in self.permit:
            result = state.steps.ask(plugin.name, PERMIT, plugin.permit, state, pod, node)
            if result.status.code is Code.WAIT:
                # Later plugins are asked all the same: one that refuses spares the pod the wait.
                waits[plugin.name] = min(result.timeout, MAX_PERMIT_TIMEOUT)
            elif not result.status.ok:
                return _told("Permit", plugin, result.status), {}
        return SUCCESS, waits

    def pre_bind_plugins(self, state: CycleState, pod: PodInfo, node: NodeName) -> list[PreBindPlugin]:
        """Ask the PreBind plugins which of them have something to do for this pod (PreBindPreFlight).

        Args:
            state: the attempt's state.
            pod: assumed on `node`.
            node: the chosen one.

        Returns:
            The plugins that did not answer SKIP, in order.
        """
        return [plugin for plugin in self.pre_bind if plugin.pre_bind_pre_flight(state, pod, node).code is not Code.SKIP]

    async def run_pre_bind(self, state: CycleState, pod: PodInfo, node: NodeName, plugins: Sequence[PreBindPlugin] | None = None) -> Status:
        """Run the PreBind plugins in order; the first failure ends it.

        Args:
            state: the attempt's state.
            pod: assumed on `node`.
            node: the chosen one.
            plugins: the answer of `pre_bind_plugins`; None: all.

        Returns:
            SUCCESS, or the failure with the plugin's name.
        """
        for plugin in self.pre_bind if plugins is None else plugins:
            state.steps.plugin_begins()
            status = await plugin.pre_bind(state, pod, node)
            state.steps.plugin_ended(plugin.name, PRE_BIND, status.code)
            if not status.ok and status.code is not Code.SKIP:  # nothing to prepare is as good as prepared
                return _told("PreBind", plugin, status)
        return SUCCESS

    async def run_bind(self, state: CycleState, pod: PodInfo, node: NodeName, annotations: dict[str, str]) -> Status:
        """Have the pod bound: by the first extender that binds such pods, else by the first Bind plugin that does not skip.

        Args:
            state: the attempt's state.
            pod: assumed on `node`.
            node: the chosen one.
            annotations: written on the pod with its Binding.

        Returns:
            SUCCESS, or the failure; an error if every plugin skips.

        Raises:
            BindError: the Binding was refused, or its outcome is unknown.
        """
        if await self._bound_by_extender(pod, node):
            return SUCCESS
        for plugin in self.bind:
            state.steps.plugin_begins()
            status = await plugin.bind(state, pod, node, annotations)
            state.steps.plugin_ended(plugin.name, BIND, status.code)
            if status.code is not Code.SKIP:
                return _told("Bind", plugin, status)
        return error("every Bind plugin skipped the pod")

    async def _bound_by_extender(self, pod: PodInfo, node: NodeName) -> bool:
        """Return True if an extender bound the pod; False if no extender binds such pods, or an ignorable one failed."""
        for extender in self.extenders_for(pod):
            if extender.settings.bind_verb:
                try:
                    await self._handle.binder.bind_by(pod, node, partial(extender.bind, pod, node))
                except BindError as problem:
                    if not extender.settings.ignorable or problem.conflict or problem.unknown:
                        raise
                    name = extender.settings.name
                    _logger.warning("pod %s: extender %s is passed over: %s", pod.key, name, problem, extra={"about": name})
                else:
                    return True
        return False

    def run_post_bind(self, state: CycleState, pod: PodInfo, node: NodeName) -> None:
        """Tell all PostBind plugins. One that raises keeps no other from hearing; the first exception is raised in the end."""
        _all(partial(state.steps.ask, plugin.name, POST_BIND, plugin.post_bind, state, pod, node) for plugin in self.post_bind)


def _all(calls: Iterable[Callable[[], None]]) -> None:
    first: Exception | None = None
    for call in calls:
        try:
            call()
        except MemoryError:
            raise
        except Exception as problem:  # noqa: BLE001 - raised below
            first = first or problem
    if first is not None:
        raise first


def _after(said: Sequence[str], result: PostFilterResult) -> PostFilterResult:
    """Return the result; if extenders leave none of its alternatives, the reasons of earlier plugins are told with it."""
    if not said or result.alternatives is None:
        return result
    choose = result.alternatives.choose

    def with_reasons(chosen: PostFilterResult) -> PostFilterResult:
        if chosen.status.ok:
            return chosen
        return replace(chosen, status=replace(chosen.status, reasons=(*said, *chosen.status.reasons)))

    alternatives = replace(result.alternatives, choose=lambda victims: with_reasons(choose(victims)))
    return replace(with_reasons(result), alternatives=alternatives)


def _told(point: str, plugin: Plugin, status: Status) -> Status:
    """Return the plugin's verdict with its name on it; an error in kube-scheduler's words."""
    if status.ok or status.rejected:
        return status.by(plugin.name)
    return error(f'running {point} plugin "{plugin.name}": {status.message}').by(plugin.name)


def _interests(events: Sequence[ClusterEventWithHint] | None) -> Sequence[ClusterEventWithHint] | None:
    """Return the plugin's events; a plugin that waits for new nodes also hears of taints that go.

    A node is often added tainted and becomes usable only when the taint is removed; filters that ran after the taint filter never saw
    it (upstream issue 109437).
    """
    if events is None or not _wants(events, Action.ADD) or _wants(events, Action.UPDATE_NODE_TAINT):
        return events
    return (*events, event_with_hint(EventResource.NODE, Action.UPDATE_NODE_TAINT))


def _wants(events: Iterable[ClusterEventWithHint], action: Action) -> bool:
    return any(e.event.resource is EventResource.NODE and e.event.action & action for e in events)
