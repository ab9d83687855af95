"""DynamicResources beside other plugins: pods without claims pass, pods with claims that are not there are told so."""

from __future__ import annotations

from placewright.framework.interface import CycleState
from placewright.framework.status import Code
from plugins.preempting import Scene, a_pod

CLAIMS = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "mine"}]}


def test_a_pod_without_claims_is_skipped_and_has_nothing_to_deallocate() -> None:
    scene = Scene().node("n", cpu="500m")
    result = scene.attempt(a_pod("new"))
    assert result.status.reasons[0] == "no new claims to deallocate"


def test_it_speaks_before_preemption() -> None:
    order = [plugin.name for plugin in Scene().node("n").evaluator().runtime.post_filter]
    assert order == ["DynamicResources", "DefaultPreemption"]


def test_a_pod_with_claims_is_refused_on_every_node_with_the_reason() -> None:
    _, _, diagnosis = Scene().node("n").diagnosed(a_pod("new", spec=CLAIMS))
    assert diagnosis.absent is not None
    assert diagnosis.absent.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert diagnosis.prefilter_message == 'could not find ResourceClaim "default/mine"'
    assert diagnosis.unschedulable_plugins == {"DynamicResources"}


def test_a_pod_with_claims_makes_nobody_leave() -> None:
    result = Scene().node("n", a_pod("low", 0, "2")).attempt(a_pod("new", 10, spec=CLAIMS))
    assert result.victims == ()
    assert result.status.reasons[-1] == "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."


def test_where_its_prefilter_never_ran_postfilter_is_an_error_and_preemption_is_not_tried() -> None:
    scene = Scene().node("n", a_pod("low", 0, "2"))
    evaluator, _, diagnosis = scene.diagnosed(a_pod("new", 10))
    result = evaluator.runtime.run_post_filter(CycleState(), a_pod("new", 10), diagnosis)
    assert (result.status.code, result.status.message) == (Code.ERROR, "not found")
    assert result.victims == ()
