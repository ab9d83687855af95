"""The columns against a model that recounts: any history of nodes and pods, trials on top of it, and who listens."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.makers import NODES, Mirror, placed
from cluster.model import ACTS, UIDS, VARIANTS, WHERE, Model, any_pod, view_of
from placewright.api.podgroups import Form, GroupRef
from placewright.cluster.cluster import Cluster
from randomcases import cases

TRAIN = GroupRef(Form.COSCHEDULING, "default", "train")


@settings(max_examples=cases(60))
@given(ACTS)
def test_through_any_history_the_columns_say_what_a_recount_says(acts: list[Any]) -> None:
    cluster, model = Cluster(), Model()
    for act in acts:
        model.act(cluster, *act)
        assert view_of(cluster) == model.view()
    assert {uid: tuple(placement) for uid, placement in placed(cluster).items()} == model.pods
    assert (cluster.uids(), cluster.pod_count_total) == (model.pods.keys(), len(model.pods))
    assert cluster.assumed_count == sum(assumed for _, _, assumed in model.pods.values())
    assert cluster.lowest_priority == min((pod.priority for pod, _, _ in model.pods.values()), default=None)
    assert cluster.node_count == len(model.nodes)
    assert {cluster.row(name) is not None for name in model.nodes} <= {True}
    members = {uid for uid, (pod, _, _) in model.pods.items() if pod.pod_group == TRAIN}
    assert (cluster.pod_groups.placed(TRAIN), cluster.pod_groups.running(TRAIN)) == (members, len(members))
    used = [pod for pod, where, _ in model.pods.values() if where in model.nodes for volume in pod.volumes]
    assert sum(cluster.volumes.claimed("default", claim) for claim in ("data", "more")) == len(used)


@settings(max_examples=cases(40))
@given(ACTS)
def test_when_everybody_has_left_nothing_is_left(acts: list[Any]) -> None:
    cluster, model = Cluster(), Model()
    for act in acts:
        model.act(cluster, *act)
    for uid in list(model.pods):
        cluster.remove_pod(uid)
    for name in NODES:
        cluster.remove_node(name)
    assert (view_of(cluster), cluster.node_count, cluster.pod_count_total, cluster.assumed_count) == ({}, 0, 0, 0)
    assert (cluster.resources.names(), cluster.resources.requested_without_offer(), list(cluster.label_keys)) == ((), 0, [])
    for column in (cluster.pod_count, cluster.pod_limit, cluster.scoring_cpu, cluster.scoring_memory):
        assert not column.any()
    assert not any((cluster._pods_on, cluster._assumed_as, cluster._priorities, cluster._told_to_leave))
    assert not any((cluster.pod_groups._placed, cluster.pod_groups._running))
    assert not any((cluster.ports._claims, cluster.volumes._disks, cluster.volumes._claims, cluster.volumes._pods))
    assert list(cluster.pairwise_counts) == []


TRIALS = st.lists(st.lists(st.tuples(UIDS, VARIANTS, WHERE), max_size=3), max_size=3)


@settings(max_examples=cases(60))
@given(ACTS, TRIALS, st.booleans())
def test_a_trial_within_a_trial_shows_what_would_be_and_leaves_what_is(acts: list[Any], trials: list[Any], journalled: bool) -> None:
    cluster, model = Cluster(), Model()
    for act in acts:
        model.act(cluster, *act)
    before, journal = view_of(cluster), cluster.pod_journal.position
    _try(cluster, model, trials, journalled=journalled)
    assert view_of(cluster) == before
    assert {uid: tuple(placement) for uid, placement in placed(cluster).items()} == model.pods
    assert cluster.dry_run_rows() == frozenset()
    assert journalled or cluster.pod_journal.position == journal


def _try(cluster: Cluster, model: Model, trials: list[list[tuple[str, int, Any]]], *, journalled: bool) -> None:
    """Each trial takes away the pods that it names where they stand, and puts those on a node that stand nowhere."""
    if not trials:
        return
    with cluster.dry_run(journalled=journalled) as dry_run:
        moves, touched = [], set()
        for uid, variant, where in trials[0]:
            known = model.pods.get(uid)
            if uid in touched or (known is not None and known[1] not in model.nodes) or (known is None and where not in model.nodes):
                continue
            touched.add(uid)
            moves.append((*known[:2], -1) if known is not None else (any_pod(uid, variant, ""), where, 1))
        for pod, where, sign in moves:
            row = cluster.row(where)
            assert row is not None
            (dry_run.add if sign > 0 else dry_run.remove)([(row, pod)])
            assert row in cluster.dry_run_rows()
            if journalled:
                assert cluster.pod_journal.since(cluster.pod_journal.position - 1) == [row]
        with model.dry_run(moves):
            assert view_of(cluster) == model.view()
            _try(cluster, model, trials[1:], journalled=journalled)
            assert view_of(cluster) == model.view()


@settings(max_examples=cases(50))
@given(ACTS)
def test_who_hears_of_every_change_can_keep_the_same_columns(acts: list[Any]) -> None:
    cluster, model = Cluster(), Model()
    mirror = Mirror(cluster)
    cluster.report_to(mirror)
    for act in acts:
        model.act(cluster, *act)
        assert view_of(mirror.kept) == view_of(cluster)
    assert {uid: placement.node for uid, placement in placed(mirror.kept).items()} == {
        uid: placement.node for uid, placement in placed(cluster).items()
    }


@settings(max_examples=cases(40))
@given(ACTS, st.randoms(use_true_random=False))
def test_who_was_away_and_reads_the_journals_finds_every_row_that_changed(acts: list[Any], dice: Any) -> None:
    """A column that is kept recomputes these rows and no others; a row that the journals leave out is the same as before."""
    cluster, model = Cluster(), Model()
    seen: dict[int, Any] = {}
    nodes, pods = cluster.node_journal.position, cluster.pod_journal.position
    for act in acts:
        model.act(cluster, *act)
        if dice.random() < 0.5:
            continue
        view = view_of(cluster)
        for each in view.values():  # what is requested of a resource that the node does not offer fits there neither way
            each["requests"] = {name: amount for name, amount in each["requests"].items() if name in each["offers"]}
        now = {row: view.get(str(name)) for row, name in enumerate(cluster.names)}
        changed = {row for row in now if now[row] != seen.get(row)}
        assert changed <= {*(cluster.node_journal.since(nodes) or ()), *(cluster.pod_journal.since(pods) or ())}
        seen, nodes, pods = now, cluster.node_journal.position, cluster.pod_journal.position
