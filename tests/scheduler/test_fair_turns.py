"""Turns of tenants in a whole scheduler, in virtual time: what a pod costs, and how long one waits beside floods."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placewright.api.fairness import Fairness
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.queue.inflight import Lane, RoomSizes
from placewright.queue.policy import WHOLE_CLUSTER
from placewright.queue.profilequeue import ProfileQueue
from placewright.queue.queue import SchedulingQueue
from placewright.queue.queued import QueuedPod
from placewright.scheduler.policy import ProfileTenants
from placewright.testing import World, node, pod, pod_group, profile
from placewright.testing.pods import PodMaker
from placewright.testing.profiles import ProfileMaker
from randomcases import cases

BY_PODS = profile().spec(fairness={"by": "Namespace", "share": "Pods"})


def share_of(maker: PodMaker, cluster: Cluster, **fairness: Any) -> float:
    return ProfileTenants(Fairness(**{"by": "Namespace", **fairness}), cluster).charge(maker.build()) / WHOLE_CLUSTER


@pytest.fixture
def cluster() -> Cluster:
    """8 CPUs, 32 GiB, 4 GPUs, places for 220 pods."""
    return World(nodes=[node("a").offers({"example.com/gpu": "4"}), node("b")]).cluster


def test_a_pod_costs_the_largest_of_its_shares(cluster: Cluster) -> None:
    assert share_of(pod("p").requests(cpu="2", memory="1Gi"), cluster) == pytest.approx(2 / 8)
    assert share_of(pod("p").requests(cpu="1", memory="16Gi"), cluster) == pytest.approx(16 / 32)
    assert share_of(pod("p").requests({"cpu": "1", "example.com/gpu": "3"}), cluster) == pytest.approx(3 / 4)


def test_a_pod_without_requests_costs_its_place(cluster: Cluster) -> None:
    assert share_of(pod("p"), cluster) == pytest.approx(1 / 220)
    assert share_of(pod("p").requests(cpu="1m"), cluster) == pytest.approx(1 / 220)


def test_no_pod_costs_more_than_the_cluster_and_none_costs_nothing(cluster: Cluster) -> None:
    assert share_of(pod("p").requests(cpu="1000"), cluster) == 1
    assert share_of(pod("p").requests({"example.com/fpga": "9"}), cluster) == pytest.approx(1 / 220), "no node offers it"
    assert share_of(pod("p").requests(cpu="1"), World().cluster) > 0, "there are no nodes"


def test_shares_follow_the_nodes() -> None:
    world = World(nodes=[node("a")])
    tenants = ProfileTenants(Fairness(by="Namespace"), world.cluster)
    web = pod("web").requests(cpu="1").build()
    assert tenants.charge(web) / WHOLE_CLUSTER == pytest.approx(1 / 4)
    world.add(node("b", cpu="12"))
    assert tenants.charge(web) / WHOLE_CLUSTER == pytest.approx(1 / 16)
    world.remove(node("a"))
    assert tenants.charge(web) / WHOLE_CLUSTER == pytest.approx(1 / 12)


def test_by_pods_each_costs_the_same(cluster: Cluster) -> None:
    assert share_of(pod("p"), cluster, share="Pods") == share_of(pod("p").requests(cpu="4"), cluster, share="Pods") > 0


def test_a_tenant_is_a_namespace_or_the_value_of_a_label(cluster: Cluster) -> None:
    web = pod("web").namespace("shop").labels(team="blue").build()
    assert ProfileTenants(Fairness(by="Namespace"), cluster).tenant_of(web) == "shop"
    by_label = ProfileTenants(Fairness(by="Label", label="team", weights={"blue": 3, "": 2}), cluster)
    assert by_label.tenant_of(web) == "blue"
    assert by_label.tenant_of(pod("other").build()) == ""
    assert [by_label.weight(tenant) for tenant in ("blue", "", "red")] == [3, 2, 1]


def test_a_profile_with_another_label_has_other_tenants(cluster: Cluster) -> None:
    kinds = [Fairness(by="Namespace"), Fairness(by="Label", label="namespace"), Fairness(by="Label", label="team")]
    assert len({ProfileTenants(each, cluster).by for each in kinds}) == 3


class NotedQueue(SchedulingQueue):
    """Notes each pod when it is handed out, by itself or with its group."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.handed_out: list[PodInfo] = []

    def _hand_out(self, queued: QueuedPod, queue: ProfileQueue, lane: Lane) -> None:
        self.handed_out.append(queued.pod)
        super()._hand_out(queued, queue, lane)


class FairWorld(World):
    """A world whose profile has few places for pods on their way, on two nodes with room for all."""

    queue: NotedQueue

    def __init__(self, fair: ProfileMaker, places: int = 512) -> None:
        self._places = places
        super().__init__(nodes=[node(f"n{number}", cpu="1000").offers(pods="10000") for number in range(2)], profile=fair)

    def _make_queue(self) -> SchedulingQueue:
        return NotedQueue(self._policy, self.time, self.log.pod_entered, sizes=RoomSizes(on_their_way=self._places))

    @property
    def decided(self) -> list[PodInfo]:
        """The pods that were handed out, in order."""
        return self.queue.handed_out

    @property
    def namespaces(self) -> str:
        """The namespaces of the decided pods."""
        return "".join(pod.namespace for pod in self.decided)


def test_a_profile_lets_namespaces_take_turns_and_a_live_change_ends_it() -> None:
    world = FairWorld(BY_PODS)
    world.show(*(pod(f"a{number}").namespace("a") for number in range(5)), *(pod(f"b{number}").namespace("b") for number in range(5)))
    world.settle()
    assert world.namespaces == "ab" * 5
    world.use(profile().generation(2))
    world.show(*(pod(f"c{number}").namespace("c") for number in range(3)), *(pod(f"d{number}").namespace("d") for number in range(3)))
    world.settle()
    assert world.namespaces[10:] == "cccddd"


def test_a_group_is_decided_at_its_turn_and_paid_for_by_all_its_members() -> None:
    world = FairWorld(BY_PODS.enable("GangScheduling"))
    world.show(pod_group("gang", 4).namespace("a"), *(pod(f"b{number}").namespace("b") for number in range(8)))
    world.show(*(pod(f"g{number}").namespace("a").in_group("gang") for number in range(4)), pod("after").namespace("a"))
    world.settle()
    assert world.namespaces in ("baaaabbbabbbb", "baaaabbbbabbb")


# --- floods ------------------------------------------------------------------------------------------------------------------------------

kinds = st.sampled_from(["burst", "new tenants", "too large", "groups", "important"])
floods = st.lists(st.tuples(kinds, st.integers(0, 3), st.integers(1, 12)), min_size=1, max_size=4)


@settings(max_examples=cases(25), deadline=None)
@given(floods, st.integers(1, 3))
def test_no_flood_keeps_a_pod_that_fits_from_its_turn(floods: list[tuple[str, int, int]], pods: int) -> None:
    """Bindings take half a second, and the places for pods on their way are few; pods that do not fit are tried again and again."""
    world = FairWorld(BY_PODS.enable("GangScheduling").backoff(initial=0.1, longest=0.2), places=24)
    world.binder.seconds = 0.5
    numbers = count()

    def flood() -> None:
        for kind, which, many in floods:
            name = f"x{next(numbers)}"
            namespace = name if kind == "new tenants" else f"{kind.replace(' ', '-')}-{which}"
            made = [pod(f"{name}-{number}").namespace(namespace) for number in range(many)]
            if kind == "too large":
                made = [each.requests(cpu="5000") for each in made]
            elif kind == "important":
                made = [each.priority(5) for each in made[:2]]
            elif kind == "groups":
                made = [each.in_group(name) for each in made[:3]]
                world.show(pod_group(name, len(made)).namespace(namespace))
            world.show(*made)

    for _ in range(4):
        flood()
        world.advance(0.25)
    ours = [pod(f"ours-{number}").namespace("ours") for number in range(pods)]
    world.decided.clear()
    world.show(*ours)
    flood()
    while sum(each.namespace == "ours" for each in world.decided) < pods:
        flood()
        world.advance(0.25)
        assert world.now < 1_000, "our pods starve"
    last = max(index for index, each in enumerate(world.decided) if each.namespace == "ours")
    before = [each for each in world.decided[:last] if each.priority == 0 and each.namespace != "ours"]
    tenants = len({each.namespace for each in before})
    assert len(before) <= 3 * 3 * pods * (tenants + 1), "for each of ours at most three turns of each tenant, in groups of three"
