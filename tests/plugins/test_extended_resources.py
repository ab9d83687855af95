"""Extended resources as requests for devices: which container gets which, and where a claim is needed at all."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from placewright import testing as kit
from placewright.api.decode import convert
from placewright.api.devices import DeviceClass
from placewright.api.objects import Node, Pod
from placewright.api.pods import PodInfo
from placewright.api.profile import ProfileSpec, SchedulingProfile
from placewright.cluster.cluster import Cluster
from placewright.offline.world import offline_evaluator
from placewright.plugins.catalog import in_tree
from placewright.plugins.dynamicresources.claims import claims_of, extension_of, named_claims
from placewright.profiles.resolve import resolve
from plugins.claiming import Claiming
from seeds import seeds

Body = dict[str, Any]
GPU = "example.com/gpu"


def container(name: str, count: int, *, sidecar: bool = False, **more: str) -> Body:
    requests = {"cpu": "1", **({GPU: str(count)} if count else {}), **more}
    return {"name": name, "resources": {"requests": requests}, **({"restartPolicy": "Always"} if sidecar else {})}


def a_pod(*containers: Body, init: tuple[Body, ...] = ()) -> PodInfo:
    return kit.pod("web", containers=list(containers), initContainers=list(init)).uid("web").build()


def asked(one: PodInfo) -> tuple[dict[str, int], dict[str, list[str]]]:
    """(devices by request, requests by container)."""
    found = extension_of(one, Claiming(4, resource=GPU).cluster)
    assert found is not None
    requests = found.whole.claim.spec.devices.requests or ()
    by_container: dict[str, list[str]] = {}
    for each in found.whole.mappings:
        by_container.setdefault(each.container_name, []).append(each.request_name)
    return {each.name: each.exactly.count for each in requests if each.exactly is not None}, by_container


def test_each_container_has_devices_of_its_own() -> None:
    requests, users = asked(a_pod(container("a", 2), container("b", 1), container("c", 0)))
    assert requests == {"container-0-request-1": 2, "container-1-request-1": 1}
    assert users == {"a": ["container-0-request-1"], "b": ["container-1-request-1"]}


def test_an_init_container_uses_those_of_the_containers_after_it() -> None:
    requests, users = asked(a_pod(container("main", 2), init=(container("prepare", 1),)))
    assert requests == {"container-1-request-1": 2}
    assert users == {"main": ["container-1-request-1"], "prepare": ["container-1-request-1"]}


def test_init_containers_share_what_they_need_more() -> None:
    requests, users = asked(a_pod(container("main", 1), init=(container("first", 3), container("second", 2))))
    assert requests == {"container-0-request-1": 2, "container-2-request-1": 1}
    assert users["first"] == users["second"] == ["container-2-request-1", "container-0-request-1"]


def test_a_sidecar_runs_on_and_has_its_own() -> None:
    requests, _ = asked(a_pod(container("main", 1), init=(container("log", 1, sidecar=True), container("late", 1))))
    assert requests == {"container-0-request-1": 1, "container-2-request-1": 1}


@seeds(range(200))
def test_there_are_always_as_many_devices_as_run_at_once_and_each_container_has_enough(seed: int) -> None:
    dice = random.Random(seed)
    init = tuple(container(f"i{number}", dice.randint(0, 3), sidecar=dice.random() < 0.4) for number in range(dice.randint(0, 4)))
    main = [container(f"m{number}", dice.randint(0, 2)) for number in range(dice.randint(1, 3))] + [container("last", 1)]
    one = a_pod(*main, init=init)
    requests, users = asked(one)
    for each in (*init, *main):
        wanted = int(each["resources"]["requests"].get(GPU, 0))
        assert sum(requests[name] for name in users.get(each["name"], ())) >= wanted
    lasting = [each for each in (*init, *main) if each in main or "restartPolicy" in each]
    held = [name for each in lasting for name in users.get(each["name"], ())]
    assert len(held) == len(set(held)), "containers that run side by side use the same device"
    assert sum(requests.values()) >= one.requests[GPU]


def test_a_node_that_offers_the_resource_itself_is_used_up_as_ever_and_others_by_their_devices() -> None:
    at = Claiming(0, 1, 2, resource=GPU)
    at.cluster.set_node(kit.node("n0", cpu="64", memory="64Gi").offers({GPU: "2"}).build())
    two = at.pod("web", resources={"requests": {GPU: "2"}})
    assert at.fits(two) == ["n0", "n2"]
    decided = at.reserve(two, "n0")
    assert at.pre_bind(decided, "n0").ok
    assert (at.server.writes, at.taken()) == ([], [])
    assert at.fits(at.pod("next", resources={"requests": {GPU: "2"}})) == ["n2"]
    assert at.why(at.pod("large", resources={"requests": {GPU: "3"}})) == {f"Insufficient {GPU}", "cannot allocate all claims"}


def test_the_newest_class_of_a_resource_serves_it_and_every_class_the_resource_of_its_name() -> None:
    at = Claiming(1, resource=GPU)
    for name, age in (("b", "2026-01-02"), ("a", "2026-01-02"), ("c", "2026-01-01")):
        at.cluster.objects.put(kit.device_class(name).created(f"{age}T00:00:00Z").serves(GPU).build())
    devices = at.cluster.objects.devices
    assert devices.class_of(GPU) == "a"
    assert devices.class_of("deviceclass.resource.kubernetes.io/c") == "c"
    assert devices.class_of("example.com/fpga") is None
    assert at.fits(at.pod("web", resources={"requests": {"deviceclass.resource.kubernetes.io/gpu": "1"}})) == ["n0"]


def test_a_profile_without_the_plugin_leaves_no_pod_without_its_devices() -> None:
    at = Claiming(2, resource=GPU)
    spec = convert({"schedulerName": "s", "plugins": {"multiPoint": {"disabled": [{"name": "DynamicResources"}]}}}, ProfileSpec)
    evaluator = offline_evaluator(resolve(SchedulingProfile(spec=spec), in_tree()), in_tree(), at.cluster)
    evaluation = evaluator.evaluate(at.pod("web", resources={"requests": {GPU: "1"}}))
    assert [rejection.status.message for rejection in evaluator.diagnose(evaluation).rejections] == [f"Insufficient {GPU}"]


@given(
    offered=st.lists(st.frozensets(st.integers(0, 139), max_size=139), min_size=1, max_size=12),
    resources=st.sampled_from([1, 2, 61, 62, 63, 64, 65, 124, 125, 140]),
    again=st.randoms(use_true_random=False),
)
def test_what_a_node_lacks_is_told_however_many_resources_there_are(
    offered: list[frozenset[int]], resources: int, again: random.Random
) -> None:
    """A row's number stands for the resources that its node does not offer, in whichever order and company rows are asked about."""
    names = [f"example.com/r{i:03}" for i in range(resources)]
    cluster = Cluster()
    for name in names:
        cluster.objects.devices.classes.put(convert({"metadata": {"name": name[-4:]}, "spec": {"extendedResourceName": name}}, DeviceClass))
    for number, some in enumerate(offered):
        there = {"cpu": "4", **{name: "1" for i, name in enumerate(names) if i in some}}
        cluster.set_node(convert({"metadata": {"name": f"n{number}"}, "status": {"allocatable": there}}, Node))
    extension = extension_of(a_pod(*({"name": f"c{i}", "resources": {"requests": {name: "1"}}} for i, name in enumerate(names))), cluster)
    assert extension is not None
    lacking = [{name for i, name in enumerate(names) if i not in some} for some in offered]
    for rows in ([*range(len(offered))], again.sample(range(len(offered)), len(offered)), [again.randrange(len(offered))]):
        for row, code in zip(rows, extension.codes(cluster, np.array(rows, np.intp)).tolist(), strict=True):
            assert {each.resource_name for each in extension.variant(code).mappings} == lacking[row]
            assert (code == 0) == (not lacking[row])


class CountedTuple(tuple[Any, ...]):
    """Counts what is read of it."""

    __slots__ = ()
    read = 0

    def __iter__(self) -> Iterator[Any]:
        for each in super().__iter__():
            CountedTuple.read += 1
            yield each


def test_the_claims_of_a_pod_are_looked_up_once_each_however_many_there_are() -> None:
    entries = [{"name": f"e{i}", "resourceClaimTemplateName": "t"} for i in range(500)]
    body = {"metadata": {"name": "web", "namespace": "default", "uid": "web"}, "spec": {"resourceClaims": entries}}
    one = convert(body, Pod)
    statuses = CountedTuple(convert({"status": {"resourceClaimStatuses": entries}}, Pod).status.resource_claim_statuses or ())
    CountedTuple.read = 0
    many = PodInfo(replace(one, status=replace(one.status, resource_claim_statuses=statuses)))
    assert claims_of(many, Cluster().objects.devices.claims) == []
    assert len(list(named_claims(many))) == 0
    assert CountedTuple.read <= 3 * len(entries)


def test_containers_beyond_what_a_claim_can_serve_are_not_matched_with_each_other() -> None:
    many = extension_of(
        a_pod(*(container(f"c{i}", 1) for i in range(300)), init=tuple(container(f"i{i}", 300) for i in range(300))),
        Claiming(4, resource=GPU).cluster,
    )
    assert many is not None
    assert len(many.whole.mappings) == 300
    few = extension_of(
        a_pod(*(container(f"c{i}", 1) for i in range(30)), init=tuple(container(f"i{i}", 31) for i in range(300))),
        Claiming(4, resource=GPU).cluster,
    )
    assert few is not None
    assert len(few.whole.mappings) == 30 + 300 * 31
