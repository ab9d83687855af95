"""The document of an explanation: verdicts now, claims, records, and explanations of objects that were only observed."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.api.profile import SchedulingProfile
from placewright.cluster.cluster import Cluster
from placewright.explain.explanation import UNCOUNTED, CurrentVerdict, Explanation, claim_facts, evaluated, tried
from placewright.explain.observed import ObservedObjects, evaluated_once, oldest_of, with_company, with_decision, without_profile
from placewright.explain.records import AttemptRecord
from placewright.framework.interface import BoolColumn, CycleState, FilterPlugin, PreEnqueuePlugin, Rows
from placewright.framework.runtime.evaluation import PluginScore
from placewright.framework.status import Status, unschedulable
from placewright.framework.steps import Step
from placewright.profiles.problem import ProfileError
from placewright.scheduler.cycle import MOST_CHARACTERS, TOP
from placewright.testing import World, device_class, node, pod, profile, resource_claim, resource_slice

LONG = "no " * 100_000


class Gates(PreEnqueuePlugin):
    """Keeps every pod out, with a long text."""

    name = "Gates"

    def pre_enqueue(self, pod: PodInfo) -> Status:
        return unschedulable(f"{pod.name}: {LONG}")


class Breaks(FilterPlugin):
    """Breaks on every pod, with a long text."""

    name = "Breaks"

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        raise ValueError(LONG)

    def explain(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> Any:
        raise AssertionError("`filter` never answers")


def now(world: World, asked: PodInfo, **how: Any) -> CurrentVerdict:
    return evaluated(world.profiles["default-scheduler"], world.cluster, asked, **how)


# --- verdicts -----------------------------------------------------------------------------------------------------------------------


def test_a_gated_pod_is_not_evaluated_and_the_reason_is_cut() -> None:
    found = now(World(Gates, nodes=[node("a")]), pod("web").build())
    assert (found.feasible, found.nodes, found.refusals) == (0, 1, ())
    assert found.gated.startswith("web: no no")
    assert len(found.gated) == MOST_CHARACTERS


def test_a_plugin_that_breaks_is_named_in_the_verdicts_and_its_text_is_cut() -> None:
    found = now(World(Breaks, nodes=[node("a"), node("b")]), pod("web").build())
    assert (found.feasible, found.nodes, found.best, found.misses) == (0, 2, (), ())
    assert 'Filter plugin "Breaks"' in found.error
    assert len(found.error) <= MOST_CHARACTERS


def test_a_brief_answer_has_the_same_counts_and_message_and_nothing_that_takes_long() -> None:
    world = World(nodes=[node("a", cpu="1"), node("b", cpu="2"), node("c").taint("gpu")])
    for asked in (pod("p", cpu="9").build(), pod("p", cpu="1").build()):
        brief, whole = now(world, asked, briefly=True), now(world, asked)
        assert (brief.feasible, brief.nodes, brief.message) == (whole.feasible, whole.nodes, whole.message)
        assert (brief.best, brief.misses, brief.devices) == ((), (), None)
        assert bool(whole.best) is bool(whole.feasible)
        assert bool(whole.misses) is not bool(whole.feasible)


def test_refusals_and_feasible_nodes_add_up_and_only_the_best_few_are_named() -> None:
    world = World(nodes=[node(f"n-{i}", cpu="1" if i % 3 else "8") for i in range(15)])
    found = now(world, pod("p", cpu="4").build())
    assert (found.feasible, found.nodes, [each.nodes for each in found.refusals]) == (5, 15, [10])
    assert (len(found.best), found.ties, found.message) == (TOP, 5, "")
    assert len(now(world, pod("p", cpu="4").build(), top=2).best) == 2
    for ranked in found.best:
        assert ranked.total == sum(part.product for part in ranked.parts.values())
        assert all(part.product == part.normalised * part.weight for part in ranked.parts.values())


def test_asking_changes_neither_cluster_nor_queue() -> None:
    world = World(nodes=[node("a", cpu="1")], pods=[pod("low", on="a", cpu="1", priority=-5)])
    before = list(world.cluster.placements())
    assert now(world, pod("p", cpu="1", priority=9).build()).misses
    assert list(world.cluster.placements()) == before
    assert (len(world.queue), world.evictor.evicted) == (0, [])


def test_an_attempt_has_the_seconds_of_a_step_that_was_repeated_added_up_and_scores_only_if_they_were_kept() -> None:
    steps = [Step("Filter", 1.0, 0.25, "ok"), Step("Score", 2.0, 0.5, "ok"), Step("Filter", 3.0, 0.125, "ok")]
    record = AttemptRecord(
        "default", "web", "u", "default", 2, 3, 9.0, "scheduled", 1.0, steps=steps, node=NodeName("a"), best=(NodeName("a"),)
    )
    found = tried(record)
    assert (found.steps, found.node, found.nominated_node, found.best) == ({"Filter": 0.375, "Score": 0.5}, "a", "", ())
    (ranked,) = tried(replace(record, parts={"P": [PluginScore(30, 60, 2)], "Q": [PluginScore(1, 5, 1)]})).best
    assert (ranked.node, ranked.total, {name: part.product for name, part in ranked.parts.items()}) == ("a", 125, {"P": 120, "Q": 5})


# --- claims -------------------------------------------------------------------------------------------------------------------------


def test_claims_are_told_in_the_order_of_the_pod_with_what_is_missing() -> None:
    claims = [
        resource_claim("b").request("gpu", count=2).request("gpu", allocationMode="All", name="rest"),
        resource_claim("a").request_first_of("big", "small").allocated("gpu-0", pool="n").reserved_for("web", "other"),
    ]
    world = World(nodes=[node("n")], objects=claims)
    b, gone, a = claim_facts(pod("web").resource_claims("b", "gone", "a").build(), world.cluster.objects.devices.claims)
    assert (b.claim, b.asks, b.devices, b.users) == ("default/b", ("request-0: 2 of class gpu", "rest: all of class gpu"), (), 0)
    assert (gone.entry, gone.claim) == ("gone", "")
    assert "gone" in gone.problem
    assert (a.asks, a.users, a.writing) == (("request-0: 1 of class big or 1 of class small",), 2, False)
    assert [(each.driver, each.pool, each.device) for each in a.devices] == [("gpu.example.com", "n", "gpu-0")]


def test_nodes_are_grouped_by_free_devices_and_by_what_else_rejects_them() -> None:
    slices = [resource_slice(name).devices(*(f"gpu-{i}" for i in range(count))) for name, count in (("a", 1), ("b", 3), ("c", 3))]
    wish = resource_claim("wish").request("gpu", count=2)
    taken = resource_claim("taken").request("gpu", count=2).allocated("gpu-0", "gpu-1", pool="c").reserved_for("other")
    nodes = [node("a"), node("b", cpu="1"), node("c"), node("d")]
    world = World(nodes=nodes, objects=[*slices, device_class("gpu"), wish, taken])
    found = now(world, pod("web", cpu="2").resource_claims("wish").build()).devices
    assert found is not None
    assert (found.device_class, found.wanted) == ("gpu", 2)
    told = [(each.examples, each.free, each.enough, each.reason) for each in found.groups]
    assert told == [(("b",), 3, True, "Insufficient cpu"), (("a", "c"), 1, False, ""), (("d",), 0, False, "")]


def test_free_devices_are_not_counted_where_devices_must_be_alike() -> None:
    wish = resource_claim("wish").request("gpu", count=2).alike("gpu.example.com/model")
    objects = [resource_slice("a").devices("gpu-0"), device_class("gpu"), wish]
    found = now(World(nodes=[node("a")], objects=objects), pod("web").resource_claims("wish").build()).devices
    assert found is not None
    assert [(each.free, each.enough) for each in found.groups] == [(UNCOUNTED, False)]
    assert now(World(nodes=[node("a")]), pod("web", cpu="99").build()).devices is None


# --- objects that were observed ------------------------------------------------------------------------------------------------------


def test_the_oldest_profile_of_a_scheduler_name_claims_the_pod_and_the_name_decides_between_two() -> None:
    def made(name: str, created: str, scheduler: str = "batch") -> SchedulingProfile:
        return profile(name).scheduler(scheduler).created(created).build()

    young, old, twin = (
        made("a", "2026-03-01T00:00:00Z"),
        made("z", "2026-01-01T00:00:00Z"),
        made("m", "2026-01-01T00:00:00Z"),
    )
    assert oldest_of([young, old, made("o", "2020-01-01T00:00:00Z", "other")], "batch") is old
    assert oldest_of([old, young, twin], "batch") is twin
    assert oldest_of([young], "none") is None


@pytest.mark.parametrize(("asked", "hint"), [("defualt-scheduler", "did you mean"), ("quite-another", "")])
def test_a_pod_that_no_profile_claims_is_told_which_one_was_likely_meant(asked: str, hint: str) -> None:
    seen = ObservedObjects(profiles=[profile().build()])
    found = evaluated_once(Explanation("default", "web"), pod("web").scheduler(asked).build(), seen)
    assert found == without_profile(Explanation("default", "web"), pod("web").scheduler(asked).build(), seen)
    (note,) = found.notes
    assert repr(asked) in note
    assert hint in note
    assert found.now is None


def test_a_profile_that_cannot_be_used_is_named_in_the_error() -> None:
    seen = ObservedObjects(profiles=[profile("broken").enable("NoSuchPlugin").build()])
    with pytest.raises(ProfileError, match="SchedulingProfile broken") as refused:
        evaluated_once(Explanation("default", "web"), pod("web").build(), seen)
    assert "NoSuchPlugin" in str(refused.value)


def test_a_paused_profile_still_gives_verdicts_and_says_that_it_is_paused() -> None:
    world = World(nodes=[node("a")])
    seen = ObservedObjects(world.cluster, profiles=[profile("slow").generation(4).paused().build()])
    found = evaluated_once(Explanation("default", "web"), pod("web").build(), seen)
    assert (found.paused, found.profile, found.generation) == (True, "slow", 4)
    assert found.now is not None
    assert found.now.feasible == 1


def test_a_pod_that_something_else_bound_has_a_note_instead_of_a_decision() -> None:
    about = Explanation("default", "web", notes=("read from a file",))
    found = with_decision(about, pod("web", on="a").build())
    assert found.decision is None
    assert found.notes[0] == "read from a file"
    assert "something else bound it" in found.notes[1]
    world = World(nodes=[node("a")], profile=profile("mine").generation(3))
    bound = next(iter(world.add(pod("web")).cluster.placements())).pod
    decided = with_decision(about, bound)
    assert (decided.profile, decided.generation, decided.notes) == ("mine", 3, about.notes)
    assert decided.decision is not None


def test_a_pod_without_a_group_and_without_claims_has_no_company_but_the_notes_of_all() -> None:
    found = with_company(Explanation("default", "web", notes=("one",)), pod("web").build(), ObservedObjects(notes=("two",)))
    assert (found.group, found.claims, found.notes) == (None, (), ("one", "two"))
