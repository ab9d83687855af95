"""The rules of `spec.preemption` on single pods: which victims they leave, and what is said where they leave none."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placewright import testing as kit
from placewright.api.decode import convert
from placewright.api.objects import Pod
from placewright.api.pods import PodInfo
from placewright.framework.preemption.evictions import MINUTE, MOST_KEPT, SHOWN_AT_LATEST
from placewright.framework.preemption.rules import LOOK_AGAIN
from plugins.preempting import Scene, a_pod
from plugins.preemption_model import SECONDS_A_DAY, Model, Rules, Standing
from randomcases import cases

DAY: Final = SECONDS_A_DAY
APPS: Final = ("web", "db", "")
NO_CLAIMS: Final = "no new claims to deallocate, "


def said(scene: Scene, preemptor: PodInfo) -> str:
    """What PostFilter says of a pod for which it makes no room."""
    result = scene.attempt(preemptor)
    assert (result.victims, result.status.ok) == ((), False)
    return result.status.message.removeprefix(NO_CLAIMS).removeprefix("preemption: ")


def web(name: str, priority: int = 1, cpu: str = "1", **rest: Any) -> PodInfo:
    return a_pod(name, priority, cpu, labels={"app": "web"}, **rest)


def protected(rules: dict[str, Any] | None = None, app: str = "web") -> dict[str, Any]:
    return {"protect": {"matchLabels": {"app": app}}, **(rules or {})}


# --- may the pod preempt at all? -----------------------------------------------------------------------------------------------------


def test_with_the_policy_never_no_pod_is_displaced() -> None:
    scene = Scene(rules={"policy": "Never"}).node("n", a_pod("a"), a_pod("b"))
    assert said(scene, a_pod("new", 10)) == "not eligible due to spec.preemption.policy=Never."
    assert scene.attempt(a_pod("new", 10)).retry_after is None


def test_a_pod_that_waited_too_short_a_time_displaces_nobody_until_then() -> None:
    scene = Scene(rules={"waitSeconds": 60}, tried={"new": 100.0}, now=130.0).node("n", a_pod("a"), a_pod("b"))
    assert said(scene, a_pod("new", 10)) == "not eligible due to spec.preemption.waitSeconds=60."
    assert scene.attempt(a_pod("new", 10)).retry_after == 30
    scene.now = 160.0
    assert scene.victims(a_pod("new", 10)) == ["b"]


def test_after_a_change_of_leader_the_wait_goes_on_from_the_pods_condition() -> None:
    scene = Scene(rules={"waitSeconds": DAY}, tried={"new": 0.0}, now=10.0).node("n", a_pod("a"), a_pod("b"))

    def waiting_since(when: str, reason: str = "Unschedulable", generation: int = 1) -> PodInfo:
        told = {"type": "PodScheduled", "status": "False", "reason": reason, "lastTransitionTime": f"2026-01-{when}:00:00Z"}
        manifest = kit.pod("new").uid("new").priority(10).requests(cpu="1").metadata(generation=generation).manifest
        return PodInfo(convert({**manifest, "status": {"conditions": [told]}}, Pod))

    assert scene.attempt(waiting_since("30T18")).retry_after == 18 * 3600
    assert scene.victims(waiting_since("30T00")) == ["b"]
    assert scene.attempt(waiting_since("01T00", "SchedulingGated")).retry_after == DAY - 10
    assert scene.attempt(waiting_since("01T00", generation=2)).retry_after == DAY - 10, "its gates went since, and the time is from before"


def test_a_minute_in_which_the_profile_displaced_as_many_pods_as_it_may_has_room_for_no_more() -> None:
    scene = Scene(rules={"maxEvictionsPerMinute": 2}, now=100.0).node("n", a_pod("a"), a_pod("b"))
    scene.evictions.needed = True
    scene.evictions.asked_for("default-scheduler", [a_pod("gone")])
    scene.now = 110.0
    assert scene.victims(a_pod("new", 10)) == ["b"]
    scene.evictions.asked_for("default-scheduler", [a_pod("gone too")])
    scene.evictions.asked_for("another", [a_pod("of another profile")] * 5)
    assert said(scene, a_pod("new", 10)) == "not eligible due to spec.preemption.maxEvictionsPerMinute=2."
    assert scene.attempt(a_pod("new", 10)).retry_after == MINUTE - 10
    scene.now = 160.0
    assert scene.victims(a_pod("new", 10)) == ["b"]


def test_a_member_in_its_groups_search_is_not_asked_again_whether_it_may_preempt() -> None:
    rules = Scene(rules={"waitSeconds": 60}, tried={"old": 0.0, "new": 70.0}, now=80.0).evaluator().runtime.preemption_rules
    assert rules is not None
    old, new = a_pod("old", 10), a_pod("new", 10)
    assert rules.why_not_yet([old, new]) is None, "a group has waited as long as any member"
    assert rules.why_not_yet([new]) is not None
    with rules.for_a_group(()):
        assert rules.why_not_yet([new]) is None
    assert rules.why_not_yet([new]) is not None


# --- which pods may leave? -------------------------------------------------------------------------------------------------------------


def test_protected_pods_stay_and_others_leave_although_they_are_more_important() -> None:
    assert Scene(rules=protected()).node("n", web("a", 1), a_pod("b", 5)).victims(a_pod("new", 10)) == ["b"]


def test_where_only_protected_pods_could_make_room_the_rule_is_named() -> None:
    scene = Scene(rules=protected()).node("n", web("a"), web("b")).node("m", a_pod("equal", 10), a_pod("higher", 11))
    assert said(scene, a_pod("new", 10)) == (
        "0/2 nodes are available: 1 No preemption victims found for incoming pod, 1 Victims are protected by spec.preemption.protect."
    )


def test_no_rule_is_named_where_the_pod_would_not_fit_without_it() -> None:
    scene = Scene(rules=protected()).node("n", web("a"), a_pod("equal", 10, "500m"))
    assert said(scene, a_pod("new", 10, "2")) == "0/1 nodes are available: 1 No preemption victims found for incoming pod."


def test_a_protected_pod_that_is_being_deleted_makes_room_as_any_other() -> None:
    scene = Scene(rules=protected()).node("n", web("a", leaving="DeletionByTaintManager"), web("b", 5))
    result = scene.attempt(a_pod("new", 10))
    assert (result.status.ok, result.nominated_node, result.victims) == (True, "n", ())


def test_pods_that_started_lately_stay_and_the_rule_tells_when_the_first_has_run_long_enough() -> None:
    scene = Scene(rules={"minRunSeconds": 3 * DAY}).node("n", a_pod("a", start="29"), a_pod("b", start="30"))
    why = said(scene, a_pod("new", 10))
    assert why == f"0/1 nodes are available: 1 Victims have run less than spec.preemption.minRunSeconds={3 * DAY}."
    assert scene.attempt(a_pod("new", 10)).retry_after == 1 * DAY
    scene.today += DAY
    assert scene.victims(a_pod("new", 10)) == ["a"]


def test_a_pod_that_has_not_reported_its_start_has_run_no_time() -> None:
    scene = Scene(rules={"minRunSeconds": 60}).node("n", a_pod("a"), a_pod("b", 5, start="01"))
    assert scene.victims(a_pod("new", 10)) == ["b"]
    assert Scene(rules={"minRunSeconds": 60}).node("n", a_pod("a"), a_pod("b")).attempt(a_pod("new", 10)).retry_after == 60


def test_a_preemption_of_too_many_victims_is_refused_and_a_node_with_fewer_is_taken() -> None:
    scene = Scene(rules={"maxVictims": 2}).node("n", *(a_pod(f"small{i}", 0, "500m") for i in range(4)))
    assert said(scene, a_pod("new", 10, "1500m")) == "0/1 nodes are available: 1 More victims than spec.preemption.maxVictims=2."
    scene.node("m", a_pod("large", 9, "2"))
    assert scene.victims(a_pod("new", 10, "1500m")) == ["large"]


def test_a_preemption_of_more_victims_than_the_minute_has_room_for_waits_until_it_has() -> None:
    scene = Scene(rules={"maxEvictionsPerMinute": 3}, now=100.0).node("n", *(a_pod(f"small{i}", 0, "500m") for i in range(4)))
    scene.evictions.needed = True
    scene.evictions.asked_for("default-scheduler", [a_pod("gone")])
    assert said(scene, a_pod("new", 10, "1500m")) == (
        "0/1 nodes are available: 1 More victims than spec.preemption.maxEvictionsPerMinute=3 allows."
    )
    assert scene.attempt(a_pod("new", 10, "1500m")).retry_after == MINUTE
    assert scene.attempt(a_pod("new", 10, "2")).retry_after is None, "no minute has room for four"


# --- budgets ---------------------------------------------------------------------------------------------------------------------------

WEB: Final = {"matchLabels": {"app": "web"}}
STRICT: Final = {"disruptionBudgets": "Strict"}


def test_a_budget_that_allows_no_disruption_keeps_its_pods() -> None:
    scene = Scene(rules=STRICT).node("n", web("a"), web("b")).budget(WEB, 0)
    assert said(scene, a_pod("new", 10)) == (
        "0/1 nodes are available: 1 Victims are kept by a PodDisruptionBudget under spec.preemption.disruptionBudgets=Strict."
    )
    assert scene.attempt(a_pod("new", 10)).retry_after == LOOK_AGAIN
    assert Scene().node("n", web("a"), web("b")).budget(WEB, 0).victims(a_pod("new", 10)) == ["b"], "as kube-scheduler, without the rule"


@pytest.mark.parametrize(
    ("selector", "labels", "covered"),
    [
        ({}, {}, ["1.38"]),
        ({}, {"app": "web"}, ["1.38"]),
        (WEB, {"app": "web"}, ["1.37", "1.38"]),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, {}, ["1.38"]),
        (WEB, {}, []),
        (None, {}, []),
    ],
)
@pytest.mark.parametrize("rules", [None, STRICT], ids=["as kube-scheduler", "strict"])
def test_budgets_cover_pods_as_the_version_has_it(
    selector: dict[str, Any] | None, labels: dict[str, str], covered: list[str], rules: dict[str, Any] | None
) -> None:
    for version in ("1.37", "1.38"):
        scene = Scene(rules=rules, compatibility=version).budget(selector)
        scene.node("n", a_pod("lesser", 1, "2", labels=labels))
        scene.node("m", a_pod("greater", 2, "2", namespace="other"))
        assert scene.victims(a_pod("new", 10, "2")) == ["greater" if version in covered else "lesser"], version


def test_several_victims_of_one_budget_are_counted_together() -> None:
    scene = Scene(rules=STRICT).node("n", web("a"), web("b")).budget(WEB, 1)
    assert said(scene, a_pod("new", 10, "2")).startswith("0/1 nodes are available: 1 Victims are kept by a PodDisruptionBudget")
    assert len(scene.victims(a_pod("new", 10, "1"))) == 1
    scene.budget(WEB, 2)
    assert len(scene.victims(a_pod("new", 10, "2"))) == 2


def test_the_budget_is_counted_over_the_pods_that_really_leave() -> None:
    """kube-scheduler counts the small pod as the one that the budget allows, and the large one as breaking it."""
    scene = Scene(rules=STRICT).node("n", web("small", 2, "100m"), web("large", 1, "1900m")).budget(WEB, 1)
    assert scene.victims(a_pod("new", 10, "1500m")) == ["large"]


def test_victims_that_their_budget_allows_cost_no_violation_when_nodes_are_compared() -> None:
    scene = Scene(rules=STRICT).node("n", web("small", 2, "100m"), web("large", 1, "1900m")).node("m", a_pod("batch", 5, "1900m"))
    assert scene.budget(WEB, 1).victims(a_pod("new", 10, "1500m")) == ["large"]


def test_an_eviction_that_the_budgets_status_does_not_show_uses_it_up() -> None:
    scene = Scene(rules=STRICT, now=100.0).node("n", web("a"), web("b")).node("m", web("c"), web("d"))
    scene.cluster.objects.put(versioned("1", allowed=1))
    (victim,) = scene.attempt(a_pod("new", 10)).victims
    scene.evictions.asked_for("default-scheduler", [victim])
    scene.cluster.told_to_leave(victim.uid)
    other = a_pod("other", 10, "2")
    assert said(scene, other).startswith("0/2 nodes are available: 2 Victims are kept by a PodDisruptionBudget")
    scene.cluster.remove_pod(victim.uid)
    scene.now += 10
    assert said(scene, other).startswith("0/2"), "the victim is gone, and the status is as before"
    scene.cluster.objects.put(versioned("2", allowed=1))
    assert len(scene.attempt(a_pod("third", 10, "1800m", nominated="")).victims) == 1, "the status has been written anew"


def test_a_status_written_in_the_first_seconds_may_have_been_computed_before() -> None:
    scene = Scene(rules=STRICT, now=100.0).node("n", web("a"), web("b", 20))
    scene.cluster.objects.put(versioned("1", allowed=1))
    scene.evictions.needed = True
    scene.evictions.asked_for("default-scheduler", [web("elsewhere")])
    scene.cluster.objects.put(versioned("2", allowed=1))
    assert said(scene, a_pod("new", 10)).startswith("0/1")
    scene.now += 5
    assert scene.victims(a_pod("new", 10)) == ["a"]


def test_an_eviction_that_failed_uses_no_budget() -> None:
    scene = Scene(rules=STRICT).node("n", web("a"), web("b", 20)).budget(WEB, 1)
    scene.evictions.needed = True
    scene.evictions.asked_for("default-scheduler", [web("elsewhere")])
    assert said(scene, a_pod("new", 10)).startswith("0/1")
    scene.evictions.failed(web("elsewhere"))
    assert scene.victims(a_pod("new", 10)) == ["a"]


def versioned(version: str, allowed: int) -> Any:
    return kit.disruption_budget("b").metadata(uid="b", resourceVersion=version).spec(selector=WEB).allows(allowed).build()


def test_without_rules_and_in_namespaces_without_budgets_no_eviction_is_kept() -> None:
    scene = Scene().budget(WEB, 1)
    scene.evictions.asked_for("default-scheduler", [a_pod("a")])
    assert (len(scene.evictions), scene.evictions.within_a_minute("default-scheduler")) == (0, 0), "no profile has rules"
    scene.evictions.needed = True
    scene.evictions.asked_for("default-scheduler", [a_pod("a", namespace="without"), a_pod("b")])
    assert (len(scene.evictions), scene.evictions.within_a_minute("default-scheduler")) == (1, 2)


def test_evictions_that_a_status_shows_are_forgotten_with_the_next_one() -> None:
    scene = Scene()
    scene.evictions.needed = True
    scene.cluster.objects.put(versioned("1", allowed=1))
    scene.evictions.asked_for("default-scheduler", [web(f"p{i}") for i in range(5)])
    scene.now += 10
    scene.evictions.asked_for("default-scheduler", [web("as it was")])
    assert len(scene.evictions) == 6
    scene.cluster.objects.put(versioned("2", allowed=1))
    scene.now += 10
    scene.evictions.asked_for("default-scheduler", [web("later")])
    assert len(scene.evictions) == 1
    scene.now += SHOWN_AT_LATEST
    assert [*scene.evictions.not_shown_by(versioned("2", allowed=1))] == []


def test_no_more_evictions_are_kept_than_the_bound_and_the_oldest_go_first() -> None:
    scene = Scene()
    scene.evictions.needed = True
    for namespace in ("default", "other"):
        scene.budget(WEB, 1, namespace=namespace)
    scene.evictions.asked_for("default-scheduler", [a_pod(f"p{i}") for i in range(MOST_KEPT)])
    scene.evictions.asked_for("default-scheduler", [a_pod(f"q{i}", namespace="other") for i in range(5)])
    assert len(scene.evictions) == MOST_KEPT
    assert scene.evictions.within_a_minute("default-scheduler") == MOST_KEPT + 5
    (other,) = [each for each in scene.cluster.objects.disruption_budgets.values() if each.metadata.namespace == "other"]
    assert len([*scene.evictions.not_shown_by(other)]) == 5


# --- on random clusters ----------------------------------------------------------------------------------------------------------------

standing = st.tuples(st.integers(0, 3), st.sampled_from((100, 300, 500)), st.sampled_from((None, 1, 10, 25)), st.sampled_from(APPS))
clusters = st.lists(st.lists(standing, min_size=1, max_size=6), min_size=1, max_size=5)
rules = st.builds(
    Rules,
    strict=st.booleans(),
    min_run_days=st.sampled_from((0, 0, 10, 25)),
    max_victims=st.sampled_from((1, 2, 1000)),
    protected_app=st.sampled_from(("none", "web", "db")),
)


def as_spec(rules: Rules) -> dict[str, Any]:
    return {
        "disruptionBudgets": "Strict" if rules.strict else "BestEffort",
        "minRunSeconds": float(rules.min_run_days * DAY),
        "maxVictims": rules.max_victims,
        **protected(app=rules.protected_app),
    }


def both(cluster: list[list[Any]], allowed: dict[str, int], rules: Rules) -> tuple[Scene, Model]:
    nodes = {f"n{n}": [Standing(f"p{n}-{i}", *each) for i, each in enumerate(pods)] for n, pods in enumerate(cluster)}
    scene = Scene(rules=as_spec(rules))
    for name, pods in nodes.items():
        made = [
            a_pod(one.name, one.priority, f"{one.cpu}m", start=None if one.day is None else f"{one.day:02}", labels={"app": one.app})
            for one in pods
        ]
        scene.node(name, *made, cpu="1")
    for app, count in allowed.items():
        scene.budget({"matchLabels": {"app": app}}, count, name=f"b-{app}")
    return scene, Model(nodes, 1000, allowed, rules)


@settings(max_examples=cases(200))
@given(clusters, st.dictionaries(st.sampled_from(("web", "db")), st.integers(0, 2)), rules, st.integers(1, 4), st.sampled_from((400, 900)))
def test_the_rules_are_filters_on_kube_schedulers_choice(
    cluster: list[list[Any]], allowed: dict[str, int], rules: Rules, priority: int, cpu: int
) -> None:
    scene, model = both(cluster, allowed, rules)
    preemptor = a_pod("new", priority, f"{cpu}m")
    if scene.evaluator().evaluate(preemptor).count:
        return
    result = scene.attempt(preemptor)
    found = (result.nominated_node, [victim.name for victim in result.victims]) if result.status.ok else None
    assert found == model.victims(priority, cpu)
    assert result.status.ok or "nodes are available" in result.status.message
    for victim in result.victims:
        assert victim.labels["app"] != rules.protected_app
        started = victim.pod.status.start_time
        assert not rules.min_run_days or (started is not None and int(started[8:10]) + rules.min_run_days <= model.today)
    for app, most in allowed.items() if rules.strict else ():
        assert sum(victim.labels["app"] == app for victim in result.victims) <= most
    assert len(result.victims) <= rules.max_victims


@pytest.mark.parametrize("spec", [None, {}])
@settings(max_examples=cases(60))
@given(cluster=clusters, priority=st.integers(1, 4))
def test_rules_that_say_nothing_are_no_rules(spec: dict[str, Any] | None, cluster: list[list[Any]], priority: int) -> None:
    scene, model = both(cluster, {}, Rules())
    scene.spec["preemption"] = spec
    evaluator = scene.evaluator()
    assert evaluator.runtime.preemption_rules is None
    preemptor = a_pod("new", priority, "900m")
    if not evaluator.evaluate(preemptor).count:
        result = scene.attempt(preemptor)
        found = (result.nominated_node, [victim.name for victim in result.victims]) if result.status.ok else None
        assert found == model.victims(priority, 900)
