"""The scheduler as a plugin of another package uses it, through its handle: each call in a world of the public kit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.engine.permissions import declared_needs
from placewright.framework.errors import PluginBuildError
from placewright.framework.interface import (
    CycleState,
    Diagnosis,
    Handle,
    ObjectPatch,
    PatchError,
    PermitPlugin,
    PermitResult,
    PluginMetric,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
)
from placewright.framework.registry import Registry
from placewright.framework.status import SUCCESS, Code, Status, unresolvable, unschedulable
from placewright.observability.metrics.scrape import of_plugins
from placewright.plugins.defaultpreemption.plugin import DefaultPreemption
from placewright.testing import World, assert_bound, assert_evicted, assert_gated, assert_waiting, node, pod, profile


@dataclass(frozen=True)
class MeterArgs:
    """Whether it breaks."""

    breaks: bool = False


class Doorman(PermitPlugin, PreEnqueuePlugin):
    """Keeps pods waiting whose label asks for it."""

    name = "Doorman"

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self.built_for = handle.profile_name
        self.closed = False

    def pre_enqueue(self, pod: PodInfo) -> Status:
        return unresolvable("closed") if self.closed else SUCCESS

    def permit(self, state: CycleState, pod: PodInfo, node: NodeName) -> PermitResult:
        return PermitResult(Status(Code.WAIT), 600.0) if pod.labels.get("wait") else PermitResult(SUCCESS)


def waiting(name: str) -> Any:
    return pod(name).labels(wait="yes").requests(cpu="1")


def test_a_plugin_knows_the_name_of_its_profile_when_it_is_built() -> None:
    world = World(Doorman, profile=profile("mine"))
    assert world.plugin(Doorman).built_for == world.plugin(Doorman).handle.profile_name == "mine"


def test_one_waiting_pod_is_found_by_its_uid_and_allowed_or_rejected() -> None:
    world = World(Doorman, nodes=[node("a")])
    world.add(waiting("one"), waiting("other"))
    handle = world.plugin(Doorman).handle
    handle.waiting_pod("uid-one").allow("Doorman")
    handle.waiting_pod("uid-other").reject("Doorman", "no longer")
    world.settle()
    assert_bound(world, "one", on="a")
    assert_waiting(world, "other", because="no longer", plugin="Doorman")
    assert handle.waiting_pod("uid-one") is None


def test_a_plugin_activates_pods_outside_of_an_attempt() -> None:
    world = World(Doorman, nodes=[node("a", cpu="1")])
    world.add(waiting("keeps"), pod("web").requests(cpu="1"))
    assert_waiting(world, "web", because="Insufficient cpu")
    tried = len(world.log.attempts)
    plugin = world.plugin(Doorman)
    plugin.handle.activate([pod("web").build(), pod("stranger").build()])
    world.settle()
    assert [each.pod.name for each in world.log.attempts[tried:]] == ["web"], "at once, without its backoff"
    plugin.closed = True
    world.add(pod("late"))
    plugin.handle.activate([pod("late").build()])
    world.settle()
    assert_gated(world, "late")


def test_a_plugin_writes_warnings_and_normal_events() -> None:
    world = World(Doorman, nodes=[node("a")])
    handle = world.plugin(Doorman).handle
    handle.announce(pod("web").build(), "QuotaLow", "Scheduling", "little is left", warning=True)
    handle.announce(pod("web").build(), "QuotaFine", "Scheduling", "enough is left")
    assert [(event.type, event.reason) for event in world.events.about("web")] == [("Warning", "QuotaLow"), ("Normal", "QuotaFine")]


def test_room_is_kept_for_a_pod_that_a_plugin_nominates_until_the_nomination_is_withdrawn() -> None:
    world = World(Doorman, nodes=[node("a", cpu="1")])
    handle, expected = world.plugin(Doorman).handle, pod("expected").requests(cpu="1").build()
    handle.nominate(expected, NodeName("a"))
    assert [each.name for each in handle.nominated_pods(NodeName("a"))] == ["expected"]
    world.add(pod("web").requests(cpu="1"))
    assert_waiting(world, "web", because="Insufficient cpu")
    handle.withdraw_nomination(expected)
    assert list(handle.nominated_pods(NodeName("a"))) == []
    world.advance(331)
    assert_bound(world, "web", on="a")


def test_the_scores_of_all_plugins_are_those_that_an_attempt_on_these_nodes_would_give() -> None:
    three, web = [node("empty"), node("full", cpu="1"), node("half")], pod("web").requests(cpu="2")
    world = World(Doorman, nodes=[*three, node("better", cpu="64")], pods=[pod("x").requests(cpu="1").on("half")])
    rows = np.array([world.cluster.row(NodeName(name)) for name in ("half", "full", "empty")])
    found = world.plugin(Doorman).handle.score_rows(web.build(), rows).tolist()
    alone = World(Doorman, nodes=three, pods=[pod("x").requests(cpu="1").on("half")])
    alone.add(web)
    assert_bound(alone, "web", on="empty")
    assert (found[1], found[2] > found[0]) == (-1, True)
    (decided,) = alone.binder.bound
    assert decided.decision.score == found[2]

    class Hasty(Doorman):
        def __init__(self, args: Any, handle: Handle) -> None:
            super().__init__(args, handle)
            handle.score_rows(pod("web").build(), rows)

    with pytest.raises(PluginBuildError, match="score_rows was called before the profile was built"):
        World(Hasty)


class PaidPreemption(DefaultPreemption):
    """Lets pods preempt that have paid for it."""

    name = "PaidPreemption"

    def post_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, diagnosis: Diagnosis) -> PostFilterResult:
        if pod.labels.get("paid") != "yes":
            return PostFilterResult(unschedulable("preemption: not paid"))
        return super().post_filter(state, pod, cluster, diagnosis)


def test_a_plugin_of_another_package_uses_the_preemption_of_the_tree() -> None:
    assert issubclass(PaidPreemption, PostFilterPlugin)
    world = World(PaidPreemption, nodes=[node("a", cpu="1")], profile=profile().disable("DefaultPreemption"))
    world.add(pod("low").requests(cpu="1"))
    world.add(pod("poor").requests(cpu="1").priority(5))
    assert_waiting(world, "poor", because="not paid")
    world.add(pod("rich").requests(cpu="1").priority(5).labels(paid="yes"))
    assert_evicted(world, "low")
    assert_bound(world, "rich", on="a")


class Meter(PermitPlugin[MeterArgs]):
    """Counts the pods that it let pass, of all generations, and tells whether it works."""

    name = "Meter"

    def __init__(self, args: MeterArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self.heard: list[str] = []
        self.counts: Counter[tuple[str, ...]] = handle.cluster.extension(self.name, Counter)

    def start(self) -> None:
        self.heard.append("start")

    def close(self) -> None:
        self.heard.append("close")
        if self.args.breaks:
            raise ValueError("no connection")

    def permit(self, state: CycleState, pod: PodInfo, node: NodeName) -> PermitResult:
        self.counts[(str(node),)] += 1
        return PermitResult(SUCCESS)

    def metrics(self) -> Iterable[PluginMetric]:
        yield PluginMetric("permits_total", "Pods that passed.", self.counts, labels=("node",))
        yield PluginMetric("works", "Whether the plugin works.", {(): float(self.heard == ["start"])})
        if self.args.breaks:
            yield PluginMetric("Odd-Name", "Not for Prometheus.", {})


def test_a_plugin_is_started_with_its_generation_and_closed_with_it_or_with_the_process() -> None:
    world = World(Meter)
    first = world.plugin(Meter)
    assert first.heard == ["start"]
    world.use(profile().enable(Meter).args(Meter, breaks=True).generation(2))
    second = world.plugin(Meter)
    assert (first.heard, second.heard) == (["start", "close"], ["start"])
    world.close()
    assert second.heard == ["start", "close"]
    failures = world.profiles["default-scheduler"].runtime.failures
    assert failures.last == {("Meter", "Close"): "ValueError: no connection"}, "told, and no other plugin is kept from its end"


def test_metrics_of_plugins_have_the_profile_and_outlive_a_generation() -> None:
    world = World(Meter, nodes=[node("a")])
    world.add(pod("web"), pod("db"))
    world.use(profile().enable(Meter).generation(2))
    world.use(profile("other").scheduler("other").enable(Meter).args(Meter, breaks=True))
    runtimes = {name: evaluator.runtime for name, evaluator in world.profiles.items()}
    shown = {metric.name: metric for metric in of_plugins(runtimes.items())}
    assert {name: metric.type for name, metric in shown.items()} == {
        "placewright_plugin_permits": "counter", "placewright_plugin_works": "gauge"
    }  # fmt: skip
    (sample,) = shown["placewright_plugin_permits"].samples
    assert (sample.labels, sample.value) == ({"profile": "default-scheduler", "node": "a"}, 2)
    assert [told for (plugin, _), told in runtimes["other"].failures.last.items() if plugin == "Meter"] == [
        "found 'Odd-Name'; allowed a name and labels of lower case letters, digits and underscores, without profile"
    ]


QUOTA_STATUS = ObjectPatch("example.com", "v1", "quotas/status", namespaced=True)


class Ledger(PreBindPlugin):
    """Writes into the status of a quota which pod used it last."""

    name = "Ledger"
    patches = (QUOTA_STATUS,)
    what = QUOTA_STATUS

    async def pre_bind(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status:
        await self.handle.patch(self.what, "team", {"status": {"last": pod.name}}, namespace=pod.namespace)
        return SUCCESS


def test_a_plugin_patches_what_it_declares_and_nothing_else() -> None:
    world = World(Ledger, nodes=[node("a")])
    path = "/apis/example.com/v1/namespaces/default/quotas/team/status"
    world.objects.fail(PatchError("409"), path)
    world.add(pod("web"))
    assert_waiting(world, "web", because="409")
    world.advance(2)
    assert_bound(world, "web", on="a")
    assert world.objects.patched == [(path, {"status": {"last": "web"}})]
    world.plugin(Ledger).what = ObjectPatch("", "v1", "secrets", namespaced=True)
    world.add(pod("db"))
    assert_waiting(world, "db", because="no plugin of profile default declares that it patches secrets")


def test_the_role_of_a_plugins_package_has_the_rights_that_it_declares() -> None:
    (need,) = declared_needs((), Registry([Ledger]).patches())
    assert [rule.manifest() for rule in need.rules] == [{"apiGroups": ["example.com"], "resources": ["quotas/status"], "verbs": ["patch"]}]
    with pytest.raises(ValueError, match="found namespace ''; allowed a name"):
        QUOTA_STATUS.path("team")
    assert ObjectPatch("", "v1", "nodes").path("a") == "/api/v1/nodes/a"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a%2Fb", "a?b", "a b", "a\n"])
def test_a_name_or_namespace_that_leads_to_another_object_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="allowed the name of an object"):
        QUOTA_STATUS.path(name, "shop")
    with pytest.raises(ValueError, match="allowed a name"):
        QUOTA_STATUS.path("team", name)
