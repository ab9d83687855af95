"""Claims that no API server should have taken: the pod waits with a message that names the field, or goes where it may; nothing breaks."""

from __future__ import annotations

from typing import Any

import pytest

from placewright.api.decode import convert
from placewright.api.devices import ResourceClaim, ResourceSlice
from placewright.api.objects import Node
from placewright.api.pods import PodInfo
from placewright.framework.errors import CycleError
from plugins.claiming import Claiming

Body = dict[str, Any]
ELSEWHERE = "resourceclaim not available on the node"
REQUEST = "resource claim default/mine, request a"


def asked(request: Body) -> Body:
    return {"devices": {"requests": [{"name": "a", **request}]}}


def exactly(**more: Any) -> Body:
    return asked({"exactly": {"deviceClassName": "gpu", **more}})


def selector(expression: str) -> list[Body]:
    return [{"cel": {"expression": expression}}]


def world(spec: Body, status: Body) -> Claiming:
    at = Claiming(1, 1)
    body = {"metadata": {"name": "mine", "namespace": "default", "uid": "u", "resourceVersion": "5"}, "spec": spec, "status": status}
    at.cluster.objects.put(convert(body, ResourceClaim))
    return at


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (asked({}), f"{REQUEST}: unknown request type"),
        (asked({"firstAvailable": []}), f"{REQUEST}: unknown request type"),
        (asked({"exactly": {}}), f"{REQUEST}: missing device class name"),
        (exactly(deviceClassName="none"), "request a: device class none does not exist"),
        (exactly(count=0), "spec.devices.requests[0].exactly.count is 0"),
        (exactly(allocationMode="Some"), "spec.devices.requests[0].exactly.allocationMode Some is not supported"),
        (exactly(selectors=[{}]), "spec.devices.requests[0].exactly.selectors[0] is of a kind that is not supported"),
        (exactly(selectors=selector("1 +")), "spec.devices.requests[0].exactly.selectors[0].cel.expression: does not compile"),
        (exactly(selectors=selector("device.nothing")), "spec.devices.requests[0].exactly.selectors[0].cel.expression"),
    ],
)
def test_the_pod_says_which_claim_and_field(spec: Body, said: str) -> None:
    at = world(spec, {})
    (message,) = at.why(at.pod("web", "mine"))
    assert said in message
    assert at.fits(at.pod("other")) == ["n0", "n1"]


@pytest.mark.parametrize(
    "selection",
    [
        {},
        {"nodeSelectorTerms": []},
        {"nodeSelectorTerms": [{}]},
        {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Nope", "values": ["x"]}]}]},
        {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.namespace", "operator": "In", "values": ["n0"]}]}]},
    ],
)
def test_devices_that_no_node_reaches_keep_the_pod_waiting(selection: Body) -> None:
    at = world({}, {"allocation": {"nodeSelector": selection}})
    assert at.why(at.pod("web", "mine")) == {ELSEWHERE}


@pytest.mark.parametrize(
    "status",
    [
        {"allocation": {"devices": {"results": [{}]}}},
        {"allocation": {"devices": {"results": [{"bindingConditions": ["a"]}]}, "allocationTimestamp": "soon"}},
        {"allocation": {}, "reservedFor": [{}], "devices": [{}]},
    ],
)
def test_a_status_that_says_next_to_nothing_keeps_nobody_from_anywhere(status: Body) -> None:
    at = world({}, status)
    assert at.fits(at.pod("web", "mine")) == ["n0", "n1"]


def test_versions_of_any_length_are_compared() -> None:
    at = Claiming(1)
    claim = at.claim("mine")
    decided = at.reserve(at.pod("web", "mine"), "n0")
    assert at.pre_bind(decided, "n0").ok
    body = {"metadata": {"name": "mine", "namespace": "default", "uid": "u-mine", "resourceVersion": "9" * 10_000}}
    at.cluster.objects.put(convert(body, ResourceClaim))
    assert (at.taken(), at.table.pending(claim)) == ([], None)


# --- selectors without an answer -------------------------------------------------------------------------------------------------


def painted(at: Claiming, node: str, **attributes: str) -> None:
    """The node has one device with these attributes."""
    device = {"name": "d0", "attributes": {name: {"string": value} for name, value in attributes.items()}}
    pool = {"name": node, "generation": 2, "resourceSliceCount": 1}
    spec = {"driver": "d", "nodeName": node, "pool": pool, "devices": [device]}
    at.cluster.objects.put(convert({"metadata": {"name": node}, "spec": spec}, ResourceSlice))


def red(at: Claiming, **more: Any) -> PodInfo:
    """A pod that wants a red device."""
    selectors = selector('device.attributes["d"].colour == "red"')
    requests = [{"name": "r", "exactly": {"deviceClassName": "gpu", "selectors": selectors, **more}}]
    body = {"metadata": {"name": "mine", "namespace": "default", "uid": "u-mine"}, "spec": {"devices": {"requests": requests}}}
    at.cluster.objects.put(convert(body, ResourceClaim))
    return at.pod("web", "mine")


ENDED = 'running "DynamicResources" filter plugin: claim default/mine: selector #0: CEL runtime error: no such key: colour'


@pytest.mark.parametrize("more", [{}, {"allocationMode": "All"}, {"count": 1}])
def test_a_selector_without_an_answer_on_one_node_ends_the_attempt_although_another_node_fits(more: Body) -> None:
    at = Claiming(1, 1)
    painted(at, "n0", colour="red")
    painted(at, "n1", size="big")
    pod = red(at, **more)
    for _ in range(2):
        with pytest.raises(CycleError) as ended:
            at.evaluator.evaluate(pod)
        assert str(ended.value) == ENDED
    assert at.fits(at.pod("other")) == ["n0", "n1"]
    painted(at, "n1", colour="blue")
    assert at.fits(pod) == ["n0"]


FULL: Body = {"status": {"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "0"}}}


@pytest.mark.parametrize("away", [{"spec": {"unschedulable": True}}, FULL])
def test_it_does_not_on_a_node_that_another_filter_rejects(away: Body) -> None:
    at = Claiming(1, 1)
    painted(at, "n0", colour="red")
    painted(at, "n1", size="big")
    amounts = {"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "110"}}
    at.cluster.set_node(convert({"metadata": {"name": "n1"}, "status": amounts, **away}, Node))
    assert at.fits(red(at)) == ["n0"]


def test_it_does_not_where_a_device_was_found_before_it() -> None:
    at = Claiming(1)
    devices = [{"name": "a", "attributes": {"colour": {"string": "red"}}}, {"name": "b"}]
    pool = {"name": "n0", "generation": 2, "resourceSliceCount": 1}
    spec = {"driver": "d", "nodeName": "n0", "pool": pool, "devices": devices}
    at.cluster.objects.put(convert({"metadata": {"name": "n0"}, "spec": spec}, ResourceSlice))
    assert at.fits(red(at)) == ["n0"]


def test_a_pod_whose_search_runs_out_of_steps_is_told_so_comes_back_after_its_backoff_and_goes_where_only_the_last_node_can_serve_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As upstream's error when its time runs out: an error, so the pod does not wait for a device to change; and no node is forgotten."""
    monkeypatch.setattr("placewright.plugins.dynamicresources.effort.LEAST_STEPS_IN_ALL", 600)
    monkeypatch.setattr("placewright.plugins.dynamicresources.effort.STEPS_A_NODE", 0)
    at = Claiming(*[8] * 30, 9)
    wanted = {"deviceClassName": "gpu", "count": 9}
    spec = {"devices": {"requests": [{"name": "a", "firstAvailable": [{"name": "s", **wanted}]}]}}
    body = {"metadata": {"name": "mine", "namespace": "default", "uid": "u", "resourceVersion": "5"}, "spec": spec}
    at.cluster.objects.put(convert(body, ResourceClaim))
    pod, attempts = at.pod("web", "mine"), list[str]()
    while len(attempts) < 100:
        try:
            found = at.fits(pod)
            break
        except CycleError as error:
            attempts.append(str(error))
    why = "the search for devices takes more than 600 steps on all nodes together; the rest is for the next attempt"
    assert set(attempts) == {f'running "DynamicResources" filter plugin: {why}'}
    assert 1 < len(attempts) < 31
    assert found == ["n30"]
    assert at.reserve(pod, "n30").feasible.sum() == 1


def test_a_pod_goes_to_the_node_that_was_found_before_the_steps_ran_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placewright.plugins.dynamicresources.effort.LEAST_STEPS_IN_ALL", 600)
    monkeypatch.setattr("placewright.plugins.dynamicresources.effort.STEPS_A_NODE", 0)
    at = Claiming(*[9] * 30)
    wanted = {"deviceClassName": "gpu", "count": 9}
    spec = {"devices": {"requests": [{"name": "a", "firstAvailable": [{"name": "s", **wanted}]}]}}
    body = {"metadata": {"name": "mine", "namespace": "default", "uid": "u", "resourceVersion": "5"}, "spec": spec}
    at.cluster.objects.put(convert(body, ResourceClaim))
    first = at.fits(at.pod("web", "mine"))
    assert 0 < len(first) < 30
    second = at.fits(at.pod("other", "mine"))
    assert set(first) < set(second)
