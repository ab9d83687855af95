"""What is refused, and in which words."""

from __future__ import annotations

from typing import Any

import pytest

from placewright.framework.interface import Plugin
from placewright.profiles.defaults import Catalogue
from placewright.profiles.problem import ProfileError
from placewright.profiles.resolve import resolve
from profiles.makers import CATALOGUE, a_profile, plugin


def complaint(spec: dict[str, Any], catalogue: Catalogue = CATALOGUE) -> str:
    with pytest.raises(ProfileError) as caught:
        resolve(a_profile(spec), catalogue)
    return str(caught.value)


def enabled(point: str, *refs: dict[str, Any]) -> dict[str, Any]:
    return {"plugins": {point: {"enabled": list(refs)}}}


def config(name: str, args: Any) -> dict[str, Any]:
    return {"pluginConfig": [{"name": name, "args": args}]}


CASES = [
    (
        enabled("filter", {"name": "NodeNames"}),
        "spec.plugins.filter.enabled[0].name: found \"NodeNames\"; allowed a known plugin (did you mean 'NodeName'?)",
    ),
    (
        enabled("filter", {"name": "Zzz"}),
        'spec.plugins.filter.enabled[0].name: found "Zzz"; allowed a known plugin; is its package installed here?',
    ),
    (
        enabled("multiPoint", {"name": "PodTopologySpread"}),
        (
            'spec.plugins.multiPoint.enabled[0].name: found "PodTopologySpread"; allowed a plugin of this version, '
            "which does not have PodTopologySpread yet"
        ),
    ),
    (
        enabled("score", {"name": "NodeName"}),
        'spec.plugins.score.enabled[0].name: found "NodeName"; allowed a plugin with a score (this one has filter)',
    ),
    (
        enabled("score", {"name": "Tetris"}, {"name": "Tetris"}),
        'spec.plugins.score.enabled[1].name: found "Tetris"; allowed each plugin once',
    ),
    (
        enabled("score", {"name": "Tetris", "weight": -1}),
        "spec.plugins.score.enabled[0].weight: found -1; allowed 0 to 100000 (0: the default)",
    ),
    (
        {"plugins": {"score": {"disabled": [{"name": "nodeaffinity"}]}}},
        "spec.plugins.score.disabled[0].name: found \"nodeaffinity\"; allowed '*' or a known plugin (did you mean 'NodeAffinity'?)",
    ),
    ({"plugins": {"bind": {"disabled": [{"name": "*"}]}}}, "spec.plugins.bind: found no plugin; allowed at least one plugin in effect"),
    (
        {"plugins": {"queueSort": {"disabled": [{"name": "PrioritySort"}]}}},
        "spec.plugins.queueSort: found no plugin; allowed exactly one plugin in effect",
    ),
    (
        enabled("multiPoint", {"name": "Coscheduling"}),
        "spec.plugins.queueSort: found PrioritySort, Coscheduling; allowed exactly one plugin in effect",
    ),
    ({"weights": {"Tetris": 100001}}, "spec.weights.Tetris: found 100001; allowed 0 to 100000 (0: off)"),
    ({"weights": {"NodeName": 1}}, 'spec.weights.NodeName: found "NodeName"; allowed a plugin that scores'),
    ({"weights": {"Tetris": 4}}, "spec.weights.Tetris: found 4; allowed 0: the plugin does not run at score in this profile"),
    ({"percentageOfNodesToScore": -1}, "spec.percentageOfNodesToScore: found -1; allowed 0 to 100 (0: all nodes)"),
    ({"backoff": {"initialSeconds": 0}}, "spec.backoff.initialSeconds: found 0; allowed 0.001 to 86400"),
    (
        {"fairness": {"by": "Namespaces"}},
        "spec.fairness.by: found \"Namespaces\"; allowed None, Namespace or Label (did you mean 'Namespace'?)",
    ),
    (
        {"fairness": {"by": "Label"}},
        "spec.fairness.label: found nothing; allowed the key of a label of the pods, as spec.fairness.by is Label",
    ),
    ({"fairness": {"label": "team"}}, 'spec.fairness.label: found "team"; allowed nothing, as spec.fairness.by is None'),
    (
        {"fairness": {"by": "Label", "label": "my team"}},
        'spec.fairness.label: found "my team"; allowed the key of a label, such as team or example.com/team',
    ),
    ({"fairness": {"share": "Nodes"}}, 'spec.fairness.share: found "Nodes"; allowed Resources or Pods'),
    ({"fairness": {"by": "Namespace", "weights": {"a": 0}}}, "spec.fairness.weights.a: found 0; allowed 1 to 1000"),
    (
        {"backoff": {"initialSeconds": 3, "maxSeconds": 2}},
        "spec.backoff.maxSeconds: found 2; allowed 0 (no backoff), or initialSeconds (3) to 86400",
    ),
    (
        {"preemption": {"policy": "never"}},
        "spec.preemption.policy: found \"never\"; allowed LowerPriority or Never (did you mean 'Never'?)",
    ),
    (
        {"preemption": {"disruptionBudgets": "None"}},
        'spec.preemption.disruptionBudgets: found "None"; allowed BestEffort or Strict',
    ),
    ({"preemption": {"deferredResizes": "Never"}}, 'spec.preemption.deferredResizes: found "Never"; allowed Wait or Preempt'),
    ({"preemption": {"waitSeconds": -1}}, "spec.preemption.waitSeconds: found -1; allowed 0 to 86400"),
    ({"preemption": {"minRunSeconds": 1e9}}, "spec.preemption.minRunSeconds: found 1000000000; allowed 0 to 2678400"),
    ({"preemption": {"maxVictims": 0}}, "spec.preemption.maxVictims: found 0; allowed 1 to 10000"),
    ({"preemption": {"maxEvictionsPerMinute": 0}}, "spec.preemption.maxEvictionsPerMinute: found 0; allowed 1 to 10000"),
    (
        {"preemption": {"maxVictims": 6, "maxEvictionsPerMinute": 5}},
        "spec.preemption.maxVictims: found 6; allowed at most maxEvictionsPerMinute (5): no minute has room for more",
    ),
    (
        {"preemption": {"protect": {"matchExpressions": [{"key": "tier", "operator": "Exist"}]}}},
        'spec.preemption.protect.matchExpressions[0]: found {"key": "tier", "operator": "Exist"}; allowed an expression; '
        '"Exist" is not a valid label selector operator',
    ),
    (
        {"schedulerName": ""},
        "spec.schedulerName: found nothing; allowed the schedulerName of the pods that the profile places; until now one without it took "
        "the pods of default-scheduler, so write 'schedulerName: default-scheduler' to go on with them, where no kube-scheduler places "
        "them",
    ),
    (
        {"pluginConfig": [{"name": "NodeName"}, {"name": "NodeName"}]},
        'spec.pluginConfig[1].name: found "NodeName"; allowed one entry for each plugin',
    ),
    (
        config("NodeResourceFit", {}),
        "spec.pluginConfig[0].name: found \"NodeResourceFit\"; allowed a known plugin (did you mean 'NodeResourcesFit'?)",
    ),
    (
        config("NodeResourcesFit", {"ignoredResource": []}),
        (
            "spec.pluginConfig[0].args.ignoredResource: found an unknown field; "
            "allowed ignoredResources, topWeight, perZone (did you mean 'ignoredResources'?)"
        ),
    ),
    (config("NodeName", {"x": 1}), "spec.pluginConfig[0].args.x: found an unknown field; allowed no fields"),
    (
        config("NodeResourcesFit", {"topWeight": "4"}),
        'spec.pluginConfig[0].args.topWeight: found "4"; allowed a whole number, such as 4, without quotes and unit',
    ),
    (
        config("NodeResourcesFit", {"ignoredResources": ["a", 5]}),
        "spec.pluginConfig[0].args.ignoredResources[1]: found 5; allowed text",
    ),
    (config("NodeResourcesFit", {"topWeight": 101}), "spec.pluginConfig[0].args.topWeight: found 101; allowed at most 100"),
    (
        config("NodeResourcesFit", {"kind": "NodeAffinityArgs"}),
        'spec.pluginConfig[0].args.kind: found "NodeAffinityArgs"; allowed NodeResourcesFitArgs',
    ),
]


@pytest.mark.parametrize(("spec", "line"), CASES, ids=[line.split("; allowed")[0] for _, line in CASES])
def test_a_wrong_profile_is_refused_in_one_line(spec: dict[str, Any], line: str) -> None:
    assert complaint(spec) == line


def test_backoff_that_is_no_number_is_refused() -> None:
    assert complaint({"backoff": {"initialSeconds": float("nan")}}).startswith("spec.backoff.initialSeconds: found NaN")
    assert complaint({"backoff": {"maxSeconds": float("inf")}}).startswith("spec.backoff.maxSeconds: found Infinity")


def test_backoff_may_be_switched_off() -> None:
    assert resolve(a_profile({"backoff": {"maxSeconds": 0}}), CATALOGUE).settings.backoff.max_seconds == 0


def test_weights_whose_total_score_would_overflow_are_refused() -> None:
    heavy: type[Plugin] = plugin("Heavy", "score", weight=2**62)
    spec = enabled("score", {"name": "Heavy"})
    assert "the total could overflow" in complaint(spec, {**CATALOGUE, "Heavy": heavy})


def test_a_name_with_control_characters_cannot_reach_the_terminal() -> None:
    assert "\x1b" not in complaint({"weights": {"\x1b[2J": 1}})


def test_arguments_are_checked_even_where_the_plugin_does_not_run() -> None:
    spec = {"plugins": {"multiPoint": {"disabled": [{"name": "NodeResourcesFit"}]}}, **config("NodeResourcesFit", {"nope": 1})}
    assert "args.nope" in complaint(spec)
