"""Devices that take CPU or memory of their node (KEP-5517): kube-scheduler's rules one by one, and plain sums on random nodes."""

from __future__ import annotations

import random
from typing import Any

import pytest

from placewright import testing as kit
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.api.quantity import nano
from placewright.framework.status import Code
from plugins.claiming import Claiming
from seeds import seeds

Body = dict[str, Any]
DRIVER = "d"


def one_cpu(amount: str = "1") -> Body:
    """A mapping as 1.36 writes it."""
    return {"nodeAllocatableResourceMappings": {"cpu": {"allocationMultiplier": amount}}}


def mapped(**resources: Body) -> Body:
    """Mappings as 1.37 writes them."""
    return {"nodeAllocatableResources": resources}


def shared(policy: Body | None = None, **mapping: Any) -> Body:
    return {"allowMultipleAllocations": True, "capacity": {f"{DRIVER}/cores": {"value": "64", **(policy or {})}}, **mapping}


class Mapping(Claiming):
    """Nodes n0, n1, ... of 4 CPUs and 8 GiB; the devices of each are given."""

    def __init__(self, *nodes: list[Body], resource: str = "") -> None:
        super().__init__(resource=resource)
        for number, devices in enumerate(nodes):
            name = f"n{number}"
            self.cluster.set_node(kit.node(name, cpu="4", memory="8Gi").build())
            made = kit.resource_slice(name, driver=DRIVER)
            for place, device in enumerate(devices):
                made = made.device(f"d{place}", **device)
            self.cluster.objects.put(made.build())

    def user(self, name: str, *claims: str, cpu: str = "", more: Body | None = None, **container: Any) -> PodInfo:
        """A pod whose only container uses all its claims."""
        uses = [{"name": f"c{number}"} for number in range(len(claims))]
        requests = {"requests": {"cpu": cpu}} if cpu else {}
        made = self.pod(name, *claims, resources={"claims": uses, **requests}, **container)
        return made if more is None else kit.pod(name, **{**_spec(made), **more}).uid(made.uid).build()

    def bind(self, pod: PodInfo, node: str) -> Body:
        """Place the pod. Return what is written into its status, by claim."""
        evaluation = self.reserve(pod, node)
        assert self.pre_bind(evaluation, node).ok
        for name in list(self.server.claims):
            self.show(name)
        return {each.resource_claim_name: each for each in self.server.node_resources.get(pod.name, ())}

    def requested(self, name: str = "cpu") -> int:
        """Requests on n0, in milli-CPU or bytes."""
        row = self.cluster.row(NodeName("n0"))
        assert row is not None
        return int(self.cluster.resources.column(name).requested[row])


def _spec(pod: PodInfo) -> Body:
    spec = pod.pod.spec
    uses = [{"name": use.name} for use in (spec.containers or ())[0].resources.claims or ()]
    claims = [{"name": each.name, "resourceClaimName": each.resource_claim_name} for each in spec.resource_claims or ()]
    requests = (spec.containers or ())[0].resources.requests or {}
    return {"resourceClaims": claims, "containers": [{"name": "main", "resources": {"claims": uses, "requests": requests}}]}


# --- what a claim takes ------------------------------------------------------------------------------------------------------------


def test_the_devices_of_a_claim_count_on_the_node_beside_the_pods_requests_and_stand_in_its_status() -> None:
    made = Mapping([one_cpu(), one_cpu("1500m")])
    made.claim("two", 2)
    [status] = made.bind(made.user("p", "two", cpu="1"), "n0").values()
    assert (status.resource_claim_name, status.containers, status.resources) == ("two", ("main",), {"cpu": "2500m"})
    assert made.requested() == 3500


@pytest.mark.parametrize(
    ("device", "cpu", "memory"),
    [
        (shared(nodeAllocatableResourceMappings={"cpu": {"capacityKey": f"{DRIVER}/cores", "allocationMultiplier": "1500m"}}), 3000, 0),
        (shared(nodeAllocatableResourceMappings={"cpu": {"capacityKey": f"{DRIVER}/cores"}}), 2000, 0),
        (shared(nodeAllocatableResourceMappings={"cpu": {"capacityKey": f"{DRIVER}/threads"}}), 0, 0),  # was not consumed
        (shared(**mapped(cpu={"mapping": {"capacityKey": f"{DRIVER}/cores", "capacityMultiplier": "2"}})), 4000, 0),
        (shared(**mapped(cpu={"mapping": {"deviceMultiplier": "3"}}, memory={"overhead": {"perPod": "1Gi"}})), 3000, 2**30),
        (shared(**mapped(memory={"overhead": {"perPod": "1Gi", "perContainer": "1Mi"}})), 0, 2**30 + 2**20),
    ],
)
def test_a_mapping_counts_the_consumed_capacity_or_the_device_or_an_overhead(device: Body, cpu: int, memory: int) -> None:
    made = Mapping([device])
    claim = kit.resource_claim("c").uid("u-c").request("gpu", name="r", capacity={"requests": {f"{DRIVER}/cores": "2"}})
    made.server.keep(claim.build())
    made.show("c")
    made.bind(made.user("p", "c"), "n0")
    assert (made.requested(), made.requested("memory")) == (cpu, memory)


def test_an_overhead_counts_once_for_each_container_that_uses_the_claim() -> None:
    made = Mapping([mapped(memory={"overhead": {"perPod": "1Gi", "perContainer": "512Mi"}})])
    made.claim("c")
    use = {"resources": {"claims": [{"name": "c0"}]}}
    containers = [{"name": "a", **use}, {"name": "b", **use}, {"name": "c"}]
    [status] = made.bind(made.user("p", "c", more={"containers": containers, "initContainers": [{"name": "first", **use}]}), "n0").values()
    assert status.containers == ("first", "a", "b")
    assert made.requested("memory") == 2**30 + 3 * 2**29


def test_claims_are_named_in_order_and_a_claim_without_mapped_devices_is_left_out() -> None:
    made = Mapping([one_cpu(), one_cpu(), {}])
    for name in ("z", "a", "m"):
        made.claim(name)
    assert list(made.bind(made.user("p", "z", "a", "m"), "n0")) == ["a", "z"]
    assert made.requested() == 2000


# --- nodes without room --------------------------------------------------------------------------------------------------------------


def test_a_node_without_room_for_requests_and_devices_together_is_refused_in_nodes_own_words() -> None:
    made = Mapping([one_cpu("3"), one_cpu("3")], [one_cpu("1")])
    made.claim("c")
    assert made.fits(made.user("p", "c", cpu="2")) == ["n1"]
    made.cluster.remove_node(NodeName("n1"))
    assert made.why(made.user("p", "c", cpu="2")) == {"Insufficient cpu"}
    made.bind(made.user("p", "c"), "n0")
    made.claim("d")
    assert made.why(made.user("q", "d")) == {"Insufficient cpu"}


@pytest.mark.parametrize(("cpu", "code"), [("2", Code.UNSCHEDULABLE_AND_UNRESOLVABLE), ("1", Code.UNSCHEDULABLE)])
def test_preemption_may_help_only_if_the_node_is_large_enough(cpu: str, code: Code) -> None:
    made = Mapping([one_cpu("3")])
    made.cluster.set_pod(kit.pod("low", on="n0").requests(cpu="1").build())
    made.claim("c")
    evaluation = made.evaluator.evaluate(made.user("p", "c", cpu=cpu))
    [rejection] = made.evaluator.diagnose(evaluation).rejections
    assert (rejection.status.code, rejection.status.reasons) == (code, ("Insufficient cpu",))


def test_preemption_takes_a_victim_for_the_cpu_of_a_device() -> None:
    made = Mapping([one_cpu("3")])
    made.cluster.set_pod(kit.pod("low", on="n0").priority(-1).requests(cpu="2").build())
    made.claim("c")
    pod = made.user("p", "c", cpu="1")
    evaluation = made.evaluator.evaluate(pod)
    diagnosis = made.evaluator.diagnose(evaluation)
    result = made.evaluator.runtime.run_post_filter(evaluation.state, pod, diagnosis)
    assert [victim.name for victim in result.victims] == ["low"]


def test_two_scarce_resources_are_both_named() -> None:
    both = {"cpu": {"allocationMultiplier": "5"}, "memory": {"allocationMultiplier": "9Gi"}}
    made = Mapping([{"nodeAllocatableResourceMappings": both}])
    made.claim("c")
    assert made.why(made.user("p", "c")) == {"Insufficient cpu, Insufficient memory"}


def test_a_claim_that_no_container_uses_is_refused() -> None:
    made = Mapping([one_cpu()])
    made.claim("c")
    refused = "claim c: node-allocatable resource claim not referenced by any container within the pod"
    assert made.why(made.pod("p", "c")) == {refused}


def test_the_pods_own_level_must_cover_containers_and_devices() -> None:
    made = Mapping([one_cpu("2")])
    made.claim("c")
    refused = "pod level request for cpu is insufficient to cover the aggregated container and node-allocatable DRA requests"
    for cpu, expected in (("2", {refused}), ("3", set())):
        pod = made.user("p", "c", cpu="1", more={"resources": {"requests": {"cpu": cpu}}})
        assert made.why(pod) - {""} == expected
    made.bind(pod, "n0")
    assert made.requested() == 3000  # the pod's own level stands for all


def test_a_mapping_of_a_capacity_on_a_device_that_cannot_be_shared_is_the_drivers_fault() -> None:
    made = Mapping([{"nodeAllocatableResourceMappings": {"cpu": {"capacityKey": "cores"}}}])
    made.claim("c")
    [told] = made.why(made.user("p", "c"))
    assert told.startswith("claim default/c, device d0: ConsumedCapacity is nil, but Capacity key 'cores' is set")


# --- sharing, and taking back ----------------------------------------------------------------------------------------------------


def test_a_second_pod_may_not_share_such_a_claim_but_may_share_one_with_overhead() -> None:
    for device, refused in ((one_cpu(), True), (mapped(memory={"overhead": {"perPod": "1Gi"}}), False)):
        made = Mapping([device])
        made.claim("c")
        made.bind(made.user("p", "c"), "n0")
        second = made.user("q", "c")
        if refused:
            assert made.why(second) == {"node allocatable resource claim c is already used by another pod"}
        else:
            made.bind(second, "n0")
            assert made.requested("memory") == 2 * 2**30  # each pod takes it


def test_what_was_taken_is_given_back_with_the_status() -> None:
    made = Mapping([one_cpu()])
    made.claim("c")
    evaluation = made.reserve(made.user("p", "c", cpu="1"), "n0")
    assert made.requested() == 2000
    assert made.pre_bind(evaluation, "n0").ok
    made.unreserve(evaluation, "n0")
    made.server.catch_up()
    assert (made.requested(), made.server.node_resources) == (0, {"p": ()})


def test_the_status_of_an_earlier_attempt_is_replaced_and_does_not_count_before_the_binding() -> None:
    made = Mapping([{}])
    made.claim("c")
    earlier = {"nodeAllocatableResourceClaimStatuses": [{"resourceClaimName": "old", "resources": {"cpu": "9"}}]}
    pod = kit.pod("p", **_spec(made.user("p", "c"))).uid("p-p").status(**earlier).build()
    assert pod.requests == {}
    made.bind(pod, "n0")
    assert made.server.node_resources == {"p": ()}


STATUS = [{"resourceClaimName": "c", "containers": ["a", "b"], "resources": {"cpu": "1"}}]
LATER = [
    {
        "resourceClaimName": "c",
        "containers": ["a", "b"],
        "mapping": [{"name": "cpu", "quantity": "2"}],
        "overhead": [{"name": "cpu", "perPod": "100m", "perContainer": "10m"}],
    }
]


@pytest.mark.parametrize(("statuses", "cpu"), [(STATUS, 1500), (LATER, 2620)])
def test_a_pod_on_a_node_counts_with_the_resources_of_its_status(statuses: list[Body], cpu: int) -> None:
    placed = kit.pod("p", on="n0").requests(cpu="500m").status(nodeAllocatableResourceClaimStatuses=statuses)
    assert (placed.build().requests["cpu"], placed.build().scoring_cpu) == (cpu, cpu)
    plain, unbound = kit.pod("p", on="n0").requests(cpu="500m"), kit.pod("p").requests(cpu="500m")
    for earlier in (plain, unbound.status(nodeAllocatableResourceClaimStatuses=statuses)):  # neither counted with them
        assert PodInfo(placed.build().pod, earlier.build()).requests["cpu"] == cpu


# --- against plain sums --------------------------------------------------------------------------------------------------------------


@seeds(range(150))
def test_random_nodes_hold_what_a_plain_sum_says(seed: int) -> None:
    """Each pod wants all devices of its node, so that plain reading knows which it gets."""
    dice = random.Random(seed)
    nodes = [[dice.choice([{}, one_cpu(f"{dice.randrange(1, 20)}00m")]) for _ in range(dice.randrange(1, 4))] for _ in range(3)]
    made = Mapping(*nodes)
    left = {f"n{number}": 4000 for number in range(3)}
    free = {f"n{number}": True for number in range(3)}
    for number in range(6):
        claim, own = f"c{number}", dice.randrange(0, 40) * 100
        kept = kit.resource_claim(claim).uid(f"u-{claim}").request("gpu", name="r", allocationMode="All").build()
        made.server.keep(kept)
        made.show(claim)
        pod = made.user(f"p{number}", claim, cpu=f"{own}m" if own else "")
        takes = {f"n{place}": own + _milli(devices) for place, devices in enumerate(nodes)}
        expected = [node for node, amount in takes.items() if free[node] and amount <= left[node]]
        assert made.fits(pod) == expected
        if expected:
            node = dice.choice(expected)
            made.bind(pod, node)
            left[node] -= takes[node]
            free[node] = False
        made.cluster.set_pod(kit.pod(f"plain-{number}", on=(plain := f"n{dice.randrange(3)}")).requests(cpu="300m").build())
        left[plain] -= 300


def _milli(devices: list[Body]) -> int:
    mappings = (each.get("nodeAllocatableResourceMappings", {}).get("cpu", {}).get("allocationMultiplier", "0") for each in devices)
    return sum(nano(each) // 10**6 for each in mappings)


def test_an_answer_is_not_kept_for_a_node_that_filled_up_or_for_a_pod_that_requests_more() -> None:
    made = Mapping([one_cpu("2")])
    made.claim("c")
    made.claim("e")
    for name in ("p", "again"):  # what was asked twice is kept
        assert made.fits(made.user(name, "c", cpu="1")) == ["n0"]
    assert made.fits(made.user("q", "e", cpu="3")) == []
    made.cluster.set_pod(kit.pod("plain", on="n0").requests(cpu="2").build())
    assert made.fits(made.user("r", "c", cpu="1")) == []
