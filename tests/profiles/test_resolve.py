"""Merging and expansion, as kube-scheduler does them, and what a profile adds to it."""

from __future__ import annotations

from typing import Any

import pytest

from placewright.api.profile import Backoff
from placewright.framework.runtime.resolvedprofile import ExtensionPoint, ResolvedProfile
from placewright.plugins.catalog import in_tree
from placewright.profiles.defaults import DEFAULT_PLUGINS
from placewright.profiles.problem import ProfileError
from placewright.profiles.resolve import resolve
from profiles.makers import CATALOGUE, FitArgs, a_profile

FILTER, SCORE, PRE_SCORE = ExtensionPoint.FILTER, ExtensionPoint.SCORE, ExtensionPoint.PRE_SCORE
DEFAULT_SCORE = ("TaintToleration", "NodeAffinity", "NodeResourcesFit", "ImageLocality")


def resolved(spec: dict[str, Any] | None = None) -> ResolvedProfile:
    return resolve(a_profile(spec), CATALOGUE)


def plugins(**points: Any) -> dict[str, Any]:
    """`plugins(score=(["A"], ["*"]))`: enabled and disabled names; an enabled one may be `(name, weight)`."""
    return {
        "plugins": {
            point: {
                "enabled": [{"name": n} if isinstance(n, str) else {"name": n[0], "weight": n[1]} for n in enabled],
                "disabled": [{"name": name} for name in disabled],
            }
            for point, (enabled, disabled) in points.items()
        }
    }


def test_an_empty_profile_runs_the_default_plugins_that_exist_in_their_order() -> None:
    result = resolved()
    assert result.at(FILTER) == ("NodeName", "TaintToleration", "NodeAffinity", "NodeResourcesFit")
    assert result.at(SCORE) == DEFAULT_SCORE
    assert result.at(ExtensionPoint.QUEUE_SORT) == ("PrioritySort",)
    assert result.at(ExtensionPoint.BIND) == ("DefaultBinder",)
    assert result.at(ExtensionPoint.PERMIT) == ()
    assert dict(result.weights) == {"TaintToleration": 3, "NodeAffinity": 2, "NodeResourcesFit": 1, "ImageLocality": 1}
    assert result.scheduler_name == "default-scheduler"
    assert (result.settings.backoff, result.settings.percentage_of_nodes_to_score) == (Backoff(initial_seconds=1.0, max_seconds=10.0), None)


def test_the_shipped_plugins_have_the_default_weights_of_kube_scheduler() -> None:
    weights = resolve(a_profile(), in_tree()).weights
    upstream = {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodeResourcesFit": 1,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
        "VolumeBinding": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "DynamicResources": 2,
    }
    scoring = {name for name, plugin in in_tree().items() if SCORE.implemented_by(plugin)}
    assert weights == {name: weight for name, weight in upstream.items() if name in scoring}


#: Of earlier kube-schedulers: only where a profile names them.
LEGACY = {
    "EBSLimits", "GCEPDLimits", "AzureDiskLimits", "CinderLimits",
}  # fmt: skip
#: No kube-scheduler has them: only where a profile or its preset names them.
OURS = {"DeviceFragmentation", "DomainLimit", "NodeRejections", "NodeStartRate"}


def test_every_shipped_plugin_is_part_of_the_default_profile_but_for_those_of_earlier_versions_and_ours() -> None:
    assert set(in_tree()) - set(DEFAULT_PLUGINS) == LEGACY | OURS
    assert (LEGACY | OURS).isdisjoint(resolve(a_profile(), in_tree()).plugin_names)


def test_a_default_plugin_named_again_keeps_its_place_and_gets_the_new_weight() -> None:
    result = resolved(plugins(multiPoint=(["Tetris", ("NodeAffinity", 9)], [])))
    assert result.at(SCORE) == (*DEFAULT_SCORE, "Tetris")
    assert result.weights["NodeAffinity"] == 9


def test_a_default_plugin_named_without_a_weight_weighs_one() -> None:
    assert resolved(plugins(multiPoint=(["TaintToleration"], []))).weights["TaintToleration"] == 1
    assert resolved(plugins(multiPoint=([("TaintToleration", 0)], []))).weights["TaintToleration"] == 1


def test_an_outside_plugin_named_without_a_weight_has_the_weight_that_its_author_chose() -> None:
    assert resolved(plugins(multiPoint=(["Tetris"], []))).weights["Tetris"] == 7


def test_a_default_plugin_disabled_in_multi_point_is_gone_everywhere() -> None:
    result = resolved(plugins(multiPoint=([], ["NodeResourcesFit"])))
    assert "NodeResourcesFit" not in result.plugin_names


def test_a_default_plugin_disabled_and_enabled_again_moves_to_the_end() -> None:
    result = resolved(plugins(multiPoint=([("TaintToleration", 5)], ["TaintToleration"])))
    assert result.at(SCORE) == ("NodeAffinity", "NodeResourcesFit", "ImageLocality", "TaintToleration")


def test_a_star_in_multi_point_leaves_only_what_the_profile_enables() -> None:
    result = resolved(plugins(multiPoint=(["PrioritySort", "DefaultBinder", "Tetris"], ["*"])))
    assert result.plugin_names == ("PrioritySort", "Tetris", "DefaultBinder")


def test_a_plugin_disabled_at_one_point_stays_at_the_others() -> None:
    result = resolved(plugins(score=([], ["NodeResourcesFit"])))
    assert "NodeResourcesFit" not in result.at(SCORE)
    assert "NodeResourcesFit" in result.at(FILTER)
    assert "NodeResourcesFit" not in result.weights


def test_a_star_at_a_point_leaves_only_what_that_point_enables() -> None:
    result = resolved(plugins(score=(["ImageLocality"], ["*"])))
    assert result.at(SCORE) == ("ImageLocality",)
    assert result.at(FILTER) == ("NodeName", "TaintToleration", "NodeAffinity", "NodeResourcesFit")


def test_what_a_point_names_runs_first_where_multi_point_has_it_and_last_where_not() -> None:
    result = resolved(plugins(score=(["Tetris", ("ImageLocality", 4), ("NodeAffinity", 8)], [])))
    assert result.at(SCORE) == ("ImageLocality", "NodeAffinity", "TaintToleration", "NodeResourcesFit", "Tetris")
    assert result.at(PRE_SCORE) == ("TaintToleration", "NodeAffinity", "NodeResourcesFit")


def test_a_weight_at_score_goes_before_the_weight_in_multi_point() -> None:
    spec = plugins(score=([("NodeAffinity", 8)], []), multiPoint=([("NodeAffinity", 5)], []))
    assert resolved(spec).weights["NodeAffinity"] == 8


def test_the_weights_map_goes_before_every_weight_in_plugins() -> None:
    spec = plugins(score=([("NodeAffinity", 8)], [])) | {"weights": {"NodeAffinity": 11}}
    assert resolved(spec).weights["NodeAffinity"] == 11


def test_weight_zero_in_the_map_stops_a_plugin_scoring_but_not_filtering() -> None:
    result = resolved({"weights": {"NodeAffinity": 0}})
    assert "NodeAffinity" not in (*result.at(SCORE), *result.at(PRE_SCORE), *result.weights)
    assert "NodeAffinity" in result.at(FILTER)


def test_weight_zero_is_accepted_for_a_plugin_that_this_version_does_not_have() -> None:
    assert resolved({"weights": {"PodTopologySpread": 0}}).at(SCORE) == DEFAULT_SCORE


def test_disabling_a_default_plugin_that_this_version_does_not_have_is_accepted() -> None:
    assert resolved(plugins(multiPoint=([], ["InterPodAffinity"]))).at(SCORE) == DEFAULT_SCORE


def test_another_queue_sort_takes_the_place_of_the_default_one() -> None:
    result = resolved(plugins(queueSort=(["Coscheduling"], ["*"])))
    assert result.at(ExtensionPoint.QUEUE_SORT) == ("Coscheduling",)


def test_percentage_zero_means_all_nodes() -> None:
    assert resolved({"percentageOfNodesToScore": 0}).settings.percentage_of_nodes_to_score is None
    assert resolved({"percentageOfNodesToScore": 30}).settings.percentage_of_nodes_to_score == 30


def test_arguments_become_the_plugin_s_own_type_and_defaults_fill_the_rest() -> None:
    config = [{"name": "NodeResourcesFit", "args": {"ignoredResources": ["a.example/x"], "topWeight": 4}}]
    result = resolved({"pluginConfig": config})
    assert result.args["NodeResourcesFit"] == FitArgs(ignored_resources=("a.example/x",), top_weight=4)
    assert set(result.args) == set(result.plugin_names)


def test_arguments_may_carry_the_type_that_kube_scheduler_writes_into_them() -> None:
    args = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "NodeResourcesFitArgs", "topWeight": 2}
    assert resolved({"pluginConfig": [{"name": "NodeResourcesFit", "args": args}]}).args["NodeResourcesFit"] == FitArgs(top_weight=2)


def test_arguments_of_kube_scheduler_plugins_that_are_not_here_yet_are_accepted() -> None:
    config = [{"name": "DefaultPreemption", "args": {"minCandidateNodesAbsolute": 5}}]
    assert "DefaultPreemption" not in resolved({"pluginConfig": config}).args


def test_the_plugin_that_preempts_is_known_by_what_it_declares_and_only_where_it_runs() -> None:
    evicting = type("Evicting", (in_tree()["DefaultPreemption"],), {"name": "Evicting"})
    catalogue = {**in_tree(), "Evicting": evicting}
    assert resolve(a_profile(), catalogue).preempting == "DefaultPreemption"
    assert resolve(a_profile(plugins(postFilter=(["DynamicResources", "Evicting"], ["*"]))), catalogue).preempting == "Evicting"
    assert resolve(a_profile(plugins(postFilter=(["DynamicResources"], ["*"]))), catalogue).preempting == ""


def test_a_resolved_profile_cannot_be_changed() -> None:
    result = resolved()
    with pytest.raises(TypeError):
        result.weights["NodeAffinity"] = 1  # type: ignore[index]


def test_all_that_is_wrong_is_said_at_once() -> None:
    spec = {"weights": {"NodeAfinity": 1}, "percentageOfNodesToScore": 101, "backoff": {"initialSeconds": 5, "maxSeconds": 2}}
    with pytest.raises(ProfileError) as caught:
        resolved(spec)
    assert [problem.path for problem in caught.value.problems] == [
        "spec.percentageOfNodesToScore",
        "spec.weights.NodeAfinity",
        "spec.backoff.maxSeconds",
    ]
