"""Trials on random clusters: in step or one after another, the outcome is the same, and no victim leaves in vain."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from placewright.api.decode import convert
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.api.storage import PersistentVolume, PersistentVolumeClaim
from placewright.framework.errors import CycleError
from placewright.framework.interface import Handle, RowChecks, Rows, RowTrials
from placewright.framework.preemption.budgets import Budgets
from placewright.framework.status import Code, Status
from placewright.plugins.defaultpreemption.candidates import NO_VICTIMS, Candidate
from placewright.plugins.defaultpreemption.dryrun import DryRun
from plugins.pairwise_worlds import HOST, ZONE, Dice
from plugins.preempting import Scene, a_pod
from randomcases import cases

APPS: Final = ("web", "db")
PORT: Final = {"containers": [{"name": "c", "ports": [{"hostPort": 80}]}]}
CLAIMS: Final = ("c0", "c1")
running_pods = st.lists(
    st.builds(
        lambda priority, cpu, start, app, port: (priority, f"{cpu}m", start, {"app": app}, PORT if port else {}),
        st.integers(0, 2),
        st.sampled_from((100, 300, 500)),
        st.sampled_from((None, "01", "02")),
        st.sampled_from(APPS),
        st.sampled_from((False, False, False, True)),
    ),
    min_size=2,
    max_size=6,
)
clusters = st.lists(running_pods, min_size=1, max_size=5)
budgets = st.lists(st.tuples(st.sampled_from(APPS), st.integers(0, 2)), max_size=2)
SETTINGS: Final = settings(max_examples=cases(150))


class OneByOne:
    """A handle under which nothing can be told of two nodes together."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def __getattr__(self, name: str) -> Any:
        return getattr(self._handle, name)

    def trials(self, pod: PodInfo, rows: Any = None) -> Doubtful:
        return Doubtful(self._handle.trials(pod, rows), certain=0, says_why=False)


class Reluctant(OneByOne):
    """Checks nodes together for a while, and finds out then that it cannot."""

    def trials(self, pod: PodInfo, rows: Any = None) -> Doubtful:
        return Doubtful(self._handle.trials(pod, rows), certain=2)


class Screening(OneByOne):
    """Can tell together which nodes are hopeless, and no more."""

    def trials(self, pod: PodInfo, rows: Any = None) -> Doubtful:
        return Doubtful(self._handle.trials(pod, rows), certain=0)


class Doubtful:
    """Settles every row in its first checks, and none in those that follow."""

    def __init__(self, together: RowTrials, certain: int, *, says_why: bool = True) -> None:
        self._together = together
        self._certain = certain
        self._says_why = says_why

    def check(self, rows: Rows) -> RowChecks:
        self._certain -= 1
        found = self._together.check(rows)
        if self._certain >= 0:
            return found
        rejections = found.rejections if self._says_why else []
        rejected = np.concatenate([np.zeros(0, np.intp), *(which for _, which in rejections)])
        return RowChecks(rejections, np.setdiff1d(rows, rejected))


class Broken(OneByOne):
    """A plugin fails whenever it is asked."""

    def check_row(self, pod: PodInfo, row: int) -> Status:
        raise CycleError("broken")


def scene_of(cluster: list[list[Any]], allowed: list[tuple[str, int]]) -> Scene:
    scene = Scene()
    for n, running in enumerate(cluster):
        pods = [
            a_pod(f"p{n}-{i}", p, cpu, start=start, labels=labels, spec=spec) for i, (p, cpu, start, labels, spec) in enumerate(running)
        ]
        scene.node(f"n{n}", *pods, cpu="1")
    for i, (app, count) in enumerate(allowed):
        scene.budget({"matchLabels": {"app": app}}, count, name=f"b{i}")
    return scene


def trials(scene: Scene, handle: Any, preemptor: PodInfo) -> list[Any]:
    run = DryRun(handle, preemptor, Budgets(scene.cluster.objects))
    nodes = [(int(row), scene.cluster.names[row]) for row in scene.cluster.rows()]
    return list(run.on([(row, name) for row, name in nodes if name is not None]))


@SETTINGS
@given(clusters, budgets, st.integers(1, 3), st.sampled_from(("400m", "600m", "900m")), st.booleans())
def test_nodes_tried_in_step_give_what_each_gives_alone(
    cluster: list[list[Any]], allowed: list[tuple[str, int]], priority: int, cpu: str, port: bool
) -> None:
    scene = scene_of(cluster, allowed)
    handle = scene.evaluator().runtime.post_filter[0].handle
    preemptor = a_pod("new", priority, cpu, spec=PORT if port else {})
    alone = trials(scene, OneByOne(handle), preemptor)
    assert trials(scene, handle, preemptor) == alone
    assert trials(scene, Screening(handle), preemptor) == alone


@SETTINGS
@given(clusters, budgets, st.integers(1, 4))
def test_the_pod_fits_without_the_victims_and_with_none_of_them_back(
    cluster: list[list[Any]], allowed: list[tuple[str, int]], priority: int
) -> None:
    scene = scene_of(cluster, allowed)
    handle = scene.evaluator().runtime.post_filter[0].handle
    preemptor = a_pod("new", priority, "800m")
    for outcome in trials(scene, handle, preemptor):
        if isinstance(outcome, Candidate):
            assert all(victim.priority < priority for victim in outcome.victims)
            assert_needed(scene, handle, preemptor, outcome)


def assert_needed(scene: Scene, handle: Handle, preemptor: PodInfo, candidate: Candidate) -> None:
    row = scene.cluster.row(NodeName(candidate.node))
    assert row is not None
    with scene.cluster.dry_run_on_row(remove=candidate.victims, row=row):
        assert handle.check_row(preemptor, row).ok
        for victim in candidate.victims:
            with scene.cluster.dry_run_on_row(add=[victim], row=row):
                assert not handle.check_row(preemptor, row).ok


#: Labels of nodes: four nodes in two zones, and one in none.
PLACES: Final = ({ZONE: "1"}, {ZONE: "1"}, {ZONE: "2"}, {ZONE: "2"}, {})


def crowd(dice: Dice) -> tuple[Scene, PodInfo]:
    """Nodes in zones, full of pods with affinities and claims; pods nominated to some; and one that means to preempt."""
    scene = Scene()
    for n, place in enumerate(PLACES):
        running = [neighbour(dice, f"p{n}-{i}", dice.randint(0, 3)) for i in range(dice.randint(0, 4))]
        scene.node(f"n{n}", *running, cpu="1500m", labels=place)
    for claim in CLAIMS:
        for each in bound_claim(claim, dice.choice(("ReadWriteOnce", "ReadWriteOncePod")), dice.choice("12")):
            scene.cluster.objects.put(each)
    for n in dice.sample(range(len(PLACES)), dice.choice((0, 0, 1, 2))):
        scene.nominated[NodeName(f"n{n}")] = [neighbour(dice, f"nominated{n}", dice.randint(2, 5))]
    for app in APPS:
        if dice.maybe(0.3):
            scene.budget({"matchLabels": {"app": app}}, dice.randint(0, 2), name=app)
    return scene, neighbour(dice, "new", 4)


def neighbour(dice: Dice, name: str, priority: int) -> PodInfo:
    """A pod that may care about its neighbours, and use a claim."""
    spec: dict[str, Any] = {"affinity": {side: required(dice) for side in ("podAffinity", "podAntiAffinity") if dice.maybe(0.2)}}
    if dice.maybe(0.3):
        spec["topologySpreadConstraints"] = [hard_spread(dice) for _ in range(dice.randint(1, 2))]
    if dice.maybe(0.3):
        spec["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": dice.choice(CLAIMS)}}]
    return a_pod(name, priority, dice.choice(("300m", "500m")), labels={"app": dice.choice(APPS)}, spec=spec)


def required(dice: Dice) -> dict[str, Any]:
    term = {"topologyKey": dice.choice((ZONE, HOST)), "labelSelector": {"matchLabels": {"app": dice.choice(APPS)}}}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def hard_spread(dice: Dice) -> dict[str, Any]:
    selector = {"matchLabels": {"app": dice.choice(APPS)}}
    return {
        "topologyKey": dice.choice((ZONE, HOST)),
        "maxSkew": dice.randint(1, 2),
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": selector,
    }


def bound_claim(name: str, mode: str, zone: str) -> tuple[PersistentVolumeClaim, PersistentVolume]:
    meta = {"name": name, "namespace": "default", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    claim = {"metadata": meta, "spec": {"volumeName": name, "accessModes": [mode]}, "status": {"phase": "Bound"}}
    terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}]
    spec = {"csi": {"driver": "a", "volumeHandle": name}, "nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}
    return convert(claim, PersistentVolumeClaim), convert({"metadata": {"name": name}, "spec": spec}, PersistentVolume)


@SETTINGS
@given(st.integers(0, 2**32))
def test_nodes_whose_pods_mean_each_other_are_tried_in_step_as_if_each_were_alone(seed: int) -> None:
    scene, preemptor = crowd(Dice(seed))
    handle = scene.evaluator().runtime.post_filter[0].handle
    in_step = trials(scene, handle, preemptor)
    assert in_step == trials(scene, OneByOne(handle), preemptor)
    assert in_step == trials(scene, Reluctant(handle), preemptor)


@SETTINGS
@given(st.integers(0, 2**32))
def test_many_nodes_with_nominated_pods_are_looked_at_together_and_each_is_told_what_it_alone_would_be(seed: int) -> None:
    dice = Dice(seed)
    scene, newcomer = crowd(dice)
    for n in range(len(PLACES)):
        scene.nominated[NodeName(f"n{n}")] = [neighbour(dice, f"nominated{n}", dice.randint(2, 5))]
    checker = scene.evaluator().checker
    try:
        rejections = checker.rejected_with_nominated_pods(newcomer, None).grouped()
    except CycleError:
        return
    together = {row: status for status, rejected in rejections for row in rejected.tolist()}
    rows = [int(row) for row in scene.cluster.rows()]
    alone = {row: checker.with_nominated_pods(newcomer, row) for row in rows}
    assert together == {row: status for row, status in alone.items() if status is not None and not status.ok}


def test_a_node_tried_alone_keeps_whom_it_can() -> None:
    scene = Scene().node("n", a_pod("a", 1), a_pod("b", 2), a_pod("c", 3), cpu="3")
    handle = scene.evaluator().runtime.post_filter[0].handle
    (outcome,) = trials(scene, OneByOne(handle), a_pod("new", 10, "2"))
    assert [victim.name for victim in outcome.victims] == ["b", "a"]


def test_nodes_are_tried_alone_after_all_when_a_filter_turns_out_to_look_around() -> None:
    scene = Scene().node("n", a_pod("a", 1), a_pod("b", 2), a_pod("c", 3), cpu="3")
    handle = scene.evaluator().runtime.post_filter[0].handle
    assert trials(scene, Reluctant(handle), a_pod("new", 10, "2")) == trials(scene, handle, a_pod("new", 10, "2"))


def test_an_error_on_one_node_does_not_end_the_search_on_others() -> None:
    scene = Scene().node("n", a_pod("a", 1, "2")).node("m")
    handle = scene.evaluator().runtime.post_filter[0].handle
    broken, empty = trials(scene, Broken(handle), a_pod("new", 10))
    assert (broken.code, broken.message) == (Code.ERROR, "broken")
    assert empty == NO_VICTIMS
    assert scene.cluster.pod_count.tolist() == [1, 0]


def test_trials_say_of_every_row_what_it_alone_would_be_told() -> None:
    scene = Scene().node("full", a_pod("a", 0, "2")).node("free").node("closed", unschedulable=True).node("small", cpu="100m")
    scene.nominated[NodeName("free")] = [a_pod("earlier", 20, "2")]
    handle = scene.evaluator().runtime.post_filter[0].handle
    rejections, unsettled = handle.trials(a_pod("new", 10)).check(np.arange(4))
    assert not len(unsettled)
    together = {int(row): status for status, rows in rejections for row in rows}
    alone = {row: handle.check_row(a_pod("new", 10), row) for row in range(4)}
    assert together == {row: status for row, status in alone.items() if not status.ok}
    assert len(together) == 4
