"""`check_plugin`: any plugin against the contract, on random clusters.

Example:
    from placewright.testing import check_plugin
    from quiet_nodes import QuietNodes

    def test_the_plugin_keeps_the_contract():
        report = check_plugin(QuietNodes, args={"most": 2})
        assert not report.unreached, report
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from placewright.api.compatibility import AUTO
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import (
    BindPlugin,
    FilterPlugin,
    Plugin,
    PreFilterPlugin,
    QueueSortPlugin,
    ScorePlugin,
)
from placewright.framework.runtime.calllimit import CALL_SECONDS, OverdueCallError, limited_calls, overdue_calls
from placewright.framework.runtime.guard import Guarding
from placewright.framework.runtime.handle import ProfileHandle
from placewright.plugins.defaultbinder import DefaultBinder
from placewright.plugins.prioritysort import PrioritySort
from placewright.testing.pluginanswers import PluginQuestions
from placewright.testing.pluginreport import BreachError, BrokenPromiseError, CaseCounts, PluginReport, Promise, report_of
from placewright.testing.plugintrial import CheckedPlugin, PluginTrial, QuietFailures
from placewright.testing.profiles import profile, registry_with, require_plugin
from placewright.testing.randomobjects import random_node, random_object, random_pod
from placewright.testing.scenarios import NodeSource, ObjectSource, PodSource, Reducer, Scenario, Sources, random_scenario

#: Nodes of the cluster on which calls are timed: so many that the cost of its rows shows beside the cost of a call. A few pods are enough
#: for a mean, and each costs a test time.
_MANY_NODES: Final = 500
_TIMED_PODS: Final = 5


def check_plugin(  # noqa: PLR0913 - what a test may want to say, each with a default
    plugin: type[Plugin],
    *,
    args: Mapping[str, Any] | None = None,
    pods: PodSource = random_pod,
    nodes: NodeSource = random_node,
    objects: ObjectSource = random_object,
    beside: Sequence[type[Plugin]] = (),
    compatibility: str = AUTO,
    clusters: int = 20,
    seed: int = 0,
    call_seconds: float | None = CALL_SECONDS,
) -> PluginReport:
    """Run a plugin against the contract on random clusters, and report what was looked at.

    Each cluster has 2 to 5 nodes with pods on them, about 10 pods that wait, and 12 changes: nodes, pods and objects come, change and go.
    After each change the plugin is asked about every waiting pod. Its answers are held against the promises of `Promise`.

    Args:
        plugin: the class.
        args: arguments as in a profile's `pluginConfig`; checked likewise.
        pods: makes a pod from a `random.Random`, waiting ones and those on nodes. Names and uids are given afterwards: `w0`, `s0`.
        nodes: makes a node. Names are given afterwards: `n0` to `n5`.
        objects: makes any other object, such as a volume or a claim. Its name decides which object it replaces.
        beside: other plugins of the profile, for a plugin that asks for their answers. Kept columns are not compared then.
        compatibility: value of `spec.compatibility`, for a plugin that asks `Handle.in_force`.
        clusters: number of random clusters.
        seed: an equal seed draws equal clusters.
        call_seconds: that one call may take; None for no limit, as under a debugger. See `limited_calls` for what it cannot end.

    Returns:
        The cases looked at and the time of calls. `report.unreached` has a sentence for each promise that no cluster put to the test.

    Raises:
        BrokenPromiseError: a promise is broken; with the smallest example that was found.
        ProfileError: the arguments are wrong.
        PluginBuildError: the plugin's constructor raises, or its table of events is wrong.

    Example:
        check_plugin(QuietNodes, args={"most": 2}, nodes=lambda dice: node(f"n{dice.randrange(3)}"))
    """
    require_plugin(plugin)
    subject, sources, tally = _subject(plugin, args, beside, compatibility), Sources(pods, nodes, objects), CaseCounts()
    for number in range(clusters):
        scenario = random_scenario(seed, number, sources)
        found = _breach(subject, scenario, tally, call_seconds)
        if found is not None:
            # The check ends here: further broken promises may only follow from this one.
            found, example = _smallest(subject, scenario, found, call_seconds)
            raise BrokenPromiseError(plugin.name, found.breach, seed, example) from found.__cause__
    with limited_calls(call_seconds):
        times = _times_on_many_nodes(subject, sources, seed)
    return report_of(plugin, seed, clusters, tally, times)


def _subject(plugin: type[Plugin], args: Mapping[str, Any] | None, beside: Sequence[type[Plugin]], compatibility: str) -> CheckedPlugin:
    """Put the plugin into a profile with a sort, a binder and the plugins that the caller wants beside it."""
    plugins = (plugin, *beside)
    needed: list[type[Plugin]] = [] if issubclass(plugin, QueueSortPlugin) else [PrioritySort]
    needed += [] if issubclass(plugin, BindPlugin) else [DefaultBinder]
    made = profile("check").spec(compatibility=compatibility).disable("*")
    for each in (*plugins, *needed):
        made = made.enable(each)
    made = made if args is None else made.args(plugin, **args)
    decides = (FilterPlugin, PreFilterPlugin, ScorePlugin)
    return CheckedPlugin(
        plugin, made.resolved(*plugins), registry_with(plugins), by_itself=not any(issubclass(each, decides) for each in beside)
    )


def _breach(subject: CheckedPlugin, scenario: Scenario, tally: CaseCounts, call_seconds: float | None) -> BreachError | None:
    """Return the first breach of a promise in this scenario; None if there is none."""
    trial: PluginTrial | None = None
    try:
        with overdue_calls(call_seconds):
            trial = PluginTrial(subject, scenario, tally)
            trial.run()
    except BreachError as breach:
        found = breach
    except OverdueCallError as late:
        found = BreachError(Promise.RETURNS, late.point, late.problem)
        found.__cause__ = late
    else:
        return None
    found.told = 0 if trial is None else trial.told
    return found


def _smallest(subject: CheckedPlugin, scenario: Scenario, first: BreachError, call_seconds: float | None) -> tuple[BreachError, str]:
    """Return the breach in the smallest scenario that breaks the same promise at the same point, in words."""
    found = first

    def shows(smaller: Scenario) -> bool:
        nonlocal found
        other = _breach(subject, smaller, CaseCounts(), call_seconds)
        # A smaller scenario may break another promise: that is another mistake, and explains nothing of this one.
        if other is None or (other.breach.promise, other.breach.point) != (first.breach.promise, first.breach.point):
            return False
        found = other
        return True

    # Changes after the breach were never told.
    told = replace(scenario, changes=scenario.changes[: first.told])
    if first.breach.promise is Promise.RETURNS:  # each smaller scenario that hangs would take the whole limit again
        return found, str(told)
    smallest = Reducer(told, shows).smallest()
    return found, str(smallest)


def _times_on_many_nodes(subject: CheckedPlugin, sources: Sources, seed: int) -> CaseCounts:
    """How long calls take on a larger cluster. A breach there is left: the small clusters look for it."""
    dice, cluster, tally = random.Random(f"{seed}/times"), Cluster(), CaseCounts()
    for number in range(_MANY_NODES):
        cluster.set_node(sources.node(dice, f"n{number}"))
    for _ in range(20):
        cluster.objects.put(sources.object(dice))
    # Without the watch for writes, whose time would be counted as the plugin's.
    handle = ProfileHandle(cluster, guarding=Guarding(QuietFailures(), ours=True))
    evaluator = handle.evaluator(subject.profile, subject.registry)
    questions = PluginQuestions(evaluator.runtime.plugin(subject.plugin.name), cluster, tally, alone=False, repeat=0)
    for _ in range(_TIMED_PODS):
        try:
            questions.answers(sources.pod(dice))
        except BreachError:
            continue
    return tally
