"""News of a pod asks few of those that wait: the keys of both sides never leave out a pod whose hint would bring it back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from pairwise import build
from pairwise_worlds import NAMESPACES, Body, Dice

from placewright.api.objects import Pod
from placewright.api.pods import PodInfo
from placewright.api.workloads import Namespace, Service
from placewright.cluster.cluster import Cluster
from placewright.framework.events import Action, ClusterEvent, ClusterEventWithHint, EventResource, QueueingHint
from placewright.plugins.interpodaffinity.plugin import InterPodAffinity
from placewright.plugins.podtopologyspread.plugin import PodTopologySpread

ZONE_TERM = {"topologyKey": "zone"}
TEAMS: tuple[Body, ...] = ({}, {"matchLabels": {"team": "x"}}, {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]})
#: Kinds of news of a pod, as the queue tells them.
NEWS = ClusterEvent(EventResource.ASSIGNED_POD, Action.ADD | Action.DELETE | Action.UPDATE_POD_LABEL, "news")


def term(dice: Dice) -> Body:
    """One term of required affinity or anti-affinity."""
    found: Body = ZONE_TERM | {"labelSelector": dice.selector()}
    if dice.maybe(0.3):
        found["namespaces"] = dice.sample(NAMESPACES, dice.randint(1, 2))
    if dice.maybe(0.3):
        found["namespaceSelector"] = dice.choice(TEAMS)
    return found


def constraint(dice: Dice) -> Body:
    """One spread constraint."""
    found: Body = ZONE_TERM | {"maxSkew": 1, "labelSelector": dice.selector()}
    found["whenUnsatisfiable"] = dice.choice(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"])
    if dice.maybe(0.4):
        found["matchLabelKeys"] = ["tier"]
    return found


def spec(dice: Dice, node: str | None) -> Body:
    """What waits, or stands on a node."""
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    affinity = {
        "podAffinity": {required: [term(dice) for _ in range(dice.randint(0, 2))]},
        "podAntiAffinity": {required: [term(dice) for _ in range(dice.randint(0, 2))]},
    }
    found: Body = {"affinity": affinity, "topologySpreadConstraints": [constraint(dice) for _ in range(dice.randint(0, 2))]}
    return found | ({"nodeName": node} if node else {})


def world(dice: Dice) -> Cluster:
    """Namespaces of two teams, and a Service whose selector default constraints take up."""
    cluster = Cluster()
    for name in NAMESPACES:
        labels = {"team": dice.choice("xy")} if dice.maybe(0.7) else {}
        cluster.objects.put(msgspec.convert({"metadata": {"name": name, "labels": labels}}, Namespace))
        if dice.maybe(0.5):
            service = {"metadata": {"name": "s", "namespace": name}, "spec": {"selector": {"app": "a"}}}
            cluster.objects.put(msgspec.convert(service, Service))
    return cluster


def read(body: Body) -> PodInfo:
    return PodInfo(msgspec.convert(body, Pod))


def news(dice: Dice, itself: Body) -> tuple[PodInfo | None, PodInfo | None]:
    """A pod before and after: it came, went, or got other labels or tolerations; now and then it is the one that waits."""
    before = deepcopy(itself) if dice.maybe(0.1) else dice.pod("2", spec(dice, "n"))
    after = deepcopy(before)
    if dice.maybe(0.7):
        after["metadata"]["labels"] = dice.labels()
    if dice.maybe(0.2):
        after["spec"]["tolerations"] = [{"operator": "Exists"}]
    old, new = read(before), read(after)
    return dice.choice([(None, new), (old, None), (old, new)])


def brought_back(table: Sequence[ClusterEventWithHint], pod: PodInfo, old: Any, new: Any) -> Iterable[ClusterEventWithHint]:
    """The entries whose hints say that the pod is worth another try, as the queue asks them."""
    for entry in table:
        narrow = None if new is None else entry.narrow  # what goes may free something: such news is not narrowed
        if NEWS.concerns(entry.event) and (narrow is None or narrow(pod, old, new)) and entry.hint(pod, old, new) is QueueingHint.QUEUE:
            yield entry


def met(entry: ClusterEventWithHint, pod: PodInfo, old: Any, new: Any) -> bool:
    assert entry.keys is not None
    wanted = entry.keys.of_event(old, new)
    return wanted is None or bool(set(wanted) & set(entry.keys.of_pod(pod)))


@given(st.randoms(use_true_random=False))
def test_whomever_a_pods_news_brings_back_has_one_of_its_keys(chance: Any) -> None:
    dice = Dice(chance.getrandbits(64))
    cluster = world(dice)
    defaults = {"defaultingType": "List", "defaultConstraints": [ZONE_TERM | {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]}
    tables = [build(InterPodAffinity, cluster).events(), build(PodTopologySpread, cluster, dice.choice([None, defaults])).events()]
    for _ in range(20):
        body = dice.pod("1", spec(dice, None))
        waiting = read(body)
        old, new = news(dice, body)
        for table in tables:
            for entry in brought_back(table, waiting, old, new):
                assert met(entry, waiting, old, new)


def test_news_of_a_pod_that_no_term_means_asks_nobody_that_waits() -> None:
    blues = ZONE_TERM | {"labelSelector": {"matchLabels": {"color": "blue"}}}
    wants_blue = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [blues]}}
    spreads = {**blues, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    waiting = read(
        {
            "metadata": {"name": "p", "namespace": "home", "uid": "1", "labels": {"color": "blue"}},
            "spec": {"affinity": wants_blue, "topologySpreadConstraints": [spreads]},
        }
    )
    grey, blue = (
        read({"metadata": {"name": "q", "namespace": "home", "uid": "2", "labels": {"color": color}}, "spec": {"nodeName": "n"}})
        for color in ("grey", "blue")
    )
    cluster = Cluster()
    for plugin in (build(InterPodAffinity, cluster), build(PodTopologySpread, cluster)):
        entry = next(each for each in plugin.events() if NEWS.concerns(each.event))
        assert not met(entry, waiting, None, grey)
        assert not met(entry, waiting, grey, None)
        assert met(entry, waiting, None, blue)
